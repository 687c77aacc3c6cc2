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
    /// Runs that were hit by a fault, a kill or a freeze.
    pub disturbed: BTreeSet<u64>,
    pub deliveries_of: BTreeMap<usize, u32>,
    /// When a command proved a manager drained.
    pub proven: BTreeMap<usize, Time>,
    /// Runs that the queue triggered.
    pub queue_runs: BTreeSet<u64>,
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

    /// The birth of the oldest manager that lives.
    pub fn oldest_birth(&self, world: &World) -> Option<Time> {
        (0..self.managers.len())
            .filter(|number| self.lives(world, *number))
            .filter_map(|number| self.managers[number].born)
            .min()
    }

    pub fn busy_run(&self, run: u64) -> usize {
        self.calls.get(&run).map_or(0, |calls| calls.values().sum())
    }
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
