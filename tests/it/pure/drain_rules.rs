//! The drain beside its table: deadlines, lagging reads, wakes, and whose hook is completed.

use super::{
    config,
    drain_table::{Then, then},
    manager, now, seconds,
    seen::*,
    terminate,
};
use lifecycle_reaper::{
    config::Drain,
    drain,
    task::{Change, Delivery, Task},
    world::{Answer, Command, Hook, InstanceState, Lifecycle, ManagerView},
};

/// `aborted` ends the drain too, and a person should know.
#[test]
fn aborted_is_released_loudly() {
    for (mode, config) in configs() {
        let view = ManagerView {
            lifecycle: Ok(Some(Lifecycle {
                group: "ci-linux-asg".into(),
                state: "Terminating:Wait".into(),
            })),
            hooks: Ok(vec![hook("ci-linux-terminate")]),
            instance: Ok(Some(instance(InstanceState::Running, false))),
            command: Command::Answered(Answer::Aborted, String::new()),
            requested: None,
            began: lifecycle_reaper::world::Began::NotTold,
        };
        let next = drain::next(&terminate(), &Delivery::first(now()), &view, &config, now());
        assert_eq!(
            then(&next),
            if mode == "off" {
                Then::Release
            } else {
                Then::ReleaseLoudly
            }
        );
    }
}

/// The group still shows the state from before, and EC2 the end: reads lag, for a while that is believed.
#[test]
fn a_group_that_lags_behind_is_waited_for() {
    for state in NOT_GOING {
        for (age, expected) in [(0, Then::Wait), (3600, Then::Reap)] {
            let view = ManagerView {
                lifecycle: Ok(Some(Lifecycle {
                    group: "ci-linux-asg".into(),
                    state: state.into(),
                })),
                hooks: Ok(vec![hook("ci-linux-terminate")]),
                instance: Ok(Some(instance(InstanceState::Terminated, false))),
                command: Command::None,
                requested: None,
                began: lifecycle_reaper::world::Began::NotTold,
            };
            let delivery = Delivery {
                first_seen: now() - seconds(age),
                ..Delivery::first(now())
            };
            let next = drain::next(&terminate(), &delivery, &view, &config(&[]), now());
            assert_eq!(then(&next), expected, "{state:?} for {age} s");
        }
    }
}

/// The smallest limit binds, less a margin, and says so.
#[test]
fn the_deadline_is_the_smallest_limit_less_a_margin() {
    let of = |timeout: &str, globals: &[i64]| {
        let hooks: Vec<Hook> = globals
            .iter()
            .map(|g| Hook {
                global_timeout: seconds(*g),
                ..hook("h")
            })
            .collect();
        let deadline = drain::deadline(
            now(),
            &hooks,
            &config(&[("DRAIN_TIMEOUT_SECONDS", timeout)]),
        );
        ((deadline.at - now()).num_seconds(), deadline.bound_by)
    };
    let rows = [
        ("7200", vec![172_800], 7140, "DRAIN_TIMEOUT_SECONDS"),
        ("172800", vec![3000], 2940, "the hook's global timeout"),
        (
            "172800",
            vec![9000, 3000],
            2940,
            "the hook's global timeout",
        ),
        ("172800", vec![], 172_740, "DRAIN_TIMEOUT_SECONDS"),
        ("172800", vec![999_999], 172_740, "DRAIN_TIMEOUT_SECONDS"),
        ("600", vec![172_800], 540, "DRAIN_TIMEOUT_SECONDS"),
        // The margin is at most a tenth.
        ("100", vec![172_800], 90, "DRAIN_TIMEOUT_SECONDS"),
        ("7200", vec![100], 90, "the hook's global timeout"),
    ];
    for (timeout, globals, expected, bound_by) in rows {
        assert_eq!(
            of(timeout, &globals),
            (expected, bound_by),
            "{timeout} {globals:?}"
        );
    }
}

/// A wake looks at hooks that wait, and at nothing else, but for a manager that spot takes back.
#[test]
fn a_wake_without_a_waiting_hook_leaves_it() {
    let wake = |change| Task::Wake {
        manager: manager(),
        change,
    };
    let changes = [
        Change::State,
        Change::FoundWaiting,
        Change::CommandEnded("c".into()),
        Change::SpotInterruption,
    ];
    for (mode, config) in configs() {
        for change in &changes {
            for (hook_is, _, lifecycle, hooks) in hooks_seen() {
                for (ec2, instance) in instances_seen() {
                    for (command, newest) in commands_seen() {
                        let view = ManagerView {
                            lifecycle: lifecycle.clone(),
                            hooks: hooks.clone(),
                            instance: instance.clone(),
                            command: newest,
                            requested: None,
                            began: lifecycle_reaper::world::Began::NotTold,
                        };
                        let next = drain::next(
                            &wake(change.clone()),
                            &Delivery::first(now()),
                            &view,
                            &config,
                            now(),
                        );
                        let none_of_ours = hooks.as_ref().is_ok_and(Vec::is_empty);
                        let state = lifecycle
                            .as_ref()
                            .ok()
                            .and_then(Option::as_ref)
                            .map(|l| l.state.as_str());
                        let waits = state == Some("Terminating:Wait") && !none_of_ours;
                        let spot = *change == Change::SpotInterruption
                            && mode == "ssm"
                            && state.is_some_and(|s| s != "Terminating:Wait");
                        let sends = spot
                            && matches!(ec2, Ec2Says::Running | Ec2Says::RunningWindows)
                            && matches!(command, CommandIs::None | CommandIs::EndedOtherwise);
                        match then(&next) {
                            Then::Leave => {
                                assert!(!waits && !sends, "{change:?} {hook_is:?} {view:?}")
                            }
                            Then::Send if !waits => {
                                assert!(sends, "{change:?} {hook_is:?} {view:?}")
                            }
                            // All of our hooks count here, whichever sent the message.
                            other => {
                                assert!(waits, "{other:?} for {change:?} {hook_is:?} {view:?}")
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Which hooks are completed: the one that sent the message, and only if it is ours.
#[test]
fn only_our_hook_is_completed() {
    use lifecycle_reaper::plan::{DrainAction, plan_drain};
    for names in [
        vec!["ci-linux-terminate"],
        vec!["ci-linux-terminate", "another-of-ours"],
        vec!["another-of-ours"],
    ] {
        let view = ManagerView {
            lifecycle: Ok(Some(Lifecycle {
                group: "ci-linux-asg".into(),
                state: "Terminating:Wait".into(),
            })),
            hooks: Ok(names.iter().map(|n| hook(n)).collect()),
            instance: Ok(Some(instance(InstanceState::Running, false))),
            command: Command::None,
            requested: None,
            began: lifecycle_reaper::world::Began::NotTold,
        };
        for (mode, config) in configs() {
            let delivery = Delivery::first(now());
            let next = drain::next(&terminate(), &delivery, &view, &config, now());
            let plan = plan_drain(&terminate(), &delivery, &view, next, &config, now())
                .expect("a manager");
            let ours = names.contains(&"ci-linux-terminate");
            let expected = match (ours, &config.drain) {
                (false, _) => vec![],
                (true, Drain::Off) => vec![DrainAction::Complete("ci-linux-terminate".into())],
                (true, Drain::Observe) => vec![DrainAction::Heartbeat("ci-linux-terminate".into())],
                (true, Drain::Ssm { document }) => vec![
                    DrainAction::Heartbeat("ci-linux-terminate".into()),
                    DrainAction::Send(document.clone()),
                ],
            };
            assert_eq!(plan.actions, expected, "{mode} {names:?}");
        }
    }
}
