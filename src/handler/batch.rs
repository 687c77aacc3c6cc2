//! A batch of SQS records: what isn't done is listed in the reply and comes again when we say.

use super::{Clock, Handler};
use crate::{
    config::Mode,
    event::{self, Event, Place},
    fault::Fault,
    incoming::Record,
    pace,
    reconcile::{Outcome, Report},
    task::{Delivery, Task},
};
use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse};
use chrono::TimeDelta;
use futures_util::{
    future::{join, join_all},
    stream::{self, StreamExt},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::PoisonError,
};
use tracing::Instrument;

/// Records worked off at once: a whole batch as the event source mapping sends it by default.
const AT_ONCE: usize = 10;
/// A record that could not be begun comes again soon.
const NOT_BEGUN_DELAY: TimeDelta = TimeDelta::seconds(5);
/// A pass that is killed comes again so long after the function's end.
const AFTER_A_KILL: TimeDelta = TimeDelta::seconds(15);

/// Identical tasks of one batch: one pass for all their records.
struct Work<'a> {
    task: Task,
    delivery: Delivery,
    records: Vec<&'a Record>,
}

impl Handler {
    pub(super) async fn batch(
        &self,
        records: &[Record],
        here: &Place,
        clock: &Clock,
    ) -> Result<Value, Fault> {
        let mut works: Vec<Work<'_>> = vec![];
        let mut dead: Vec<(&Record, String)> = vec![];
        for record in records {
            match self.read(record, here) {
                Event::Ignored(reason) => tracing::info!(
                    message_id = record.message_id,
                    outcome = "Ignored",
                    "ignored: {reason}"
                ),
                Event::Unreadable(reason) => dead.push((record, reason)),
                Event::Task(task, time) => {
                    let delivery = record.delivery(time, &self.config, self.aws.now());
                    Work::add(&mut works, task, delivery, record);
                }
            }
        }
        let buried = join_all(dead.into_iter().map(|(record, reason)| async move {
            self.unreadable(
                record.message_id.as_deref(),
                record.as_it_came(),
                &reason,
                clock,
            );
            let message_id = record.message_id.as_deref();
            let is_buried = self
                .bury(record.as_it_came(), &reason, message_id, clock)
                .await;
            if is_buried { vec![] } else { vec![record] }
        }));
        // Tasks about one manager run one after the other; different managers side by side.
        let by_manager = group(works);
        let worked = stream::iter(by_manager).map(|works| async move {
            let mut unfinished = vec![];
            for work in works {
                unfinished.extend(self.work(&work, clock).await);
            }
            unfinished
        });
        let (unburied, unfinished) =
            join(buried, worked.buffer_unordered(AT_ONCE).collect::<Vec<_>>()).await;
        let unfinished: Vec<&Record> = unburied.into_iter().chain(unfinished).flatten().collect();
        tracing::info!(
            records = records.len(),
            unfinished = unfinished.len(),
            "batch: ok={} retry={}",
            records.len() - unfinished.len(),
            unfinished.len()
        );
        batch_reply(&unfinished)
    }

    fn read(&self, record: &Record, here: &Place) -> Event {
        if let (Some(service), None) = (&record.service, &record.body) {
            return Event::Ignored(format!("a record of {service:?}"));
        }
        match &record.body {
            Some(body) if !body.trim().is_empty() => {
                event::parse_text(body, &record.place(here), &self.config)
            }
            Some(_) => Event::Unreadable("the body is empty".into()),
            None => Event::Unreadable("the record has no body".into()),
        }
    }

    /// One pass for the records of one task; returns those that must come again.
    async fn work<'a>(&self, work: &Work<'a>, clock: &Clock) -> Vec<&'a Record> {
        let first = work
            .records
            .first()
            .and_then(|r| r.message_id.as_deref())
            .unwrap_or_default();
        let instance_id = work.task.manager().map(|m| m.as_str()).unwrap_or_default();
        let span = tracing::info_span!(
            "record",
            message_id = first,
            task = work.task.name(),
            instance_id
        );
        async {
            let Some(budget) = clock.left_for_work(self.aws.now()) else {
                tracing::warn!("out of time: not begun");
                self.delay(&work.records, NOT_BEGUN_DELAY, clock).await;
                return work.records.clone();
            };
            let claim = async {
                if self.config.mode == Mode::Enforce {
                    let again = clock.left(self.aws.now()) + AFTER_A_KILL;
                    self.delay(&work.records, again, clock).await;
                }
            };
            // Side by side, because a queue that hangs must not cost the pass its time.
            let (_, report) = join(
                claim,
                self.pass(&work.task, &work.delivery, budget, &clock.function_name),
            )
            .await;
            self.settle(work, report, clock).await
        }
        .instrument(span)
        .await
    }

    /// Acknowledges, delays or buries the records of a task, as its outcome says.
    async fn settle<'a>(
        &self,
        work: &Work<'a>,
        report: Result<Report, Fault>,
        clock: &Clock,
    ) -> Vec<&'a Record> {
        let is_wake = matches!(work.task, Task::Wake { .. });
        let outcome = match report {
            Ok(report) => report.outcome,
            Err(_) if is_wake => Outcome::Done,
            Err(_) => Outcome::Again(pace::backoff(&work.task, &work.delivery)),
        };
        match outcome {
            Outcome::Done => vec![],
            Outcome::Again(after) => {
                self.delay(&work.records, after, clock).await;
                work.records.clone()
            }
            // The next sweep and the next wake ask again by themselves: their messages would only fill the queue.
            Outcome::Failed(_) if is_wake || work.task.manager().is_none() => vec![],
            Outcome::Failed(fault) => {
                let reason = fault.to_string();
                let mut unburied = vec![];
                for record in &work.records {
                    let message_id = record.message_id.as_deref();
                    if !self
                        .bury(record.as_it_came(), &reason, message_id, clock)
                        .await
                    {
                        unburied.push(*record);
                    }
                }
                let again = pace::backoff(&work.task, &work.delivery);
                self.delay(&unburied, again, clock).await;
                unburied
            }
        }
    }

    /// Sets when records come again. What can't be set leaves the queue's own visibility timeout.
    async fn delay(&self, records: &[&Record], delay: TimeDelta, clock: &Clock) {
        join_all(records.iter().map(|record| async move {
            let Some(receipt_handle) = &record.receipt_handle else { return };
            let call = async {
                let url = self.queue_url(record).await?;
                self.aws.come_again(&url, receipt_handle, delay).await
            };
            match self.in_time(clock, "ChangeMessageVisibility", call).await {
                Ok(()) => tracing::debug!(message_id = record.message_id, again_seconds = delay.num_seconds(), "visible again later"),
                Err(fault) => tracing::warn!(message_id = record.message_id, aws_code = fault.code, %fault, "its visibility could not be changed"),
            }
        }))
        .await;
    }

    /// The URL of the queue that a record came from: the configured one, or as SQS tells it.
    async fn queue_url(&self, record: &Record) -> Result<String, Fault> {
        let configured = self.config.work_queue_url.as_ref();
        let Some(queue) = &record.queue else {
            return configured.cloned().ok_or_else(|| {
                Fault::stop(
                    "GetQueueUrl",
                    "the record names no queue, and WORK_QUEUE_URL is not set",
                )
            });
        };
        if let Some(url) =
            configured.filter(|url| url.rsplit('/').next() == Some(queue.name.as_str()))
        {
            return Ok(url.clone());
        }
        let known = self
            .queue_urls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&queue.name)
            .cloned();
        if let Some(url) = known {
            return Ok(url);
        }
        let url = self.aws.queue_url(queue).await?;
        self.queue_urls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(queue.name.clone(), url.clone());
        Ok(url)
    }
}

impl<'a> Work<'a> {
    /// Adds a record to the work on its task.
    fn add(works: &mut Vec<Self>, task: Task, delivery: Delivery, record: &'a Record) {
        match works.iter_mut().find(|w| w.task == task) {
            Some(work) => {
                work.records.push(record);
                work.delivery.first_seen = work.delivery.first_seen.min(delivery.first_seen);
                work.delivery.count = work.delivery.count.max(delivery.count);
            }
            None => works.push(Self {
                task,
                delivery,
                records: vec![record],
            }),
        }
    }
}

/// Works by manager; those without one are together.
fn group(works: Vec<Work<'_>>) -> Vec<Vec<Work<'_>>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for work in works {
        groups
            .entry(work.task.manager().cloned())
            .or_default()
            .push(work);
    }
    groups.into_values().collect()
}

/// The reply in the one shape that Lambda takes for a partial failure.
fn batch_reply(unfinished: &[&Record]) -> Result<Value, Fault> {
    let mut response = SqsBatchResponse::default();
    let mut listed = BTreeSet::new();
    for record in unfinished {
        let Some(id) = &record.message_id else {
            // An empty identifier would fail the whole batch as well, and say nothing.
            return Err(Fault::incomplete(
                "batch",
                "a record without messageId is not finished: the whole batch comes again",
            ));
        };
        if !listed.insert(id) {
            continue;
        }
        let mut failure = BatchItemFailure::default();
        failure.item_identifier.clone_from(id);
        response.batch_item_failures.push(failure);
    }
    serde_json::to_value(response).map_err(|e| Fault::stop("batch", e.to_string()))
}
