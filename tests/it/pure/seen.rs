//! What can be seen of a manager, every value of it, with the word that the drain table has for it.

use super::{config, manager, now, seconds};
use chrono::TimeDelta;
use lifecycle_reaper::{
    config::Config,
    fault::Fault,
    task::Delivery,
    world::{Answer, Command, Hook, Instance, InstanceState, Lifecycle},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookIs {
    Waiting,
    Over,
    NotKnown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ec2Says {
    Gone,
    Stopped,
    PendingOrStopping,
    Running,
    RunningWindows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandIs {
    None,
    Proof,
    AnsweredOtherwise,
    EndedOtherwise,
    InFlight,
    NotKnown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    Before,
    Late,
    /// Older than any hook can wait.
    Stale,
}

pub fn fault() -> Fault {
    Fault::incomplete("Describe", "not now")
}

pub fn hook(name: &str) -> Hook {
    Hook {
        name: name.into(),
        heartbeat_timeout: seconds(3600),
        global_timeout: TimeDelta::hours(48),
    }
}

pub fn instance(state: InstanceState, windows: bool) -> Instance {
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

pub const NOT_GOING: [&str; 7] = [
    "Pending",
    "InService",
    "Standby",
    "Detached",
    "EnteringStandby",
    "AStateOfTheFuture",
    "",
];

/// The table's word, whether the group lets the instance go, what the group says, and the hooks that are ours on it.
pub type HookSeen = (
    HookIs,
    bool,
    Result<Option<Lifecycle>, Fault>,
    Result<Vec<Hook>, Fault>,
);

/// What the group may say.
pub fn hooks_seen() -> Vec<HookSeen> {
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
        // What no group has is on its way out.
        (HookIs::Over, true, Ok(None), ours()),
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

pub fn instances_seen() -> Vec<(Ec2Says, Result<Option<Instance>, Fault>)> {
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

pub fn commands_seen() -> Vec<(CommandIs, Command)> {
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
pub fn times_seen() -> Vec<(Time, Delivery)> {
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

pub fn configs() -> Vec<(&'static str, Config)> {
    vec![
        ("ssm", config(&[])),
        ("observe", config(&[("DRAIN", "observe")])),
        ("off", config(&[("DRAIN", "off")])),
    ]
}
