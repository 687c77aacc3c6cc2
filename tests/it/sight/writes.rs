//! Each write has one line, and the line tells what became of it: the log against the fake AWS's own record of calls.

use super::capture::{Line, Scene, everything};
use crate::fake_aws::{Call, Outcome};
use std::collections::BTreeSet;

/// The words that say what became of a write, by operation and by whether AWS accepted it.
fn words(operation: &str, is_done: bool) -> &'static [&'static str] {
    match (operation, is_done) {
        (
            "TerminateInstances"
            | "CancelSpotInstanceRequests"
            | "DeleteKeyPair"
            | "ReleaseAddress",
            true,
        ) => &["deleted"],
        (
            "TerminateInstances"
            | "CancelSpotInstanceRequests"
            | "DeleteKeyPair"
            | "ReleaseAddress",
            false,
        ) => &["gone already", "EC2 refuses to delete it", "not deleted"],
        ("CreateTags" | "DeleteTags", true) => &["first look"],
        ("CreateTags" | "DeleteTags", false) => &["not marked"],
        ("RecordLifecycleActionHeartbeat", true) => &["heartbeat"],
        ("CompleteLifecycleAction", true) => &["hook completed with CONTINUE"],
        ("SendCommand", true) => &["drain command sent"],
        ("RecordLifecycleActionHeartbeat" | "CompleteLifecycleAction" | "SendCommand", false) => {
            &["not done: ", "no active lifecycle action"]
        }
        ("SendMessage", true) => &["on the dead-letter queue", "on the work queue"],
        ("SendMessage", false) => &["not on the dead-letter queue", "not on the work queue"],
        _ => &[],
    }
}

/// Which things a write is about, as the log calls them.
fn named(call: &Call) -> Vec<String> {
    let r = &call.request;
    let list = |name: &str| {
        (1..)
            .map_while(|n| r.text(&format!("{name}.{n}")).map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let one = |name: &str| {
        r.text(name)
            .map(str::to_owned)
            .into_iter()
            .collect::<Vec<_>>()
    };
    match call.operation() {
        "TerminateInstances" => list("InstanceId"),
        "CancelSpotInstanceRequests" => list("SpotInstanceRequestId"),
        "DeleteKeyPair" => [one("KeyName"), one("KeyPairId")].concat(),
        "ReleaseAddress" => one("AllocationId"),
        "CreateTags" | "DeleteTags" => list("ResourceId"),
        _ => vec![],
    }
}

#[test]
fn each_write_has_one_line_that_says_what_became_of_it() {
    let mut seen = BTreeSet::new();
    for scene in everything() {
        let mut said: Vec<&Line> = scene.log().collect();
        for call in scene.aws.all_calls() {
            let is_done = call.outcome == Outcome::Accepted;
            let words = words(call.operation(), is_done);
            // A retry is the SDK's; its last attempt is what the line tells.
            if words.is_empty() || call.request.text("DryRun").is_some() {
                continue;
            }
            let ids = named(&call);
            // A refused batch is split until each id has had its own call.
            if !is_done && ids.len() > 1 {
                continue;
            }
            for id in if ids.is_empty() {
                vec![String::new()]
            } else {
                ids
            } {
                let place = said.iter().position(|line| {
                    words.iter().any(|w| line.message().starts_with(w)) && line.raw.contains(&id)
                });
                let place = place.unwrap_or_else(|| {
                    panic!("{}: no line for {call} {id}\n{}", scene.name, told(&scene))
                });
                said.remove(place);
                seen.insert((call.operation().to_owned(), is_done));
            }
        }
        let writes: Vec<_> = said
            .iter()
            .filter(|l| {
                [
                    "deleted",
                    "heartbeat",
                    "hook completed",
                    "drain command sent",
                    "first look",
                ]
                .iter()
                .any(|w| l.message().starts_with(w))
            })
            .collect();
        assert!(
            writes.is_empty(),
            "{}: a line tells of a write that wasn't made: {writes:?}",
            scene.name
        );
    }
    for operation in [
        "TerminateInstances",
        "CancelSpotInstanceRequests",
        "DeleteKeyPair",
        "ReleaseAddress",
        "CreateTags",
        "RecordLifecycleActionHeartbeat",
        "CompleteLifecycleAction",
        "SendCommand",
        "SendMessage",
    ] {
        assert!(
            seen.contains(&(operation.to_owned(), true)),
            "no scene does {operation}"
        );
    }
}

fn told(scene: &Scene) -> String {
    let calls: Vec<_> = scene
        .aws
        .all_calls()
        .iter()
        .map(ToString::to_string)
        .collect();
    let lines: Vec<_> = scene
        .log()
        .map(|l| format!("{} {}", l.level(), l.message()))
        .collect();
    format!("{}\n---\n{}", calls.join("\n"), lines.join("\n"))
}
