//! The plan: the steps to take, each with its reason; what is kept, each with its reason; when to come again.
//!
//! A plan is about the hook *or* about reaping, never both: a completion that fails must not leave deletions that
//! go ahead. Plans are made by plain functions of what was seen and of `now`.

use crate::{
    config::{Config, Drain},
    drain::{self, Deadline, Next},
    fault::Disposition,
    pace,
    reap::{self, Evidence, Judgement, REAPERS, Verdict},
    task::{Delivery, InstanceId, Task},
    world::{Hook, ManagerView, Resource, Time, World},
};
use chrono::TimeDelta;
use std::collections::{BTreeMap, HashSet};

/// One call that changes something about a hook or its manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainAction {
    /// Restart the hook's heartbeat timeout.
    Heartbeat(String),
    /// Complete the hook with `CONTINUE`.
    Complete(String),
    /// Start the drain document.
    Send(String),
}

/// What to do about a waiting manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainPlan {
    /// The manager.
    pub manager: InstanceId,
    /// Its group.
    pub group: String,
    /// What comes next, and why.
    pub next: Next,
    /// The calls, in order.
    pub actions: Vec<DrainAction>,
    /// The calls instead, where SSM can't run commands on the manager's platform.
    pub if_unsupported: Vec<DrainAction>,
    /// When to come again; `None` = not by itself.
    pub again: Option<TimeDelta>,
    /// When the drain ends whatever happens.
    pub deadline: Deadline,
}

/// Plans the next step of a drain, from what [`drain::next`] said.
pub fn plan_drain(
    task: &Task,
    delivery: &Delivery,
    view: &ManagerView,
    next: Next,
    config: &Config,
    now: Time,
) -> Option<DrainPlan> {
    let manager = task.manager()?.clone();
    let (group, hook_names) = names(task, view);
    let hooks: Vec<Hook> = drain::hooks_of(task, view).into_iter().cloned().collect();
    let deadline = drain::deadline(delivery.first_seen, &hooks, config);
    let each = |action: fn(String) -> DrainAction| {
        hook_names.iter().cloned().map(action).collect::<Vec<_>>()
    };
    let (actions, again) = match &next {
        Next::Reap | Next::Leave(_) => (vec![], None),
        Next::AwaitGone => (vec![], Some(pace::until_gone(task, delivery, view))),
        Next::Release(_) => (each(DrainAction::Complete), Some(pace::SHORTEST_DELAY)),
        Next::Hold(_) | Next::Send(_) => {
            let heartbeat = hooks.iter().map(|h| h.heartbeat_timeout).min();
            let delay = pace::while_draining(task, delivery, heartbeat, deadline.at, now);
            let mut actions = if view.may_wait() {
                each(DrainAction::Heartbeat)
            } else {
                vec![]
            };
            if let (Next::Send(_), Drain::Ssm { document }) = (&next, &config.drain) {
                actions.push(DrainAction::Send(document.clone()));
            }
            (actions, Some(delay))
        }
    };
    let if_unsupported = each(DrainAction::Complete);
    let comes_by_itself = matches!(task, Task::Terminate { .. });
    Some(DrainPlan {
        manager,
        group,
        next,
        actions,
        if_unsupported,
        again: again.filter(|_| comes_by_itself),
        deadline,
    })
}

/// Group and hooks: the message names them, or the group does.
fn names(task: &Task, view: &ManagerView) -> (String, Vec<String>) {
    match task {
        Task::Terminate { group, hook, .. } => (group.clone(), vec![hook.clone()]),
        _ => (
            view.in_group().map(|l| l.group.clone()).unwrap_or_default(),
            drain::hooks_of(task, view)
                .into_iter()
                .map(|h| h.name.clone())
                .collect(),
        ),
    }
}

/// One step of a reaping plan.
#[derive(Clone, Debug)]
pub enum Step {
    /// Delete an orphan.
    Delete(Resource),
    /// Write down that an address was unassociated now.
    Mark(Resource, Time),
    /// Forget the first look at an address.
    Unmark(Resource),
}

impl Step {
    /// The resource that it is about.
    pub fn resource(&self) -> &Resource {
        match self {
            Self::Delete(resource) | Self::Mark(resource, _) | Self::Unmark(resource) => resource,
        }
    }
}

/// What to delete, what to keep, and when to look again.
#[derive(Clone, Debug, Default)]
pub struct ReapPlan {
    /// The steps by kind, kinds in the order of [`REAPERS`].
    pub steps: Vec<(&'static str, Vec<Step>)>,
    /// Every decision.
    pub judged: Vec<(&'static str, Judgement)>,
    /// How many orphans wait for the next pass, because one pass deletes only so many.
    pub over_limit: usize,
    /// When something that was deferred can be judged.
    pub next_look: Option<Time>,
}

impl ReapPlan {
    /// Counts by kind and verdict.
    pub fn counts(&self) -> BTreeMap<&'static str, BTreeMap<&'static str, usize>> {
        let mut counts = BTreeMap::<_, BTreeMap<_, _>>::new();
        for (kind, judgement) in &self.judged {
            *counts
                .entry(*kind)
                .or_default()
                .entry(judgement.verdict.word())
                .or_default() += 1;
        }
        counts
    }

    /// How many deletions it holds.
    pub fn deletions(&self) -> usize {
        self.steps
            .iter()
            .flat_map(|(_, steps)| steps)
            .filter(|s| matches!(s, Step::Delete(_)))
            .count()
    }
}

/// Judges everything that the world shows, and plans what may be done in one pass.
pub fn plan_reap(task: &Task, evidence: &Evidence<'_>) -> ReapPlan {
    let (world, config, now) = (evidence.world, evidence.config, evidence.now);
    let mut plan = ReapPlan::default();
    for reaper in REAPERS.iter().filter(|r| config.kinds.contains(&r.kind())) {
        // A kind that was not read to its end is not judged: what is missing may be what protects the rest.
        if world
            .resources
            .get(reaper.kind())
            .is_some_and(|l| !l.is_complete())
        {
            continue;
        }
        let begin = plan.judged.len();
        let candidates = reaper.candidates(world, evidence);
        let judged = candidates.filter_map(|c| reaper.judge(&c, evidence));
        plan.judged.extend(judged.map(|j| (reaper.kind(), j)));
        let (before, judged) = plan.judged.split_at_mut(begin);
        if reaper.kind() == reap::WORKERS {
            hold_for_starters(judged, before, world);
        }
        plan.over_limit += put_off(judged, task, config.max_deletions, now);
        let judged = || judged.iter().map(|(_, judgement)| judgement);
        plan.steps
            .push((reaper.kind(), judged().filter_map(step).collect()));
        let looks = judged()
            .filter(|j| concerns(task, j))
            .filter_map(|j| look_again(j, config, now));
        plan.next_look = looks.chain(plan.next_look).min();
    }
    plan
}

/// Defers the workers whose spot request or fleet was put off, or could not be looked at: a persistent one that outlives
/// its worker starts another. A listing that is denied never comes, so it holds nothing up.
fn hold_for_starters(
    workers: &mut [(&str, Judgement)],
    before: &[(&str, Judgement)],
    world: &World,
) {
    let is_unread = |kind: &str| {
        let fault = world.resources.get(kind).and_then(|l| l.fault.as_ref());
        fault.is_some_and(|fault| fault.disposition == Disposition::Retry)
    };
    let put_off = before.iter().filter(|(kind, j)| {
        reap::STARTERS.contains(kind) && matches!(j.verdict, Verdict::Defer(_))
    });
    let put_off: HashSet<&str> = put_off
        .flat_map(|(_, j)| [Some(j.resource.id.as_str()), j.resource.instance.as_deref()])
        .flatten()
        .collect();
    let orphans = workers.iter_mut().map(|(_, j)| j);
    for worker in orphans.filter(|j| j.verdict == Verdict::Orphan) {
        let of = &worker.resource;
        let starters = [
            (reap::FLEETS, &of.fleet),
            (reap::SPOT_REQUESTS, &of.spot_request),
        ];
        let unread = starters
            .iter()
            .any(|(kind, starter)| starter.is_some() && is_unread(kind));
        let mut names = starters.iter().filter_map(|(_, s)| s.as_deref());
        let why = if unread {
            "what started it could not be listed and must go first"
        } else if put_off.contains(of.id.as_str()) || names.any(|name| put_off.contains(name)) {
            "what started it waits and must go first"
        } else {
            continue;
        };
        worker.verdict = Verdict::Defer(None);
        worker.rule = "starter-first";
        worker.evidence = format!("an orphan ({}), but {why}", worker.evidence);
    }
}

/// Defers the orphans beyond `limit`; returns how many those are.
///
/// The task's own manager comes first. Which of the others do changes from pass to pass, so that resources that EC2
/// refuses to delete don't hold them up.
fn put_off(judged: &mut [(&str, Judgement)], task: &Task, limit: usize, now: Time) -> usize {
    let mut orphans: Vec<_> = judged
        .iter_mut()
        .map(|(_, judgement)| judgement)
        .filter(|j| j.verdict == Verdict::Orphan)
        .collect();
    if orphans.len() <= limit {
        return 0;
    }
    // A spot request draws the lot of its worker, so that the two go in one pass.
    let drawn_for = |r: &Resource| pace::lot(r.instance.as_deref().unwrap_or(&r.id), now);
    let own = task.manager().map(InstanceId::as_str);
    let is_own = |j: &Judgement| own.is_some() && j.owner.as_deref() == own;
    orphans.sort_by_cached_key(|j| (!is_own(j), drawn_for(&j.resource)));
    let over = orphans.len() - limit;
    for judgement in orphans.into_iter().skip(limit) {
        judgement.verdict = Verdict::Defer(None);
        judgement.evidence = format!(
            "an orphan ({}), beyond the {limit} deletions of one pass",
            judgement.evidence
        );
    }
    over
}

fn step(judgement: &Judgement) -> Option<Step> {
    match judgement.verdict {
        Verdict::Orphan => Some(Step::Delete(judgement.resource.clone())),
        Verdict::FirstLook(at) => Some(Step::Mark(judgement.resource.clone(), at)),
        Verdict::ForgetLook => Some(Step::Unmark(judgement.resource.clone())),
        Verdict::Defer(_) | Verdict::Keep | Verdict::Unproven => None,
    }
}

/// When a deferred resource is worth another look.
fn look_again(judgement: &Judgement, config: &Config, now: Time) -> Option<Time> {
    match judgement.verdict {
        // A name that bears a time in the future is never old enough: nobody waits for it.
        Verdict::Defer(Some(until)) => {
            Some(until).filter(|until| *until <= now + config.grace.max(config.worker_grace))
        }
        Verdict::Defer(None) => Some(now + pace::SETTLE),
        Verdict::FirstLook(at) => Some(at + config.grace),
        _ => None,
    }
}

/// Whether a task waits for a resource: for what belongs to its own manager or to nobody that is named. What belongs
/// to another manager has a task of its own, or a sweep.
fn concerns(task: &Task, judgement: &Judgement) -> bool {
    let owner = judgement.owner.as_deref();
    task.manager()
        .is_none_or(|manager| owner.is_none_or(|owner| owner == manager.as_str()))
}
