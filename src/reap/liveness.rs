//! Which managers live, and since when: what is older than all of them can't be theirs.

use super::{Evidence, KEY_PAIRS, OwnerState, SPOT_REQUESTS, evidence::stamp};
use crate::{
    names::NameOwner,
    world::{Instance, Time},
};
use chrono::TimeDelta;
use std::collections::BTreeMap;

/// A manager's clock made the time in a name, AWS's clock the time of a launch: so much apart they prove nothing.
const CLOCK_SKEW: TimeDelta = TimeDelta::seconds(60);

/// The live managers, as far as age is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// None lives.
    NoneLives,
    /// The oldest that lives was born then.
    OldestBorn(Time, String),
    /// Not known: nothing is older than every live manager.
    Unknown(String),
}

impl<'a> Evidence<'a> {
    /// Whether `born` is older than every live manager, in words; an error says why not.
    pub fn older_than_every_live_manager(&self, born: Time) -> Result<String, String> {
        match &self.liveness {
            Liveness::NoneLives => Ok("no manager lives".into()),
            Liveness::OldestBorn(oldest, id) if born + CLOCK_SKEW < *oldest => Ok(format!(
                "older than every live manager (the oldest is {id}, born {})",
                stamp(*oldest)
            )),
            Liveness::OldestBorn(oldest, id) => Err(format!(
                "not older than the live manager {id}, born {}: it may be its own",
                stamp(*oldest)
            )),
            Liveness::Unknown(why) => Err(format!("the live managers are not known: {why}")),
        }
    }

    /// Every live manager: members of the managed groups, instances that carry a managed group's tag, and whatever
    /// live instance a parent or owner tag beside our name points to.
    fn live_managers(&self) -> BTreeMap<String, Option<Time>> {
        let mut live = BTreeMap::new();
        let mut add = |id: &str| {
            if let OwnerState::Live(_) = self.owner_state(id) {
                live.insert(id.to_owned(), self.instance(id).and_then(|i| i.born));
            }
        };
        self.members.keys().for_each(|id| add(id));
        for instance in &self.world.instances.items {
            if self.is_manager(instance) {
                add(&instance.id);
            }
            if self.is_ours(instance.key_name.as_deref()) {
                instance.parent.iter().for_each(|id| add(id));
            }
        }
        let listings = [KEY_PAIRS, SPOT_REQUESTS].map(|kind| self.world.resources.get(kind));
        for resource in listings.into_iter().flatten().flat_map(|l| &l.items) {
            if self.is_ours(resource.key_name.as_deref()) {
                resource.owner.iter().for_each(|id| add(id));
            }
        }
        live
    }

    fn is_ours(&self, name: Option<&str>) -> bool {
        let owner = name.and_then(|name| self.owner_of_name(name));
        matches!(owner, Some(NameOwner::Ours(_)))
    }

    /// A configured group that doesn't exist, and an instance of a group that may be the one that was meant.
    ///
    /// A group that was deleted is known by its instances, which EC2 shows for an hour after their end. A name that
    /// nothing bears may be misspelt: then any other group's instance may be a manager of ours.
    fn misspelt_group(&self) -> Option<(&'a str, &'a Instance)> {
        let instances = &self.world.instances.items;
        let is_unknown = |name: &&String| {
            self.config.groups.contains(name)
                && instances.iter().all(|i| i.group.as_ref() != Some(*name))
        };
        let missing = self.world.missing_groups.iter().find(is_unknown)?;
        let other = instances.iter().find(|i| {
            let elsewhere = i
                .group
                .as_ref()
                .is_some_and(|g| !self.config.groups.contains(g));
            elsewhere && i.parent.is_none() && !i.state.is_gone()
        });
        Some((missing, other?))
    }

    /// Which managers live, as far as the world was read.
    pub(super) fn read_liveness(&self) -> Liveness {
        for (what, fault) in [
            ("instances", &self.world.instances.fault),
            ("groups", &self.world.members.fault),
        ] {
            if let Some(fault) = fault {
                return Liveness::Unknown(format!(
                    "the {what} were not read to their end ({fault})"
                ));
            }
        }
        if let Some((missing, other)) = self.misspelt_group() {
            return Liveness::Unknown(format!(
                "there is no group {missing}, and {} of another group may be a manager of the one that was meant",
                other.id
            ));
        }
        let mut oldest: Option<(Time, String)> = None;
        for (id, born) in self.live_managers() {
            let Some(born) = born else {
                return Liveness::Unknown(format!("the birth of {id} can't be read"));
            };
            if oldest.as_ref().is_none_or(|(time, _)| born < *time) {
                oldest = Some((born, id));
            }
        }
        oldest.map_or(Liveness::NoneLives, |(time, id)| {
            Liveness::OldestBorn(time, id)
        })
    }
}
