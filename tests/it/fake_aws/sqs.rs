//! SQS as the function uses it: send, change visibility, look up a queue.

use super::wire::{Answer, Body, Refusal, Request, refuse};
use super::world::{Queue, SentMessage, World};
use serde_json::{Value, json};

fn find_queue<'a>(world: &'a mut World, request: &Request) -> Result<&'a mut Queue, Refusal> {
    let url = request.text("QueueUrl").unwrap_or_default();
    match world.queues.get_mut(url) {
        Some(queue) => Ok(queue),
        None => refuse("QueueDoesNotExist", "The specified queue does not exist."),
    }
}

pub fn send_message(world: &mut World, request: &Request) -> Answer {
    let now = world.now();
    let body = request.text("MessageBody").unwrap_or_default().to_owned();
    let delay_seconds = request.number("DelaySeconds").unwrap_or(0);
    if body.is_empty() {
        return refuse(
            "MissingParameter",
            "The request must contain the parameter MessageBody.",
        );
    }
    if let Some(bad) = body.chars().find(|letter| !allowed(*letter)) {
        return refuse(
            "InvalidMessageContents",
            format!("Invalid character {:#x}", bad as u32),
        );
    }
    if !(0..=900).contains(&delay_seconds) {
        return refuse(
            "InvalidParameterValue",
            format!("Value {delay_seconds} for parameter DelaySeconds is invalid."),
        );
    }
    let attributes = request
        .json
        .get("MessageAttributes")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    if attributes.len() > 10
        || attributes
            .values()
            .any(|attribute| attribute["StringValue"].as_str().is_none_or(str::is_empty))
    {
        return refuse(
            "InvalidParameterValue",
            "At most 10 message attributes, none of them empty",
        );
    }
    let attributes: std::collections::BTreeMap<String, String> = attributes
        .into_iter()
        .map(|(name, attribute)| {
            (
                name,
                attribute["StringValue"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            )
        })
        .collect();
    let size = body.len()
        + attributes
            .iter()
            .map(|(name, value)| name.len() + value.len() + "String".len())
            .sum::<usize>();
    if size > 1_048_576 {
        return refuse(
            "InvalidParameterValue",
            "One or more parameters are invalid. Reason: Message must be shorter than 1048576 bytes.",
        );
    }
    let id = format!("{:08x}-0000-4000-8000-00000000a5a5", world.next_serial());
    let message = SentMessage {
        id: id.clone(),
        body,
        attributes,
        delay_seconds,
        sent: now,
    };
    find_queue(world, request)?.sent.push(message);
    Ok(Body::Json(json!({"MessageId": id})))
}

/// The characters that SQS takes.
fn allowed(letter: char) -> bool {
    matches!(letter, '\u{9}' | '\u{a}' | '\u{d}' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

pub fn change_message_visibility(world: &mut World, request: &Request) -> Answer {
    let now = world.now();
    let seconds = request.number("VisibilityTimeout").unwrap_or(-1);
    if !(0..=43_200).contains(&seconds) {
        return refuse(
            "InvalidParameterValue",
            format!("Value {seconds} for parameter VisibilityTimeout is invalid."),
        );
    }
    let queue = find_queue(world, request)?;
    let receipt = request.text("ReceiptHandle").unwrap_or_default();
    if receipt.is_empty() || queue.expired_receipts.contains(receipt) {
        return refuse(
            "ReceiptHandleIsInvalid",
            "The input receipt handle is invalid.",
        );
    }
    queue.visibility.insert(receipt.to_owned(), (seconds, now));
    Ok(Body::Json(json!({})))
}

pub fn get_queue_attributes(world: &mut World, request: &Request) -> Answer {
    Ok(Body::Json(
        json!({"Attributes": find_queue(world, request)?.attributes}),
    ))
}

pub fn get_queue_url(world: &mut World, request: &Request) -> Answer {
    let name = request.text("QueueName").unwrap_or_default();
    match world.queues.values().find(|queue| queue.name == name) {
        Some(queue) => Ok(Body::Json(json!({"QueueUrl": queue.url}))),
        None => refuse("QueueDoesNotExist", "The specified queue does not exist."),
    }
}
