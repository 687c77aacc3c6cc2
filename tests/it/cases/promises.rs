//! What holds for every case, and how its story is told when something doesn't.

use super::story::Story;
use crate::fake_aws::*;
use serde_json::json;
use std::collections::BTreeSet;

/// Promises that no case may break.
pub fn hold_always(story: &Story) {
    for line in &story.log {
        assert!(
            line.raw.len() < 2048,
            "a line of {} bytes: {}",
            line.raw.len(),
            line.raw
        );
        assert!(line.raw.is_ascii(), "not ASCII: {}", line.raw);
        assert!(
            !line.raw.contains(TOKEN),
            "the token in the log: {}",
            line.raw
        );
        assert!(
            !line.raw.ends_with("service error\""),
            "a line that says nothing: {}",
            line.raw
        );
    }
    let calls = story.aws.all_calls();
    let hook_calls = [
        "CompleteLifecycleAction",
        "RecordLifecycleActionHeartbeat",
        "SendCommand",
    ];
    let mut completed = BTreeSet::new();
    for call in &calls {
        let (operation, request) = (call.operation(), &call.request);
        let managers = request.ids();
        match operation {
            "CompleteLifecycleAction" => {
                assert_eq!(request.text("LifecycleActionResult"), Some("CONTINUE"));
                if call.took_effect() {
                    completed.extend(managers.clone());
                }
            }
            "RecordLifecycleActionHeartbeat" => assert!(
                managers.is_empty() || !managers.iter().all(|m| completed.contains(m)),
                "a heartbeat after the completion\n{}",
                told(story)
            ),
            "TerminateInstances" => {
                assert!(!managers.is_empty() && managers.len() <= 100, "{call}");
                assert!(
                    ![M1, M2].iter().any(|m| request.names(m)),
                    "a manager is terminated: {call}"
                );
            }
            _ => {}
        }
        assert!(
            !["*", "?", ""]
                .iter()
                .any(|odd| managers.iter().any(|id| id == odd)),
            "an odd id: {call}"
        );
        for (name, values) in request.filters() {
            assert!(
                values
                    .iter()
                    .all(|v| !v.is_empty() && !v.contains(['*', '?'])),
                "the filter {name} is too wide: {call}"
            );
        }
        // A plan is about the hook or about reaping, never both.
        if hook_calls.contains(&operation) {
            let deletes = |c: &&Call| {
                c.run == call.run
                    && [
                        "TerminateInstances",
                        "DeleteKeyPair",
                        "ReleaseAddress",
                        "CancelSpotInstanceRequests",
                    ]
                    .contains(&c.operation())
            };
            let with_hook = story
                .deliveries
                .get(call.run as usize - 1)
                .is_some_and(|d| d.ids.len() <= 1);
            if let Some(deletion) = calls
                .iter()
                .find(deletes)
                .filter(|_| with_hook && !is_sweep(story))
            {
                panic!("{call} and {deletion} in one pass\n{}", told(story));
            }
        }
    }
    assert!(
        story.given_up.is_empty(),
        "the queue gave up on {:?}\n{}",
        story.given_up,
        told(story)
    );
}

/// A sweep wakes waiting managers after it has reaped.
fn is_sweep(story: &Story) -> bool {
    story
        .log
        .iter()
        .any(|line| line.json["task"] == json!("Sweep"))
}

/// The story as a person reads it when a check fails.
pub fn told(story: &Story) -> String {
    let mut text = String::new();
    for (number, delivery) in story.deliveries.iter().enumerate() {
        text += &format!(
            "--- {} at {}: {:?}\n",
            number + 1,
            delivery.at,
            delivery.reply
        );
        let calls = story.aws.all_calls();
        for call in calls.iter().filter(|c| c.run as usize == number + 1) {
            text += &format!("    {call}\n")
                .chars()
                .take(300)
                .collect::<String>();
        }
    }
    for line in &story.log {
        text += &format!("{}\n", line.raw.chars().take(400).collect::<String>());
    }
    text
}
