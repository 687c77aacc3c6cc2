//! The handler: an invocation in, acknowledgements out.
//!
//! No message is lost: it is acknowledged only when its task is done, it is irrelevant, or it lies in the dead-letter
//! queue. One record's failure, panic or slowness never touches another record of the batch.

mod batch;
mod direct;

use crate::{
    aws::{Aws, Undeliverable},
    config::Config,
    event::{self, Event, Place},
    fault::Fault,
    incoming::Incoming,
    log, metrics,
    reconcile::{self, Report},
    reply,
    task::{Delivery, Task},
    world::Time,
};
use chrono::TimeDelta;
use futures_util::{FutureExt, future::join_all};
use serde_json::Value;
use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Mutex, time::Duration};
use tracing::Instrument;

/// What the Lambda service says of one invocation.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The request id.
    pub request_id: String,
    /// The function's own ARN.
    pub function_arn: String,
    /// When Lambda ends the function.
    pub deadline: Time,
    /// X-Ray's trace id.
    pub trace_id: Option<String>,
}

/// Kept back at the end, to say what was not done; a quarter of the time where that is less.
const RESERVE: TimeDelta = TimeDelta::seconds(5);
/// With less time left nothing is begun.
const SHORTEST_PASS: TimeDelta = TimeDelta::seconds(5);

/// The function, between its invocations.
#[derive(Debug)]
pub struct Handler {
    config: Config,
    aws: Aws,
    queue_urls: Mutex<BTreeMap<String, String>>,
}

impl Handler {
    /// A function with its configuration and its clients.
    pub fn new(config: Config, aws: Aws) -> Self {
        Self {
            config,
            aws,
            queue_urls: Mutex::default(),
        }
    }

    /// Handles one invocation; never panics.
    ///
    /// # Errors
    /// For an asynchronous invocation that is neither done nor safe on a queue, and for a batch in which a record
    /// that isn't done can't be listed: Lambda's own retries then act.
    pub async fn handle(&self, payload: &str, invocation: &Invocation) -> Result<Value, Fault> {
        let trace_id = invocation.trace_id.as_deref().unwrap_or_default();
        let span = tracing::info_span!("invocation", request_id = invocation.request_id, trace_id);
        let work = async {
            let here = self.place(&invocation.function_arn);
            let clock = Clock::of(invocation, self.aws.now());
            match Incoming::read(payload) {
                Incoming::Batch(records) => self.batch(&records, &here, &clock).boxed_local().await,
                Incoming::Messages(messages) => {
                    let replies = join_all(messages.iter().map(|m| {
                        self.direct(event::parse_text(m, &here, &self.config), m, &clock)
                            .boxed_local()
                    }))
                    .await;
                    replies
                        .into_iter()
                        .collect::<Result<Vec<_>, _>>()
                        .map(Value::Array)
                }
                Incoming::Event(value) => {
                    self.direct(event::parse(&value, &here, &self.config), payload, &clock)
                        .boxed_local()
                        .await
                }
                Incoming::Unreadable(reason) => {
                    self.direct(Event::Unreadable(reason), payload, &clock)
                        .boxed_local()
                        .await
                }
            }
        };
        match AssertUnwindSafe(work.instrument(span)).catch_unwind().await {
            Ok(reply) => reply,
            Err(panic) => Err(panicked(&*panic)),
        }
    }

    /// Where we are. A local runtime makes its function ARN up; one that contradicts the Region proves nothing.
    fn place(&self, function_arn: &str) -> Place {
        let mut fields = function_arn.split(':').skip(3);
        let (region, account) = (fields.next(), fields.next());
        let own_region = self.config.region.as_deref().or_else(|| self.aws.region());
        let trusted = region.is_some() && region == own_region;
        Place {
            region: own_region.map(str::to_owned),
            account: account
                .filter(|a| trusted && !a.is_empty())
                .map(str::to_owned),
        }
    }

    /// A pass within its time; a panic or the end of the time is a fault like any other.
    async fn pass(
        &self,
        task: &Task,
        delivery: &Delivery,
        budget: Duration,
        function_name: &str,
    ) -> Result<Report, Fault> {
        let pass = AssertUnwindSafe(
            reconcile::pass(&self.aws, &self.config, task, delivery).boxed_local(),
        )
        .catch_unwind();
        let ended = match self.aws.within(budget, "pass", pass).await {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(panic)) => Err(panicked(&*panic)),
            Err(fault) => Err(fault),
        };
        let (cost, now) = (self.aws.take_cost(), self.aws.now());
        let report = match ended {
            Ok(report) => report,
            Err(fault) => {
                reply::log_cut_off(task, delivery, &fault, now, cost);
                metrics::emit(&[metrics::cut_off(function_name, delivery, cost, now)]);
                return Err(fault);
            }
        };
        reply::log_outcome(task, delivery, &report, now, cost);
        metrics::emit(&metrics::of_pass(
            function_name,
            task,
            delivery,
            &report,
            cost,
            now,
        ));
        Ok(report)
    }

    /// Says that a message is unreadable, with as much of it as helps: never the whole body.
    fn unreadable(&self, message_id: Option<&str>, body: &str, reason: &str, clock: &Clock) {
        let begins = log::beginning(body);
        tracing::error!(
            message_id,
            body_bytes = body.len(),
            begins,
            outcome = "Unreadable",
            "unreadable: {reason}"
        );
        metrics::emit(&[metrics::unreadable(&clock.function_name, self.aws.now())]);
    }

    /// A call to a queue, cut off before the function is: what was not answered by then is not done.
    async fn in_time<T>(
        &self,
        clock: &Clock,
        operation: &'static str,
        call: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let left = clock.left_for_queue(self.aws.now());
        self.aws.within(left, operation, call).await?
    }

    /// Puts a message on the dead-letter queue; `false` = it is not there, and must stay where it is.
    async fn bury(
        &self,
        body: &str,
        reason: &str,
        message_id: Option<&str>,
        clock: &Clock,
    ) -> bool {
        let Some(url) = &self.config.dead_letter_queue_url else {
            return false;
        };
        let dead = Undeliverable {
            body,
            reason,
            message_id,
        };
        let call = self.aws.bury(url, &dead);
        match self.in_time(clock, "SendMessage", call).await {
            Ok(()) => {
                tracing::warn!(message_id, "on the dead-letter queue: {reason}");
                true
            }
            Err(fault) => {
                tracing::error!(message_id, aws_code = fault.code, %fault, "not on the dead-letter queue: it stays where it is");
                false
            }
        }
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Fault {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    let fault = Fault::incomplete(
        "pass",
        format!(
            "panic: {}",
            text.unwrap_or_else(|| "without a message".into())
        ),
    );
    tracing::error!(%fault, "panic: the pass ends here");
    fault
}

/// The invocation's time, and in whose name its passes are counted.
struct Clock {
    function_name: String,
    deadline: Time,
    reserve: TimeDelta,
}

impl Clock {
    fn of(invocation: &Invocation, now: Time) -> Self {
        let (deadline, arn) = (invocation.deadline, &invocation.function_arn);
        let function_name = arn.split(':').nth(6).unwrap_or(arn).to_owned();
        Self {
            function_name,
            deadline,
            reserve: RESERVE.min((deadline - now).max(TimeDelta::zero()) / 4),
        }
    }

    /// The time for a word with a queue: one that hangs must not cost the reply.
    fn left_for_queue(&self, now: Time) -> Duration {
        (self.left(now) - self.reserve / 5)
            .to_std()
            .unwrap_or_default()
    }

    fn left(&self, now: Time) -> TimeDelta {
        (self.deadline - now).max(TimeDelta::zero())
    }

    /// The time for a pass that begins now; `None` = too little to begin.
    fn left_for_work(&self, now: Time) -> Option<Duration> {
        let left = self.left(now) - self.reserve;
        // A function with a very short timeout still has to begin something.
        let enough = left >= SHORTEST_PASS || (self.reserve < RESERVE && left >= self.reserve);
        left.to_std().ok().filter(|left| enough && !left.is_zero())
    }
}
