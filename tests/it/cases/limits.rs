//! Heartbeats, deadlines and last deliveries: a hook is held as long as it may be, and never longer.

use super::{Case, Reply, case, check, hook::gone};
use crate::fake_aws::*;
use chrono::TimeDelta;

#[test]
fn lc_24_a_chain_that_outlived_its_hook() {
    for name in [
        "sqs-termination-stale",
        "sqs-termination-foreign-retry-fields",
    ] {
        check(Case {
            world: &gone,
            did: &["TerminateInstances W1", "TerminateInstances W2"],
            never: &[
                "SendCommand",
                "RecordLifecycleActionHeartbeat",
                "CompleteLifecycleAction",
            ],
            ..case(name)
        });
    }
}

/// A message that claims to be older than any hook can wait, and a hook that waits: the group says since when, so that
/// the drain has its time, and the hook is released.
#[test]
fn lc_24_a_hook_that_waits_is_released_however_old_the_message_says_it_is() {
    let story = check(Case {
        in_order: &[
            "DescribeScalingActivities",
            "SendCommand M1",
            "CompleteLifecycleAction M1",
            "TerminateInstances W1",
        ],
        log: &[("INFO", "release: drain document says stopped")],
        ..case("sqs-termination-stale")
    });
    assert_eq!(story.aws.accepted("CompleteLifecycleAction"), 1);
    // Nobody knows since when: it is late, and the hook is released at once.
    check(Case {
        faults: vec![Fault::Denied.on("DescribeScalingActivities")],
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
    assert!(
        (completed - deadline).abs() <= seconds(2),
        "completed at {completed}, the deadline was {deadline}"
    );
}

#[test]
fn lc_25_heartbeats_are_never_late_and_never_for_ever() {
    for (timeout, fault) in [
        (600, None),
        (600, Some(Fault::Throttled)),
        (30, None),
        (7200, Some(Fault::ServerError)),
    ] {
        let story = check(Case {
            world: &|w| {
                w.groups
                    .get_mut(GROUP)
                    .unwrap()
                    .hooks
                    .get_mut(HOOK)
                    .unwrap()
                    .heartbeat_timeout = seconds(timeout);
                w.ssm.usual_fate = Some(Fate::says("stopped").after(minutes(25)));
            },
            faults: fault
                .map(|f| f.on("RecordLifecycleActionHeartbeat").nth(3))
                .into_iter()
                .collect(),
            did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
            times: &[("SendCommand", 1)],
            cut_after: Some(400),
            end: &|w| {
                assert!(
                    matches!(&w.groups[GROUP].actions[0].closed, Some(Closed { how: Closing::Completed(result), .. }) if result == "CONTINUE")
                )
            },
            ..case("sqs-termination-hook")
        });
        let beats: Vec<_> = story
            .aws
            .calls("RecordLifecycleActionHeartbeat")
            .iter()
            .filter(|c| c.took_effect())
            .map(|c| c.at)
            .collect();
        let late = beats
            .windows(2)
            .find(|pair| pair[1] - pair[0] >= seconds(timeout));
        assert!(
            beats.len() >= 2 && late.is_none(),
            "heartbeat timeout {timeout}: {late:?}"
        );
        assert!(story.deliveries.len() < 400);
    }
}

#[test]
fn lc_25_a_heartbeat_that_fails_does_not_fail_the_drain() {
    for fault in [Fault::Denied, Fault::ServerError, Fault::Throttled] {
        check(Case {
            faults: vec![fault.on("RecordLifecycleActionHeartbeat")],
            did: &[
                "SendCommand M1",
                "CompleteLifecycleAction M1",
                "TerminateInstances W1",
            ],
            times: &[("SendCommand", 1)],
            log: &[("ERROR", "not done: heartbeat")],
            ..case("sqs-termination-hook")
        });
    }
}

#[test]
fn lc_58_the_last_deliveries_settle_it() {
    check(Case {
        world: &|w| w.ssm.usual_fate = Some(Fate::says("busy")),
        config: &[("MAX_RECEIVE_COUNT", "11")],
        log: &[("WARN", "released undrained")],
        // Two deliveries are left after the release: they delete, and the look that would confirm it is the sweep's.
        did: &[
            "CompleteLifecycleAction M1",
            "TerminateInstances W1",
            "TerminateInstances W2",
            "DeleteKeyPair runner-aa",
        ],
        cut_after: Some(3),
        last: Reply::Fail(&[1]),
        ..case("sqs-termination-ninth-delivery")
    });
}

/// A short allowance is spread over the drain: it is not used up while the hook has an hour left.
#[test]
fn lc_58_few_deliveries_are_spread_over_the_drain() {
    let story = check(Case {
        world: &|w| w.ssm.usual_fate = Some(Fate::never_ends()),
        config: &[
            ("MAX_RECEIVE_COUNT", "12"),
            ("DRAIN_TIMEOUT_SECONDS", "7200"),
        ],
        did: &[
            "CompleteLifecycleAction M1",
            "TerminateInstances W1",
            "DeleteKeyPair runner-aa",
        ],
        last: Reply::Fail(&[1]),
        cut_after: Some(12),
        ..case("sqs-termination-hook")
    });
    let waited = story.aws.calls("CompleteLifecycleAction")[0].at - start();
    assert!(waited > TimeDelta::seconds(6000), "gave up after {waited}");
}

#[test]
fn lc_67_no_network_at_all() {
    let story = check(Case {
        world: &|w| {
            w.groups
                .get_mut(GROUP)
                .unwrap()
                .hooks
                .get_mut(HOOK)
                .unwrap()
                .heartbeat_timeout = seconds(7200)
        },
        config: &[("DRAIN_TIMEOUT_SECONDS", "3600")],
        faults: vec![Fault::Refused.everywhere().times(100)],
        did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
        log: &[("ERROR", "not read dispatch failure")],
        cut_after: Some(100),
        ..case("sqs-termination-hook")
    });
    assert!(story.deliveries.len() < 100);
    assert!(
        story.deliveries[0].took < seconds(60),
        "a refused connection is noticed at once"
    );
}
