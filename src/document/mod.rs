//! The plan document: what a sweep would do with each resource, and why, as JSON that people and programs read.
//!
//! There is one writer: the reply to `{"action":"plan"}` and what the command line prints, saves and reads back are
//! the same document.

mod cost;
mod managers;

pub use cost::MonthlyCost;
pub use managers::Manager;

use crate::{
    fault::Fault,
    plan::ReapPlan,
    preflight::{self, Finding, GroupFacts},
    reap::{self, Evidence, Judgement, OwnerState, Verdict},
    world::{Resource, Time},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The plan of a sweep, in words and numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanDocument {
    /// When the account was read.
    pub made_at: Time,
    /// The Region that was read.
    pub region: Option<String>,
    /// The managed groups.
    pub groups: Vec<String>,
    /// The name that our workers, keys and requests bear.
    pub executor_name: Option<String>,
    /// Nothing younger is deleted where its owner is only absent.
    pub grace_seconds: i64,
    /// Deletions per kind and pass.
    pub max_deletions: usize,
    /// What could not be read to its end: a kind that is missing here may have anything.
    pub unread: Vec<String>,
    /// How many of each were read.
    pub looked_at: BTreeMap<String, usize>,
    /// Which managers live, as far as age is concerned.
    pub liveness: String,
    /// The managers.
    pub managers: Vec<Manager>,
    /// How many resources by verdict.
    pub totals: BTreeMap<String, usize>,
    /// How many resources by kind and verdict.
    pub counts: BTreeMap<String, BTreeMap<String, usize>>,
    /// What the orphans cost, as far as a price is certain.
    pub monthly_cost: MonthlyCost,
    /// What would keep the plan from coming true.
    pub findings: Vec<Finding>,
    /// Every resource, orphans first.
    pub resources: Vec<ResourceLine>,
    /// How many resources were left out, because a reply bears only so much.
    pub truncated: usize,
}

/// One resource with its decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResourceLine {
    /// The kind, as in `REAP`.
    pub kind: String,
    /// The id that deletes it.
    pub id: String,
    /// The name that people know it by, where it has one.
    pub name: Option<String>,
    /// AWS's word for its state.
    pub state: String,
    /// Since it came to be.
    pub age_seconds: Option<i64>,
    /// The manager that it belongs to, as far as anything names one.
    pub owner: Option<String>,
    /// What is known of that manager.
    pub owner_state: Option<String>,
    /// `reap`, `defer`, `unknown` or `keep`.
    pub verdict: String,
    /// The rule that decided.
    pub rule: String,
    /// The fact that decided, in words.
    pub evidence: String,
    /// Rules that were tried before, and what they met.
    pub tried: Vec<TriedLine>,
}

/// A rule that was tried and did not decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriedLine {
    /// The rule's name.
    pub rule: String,
    /// What was seen.
    pub fact: String,
}

/// What the four verdicts are called.
pub const VERDICTS: [&str; 4] = ["reap", "defer", "unknown", "keep"];

impl PlanDocument {
    /// Writes a plan down, with the world that it was made from.
    pub fn of(
        plan: &ReapPlan,
        evidence: &Evidence<'_>,
        groups: &[GroupFacts],
        unread: &[Fault],
        region: Option<&str>,
    ) -> Self {
        let config = evidence.config;
        let mut judged: Vec<_> = plan.judged.iter().collect();
        judged.sort_by_key(|(_, judgement)| rank(&judgement.verdict));
        let resources = judged
            .iter()
            .map(|(kind, judgement)| line(kind, judgement, evidence.now))
            .collect();
        let mut findings = preflight::of_groups(groups, config);
        findings.extend(preflight::of_world(evidence));
        findings.sort_by_key(|finding| finding.level);
        let counts = owned(plan.counts());
        Self {
            made_at: evidence.now,
            region: region.map(str::to_owned),
            groups: config.groups.clone(),
            executor_name: config.executor.as_ref().map(|e| e.as_str().to_owned()),
            grace_seconds: config.grace.num_seconds(),
            max_deletions: config.max_deletions,
            unread: unread.iter().map(ToString::to_string).collect(),
            looked_at: looked_at(evidence),
            liveness: managers::liveness(evidence.liveness()),
            managers: managers::managers(evidence),
            totals: totals(&counts),
            counts,
            monthly_cost: cost::monthly_cost(plan, region),
            findings,
            resources,
            truncated: 0,
        }
    }

    /// The same with as many resources as `bytes` can bear.
    pub fn within(mut self, bytes: usize) -> Self {
        let resources = std::mem::take(&mut self.resources);
        let count = resources.len();
        let mut left = bytes.saturating_sub(length(&self));
        for resource in resources {
            // A comma comes between two.
            let needed = length(&resource) + 1;
            if needed > left {
                break;
            }
            left -= needed;
            self.resources.push(resource);
        }
        self.truncated += count - self.resources.len();
        self
    }

    /// How many resources have a verdict.
    pub fn total(&self, verdict: &str) -> usize {
        self.totals.get(verdict).copied().unwrap_or_default()
    }
}

fn length(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |json| json.len())
}

/// Orphans first, then what may become one, then what a person must look at.
fn rank(verdict: &Verdict) -> usize {
    VERDICTS
        .iter()
        .position(|word| *word == verdict.word())
        .unwrap_or(VERDICTS.len())
}

fn line(kind: &str, judgement: &Judgement, now: Time) -> ResourceLine {
    let Resource {
        id, name, state, ..
    } = judgement.resource.clone();
    ResourceLine {
        kind: kind.to_owned(),
        id,
        name,
        state,
        age_seconds: judgement.born.map(|born| (now - born).num_seconds()),
        owner: judgement.owner.clone(),
        owner_state: judgement
            .owner_state
            .map(|state| OwnerState::word(state).to_owned()),
        verdict: judgement.verdict.word().to_owned(),
        rule: judgement.rule.to_owned(),
        evidence: judgement.evidence.clone(),
        tried: judgement
            .before
            .iter()
            .map(|t| TriedLine {
                rule: t.rule.to_owned(),
                fact: t.fact.clone(),
            })
            .collect(),
    }
}

fn owned(
    counts: BTreeMap<&str, BTreeMap<&str, usize>>,
) -> BTreeMap<String, BTreeMap<String, usize>> {
    let words = |by_verdict: BTreeMap<&str, usize>| {
        by_verdict
            .into_iter()
            .map(|(word, n)| (word.to_owned(), n))
            .collect()
    };
    counts
        .into_iter()
        .map(|(kind, by_verdict)| (kind.to_owned(), words(by_verdict)))
        .collect()
}

fn totals(counts: &BTreeMap<String, BTreeMap<String, usize>>) -> BTreeMap<String, usize> {
    let of = |verdict: &str| {
        counts
            .values()
            .filter_map(|by_verdict| by_verdict.get(verdict))
            .sum()
    };
    VERDICTS
        .into_iter()
        .map(|verdict| (verdict.to_owned(), of(verdict)))
        .collect()
}

fn looked_at(evidence: &Evidence<'_>) -> BTreeMap<String, usize> {
    let world = evidence.world;
    let mut looked_at: BTreeMap<_, _> = world
        .resources
        .iter()
        .filter(|(kind, _)| **kind != reap::WORKERS)
        .map(|(kind, l)| ((*kind).to_owned(), l.items.len()))
        .collect();
    looked_at.insert("instances".into(), world.instances.items.len());
    looked_at.insert("group-members".into(), world.members.items.len());
    looked_at
}
