//! What the function says of a pass: the outcome line in the log, and the JSON that answers a direct invocation.

use crate::{
    fault::Fault,
    metrics::Cost,
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
pub fn summary(task: &Task, report: &Report) -> Value {
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
    let document = report.document.as_deref().cloned();
    let document = document.map(|document| serde_json::to_value(document.within(PLAN_BYTES)));
    if let (Some(summary), Some(Ok(Value::Object(document)))) = (summary.as_object_mut(), document)
    {
        summary.extend(document);
    }
    summary
}

/// The one line that a person looks for first.
pub fn log_outcome(task: &Task, delivery: &Delivery, report: &Report, now: Time, cost: Cost) {
    let (api_calls, throttles) = (cost.api_calls, cost.throttles);
    let deleted: usize = report.results.deleted.values().sum();
    let age_seconds = delivery.age(now).num_seconds();
    let (count, max_count) = (delivery.count, delivery.max_count);
    let (outcome, reason) = (report.outcome.word(), report.reason.as_str());
    match &report.outcome {
        Outcome::Done => tracing::info!(
            task = task.name(),
            outcome,
            deleted,
            age_seconds,
            delivery = count,
            max_deliveries = max_count,
            api_calls,
            throttles,
            "outcome: done: {reason}"
        ),
        Outcome::Again(after) => {
            let again_seconds = after.num_seconds();
            tracing::info!(
                task = task.name(),
                outcome,
                deleted,
                age_seconds,
                delivery = count,
                max_deliveries = max_count,
                api_calls,
                throttles,
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
                delivery = count,
                max_deliveries = max_count,
                api_calls,
                throttles,
                aws_code = fault.code,
                "outcome: failed, a person must act: {reason}"
            );
        }
    }
}

/// The outcome line of a pass that panicked or ran out of time.
pub fn log_cut_off(task: &Task, delivery: &Delivery, fault: &Fault, now: Time, cost: Cost) {
    tracing::error!(
        task = task.name(),
        outcome = "CutOff",
        age_seconds = delivery.age(now).num_seconds(),
        delivery = delivery.count,
        max_deliveries = delivery.max_count,
        api_calls = cost.api_calls,
        throttles = cost.throttles,
        "outcome: cut off: {fault}"
    );
}
