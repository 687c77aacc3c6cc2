//! The play: one script acted out in virtual time. An agenda of happenings, a queue, and the runs of the function,
//! interleaved by nothing but the clock; the checker watches every write and every pass.

use super::checker::Checker;
use super::runs::Run;
use super::script::{Script, TroubleKind};
use super::setting::{build_world, managers, set_variables};
use super::trigger::Queued;
use super::truth::{Time, Truth, Violation, seconds};
use crate::fake_aws::faults::Mishap;
use crate::fake_aws::views::Staleness;
use crate::fake_aws::{Clock, FakeAws, Fault, Service};
use chrono::{TimeDelta, TimeZone, Utc};
use lifecycle_reaper::handler::Handler;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where hooks' messages have an echo, SSM's invocations are so much later than their commands.
const INVOCATION_LAG: i64 = 15;

pub const HOOK: &str = "ours-terminate";
pub const OTHER_HOOK: &str = "theirs-terminate";

/// What a message leads to, as the world that sent it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageKind {
    Terminate(usize),
    Reap(usize),
    Wake,
    Sweep,
    /// To be acknowledged without a trace.
    Irrelevant,
    /// To be dead-lettered as it came.
    Unreadable,
    /// A lie about a manager: whatever becomes of it, nothing may be touched.
    Lie,
    /// A person asks for the plan: nothing at all may be written.
    Plan,
}

#[derive(Clone, Debug)]
pub enum Happening {
    Boot(usize),
    Runs(usize),
    Allocate(usize, usize),
    TagAddress(usize, usize),
    Associate(usize, usize),
    LetGo(usize, usize),
    Key(usize, usize),
    Launch(usize, usize),
    Fulfil(usize, usize),
    Tag(usize, usize),
    Job(usize, usize),
    Remove(usize, usize),
    Stop(usize),
    HasStopped(usize),
    Start(usize),
    SpotWarns(usize),
    End(usize),
    GroupNotices(usize),
    OtherHookCompletes(usize),
    ObserverLooks(usize),
    OldCommand(usize),
    Fleet(usize),
    Warms(usize),
    ReturnsFromPool(usize),
    EndsInPool(usize),
    ByHand(usize),
    CommandStarts {
        id: String,
        instance_id: String,
    },
    /// A message reaches the queue.
    Arrives {
        body: String,
        kind: MessageKind,
    },
    /// An event invokes the function itself.
    Direct {
        body: String,
        kind: MessageKind,
        attempt: u8,
    },
    Sweep,
    Noise(usize),
    /// Everything that goes wrong stops.
    Quiet,
    Kill(u64),
    Thaw(u64),
}

pub struct Play {
    pub script: Script,
    pub start: Time,
    pub aws: FakeAws,
    pub truth: Arc<Mutex<Truth>>,
    pub agenda: BTreeMap<(Time, u64), Happening>,
    pub queue: Vec<Queued>,
    pub runs: Vec<Run>,
    pub idle: Vec<Arc<Handler>>,
    pub next_run: u64,
    pub passes: u64,
    /// What the last whole sweep answered.
    pub last_sweep: Option<serde_json::Value>,
    /// What was invoked directly, so that it is known again when it comes back through the queue.
    pub asked: BTreeMap<String, MessageKind>,
    /// What could be proven an orphan at each sweep of the quiet, and for how many in a row.
    pub provable: BTreeMap<String, u32>,
    /// Whether the report tells the whole timeline, though no promise was broken.
    pub tells_all: bool,
    serial: u64,
}

/// How a history went.
#[derive(Debug)]
pub struct Report {
    pub violations: Vec<Violation>,
    pub passes: u64,
    pub calls: usize,
    pub hits: BTreeMap<usize, Fault>,
    pub timeline: Vec<(Time, String)>,
}

impl Play {
    pub fn new(script: Script) -> Self {
        // Well after the year's beginning; the past of the script begins days before.
        let start = Utc
            .with_ymd_and_hms(2025, 6, 1, 12, 0, 0)
            .single()
            .expect("a real moment");
        let clock = Clock::starting_at(start - TimeDelta::hours(60));
        let world = build_world(&script, clock);
        let aws = FakeAws::new(world);
        set_variables(&aws, &script);
        let truth = Arc::new(Mutex::new(Truth {
            managers: managers(&script),
            configured: super::setting::configured_groups(&script),
            ..Truth::default()
        }));
        aws.world().witness = Some(Box::new(Checker::new(truth.clone(), &script, start)));
        let mut play = Self {
            script,
            start,
            aws,
            truth,
            agenda: BTreeMap::new(),
            queue: Vec::new(),
            runs: Vec::new(),
            idle: Vec::new(),
            next_run: 0,
            passes: 0,
            last_sweep: None,
            asked: BTreeMap::new(),
            provable: BTreeMap::new(),
            tells_all: false,
            serial: 0,
        };
        play.let_things_go_wrong();
        play.schedule_lives();
        play.schedule_strays();
        play.schedule_fleets();
        play.schedule_neighbours();
        play.schedule_trigger();
        play
    }

    pub fn now(&self) -> Time {
        self.aws.now()
    }

    pub fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a happening on the agenda at so many seconds from the beginning.
    pub fn at(&mut self, time: i64, happening: Happening) {
        self.serial += 1;
        self.agenda
            .insert((self.start + seconds(time), self.serial), happening);
    }

    /// Puts a happening on the agenda so many seconds from now.
    pub fn later(&mut self, after: i64, happening: Happening) {
        self.at_time(self.now() + seconds(after), happening);
    }

    pub fn at_time(&mut self, time: Time, happening: Happening) {
        self.serial += 1;
        self.agenda.insert((time, self.serial), happening);
    }

    pub fn violate(&self, promise: u8, what: impl Into<String>) {
        self.truth().violate(promise, &mut self.aws.world(), what);
    }

    fn let_things_go_wrong(&mut self) {
        let mishaps = self.script.mishaps.clone();
        let truth = self.truth.clone();
        let quiet_from = self.start + seconds(self.script.quiet_from);
        let faults = mishaps.clone();
        let start = self.start;
        let stale = self.script.clone();
        self.aws.world().draw = Some(Box::new(move |request, now, run| {
            let mut truth = truth.lock().unwrap_or_else(PoisonError::into_inner);
            truth.call_count += 1;
            let number = truth.call_count;
            let of_run = truth.calls.entry(run).or_default();
            *of_run.entry(request.operation.clone()).or_default() += 1;
            if now >= quiet_from {
                return Mishap::default();
            }
            let mut mishap =
                faults.at_call(number, &request.operation, (now - start).num_seconds());
            disturb(&mut truth, &faults, run, now, &mut mishap);
            let lasting = stale_page(&stale, request, number)
                .or_else(|| trouble(&stale, request, (now - start).num_seconds()));
            if let Some(fault) = lasting {
                mishap.fault.get_or_insert(fault);
            }
            if let Some(fault) = &mishap.fault {
                truth.hits.insert(number, fault.clone());
                truth.disturbed.insert(run);
            }
            // No fault, but as it is: a command is listed before its invocation is there.
            let is_new = truth
                .last_command
                .is_some_and(|sent| now < sent + seconds(INVOCATION_LAG));
            if stale.rarities.echo.is_some()
                && is_new
                && request.operation == "GetCommandInvocation"
            {
                let unborn = Fault::Code("InvocationDoesNotExist");
                mishap.fault.get_or_insert(unborn);
            }
            mishap
        }));
        let rates = mishaps.rates;
        if rates.lag > 0.0 {
            let mut rng = fastrand::Rng::with_seed(rates.seed ^ 0x1a6);
            let lag = move || {
                if rng.f64() < rates.lag {
                    TimeDelta::milliseconds(rng.i64(0..rates.lag_seconds * 1000))
                } else {
                    TimeDelta::zero()
                }
            };
            self.aws.world().staleness = Some(Staleness::new(seconds(rates.lag_seconds), lag));
        }
        self.at(self.script.quiet_from, Happening::Quiet);
    }

    /// Plays the script to its end.
    pub fn play(mut self) -> Report {
        fastrand::seed(self.script.seed);
        let end = self.start + seconds(self.script.end);
        loop {
            self.poll_runs();
            let next_happening = self.agenda.keys().next().map(|(time, _)| *time);
            let by_itself = self.aws.world().next_launch();
            let next = [
                next_happening,
                by_itself,
                self.next_trigger(),
                self.next_of_runs(),
            ]
            .into_iter()
            .flatten()
            .min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            self.aws.clock.advance_to(next);
            self.aws.world().settle();
            while let Some(entry) = self
                .agenda
                .first_entry()
                .filter(|entry| entry.key().0 <= next)
            {
                let happening = entry.remove();
                self.happen(happening);
            }
            self.notice_ends();
            self.notice_pools();
            self.follow_up();
            self.trigger();
            if self.truth().violations.len() > 20 {
                break;
            }
        }
        self.aws.clock.advance_to(end);
        self.aws.world().settle();
        self.rest();
        self.report()
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrives { body, kind } => self.enqueue(body, kind, 0),
            Happening::Direct {
                body,
                kind,
                attempt,
            } => self.invoke_directly(body, kind, attempt),
            Happening::CommandStarts { id, instance_id } => self.start_command(&id, &instance_id),
            Happening::Sweep => self.sweep(),
            Happening::Noise(index) => self.make_noise(index),
            Happening::Quiet => {
                self.aws.world().staleness = None;
                self.aws.world().note("nothing goes wrong any more");
            }
            Happening::Kill(run) => self.kill(run, "is killed"),
            Happening::Thaw(run) => self.thaw(run),
            life => self.live(life),
        }
    }

    /// What the checker saw and the play must act on: messages, kills, freezes, the ends of commands.
    pub fn follow_up(&mut self) {
        let (outbox, visibility, kills, freezes, commands) = {
            let mut truth = self.truth();
            let truth = &mut *truth;
            let taken = (
                &mut truth.outbox,
                &mut truth.visibility,
                &mut truth.kills,
                &mut truth.freezes,
                &mut truth.commands,
            );
            (
                std::mem::take(taken.0),
                std::mem::take(taken.1),
                std::mem::take(taken.2),
                std::mem::take(taken.3),
                std::mem::take(taken.4),
            )
        };
        for message in outbox {
            self.posted(message);
        }
        for (receipt, seconds) in visibility {
            self.change_visibility(&receipt, seconds);
        }
        for (run, at) in kills {
            self.at_time(at, Happening::Kill(run));
        }
        for (run, until) in freezes {
            self.freeze(run, until);
        }
        for (id, instance_id, starts) in commands {
            self.at_time(starts, Happening::CommandStarts { id, instance_id });
        }
    }

    fn report(self) -> Report {
        let mut world = self.aws.world();
        world.witness = None;
        let mut timeline: Vec<_> = std::mem::take(&mut world.chronicle)
            .into_iter()
            .map(|note| (note.at, note.moment, note.what))
            .collect();
        let mut truth = self.truth.lock().unwrap_or_else(PoisonError::into_inner);
        if self.tells_all || !truth.violations.is_empty() {
            timeline.extend(world.calls.iter().map(|call| {
                let fault = call
                    .fault
                    .as_ref()
                    .map(|fault| format!("  [{fault:?}]"))
                    .unwrap_or_default();
                (
                    call.at,
                    call.moment,
                    format!("  run {}: {call}{fault}", call.run),
                )
            }));
            timeline.sort();
        }
        Report {
            violations: std::mem::take(&mut truth.violations),
            passes: self.passes,
            calls: truth.call_count,
            hits: std::mem::take(&mut truth.hits),
            timeline: timeline
                .into_iter()
                .map(|(at, _, line)| (at, line))
                .collect(),
        }
    }
}

/// A page of all instances that leaves out a manager, where the script has such; or the stranger, whom a tag names.
fn stale_page(script: &Script, request: &crate::fake_aws::Request, number: usize) -> Option<Fault> {
    let often = script.rarities.stale_pages? as usize;
    let is_page_of_all = request.operation == "DescribeInstances" && request.filters().is_empty();
    let stranger = script
        .rarities
        .stranger
        .filter(|stranger| !stranger.misspelt);
    (is_page_of_all && number.is_multiple_of(often)).then(|| {
        let some = number / often % (script.managers.len() + usize::from(stranger.is_some()));
        let left_out = if some < script.managers.len() {
            super::life::manager_id(some)
        } else {
            super::neighbours::STRANGER.to_owned()
        };
        Fault::Omits(vec![left_out])
    })
}

/// What a lasting trouble makes of a call.
fn trouble(script: &Script, request: &crate::fake_aws::Request, elapsed: i64) -> Option<Fault> {
    let trouble = script.rarities.trouble?;
    let is_queue = request.service == Service::Sqs;
    let fault = match trouble.kind {
        TroubleKind::QueuesRefuse => {
            (request.operation == "SendMessage").then_some(Fault::Throttled)
        }
        TroubleKind::AllHangs => (!is_queue).then_some(Fault::Hanging),
        TroubleKind::Throttled(operation) => {
            (request.operation == operation).then_some(Fault::Throttled)
        }
    };
    fault.filter(|_| (trouble.from..trouble.from + trouble.length).contains(&elapsed))
}

/// Kills or freezes the run at the call that the script says.
fn disturb(
    truth: &mut Truth,
    mishaps: &super::mishaps::Mishaps,
    run: u64,
    now: Time,
    mishap: &mut Mishap,
) {
    let disturbance = mishaps.at_run(run);
    let calls = truth.busy_run(run);
    if let Some((after, takes_effect)) = disturbance
        .killed_after
        .filter(|(after, _)| *after == calls)
    {
        mishap.fault = Some(if takes_effect {
            Fault::EffectThenSilence
        } else {
            Fault::Hanging
        });
        truth
            .kills
            .push((run, now + mishap.there + TimeDelta::milliseconds(1)));
        debug_assert_eq!(after, calls);
    }
    if let Some((_, length)) = disturbance.frozen.filter(|(after, _)| *after == calls) {
        truth.freezes.push((run, now + seconds(length)));
        truth.frozen.insert(run);
        truth.disturbed.insert(run);
    }
}
