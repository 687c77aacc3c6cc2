//! SQS: when a message comes again, and where an event goes that can't.

use super::Aws;
use crate::fault::Fault;
use aws_sdk_sqs::types::MessageAttributeValue;
use chrono::TimeDelta;

/// SQS's longest visibility timeout, counted from the receive.
const LONGEST_VISIBILITY_SECONDS: i64 = 43_200;
/// SQS's longest delay of a new message.
const LONGEST_MESSAGE_DELAY_SECONDS: i64 = 900;
/// An attribute counts towards the message's size.
const REASON_CHARS: usize = 500;
/// SQS's largest message, attributes included, and what ours take at most.
const LONGEST_MESSAGE_BYTES: usize = 1_048_576;
const ATTRIBUTE_BYTES: usize = 2 * (4 * REASON_CHARS + 50);

/// The queue that a record came from, as its ARN names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Name.
    pub name: String,
    /// The account that owns it.
    pub account: String,
}

impl Queue {
    /// From `arn:<partition>:sqs:<region>:<account>:<name>`; the partition is whatever it is.
    pub fn of_arn(arn: &str) -> Option<Self> {
        let mut fields = arn.splitn(6, ':');
        let (_, _, service, _) = (
            fields.next()?,
            fields.next()?,
            fields.next()?,
            fields.next()?,
        );
        let (account, name) = (fields.next()?, fields.next()?);
        (service == "sqs" && !name.is_empty()).then(|| Self {
            name: name.to_owned(),
            account: account.to_owned(),
        })
    }
}

/// What goes to the dead-letter queue.
#[derive(Clone, Debug)]
pub struct Undeliverable<'a> {
    /// The message as it came.
    pub body: &'a str,
    /// Why it can't be worked off.
    pub reason: &'a str,
    /// The id that it had.
    pub message_id: Option<&'a str>,
}

impl Aws {
    /// The URL of a queue; never put together by hand, because partitions have hosts of their own.
    pub async fn queue_url(&self, queue: &Queue) -> Result<String, Fault> {
        let mut call = self.sqs().get_queue_url().queue_name(&queue.name);
        if !queue.account.is_empty() {
            call = call.queue_owner_aws_account_id(&queue.account);
        }
        let answer = call.send().await.map_err(Fault::of("GetQueueUrl"))?;
        answer
            .queue_url
            .ok_or_else(|| Fault::incomplete("GetQueueUrl", "an answer without a URL"))
    }

    /// Lets a received message come again after `delay`.
    pub async fn come_again(
        &self,
        queue_url: &str,
        receipt_handle: &str,
        delay: TimeDelta,
    ) -> Result<(), Fault> {
        let seconds = delay.num_seconds().clamp(0, LONGEST_VISIBILITY_SECONDS);
        let call = self
            .sqs()
            .change_message_visibility()
            .queue_url(queue_url)
            .receipt_handle(receipt_handle);
        call.visibility_timeout(seconds as i32)
            .send()
            .await
            .map(drop)
            .map_err(Fault::of("ChangeMessageVisibility"))
    }

    /// Puts an event on the work queue.
    pub async fn enqueue(
        &self,
        queue_url: &str,
        body: &str,
        delay: TimeDelta,
    ) -> Result<(), Fault> {
        let seconds = delay.num_seconds().clamp(0, LONGEST_MESSAGE_DELAY_SECONDS);
        let call = self
            .sqs()
            .send_message()
            .queue_url(queue_url)
            .message_body(body)
            .delay_seconds(seconds as i32);
        call.send()
            .await
            .map(drop)
            .map_err(Fault::of("SendMessage"))
    }

    /// Puts a message on the dead-letter queue as it came, with the reason beside it where there is room.
    pub async fn bury(&self, queue_url: &str, dead: &Undeliverable<'_>) -> Result<(), Fault> {
        let call = self.sqs().send_message().queue_url(queue_url);
        let mut call = call.message_body(sendable(dead.body));
        if dead.body.len() + ATTRIBUTE_BYTES <= LONGEST_MESSAGE_BYTES {
            call = call.message_attributes("Reason", text(dead.reason)?);
            if let Some(id) = dead.message_id.filter(|id| !id.is_empty()) {
                call = call.message_attributes("OriginalMessageId", text(id)?);
            }
        }
        call.send()
            .await
            .map(drop)
            .map_err(Fault::of("SendMessage"))
    }
}

/// A string attribute: not empty, and without the control characters that SQS refuses.
fn text(value: &str) -> Result<MessageAttributeValue, Fault> {
    let value: String = value
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(REASON_CHARS)
        .collect();
    MessageAttributeValue::builder()
        .data_type("String")
        .string_value(if value.is_empty() { "-".into() } else { value })
        .build()
        .map_err(|e| Fault::stop("SendMessage", e.to_string()))
}

/// A body that SQS takes: what a record brought is one already, what came by another way may hold characters that no
/// message can.
fn sendable(body: &str) -> String {
    let is_sendable =
        |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\u{7f}'..='\u{9f}');
    body.chars()
        .map(|c| {
            if is_sendable(c) && !matches!(c, '\u{fffe}' | '\u{ffff}') {
                c
            } else {
                char::REPLACEMENT_CHARACTER
            }
        })
        .collect()
}
