//! The hook: when it is completed, when it is held, and when there is none any more.

use super::{Case, Reply, case, check};
use crate::fake_aws::*;

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
        ("stopped", |w| {
            w.instance_mut(M1).state = InstanceState::Stopped
        }),
    ];
    for (state, ending) in endings {
        check(Case {
            world: &ending,
            did: &[
                "CompleteLifecycleAction M1",
                "TerminateInstances W1",
                "TerminateInstances W2",
            ],
            never: &["SendCommand"],
            times: &[("CompleteLifecycleAction", 1)],
            in_order: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
            log: &[(
                "INFO",
                &format!("release: manager is {state}: nothing is left to drain"),
            )],
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
            let completed = world
                .calls
                .iter()
                .any(|c| c.operation() == "CompleteLifecycleAction");
            if completed && world.groups[GROUP].open_action(HOOK, M1).is_some() {
                let now = world.now();
                let group = world.groups.get_mut(GROUP).unwrap();
                group.actions[0].closed = Some(Closed {
                    at: now,
                    how: Closing::Completed("CONTINUE".into()),
                });
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
            let other = LifecycleHook {
                name: "another-teams-hook".into(),
                ..w.groups[GROUP].hooks[HOOK].clone()
            };
            w.groups
                .get_mut(GROUP)
                .unwrap()
                .hooks
                .insert(other.name.clone(), other);
            w.open_hook(GROUP, "another-teams-hook", M1, "another-token");
        },
        before: &|aws, number| {
            if number == 6 {
                let mut world = aws.world();
                assert!(world.instance(W1).state == InstanceState::Running);
                let now = world.now();
                let group = world.groups.get_mut(GROUP).unwrap();
                group.actions[1].closed = Some(Closed {
                    at: now,
                    how: Closing::Completed("CONTINUE".into()),
                });
                group.proceed_if_free(M1, now);
            }
        },
        did: &[
            "CompleteLifecycleAction ci-linux-terminate M1",
            "TerminateInstances W1",
        ],
        never: &[
            "CompleteLifecycleAction another-teams-hook",
            "RecordLifecycleActionHeartbeat another-teams-hook",
        ],
        log: &[("WARN", "no active lifecycle action: looking again")],
        ..case("sqs-termination-hook")
    });
    // The looks at "no active action" lie at least a minute apart.
    let looks: Vec<_> = story
        .aws
        .calls("CompleteLifecycleAction")
        .iter()
        .filter(|c| !c.took_effect())
        .map(|c| c.at)
        .collect();
    assert!(
        looks
            .windows(2)
            .all(|pair| pair[1] - pair[0] >= seconds(60)),
        "{looks:?}"
    );
}

#[test]
fn lc_17_terminate_unsuccessful_of_a_living_manager() {
    for state in ["InService", "Terminating:Wait", "Standby"] {
        check(Case {
            world: &|w| {
                w.groups
                    .get_mut(GROUP)
                    .unwrap()
                    .members
                    .get_mut(M1)
                    .unwrap()
                    .state = state.into()
            },
            first: Reply::Outcome("Done"),
            last: Reply::Outcome("Done"),
            never: &[
                "TerminateInstances",
                "DeleteKeyPair",
                "CompleteLifecycleAction",
                "RecordLifecycleActionHeartbeat",
                "SendCommand",
            ],
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
        never: &[
            "CompleteLifecycleAction",
            "RecordLifecycleActionHeartbeat",
            "SendCommand",
        ],
        ..case("direct-terminate-unsuccessful")
    });
}

/// The manager left its group and shuts down.
pub fn gone(w: &mut World) {
    w.end_instance(M1, w.now());
    let group = w.groups.get_mut(GROUP).unwrap();
    group.members.remove(M1);
    group.actions.clear();
}
