//! The truth: what the simulated world knows and the function must guess. Who made what, who lives, which jobs run.
//! Nothing here comes from the function's code.

use crate::fake_aws::Request;
use crate::fake_aws::world::{Instance, InstanceState, World};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};

pub type Time = DateTime<Utc>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The manager with this number.
    Manager(usize),
    /// A manager from before, that nobody remembers.
    LongGone,
    /// Somebody else. Nothing of theirs may be touched.
    Foreign,
    /// Unknowable: no rule of the design proves anything.
    Nobody,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Worker,
    Key,
    Spot,
    Address,
    Fleet,
}

#[derive(Clone, Debug)]
pub struct Thing {
    pub kind: Kind,
    pub owner: Owner,
    pub born: Time,
    pub kept: bool,
    /// It bears a name that is ours exactly.
    pub named: bool,
}

#[derive(Clone, Debug)]
pub struct Manager {
    pub id: String,
    pub group: String,
    pub born: Option<Time>,
    /// When its service stopped taking jobs.
    pub closes: Option<Time>,
    /// Jobs that began: their ends.
    pub jobs: Vec<Time>,
    /// The service was killed, or never ran: there are no jobs to wait for.
    pub aborted: bool,
    /// Died before its jobs had ended.
    pub undrained: bool,
    pub ended: Option<Time>,
    pub warned_by_spot: bool,
    pub stopped: bool,
    pub was_in_pool: bool,
    /// How many commands in a row were sent within seconds of the last one's end.
    pub hasty: u32,
    pub commands: u32,
    /// The first time that a run was given this manager's termination, or a sweep ran while it waited.
    pub noticed: Option<Time>,
}

impl Manager {
    /// When the last job that began ends.
    pub fn busy_until(&self) -> Option<Time> {
        if self.aborted {
            None
        } else {
            self.jobs.iter().max().copied()
        }
    }

    /// Whether every job has ended and none can begin.
    pub fn is_drained(&self, now: Time) -> bool {
        self.aborted
            || (self.closes.is_some_and(|at| at <= now)
                && self.busy_until().is_none_or(|until| until <= now))
    }
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// 1 to 6 as in the issue; 0 for what no promise allows at all (a panic, a run into its timeout).
    pub promise: u8,
    pub at: Time,
    pub what: String,
}

/// A message that the function sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub queue: String,
    pub body: String,
    pub delay: i64,
    pub run: u64,
}

#[derive(Debug, Default)]
pub struct Truth {
    pub managers: Vec<Manager>,
    /// The groups that the function is told to manage.
    pub configured: Vec<String>,
    pub things: BTreeMap<String, Thing>,
    pub violations: Vec<Violation>,
    pub outbox: Vec<Outgoing>,
    /// ChangeMessageVisibility: receipt handle and seconds.
    pub visibility: Vec<(String, i64)>,
    /// Commands that were sent: id, instance, and when they start.
    pub commands: Vec<(String, String, Time)>,
    /// Bodies that were put on the dead-letter queue.
    pub buried: BTreeSet<String>,
    /// Calls by run and operation.
    pub calls: BTreeMap<u64, BTreeMap<String, usize>>,
    pub call_count: usize,
    /// Which call was hit by what, for the shrinker.
    pub hits: BTreeMap<usize, crate::fake_aws::Fault>,
    /// Runs to be killed, and when.
    pub kills: Vec<(u64, Time)>,
    /// Runs to be frozen, and until when.
    pub freezes: Vec<(u64, Time)>,
    /// Runs that were frozen at some time.
    pub frozen: BTreeSet<u64>,
    /// When a command was sent at last.
    pub last_command: Option<Time>,
    /// When each run began.
    pub begun: BTreeMap<u64, Time>,
    /// Runs that were hit by a fault, a kill or a freeze.
    pub disturbed: BTreeSet<u64>,
    /// The most receives of one message of a manager's termination.
    pub receives_of: BTreeMap<usize, u32>,
    /// When a command proved a manager drained.
    pub proven: BTreeMap<usize, Time>,
    /// Runs that the queue triggered.
    pub queue_runs: BTreeSet<u64>,
    /// Runs that have nothing to do with AWS.
    pub idle_runs: BTreeSet<u64>,
    /// Runs that may write nothing.
    pub silent_runs: BTreeSet<u64>,
    /// Since when an address is free, though the manager that it belongs to may live.
    pub free_since: BTreeMap<String, Time>,
    /// What each run deleted, by operation.
    pub deleted: BTreeMap<u64, BTreeMap<String, BTreeSet<String>>>,
    /// When each run first read the instances.
    pub read_instances: BTreeMap<u64, Time>,
}

impl Truth {
    pub fn violate(&mut self, promise: u8, world: &mut World, what: impl Into<String>) {
        let what = what.into();
        world.note(format!("!! promise {promise}: {what}"));
        self.violations.push(Violation {
            promise,
            at: world.now(),
            what,
        });
    }

    pub fn manager_named(&self, id: &str) -> Option<usize> {
        self.managers.iter().position(|manager| manager.id == id)
    }

    /// The thing with this id; an instance that a persistent request launched again belongs to the request's owner.
    pub fn thing(&self, world: &World, id: &str) -> Option<Thing> {
        if let Some(thing) = self.things.get(id) {
            return Some(thing.clone());
        }
        let instance = world.ec2.instances.get(id)?;
        let by_fleet = world
            .ec2
            .fleets
            .values()
            .find(|fleet| fleet.instances.iter().any(|started| started == id));
        if let Some(fleet) = by_fleet.and_then(|fleet| self.things.get(&fleet.id)) {
            return Some(Thing {
                kind: Kind::Worker,
                kept: false,
                named: false,
                ..fleet.clone()
            });
        }
        let request = self.things.get(instance.spot_request_id.as_ref()?)?;
        // Its name is the request's, and its age counts from there.
        Some(Thing {
            kind: Kind::Worker,
            kept: false,
            ..request.clone()
        })
    }

    /// Whether the manager lives: pending, running, stopping or stopped.
    pub fn lives(&self, world: &World, number: usize) -> bool {
        let manager = &self.managers[number];
        world.ec2.instances.get(&manager.id).is_some_and(is_live)
    }

    /// Whether EC2 shows the manager's end, so that nothing rests on its absence.
    pub fn end_is_visible(&self, world: &World, number: usize) -> bool {
        world
            .ec2
            .instances
            .get(&self.managers[number].id)
            .is_some_and(|instance| instance.state.is_ending())
    }

    /// The birth of the oldest manager that lives. The beginning of time, where a name in the configuration that no
    /// group has may be a misspelt one, and an instance of another group may be a manager of the one that was meant.
    pub fn oldest_birth(&self, world: &World) -> Option<Time> {
        if may_be_misspelt(world, &self.configured) {
            return Some(Time::MIN_UTC);
        }
        let of_ours = (0..self.managers.len())
            .filter(|number| self.lives(world, *number))
            .filter_map(|number| self.managers[number].born);
        let stranger = world.ec2.instances.get(super::neighbours::STRANGER);
        let of_others = stranger
            .filter(|_| {
                !self
                    .configured
                    .iter()
                    .any(|group| group == super::neighbours::MISSPELT)
            })
            .and_then(|stranger| stranger.attached);
        of_ours.chain(of_others).min()
    }

    pub fn busy_run(&self, run: u64) -> usize {
        self.calls.get(&run).map_or(0, |calls| calls.values().sum())
    }
}

fn may_be_misspelt(world: &World, configured: &[String]) -> bool {
    let group_of = |instance: &Instance| instance.tags.get("aws:autoscaling:groupName").cloned();
    let is_unknown = |group: &&String| {
        !world.groups.contains_key(*group)
            && !world
                .ec2
                .instances
                .values()
                .any(|instance| group_of(instance).as_ref() == Some(*group))
    };
    let is_elsewhere = |instance: &Instance| {
        is_live(instance) && group_of(instance).is_some_and(|group| !configured.contains(&group))
    };
    configured.iter().any(|group| is_unknown(&group))
        && world.ec2.instances.values().any(is_elsewhere)
}

pub fn is_live(instance: &Instance) -> bool {
    !instance.state.is_ending()
}

pub fn runs(world: &World, id: &str) -> bool {
    world
        .ec2
        .instances
        .get(id)
        .is_some_and(|instance| instance.state == InstanceState::Running)
}

/// The ids that a write names, keys by their id.
pub fn targets(world: &World, request: &Request) -> Vec<String> {
    if request.operation == "DeleteKeyPair"
        && let Some(name) = request.text("KeyName")
    {
        return world
            .ec2
            .key_pairs
            .values()
            .filter(|key| key.name == name)
            .map(|key| key.id.clone())
            .collect();
    }
    request.ids()
}

pub fn seconds(number: i64) -> TimeDelta {
    TimeDelta::seconds(number)
}
