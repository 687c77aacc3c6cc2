//! One event, invoked directly (EventBridge, SNS, a schedule, a person): what isn't done goes to the work queue once,
//! or is an error, so that Lambda's own retries act.

use super::{Clock, Handler};
use crate::{
    event::Event,
    fault::Fault,
    pace,
    reconcile::{Outcome, Report},
    reply,
    task::{Delivery, Task},
};
use chrono::TimeDelta;
use serde_json::Value;
use tracing::Instrument;

impl Handler {
    pub(super) async fn direct(
        &self,
        event: Event,
        payload: &str,
        clock: &Clock,
    ) -> Result<Value, Fault> {
        let (task, time) = match event {
            Event::Ignored(reason) => {
                tracing::info!(outcome = "Ignored", "ignored: {reason}");
                return Ok(reply::without_task("Ignored", &reason));
            }
            Event::Unreadable(reason) => {
                self.unreadable(None, payload, &reason, clock);
                let is_safe = self.bury(payload, &reason, None, clock).await;
                return if is_safe {
                    Ok(reply::without_task("Unreadable", &reason))
                } else {
                    Err(Fault::stop("event", reason))
                };
            }
            Event::Task(task, time) => (task, time),
        };
        let now = self.aws.now();
        let delivery = Delivery {
            first_seen: time.unwrap_or(now).min(now),
            ..Delivery::first(now)
        };
        let instance_id = task.manager().map(|m| m.as_str()).unwrap_or_default();
        let span = tracing::info_span!("event", task = task.name(), instance_id);
        async {
            let report = match clock.left_for_work(now) {
                Some(budget) => {
                    self.pass(&task, &delivery, budget, &clock.function_name)
                        .await
                }
                None => Err(Fault::out_of_time("pass")),
            };
            self.settle_direct(&task, &delivery, report, payload, clock)
                .await
        }
        .instrument(span)
        .await
    }

    async fn settle_direct(
        &self,
        task: &Task,
        delivery: &Delivery,
        report: Result<Report, Fault>,
        payload: &str,
        clock: &Clock,
    ) -> Result<Value, Fault> {
        let is_wake = matches!(task, Task::Wake { .. });
        let is_plan = matches!(task, Task::Sweep { writes: false });
        let (outcome, reason) = match &report {
            Ok(report) => (report.outcome.clone(), report.reason.clone()),
            Err(fault) if is_wake => (Outcome::Done, fault.to_string()),
            Err(fault) if is_plan => return Err(fault.clone()),
            Err(fault) => (
                Outcome::Again(pace::backoff(task, delivery)),
                fault.to_string(),
            ),
        };
        let is_safe = match &outcome {
            Outcome::Done => true,
            Outcome::Again(after) => self.enqueue(payload, *after, clock).await,
            Outcome::Failed(_) if is_wake || task.manager().is_none() => true,
            Outcome::Failed(_) => self.bury(payload, &reason, None, clock).await,
        };
        if !is_safe {
            return Err(Fault::incomplete(
                "invocation",
                format!(
                    "{} is not finished and not on a queue: {reason}",
                    task.name()
                ),
            ));
        }
        Ok(match report {
            Ok(report) => reply::summary(task, &report),
            Err(_) => reply::without_task(outcome.word(), &reason),
        })
    }

    /// Puts an unfinished event on the work queue, once; from there it comes as a record.
    async fn enqueue(&self, payload: &str, delay: TimeDelta, clock: &Clock) -> bool {
        let Some(url) = &self.config.work_queue_url else {
            return false;
        };
        let call = self.aws.enqueue(url, payload, delay);
        match self.in_time(clock, "SendMessage", call).await {
            Ok(()) => {
                let again_seconds = delay.num_seconds();
                tracing::info!(again_seconds, "on the work queue");
                true
            }
            Err(fault) => {
                tracing::error!(aws_code = fault.code, %fault, "not on the work queue");
                false
            }
        }
    }
}
