//! Whose events are ours, and that names and partitions pass through as they are.

use super::{Case, Reply, case, check};
use crate::fake_aws::*;

#[test]
fn lc_16_test_notifications_need_no_call() {
    for name in [
        "sqs-test-notification",
        "sqs-test-notification-transition",
        "sqs-test-notification-sns",
    ] {
        let story = check(Case {
            first: Reply::Ok,
            log: &[("INFO", "ignored: test notification")],
            no_log: &[("ERROR", ""), ("WARN", "")],
            ..case(name)
        });
        assert!(story.aws.all_calls().is_empty());
        assert_eq!(story.lines("INFO", "ignored"), 1);
    }
}

#[test]
fn lc_40_groups_hooks_and_places_that_are_not_ours() {
    for (name, why) in [
        (
            "sqs-other-group",
            "group web-frontend-asg is not managed here",
        ),
        ("sqs-other-hook", "hook another-teams-hook is not ours"),
        ("direct-other-account", "event of the region us-east-1"),
    ] {
        let story = check(Case {
            first: Reply::Ok,
            log: &[("INFO", &format!("ignored: {why}"))],
            no_log: &[("ERROR", "")],
            ..case(name)
        });
        assert!(story.aws.all_calls().is_empty(), "{name}");
    }
}

#[test]
fn lc_41_other_services_on_the_rule() {
    for name in [
        "sqs-rebalance-recommendation",
        "sqs-health-event",
        "direct-launch",
        "direct-launch-successful",
        "sqs-launch-hook",
        "s3-object-created",
    ] {
        let story = check(Case {
            first: Reply::Ok,
            log: &[("INFO", "ignored")],
            no_log: &[("ERROR", ""), ("WARN", "")],
            ..case(name)
        });
        assert!(story.aws.all_calls().is_empty(), "{name}");
    }
}

#[test]
fn lc_61_partitions_and_their_endpoints() {
    for (name, region, host) in [
        (
            "sqs-termination-govcloud",
            "us-gov-west-1",
            "us-gov-west-1.amazonaws.com",
        ),
        (
            "sqs-termination-china",
            "cn-north-1",
            "cn-north-1.amazonaws.com.cn",
        ),
    ] {
        let url = format!("https://sqs.{host}/123456789012/lifecycle-cleanup");
        let story = check(Case {
            world: &|w| {
                w.region = region.into();
                w.queues.clear();
                w.queues.insert(
                    url.clone(),
                    Queue {
                        url: url.clone(),
                        name: "lifecycle-cleanup".into(),
                        ..Queue::default()
                    },
                );
            },
            // The queue's address is asked for, never put together.
            config: &[("WORK_QUEUE_URL", ""), ("DEAD_LETTER_QUEUE_URL", "")],
            did: &[
                "SendCommand M1",
                "CompleteLifecycleAction M1",
                "TerminateInstances W1",
                "GetQueueUrl lifecycle-cleanup 123456789012",
            ],
            times: &[("GetQueueUrl", 1)],
            ..case(name)
        });
        assert!(
            story
                .aws
                .calls("ChangeMessageVisibility")
                .iter()
                .all(|c| c.took_effect())
        );
        for call in story.aws.all_calls() {
            assert!(
                call.request.host.ends_with(host),
                "{} went to {}",
                call.operation(),
                call.request.host
            );
        }
    }
}

#[test]
fn lc_62_names_with_odd_characters_pass_to_the_byte() {
    let names = [
        ("ci-läufer-日本-🚀", "hook-é"),
        ("team/ci:linux asg", "hook/with:colons and spaces"),
        ("-_.~!@#$%^&*()+={}[]|\\\"'<>?", "%2F&a=b"),
        ("\u{202e}gro\u{200f}up", "hook\u{7f}"),
    ];
    for (group, hook) in names {
        let story = check(Case {
            world: &|w| {
                w.groups.clear();
                w.put_group(group, hook);
                w.put_manager(group, M1, minutes(240));
                w.put_manager(group, M2, minutes(60));
                w.open_hook(group, hook, M1, TOKEN);
            },
            config: &[("AUTO_SCALING_GROUPS", group), ("LIFECYCLE_HOOKS", hook)],
            payload: renamed(group, hook),
            did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
            ..case("sqs-termination-unicode")
        });
        for call in story.aws.calls("CompleteLifecycleAction") {
            assert_eq!(
                (
                    call.request.text("AutoScalingGroupName"),
                    call.request.text("LifecycleHookName")
                ),
                (Some(group), Some(hook))
            );
        }
    }
}

fn renamed(group: &str, hook: &str) -> String {
    let mut payload: serde_json::Value =
        serde_json::from_str(&super::event("sqs-termination-unicode")).unwrap();
    let body = payload["Records"][0]["body"].as_str().unwrap();
    let mut body: serde_json::Value = serde_json::from_str(body).unwrap();
    body["AutoScalingGroupName"] = group.into();
    body["LifecycleHookName"] = hook.into();
    payload["Records"][0]["body"] = body.to_string().into();
    payload.to_string()
}
