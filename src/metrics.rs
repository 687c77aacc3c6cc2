//! Metrics in CloudWatch's embedded metric format: a log line that CloudWatch turns into metrics, without an agent
//! and without a call.
//!
//! One line a pass, with the function's name as its only dimension, and one line a kind that the pass judged.
//! Format: <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use crate::{
    drain::Release,
    fault::Disposition,
    reap::{Judgement, Verdict},
    reconcile::{Outcome, Released, Report},
    task::{Delivery, Task},
    world::{Answer, Time},
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The namespace of all metrics.
pub const NAMESPACE: &str = "LifecycleReaper";
/// Events with this target are printed as they are, and nothing else is.
pub const TARGET: &str = "lifecycle_reaper::metrics";

/// What a pass cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Calls sent to AWS, retries counted.
    pub api_calls: u64,
    /// Answers that asked us to slow down.
    pub throttles: u64,
}

/// The lines of one pass.
pub fn of_pass(
    function_name: &str,
    task: &Task,
    delivery: &Delivery,
    report: &Report,
    cost: Cost,
    now: Time,
) -> Vec<Value> {
    let mut lines = vec![line(
        &[("FunctionName", function_name)],
        &pass(task, delivery, report, cost, now),
        now,
    )];
    for (kind, metrics) in kinds(report, now) {
        lines.push(line(
            &[("FunctionName", function_name), ("Kind", kind)],
            &metrics,
            now,
        ));
    }
    lines
}

/// The line of a pass that panicked or ran out of time: nothing else is known of it.
pub fn cut_off(function_name: &str, delivery: &Delivery, cost: Cost, now: Time) -> Value {
    line(
        &[("FunctionName", function_name)],
        &[
            ("Passes", "Count", 1.0),
            ("CutOff", "Count", 1.0),
            ("ApiCalls", "Count", cost.api_calls as f64),
            ("Throttles", "Count", cost.throttles as f64),
            age(delivery, now),
        ],
        now,
    )
}

/// The line of a record or an event that became no task.
pub fn unreadable(function_name: &str, now: Time) -> Value {
    line(
        &[("FunctionName", function_name)],
        &[("Unreadable", "Count", 1.0)],
        now,
    )
}

/// Name, unit, value.
type Metric = (&'static str, &'static str, f64);

fn pass(task: &Task, delivery: &Delivery, report: &Report, cost: Cost, now: Time) -> Vec<Metric> {
    let count = |name, n: usize| (name, "Count", n as f64);
    let is = |yes: bool| usize::from(yes);
    let faults = |d: Disposition| {
        report
            .results
            .faults
            .iter()
            .filter(|f| f.disposition == d)
            .count()
    };
    let mut metrics = vec![
        count("Passes", 1),
        count("Done", is(report.outcome == Outcome::Done)),
        count("Again", is(matches!(report.outcome, Outcome::Again(_)))),
        count("Failed", is(matches!(report.outcome, Outcome::Failed(_)))),
        count("FaultsToRetry", faults(Disposition::Retry)),
        count("FaultsToMend", faults(Disposition::Stop)),
        count("ApiCalls", cost.api_calls as usize),
        count("Throttles", cost.throttles as usize),
    ];
    if matches!(task, Task::Sweep { .. }) {
        metrics.push(count("Sweeps", 1));
        metrics.push(count("ManagersWaiting", report.waiting.len()));
        metrics.push(count("WaitingWithoutHook", report.without_hook));
    }
    if report.outcome != Outcome::Done {
        metrics.push(age(delivery, now));
    }
    if !report.plan.judged.is_empty() {
        let all = || report.plan.judged.iter().map(|(_, judgement)| judgement);
        let refused = report.results.refused.values().sum();
        metrics.push(count("UnprovenKept", with_word(all(), "unknown")));
        metrics.push(count("ProtectedKept", refused));
        metrics.extend(oldest_orphan(all(), now));
    }
    metrics.extend(releases(&report.released));
    metrics
}

/// The hooks that a pass completed: how many of them loudly, and the longest wait. A sweep may complete several.
fn releases(released: &[Released]) -> Vec<Metric> {
    let longest = |of: fn(&Release) -> bool| {
        released
            .iter()
            .filter(|r| of(&r.why))
            .map(|r| r.after.num_seconds())
            .max()
    };
    let count = |of: fn(&Release) -> bool| released.iter().filter(|r| of(&r.why)).count() as f64;
    let Some(waited) = longest(|_| true) else {
        return vec![];
    };
    let mut metrics = vec![
        ("HookWaitSeconds", "Seconds", waited as f64),
        (
            "DeadlineReleases",
            "Count",
            count(|why| matches!(why, Release::Deadline(_))),
        ),
        (
            "AbortedDrains",
            "Count",
            count(|why| matches!(why, Release::Drained(Answer::Aborted, _))),
        ),
    ];
    metrics.extend(longest(Release::is_drained).map(|s| ("DrainSeconds", "Seconds", s as f64)));
    metrics
}

fn age(delivery: &Delivery, now: Time) -> Metric {
    let seconds = delivery.age(now).num_seconds();
    ("OldestTaskSeconds", "Seconds", seconds as f64)
}

fn with_word<'a>(judged: impl Iterator<Item = &'a Judgement>, word: &str) -> usize {
    judged.filter(|j| j.verdict.word() == word).count()
}

/// How old the oldest is that is to be deleted, now or later.
fn oldest_orphan<'a>(judged: impl Iterator<Item = &'a Judgement>, now: Time) -> Option<Metric> {
    let orphans = judged.filter(|j| matches!(j.verdict, Verdict::Orphan | Verdict::Defer(_)));
    let born = orphans.filter_map(|j| j.born).min()?;
    let seconds = (now - born).num_seconds().max(0);
    Some(("OldestOrphanSeconds", "Seconds", seconds as f64))
}

fn kinds(report: &Report, now: Time) -> BTreeMap<&'static str, Vec<Metric>> {
    let mut kinds = BTreeMap::<&'static str, Vec<Metric>>::new();
    for kind in report.plan.judged.iter().map(|(kind, _)| *kind) {
        if kinds.contains_key(kind) {
            continue;
        }
        let judged = || {
            report
                .plan
                .judged
                .iter()
                .filter(|(k, _)| *k == kind)
                .map(|(_, j)| j)
        };
        let of = |word: &str| with_word(judged(), word) as f64;
        let done = |results: &BTreeMap<&'static str, usize>| {
            results.get(kind).copied().unwrap_or_default() as f64
        };
        let mut metrics = vec![
            ("OrphansReaped", "Count", done(&report.results.deleted)),
            ("OrphansDeferred", "Count", of("defer")),
            ("OrphansKept", "Count", of("keep")),
            ("UnprovenKept", "Count", of("unknown")),
            ("ProtectedKept", "Count", done(&report.results.refused)),
        ];
        metrics.extend(oldest_orphan(judged(), now));
        kinds.insert(kind, metrics);
    }
    kinds
}

fn line(dimensions: &[(&str, &str)], metrics: &[Metric], now: Time) -> Value {
    let definitions: Vec<_> = metrics
        .iter()
        .map(|(name, unit, _)| json!({ "Name": name, "Unit": unit }))
        .collect();
    let names: Vec<_> = dimensions.iter().map(|(name, _)| *name).collect();
    let mut line = Map::new();
    line.insert(
        "_aws".into(),
        json!({
            "Timestamp": now.timestamp_millis(),
            "CloudWatchMetrics": [{ "Namespace": NAMESPACE, "Dimensions": [names], "Metrics": definitions }],
        }),
    );
    line.extend(
        dimensions
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value))),
    );
    line.extend(
        metrics
            .iter()
            .map(|(name, _, value)| ((*name).to_owned(), json!(value))),
    );
    Value::Object(line)
}

/// Prints lines; the log's subscriber knows them by their target.
pub fn emit(lines: &[Value]) {
    for line in lines {
        tracing::info!(target: TARGET, "{line}");
    }
}
