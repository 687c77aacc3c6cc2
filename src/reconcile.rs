//! One pass: observe, plan, act, and say what comes next.
//!
//! A pass doesn't wait for the world and remembers nothing between deliveries: the state is in AWS. Every pass may
//! run twice at once, late, or be cut off after any call.

use crate::{
    act::{self, Results},
    aws::Aws,
    check::check,
    config::{Config, Mode},
    drain::{self, Next},
    fault::{Disposition, Fault},
    observe, pace,
    plan::{DrainPlan, ReapPlan, plan_drain, plan_reap},
    reap::{Evidence, OwnerState},
    task::{Change, Delivery, InstanceId, Task, ToldBy},
    world::{Answer, Command, ManagerView, Time, World},
};
use chrono::TimeDelta;

/// What comes after a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do.
    Done,
    /// Come again after so long.
    Again(TimeDelta),
    /// A person must act.
    Failed(Fault),
}

impl Outcome {
    /// The word for logs and replies.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done => "Done",
            Self::Again(_) => "Again",
            Self::Failed(_) => "Failed",
        }
    }
}

/// What one pass did, for the log, the reply and the metrics.
#[derive(Clone, Debug)]
pub struct Report {
    /// What comes next.
    pub outcome: Outcome,
    /// Why, in words.
    pub reason: String,
    /// Every decision about a resource.
    pub plan: ReapPlan,
    /// What became of the steps.
    pub results: Results,
    /// The hook that this pass released, and how long it had waited.
    pub released: Option<Released>,
    /// Managers that wait in a hook, as a sweep found them.
    pub waiting: Vec<InstanceId>,
}

/// A hook that was completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// Why.
    pub why: drain::Release,
    /// Since the task was first seen.
    pub after: TimeDelta,
}

impl Report {
    fn new(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self {
            outcome,
            reason: reason.into(),
            plan: ReapPlan::default(),
            results: Results::default(),
            released: None,
            waiting: vec![],
        }
    }
}

/// A sweep that continues for longer leaves the rest to the next one: sweeps must not pile up on the queue.
const LONGEST_SWEEP: TimeDelta = TimeDelta::hours(12);
/// At most so many waiting managers are woken by one sweep.
const WAKES_PER_SWEEP: usize = 50;

/// Runs one pass for `task`.
pub async fn pass(aws: &Aws, config: &Config, task: &Task, delivery: &Delivery) -> Report {
    match task {
        Task::Terminate {
            manager,
            to_warm_pool,
            ..
        } => terminate(aws, config, task, delivery, manager, *to_warm_pool).await,
        Task::Wake { manager, .. } => wake(aws, config, task, delivery, manager).await,
        Task::Reap { manager, told_by } => {
            reap_one(aws, config, task, delivery, manager, *told_by).await
        }
        Task::Sweep { .. } => sweep(aws, config, task, delivery).await,
    }
}

async fn terminate(
    aws: &Aws,
    config: &Config,
    task: &Task,
    delivery: &Delivery,
    manager: &InstanceId,
    to_warm_pool: bool,
) -> Report {
    let view = observe::manager(aws, task, delivery, manager, config).await;
    match drain::next(task, delivery, &view, config, aws.now()) {
        Next::Reap if to_warm_pool => Report::new(
            Outcome::Done,
            "the manager went to its warm pool: nothing of it is reaped",
        ),
        Next::AwaitGone if to_warm_pool => Report::new(
            Outcome::Done,
            "released to the warm pool: nothing of it is reaped",
        ),
        Next::Reap => {
            let drained = matches!(
                view.command,
                Command::Answered(Answer::Stopped | Answer::NothingToDrain, _)
            );
            let world = observe::world(aws, config).await;
            reap(aws, config, task, delivery, &world, drained).await
        }
        next => drain_step(aws, config, task, delivery, &view, next).await,
    }
}

/// One look at one manager; whatever comes of it, the hook's own message or the sweep carries on.
async fn wake(
    aws: &Aws,
    config: &Config,
    task: &Task,
    delivery: &Delivery,
    manager: &InstanceId,
) -> Report {
    let view = observe::manager(aws, task, delivery, manager, config).await;
    // The group knows since when the manager terminates; the wake itself is only moments old.
    let delivery = Delivery {
        first_seen: view.began.unwrap_or(delivery.first_seen),
        count: 1,
        max_count: None,
    };
    let report = match drain::next(task, &delivery, &view, config, aws.now()) {
        Next::Leave(reason) => Report::new(Outcome::Done, reason),
        Next::Reap | Next::AwaitGone => Report::new(Outcome::Done, "no hook of ours waits for it"),
        next => drain_step(aws, config, task, &delivery, &view, next).await,
    };
    match report.outcome {
        Outcome::Again(_) => Report {
            outcome: Outcome::Done,
            ..report
        },
        Outcome::Done | Outcome::Failed(_) => report,
    }
}

async fn drain_step(
    aws: &Aws,
    config: &Config,
    task: &Task,
    delivery: &Delivery,
    view: &ManagerView,
    next: Next,
) -> Report {
    let now = aws.now();
    let Some(plan) = plan_drain(task, delivery, view, next, config, now) else {
        return Report::new(Outcome::Done, "the task is about no manager");
    };
    let reason = reason_of(&plan.next);
    log_drain_plan(&plan, view, delivery, &reason, now);
    if config.mode == Mode::Plan {
        let left = drain::hooks_of(task, view)
            .iter()
            .map(|h| {
                (h.heartbeat_timeout - delivery.age(now))
                    .num_seconds()
                    .max(0)
            })
            .min();
        tracing::warn!(instance_id = %plan.manager, hook_seconds_left = left, "MODE=plan: a hook waits and nobody here completes it; would do: {reason}");
        return Report::new(Outcome::Done, format!("MODE=plan, would do: {reason}"));
    }
    let faults = act::drain(aws, &plan).await;
    let mut report = Report::new(
        drain_outcome(task, delivery, &plan, view, &faults, now),
        reason,
    );
    if let (Next::Release(why), true) = (&plan.next, faults.is_empty()) {
        report.released = Some(Released {
            why: why.clone(),
            after: delivery.age(now),
        });
    }
    report
}

fn reason_of(next: &Next) -> String {
    match next {
        Next::Reap => "reap".into(),
        Next::AwaitGone => {
            "no hook waits, but EC2 says that the manager lives: waiting until it is gone".into()
        }
        Next::Release(why) => format!("release: {}", why.reason()),
        Next::Hold(why) => format!("heartbeat: {why}"),
        Next::Send(why) => format!("drain: {why}"),
        Next::Leave(why) => why.clone(),
    }
}

fn log_drain_plan(
    plan: &DrainPlan,
    view: &ManagerView,
    delivery: &Delivery,
    reason: &str,
    now: Time,
) {
    let lifecycle = view
        .lifecycle
        .as_ref()
        .ok()
        .and_then(Option::as_ref)
        .map_or("none", |l| l.state.as_str());
    let state = match &view.instance {
        Ok(instance) => instance.as_ref().map_or("absent", |i| i.state.word()),
        Err(_) => "unknown",
    };
    let seconds_left = (plan.deadline.at - now).num_seconds();
    let loud = matches!(&plan.next, Next::Release(why) if why.is_loud())
        || (plan.next == Next::AwaitGone && seconds_left < 0);
    if loud {
        tracing::warn!(
            instance_id = %plan.manager, group = plan.group, lifecycle, state, delivery = delivery.count,
            deadline_seconds = seconds_left, deadline_bound_by = plan.deadline.bound_by, "planned: {reason}",
        );
    } else {
        tracing::info!(
            instance_id = %plan.manager, group = plan.group, lifecycle, state, delivery = delivery.count,
            deadline_seconds = seconds_left, deadline_bound_by = plan.deadline.bound_by, "planned: {reason}",
        );
    }
    for fault in [
        view.lifecycle.as_ref().err(),
        view.hooks.as_ref().err(),
        view.instance.as_ref().err(),
    ]
    .into_iter()
    .flatten()
    {
        tracing::error!(instance_id = %plan.manager, aws_code = fault.code, %fault, "not read");
    }
    if let Command::Unreadable(fault) = &view.command {
        tracing::error!(instance_id = %plan.manager, aws_code = fault.code, %fault, "not read");
    }
}

/// What comes after a drain step, given what failed.
fn drain_outcome(
    task: &Task,
    delivery: &Delivery,
    plan: &DrainPlan,
    view: &ManagerView,
    faults: &[Fault],
    now: Time,
) -> Outcome {
    let again = plan.again.unwrap_or(pace::SHORTEST_DELAY);
    let is_late = now >= plan.deadline.at;
    let unreadable = view.lifecycle.as_ref().err();
    // Before the deadline a person may still put it right; at the deadline the hook has had all that we can do.
    if let Some(stop) = faults
        .iter()
        .chain(unreadable)
        .find(|f| f.disposition == Disposition::Stop && is_late)
    {
        return Outcome::Failed(stop.clone());
    }
    if faults.is_empty() {
        return Outcome::Again(again);
    }
    if faults.iter().any(|f| f.disposition == Disposition::Retry) {
        return Outcome::Again(again.min(pace::backoff(task, delivery)));
    }
    // Two looks at "no active lifecycle action" lie at least this far apart.
    if faults.iter().any(|f| f.disposition == Disposition::Gone)
        && matches!(plan.next, Next::Release(_))
    {
        return Outcome::Again(again.max(pace::SETTLE));
    }
    Outcome::Again(again)
}

/// A manager is said to be gone: reap, if EC2 agrees.
async fn reap_one(
    aws: &Aws,
    config: &Config,
    task: &Task,
    delivery: &Delivery,
    manager: &InstanceId,
    told_by: ToldBy,
) -> Report {
    let world = observe::world(aws, config).await;
    let state = Evidence::of(&world, task, false, config, aws.now()).owner_state(manager.as_str());
    if let OwnerState::Live(word) = state {
        let reason = format!("refused: the manager {manager} is {word}; nothing of it is reaped");
        tracing::warn!(instance_id = %manager, state = word, "manager alive: nothing is reaped");
        let is_stale = delivery.age(aws.now()) > drain::LONGEST_WAIT;
        return match told_by {
            ToldBy::TerminateSuccessful if !is_stale && config.mode == Mode::Enforce => {
                Report::new(Outcome::Again(pace::SHORTEST_DELAY), reason)
            }
            _ => Report::new(Outcome::Done, reason),
        };
    }
    reap(aws, config, task, delivery, &world, false).await
}

/// Looks at everything, and wakes each manager that waits in a hook: its message may have been lost.
async fn sweep(aws: &Aws, config: &Config, task: &Task, delivery: &Delivery) -> Report {
    let world = observe::world(aws, config).await;
    let waiting = Evidence::of(&world, task, false, config, aws.now()).waiting_managers();
    let mut report = reap(aws, config, task, delivery, &world, false).await;
    if writes(task, config) {
        for manager in waiting.iter().take(WAKES_PER_SWEEP) {
            let task = Task::Wake {
                manager: manager.clone(),
                change: Change::FoundWaiting,
            };
            let woken = wake(aws, config, &task, &Delivery::first(aws.now()), manager).await;
            tracing::info!(instance_id = %manager, outcome = woken.outcome.word(), "found waiting: {}", woken.reason);
            report.released = report.released.or(woken.released);
        }
    }
    report.waiting = waiting;
    if matches!(report.outcome, Outcome::Again(_)) && delivery.age(aws.now()) > LONGEST_SWEEP {
        report.outcome = Outcome::Done;
        report.reason = format!("{}; left to the next sweep", report.reason);
    }
    report
}

fn writes(task: &Task, config: &Config) -> bool {
    config.mode == Mode::Enforce && !matches!(task, Task::Sweep { writes: false })
}

async fn reap(
    aws: &Aws,
    config: &Config,
    task: &Task,
    delivery: &Delivery,
    world: &World,
    drained: bool,
) -> Report {
    let now = aws.now();
    let plan = plan_reap(task, &Evidence::of(world, task, drained, config, now));
    log_reap_plan(&plan, world, config, now);
    if let Err(violation) = check(&plan, world, config, now) {
        tracing::error!(%violation, "nothing is deleted");
        return Report {
            plan,
            ..Report::new(
                Outcome::Failed(Fault::stop("check", violation.to_string())),
                violation.to_string(),
            )
        };
    }
    if !writes(task, config) {
        let reason = format!("nothing is written: {} would be deleted", plan.deletions());
        let faults = unread(world, config);
        let results = Results {
            faults,
            ..Results::default()
        };
        return Report {
            plan,
            results,
            ..Report::new(Outcome::Done, reason)
        };
    }
    let mut results = act::reap(aws, &plan).await;
    results.faults.extend(unread(world, config));
    let (outcome, reason) = reap_outcome(task, delivery, &plan, &results, now);
    Report {
        plan,
        results,
        ..Report::new(outcome, reason)
    }
}

/// What could not be read to its end, of all that is judged or protects.
fn unread(world: &World, config: &Config) -> Vec<Fault> {
    let kinds = world
        .resources
        .iter()
        .filter(|(kind, _)| config.kinds.contains(kind))
        .filter_map(|(_, l)| l.fault.clone());
    kinds
        .chain(world.instances.fault.clone())
        .chain(world.members.fault.clone())
        .collect()
}

/// What comes after a reaping pass, given what failed.
fn reap_outcome(
    task: &Task,
    delivery: &Delivery,
    plan: &ReapPlan,
    results: &Results,
    now: Time,
) -> (Outcome, String) {
    if let Some(fault) = results
        .faults
        .iter()
        .find(|f| f.disposition == Disposition::Retry)
    {
        return (
            Outcome::Again(pace::backoff(task, delivery)),
            format!("not all could be read or deleted: {fault}"),
        );
    }
    let deleted: usize = results.deleted.values().sum();
    if results.effective() > 0 || plan.over_limit > 0 {
        let reason = format!(
            "{deleted} deleted, {} wait for the next pass: another look must find nothing",
            plan.over_limit
        );
        return (Outcome::Again(pace::SETTLE), reason);
    }
    if let Some(look) = plan.next_look {
        let delay =
            pace::whole_seconds(look - now).clamp(pace::SHORTEST_DELAY, pace::LONGEST_DELAY);
        return (
            Outcome::Again(delay),
            "something can't be judged yet".into(),
        );
    }
    match results.faults.first() {
        Some(fault) => (Outcome::Failed(fault.clone()), fault.to_string()),
        None => (Outcome::Done, "nothing is left".into()),
    }
}

fn log_reap_plan(plan: &ReapPlan, world: &World, config: &Config, now: Time) {
    for (kind, judgement) in &plan.judged {
        let age_seconds = judgement.born.map(|born| (now - born).num_seconds());
        let state = judgement.owner_state.map(OwnerState::word);
        tracing::info!(
            kind,
            id = judgement.resource.id,
            age_seconds,
            owner = judgement.owner,
            owner_state = state,
            rule = judgement.rule,
            verdict = judgement.verdict.word(),
            "{}",
            judgement.evidence,
        );
        if let Some(tool) = judgement
            .resource
            .managed_by
            .as_deref()
            .filter(|_| judgement.resource.claimed)
        {
            tracing::warn!(
                kind,
                id = judgement.resource.id,
                tool,
                "carries EIP_TAG and looks managed by {tool}: EIP_TAG is for addresses that nobody manages"
            );
        }
    }
    for fault in unread(world, config) {
        tracing::error!(aws_code = fault.code, %fault, "not read to its end: what hangs on it is not judged");
    }
    tracing::info!(counts = %serde_json::json!(plan.counts()), over_limit = plan.over_limit, "planned: {} to delete", plan.deletions());
}
