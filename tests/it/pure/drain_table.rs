//! The drain table, row by row as the design has it, against every combination of what can be seen.
//!
//! Rows here are independent of the code: exactly one row must hold for each combination, and the code must do what
//! it says.

use super::{config, manager, now, seconds, terminate};
use chrono::TimeDelta;
use lifecycle_reaper::{
    config::{Config, Drain},
    drain::{self, Next},
    fault::Fault,
    task::{Change, Delivery, Task},
    world::{Answer, Command, Hook, Instance, InstanceState, Lifecycle, ManagerView},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HookIs {
    Waiting,
    Over,
    NotKnown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ec2Says {
    Gone,
    Stopped,
    PendingOrStopping,
    Running,
    RunningWindows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandIs {
    None,
    Proof,
    AnsweredOtherwise,
    EndedOtherwise,
    InFlight,
    NotKnown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    Before,
    Late,
    /// Older than any hook can wait.
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Reap,
    Wait,
    Leave,
    Release,
    ReleaseLoudly,
    Heartbeat,
    Send,
}

/// One combination, in the table's words.
#[derive(Clone, Copy, Debug)]
struct Seen {
    hook: HookIs,
    /// Whether the group says a word that begins with `Terminating`.
    going: bool,
    ec2: Ec2Says,
    command: CommandIs,
    time: Time,
    mode: &'static str,
}

impl Seen {
    fn waits(self) -> bool {
        self.hook == HookIs::Waiting || (self.hook == HookIs::NotKnown && self.time != Time::Stale)
    }

    fn is_up(self) -> bool {
        matches!(self.ec2, Ec2Says::Running | Ec2Says::RunningWindows)
    }

    fn may_run(self) -> bool {
        self.is_up() || self.ec2 == Ec2Says::PendingOrStopping
    }

    fn is_proven(self) -> bool {
        self.is_up() && self.command == CommandIs::Proof && self.mode != "off"
    }

    /// A hook waits, it is asked to drain, nothing proves the end, and there is time.
    fn drains(self, mode: &str) -> bool {
        let known = self.hook == HookIs::Waiting && self.mode == mode;
        known && self.may_run() && !self.is_proven() && self.time == Time::Before
    }
}

type Row = (&'static str, fn(Seen) -> bool, Then);

const ROWS: &[Row] = &[
    (
        "over, gone: reap",
        |s| s.hook == HookIs::Over && s.ec2 == Ec2Says::Gone,
        Then::Reap,
    ),
    (
        "over, lives, and too old for any hook: look once at everything",
        |s| s.hook == HookIs::Over && s.ec2 != Ec2Says::Gone && s.time == Time::Stale,
        Then::Reap,
    ),
    (
        "over, lives, and its group lets it go: come again",
        |s| s.hook == HookIs::Over && s.ec2 != Ec2Says::Gone && s.time != Time::Stale && s.going,
        Then::Wait,
    ),
    (
        "over, lives, not terminating, young: come again",
        |s| s.hook == HookIs::Over && s.ec2 != Ec2Says::Gone && s.time == Time::Before && !s.going,
        Then::Wait,
    ),
    (
        "over, lives, not terminating for long: the termination was taken back",
        |s| s.hook == HookIs::Over && s.ec2 != Ec2Says::Gone && s.time == Time::Late && !s.going,
        Then::Leave,
    ),
    (
        "the group can't be asked, too old for any hook",
        |s| s.hook == HookIs::NotKnown && s.time == Time::Stale,
        Then::Reap,
    ),
    (
        "waiting, down: release",
        |s| s.waits() && matches!(s.ec2, Ec2Says::Gone | Ec2Says::Stopped),
        Then::Release,
    ),
    (
        "waiting, drain off: release",
        |s| s.waits() && s.may_run() && s.mode == "off",
        Then::Release,
    ),
    (
        "waiting, the document's own word: release",
        |s| s.waits() && s.is_proven(),
        Then::Release,
    ),
    (
        "waiting, at the deadline: release loudly",
        |s| s.waits() && s.may_run() && s.mode != "off" && !s.is_proven() && s.time != Time::Before,
        Then::ReleaseLoudly,
    ),
    (
        "the group can't be asked, before: heartbeat",
        |s| {
            s.hook == HookIs::NotKnown
                && s.may_run()
                && s.mode != "off"
                && !s.is_proven()
                && s.time == Time::Before
        },
        Then::Heartbeat,
    ),
    (
        "observe, before: heartbeat",
        |s| s.drains("observe"),
        Then::Heartbeat,
    ),
    (
        "no document for the platform: release loudly",
        |s| s.drains("ssm") && s.ec2 == Ec2Says::RunningWindows,
        Then::ReleaseLoudly,
    ),
    (
        "pending or stopping, before: heartbeat",
        |s| s.drains("ssm") && s.ec2 == Ec2Says::PendingOrStopping,
        Then::Heartbeat,
    ),
    (
        "running, none or ended otherwise: send",
        |s| {
            s.drains("ssm")
                && s.ec2 == Ec2Says::Running
                && matches!(
                    s.command,
                    CommandIs::None | CommandIs::AnsweredOtherwise | CommandIs::EndedOtherwise
                )
        },
        Then::Send,
    ),
    (
        "running, in flight or unreadable: heartbeat",
        |s| {
            s.drains("ssm")
                && s.ec2 == Ec2Says::Running
                && matches!(s.command, CommandIs::InFlight | CommandIs::NotKnown)
        },
        Then::Heartbeat,
    ),
];

fn then(next: &Next) -> Then {
    match next {
        Next::Reap => Then::Reap,
        Next::AwaitGone => Then::Wait,
        Next::Leave(_) => Then::Leave,
        Next::Release(why) if why.is_loud() => Then::ReleaseLoudly,
        Next::Release(_) => Then::Release,
        Next::Hold(_) => Then::Heartbeat,
        Next::Send(_) => Then::Send,
    }
}

fn fault() -> Fault {
    Fault::incomplete("Describe", "not now")
}

fn hook(name: &str) -> Hook {
    Hook {
        name: name.into(),
        heartbeat_timeout: seconds(3600),
        global_timeout: TimeDelta::hours(48),
    }
}

fn instance(state: InstanceState, windows: bool) -> Instance {
    Instance {
        id: manager().to_string(),
        state,
        launched: Some(now()),
        born: Some(now()),
        died: None,
        parent: None,
        key_name: None,
        spot_request: None,
        fleet: None,
        group: None,
        keep: false,
        windows,
    }
}

const NOT_GOING: [&str; 7] = [
    "Pending",
    "InService",
    "Standby",
    "Detached",
    "EnteringStandby",
    "AStateOfTheFuture",
    "",
];

/// What the group may say, with the hooks that are ours on it.
fn hooks_seen() -> Vec<(
    HookIs,
    bool,
    Result<Option<Lifecycle>, Fault>,
    Result<Vec<Hook>, Fault>,
)> {
    let says = |state: &str| {
        Ok(Some(Lifecycle {
            group: "ci-linux-asg".into(),
            state: state.into(),
        }))
    };
    let ours = || Ok(vec![hook("ci-linux-terminate"), hook("another-of-ours")]);
    let mut seen = vec![
        (HookIs::NotKnown, false, Err(fault()), ours()),
        (HookIs::NotKnown, false, Err(fault()), Err(fault())),
        (HookIs::Over, false, Ok(None), ours()),
        (HookIs::Waiting, true, says("Terminating:Wait"), ours()),
        (
            HookIs::Waiting,
            true,
            says("Terminating:Wait"),
            Err(fault()),
        ),
        // Our hook was removed while it waited: another's holds it.
        (HookIs::Over, true, says("Terminating:Wait"), Ok(vec![])),
        (
            HookIs::Over,
            true,
            says("Terminating:Wait"),
            Ok(vec![hook("another-of-ours")]),
        ),
    ];
    for state in ["Terminating", "Terminating:Proceed", "Terminating:Retained"] {
        seen.push((HookIs::Over, true, says(state), ours()));
    }
    for state in NOT_GOING {
        seen.push((HookIs::Over, false, says(state), ours()));
    }
    seen
}

fn instances_seen() -> Vec<(Ec2Says, Result<Option<Instance>, Fault>)> {
    use InstanceState::*;
    let mut seen = vec![(Ec2Says::Gone, Ok(None)), (Ec2Says::Running, Err(fault()))];
    for windows in [false, true] {
        let up = if windows {
            Ec2Says::RunningWindows
        } else {
            Ec2Says::Running
        };
        for (says, state) in [
            (up, Running),
            (up, Unknown),
            (Ec2Says::Stopped, Stopped),
            (Ec2Says::Gone, ShuttingDown),
            (Ec2Says::Gone, Terminated),
        ] {
            seen.push((says, Ok(Some(instance(state, windows)))));
        }
    }
    for state in [Pending, Stopping] {
        seen.push((Ec2Says::PendingOrStopping, Ok(Some(instance(state, false)))));
    }
    seen
}

fn commands_seen() -> Vec<(CommandIs, Command)> {
    let answered = |answer| Command::Answered(answer, "jobs=0".into());
    vec![
        (CommandIs::None, Command::None),
        (CommandIs::Proof, answered(Answer::Stopped)),
        (CommandIs::Proof, answered(Answer::NothingToDrain)),
        (CommandIs::AnsweredOtherwise, answered(Answer::Busy)),
        (CommandIs::AnsweredOtherwise, answered(Answer::Unknown)),
        (
            CommandIs::EndedOtherwise,
            Command::Ended {
                status: "Failed".into(),
            },
        ),
        (
            CommandIs::InFlight,
            Command::InFlight {
                status: "InProgress".into(),
            },
        ),
        (CommandIs::NotKnown, Command::Unreadable(fault())),
        (CommandIs::NotKnown, Command::NotRead),
    ]
}

/// The deadline of these hooks and this configuration is 7,140 s after the message.
fn times_seen() -> Vec<(Time, Delivery)> {
    let seen = |age: i64, count, max_count| Delivery {
        first_seen: now() - seconds(age),
        count,
        max_count,
    };
    vec![
        (Time::Before, seen(3500, 1, None)),
        (Time::Before, seen(3500, 9, Some(12))),
        // Counted above the maximum: it can't be the queue's own.
        (Time::Before, seen(3500, 13, Some(12))),
        (Time::Late, seen(7140, 1, None)),
        (Time::Late, seen(7200, 3, Some(100))),
        (Time::Late, seen(48 * 3600, 1, None)),
        (Time::Late, seen(49 * 3600, 1, None)),
        (Time::Late, seen(3700, 10, Some(12))),
        (Time::Late, seen(3700, 11, Some(12))),
        (Time::Late, seen(3700, 12, Some(12))),
        (Time::Stale, seen(49 * 3600 + 1, 1, None)),
        (Time::Stale, seen(30 * 86_400, 1, None)),
    ]
}

fn configs() -> Vec<(&'static str, Config)> {
    vec![
        ("ssm", config(&[])),
        ("observe", config(&[("DRAIN", "observe")])),
        ("off", config(&[("DRAIN", "off")])),
    ]
}

#[test]
fn every_combination_has_one_row_and_the_code_follows_it() {
    let mut combinations = 0;
    let mut used = vec![0; ROWS.len()];
    for (mode, config) in configs() {
        for (hook, going, lifecycle, hooks) in hooks_seen() {
            for (ec2, instance) in instances_seen() {
                for (command, newest) in commands_seen() {
                    let view = ManagerView {
                        lifecycle: lifecycle.clone(),
                        hooks: hooks.clone(),
                        instance: instance.clone(),
                        command: newest,
                        began: lifecycle_reaper::world::Began::NotTold,
                    };
                    for (time, delivery) in times_seen() {
                        let seen = Seen {
                            hook,
                            going,
                            ec2,
                            command,
                            time,
                            mode,
                        };
                        let rows: Vec<usize> =
                            (0..ROWS.len()).filter(|n| ROWS[*n].1(seen)).collect();
                        let [row] = rows.as_slice() else {
                            panic!("{} rows for {seen:?}", rows.len())
                        };
                        let next = drain::next(&terminate(), &delivery, &view, &config, now());
                        assert_eq!(
                            then(&next),
                            ROWS[*row].2,
                            "{}: {seen:?} {delivery:?} gave {next:?}",
                            ROWS[*row].0
                        );
                        used[*row] += 1;
                        combinations += 1;
                    }
                }
            }
        }
    }
    assert!(combinations > 70_000, "{combinations}");
    let unused: Vec<_> = (0..ROWS.len())
        .filter(|n| used[*n] == 0)
        .map(|n| ROWS[n].0)
        .collect();
    assert!(unused.is_empty(), "rows that nothing reaches: {unused:?}");
}

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
