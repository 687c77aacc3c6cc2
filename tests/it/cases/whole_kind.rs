//! What else of each kind can happen, as tables over every value.

use super::{Case, Reply, case, check, event};
use crate::fake_aws::*;

/// Every lifecycle state that AWS knows, and one of the future: a manager that its group lists is never taken for gone.
#[test]
fn every_lifecycle_state_of_a_manager() {
    let states = [
        "Pending",
        "Pending:Wait",
        "Pending:Proceed",
        "Quarantined",
        "InService",
        "Terminating",
        "Terminating:Wait",
        "Terminating:Proceed",
        "Terminating:Retained",
        "Detaching",
        "Detached",
        "EnteringStandby",
        "Standby",
        "ReplacingRootVolume",
        "ReplacingRootVolume:Wait",
        "ReplacingRootVolume:Proceed",
        "RootVolumeReplaced",
        "Warmed:Pending",
        "Warmed:Pending:Wait",
        "Warmed:Running",
        "Warmed:Stopped",
        "Warmed:Hibernated",
        "Warmed:Terminating:Wait",
        "Warmed:Terminated",
        "AStateOfTheFuture",
        "",
    ];
    for state in states {
        for event_name in [
            "sqs-termination-hook",
            "direct-terminate-successful",
            "direct-reap",
            "direct-instance-terminated",
        ] {
            let aws = FakeAws::cases();
            aws.world()
                .groups
                .get_mut(GROUP)
                .unwrap()
                .members
                .get_mut(M1)
                .unwrap()
                .state = state.into();
            for _ in 0..3 {
                aws.run(&event(event_name)).expect("safe");
                aws.advance(seconds(30));
            }
            let completes = aws.accepted("CompleteLifecycleAction") > 0;
            // A warm pool terminates by the same hook.
            let waits = state.ends_with("Terminating:Wait")
                && !["direct-terminate-successful", "direct-reap"].contains(&event_name);
            assert_eq!(completes, waits, "{event_name} in {state}");
            // Released, it goes, and only then what it left.
            assert!(
                completes || !aws.touched(W1, "TerminateInstances"),
                "{event_name}: the manager is {state} and runs"
            );
        }
        // EC2 doesn't know it, and its group does.
        let aws = FakeAws::cases();
        aws.world().ec2.instances.remove(M1);
        aws.world()
            .groups
            .get_mut(GROUP)
            .unwrap()
            .members
            .get_mut(M1)
            .unwrap()
            .state = state.into();
        aws.run(&event("direct-sweep")).expect("safe");
        assert!(
            !aws.touched(W1, "TerminateInstances"),
            "absent, and listed as {state}"
        );
    }
}

/// Every EC2 state of a worker's manager that no group lists.
#[test]
fn every_state_of_a_manager_without_a_group() {
    use InstanceState::*;
    for (state, reaped) in [
        (Some(Pending), false),
        (Some(Running), false),
        (Some(Stopping), false),
        (Some(Stopped), false),
        (Some(ShuttingDown), true),
        (Some(Terminated), true),
        (None, true),
    ] {
        let aws = FakeAws::cases();
        {
            let mut world = aws.world();
            let group = world.groups.get_mut(GROUP).unwrap();
            group.members.remove(M1);
            group.actions.clear();
            match state {
                Some(state) => world.instance_mut(M1).state = state,
                None => drop(world.ec2.instances.remove(M1)),
            }
        }
        aws.run(&event("direct-sweep")).expect("safe");
        assert_eq!(aws.touched(W1, "TerminateInstances"), reaped, "{state:?}");
        assert!(!aws.touched(W3, "TerminateInstances"));
    }
}

/// Pages of every size, and listings that end exactly on one.
#[test]
fn pages_of_every_size() {
    for size in [1, 2, 3, 4, 5, 6, 1000] {
        check(Case {
            world: &|w| {
                w.page_size = size;
                (0..3).for_each(|n| {
                    w.put_spot(
                        &format!("sir-{n}"),
                        "open",
                        Some(&machine_name("aa", EXECUTOR, start() - minutes(200), n)),
                        minutes(200),
                    )
                });
            },
            did: &[
                "TerminateInstances W1",
                "TerminateInstances W2",
                "CancelSpotInstanceRequests sir-0",
                "CancelSpotInstanceRequests sir-2",
            ],
            never: &["TerminateInstances W3"],
            ..case("sqs-termination-hook")
        });
    }
}

/// Lists whose end is never reached: nothing is judged by them, and the pass ends.
#[test]
fn lists_that_never_end() {
    for operation in [
        "DescribeInstances",
        "DescribeSpotInstanceRequests",
        "DescribeAutoScalingGroups",
    ] {
        for fault in [Fault::RepeatedToken, Fault::EmptyPage] {
            check(Case {
                faults: vec![
                    fault
                        .on(operation)
                        .when(|r| r.filters().iter().all(|(name, _)| name != "instance-id")),
                ],
                never: &["TerminateInstances W3", "DeleteKeyPair runner-bb"],
                log: &[("ERROR", &format!("not read to its end {operation}"))],
                cut_after: Some(6),
                ..case("sqs-termination-hook")
            });
        }
    }
}

/// Every mode of draining, with the manager in every state.
#[test]
fn every_mode_of_draining() {
    check(Case {
        config: &[("DRAIN", "off"), ("DRAIN_DOCUMENT", "")],
        never: &[
            "SendCommand",
            "ListCommands",
            "RecordLifecycleActionHeartbeat",
        ],
        did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
        ..case("sqs-termination-hook")
    });
    check(Case {
        config: &[("DRAIN", "observe"), ("DRAIN_DOCUMENT", "")],
        // Something on the instance completes the hook.
        before: &|aws, number| {
            if number == 4 {
                let mut world = aws.world();
                let now = world.now();
                let group = world.groups.get_mut(GROUP).unwrap();
                group.actions[0].closed = Some(Closed {
                    at: now,
                    how: Closing::Completed("CONTINUE".into()),
                });
                group.proceed_if_free(M1, now);
            }
        },
        never: &["SendCommand", "ListCommands", "CompleteLifecycleAction"],
        did: &["RecordLifecycleActionHeartbeat M1", "TerminateInstances W1"],
        ..case("sqs-termination-hook")
    });
    check(Case {
        config: &[("MODE", "plan")],
        first: Reply::Ok,
        never: &[
            "SendCommand",
            "CompleteLifecycleAction",
            "RecordLifecycleActionHeartbeat",
            "TerminateInstances",
            "ChangeMessageVisibility",
        ],
        log: &[("WARN", "MODE=plan: a hook waits M1 \"hook_seconds_left\":")],
        ..case("sqs-termination-hook")
    });
    check(Case {
        world: &|w| w.instance_mut(M1).platform = Some("windows".into()),
        never: &["SendCommand"],
        did: &["CompleteLifecycleAction M1"],
        log: &[("WARN", "no drain document for this platform")],
        ..case("sqs-termination-hook")
    });
    check(Case {
        faults: vec![Fault::Code("UnsupportedPlatformType").on("SendCommand")],
        times: &[("SendCommand", 1)],
        did: &["CompleteLifecycleAction M1"],
        log: &[("WARN", "released undrained")],
        ..case("sqs-termination-hook")
    });
    for code in [
        "InvalidDocument",
        "InvalidDocumentVersion",
        "AccessDeniedException",
        "InvalidParameters",
        "MaxDocumentSizeExceeded",
    ] {
        check(Case {
            faults: vec![Fault::Code(code).on("SendCommand").times(3)],
            did: &[
                "RecordLifecycleActionHeartbeat M1",
                "CompleteLifecycleAction M1",
            ],
            log: &[("ERROR", &format!("not done: drain command sent {code}"))],
            no_log: &[("WARN", "released undrained")],
            ..case("sqs-termination-hook")
        });
    }
}

/// Switched-off kinds are neither listed for their own sake nor deleted.
#[test]
fn every_kind_switched_off() {
    let deletions = [
        ("spot-requests", "CancelSpotInstanceRequests"),
        ("workers", "TerminateInstances"),
        ("key-pairs", "DeleteKeyPair"),
        ("addresses", "ReleaseAddress"),
    ];
    for (kind, _) in deletions {
        let story = check(Case {
            world: &|w| {
                w.put_spot(
                    "sir-1",
                    "open",
                    Some(&machine_name("aa", EXECUTOR, start() - minutes(200), 1)),
                    minutes(200),
                );
                w.put_machine_key("old", EXECUTOR, minutes(3000));
                w.put_address("eipalloc-1", Some(M1));
            },
            config: &[("REAP", kind)],
            ..case("sqs-termination-hook")
        });
        for (other, operation) in deletions {
            assert_eq!(
                story.aws.accepted(operation) > 0,
                other == kind,
                "REAP={kind}, {operation}"
            );
        }
    }
}
