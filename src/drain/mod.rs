//! The drain: one total function from what was seen of a manager to what comes next.
//!
//! Silence is not evidence. Only the drain document's own line, an instance that can't run jobs any more,
//! or the deadline releases a hook; everything else holds it with a heartbeat.

mod release;

pub use release::Release;

use crate::{
    config::{Config, Drain},
    task::{Change, Delivery, Task},
    world::{Answer, Began, Command, Hook, Instance, InstanceState, ManagerView, Stage, Time},
};
use chrono::TimeDelta;

/// The longest that AWS lets a lifecycle action wait, whatever the heartbeats.
pub const LONGEST_WAIT: TimeDelta = TimeDelta::hours(48);
/// So much earlier than the hook's own end we act, to be the ones who decide.
const MARGIN: TimeDelta = TimeDelta::seconds(60);
/// After a task is so old no hook can wait for it any more.
const STALE: TimeDelta = TimeDelta::hours(49);

/// Auto Scaling may show a state of some minutes ago.
const LAG: TimeDelta = TimeDelta::minutes(10);
/// A group that took a termination back doesn't say so: after so long we believe that it did.
pub const TAKEN_BACK: TimeDelta = TimeDelta::hours(1);

/// What comes next for a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing waits and the manager is gone: reap.
    Reap,
    /// Nothing waits, but EC2 still says that the manager lives: come again.
    AwaitGone,
    /// Complete the hook.
    Release(Release),
    /// Heartbeat and come again.
    Hold(String),
    /// Heartbeat, and send the drain command.
    Send(String),
    /// Nothing to do for this instance.
    Leave(String),
}

/// When the drain ends whatever happens, and what sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// The moment.
    pub at: Time,
    /// What binds it, in words.
    pub bound_by: &'static str,
}

/// First seen, plus the smallest of the configured drain timeout, the hook's global timeout and 48 h, less a margin.
pub fn deadline(first_seen: Time, hooks: &[Hook], config: &Config) -> Deadline {
    let global = hooks
        .iter()
        .map(|h| h.global_timeout)
        .min()
        .unwrap_or(LONGEST_WAIT);
    let (limit, bound_by) = [
        (config.drain_timeout, "DRAIN_TIMEOUT_SECONDS"),
        (global, "the hook's global timeout"),
        (LONGEST_WAIT, "the 48 h that AWS lets a hook wait"),
    ]
    .into_iter()
    .min_by_key(|(limit, _)| *limit)
    .unwrap_or((LONGEST_WAIT, "the 48 h that AWS lets a hook wait"));
    Deadline {
        at: first_seen + limit - MARGIN.min(limit / 10),
        bound_by,
    }
}

/// The hooks of `view` that the task may complete: the one that sent the message, or all of ours.
pub fn hooks_of<'a>(task: &Task, view: &'a ManagerView) -> Vec<&'a Hook> {
    let hooks = view.hooks.as_deref().unwrap_or_default();
    match task {
        Task::Terminate { hook, .. } => hooks.iter().filter(|h| h.name == *hook).collect(),
        _ => hooks.iter().collect(),
    }
}

/// The hook column of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Waiting,
    Over,
    Unknown,
}

/// The instance column of the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    /// Nothing brings it back; in EC2's word, or absent.
    Gone(&'static str),
    /// Runs no jobs, but can be started again.
    Stopped,
    /// Pending or stopping: a command can't reach it, and it may yet run.
    Between,
    /// Running, or EC2 could not be asked.
    Up,
}

/// What comes next. Total: every combination of what can be seen has a row.
pub fn next(
    task: &Task,
    delivery: &Delivery,
    view: &ManagerView,
    config: &Config,
    now: Time,
) -> Next {
    if let Task::Wake { change, .. } = task
        && let Some(next) = without_hook(change, view, config)
    {
        return next;
    }
    let hooks: Vec<Hook> = hooks_of(task, view).into_iter().cloned().collect();
    let deadline = deadline(delivery.first_seen, &hooks, config);
    let late = match () {
        () if delivery.is_among_the_last() => {
            Some("the queue's last deliveries have come".to_owned())
        }
        () if now >= deadline.at && !is_in_doubt(view) => Some(format!(
            "the deadline has come, set by {}",
            deadline.bound_by
        )),
        () => None,
    };
    let stale = delivery.age(now) > STALE;
    match (action(task, view), host(view), late) {
        (Action::Over, Host::Gone(_), _) if lags(view, delivery, now) => Next::AwaitGone,
        (Action::Over, Host::Gone(_), _) => Next::Reap,
        // No hook waits so long, unless the message's own time is wrong: what is left is to look at everything once
        // and to let the message go.
        (action, _, _) if stale && action != Action::Waiting => Next::Reap,
        // Only where the group itself shows the instance as it was before: what no group has is on its way out, and
        // an instance that could not be read says nothing.
        (Action::Over, _, _)
            if view.stage() == Stage::Before
                && view.instance.is_ok() && delivery.age(now) > TAKEN_BACK =>
        {
            Next::Leave(
            "the manager is not terminating, and EC2 says that it lives: the termination was taken back, or never was".into(),
            )
        }
        (Action::Over, _, _) => Next::AwaitGone,
        (_, Host::Gone(state), _) => Next::Release(Release::ManagerDown(state)),
        (_, Host::Stopped, _) => Next::Release(Release::ManagerDown("stopped")),
        (action, host @ (Host::Between | Host::Up), late) => {
            while_waiting(action, host, late, view, config)
        }
    }
}

/// Whether the group may yet show that a hook of ours waits: it shows a state from before the termination, and not for
/// long.
pub fn lags(view: &ManagerView, delivery: &Delivery, now: Time) -> bool {
    view.stage() == Stage::Before && delivery.age(now) < LAG
}

/// Whether everything rests on the message's own time, and the next look may know better.
fn is_in_doubt(view: &ManagerView) -> bool {
    matches!(&view.began, Began::Unread(fault) if fault.may_pass())
}

/// The rows in which a hook waits, or may wait, and the manager isn't down.
fn while_waiting(
    action: Action,
    host: Host,
    late: Option<String>,
    view: &ManagerView,
    config: &Config,
) -> Next {
    if config.drain == Drain::Off {
        return Next::Release(Release::NotAsked);
    }
    if let (
        Host::Up,
        Command::Answered(
            answer @ (Answer::Stopped | Answer::NothingToDrain | Answer::Aborted),
            facts,
        ),
    ) = (host, &view.command)
    {
        if is_in_doubt(view) {
            return Next::Hold(
                "an answer, but whether it is younger than the termination can't be told now"
                    .into(),
            );
        }
        return Next::Release(Release::Drained(*answer, facts.clone()));
    }
    if let Some(late) = late {
        let late = format!("{late}; {}", view.command.in_words());
        return Next::Release(Release::Deadline(late));
    }
    if action == Action::Unknown {
        return Next::Hold("the group could not be asked whether the hook waits".into());
    }
    if config.drain == Drain::Observe {
        return Next::Hold("DRAIN=observe: something on the instance completes the hook".into());
    }
    if view
        .instance
        .as_ref()
        .is_ok_and(|i| i.as_ref().is_some_and(|i| i.windows))
    {
        return Next::Release(Release::UnsupportedPlatform);
    }
    if host == Host::Between {
        return Next::Hold("the manager is pending or stopping: no command reaches it now".into());
    }
    match &view.command {
        Command::None => Next::Send("not drained yet".into()),
        Command::Answered(answer, facts) => {
            Next::Send(format!("the drain document says {} {facts}", answer.word()))
        }
        Command::Ended { .. } => Next::Send(view.command.in_words()),
        Command::InFlight { status } => {
            let is_taken = ["InProgress", "Cancelling"]
                .iter()
                .any(|word| status.starts_with(word));
            Next::Hold(if is_taken {
                format!("drain already running: {status}")
            } else {
                format!("the agent has not taken the drain command yet: {status}")
            })
        }
        Command::Unreadable(fault) => {
            Next::Hold(format!("a drain command may be in flight: {fault}"))
        }
        Command::NotRead => Next::Hold("the drain commands were not looked at".into()),
    }
}

/// Whether the manager of a group of ours waits in a hook, and the group has none of ours: another team's, or
/// `LIFECYCLE_HOOKS` names the wrong ones.
pub fn is_without_hook(view: &ManagerView, config: &Config) -> bool {
    !config.hooks.is_empty()
        && view.stage() == Stage::Waiting
        && view.hooks.as_ref().is_ok_and(Vec::is_empty)
        && view
            .in_group()
            .is_some_and(|place| config.groups.contains(&place.group))
}

/// A wake for an instance whose hook doesn't wait: usually nothing, a drain at once where spot takes it back.
fn without_hook(change: &Change, view: &ManagerView, config: &Config) -> Option<Next> {
    let lifecycle = match &view.lifecycle {
        Ok(Some(lifecycle)) => lifecycle,
        Ok(None) => {
            return Some(Next::Leave(
                "no Auto Scaling group has this instance".into(),
            ));
        }
        Err(_) => {
            return Some(Next::Leave(
                "its group could not be asked; the hook's message or the sweep carries on".into(),
            ));
        }
    };
    if !config.groups.contains(&lifecycle.group) {
        return Some(Next::Leave("its group is not one of ours".into()));
    }
    if is_without_hook(view, config) {
        return Some(Next::Leave(format!(
            "it waits in a hook, and its group {} has none of LIFECYCLE_HOOKS",
            lifecycle.group
        )));
    }
    if view.stage() == Stage::Waiting {
        return None;
    }
    let drains = matches!(config.drain, Drain::Ssm { .. });
    let idle = matches!(view.command, Command::None | Command::Ended { .. });
    if *change == Change::SpotInterruption && drains && idle && host(view) == Host::Up {
        return Some(Next::Send(
            "spot takes the manager back in two minutes".into(),
        ));
    }
    Some(Next::Leave(format!(
        "no hook of ours waits: the group says {}",
        lifecycle.state
    )))
}

fn action(task: &Task, view: &ManagerView) -> Action {
    match view.stage() {
        Stage::Unread => Action::Unknown,
        // None of ours is left on the group.
        Stage::Waiting if view.hooks.is_ok() && hooks_of(task, view).is_empty() => Action::Over,
        Stage::Waiting => Action::Waiting,
        Stage::NoGroup | Stage::Before | Stage::Going | Stage::Over => Action::Over,
    }
}

fn host(view: &ManagerView) -> Host {
    match &view.instance {
        Err(_) => Host::Up,
        Ok(None) => Host::Gone("absent"),
        Ok(Some(Instance { state, .. })) => match state {
            InstanceState::ShuttingDown | InstanceState::Terminated => Host::Gone(state.word()),
            InstanceState::Stopped => Host::Stopped,
            InstanceState::Pending | InstanceState::Stopping => Host::Between,
            InstanceState::Running | InstanceState::Unknown => Host::Up,
        },
    }
}
