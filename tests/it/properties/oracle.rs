//! What a world proves, section by section as the design says what an orphan is; it knows nothing of how the planner
//! judges.

use super::worlds::{GROUPS, now};
use chrono::{DateTime, TimeDelta, Utc};
use lifecycle_reaper::{
    names::{ExecutorName, NameOwner},
    reap::{ADDRESSES, KEY_PAIRS, SPOT_REQUESTS, WORKERS},
    task::InstanceId,
    world::{Instance, InstanceState, Resource, World},
};
use std::collections::BTreeSet;

const GRACE: TimeDelta = TimeDelta::seconds(900);

/// What the world proves, by the words of the design.
pub struct Oracle<'a> {
    pub world: &'a World,
    pub executor: ExecutorName,
}

impl<'a> Oracle<'a> {
    pub fn of(world: &'a World) -> Self {
        Self {
            world,
            executor: ExecutorName::new("ci", vec![]).expect("a name"),
        }
    }

    pub fn instance(&self, id: &str) -> Option<&'a Instance> {
        self.world.instances.items.iter().find(|i| i.id == id)
    }

    pub fn is_member(&self, id: &str) -> bool {
        self.world
            .members
            .items
            .iter()
            .any(|m| m.id == id && m.group == GROUPS[0] && m.lifecycle != "Terminated")
    }

    pub fn is_ended(&self, id: &str) -> bool {
        self.instance(id).is_some_and(|i| {
            matches!(
                i.state,
                InstanceState::ShuttingDown | InstanceState::Terminated
            )
        })
    }

    /// Gone by EC2's own word, or absent from a world that was read whole.
    pub fn is_gone(&self, id: &str) -> bool {
        let whole = self.world.instances.fault.is_none() && self.world.members.fault.is_none();
        let absent = whole && self.instance(id).is_none() && !self.is_member(id);
        InstanceId::parse(id).is_some() && (self.is_ended(id) || absent)
    }

    pub fn is_manager(&self, id: &str) -> bool {
        let listed = self
            .world
            .members
            .items
            .iter()
            .any(|m| m.id == id && m.group == GROUPS[0]);
        listed
            || self
                .instance(id)
                .is_some_and(|i| i.group.as_deref() == Some(GROUPS[0]))
    }

    /// When something of this name was born, if the name could be ours by any token.
    pub fn named(&self, name: Option<&str>) -> Option<DateTime<Utc>> {
        match self.executor.owner_of(name?, &BTreeSet::new()) {
            NameOwner::Ours(born) | NameOwner::OursIfToken(_, born) => Some(born),
            _ => None,
        }
    }

    /// Whether everything born at `born` is older than every live manager.
    pub fn predates_all(&self, born: DateTime<Utc>) -> bool {
        let whole = self.world.instances.fault.is_none() && self.world.members.fault.is_none();
        let live = |i: &&Instance| {
            !matches!(
                i.state,
                InstanceState::ShuttingDown | InstanceState::Terminated
            )
        };
        let mut managers = self
            .world
            .instances
            .items
            .iter()
            .filter(live)
            .filter(|i| self.is_manager(&i.id));
        let unseen = self.world.members.items.iter().any(|m| {
            m.group == GROUPS[0] && m.lifecycle != "Terminated" && self.instance(&m.id).is_none()
        });
        whole && !unseen && managers.all(|m| m.born.is_some_and(|b| born < b))
    }

    pub fn is_old(&self, born: DateTime<Utc>) -> bool {
        now() >= born + GRACE
    }

    /// Why this may be deleted; an error says why it must not be.
    pub fn may_go(&self, kind: &str, resource: &Resource) -> Result<(), &'static str> {
        match kind {
            WORKERS => self.worker_may_go(self.instance(&resource.id).ok_or("unseen")?),
            SPOT_REQUESTS => self.request_may_go(resource),
            KEY_PAIRS => self.key_may_go(resource),
            ADDRESSES => self.address_may_go(resource),
            _ => Err("an unknown kind"),
        }
    }

    pub fn worker_may_go(&self, worker: &Instance) -> Result<(), &'static str> {
        if worker.keep || self.is_manager(&worker.id) {
            return Err("kept, or a manager");
        }
        let born = self
            .named(worker.key_name.as_deref())
            .or(worker.launched)
            .ok_or("no age")?;
        match worker.parent.as_deref() {
            Some(parent) if !self.is_gone(parent) => Err("its manager is not gone"),
            Some(parent) if self.is_ended(parent) || self.is_old(born) => Ok(()),
            Some(_) => Err("too young"),
            None if self.named(worker.key_name.as_deref()).is_some()
                && self.predates_all(born)
                && self.is_old(born) =>
            {
                Ok(())
            }
            None => Err("nothing proves it"),
        }
    }

    pub fn request_may_go(&self, request: &Resource) -> Result<(), &'static str> {
        if request.keep {
            return Err("kept");
        }
        let by_request = self
            .world
            .instances
            .items
            .iter()
            .filter(|i| i.spot_request.as_deref() == Some(&request.id));
        let named = request.instance.as_deref().and_then(|id| self.instance(id));
        if let Some(live) = by_request
            .chain(named)
            .find(|i| self.worker_may_go(i).is_ok())
        {
            let _ = live;
            return Ok(());
        }
        let born = self
            .named(request.key_name.as_deref())
            .or(request.created)
            .ok_or("no age")?;
        match request.owner.as_deref() {
            Some(owner) if self.is_gone(owner) && (self.is_ended(owner) || self.is_old(born)) => {
                Ok(())
            }
            Some(_) => Err("its owner is not gone"),
            None if self.named(request.key_name.as_deref()).is_some()
                && self.predates_all(born)
                && self.is_old(born) =>
            {
                Ok(())
            }
            None => Err("nothing proves it"),
        }
    }

    pub fn key_may_go(&self, key: &Resource) -> Result<(), &'static str> {
        let born = self.named(Some(&key.id)).ok_or("not ours")?;
        let users: Vec<_> = self
            .world
            .instances
            .items
            .iter()
            .filter(|i| i.key_name.as_deref() == Some(&key.id))
            .collect();
        if key.keep
            || users.iter().any(|i| i.state != InstanceState::Terminated)
            || self.world.instances.fault.is_some()
        {
            return Err("kept or in use");
        }
        let requests = &self.world.resources[SPOT_REQUESTS];
        if requests
            .items
            .iter()
            .any(|r| r.key_name.as_deref() == Some(&key.id))
        {
            return Err("an open request uses it");
        }
        let owners: Vec<&str> = key
            .owner
            .as_deref()
            .into_iter()
            .chain(users.iter().filter_map(|i| i.parent.as_deref()))
            .collect();
        // Where EC2 itself says that the owner is gone, no grace is needed.
        if !self.is_old(born) && !owners.iter().any(|o| self.is_ended(o)) {
            return Err("too young");
        }
        let gone = owners.iter().any(|o| self.is_gone(o));
        (gone || self.predates_all(born))
            .then_some(())
            .ok_or("nothing proves it")
    }

    pub fn address_may_go(&self, address: &Resource) -> Result<(), &'static str> {
        if address.keep || address.bound.is_some() {
            return Err("kept or in use");
        }
        let two_looks = address.marked.is_some_and(|m| self.is_old(m));
        match address
            .owner
            .as_deref()
            .filter(|o| InstanceId::parse(o).is_some())
        {
            Some(owner) if !self.is_gone(owner) => Err("its manager is not gone"),
            Some(owner)
                if self.is_ended(owner)
                    || address.allocated.is_some_and(|a| self.is_old(a))
                    || two_looks =>
            {
                Ok(())
            }
            None if address.claimed && two_looks => Ok(()),
            _ => Err("nothing proves it"),
        }
    }
}
