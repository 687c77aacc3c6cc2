//! Any input up to a mebibyte, through the whole function with the fake AWS behind it: no panic, no hang, no unbounded
//! memory, and nothing deleted of a manager that lives.
//!
//! Each input is tried as a payload, as the body of a record and as the message of a topic, so that the fuzzer reaches
//! the inner parser without having to write JSON inside JSON.

#![no_main]

#[path = "../it/fake_aws/mod.rs"]
mod fake_aws;

use fake_aws::*;
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    survives(text);
    let record = json!({
        "messageId": "00000000-0000-4000-8000-000000000001",
        "receiptHandle": "AQEBinvented",
        "body": text,
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:lifecycle-cleanup",
        "awsRegion": "eu-west-1",
    });
    survives(&json!({ "Records": [record] }).to_string());
    survives(&json!({ "Records": [{ "Sns": { "Message": text } }] }).to_string());
});

/// The function catches a panic and says so; the fuzzer's own hook ends the process before it can.
fn survives(payload: &str) {
    let aws = FakeAws::cases();
    // `run` panics when the function doesn't stop in time.
    let reply = aws.run(payload);
    for id in [M2, W3] {
        assert!(!aws.touched(id, "TerminateInstances"), "{id} is deleted");
    }
    let answer = reply.map_or_else(|fault| fault.to_string(), |reply| reply.to_string());
    assert!(!answer.contains("panic:"), "{answer}");
    assert!(
        answer.len() < 100_000,
        "an answer of {} bytes",
        answer.len()
    );
}
