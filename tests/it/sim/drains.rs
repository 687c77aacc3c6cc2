//! The checker at the hooks: when one may be completed, when a command may be sent, and what becomes of it.

use super::checker::{Checker, SKEW};
use super::life::manager_id;
use super::play::HOOK;
use super::script::{Agent, DrainMode, Failure, Script};
use super::truth::{Time, Truth, runs, seconds};
use crate::fake_aws::Request;
use crate::fake_aws::cases::DOCUMENT;
use crate::fake_aws::world::{Fate, World};
use chrono::TimeDelta;

/// A command so soon after the end of one that was short is hasty; so many in a row are a loop.
const HASTE: i64 = 5;
const SHORT: i64 = 60;
const HASTY_COMMANDS: u32 = 7;

impl Checker {
    pub fn hook_is_ours(&self, truth: &mut Truth, world: &mut World, request: &Request) {
        let group = request.text("AutoScalingGroupName").unwrap_or_default();
        let hook = request.text("LifecycleHookName").unwrap_or_default();
        if hook != HOOK || !self.script.groups.iter().any(|ours| ours.name == group) {
            truth.violate(
                2,
                world,
                format!("{} on the hook {hook} of {group}", request.operation),
            );
        }
    }

    /// A hook is let go only when the jobs have ended, the manager can't run any, or the deadline has come.
    pub fn completion(&self, truth: &mut Truth, world: &mut World, request: &Request) {
        self.hook_is_ours(truth, world, request);
        let now = world.now();
        if request.text("LifecycleActionResult") != Some("CONTINUE") {
            truth.violate(
                3,
                world,
                "a hook is completed with something else than CONTINUE",
            );
        }
        let id = request.text("InstanceId").unwrap_or_default();
        let Some(number) = truth.manager_named(id) else {
            return;
        };
        let group = request.text("AutoScalingGroupName").unwrap_or_default();
        let Some(opened) = world
            .groups
            .get(group)
            .and_then(|group| group.open_action(HOOK, id))
            .map(|action| action.opened)
        else {
            return;
        };
        let settings = &self.script.settings;
        let limit = settings.limit();
        // A little before the hook's own end, so that the function is the one who decides.
        let deadline = opened + seconds(limit - 60.min(limit / 10) - SKEW);
        let manager = &truth.managers[number];
        let can_run_jobs = truth.lives(world, number) && !manager.stopped;
        let last_deliveries = self.script.settings.max_receive_count.is_some_and(|max| {
            truth
                .receives_of
                .get(&number)
                .is_some_and(|count| count + 2 >= max)
        });
        let allowed = settings.drain == DrainMode::Off
            || !can_run_jobs
            || manager.is_drained(now)
            || now >= deadline
            || last_deliveries;
        if !allowed {
            let why = format!(
                "manager {number} still runs jobs until {:?}, and the deadline comes at {deadline}",
                manager.busy_until()
            );
            truth.violate(3, world, format!("a hook is completed too early: {why}"));
        }
    }

    /// What a command finds on the instance, and whether it should have been sent at all.
    pub fn command(&self, truth: &mut Truth, world: &mut World, request: &Request) {
        let now = world.now();
        let ids = request.list("InstanceIds");
        let [id] = ids.as_slice() else { return };
        let Some(number) = truth.manager_named(id) else {
            return truth.violate(2, world, format!("a command to {id}, which is no manager"));
        };
        let terminating = world
            .groups
            .values()
            .any(|group| group.actions.iter().any(|action| action.instance_id == *id));
        if !terminating && !truth.managers[number].warned_by_spot {
            truth.violate(
                2,
                world,
                format!("a drain command to the healthy manager {number}"),
            );
        }
        // A run that began after it was sent, and whose calls nothing disturbs, can't overlook it.
        let run = world.run;
        let is_known = |truth: &Truth, listed: Time| {
            let begun = truth.begun.get(&run);
            !truth.disturbed.contains(&run) && begun.is_some_and(|begun| *begun > listed)
        };
        let in_flight = world.ssm.commands.iter().any(|command| {
            let waits = !matches!(command.status(now).0, "Pending" | "InProgress");
            command.instance_id == *id
                && command.document == DOCUMENT
                && !waits
                && (now - command.sent > seconds(150)
                    || is_known(truth, command.sent + command.fate.visible_after))
        });
        if in_flight {
            truth.violate(
                3,
                world,
                format!("a second command to manager {number} while one is in flight"),
            );
        }
        let ended = world
            .ssm
            .commands
            .iter()
            .filter(|command| command.instance_id == *id && command.document == DOCUMENT)
            // One that took its time may be followed at once.
            .filter(|command| now - command.sent < seconds(SHORT))
            .filter_map(|command| Some(command.sent + command.fate.ends_after?))
            .max();
        // What is denied for good makes a drain hurry, whatever its hook would bear.
        let is_hasty = self.script.mishaps.rates.denied.is_none()
            && ended.is_some_and(|ended| now - ended < seconds(HASTE));
        let manager = &mut truth.managers[number];
        manager.hasty = if is_hasty { manager.hasty + 1 } else { 0 };
        if manager.hasty > HASTY_COMMANDS {
            let what =
                format!("command after command to manager {number}, each at the end of the last");
            truth.violate(6, world, what);
        }
        truth.managers[number].commands += 1;
        truth.last_command = Some(now);
        // What becomes of it is decided when it starts: until then jobs come and go, and the manager may die.
        let pending = Fate {
            starts_after: seconds(self.delay(number)),
            ends_after: None,
            ..Fate::says("stopped")
        };
        world.ssm.fates.push_front(Fate {
            visible_after: seconds(if self.script.rarities.echo.is_some() {
                0
            } else {
                number as i64 * 5 % 12
            }),
            ..pending
        });
    }

    /// How long SSM takes to start a command there.
    fn delay(&self, number: usize) -> i64 {
        match self.script.managers[number].agent {
            Agent::Slow(delay) => delay,
            Agent::Deaf | Agent::Absent => 60,
            _ => 2,
        }
    }
}

/// What becomes of a command that starts now.
pub fn fate(truth: &mut Truth, world: &World, script: &Script, number: usize) -> Fate {
    let now = world.now();
    let sent_before = truth.managers[number].commands - 1;
    if !runs(world, &manager_id(number)) {
        return Fate::ends("Failed", "Undeliverable");
    }
    match script.managers[number].agent {
        Agent::Deaf | Agent::Absent => Fate::ends("TimedOut", "DeliveryTimedOut"),
        Agent::Fails(times, failure) if sent_before < u32::from(times) => failing(failure),
        Agent::Hangs => Fate::never_ends(),
        Agent::Aborts => {
            let manager = &mut truth.managers[number];
            manager.aborted = true;
            manager.closes.get_or_insert(now);
            Fate::says("aborted")
        }
        Agent::Idle => Fate::says("nothing-to-drain"),
        Agent::Good | Agent::Slow(_) | Agent::Fails(..) => {
            drain(truth, number, now, seconds(script.settings.document_waits))
        }
    }
}

/// The service closes, and the document waits a bounded time for its jobs.
fn drain(truth: &mut Truth, number: usize, now: Time, waits: TimeDelta) -> Fate {
    let manager = &mut truth.managers[number];
    let closes = *manager.closes.get_or_insert(now);
    let done = manager.busy_until().unwrap_or(closes).max(now) + seconds(1);
    let (word, ends) = if done - now <= waits {
        ("stopped", done)
    } else {
        ("busy", now + waits)
    };
    Fate::says(word).after(ends - now)
}

fn failing(failure: Failure) -> Fate {
    let fate = match failure {
        Failure::Failed => Fate::ends("Failed", "Failed"),
        Failure::ExecutionTimedOut => Fate::ends("TimedOut", "ExecutionTimedOut"),
        Failure::Undeliverable => Fate::ends("Failed", "Undeliverable"),
        Failure::Cancelled => Fate::ends("Cancelled", "Cancelled"),
        Failure::Silent => Fate {
            output: String::new(),
            ..Fate::says("stopped")
        },
        Failure::Babble => Fate {
            output: "all stopped, lifecycle-reaper says: stopped\nlifecycle-reaper: shrug\n".into(),
            ..Fate::says("stopped")
        },
        Failure::UnknownStatus => Fate::ends("Vanished", "Vanished"),
        Failure::HalfTruth => Fate {
            output: Fate::says("stopped").output,
            ..Fate::ends("TimedOut", "ExecutionTimedOut")
        },
    };
    fate.after(seconds(5))
}
