//! The hook: when it is completed, when it is held, and when there is none any more.

use super::{Case, Reply, case, check};
use crate::fake_aws::*;
use chrono::TimeDelta;

const NO_ACTION: &str = "No active Lifecycle Action found with instance ID i-0a11aa11aa11aa110";

fn no_active_action() -> Fault {
    Fault::CodeAndMessage("ValidationError", NO_ACTION.into())
}

#[test]
fn lc_03_manager_is_dead_already() {
    type Ending = fn(&mut World);
    let endings: [(&str, Ending); 4] = [
        ("shutting-down", |w| w.end_instance(M1, w.now())),
        ("terminated", |w| {
            w.end_instance(M1, w.now() - minutes(5));
            w.settle();
        }),
        ("absent", |w| drop(w.ec2.instances.remove(M1))),
        // Stopped runs no jobs; that it could be started again is why nothing is reaped before the group ends it.
        ("stopped", |w| w.instance_mut(M1).state = InstanceState::Stopped),
    ];
    for (state, ending) in endings {
        check(Case {
            world: &ending,
            did: &["CompleteLifecycleAction M1", "TerminateInstances W1", "TerminateInstances W2"],
            never: &["SendCommand"],
            times: &[("CompleteLifecycleAction", 1)],
            in_order: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
            log: &[("INFO", &format!("release: manager is {state}: nothing is left to drain"))],
            ..case("sqs-termination-hook")
        });
    }
}

/// "No active Lifecycle Action" is never decided upon; the next look tells.
#[test]
fn lc_04_no_active_action_because_it_is_over() {
    check(Case {
        faults: vec![no_active_action().on("CompleteLifecycleAction")],
        // Somebody else completed it between our look and our call.
        before: &|aws, _| {
            let mut world = aws.world();
            let completed = world.calls.iter().any(|c| c.operation() == "CompleteLifecycleAction");
            if completed && world.groups[GROUP].open_action(HOOK, M1).is_some() {
                let now = world.now();
                let group = world.groups.get_mut(GROUP).unwrap();
                group.actions[0].closed = Some(Closed { at: now, how: Closing::Completed("CONTINUE".into()) });
                group.proceed_if_free(M1, now - seconds(10));
            }
        },
        did: &["TerminateInstances W1", "TerminateInstances W2"],
        times: &[("CompleteLifecycleAction", 1)],
        log: &[("WARN", "no active lifecycle action: looking again")],
        ..case("sqs-termination-hook")
    });
}

#[test]
fn lc_04_no_active_action_because_it_is_not_visible_yet() {
    check(Case {
        faults: vec![no_active_action().on("CompleteLifecycleAction").times(2)],
        did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
        times: &[("CompleteLifecycleAction", 3)],
        log: &[("WARN", "no active lifecycle action: looking again")],
        ..case("sqs-termination-hook")
    });
}

/// Another team's hook holds the instance after ours is over: ours is not completed in its place, and nothing is reaped.
#[test]
fn lc_04_another_hook_holds_the_instance() {
    let story = check(Case {
        world: &|w| {
            let other = LifecycleHook { name: "another-teams-hook".into(), ..w.groups[GROUP].hooks[HOOK].clone() };
            w.groups.get_mut(GROUP).unwrap().hooks.insert(other.name.clone(), other);
            w.open_hook(GROUP, "another-teams-hook", M1, "another-token");
        },
        before: &|aws, number| {
            if number == 6 {
                let mut world = aws.world();
                assert!(world.instance(W1).state == InstanceState::Running);
                let now = world.now();
                let group = world.groups.get_mut(GROUP).unwrap();
                group.actions[1].closed = Some(Closed { at: now, how: Closing::Completed("CONTINUE".into()) });
                group.proceed_if_free(M1, now);
            }
        },
        did: &["CompleteLifecycleAction ci-linux-terminate M1", "TerminateInstances W1"],
        never: &["CompleteLifecycleAction another-teams-hook", "RecordLifecycleActionHeartbeat another-teams-hook"],
        log: &[("WARN", "no active lifecycle action: looking again")],
        ..case("sqs-termination-hook")
    });
    // The looks at "no active action" lie at least a minute apart.
    let looks: Vec<_> = story.aws.calls("CompleteLifecycleAction").iter().filter(|c| !c.took_effect()).map(|c| c.at).collect();
    assert!(looks.windows(2).all(|pair| pair[1] - pair[0] >= seconds(60)), "{looks:?}");
}

#[test]
fn lc_16_test_notifications_need_no_call() {
    for name in ["sqs-test-notification", "sqs-test-notification-transition", "sqs-test-notification-sns"] {
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
fn lc_17_terminate_unsuccessful_of_a_living_manager() {
    for state in ["InService", "Terminating:Wait", "Standby"] {
        check(Case {
            world: &|w| w.groups.get_mut(GROUP).unwrap().members.get_mut(M1).unwrap().state = state.into(),
            first: Reply::Outcome("Done"),
            last: Reply::Outcome("Done"),
            never: &["TerminateInstances", "DeleteKeyPair", "CompleteLifecycleAction", "RecordLifecycleActionHeartbeat", "SendCommand"],
            log: &[("WARN", "manager alive M1")],
            ..case("direct-terminate-unsuccessful")
        });
    }
}

#[test]
fn lc_17_terminate_unsuccessful_of_a_dead_manager() {
    check(Case {
        world: &gone,
        first: Reply::Outcome("Again"),
        did: &["TerminateInstances W1", "TerminateInstances W2"],
        never: &["CompleteLifecycleAction", "RecordLifecycleActionHeartbeat", "SendCommand"],
        ..case("direct-terminate-unsuccessful")
    });
}

/// The manager left its group and shuts down.
fn gone(w: &mut World) {
    w.end_instance(M1, w.now());
    let group = w.groups.get_mut(GROUP).unwrap();
    group.members.remove(M1);
    group.actions.clear();
}

#[test]
fn lc_24_a_chain_that_outlived_its_hook() {
    for name in ["sqs-termination-stale", "sqs-termination-foreign-retry-fields"] {
        check(Case {
            world: &gone,
            did: &["TerminateInstances W1", "TerminateInstances W2"],
            never: &["SendCommand", "RecordLifecycleActionHeartbeat", "CompleteLifecycleAction"],
            ..case(name)
        });
    }
}

/// A message that claims to be older than any hook can wait, and a hook that waits: the hook is released all the same.
#[test]
fn lc_24_a_hook_that_waits_is_released_however_old_the_message_says_it_is() {
    check(Case {
        did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
        never: &["SendCommand"],
        log: &[("WARN", "released undrained")],
        ..case("sqs-termination-stale")
    });
}

#[test]
fn lc_24_our_own_limit_ends_before_the_hooks() {
    let story = check(Case {
        world: &|w| w.ssm.usual_fate = Some(Fate::never_ends()),
        config: &[("DRAIN_TIMEOUT_SECONDS", "900")],
        did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
        log: &[("WARN", "released undrained: deadline DRAIN_TIMEOUT_SECONDS")],
        ..case("sqs-termination-hook")
    });
    let completed = story.aws.calls("CompleteLifecycleAction")[0].at;
    let deadline = start() - seconds(1) + seconds(900 - 60);
    assert!((completed - deadline).abs() <= seconds(2), "completed at {completed}, the deadline was {deadline}");
}

#[test]
fn lc_25_heartbeats_are_never_late_and_never_for_ever() {
    for (timeout, fault) in [(600, None), (600, Some(Fault::Throttled)), (30, None), (7200, Some(Fault::ServerError))] {
        let story = check(Case {
            world: &|w| {
                w.groups.get_mut(GROUP).unwrap().hooks.get_mut(HOOK).unwrap().heartbeat_timeout = seconds(timeout);
                w.ssm.usual_fate = Some(Fate::says("stopped").after(minutes(25)));
            },
            faults: fault.map(|f| f.on("RecordLifecycleActionHeartbeat").nth(3)).into_iter().collect(),
            did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
            times: &[("SendCommand", 1)],
            cut_after: Some(400),
            end: &|w| assert!(matches!(&w.groups[GROUP].actions[0].closed, Some(Closed { how: Closing::Completed(result), .. }) if result == "CONTINUE")),
            ..case("sqs-termination-hook")
        });
        let beats: Vec<_> = story.aws.calls("RecordLifecycleActionHeartbeat").iter().filter(|c| c.took_effect()).map(|c| c.at).collect();
        let late = beats.windows(2).find(|pair| pair[1] - pair[0] >= seconds(timeout));
        assert!(beats.len() >= 2 && late.is_none(), "heartbeat timeout {timeout}: {late:?}");
        assert!(story.deliveries.len() < 400);
    }
}

#[test]
fn lc_25_a_heartbeat_that_fails_does_not_fail_the_drain() {
    for fault in [Fault::Denied, Fault::ServerError, Fault::Throttled] {
        check(Case {
            faults: vec![fault.on("RecordLifecycleActionHeartbeat")],
            did: &["SendCommand M1", "CompleteLifecycleAction M1", "TerminateInstances W1"],
            times: &[("SendCommand", 1)],
            log: &[("ERROR", "not done: heartbeat")],
            ..case("sqs-termination-hook")
        });
    }
}

#[test]
fn lc_40_groups_hooks_and_places_that_are_not_ours() {
    for (name, why) in [
        ("sqs-other-group", "group web-frontend-asg is not managed here"),
        ("sqs-other-hook", "hook another-teams-hook is not ours"),
        ("direct-other-account", "event of the region us-east-1"),
    ] {
        let story = check(Case { first: Reply::Ok, log: &[("INFO", &format!("ignored: {why}"))], no_log: &[("ERROR", "")], ..case(name) });
        assert!(story.aws.all_calls().is_empty(), "{name}");
    }
}

#[test]
fn lc_41_other_services_on_the_rule() {
    for name in ["sqs-rebalance-recommendation", "sqs-health-event", "direct-launch", "direct-launch-successful", "sqs-launch-hook", "s3-object-created"] {
        let story = check(Case { first: Reply::Ok, log: &[("INFO", "ignored")], no_log: &[("ERROR", ""), ("WARN", "")], ..case(name) });
        assert!(story.aws.all_calls().is_empty(), "{name}");
    }
}

#[test]
fn lc_58_the_last_deliveries_settle_it() {
    for name in ["sqs-termination-ninth-delivery"] {
        check(Case {
            world: &|w| w.ssm.usual_fate = Some(Fate::says("busy")),
            config: &[("MAX_RECEIVE_COUNT", "11")],
            log: &[("WARN", "released undrained")],
            // Two deliveries are left after the release: they delete, and the look that would confirm it is the sweep's.
            did: &["CompleteLifecycleAction M1", "TerminateInstances W1", "TerminateInstances W2", "DeleteKeyPair runner-aa"],
            cut_after: Some(3),
            last: Reply::Fail(&[1]),
            ..case(name)
        });
    }
}

/// A short allowance is spread over the drain: it is not used up while the hook has an hour left.
#[test]
fn lc_58_few_deliveries_are_spread_over_the_drain() {
    let story = check(Case {
        world: &|w| w.ssm.usual_fate = Some(Fate::never_ends()),
        config: &[("MAX_RECEIVE_COUNT", "12"), ("DRAIN_TIMEOUT_SECONDS", "7200")],
        did: &["CompleteLifecycleAction M1", "TerminateInstances W1", "DeleteKeyPair runner-aa"],
        last: Reply::Fail(&[1]),
        cut_after: Some(12),
        ..case("sqs-termination-hook")
    });
    let waited = story.aws.calls("CompleteLifecycleAction")[0].at - start();
    assert!(waited > TimeDelta::seconds(6000), "gave up after {waited}");
}

#[test]
fn lc_61_partitions_and_their_endpoints() {
    for (name, region, host) in [
        ("sqs-termination-govcloud", "us-gov-west-1", "us-gov-west-1.amazonaws.com"),
        ("sqs-termination-china", "cn-north-1", "cn-north-1.amazonaws.com.cn"),
    ] {
        let url = format!("https://sqs.{host}/123456789012/lifecycle-cleanup");
        let story = check(Case {
            world: &|w| {
                w.region = region.into();
                w.queues.clear();
                w.queues.insert(url.clone(), Queue { url: url.clone(), name: "lifecycle-cleanup".into(), ..Queue::default() });
            },
            // The queue's address is asked for, never put together.
            config: &[("WORK_QUEUE_URL", ""), ("DEAD_LETTER_QUEUE_URL", "")],
            did: &["SendCommand M1", "CompleteLifecycleAction M1", "TerminateInstances W1", "GetQueueUrl lifecycle-cleanup 123456789012"],
            times: &[("GetQueueUrl", 1)],
            ..case(name)
        });
        assert!(story.aws.calls("ChangeMessageVisibility").iter().all(|c| c.took_effect()));
        for call in story.aws.all_calls() {
            assert!(call.request.host.ends_with(host), "{} went to {}", call.operation(), call.request.host);
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
            assert_eq!((call.request.text("AutoScalingGroupName"), call.request.text("LifecycleHookName")), (Some(group), Some(hook)));
        }
    }
}

fn renamed(group: &str, hook: &str) -> String {
    let mut payload: serde_json::Value = serde_json::from_str(&super::event("sqs-termination-unicode")).unwrap();
    let body = payload["Records"][0]["body"].as_str().unwrap();
    let mut body: serde_json::Value = serde_json::from_str(body).unwrap();
    body["AutoScalingGroupName"] = group.into();
    body["LifecycleHookName"] = hook.into();
    payload["Records"][0]["body"] = body.to_string().into();
    payload.to_string()
}

#[test]
fn lc_67_no_network_at_all() {
    let story = check(Case {
        world: &|w| w.groups.get_mut(GROUP).unwrap().hooks.get_mut(HOOK).unwrap().heartbeat_timeout = seconds(7200),
        config: &[("DRAIN_TIMEOUT_SECONDS", "3600")],
        faults: vec![Fault::Refused.everywhere().times(100)],
        did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
        log: &[("ERROR", "not read dispatch failure")],
        cut_after: Some(100),
        ..case("sqs-termination-hook")
    });
    assert!(story.deliveries.len() < 100);
    assert!(story.deliveries[0].took < seconds(60), "a refused connection is noticed at once");
}
