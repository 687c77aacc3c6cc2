//! The runs of the function: begun, polled side by side, frozen, killed, timed out, ended.

use super::checker::OWN_REFUSAL;
use super::play::{Happening, MessageKind, Play};
use super::truth::{Time, seconds};
use crate::fake_aws::clock::Woken;
use crate::fake_aws::function::FUNCTION_ARN;
use lifecycle_reaper::aws::Aws;
use lifecycle_reaper::handler::{Handler, Invocation};
use serde_json::Value;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

type Reply = Pin<Box<dyn Future<Output = Result<Value, String>>>>;

/// One invocation of the function.
pub struct Run {
    pub number: u64,
    pub begun: Time,
    /// Members of all groups when it began.
    pub members: usize,
    pub deadline: Time,
    future: Reply,
    woken: Arc<Woken>,
    waker: Waker,
    handler: Arc<Handler>,
    pub frozen_until: Option<Time>,
    /// The messages that it was given: id and receipt handle.
    pub records: Vec<(String, String, MessageKind)>,
    pub direct: Option<(String, MessageKind, u8)>,
}

impl Play {
    pub fn begin(
        &mut self,
        number: u64,
        payload: String,
        records: Vec<(String, String, MessageKind)>,
        direct: Option<(String, MessageKind, u8)>,
    ) {
        let now = self.now();
        let skew = seconds(self.script.trigger.skew);
        let deadline = now + seconds(self.script.trigger.function_timeout);
        let handler = self.idle.pop().unwrap_or_else(|| {
            Arc::new(Handler::new(
                self.aws.config(),
                Aws::new(self.aws.sdk_config_skewed(skew)),
            ))
        });
        let invocation = Invocation {
            request_id: format!("{number:08x}-0000-4000-8000-0000000000aa"),
            function_arn: FUNCTION_ARN.into(),
            deadline: deadline + skew,
            trace_id: None,
        };
        let what = match &direct {
            Some((_, kind, attempt)) => format!("directly, attempt {attempt}: {kind:?}"),
            None => records
                .iter()
                .map(|(id, _, kind)| format!("{kind:?} ({})", &id[..8]))
                .collect::<Vec<_>>()
                .join(", "),
        };
        self.aws
            .world()
            .note(format!("run {number} begins: {what}"));
        let of_run = handler.clone();
        let future: Reply = Box::pin(async move {
            of_run
                .handle(&payload, &invocation)
                .await
                .map_err(|fault| fault.to_string())
        });
        let woken = Woken::yes();
        let waker = Waker::from(woken.clone());
        self.passes += 1;
        self.truth().begun.insert(number, now);
        match &direct {
            None => drop(self.truth().queue_runs.insert(number)),
            Some((_, MessageKind::Plan, _)) => drop(self.truth().silent_runs.insert(number)),
            Some(_) => {}
        }
        // What is irrelevant needs no call at all.
        let is_irrelevant = |(_, _, kind): &(_, _, MessageKind)| *kind == MessageKind::Irrelevant;
        if direct.is_none() && records.iter().all(is_irrelevant) {
            self.truth().idle_runs.insert(number);
        }
        let members = {
            let world = self.aws.world();
            world.groups.values().map(|group| group.members.len()).sum()
        };
        self.runs.push(Run {
            number,
            begun: now,
            members,
            deadline,
            future,
            woken,
            waker,
            handler,
            frozen_until: None,
            records,
            direct,
        });
    }

    /// When a run next needs attention: a timer, its deadline.
    pub fn next_of_runs(&self) -> Option<Time> {
        let deadline = self.runs.iter().map(|run| run.deadline).min();
        let timer = if self.runs.is_empty() {
            None
        } else {
            self.aws.clock.next_wake_up()
        };
        [deadline, timer].into_iter().flatten().min()
    }

    /// Polls every run that can go on, until none can.
    pub fn poll_runs(&mut self) {
        let mut index = 0;
        let mut idle_rounds = 0;
        while !self.runs.is_empty() && idle_rounds < self.runs.len() {
            index %= self.runs.len();
            let now = self.now();
            let run = &mut self.runs[index];
            if now >= run.deadline {
                let number = run.number;
                self.kill(number, "runs into its timeout");
                idle_rounds = 0;
                continue;
            }
            if run.frozen_until.is_some_and(|until| until > now) || !run.woken.take() {
                index += 1;
                idle_rounds += 1;
                continue;
            }
            self.poll(index);
            self.follow_up();
            self.trigger();
            idle_rounds = 0;
        }
    }

    fn poll(&mut self, index: usize) {
        let run = &mut self.runs[index];
        self.aws.world().run = run.number;
        let mut context = Context::from_waker(&run.waker);
        let polled = catch_unwind(AssertUnwindSafe(|| run.future.as_mut().poll(&mut context)));
        match polled {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(reply)) => {
                let run = self.runs.remove(index);
                self.finish(run, reply);
            }
            Err(_) => {
                let run = self.runs.remove(index);
                self.violate(0, format!("run {} panics", run.number));
            }
        }
    }

    pub fn freeze(&mut self, number: u64, until: Time) {
        let Some(run) = self.runs.iter_mut().find(|run| run.number == number) else {
            return;
        };
        run.frozen_until = Some(until);
        self.aws.world().note(format!(
            "run {number} freezes until {}",
            until.format("%H:%M:%S")
        ));
        self.at_time(until, Happening::Thaw(number));
    }

    pub fn thaw(&mut self, number: u64) {
        if let Some(run) = self.runs.iter_mut().find(|run| run.number == number) {
            run.frozen_until = None;
            std::task::Wake::wake_by_ref(&run.woken);
        }
    }

    /// Ends a run in the middle. Its messages come back when their visibility ends; a direct one is tried again.
    pub fn kill(&mut self, number: u64, how: &str) {
        let Some(index) = self.runs.iter().position(|run| run.number == number) else {
            return;
        };
        let run = self.runs.remove(index);
        self.follow_up();
        self.aws.world().note(format!("run {number} {how}"));
        // However long calls take: only who is frozen can't look at the clock.
        if how != "is killed" && !self.truth().frozen.contains(&number) {
            self.violate(
                0,
                format!("run {number} was not frozen and runs into its timeout"),
            );
        }
        if let Some((body, kind, attempt)) = run.direct {
            self.retry_directly(body, kind, attempt);
        }
    }

    fn finish(&mut self, run: Run, reply: Result<Value, String>) {
        self.follow_up();
        self.aws.world().note(format!(
            "run {} ends: {}",
            run.number,
            match &reply {
                Ok(value) => value.to_string(),
                Err(fault) => format!("error {fault}"),
            }
        ));
        self.check_bounds(&run);
        if reply
            .as_ref()
            .is_ok_and(|value| value.to_string().contains(OWN_REFUSAL))
        {
            self.violate(0, format!("run {} refused its own plan", run.number));
        }
        match (&run.direct, reply) {
            (Some((body, kind, attempt)), Err(_)) => {
                self.retry_directly(body.clone(), kind.clone(), *attempt)
            }
            (Some((body, kind, _)), Ok(value)) => {
                if *kind == MessageKind::Sweep {
                    self.last_sweep = Some(value);
                }
                self.check_done(kind, body, run.number, run.begun);
            }
            (None, Err(fault)) => {
                self.violate(
                    4,
                    format!("run {} fails a whole batch: {fault}", run.number),
                );
            }
            (None, Ok(value)) => self.acknowledge(&run, &value),
        }
        let cold = run.number.is_multiple_of(7);
        if !cold {
            self.idle.push(run.handler);
        }
    }

    fn acknowledge(&mut self, run: &Run, reply: &Value) {
        let failures: Option<Vec<String>> = reply["batchItemFailures"].as_array().map(|items| {
            items
                .iter()
                .map(|item| {
                    item["itemIdentifier"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned()
                })
                .collect()
        });
        let Some(failures) = failures else {
            self.violate(
                4,
                format!("run {} answers a batch with {reply}", run.number),
            );
            return;
        };
        if let Some(unknown) = failures
            .iter()
            .find(|id| !run.records.iter().any(|(known, _, _)| known == *id))
        {
            self.violate(
                4,
                format!("run {} lists {unknown}, which it was not given", run.number),
            );
            return;
        }
        for (id, _, kind) in run
            .records
            .iter()
            .filter(|(id, _, _)| !failures.contains(id))
        {
            let Some(index) = self.queue.iter().position(|message| message.id == *id) else {
                continue;
            };
            let message = self.queue.remove(index);
            self.check_done(kind, &message.body, run.number, run.begun);
            self.perhaps_deliver_again(message);
        }
    }
}
