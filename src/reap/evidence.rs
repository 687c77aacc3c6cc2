//! What a world proves of a manager, and who uses what.

use super::liveness::Liveness;
use crate::{
    config::Config,
    names::NameOwner,
    reap,
    task::{InstanceId, Task, ToldBy},
    world::{Instance, Member, Resource, Stage, Time, World},
};
use std::collections::{BTreeSet, HashMap};

/// What is known of the manager that something names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerState {
    /// EC2 says pending, running, stopping or stopped, or a managed group lists it.
    Live(&'static str),
    /// EC2 says shutting-down or terminated.
    Gone(&'static str),
    /// Neither EC2 nor a managed group knows it: gone, if what names it is older than the grace period.
    Absent,
    /// The world was not read to its end.
    Unknown,
    /// Not an instance id.
    Malformed,
}

impl OwnerState {
    /// The word in plans and logs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Live(word) | Self::Gone(word) => word,
            Self::Absent => "absent",
            Self::Unknown => "unknown",
            Self::Malformed => "malformed",
        }
    }
}

/// A world, read as evidence.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// The world.
    pub world: &'a World,
    /// The configuration.
    pub config: &'a Config,
    /// The time of the pass.
    pub now: Time,
    /// Whether the manager that the task is about ended its jobs before it went.
    pub drained: Option<&'a InstanceId>,
    instances: HashMap<&'a str, &'a Instance>,
    pub(super) members: HashMap<&'a str, &'a Member>,
    key_users: HashMap<&'a str, Vec<&'a Instance>>,
    by_spot_request: HashMap<&'a str, &'a Instance>,
    requests_by_key: HashMap<&'a str, &'a Resource>,
    tokens: BTreeSet<String>,
    pub(super) liveness: Liveness,
}

impl<'a> Evidence<'a> {
    /// Reads `world`; `drained` is the task's manager, if it is proven to have ended its jobs.
    pub fn of(
        world: &'a World,
        task: &'a Task,
        drained: bool,
        config: &'a Config,
        now: Time,
    ) -> Self {
        let managed = |m: &&Member| config.groups.contains(&m.group);
        let mut key_users = HashMap::<&str, Vec<&Instance>>::new();
        for instance in &world.instances.items {
            if let Some(key) = &instance.key_name {
                key_users.entry(key).or_default().push(instance);
            }
        }
        let requests = world
            .resources
            .get(reap::SPOT_REQUESTS)
            .into_iter()
            .flat_map(|l| &l.items);
        let spot = |i: &'a Instance| i.spot_request.as_deref().map(|s| (s, i));
        let mut evidence = Self {
            world,
            config,
            now,
            drained: task.manager().filter(|_| drained),
            instances: world
                .instances
                .items
                .iter()
                .map(|i| (i.id.as_str(), i))
                .collect(),
            members: world
                .members
                .items
                .iter()
                .filter(managed)
                .map(|m| (m.id.as_str(), m))
                .collect(),
            key_users,
            by_spot_request: world.instances.items.iter().filter_map(spot).collect(),
            requests_by_key: requests
                .filter_map(|r| Some((r.key_name.as_deref()?, r)))
                .collect(),
            tokens: BTreeSet::new(),
            liveness: Liveness::NoneLives,
        };
        evidence.tokens = evidence.proven_tokens(task);
        evidence.liveness = evidence.read_liveness();
        evidence
    }

    /// An instance, as EC2 listed it.
    pub fn instance(&self, id: &str) -> Option<&'a Instance> {
        self.instances.get(id).copied()
    }

    /// The instance that a spot request started.
    pub fn instance_of_spot_request(&self, request: &str) -> Option<&'a Instance> {
        self.by_spot_request.get(request).copied()
    }

    /// The instances that were launched with a key pair, terminated ones included.
    pub fn users_of_key(&self, key: &str) -> &[&'a Instance] {
        self.key_users
            .get(key)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// A spot request that can still start an instance with a key pair.
    pub fn request_with_key(&self, key: &str) -> Option<&'a Resource> {
        self.requests_by_key.get(key).copied()
    }

    /// Whether an instance is a manager: a managed group lists it, or tagged it.
    pub fn is_manager(&self, instance: &Instance) -> bool {
        self.members.contains_key(instance.id.as_str())
            || instance
                .group
                .as_ref()
                .is_some_and(|g| self.config.groups.contains(g))
    }

    /// Whose a docker-machine name is; `None` without an executor name.
    pub fn owner_of_name<'n>(&self, name: &'n str) -> Option<NameOwner<'n>> {
        self.config
            .executor
            .as_ref()
            .map(|executor| executor.owner_of(name, &self.tokens))
    }

    /// What is known of the manager `id`.
    ///
    /// EC2's shutting-down and terminated come first: nothing brings such an instance back, whatever its group
    /// still lists. Everything that isn't proven is live or unknown.
    pub fn owner_state(&self, id: &str) -> OwnerState {
        if InstanceId::parse(id).is_none() {
            return OwnerState::Malformed;
        }
        match (self.instance(id).map(|i| i.state), self.members.get(id)) {
            (Some(state), _) if state.is_gone() => OwnerState::Gone(state.word()),
            (Some(state), _) => OwnerState::Live(state.word()),
            (None, Some(member)) if member.lifecycle != "Terminated" => {
                OwnerState::Live("listed by its group")
            }
            (None, _) if self.is_whole() => OwnerState::Absent,
            (None, _) => OwnerState::Unknown,
        }
    }

    /// Whether instances and members were read to their end: only then is something that wasn't seen absent.
    pub fn is_whole(&self) -> bool {
        self.world.instances.is_complete() && self.world.members.is_complete()
    }

    /// Whether a kind was read to its end.
    pub fn is_read(&self, kind: &str) -> bool {
        self.world
            .resources
            .get(kind)
            .is_some_and(|listing| listing.is_complete())
    }

    /// The live managers.
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// Until when something born at `born` is too young to be judged by absence or time; `None` = old enough.
    pub fn too_young_until(&self, born: Time) -> Option<Time> {
        let until = born + self.config.grace;
        (self.now < until).then_some(until)
    }

    /// The birth of something that bears a name: the time in the name if it is or may be ours, else AWS's.
    pub fn born(&self, name: Option<&str>, created: Option<Time>) -> Option<Time> {
        match name.and_then(|name| self.owner_of_name(name)) {
            Some(NameOwner::Ours(born) | NameOwner::OursIfToken(_, born)) => Some(born),
            _ => created,
        }
    }

    /// Tokens with a `-` that are ours because a tagged worker of a managed manager bears one.
    fn proven_tokens(&self, task: &Task) -> BTreeSet<String> {
        let Some(executor) = &self.config.executor else {
            return BTreeSet::new();
        };
        // What an event names is of a managed group; what a person names may be a neighbour's.
        let named = match task {
            Task::Reap {
                told_by: ToldBy::Person,
                ..
            } => None,
            _ => task.manager(),
        };
        let nothing_proven = BTreeSet::new();
        let of_ours = self.world.instances.items.iter().filter(|worker| {
            worker.parent.as_deref().is_some_and(|parent| {
                let by_task = named.is_some_and(|m| m.as_str() == parent);
                by_task
                    || self.members.contains_key(parent)
                    || self.instance(parent).is_some_and(|i| self.is_manager(i))
            })
        });
        of_ours
            .filter_map(|worker| {
                match executor.owner_of(worker.key_name.as_deref()?, &nothing_proven) {
                    NameOwner::OursIfToken(token, _) => Some(token.to_owned()),
                    _ => None,
                }
            })
            .collect()
    }

    /// The live managers of one managed group.
    pub fn live_managers_of(&self, group: &str) -> Vec<&'a str> {
        let of_group = self
            .members
            .values()
            .filter(|m| m.group == group)
            .map(|m| m.id.as_str());
        let tagged = self
            .world
            .instances
            .items
            .iter()
            .filter(|i| i.group.as_deref() == Some(group))
            .map(|i| i.id.as_str());
        of_group
            .chain(tagged)
            .filter(|id| matches!(self.owner_state(id), OwnerState::Live(_)))
            .collect()
    }

    /// Members of managed groups that wait in a termination hook.
    pub fn waiting_managers(&self) -> Vec<InstanceId> {
        let is_waiting = |m: &&&Member| Stage::of(&m.lifecycle) == Stage::Waiting;
        let waiting = self.members.values().filter(is_waiting);
        let mut ids: Vec<_> = waiting.filter_map(|m| InstanceId::parse(&m.id)).collect();
        ids.sort();
        ids
    }
}

/// A moment as people read it.
pub fn stamp(time: Time) -> String {
    time.format("%Y-%m-%d %H:%M:%SZ").to_string()
}
