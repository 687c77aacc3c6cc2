//! Spot requests: cancelled before their worker goes, and never those of the manager that takes over.

use super::{Case, case, check};
use crate::fake_aws::*;

const W9: &str = "i-0b99bb99bb99bb990";

/// A request whose key is named after its creation.
fn put_request(w: &mut World, id: &str, state: &str, token: &str, age: i64) {
    let key = machine_name(token, EXECUTOR, start() - minutes(age), 1);
    w.put_spot(id, state, Some(&key), minutes(age));
}

#[test]
fn lc_02_the_replacement_keeps_its_requests_and_keys() {
    let story = check(Case {
        world: &|w| {
            put_request(w, "sir-1", "open", "aa", 20);
            let key = w.instance(W3).key_name.clone();
            w.put_spot("sir-2", "active", key.as_deref(), minutes(30));
            w.ec2.spot_requests.get_mut("sir-2").unwrap().instance_id = Some(W3.into());
            w.instance_mut(W3).spot_request_id = Some("sir-2".into());
            w.put_machine_key("bb", EXECUTOR, seconds(20));
        },
        did: &["TerminateInstances W1"],
        never: &[
            "CancelSpotInstanceRequests",
            "TerminateInstances W3",
            "DeleteKeyPair runner-bb",
        ],
        log: &[
            ("INFO", "sir-2 its manager M2 is running"),
            ("INFO", "sir-1 it may be its own"),
            ("INFO", "key-pairs runner-bb- it may be its own"),
        ],
        ..case("sqs-termination-hook")
    });
    assert_eq!(story.aws.world().ec2.spot_requests["sir-1"].state, "open");
}

/// The same request goes once it is older than every live manager, or none lives.
#[test]
fn lc_02_what_is_older_than_every_live_manager_goes() {
    for (age, other_lives, cancelled) in [
        (59, true, false),
        (60, true, false),
        // Two clocks a minute apart prove nothing.
        (61, true, false),
        (62, true, true),
        (59, false, true),
        (5, false, true),
    ] {
        let story = check(Case {
            world: &|w| {
                put_request(w, "sir-1", "open", "aa", age);
                if !other_lives {
                    w.ec2.instances.remove(M2);
                    w.ec2.instances.remove(W3);
                    w.groups.get_mut(GROUP).unwrap().members.remove(M2);
                }
            },
            ..case("sqs-termination-hook")
        });
        assert_eq!(
            story.aws.touched("sir-1", "CancelSpotInstanceRequests"),
            cancelled,
            "{age} min old, another manager lives: {other_lives}"
        );
        // Too young to judge, it is waited for, to the second.
        let ripe = start() - minutes(age) + minutes(15);
        assert!(
            story
                .aws
                .calls("CancelSpotInstanceRequests")
                .iter()
                .all(|c| c.at >= ripe)
        );
    }
}

#[test]
fn lc_44_the_request_goes_before_its_instance() {
    for state in [
        InstanceState::Running,
        InstanceState::Stopped,
        InstanceState::Pending,
    ] {
        let story = check(Case {
            world: &|w| {
                // Without a key name: it is found through its instance.
                w.put_spot(
                    "sir-1",
                    if state == InstanceState::Stopped {
                        "disabled"
                    } else {
                        "active"
                    },
                    None,
                    minutes(60),
                );
                w.ec2.spot_requests.get_mut("sir-1").unwrap().instance_id = Some(W1.into());
                w.instance_mut(W1).spot_request_id = Some("sir-1".into());
                w.instance_mut(W1).state = state;
            },
            in_order: &["CancelSpotInstanceRequests sir-1", "TerminateInstances W1"],
            ..case("sqs-termination-hook")
        });
        assert!(
            !story
                .aws
                .world()
                .chronicle
                .iter()
                .any(|line| format!("{line:?}").contains("launches")),
            "a replacement was launched"
        );
    }
}

/// While the request can't be cancelled, its worker waits too; the others don't.
#[test]
fn lc_44_a_request_that_could_not_be_cancelled_holds_its_worker() {
    for fault in [
        Fault::Throttled.on("CancelSpotInstanceRequests").times(5),
        Fault::Throttled.on("DescribeSpotInstanceRequests").times(5),
    ] {
        check(Case {
            world: &|w| {
                w.put_spot("sir-1", "active", None, minutes(60));
                w.ec2.spot_requests.get_mut("sir-1").unwrap().instance_id = Some(W1.into());
                w.instance_mut(W1).spot_request_id = Some("sir-1".into());
            },
            faults: vec![fault],
            in_order: &[
                "TerminateInstances W2",
                "CancelSpotInstanceRequests sir-1",
                "TerminateInstances W1",
            ],
            ..case("sqs-termination-hook")
        });
    }
}

#[test]
fn lc_45_a_request_that_is_fulfilled_while_we_look() {
    for (found_by, key_age) in [("key name", 130), ("parent tag", 5)] {
        check(Case {
            world: &|w| put_request(w, "sir-1", "open", "aa", 130),
            // W9 appears after the pass that cancelled its request.
            before: &|aws, _| {
                let mut world = aws.world();
                let cancelled = world.ec2.spot_requests["sir-1"].state == "cancelled";
                if cancelled && !world.ec2.instances.contains_key(W9) {
                    let worker = Worker::of(M1, W9)
                        .age(seconds(10))
                        .state(InstanceState::Pending)
                        .without_key();
                    world.put_worker(if found_by == "parent tag" {
                        worker
                    } else {
                        worker.untagged()
                    });
                    let key = machine_name("aa", EXECUTOR, start() - minutes(key_age), 1);
                    world.instance_mut(W9).key_name = Some(key);
                    world.instance_mut(W9).spot_request_id = Some("sir-1".into());
                }
            },
            in_order: &[
                "CancelSpotInstanceRequests sir-1",
                "TerminateInstances i-0b99bb99bb99bb990",
            ],
            ..case("sqs-termination-hook")
        });
    }
}

/// Every state of a request: what can still start an instance is cancelled, the rest is left alone.
#[test]
fn lc_45_every_state_of_a_request() {
    for (state, cancelled) in [
        ("open", true),
        ("active", true),
        ("disabled", true),
        ("closed", false),
        ("cancelled", false),
        ("failed", false),
    ] {
        let story = check(Case {
            world: &|w| put_request(w, "sir-1", state, "aa", 130),
            ..case("sqs-termination-hook")
        });
        assert_eq!(
            story.aws.touched("sir-1", "CancelSpotInstanceRequests"),
            cancelled,
            "{state}"
        );
    }
}

/// One unknown request spares no other.
#[test]
fn lc_45_one_unknown_request_spares_no_other() {
    let story = check(Case {
        world: &|w| {
            (1..=5).for_each(|n| put_request(w, &format!("sir-{n}"), "open", "aa", 120 + n))
        },
        faults: vec![
            Fault::Code("InvalidSpotInstanceRequestID.NotFound")
                .on("CancelSpotInstanceRequests")
                .naming("sir-3"),
        ],
        before: &|aws, _| {
            if aws.touched("sir-1", "CancelSpotInstanceRequests") {
                aws.world().ec2.spot_requests.remove("sir-3");
            }
        },
        log: &[("WARN", "gone already sir-3")],
        ..case("sqs-termination-hook")
    });
    for id in ["sir-1", "sir-2", "sir-4", "sir-5"] {
        assert!(story.aws.touched(id, "CancelSpotInstanceRequests"), "{id}");
    }
}
