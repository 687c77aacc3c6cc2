//! The steps about a hook and its manager.

use super::{Outcome, Pass, Released, Report};
use crate::{
    act,
    config::Mode,
    drain::{self, Next},
    fault::{Disposition, Fault},
    pace,
    plan::{DrainPlan, plan_drain},
    task::{Delivery, Task},
    world::{Command, ManagerView, Time},
};

impl Pass<'_> {
    /// Carries out what [`drain::next`] said, or says what it would do.
    pub(super) async fn drain(&self, view: &ManagerView, next: Next) -> Report {
        let now = self.aws.now();
        let Some(plan) = plan_drain(self.task, self.delivery, view, next, self.config, now) else {
            return Report::new(Outcome::Done, "the task is about no manager");
        };
        let reason = reason_of(&plan.next, view);
        log_plan(&plan, view, self.delivery, &reason, now);
        if self.config.mode == Mode::Plan {
            let age = self.delivery.age(now);
            let left = drain::hooks_of(self.task, view)
                .iter()
                .map(|h| (h.heartbeat_timeout - age).num_seconds().max(0))
                .min();
            tracing::warn!(instance_id = %plan.manager, hook_seconds_left = left, "MODE=plan: a hook waits and nobody here completes it; would do: {reason}");
            return Report::new(Outcome::Done, format!("MODE=plan, would do: {reason}"));
        }
        let faults = act::drain(self.aws, &plan).await;
        let mut report = Report::new(
            outcome(self.task, self.delivery, &plan, view, &faults, now),
            reason,
        );
        if let (Next::Release(why), true) = (&plan.next, faults.is_empty()) {
            report.released.push(Released {
                why: why.clone(),
                after: self.delivery.age(now),
            });
        }
        report.results.faults = faults.into_iter().chain(unread(view).cloned()).collect();
        report
    }
}

fn reason_of(next: &Next, view: &ManagerView) -> String {
    match next {
        Next::Reap => "reap".into(),
        Next::AwaitGone if view.instance.is_err() => {
            "no hook waits, and EC2 could not be asked whether the manager is gone".into()
        }
        Next::AwaitGone => {
            "no hook waits, but EC2 says that the manager lives: waiting until it is gone".into()
        }
        Next::Release(why) => format!("release: {}", why.reason()),
        Next::Hold(why) => format!("heartbeat: {why}"),
        Next::Send(why) => format!("drain: {why}"),
        Next::Leave(why) => why.clone(),
    }
}

fn log_plan(plan: &DrainPlan, view: &ManagerView, delivery: &Delivery, reason: &str, now: Time) {
    let lifecycle = view.in_group().map_or("none", |l| l.state.as_str());
    let state = match &view.instance {
        Ok(instance) => instance.as_ref().map_or("absent", |i| i.state.word()),
        Err(_) => "unknown",
    };
    let seconds_left = (plan.deadline.at - now).num_seconds();
    let is_sent_in_vain = matches!(
        (&plan.next, &view.command),
        (Next::Send(_), Command::Ended { .. })
    );
    let loud = matches!(&plan.next, Next::Release(why) if why.is_loud())
        || (plan.next == Next::AwaitGone && seconds_left < 0)
        || is_sent_in_vain;
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
    for fault in unread(view) {
        tracing::error!(instance_id = %plan.manager, aws_code = fault.code, %fault, "not read");
    }
}

/// What could not be read of a manager.
fn unread(view: &ManagerView) -> impl Iterator<Item = &Fault> {
    let command = match &view.command {
        Command::Unreadable(fault) => Some(fault),
        _ => None,
    };
    let faults = [
        view.lifecycle.as_ref().err(),
        view.hooks.as_ref().err(),
        view.instance.as_ref().err(),
        command,
    ];
    faults.into_iter().flatten()
}

/// What comes after a drain step, given what failed.
fn outcome(
    task: &Task,
    delivery: &Delivery,
    plan: &DrainPlan,
    view: &ManagerView,
    faults: &[Fault],
    now: Time,
) -> Outcome {
    let mut again = plan.again.unwrap_or(pace::SHORTEST_DELAY);
    if matches!(plan.next, Next::Release(_)) && !faults.is_empty() {
        // A completion that keeps failing must not use the deliveries up while the hook still waits.
        again = again.max(pace::whole_seconds(pace::spread(
            delivery,
            plan.deadline.at - now,
        )));
    }
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
        return Outcome::Again(again.max(pace::SETTLE).max(pace::backoff(task, delivery)));
    }
    Outcome::Again(again)
}
