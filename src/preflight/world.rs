//! What the world itself shows: managers that the configuration forgets, addresses that somebody else manages.

use super::{Finding, Level};
use crate::{
    config::Config,
    names::NameOwner,
    reap::{ADDRESSES, Evidence},
};
use std::collections::BTreeMap;

/// What is to be said of a world and of the configuration that it was read with.
pub fn of_world(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut findings = of_configuration(evidence.config);
    findings.extend(managers_outside(evidence));
    findings.extend(retained(evidence));
    findings.extend(managed_addresses(evidence));
    findings
}

fn of_configuration(config: &Config) -> Vec<Finding> {
    let mut findings = vec![];
    let mut missing = |variable: &str, why: &str| {
        findings.push(Finding::new(
            Level::Warning,
            variable,
            "it is not set",
            why,
            format!("set {variable}, for the function and here"),
        ));
    };
    if config.work_queue_url.is_none() {
        missing(
            "WORK_QUEUE_URL",
            "a sweep or a manual reap that isn't finished in one pass relies on Lambda's two retries",
        );
    }
    if config.dead_letter_queue_url.is_none() {
        missing(
            "DEAD_LETTER_QUEUE_URL",
            "a message that can't be read has nowhere to go where a person finds it",
        );
    }
    if config.executor.is_none() {
        missing(
            "EXECUTOR_NAME",
            "key pairs, open spot requests and untagged workers can't be told to be yours: they are left behind",
        );
    }
    findings
}

/// Live instances that run workers of our name and belong to no managed group.
fn managers_outside(evidence: &Evidence<'_>) -> Vec<Finding> {
    let mut outside = BTreeMap::<&str, usize>::new();
    for worker in &evidence.world.instances.items {
        let name = worker
            .key_name
            .as_deref()
            .and_then(|key| evidence.owner_of_name(key));
        let (Some(parent), Some(NameOwner::Ours(_))) = (worker.parent.as_deref(), name) else {
            continue;
        };
        let manager = evidence.instance(parent);
        if manager.is_some_and(|m| !m.state.is_gone() && !evidence.is_manager(m)) {
            *outside.entry(parent).or_default() += 1;
        }
    }
    let executor = evidence
        .config
        .executor
        .as_ref()
        .map(|e| e.as_str())
        .unwrap_or_default();
    outside
        .into_iter()
        .map(|(manager, workers)| {
            let group = evidence.instance(manager).and_then(|m| m.group.as_deref());
            let place = group.map_or("no Auto Scaling group".to_owned(), |g| format!("group {g}"));
            Finding::new(
                Level::Problem,
                format!("manager {manager}"),
                format!("it is in {place}, not in AUTO_SCALING_GROUPS, and runs {workers} worker(s) named for {executor:?}"),
                "once no tagged worker points to it, nothing tells its machines and keys from those of a dead manager",
                "add its group to AUTO_SCALING_GROUPS, or give it an executor name of its own",
            )
        })
        .collect()
}

/// Instances that Auto Scaling keeps after an abandoned hook: billed, and nobody's.
fn retained(evidence: &Evidence<'_>) -> Vec<Finding> {
    let members = evidence.world.members.items.iter();
    members
        .filter(|m| m.lifecycle == "Terminating:Retained")
        .map(|m| {
            Finding::new(
                Level::Problem,
                format!("manager {}", m.id),
                format!("group {} retains it after an abandoned hook", m.group),
                "it is billed, and as long as it lives nothing of it is deleted",
                "look at it, then terminate it by hand",
            )
        })
        .collect()
}

fn managed_addresses(evidence: &Evidence<'_>) -> Vec<Finding> {
    let addresses = evidence.world.resources.get(ADDRESSES);
    let addresses = addresses.map(|l| l.items.as_slice()).unwrap_or_default();
    addresses
        .iter()
        .filter(|a| a.claimed && !a.keep)
        .filter_map(|a| {
            let tool = a.managed_by.as_deref()?;
            let ip = a.name.as_deref().unwrap_or_default();
            Some(Finding::new(
                Level::Problem,
                format!("address {} {ip}", a.id),
                format!("it carries EIP_TAG and looks managed by {tool}"),
                "EIP_TAG releases an address that was unassociated in two looks; one that a tool manages would be missed",
                format!("take EIP_TAG off it, or tag it {}", evidence.config.keep_tag),
            ))
        })
        .collect()
}
