//! A story: one payload, and every delivery that follows from it, as Lambda and SQS would make them.

use crate::fake_aws::*;
use chrono::{DateTime, TimeDelta, Utc};
use lifecycle_reaper::{fault::Fault as Failure, handler::Handler, log};
use serde_json::{Value, json};
use std::{
    io::Write,
    sync::{Arc, Mutex, Once},
};

/// A payload of `events/`.
pub fn event(name: &str) -> String {
    let path = format!("{}/events/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A batch with the hook's message for each of these managers.
pub fn termination_of(managers: &[&str]) -> String {
    let model: Value = serde_json::from_str(&event("sqs-termination-hook")).expect("JSON");
    let records: Vec<Value> = managers
        .iter()
        .enumerate()
        .map(|(number, manager)| {
            let mut record = model["Records"][0].clone();
            record["messageId"] = json!(format!("d0000000-0000-4000-8000-{number:012}"));
            record["receiptHandle"] = json!(format!("AQEBof{manager}"));
            record["body"] = json!(
                record["body"]
                    .as_str()
                    .expect("a body")
                    .replace(M1, manager)
            );
            record
        })
        .collect();
    json!({ "Records": records }).to_string()
}

/// One invocation and what it answered.
pub struct Delivery {
    pub at: DateTime<Utc>,
    /// The ids of its records; empty for a direct invocation.
    pub ids: Vec<String>,
    pub reply: Result<Value, Failure>,
    /// How long it ran.
    pub took: TimeDelta,
}

/// One line of the log.
#[derive(Clone, Debug)]
pub struct LogLine {
    pub raw: String,
    pub json: Value,
}

impl LogLine {
    pub fn level(&self) -> &str {
        self.json["level"].as_str().unwrap_or_default()
    }
}

/// What happened.
pub struct Story {
    pub aws: FakeAws,
    pub deliveries: Vec<Delivery>,
    pub log: Vec<LogLine>,
    /// Messages that the work queue gave up on.
    pub given_up: Vec<String>,
}

/// How a story is played.
pub struct Play<'a> {
    /// Seconds that each invocation has.
    pub seconds: i64,
    /// Called before each delivery, with its number from 1.
    pub before: &'a dyn Fn(&FakeAws, usize),
    /// The story is cut after so many deliveries.
    pub most: usize,
}

/// A queue's own visibility timeout: six times the function's longest run.
const VISIBILITY: TimeDelta = TimeDelta::seconds(1800);

/// A message that is on the work queue.
struct Message {
    record: Value,
    visible: DateTime<Utc>,
    receives: u32,
}

/// Plays a payload to its end.
pub fn play(aws: FakeAws, payload: &str, how: &Play<'_>) -> Story {
    let lines = Lines::default();
    let mut story = Story {
        aws,
        deliveries: vec![],
        log: vec![],
        given_up: vec![],
    };
    tracing::subscriber::with_default(log::subscriber("debug", lines.clone()), || {
        let handler = story.aws.handler();
        let records = records_of(payload);
        let mut queue = vec![];
        if records.is_empty() {
            invoke_directly(&mut story, &handler, payload, how, &mut queue);
        } else {
            let now = story.aws.now();
            let messages = records.into_iter().map(|record| Message {
                receives: receives(&record),
                record,
                visible: now,
            });
            queue = deliver(&mut story, &handler, messages.collect(), how);
        }
        while !queue.is_empty() && story.deliveries.len() < how.most {
            let next = queue.iter().map(|m| m.visible).min().expect("not empty");
            story
                .aws
                .advance((next - story.aws.now()).max(TimeDelta::zero()));
            let (due, later): (Vec<_>, Vec<_>) = queue.into_iter().partition(|m| m.visible <= next);
            queue = later;
            queue.extend(deliver(&mut story, &handler, due, how));
        }
    });
    story.log = lines.read();
    story
}

/// SQS's records; none for anything else.
fn records_of(payload: &str) -> Vec<Value> {
    let value: Value = serde_json::from_str(payload).unwrap_or_default();
    let records = value["Records"].as_array().cloned().unwrap_or_default();
    if records.iter().any(|r| r.get("receiptHandle").is_some()) {
        records
    } else {
        vec![]
    }
}

fn receives(record: &Value) -> u32 {
    let count = record["attributes"]["ApproximateReceiveCount"]
        .as_str()
        .and_then(|n| n.parse().ok());
    count.unwrap_or(1).max(1) - 1
}

/// One batch; returns the messages that stay on the queue.
fn deliver(
    story: &mut Story,
    handler: &Handler,
    mut messages: Vec<Message>,
    how: &Play<'_>,
) -> Vec<Message> {
    let allowed = story
        .aws
        .variables
        .lock()
        .expect("unpoisoned")
        .get("MAX_RECEIVE_COUNT")
        .and_then(|n| n.parse().ok());
    for message in &mut messages {
        message.receives += 1;
        if let Some(attributes) = message.record["attributes"].as_object_mut()
            && message.receives > 1
        {
            attributes.insert(
                "ApproximateReceiveCount".into(),
                json!(message.receives.to_string()),
            );
        }
    }
    let (given_up, messages): (Vec<_>, Vec<_>) = messages
        .into_iter()
        .partition(|m| allowed.is_some_and(|max: u32| m.receives > max));
    story
        .given_up
        .extend(given_up.iter().map(|m| m.record["body"].to_string()));
    if messages.is_empty() {
        return vec![];
    }
    let payload =
        json!({ "Records": messages.iter().map(|m| &m.record).collect::<Vec<_>>() }).to_string();
    let ids = messages
        .iter()
        .map(|m| {
            m.record["messageId"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    let reply = invoke(story, handler, &payload, how, ids);
    let failed: Option<Vec<String>> = reply.ok().map(|reply| {
        let failures = reply["batchItemFailures"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        failures
            .iter()
            .map(|f| f["itemIdentifier"].as_str().unwrap_or_default().to_owned())
            .collect()
    });
    let stays = |m: &Message| {
        failed
            .as_ref()
            .is_none_or(|ids| ids.iter().any(|id| m.record["messageId"] == json!(id)))
    };
    let world = story.aws.world();
    let now = world.now();
    let visible = |m: &Message| {
        let receipt = m.record["receiptHandle"].as_str().unwrap_or_default();
        let set = world
            .queues
            .values()
            .find_map(|q| q.visibility.get(receipt).copied());
        set.map_or(now + VISIBILITY, |(seconds, at)| {
            (at + TimeDelta::seconds(seconds)).max(now)
        })
    };
    messages
        .into_iter()
        .filter(stays)
        .map(|m| Message {
            visible: visible(&m),
            ..m
        })
        .collect()
}

/// An asynchronous invocation: Lambda tries an error twice more, a minute and two minutes later.
fn invoke_directly(
    story: &mut Story,
    handler: &Handler,
    payload: &str,
    how: &Play<'_>,
    queue: &mut Vec<Message>,
) {
    for pause in [1, 2, 0] {
        if invoke(story, handler, payload, how, vec![]).is_ok() {
            break;
        }
        story.aws.advance(minutes(pause));
    }
    let world = story.aws.world();
    let sent = world
        .queues
        .get(WORK_QUEUE)
        .map(|q| q.sent.clone())
        .unwrap_or_default();
    queue.extend(sent.into_iter().map(|message| Message {
        record: json!({
            "messageId": message.id,
            "receiptHandle": format!("AQEBof{}", message.id),
            "body": message.body,
            "attributes": { "ApproximateReceiveCount": "1", "SentTimestamp": message.sent.timestamp_millis().to_string() },
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:lifecycle-cleanup",
            "awsRegion": "eu-west-1",
        }),
        visible: message.sent + TimeDelta::seconds(message.delay_seconds),
        receives: 0,
    }));
}

fn invoke(
    story: &mut Story,
    handler: &Handler,
    payload: &str,
    how: &Play<'_>,
    ids: Vec<String>,
) -> Result<Value, Failure> {
    let number = story.deliveries.len() + 1;
    (how.before)(&story.aws, number);
    story.aws.world().run = number as u64;
    let at = story.aws.now();
    let reply = story.aws.run_on(handler, payload, how.seconds);
    let took = story.aws.now() - at;
    story.deliveries.push(Delivery {
        at,
        ids,
        reply: reply.clone(),
        took,
    });
    reply
}

/// What the subscriber wrote.
#[derive(Clone)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

impl Default for Lines {
    /// Beside a subscriber of one thread there must be one for all: where a line's place in the code is first reached on
    /// a thread without any, tracing takes it for unwanted on every thread.
    fn default() -> Self {
        static EVERYWHERE: Once = Once::new();
        EVERYWHERE.call_once(|| {
            let silent = log::subscriber("off", std::io::sink);
            tracing::subscriber::set_global_default(silent).expect("the only one");
        });
        Self(Arc::default())
    }
}

impl Lines {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("unpoisoned").clone()).expect("the log is UTF-8")
    }

    pub fn read(&self) -> Vec<LogLine> {
        let parse = |raw: &str| LogLine {
            raw: raw.to_owned(),
            json: serde_json::from_str(raw).unwrap_or_else(|e| panic!("{e} in {raw}")),
        };
        self.text().lines().map(parse).collect()
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("unpoisoned").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'w> tracing_subscriber::fmt::MakeWriter<'w> for Lines {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}
