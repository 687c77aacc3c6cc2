//! `why`: the decision on one resource, with each rule in the order in which it was tried.

use super::{
    Error, Exit, Terminal, faulty, plan,
    show::{age, short_meaning},
    table::wrapped,
    whole,
};
use crate::{
    aws::Aws,
    config::Config,
    document::{Manager, PlanDocument, ResourceLine},
    names::NameOwner,
    reap::stamp,
    task::InstanceId,
    world::Instance,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// Explains from a saved plan.
pub(super) fn in_file(id: &str, path: &Path, terminal: &mut Terminal<'_>) -> Result<Exit, Error> {
    let failed = |what: String| Error::failed(format!("{}: {what}", path.display()));
    let json = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let document: PlanDocument = serde_json::from_str(&json)
        .map_err(|error| failed(format!("not a plan of this version: {error}")))?;
    let lines = match explained(&document, id) {
        Some(lines) => lines,
        None => {
            let mut lines = unknown(&document, id);
            if document.truncated > 0 {
                lines.push(format!(
                    "{} resources were left out of this plan: ask the account itself.",
                    document.truncated
                ));
            }
            return write(&lines, Exit::PersonNeeded, terminal);
        }
    };
    write(&lines, Exit::Good, terminal)
}

/// Explains from the account.
pub(super) async fn live(
    aws: &Aws,
    config: &Config,
    id: &str,
    terminal: &mut Terminal<'_>,
) -> Result<Exit, Error> {
    let document = plan::read(aws, config, terminal.err).await?;
    if let Some(lines) = explained(&document, id) {
        let exit = write(&lines, Exit::Good, terminal)?;
        return Ok(exit);
    }
    let mut lines = unknown(&document, id);
    if let Some(instance) = InstanceId::parse(id) {
        match aws.instance(&instance, config).await {
            Ok(Some(instance)) => lines.extend(stranger(&instance, config)),
            Ok(None) => {
                lines.push("EC2 knows no such instance, and no tag or group names it.".into())
            }
            Err(fault) => return Err(faulty("the instance could not be read", &fault)),
        }
    } else {
        lines.extend(name_of_stranger(id, config));
    }
    write(&lines, Exit::PersonNeeded, terminal)?;
    whole(&document)?;
    Ok(Exit::PersonNeeded)
}

fn write(lines: &[String], exit: Exit, terminal: &mut Terminal<'_>) -> Result<Exit, Error> {
    for line in lines {
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        for part in wrapped(
            line.trim_start(),
            terminal.width.saturating_sub(indent.len()),
        ) {
            writeln!(terminal.out, "{indent}{part}")?;
        }
    }
    Ok(exit)
}

/// All that a plan says of an id, name or address; `None` when it says nothing.
fn explained(document: &PlanDocument, id: &str) -> Option<Vec<String>> {
    let id = id.trim();
    let mut lines = vec![];
    let manager = document.managers.iter().find(|m| m.id == id);
    lines.extend(manager.into_iter().flat_map(of_manager));
    let resources = document
        .resources
        .iter()
        .filter(|r| r.id == id || r.name.as_deref() == Some(id));
    lines.extend(resources.flat_map(of_resource));
    lines.extend(of_owner(document, id));
    if lines.is_empty() {
        return None;
    }
    lines.push(format!(
        "Plan of {}; {}.",
        stamp(document.made_at),
        document.liveness
    ));
    Some(lines)
}

fn of_manager(manager: &Manager) -> Vec<String> {
    let lifecycle = manager
        .lifecycle
        .as_deref()
        .unwrap_or("not listed any more");
    vec![
        format!(
            "{} is a manager of group {}: KEPT",
            manager.id, manager.group
        ),
        format!(
            "  Its group says {lifecycle}, EC2 says {}; {} old; {} workers point to it.",
            manager.state,
            age(manager.age_seconds),
            manager.workers
        ),
        "  A manager is never deleted: its group ends it.".into(),
    ]
}

/// What names an id as its owner, counted by verdict.
fn of_owner(document: &PlanDocument, id: &str) -> Option<String> {
    let owned = document
        .resources
        .iter()
        .filter(|r| r.owner.as_deref() == Some(id));
    let mut by_verdict = BTreeMap::<&str, usize>::new();
    let mut state = None;
    for resource in owned {
        *by_verdict
            .entry(short_meaning(&resource.verdict))
            .or_default() += 1;
        state = resource.owner_state.as_deref().or(state);
    }
    let counts: Vec<String> = by_verdict
        .iter()
        .map(|(verdict, count)| format!("{count} {verdict}"))
        .collect();
    let state = state.unwrap_or("not looked at");
    (!counts.is_empty()).then(|| {
        format!(
            "{id} is named as owner by what is listed; it is {state}. Of that: {}.",
            counts.join(", ")
        )
    })
}

fn of_resource(resource: &ResourceLine) -> Vec<String> {
    let name = resource
        .name
        .as_ref()
        .map(|name| format!(" ({name})"))
        .unwrap_or_default();
    let state = if resource.state.is_empty() {
        String::new()
    } else {
        format!(", {}", resource.state)
    };
    let mut lines = vec![format!(
        "{} {}{name}{state}, {} old: {}",
        resource.kind,
        resource.id,
        age(resource.age_seconds),
        short_meaning(&resource.verdict)
    )];
    if let Some(owner) = &resource.owner {
        let is = resource.owner_state.as_deref().unwrap_or("not looked at");
        lines.push(format!("  Owner: {owner}, which is {is}."));
    }
    lines.push("  Rules, in order:".into());
    for (number, tried) in resource.tried.iter().enumerate() {
        lines.push(format!(
            "    {}. {}: {} -> next rule",
            number + 1,
            tried.rule,
            tried.fact
        ));
    }
    let last = resource.tried.len() + 1;
    lines.push(format!(
        "    {last}. {}: {} -> decides: {}",
        resource.rule, resource.evidence, resource.verdict
    ));
    lines
}

fn unknown(document: &PlanDocument, id: &str) -> Vec<String> {
    let read: Vec<String> = document
        .looked_at
        .iter()
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    vec![
        format!(
            "{id}: not in the plan. It is neither one of our managers nor anything that is ours by tag or by name, so it is never deleted."
        ),
        format!(
            "  Looked at in {}: {}.",
            document.region.as_deref().unwrap_or("an unknown Region"),
            read.join(", ")
        ),
        format!(
            "  Groups: {}; executor name: {}.",
            document.groups.join(", "),
            document.executor_name.as_deref().unwrap_or("none")
        ),
    ]
}

fn stranger(instance: &Instance, config: &Config) -> Vec<String> {
    let group = instance
        .group
        .as_ref()
        .map_or("in no Auto Scaling group".to_owned(), |g| {
            format!("in group {g}")
        });
    let mut lines = vec![format!(
        "  EC2 says: {}, {group}, no tag {}.",
        instance.state.word(),
        config.parent_tag
    )];
    if instance.state.is_gone() {
        lines.push("  It is gone already: there is nothing to delete.".into());
    }
    match &instance.key_name {
        Some(key) => lines.extend(name_of_stranger(key, config)),
        None => lines
            .push("  It was launched without a key pair, so no name speaks for it either.".into()),
    }
    lines
}

fn name_of_stranger(name: &str, config: &Config) -> Option<String> {
    let executor = config.executor.as_ref()?;
    Some(match executor.owner_of(name, &BTreeSet::new()) {
        NameOwner::Ours(born) => {
            format!("  The name {name} is ours exactly, made {}.", stamp(born))
        }
        NameOwner::OursIfToken(token, _) => format!(
            "  The name {name} is ours only if the runner token {token} is (RUNNER_TOKENS)."
        ),
        NameOwner::Foreign => format!(
            "  The name {name} is docker-machine's, for another executor than {}.",
            executor.as_str()
        ),
        NameOwner::Unrelated => {
            format!("  The name {name} is none that docker-machine makes for a runner.")
        }
    })
}
