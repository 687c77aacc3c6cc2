//! Acting: all writes of a pass. Each write is logged by its result, never before it is known.

use crate::{
    aws::Aws,
    fault::{Disposition, Fault},
    plan::{DrainAction, DrainPlan, ReapPlan, Step},
    reap::{self, FIRST_LOOK_TAG},
    world::Resource,
};
use std::collections::{BTreeMap, HashSet};
use tracing::Instrument;

/// What became of the steps of a reaping plan.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Deleted, or found to be gone already, by kind.
    pub deleted: BTreeMap<&'static str, usize>,
    /// Not deleted because the resource itself forbids it, by kind.
    pub refused: BTreeMap<&'static str, usize>,
    /// What failed.
    pub faults: Vec<Fault>,
}

/// Carries out a drain plan; ends at the first step that leaves the next without sense.
pub async fn drain(aws: &Aws, plan: &DrainPlan) -> Vec<Fault> {
    let mut faults = vec![];
    for action in &plan.actions {
        let Err(fault) = drain_step(aws, plan, action).await else {
            continue;
        };
        if fault.is_unsupported_platform() {
            tracing::warn!(instance_id = %plan.manager, %fault, "SSM can't run commands on this platform: released undrained");
            for action in &plan.if_unsupported {
                faults.extend(drain_step(aws, plan, action).await.err());
            }
        } else {
            faults.push(fault);
        }
    }
    faults
}

async fn drain_step(aws: &Aws, plan: &DrainPlan, action: &DrainAction) -> Result<(), Fault> {
    let (manager, group) = (&plan.manager, plan.group.as_str());
    let (what, hook, result) = match action {
        DrainAction::Heartbeat(hook) => {
            ("heartbeat", hook, aws.heartbeat(group, hook, manager).await)
        }
        DrainAction::Complete(hook) => (
            "hook completed with CONTINUE",
            hook,
            aws.complete(group, hook, manager).await,
        ),
        DrainAction::Send(document) => (
            "drain command sent",
            document,
            aws.send_drain(document, manager).await,
        ),
    };
    match &result {
        Ok(()) => tracing::info!(instance_id = %manager, group, on = hook, "{what}"),
        // "Already released" and "not visible yet" have one error: only another look tells.
        Err(fault) if fault.disposition == Disposition::Gone => {
            tracing::warn!(instance_id = %manager, group, on = hook, %fault, "no active lifecycle action: looking again");
        }
        Err(fault) => {
            tracing::error!(instance_id = %manager, group, on = hook, aws_code = fault.code, %fault, "not done: {what}")
        }
    }
    result
}

/// Carries out a reaping plan, kind by kind. One failure never spares the others.
pub async fn reap(aws: &Aws, plan: &ReapPlan) -> Results {
    let mut results = Results::default();
    let mut alive_starters = HashSet::<String>::new();
    for (kind, steps) in &plan.steps {
        let Some(reaper) = reap::reaper(kind) else {
            continue;
        };
        let deletions: Vec<Resource> = steps
            .iter()
            .filter_map(deletion)
            .filter(|r| !is_held(r, &alive_starters))
            .cloned()
            .collect();
        if !deletions.is_empty() {
            let span = tracing::info_span!("deleting", kind);
            for (id, result) in reaper.delete(aws, &deletions).instrument(span).await {
                let is_alive = result
                    .as_ref()
                    .is_err_and(|fault| fault.disposition == Disposition::Retry);
                if reap::STARTERS.contains(kind) && is_alive {
                    let instance = deletions
                        .iter()
                        .find(|r| r.id == id)
                        .and_then(|r| r.instance.clone());
                    alive_starters.extend(instance.into_iter().chain([id.clone()]));
                }
                results.add(kind, &id, result);
            }
        }
        for step in steps {
            results.marked(kind, step, mark(aws, step).await);
        }
    }
    results
}

fn deletion(step: &Step) -> Option<&Resource> {
    match step {
        Step::Delete(resource) => Some(resource),
        Step::Mark(..) | Step::Unmark(_) => None,
    }
}

/// A worker whose spot request or fleet could not be ended now would be replaced by a persistent one: it waits as well.
fn is_held(resource: &Resource, alive_starters: &HashSet<String>) -> bool {
    let starters = [&resource.spot_request, &resource.fleet];
    alive_starters.contains(&resource.id)
        || starters
            .into_iter()
            .flatten()
            .any(|s| alive_starters.contains(s))
}

async fn mark(aws: &Aws, step: &Step) -> Option<Result<(), Fault>> {
    match step {
        Step::Mark(resource, at) => Some(
            aws.mark(&resource.id, FIRST_LOOK_TAG, &at.timestamp().to_string())
                .await,
        ),
        Step::Unmark(resource) => Some(aws.unmark(&resource.id, FIRST_LOOK_TAG).await),
        Step::Delete(_) => None,
    }
}

impl Results {
    fn add(&mut self, kind: &'static str, id: &str, result: Result<(), Fault>) {
        match result {
            Ok(()) => {
                tracing::info!(kind, id, "deleted");
                *self.deleted.entry(kind).or_default() += 1;
            }
            Err(fault) if fault.disposition == Disposition::Gone => {
                tracing::warn!(kind, id, aws_code = fault.code, "gone already");
                *self.deleted.entry(kind).or_default() += 1;
            }
            Err(fault) if fault.disposition == Disposition::Refused => {
                tracing::warn!(kind, id, aws_code = fault.code, %fault, "EC2 refuses to delete it; kept and reported");
                *self.refused.entry(kind).or_default() += 1;
            }
            Err(fault) => {
                tracing::error!(kind, id, aws_code = fault.code, %fault, "not deleted");
                self.faults.push(fault);
            }
        }
    }

    fn marked(&mut self, kind: &'static str, step: &Step, result: Option<Result<(), Fault>>) {
        let id = step.resource().id.as_str();
        match result {
            None => {}
            Some(Ok(())) if matches!(step, Step::Unmark(_)) => tracing::info!(
                kind,
                id,
                "first look forgotten: it was associated in between"
            ),
            Some(Ok(())) => tracing::info!(kind, id, "first look written down"),
            Some(Err(fault))
                if matches!(fault.disposition, Disposition::Gone | Disposition::Refused) =>
            {
                tracing::warn!(kind, id, aws_code = fault.code, %fault, "not marked");
            }
            Some(Err(fault)) => {
                tracing::error!(kind, id, aws_code = fault.code, %fault, "not marked");
                self.faults.push(fault);
            }
        }
    }

    /// How many steps took effect, or may have.
    pub fn effective(&self) -> usize {
        self.deleted.values().sum::<usize>()
            + self
                .faults
                .iter()
                .filter(|f| f.disposition == Disposition::Retry)
                .count()
    }
}
