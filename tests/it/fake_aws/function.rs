//! The function under test, on this world: `run` is one invocation from payload to reply.

use super::clock::drive_until;
use super::connector::FakeAws;
use chrono::TimeDelta;
use lifecycle_reaper::aws::Aws;
use lifecycle_reaper::config::Config;
use lifecycle_reaper::fault::Fault;
use lifecycle_reaper::handler::{Handler, Invocation};
use serde_json::Value;

pub const FUNCTION_ARN: &str = "arn:aws:lambda:eu-west-1:123456789012:function:lifecycle-reaper";

/// As Lambda passes X-Ray's header on.
pub const TRACE_ID: &str =
    "Root=1-67c6c5f0-0f0e0d0c0b0a090807060504;Parent=0f0e0d0c0b0a0908;Sampled=1";

impl FakeAws {
    /// The function's configuration from this world's variables.
    pub fn config(&self) -> Config {
        let variables = self.variables.lock().expect("unpoisoned").clone();
        Config::from_vars(variables)
            .unwrap_or_else(|problems| panic!("the test's configuration is bad: {problems}"))
    }

    /// A function that has just started cold.
    pub fn handler(&self) -> Handler {
        Handler::new(self.config(), Aws::new(self.sdk_config()))
    }

    /// One invocation by a cold function, with five minutes.
    pub fn run(&self, payload: &str) -> Result<Value, Fault> {
        self.run_for(payload, 300)
    }

    /// One invocation that has so many seconds. Panics when the function is still running at its deadline.
    pub fn run_for(&self, payload: &str, seconds: i64) -> Result<Value, Fault> {
        self.run_on(&self.handler(), payload, seconds)
    }

    /// One invocation of a warm function.
    pub fn run_on(&self, handler: &Handler, payload: &str, seconds: i64) -> Result<Value, Fault> {
        fastrand::seed(1);
        let deadline = self.now() + TimeDelta::seconds(seconds);
        let invocation = Invocation {
            request_id: "0f0e0d0c-0000-4000-8000-000000000001".into(),
            function_arn: FUNCTION_ARN.into(),
            deadline,
            trace_id: Some(TRACE_ID.into()),
        };
        drive_until(&self.clock, deadline, handler.handle(payload, &invocation)).unwrap_or_else(
            || panic!("the function still ran at its deadline, {seconds} s after it began"),
        )
    }
}
