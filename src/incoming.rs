//! What an invocation brings: a batch of SQS records, SNS messages, or one bare event.
//!
//! Like events, records are read by hand: a batch is never rejected for one odd field of one record.

use crate::{aws::Queue, config::Config, event::Place, pace, task::Delivery, world::Time};
use chrono::DateTime;
use serde_json::{Map, Value};

/// The payload of one invocation.
#[derive(Clone, Debug)]
pub enum Incoming {
    /// A batch from the event source mapping; what isn't done is listed in the reply.
    Batch(Vec<Record>),
    /// Messages from SNS, which invokes asynchronously: what isn't done must be an error or go to the work queue.
    Messages(Vec<String>),
    /// One event: EventBridge, a schedule, a person.
    Event(Value),
    /// Not JSON, or deeper nested than anything real.
    Unreadable(String),
}

/// One SQS record.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// `messageId`, to the letter; without one a failure can't be listed.
    pub message_id: Option<String>,
    /// `receiptHandle`: without one its visibility can't be changed.
    pub receipt_handle: Option<String>,
    /// `body`, unless it is missing or no string.
    pub body: Option<String>,
    /// The whole record, for the dead-letter queue where there is no body.
    pub raw: String,
    /// Of another service than SQS.
    pub service: Option<String>,
    /// `awsRegion`.
    region: Option<String>,
    /// The queue, from `eventSourceARN`.
    pub queue: Option<Queue>,
    receive_count: Option<u32>,
    sent: Option<Time>,
}

impl Incoming {
    /// Reads a payload; total.
    pub fn read(payload: &str) -> Self {
        let value: Value = match serde_json::from_str(payload) {
            Ok(value) => value,
            Err(error) => return Self::Unreadable(format!("not JSON: {error}")),
        };
        let Some(records) = value.get("Records") else {
            return Self::Event(value);
        };
        match records {
            Value::Array(records) => {
                let messages: Vec<String> = records.iter().filter_map(sns_message).collect();
                if !records.is_empty() && messages.len() == records.len() {
                    return Self::Messages(messages);
                }
                Self::Batch(records.iter().map(Record::read).collect())
            }
            Value::Null => Self::Batch(vec![]),
            _ => Self::Event(value),
        }
    }
}

/// The message of an SNS record; `messageId` tells a record of SQS that happens to carry the key.
fn sns_message(record: &Value) -> Option<String> {
    let record = record
        .as_object()
        .filter(|r| !r.contains_key("messageId"))?;
    match record.get("Sns")?.get("Message") {
        Some(Value::String(message)) => Some(message.clone()),
        other => Some(other.unwrap_or(&Value::Null).to_string()),
    }
}

impl Record {
    fn read(value: &Value) -> Self {
        let raw = value.to_string();
        let Value::Object(record) = value else {
            return Self {
                raw,
                ..Self::default()
            };
        };
        let attributes = record.get("attributes").and_then(Value::as_object);
        let attribute = |name: &str| attributes.and_then(|a| a.get(name)).and_then(number);
        let source = text(record, "eventSource").or_else(|| text(record, "EventSource"));
        Self {
            message_id: text(record, "messageId").filter(|id| !id.is_empty()),
            receipt_handle: text(record, "receiptHandle").filter(|h| !h.is_empty()),
            body: text(record, "body"),
            raw,
            service: source.filter(|s| s != "aws:sqs"),
            region: text(record, "awsRegion"),
            queue: text(record, "eventSourceARN").and_then(|arn| Queue::of_arn(&arn)),
            receive_count: attribute("ApproximateReceiveCount").and_then(|n| u32::try_from(n).ok()),
            sent: attribute("SentTimestamp").and_then(DateTime::from_timestamp_millis),
        }
    }

    /// Where the record says that it comes from.
    pub fn place(&self, here: &Place) -> Place {
        Place {
            region: self.region.clone().or_else(|| here.region.clone()),
            account: self
                .queue
                .as_ref()
                .map(|q| q.account.clone())
                .filter(|a| !a.is_empty()),
        }
    }

    /// How often and since when the task was asked for. What is absent or garbled counts as a first delivery.
    pub fn delivery(&self, event_time: Option<Time>, config: &Config, now: Time) -> Delivery {
        let count = self.receive_count.unwrap_or(1).max(1);
        let first_seen = [self.sent, event_time].into_iter().flatten().min();
        let first_seen = first_seen
            .unwrap_or_else(|| now - pace::elapsed_by(count))
            .min(now);
        Delivery {
            first_seen,
            count,
            max_count: config.max_receive_count,
        }
    }

    /// The message as it came, for the dead-letter queue.
    pub fn as_it_came(&self) -> &str {
        self.body
            .as_deref()
            .filter(|body| !body.is_empty())
            .unwrap_or(&self.raw)
    }
}

fn text(object: &Map<String, Value>, key: &str) -> Option<String> {
    object.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// SQS writes numbers as strings; a test tool may not.
fn number(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_str()?.trim().parse().ok())
}
