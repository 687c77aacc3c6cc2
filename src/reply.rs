//! What the function says of a pass: the outcome line in the log, and the JSON that answers a direct invocation.

use crate::{
    metrics::Cost,
    reap::{Judgement, OwnerState, Verdict},
    reconcile::{Outcome, Report},
    task::{Delivery, Task},
    world::Time,
};
use serde_json::{Value, json};

/// Lambda's limit for a synchronous reply is 6 MB; what is larger would be an error instead of a plan.
const PLAN_BYTES: usize = 5_000_000;

/// The reply to an event that became no task.
pub fn without_task(outcome: &str, reason: &str) -> Value {
    json!({ "outcome": outcome, "reason": reason })
}

/// The reply to a direct invocation; for a plan, the plan with it.
pub fn summary(task: &Task, report: &Report, now: Time) -> Value {
    let again_seconds = match &report.outcome {
        Outcome::Again(after) => Some(after.num_seconds()),
        Outcome::Done | Outcome::Failed(_) => None,
    };
    let mut summary = json!({
        "task": task.name(),
        "instance_id": task.manager(),
        "outcome": report.outcome.word(),
        "reason": report.reason,
        "again_seconds": again_seconds,
        "counts": report.plan.counts(),
        "deleted": report.results.deleted,
        "refused": report.results.refused,
        "faults": report.results.faults.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "waiting_managers": report.waiting,
    });
    if let (Task::Sweep { writes: false }, Some(summary)) = (task, summary.as_object_mut()) {
        let (resources, truncated) = resources(report, now);
        summary.insert("resources".into(), resources);
        summary.insert("truncated".into(), truncated.into());
    }
    summary
}

/// Every resource with its decision, orphans first, as many as a reply can bear; and how many were left out.
pub fn resources(report: &Report, now: Time) -> (Value, usize) {
    let mut judged: Vec<_> = report.plan.judged.iter().collect();
    judged.sort_by_key(|(_, j)| match j.verdict {
        Verdict::Orphan => 0,
        Verdict::Defer(_) | Verdict::FirstLook(_) => 1,
        Verdict::Unproven => 2,
        Verdict::Keep | Verdict::ForgetLook => 3,
    });
    let mut bytes = 0;
    let mut shown = vec![];
    for (kind, judgement) in &judged {
        let line = resource(kind, judgement, now);
        bytes += line.to_string().len() + 1;
        if bytes > PLAN_BYTES {
            break;
        }
        shown.push(line);
    }
    let left_out = judged.len() - shown.len();
    (Value::Array(shown), left_out)
}

fn resource(kind: &str, judgement: &Judgement, now: Time) -> Value {
    let tried: Vec<_> = judgement
        .before
        .iter()
        .map(|t| json!({ "rule": t.rule, "fact": t.fact }))
        .collect();
    json!({
        "kind": kind,
        "id": judgement.resource.id,
        "name": judgement.resource.name,
        "state": judgement.resource.state,
        "age_seconds": judgement.born.map(|born| (now - born).num_seconds()),
        "owner": judgement.owner,
        "owner_state": judgement.owner_state.map(OwnerState::word),
        "verdict": judgement.verdict.word(),
        "rule": judgement.rule,
        "evidence": judgement.evidence,
        "tried": tried,
    })
}

/// The one line that a person looks for first.
pub fn log_outcome(task: &Task, delivery: &Delivery, report: &Report, now: Time, cost: Cost) {
    let api_calls = cost.api_calls;
    let deleted: usize = report.results.deleted.values().sum();
    let age_seconds = delivery.age(now).num_seconds();
    let (outcome, reason) = (report.outcome.word(), report.reason.as_str());
    match &report.outcome {
        Outcome::Done => tracing::info!(
            task = task.name(),
            outcome,
            deleted,
            age_seconds,
            api_calls,
            "outcome: done: {reason}"
        ),
        Outcome::Again(after) => {
            let again_seconds = after.num_seconds();
            tracing::info!(
                task = task.name(),
                outcome,
                deleted,
                age_seconds,
                api_calls,
                again_seconds,
                "outcome: again: {reason}"
            );
        }
        Outcome::Failed(fault) => {
            tracing::error!(
                task = task.name(),
                outcome,
                deleted,
                age_seconds,
                api_calls,
                aws_code = fault.code,
                "outcome: failed, a person must act: {reason}"
            );
        }
    }
}
