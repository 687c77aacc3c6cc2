//! The handler: an invocation in, acknowledgements out.
//!
//! No message is lost: it is acknowledged only when its task is done, it is irrelevant, or it lies in the dead-letter
//! queue. One record's failure, panic or slowness never touches another record of the batch.

use crate::{
    aws::{Aws, Undeliverable},
    config::{Config, Mode},
    event::{self, Event, Place},
    fault::Fault,
    incoming::{Incoming, Record},
    metrics, pace,
    reconcile::{self, Outcome, Report},
    reply,
    task::{Delivery, Task},
    world::Time,
};
use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse};
use chrono::TimeDelta;
use futures_util::{
    FutureExt,
    future::{join, join_all},
    stream::{self, StreamExt},
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::{Mutex, PoisonError},
    time::Duration,
};
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

/// Records worked off at once: a whole batch as the event source mapping sends it by default.
const AT_ONCE: usize = 10;
/// Kept back at the end, to say what was not done; a quarter of the time where that is less.
const RESERVE: TimeDelta = TimeDelta::seconds(5);
/// With less time left nothing is begun.
const SHORTEST_PASS: TimeDelta = TimeDelta::seconds(5);
/// A record that could not be begun comes again soon.
const NOT_BEGUN_DELAY: TimeDelta = TimeDelta::seconds(5);
/// A pass that is killed comes again so long after the function's end.
const AFTER_A_KILL: TimeDelta = TimeDelta::seconds(15);

/// The function, between its invocations.
#[derive(Debug)]
pub struct Handler {
    config: Config,
    aws: Aws,
    queue_urls: Mutex<BTreeMap<String, String>>,
}

/// Identical tasks of one batch: one pass for all their records.
struct Work<'a> {
    task: Task,
    delivery: Delivery,
    records: Vec<&'a Record>,
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

    // ---- a batch of records ----

    async fn batch(&self, records: &[Record], here: &Place, clock: &Clock) -> Result<Value, Fault> {
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
            let is_buried = self
                .bury(record.as_it_came(), &reason, record.message_id.as_deref())
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
                self.delay(&work.records, NOT_BEGUN_DELAY).await;
                return work.records.clone();
            };
            let claim = async {
                if self.config.mode == Mode::Enforce {
                    self.delay(&work.records, clock.left(self.aws.now()) + AFTER_A_KILL)
                        .await;
                }
            };
            // Side by side, because a queue that hangs must not cost the pass its time.
            let (_, report) = join(
                claim,
                self.pass(&work.task, &work.delivery, budget, &clock.function_name),
            )
            .await;
            self.settle(work, report).await
        }
        .instrument(span)
        .await
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
        let report = match self.aws.within(budget, "pass", pass).await {
            Ok(Ok(report)) => report,
            Ok(Err(panic)) => return Err(panicked(&*panic)),
            Err(fault) => {
                tracing::error!(%fault, "out of time: the pass was cut off and comes again");
                return Err(fault);
            }
        };
        let (cost, now) = (self.aws.take_cost(), self.aws.now());
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

    /// Acknowledges, delays or buries the records of a task, as its outcome says.
    async fn settle<'a>(&self, work: &Work<'a>, report: Result<Report, Fault>) -> Vec<&'a Record> {
        let is_wake = matches!(work.task, Task::Wake { .. });
        let outcome = match report {
            Ok(report) => report.outcome,
            Err(_) if is_wake => Outcome::Done,
            Err(_) => Outcome::Again(pace::backoff(&work.task, &work.delivery)),
        };
        match outcome {
            Outcome::Done => vec![],
            Outcome::Again(after) => {
                self.delay(&work.records, after).await;
                work.records.clone()
            }
            // The next sweep and the next wake ask again by themselves: their messages would only fill the queue.
            Outcome::Failed(_) if is_wake || work.task.manager().is_none() => vec![],
            Outcome::Failed(fault) => {
                let reason = fault.to_string();
                let mut unburied = vec![];
                for record in &work.records {
                    if !self
                        .bury(record.as_it_came(), &reason, record.message_id.as_deref())
                        .await
                    {
                        unburied.push(*record);
                    }
                }
                self.delay(&unburied, pace::backoff(&work.task, &work.delivery))
                    .await;
                unburied
            }
        }
    }

    /// Sets when records come again. What can't be set leaves the queue's own visibility timeout.
    async fn delay(&self, records: &[&Record], delay: TimeDelta) {
        join_all(records.iter().map(|record| async move {
            let Some(receipt_handle) = &record.receipt_handle else { return };
            let result = match self.queue_url(record).await {
                Ok(url) => self.aws.come_again(&url, receipt_handle, delay).await,
                Err(fault) => Err(fault),
            };
            if let Err(fault) = result {
                tracing::warn!(message_id = record.message_id, aws_code = fault.code, %fault, "its visibility could not be changed");
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

    /// Says that a message is unreadable, with as much of it as helps: never the whole body.
    fn unreadable(&self, message_id: Option<&str>, body: &str, reason: &str, clock: &Clock) {
        let begins: String = body
            .chars()
            .take(200)
            .flat_map(char::escape_debug)
            .collect();
        tracing::error!(
            message_id,
            body_bytes = body.len(),
            begins,
            outcome = "Unreadable",
            "unreadable: {reason}"
        );
        metrics::emit(&[metrics::unreadable(&clock.function_name, self.aws.now())]);
    }

    /// Puts a message on the dead-letter queue; `false` = it is not there, and must stay where it is.
    async fn bury(&self, body: &str, reason: &str, message_id: Option<&str>) -> bool {
        let Some(url) = &self.config.dead_letter_queue_url else {
            return false;
        };
        match self
            .aws
            .bury(
                url,
                &Undeliverable {
                    body,
                    reason,
                    message_id,
                },
            )
            .await
        {
            Ok(()) => true,
            Err(fault) => {
                tracing::error!(message_id, aws_code = fault.code, %fault, "not on the dead-letter queue: it stays where it is");
                false
            }
        }
    }

    // ---- one event, invoked directly ----

    async fn direct(&self, event: Event, payload: &str, clock: &Clock) -> Result<Value, Fault> {
        let (task, time) = match event {
            Event::Ignored(reason) => {
                tracing::info!(outcome = "Ignored", "ignored: {reason}");
                return Ok(reply::without_task("Ignored", &reason));
            }
            Event::Unreadable(reason) => {
                self.unreadable(None, payload, &reason, clock);
                let is_safe = self.bury(payload, &reason, None).await;
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
            self.settle_direct(&task, &delivery, report, payload).await
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
            Outcome::Again(after) => self.enqueue(payload, *after).await,
            Outcome::Failed(_) if is_wake || task.manager().is_none() => true,
            Outcome::Failed(_) => self.bury(payload, &reason, None).await,
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
            Ok(report) => reply::summary(task, &report, self.aws.now()),
            Err(_) => reply::without_task(outcome.word(), &reason),
        })
    }

    /// Puts an unfinished event on the work queue, once; from there it comes as a record.
    async fn enqueue(&self, payload: &str, delay: TimeDelta) -> bool {
        let Some(url) = &self.config.work_queue_url else {
            return false;
        };
        match self.aws.enqueue(url, payload, delay).await {
            Ok(()) => true,
            Err(fault) => {
                tracing::error!(aws_code = fault.code, %fault, "not on the work queue");
                false
            }
        }
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
    for record in unfinished {
        let Some(id) = &record.message_id else {
            // An empty identifier would fail the whole batch as well, and say nothing.
            return Err(Fault::incomplete(
                "batch",
                "a record without messageId is not finished: the whole batch comes again",
            ));
        };
        let mut failure = BatchItemFailure::default();
        failure.item_identifier.clone_from(id);
        response.batch_item_failures.push(failure);
    }
    serde_json::to_value(response).map_err(|e| Fault::stop("batch", e.to_string()))
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
    tracing::error!(%fault, "panic: the record comes again");
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
