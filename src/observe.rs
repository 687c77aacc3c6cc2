//! Observing: all reads of a pass, in the order that makes them safe together.
//!
//! What may be deleted is read first, and what protects it afterwards: instances, then the members of the groups.
//! So whatever appears while we read is either not yet a candidate, or already protected.

use crate::{
    aws::{Aws, Evidential, NewestCommand},
    config::{Config, Drain},
    drain::{deadline, hooks_of},
    fault::Fault,
    preflight::GroupFacts,
    reap::{self, REAPERS, Reaper},
    task::{Change, Delivery, InstanceId, Task},
    world::{
        Began, Command, Instance, InstanceState, Listing, ManagerView, Resource, Stage, Time, World,
    },
};
use chrono::TimeDelta;
use futures_util::future::{join, join_all, join3};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tracing::Instrument;

/// A command that was requested shortly before the message was sent may be the message's own, sent by a twin.
const BEFORE_FIRST_SEEN: TimeDelta = TimeDelta::seconds(60);

/// EC2 has needed minutes to show a new instance.
const NOT_SHOWN_YET: TimeDelta = TimeDelta::minutes(5);

/// Reads one manager: its lifecycle state, our hooks, its instance, and the newest drain command.
pub async fn manager(
    aws: &Aws,
    task: &Task,
    delivery: &Delivery,
    id: &InstanceId,
    config: &Config,
) -> ManagerView {
    let (lifecycle, hooks, instance) = match task {
        Task::Terminate { group, .. } => {
            join3(
                aws.lifecycle(id),
                aws.hooks(group, config),
                aws.instance(id, config),
            )
            .await
        }
        // Only the group that has the instance can tell its hooks.
        _ => {
            let (lifecycle, instance) = join(aws.lifecycle(id), aws.instance(id, config)).await;
            let hooks = match &lifecycle {
                Ok(Some(place)) if config.groups.contains(&place.group) => {
                    aws.hooks(&place.group, config).await
                }
                _ => Ok(vec![]),
            };
            (lifecycle, hooks, instance)
        }
    };
    let mut view = ManagerView {
        lifecycle,
        hooks,
        instance,
        command: Command::NotRead,
        requested: None,
        began: Began::NotTold,
    };
    if let (Stage::Waiting, Some(place), Ok(None)) = (view.stage(), view.in_group(), &view.instance)
    {
        view.instance = absent(aws, id, &place.group).await;
    }
    let needs_command = needs_command(task, &view, config);
    if is_old(aws, task, delivery, &view, config) {
        view.began = began(aws, id, waiting_in(task, &view)).await;
    }
    if let (Drain::Ssm { document }, true) = (&config.drain, needs_command) {
        let since = since_when(task, delivery, &view) - BEFORE_FIRST_SEEN;
        let newest = aws.drain_command(document, id, since).await;
        view.requested = newest.requested();
        view.command = as_evidence(&newest, task, delivery, &view);
        // An answer is about to end the drain: it must be an answer to this termination.
        if matches!(view.command, Command::Answered(..)) && view.began == Began::NotTold {
            let group = match task {
                Task::Terminate { group, .. } => Some(group.as_str()),
                _ => waiting_in(task, &view),
            };
            view.began = began(aws, id, group).await;
            if since_when(task, delivery, &view) > delivery.first_seen + BEFORE_FIRST_SEEN {
                view.command = as_evidence(&newest, task, delivery, &view);
            }
        }
    }
    view
}

/// A manager that waits in a hook and that EC2 doesn't show: gone for longer than EC2 shows its end, or so young that
/// EC2 doesn't show it yet. Its group knows when it launched it.
async fn absent(aws: &Aws, id: &InstanceId, group: &str) -> Result<Option<Instance>, Fault> {
    match aws.launched(group, id).await {
        Ok(Some(launched)) if aws.now() - launched < NOT_SHOWN_YET => Err(Fault::incomplete(
            "DescribeInstances",
            "its group launched it a moment ago, and EC2 doesn't show it yet",
        )),
        Err(fault) if fault.may_pass() => Err(fault),
        _ => Ok(None),
    }
}

/// The newest drain command as evidence about the termination that `view` shows.
fn as_evidence(
    newest: &NewestCommand,
    task: &Task,
    delivery: &Delivery,
    view: &ManagerView,
) -> Command {
    let woken_by = match task {
        Task::Wake {
            change: Change::CommandEnded(command),
            ..
        } => Some(command.as_str()),
        _ => None,
    };
    newest.as_evidence(Evidential {
        since: since_when(task, delivery, view) - BEFORE_FIRST_SEEN,
        woken_by,
    })
}

/// Whether anything depends on the drain commands: a hook that waits, or may wait, and a manager that isn't gone;
/// or, afterwards, whether the workers were left to finish.
fn needs_command(task: &Task, view: &ManagerView, config: &Config) -> bool {
    let is_up = view.instance.as_ref().map_or(true, |i| {
        i.as_ref()
            .is_some_and(|i| !i.state.is_gone() && i.state != InstanceState::Stopped)
    });
    let interrupted = matches!(
        task,
        Task::Wake {
            change: Change::SpotInterruption,
            ..
        }
    );
    let grace_hangs_on_it =
        matches!(task, Task::Terminate { .. }) && !config.worker_grace.is_zero();
    is_up && (view.may_wait() || interrupted) || grace_hangs_on_it
}

/// Since when a manager has been terminating: as its message says, unless the group knows better.
///
/// A message may be older than the termination that it meets (replayed, or the first one was taken back), and a wake
/// is always younger.
pub fn since_when(task: &Task, delivery: &Delivery, view: &ManagerView) -> Time {
    match (task, &view.began) {
        (Task::Terminate { .. }, Began::At(began)) => delivery.first_seen.max(*began),
        (_, Began::At(began)) => *began,
        (_, Began::NotTold | Began::Unread(_)) => delivery.first_seen,
    }
}

/// Whether a message can't tell since when its manager terminates: a wake never can, and one that would end the drain
/// by its own age may be about something else.
fn is_old(
    aws: &Aws,
    task: &Task,
    delivery: &Delivery,
    view: &ManagerView,
    config: &Config,
) -> bool {
    let hooks: Vec<_> = hooks_of(task, view).into_iter().cloned().collect();
    !matches!(task, Task::Terminate { .. })
        || delivery.is_among_the_last()
        || aws.now() >= deadline(delivery.first_seen, &hooks, config).at
}

/// The group in which the manager waits in a hook, or may wait.
fn waiting_in<'a>(task: &'a Task, view: &'a ManagerView) -> Option<&'a str> {
    match (view.stage(), task) {
        (Stage::Waiting, _) => view.in_group().map(|place| place.group.as_str()),
        (Stage::Unread, Task::Terminate { group, .. }) => Some(group),
        _ => None,
    }
}

/// When `group` began to terminate the manager, as far as its activities tell.
async fn began(aws: &Aws, id: &InstanceId, group: Option<&str>) -> Began {
    let Some(group) = group else {
        return Began::NotTold;
    };
    match aws.termination_began(group, id).await {
        Ok(began) => began.map_or(Began::NotTold, Began::At),
        Err(fault) => {
            tracing::warn!(instance_id = %id, %fault, "the group's activities could not be read: when the termination began is not known");
            Began::Unread(fault)
        }
    }
}

/// Reads everything that a reaping pass judges, and what protects it.
pub async fn world(aws: &Aws, config: &Config) -> World {
    // Spot requests protect keys and come before workers, whether or not they are judged themselves.
    let is_needed = |kind| config.kinds.contains(&kind) || kind == reap::SPOT_REQUESTS;
    let needed = REAPERS.iter().filter(|r| is_needed(r.kind()));
    let list = async |reaper: &dyn Reaper| {
        let span = tracing::info_span!("listing", kind = reaper.kind());
        let listing = reaper.list(aws, config).instrument(span).await;
        (reaper.kind(), listing)
    };
    let listings = join_all(needed.map(|reaper| list(*reaper))).await;
    let resources = listings.into_iter().collect();
    let mut instances = aws.instances(config).await;
    let worker_groups = config.worker_groups.values().flatten();
    let groups: Vec<String> = config.groups.iter().chain(worker_groups).cloned().collect();
    let (members, missing_groups) = aws.members(&groups).await;
    let unseen = unseen_owners(&resources, &instances);
    if !unseen.is_empty() {
        // Another look at what seems absent: a page may have been stale, and absence is what a deletion may rest on.
        let found = aws.instances_named(&unseen, config).await;
        instances.items.extend(found.items);
        instances.fault = instances.fault.or(found.fault);
    }
    World {
        resources,
        instances,
        members,
        missing_groups,
    }
}

/// Managers that something names and that no page showed.
fn unseen_owners(
    resources: &BTreeMap<&'static str, Listing<Resource>>,
    instances: &Listing<Instance>,
) -> Vec<InstanceId> {
    let seen: HashSet<&str> = instances.items.iter().map(|i| i.id.as_str()).collect();
    let parents = instances
        .items
        .iter()
        .filter(|i| !i.state.is_gone())
        .filter_map(|i| i.parent.as_deref());
    let owners = resources
        .values()
        .flat_map(|l| &l.items)
        .filter_map(|r| r.owner.as_deref());
    let unseen: BTreeSet<_> = parents
        .chain(owners)
        .filter(|id| !seen.contains(id))
        .filter_map(InstanceId::parse)
        .collect();
    unseen.into_iter().collect()
}

/// Reads what a preflight says of the groups: whether each exists, and its termination hooks.
pub async fn groups(aws: &Aws, config: &Config) -> Vec<GroupFacts> {
    let existing = aws.existing_groups(&config.groups).await;
    let read = config.groups.iter().map(async |name| {
        let exists = existing.as_ref().map(|groups| groups.contains(name));
        let hooks = match exists {
            Ok(false) => Ok(vec![]),
            _ => aws.termination_hooks(name).await,
        };
        GroupFacts {
            name: name.clone(),
            exists: exists.map_err(Clone::clone),
            hooks,
        }
    });
    join_all(read).await
}
