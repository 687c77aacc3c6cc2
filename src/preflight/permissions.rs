//! Permissions: which calls of `MODE=enforce` EC2 would refuse to these credentials, asked with dry runs.
//!
//! A policy may depend on the tags of what is deleted. So each rule that found an orphan is asked about one of its
//! orphans; where there is none, about an id that nothing has.

use super::{Finding, Level};
use crate::{
    config::Config,
    document::{PlanDocument, ResourceLine},
    fault::{Disposition, Fault},
    reap,
};
use std::collections::BTreeSet;

/// One call to be asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The operation, as AWS names it.
    pub operation: &'static str,
    /// What it would delete or tag.
    pub id: String,
    /// The rule that found it; `None` = an id that nothing has.
    pub rule: Option<String>,
}

/// What EC2 says.
pub type ProbeResult = Result<bool, Fault>;

/// Which calls each kind needs, with a well-formed id that no resource has.
const CALLS: &[(&str, &str, &str)] = &[
    (reap::WORKERS, "TerminateInstances", "i-00000000000000000"),
    (
        reap::SPOT_REQUESTS,
        "CancelSpotInstanceRequests",
        "sir-00000000",
    ),
    (
        reap::KEY_PAIRS,
        "DeleteKeyPair",
        "lifecycle-reaper-preflight",
    ),
    (
        reap::ADDRESSES,
        "ReleaseAddress",
        "eipalloc-00000000000000000",
    ),
];

/// The calls to ask about, for the kinds that are switched on.
pub fn probes(document: &PlanDocument, config: &Config) -> Vec<Probe> {
    let mut probes = vec![];
    let orphans = |kind: &'static str| {
        let lines = document.resources.iter();
        lines.filter(move |r| r.kind == kind && r.verdict == "reap")
    };
    for (kind, operation, nothing) in CALLS {
        if !config.kinds.contains(kind) {
            continue;
        }
        let mut samples: Vec<&ResourceLine> = vec![];
        for orphan in orphans(kind) {
            if samples.iter().all(|s| s.rule != orphan.rule) {
                samples.push(orphan);
            }
        }
        probes.extend(samples.iter().map(|s| Probe {
            operation,
            id: s.id.clone(),
            rule: Some(s.rule.clone()),
        }));
        if samples.is_empty() {
            probes.push(Probe {
                operation,
                id: (*nothing).into(),
                rule: None,
            });
        }
    }
    let addresses = document
        .resources
        .iter()
        .filter(|r| r.kind == reap::ADDRESSES);
    if let Some(address) = addresses.into_iter().find(|r| r.rule == "two-looks") {
        let rule = Some(address.rule.clone());
        for operation in ["CreateTags", "DeleteTags"] {
            probes.push(Probe {
                operation,
                id: address.id.clone(),
                rule: rule.clone(),
            });
        }
    }
    for fleet in orphans(reap::FLEETS).take(1) {
        let operation = if fleet.id.starts_with("sfr-") {
            "CancelSpotFleetRequests"
        } else {
            "DeleteFleets"
        };
        probes.push(Probe {
            operation,
            id: fleet.id.clone(),
            rule: Some(fleet.rule.clone()),
        });
    }
    probes
}

/// What is to be said of EC2's answers.
pub fn of_permissions(answers: &[(Probe, ProbeResult)]) -> Vec<Finding> {
    let denied = |(_, answer): &(Probe, ProbeResult)| *answer == Ok(false);
    if answers.len() > 1 && answers.iter().all(denied) {
        return vec![read_only(answers)];
    }
    answers
        .iter()
        .filter_map(|(probe, answer)| of_answer(probe, answer))
        .collect()
}

/// Somebody who may only read asks: that is how a plan should be made, and says nothing of the function.
fn read_only(answers: &[(Probe, ProbeResult)]) -> Finding {
    let operations: BTreeSet<&str> = answers.iter().map(|(probe, _)| probe.operation).collect();
    let operations: Vec<&str> = operations.into_iter().collect();
    Finding::new(
        Level::Warning,
        "permissions",
        format!(
            "these credentials may only read (denied: {})",
            operations.join(", ")
        ),
        "that is enough for a plan, but it doesn't tell what the function's role may do",
        "ask again with the function's role to test its permissions",
    )
}

fn of_answer(probe: &Probe, answer: &ProbeResult) -> Option<Finding> {
    let about = format!("ec2:{}", probe.operation);
    let on = match &probe.rule {
        Some(rule) => format!("{} (found by the rule {rule})", probe.id),
        None => "a resource that doesn't exist".into(),
    };
    match (answer, &probe.rule) {
        (Ok(true), _) => None,
        (Ok(false), Some(_)) => Some(Finding::new(
            Level::Problem,
            about.clone(),
            format!("these credentials may not do it to {on}"),
            "with them MODE=enforce would leave it behind",
            format!(
                "allow {about}, and look at the conditions of its statement; ask with the function's role to test the function's"
            ),
        )),
        (Ok(false), None) => Some(Finding::new(
            Level::Warning,
            about.clone(),
            format!("these credentials may not do it to {on}"),
            "either the permission is missing, or it depends on tags that only a real one has",
            format!(
                "look whether {about} is allowed; ask again when the plan shows something to delete"
            ),
        )),
        (Err(fault), _) if fault.disposition == Disposition::Gone => Some(Finding::new(
            Level::Note,
            about,
            format!(
                "EC2 didn't say whether it is permitted on {on} ({})",
                fault.code
            ),
            "EC2 looks for the resource before the permission",
            "ask again when the plan shows something to delete",
        )),
        (Err(fault), _) => {
            let what = format!("EC2 could not be asked whether it is permitted on {on} ({fault})");
            Some(Finding::not_told(about, what, "the dry run"))
        }
    }
}
