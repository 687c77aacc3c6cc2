//! What the simulation found in histories that nobody had thought of, and others in the log or on the wire, each as a case.

use super::{Case, Reply, case, check};
use crate::fake_aws::*;

/// The message is an hour older than the termination that it meets, and in between somebody drained the manager.
fn drained_before_the_termination(world: &mut World) {
    let now = world.now();
    let group = world.groups.get_mut(GROUP).expect("the group");
    for activity in &mut group.activities {
        activity.started = now;
    }
    let id = format!("{:08x}-0000-4000-8000-00000000001d", world.next_serial());
    world.ssm.commands.push(Command {
        id,
        document: DOCUMENT.into(),
        instance_id: M1.into(),
        sent: now - minutes(30),
        delivery_timeout: 60,
        comment: None,
        parameters: serde_json::Value::Null,
        fate: Fate::says("stopped"),
    });
}

/// The usual message, sent an hour ago.
fn old_message() -> String {
    let mut payload: serde_json::Value =
        serde_json::from_str(&super::event("sqs-termination-hook")).expect("JSON");
    let sent = (start() - minutes(60)).timestamp_millis().to_string();
    payload["Records"][0]["attributes"]["SentTimestamp"] = sent.into();
    payload.to_string()
}

#[test]
fn an_answer_from_before_frees_no_hook_while_the_state_cannot_be_read() {
    check(Case {
        world: &drained_before_the_termination,
        payload: old_message(),
        faults: vec![Fault::ServerError.on("DescribeAutoScalingInstances")],
        did: &["RecordLifecycleActionHeartbeat M1"],
        never: &["CompleteLifecycleAction"],
        cut_after: Some(1),
        ..case("sqs-termination-hook")
    });
}

#[test]
fn an_answer_frees_no_hook_while_nobody_can_say_whether_it_is_from_before() {
    check(Case {
        world: &drained_before_the_termination,
        payload: old_message(),
        faults: vec![Fault::ServerError.on("DescribeScalingActivities")],
        did: &["RecordLifecycleActionHeartbeat M1"],
        never: &["CompleteLifecycleAction"],
        cut_after: Some(1),
        ..case("sqs-termination-hook")
    });
}

#[test]
fn an_answer_from_before_does_not_shorten_the_workers_grace() {
    check(Case {
        world: &|world| {
            drained_before_the_termination(world);
            // It died outside its group, which has not noticed yet.
            let now = world.now();
            let group = world.groups.get_mut(GROUP).expect("the group");
            group.actions.clear();
            group.activities.clear();
            group.members.remove(M1);
            world.end_instance(M1, now);
        },
        config: &[("WORKER_GRACE_SECONDS", "1800")],
        payload: old_message(),
        never: &["TerminateInstances"],
        cut_after: Some(1),
        ..case("sqs-termination-hook")
    });
}

#[test]
fn a_task_tries_its_own_managers_workers_first() {
    let long_dead = "i-0dead000000000001";
    check(Case {
        world: &|world| {
            world.put_manager(GROUP, long_dead, minutes(600));
            world.instance_mut(long_dead).state = InstanceState::Terminated;
            for n in 0..8 {
                world.put_worker(
                    Worker::of(long_dead, &format!("i-0beef00000000000{n}")).protected(),
                );
            }
            world.instance_mut(M1).state = InstanceState::Terminated;
            world
                .groups
                .get_mut(GROUP)
                .expect("the group")
                .members
                .remove(M1);
        },
        config: &[("MAX_DELETIONS", "1")],
        payload: super::event("direct-terminate-successful"),
        first: Reply::Outcome("Again"),
        did: &["TerminateInstances W1", "TerminateInstances W2"],
        cut_after: Some(2),
        ..case("sqs-termination-hook")
    });
}

#[test]
fn a_sweep_does_not_end_before_each_orphan_had_its_chance() {
    check(Case {
        world: &|world| {
            world.instance_mut(M1).state = InstanceState::Terminated;
            for n in 0..4 {
                world.put_worker(Worker::of(M1, &format!("i-0beef00000000000{n}")).protected());
            }
        },
        config: &[("MAX_DELETIONS", "1")],
        payload: super::event("direct-sweep"),
        first: Reply::Outcome("Again"),
        did: &["TerminateInstances W1"],
        ..case("direct-sweep")
    });
}

/// The group still shows the manager as it was before: its hook waits, though nothing says so yet.
#[test]
fn a_manager_on_its_way_to_the_warm_pool_is_drained_though_its_group_lags() {
    check(Case {
        world: &|world| {
            let group = world.groups.get_mut(GROUP).expect("the group");
            group.members.get_mut(M1).expect("a member").state = "InService".into();
        },
        before: &|aws, delivery| {
            if delivery == 2 {
                let mut world = aws.world();
                let group = world.groups.get_mut(GROUP).expect("the group");
                group.members.get_mut(M1).expect("a member").state = "Terminating:Wait".into();
            }
        },
        in_order: &["SendCommand M1", "CompleteLifecycleAction M1"],
        never: &["TerminateInstances"],
        ..case("sqs-termination-warm-pool")
    });
}

/// Nobody here drains it, and only a person can change that: it must not look like a healthy sweep.
#[test]
fn a_manager_that_waits_in_a_hook_we_do_not_know_is_told() {
    let story = check(Case {
        config: &[("LIFECYCLE_HOOKS", "misspelt-terminate")],
        payload: super::event("direct-sweep"),
        first: Reply::Outcome("Done"),
        never: &[
            "CompleteLifecycleAction",
            "RecordLifecycleActionHeartbeat",
            "SendCommand",
        ],
        log: &[
            (
                "WARN",
                "planned: nothing: its group has none of LIFECYCLE_HOOKS",
            ),
            (
                "INFO",
                "outcome: done: a waiting manager: none of LIFECYCLE_HOOKS",
            ),
        ],
        ..case("direct-sweep")
    });
    let line = story
        .log
        .iter()
        .find(|line| {
            line.json["message"]
                .to_string()
                .contains("none of LIFECYCLE_HOOKS")
        })
        .expect("the line");
    assert_eq!(line.json["instance_id"], M1);
    assert_eq!(line.json["hooks"], "misspelt-terminate");
    check(Case {
        config: &[("LIFECYCLE_HOOKS", "misspelt-terminate")],
        first: Reply::Ok,
        log: &[(
            "INFO",
            "ignored: the hook is not ours, the manager i-0a11aa11aa11aa110 waits",
        )],
        ..case("sqs-termination-hook")
    });
}

/// EC2 said nothing of the manager, so the log must not say that it did; and the failed read is counted.
#[test]
fn what_could_not_be_asked_is_not_told_as_an_answer() {
    let story = check(Case {
        world: &|world| {
            let group = world.groups.get_mut(GROUP).expect("the group");
            group.members.get_mut(M1).expect("a member").state = "Terminating:Proceed".into();
        },
        faults: vec![Fault::Throttled.on("DescribeInstances")],
        log: &[(
            "INFO",
            "planned: no hook waits, and EC2 could not be asked whether the manager is gone",
        )],
        no_log: &[("INFO", "EC2 says that the manager lives")],
        cut_after: Some(1),
        ..case("sqs-termination-hook")
    });
    let counted = story
        .log
        .iter()
        .any(|line| line.json["FaultsToRetry"] == 1.0);
    assert!(counted, "no metric counts the failed read");
}

/// EC2 needs a while to show what was just launched; what has been gone for long it doesn't show either.
#[test]
fn a_manager_that_ec2_does_not_show_yet_is_held() {
    for (age, holds) in [(1, true), (60, false)] {
        check(Case {
            world: &|world| {
                let now = world.now();
                world.ec2.instances.remove(M1);
                let group = world.groups.get_mut(GROUP).expect("the group");
                let launch = group.activities.iter_mut();
                for activity in launch.filter(|a| {
                    a.description.starts_with("Launching") && a.description.ends_with(M1)
                }) {
                    activity.started = now - minutes(age);
                }
            },
            did: if holds {
                &["RecordLifecycleActionHeartbeat M1"]
            } else {
                &["CompleteLifecycleAction M1"]
            },
            never: if holds {
                &["CompleteLifecycleAction"]
            } else {
                &["SendCommand"]
            },
            cut_after: Some(1),
            ..case("sqs-termination-hook")
        });
    }
}

/// The group still lists the manager, which says nothing of it: EC2 must be asked, and a person's wish isn't dropped.
#[test]
fn a_reap_that_cannot_ask_ec2_comes_again() {
    check(Case {
        world: &|world| world.end_instance(M1, world.now() - minutes(10)),
        faults: vec![Fault::ServerError.on("DescribeInstances").times(10)],
        payload: format!(r#"{{"action":"reap","instance_id":"{M1}"}}"#),
        first: Reply::Outcome("Again"),
        did: &["TerminateInstances W1"],
        log: &[("ERROR", "whether the manager lives could not be read")],
        ..case("direct-sweep")
    });
}

/// The SDK alone takes the first half of an answer for all of it, and what the other half shows or protects is nothing.
#[test]
fn half_an_answer_is_no_answer() {
    for operation in [
        "DescribeInstances",
        "DescribeSpotInstanceRequests",
        "DescribeKeyPairs",
        "DescribeAddresses",
        "DescribeAutoScalingGroups",
        "DescribeAutoScalingInstances",
        "DescribeLifecycleHooks",
    ] {
        check(Case {
            world: &|world| {
                world.put_spot("sir-1", "open", None, minutes(200));
                world.put_address("eipalloc-1", Some(M1));
            },
            // One pass asks in vain, and the next hears all of it.
            faults: vec![Fault::Halved.on(operation).times(5)],
            did: &[
                "CompleteLifecycleAction M1",
                "TerminateInstances W1",
                "TerminateInstances W2",
                "DeleteKeyPair runner-aa",
                "ReleaseAddress eipalloc-1",
            ],
            never: &["TerminateInstances W3", "DeleteKeyPair runner-bb"],
            log: &[("ERROR", &format!("the answer ends inside < {operation}"))],
            ..case("sqs-termination-hook")
        });
    }
}

/// That no action is active is at the end of the message; its first half reads like a call that is wrong.
#[test]
fn half_an_error_is_no_answer() {
    check(Case {
        world: &|world| {
            let group = world.groups.get_mut(GROUP).expect("the group");
            group.actions.clear();
        },
        faults: vec![Fault::Halved.on("CompleteLifecycleAction").nth(1)],
        // The SDK asks again at once, and each later pass once.
        times: &[("CompleteLifecycleAction", 4)],
        never: &["SendMessage"],
        no_log: &[("ERROR", "ValidationError")],
        cut_after: Some(4),
        ..case("sqs-termination-hook")
    });
}
