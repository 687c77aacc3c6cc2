//! The drain table, row by row as the design has it, against every combination of what can be seen.
//!
//! Rows here are independent of the code: exactly one row must hold for each combination, and the code must do what
//! it says.

use super::{now, seen::*, terminate};
use lifecycle_reaper::{
    drain::{self, Next},
    world::ManagerView,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Reap,
    Wait,
    Leave,
    Release,
    ReleaseLoudly,
    Heartbeat,
    Send,
}

pub fn then(next: &Next) -> Then {
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

/// One combination, in the table's words.
#[derive(Clone, Copy, Debug)]
struct Seen {
    hook: HookIs,
    /// Whether the group says a word that begins with `Terminating`.
    going: bool,
    /// Whether EC2 could be asked.
    read: bool,
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
        |s| {
            let lives = s.ec2 != Ec2Says::Gone && s.read;
            s.hook == HookIs::Over && lives && s.time == Time::Late && !s.going
        },
        Then::Leave,
    ),
    (
        "over, not terminating for long, and EC2 could not be asked: come again",
        |s| s.hook == HookIs::Over && !s.read && s.time == Time::Late && !s.going,
        Then::Wait,
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
                        requested: None,
                        began: lifecycle_reaper::world::Began::NotTold,
                    };
                    for (time, delivery) in times_seen() {
                        let seen = Seen {
                            hook,
                            going,
                            read: view.instance.is_ok(),
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
