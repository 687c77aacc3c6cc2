//! A second look at a plan before anything is done: by the world alone, and not by the way it was judged.
//!
//! The two know nothing of each other, so a mistake in one is caught by the other: a plan that breaks a promise
//! deletes nothing at all and fails loudly.

use crate::{
    config::Config,
    names::NameOwner,
    plan::{ReapPlan, Step},
    reap,
    task::InstanceId,
    world::{Instance, Member, Resource, Time, World},
};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt,
};

/// A promise that a plan would break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the plan breaks a promise and was not carried out: {}",
            self.0
        )
    }
}

impl std::error::Error for Violation {}

/// Checks every deletion of `plan` against `world`.
///
/// # Errors
/// The first promise that the plan breaks.
pub fn check(plan: &ReapPlan, world: &World, config: &Config, now: Time) -> Result<(), Violation> {
    let facts = Facts::of(world, config, now);
    let orphans: HashSet<(&str, &str)> = plan
        .judged
        .iter()
        .filter(|(_, judgement)| judgement.verdict == reap::Verdict::Orphan)
        .map(|(kind, judgement)| (*kind, judgement.resource.id.as_str()))
        .collect();
    for (kind, steps) in &plan.steps {
        let mut deletions = 0;
        for step in steps {
            let Step::Delete(resource) = step else {
                continue;
            };
            deletions += 1;
            let broken = facts.broken_by(kind, resource).or_else(|| {
                let is_judged = orphans.contains(&(*kind, resource.id.as_str()));
                (!is_judged).then_some("was not judged an orphan")
            });
            if let Some(what) = broken {
                return Err(Violation(format!("{kind} {} {what}", resource.id)));
            }
        }
        if deletions > config.max_deletions {
            return Err(Violation(format!(
                "{deletions} {kind} in one pass, at most {} may be",
                config.max_deletions
            )));
        }
    }
    Ok(())
}

/// The world, indexed by id.
struct Facts<'a> {
    world: &'a World,
    config: &'a Config,
    now: Time,
    instances: HashMap<&'a str, &'a Instance>,
    by_spot_request: HashMap<&'a str, &'a Instance>,
    members: HashSet<&'a str>,
    managers: HashSet<&'a str>,
    listed: HashMap<(&'a str, &'a str), &'a Resource>,
    keys_in_use: HashSet<&'a str>,
    parent_by_key: HashMap<&'a str, &'a str>,
}

impl<'a> Facts<'a> {
    fn of(world: &'a World, config: &'a Config, now: Time) -> Self {
        let whole = world
            .resources
            .iter()
            .filter(|(_, listing)| listing.is_complete());
        let in_use = world.instances.items.iter().filter(|i| !i.state.is_gone());
        let is_managed = |m: &&Member| config.groups.contains(&m.group);
        let managed = || world.members.items.iter().filter(is_managed);
        Self {
            world,
            config,
            now,
            instances: world
                .instances
                .items
                .iter()
                .map(|i| (i.id.as_str(), i))
                .collect(),
            by_spot_request: world
                .instances
                .items
                .iter()
                .filter_map(|i| Some((i.spot_request.as_deref()?, i)))
                .collect(),
            members: managed()
                .filter(|m| m.lifecycle != "Terminated")
                .map(|m| m.id.as_str())
                .collect(),
            managers: managed().map(|m| m.id.as_str()).collect(),
            listed: whole
                .flat_map(|(kind, l)| l.items.iter().map(|r| ((*kind, r.id.as_str()), r)))
                .collect(),
            parent_by_key: world
                .instances
                .items
                .iter()
                .filter_map(|i| Some((i.key_name.as_deref()?, i.parent.as_deref()?)))
                .collect(),
            keys_in_use: in_use.filter_map(|i| i.key_name.as_deref()).collect(),
        }
    }

    /// What is wrong with deleting `resource`, if anything is.
    fn broken_by(&self, kind: &str, resource: &Resource) -> Option<&'static str> {
        let id = resource.id.as_str();
        if id.is_empty() {
            return Some("has no id");
        }
        let (is_protected, owner) = if kind == reap::WORKERS {
            let Some(instance) = self.instances.get(id) else {
                return Some("was not seen");
            };
            let in_group = instance
                .group
                .as_ref()
                .is_some_and(|g| self.config.groups.contains(g));
            if in_group || self.managers.contains(id) {
                return Some("is a manager");
            }
            (instance.keep, instance.parent.as_deref())
        } else {
            let Some(seen) = self.listed.get(&(kind, id)) else {
                return Some("was not seen in a whole listing");
            };
            (seen.keep || seen.bound.is_some(), seen.owner.as_deref())
        };
        match () {
            () if is_protected => Some("is protected"),
            () if kind == reap::WORKERS && owner.is_some_and(|owner| !is_id(owner)) => {
                Some("has a parent that is no instance")
            }
            () if owner.is_some_and(|owner| is_id(owner) && self.is_live(owner)) => {
                Some("has a live owner")
            }
            () if kind == reap::KEY_PAIRS && self.keys_in_use.contains(id) => Some("is in use"),
            () if !self.owner_is_gone(kind, resource) && self.is_young(resource) => {
                Some("is too young")
            }
            () => None,
        }
    }

    fn is_live(&self, owner: &str) -> bool {
        match self.instances.get(owner) {
            Some(instance) => !instance.state.is_gone(),
            None => {
                self.members.contains(owner)
                    || !self.world.instances.is_complete()
                    || !self.world.members.is_complete()
            }
        }
    }

    /// Whether EC2 itself proves that the owner, or the owner of the instance that it belongs to, is gone.
    fn owner_is_gone(&self, kind: &str, resource: &Resource) -> bool {
        let of_instance = |id: &str| self.instances.get(id).and_then(|i| i.parent.as_deref());
        let owner = match kind {
            reap::WORKERS => of_instance(&resource.id),
            reap::SPOT_REQUESTS => {
                let instance = self.by_spot_request.get(resource.id.as_str());
                let instance =
                    instance.or_else(|| self.instances.get(resource.instance.as_deref()?));
                instance
                    .and_then(|i| i.parent.as_deref())
                    .or(resource.owner.as_deref())
            }
            reap::KEY_PAIRS => {
                let of_worker = self.parent_by_key.get(resource.id.as_str()).copied();
                resource.owner.as_deref().or(of_worker)
            }
            _ => resource.owner.as_deref(),
        };
        owner
            .and_then(|owner| self.instances.get(owner))
            .is_some_and(|manager| manager.state.is_gone())
    }

    /// Younger than the grace period by every clock that tells.
    fn is_young(&self, resource: &Resource) -> bool {
        let executor = self.config.executor.as_ref();
        let named = executor
            .zip(resource.key_name.as_deref())
            .and_then(
                |(executor, name)| match executor.owner_of(name, &BTreeSet::new()) {
                    NameOwner::Ours(born) | NameOwner::OursIfToken(_, born) => Some(born),
                    NameOwner::Foreign | NameOwner::Unrelated => None,
                },
            );
        let is_old = |born: Time| self.now >= born + self.config.grace;
        match named.or(resource.created) {
            Some(born) => !is_old(born),
            // An address has no time of AWS's: its own tag tells, or our first look.
            None => ![resource.allocated, resource.marked]
                .into_iter()
                .flatten()
                .any(is_old),
        }
    }
}

fn is_id(owner: &str) -> bool {
    InstanceId::parse(owner).is_some()
}
