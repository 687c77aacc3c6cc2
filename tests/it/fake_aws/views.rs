//! Eventual consistency: what a read sees may lag behind what was written, item by item.

use super::world::{Ec2, Group, World};
use chrono::{DateTime, TimeDelta, Utc};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

/// Draws how old the version of one item is that one read sees.
pub type Lag = Box<dyn FnMut() -> TimeDelta + Send>;

/// Former versions of the world, and how often they are shown.
pub struct Staleness {
    pub lag: Lag,
    /// No version older than this is kept or shown.
    pub horizon: TimeDelta,
    past: VecDeque<Version>,
}

struct Version {
    /// This version held until then.
    until: DateTime<Utc>,
    ec2: Ec2,
    groups: BTreeMap<String, Group>,
}

impl std::fmt::Debug for Staleness {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "reads lag by up to {}, {} versions kept",
            self.horizon,
            self.past.len()
        )
    }
}

impl Staleness {
    pub fn new(horizon: TimeDelta, lag: impl FnMut() -> TimeDelta + Send + 'static) -> Self {
        Self {
            lag: Box::new(lag),
            horizon,
            past: VecDeque::new(),
        }
    }

    /// The version that held at `time`, if it is not the present one.
    fn version_at(&self, time: DateTime<Utc>) -> Option<&Version> {
        self.past.iter().find(|version| version.until > time)
    }
}

impl World {
    /// Keeps the present as a version to be seen later. To be called before anything changes.
    pub fn remember(&mut self) {
        let now = self.now();
        let Some(staleness) = &mut self.staleness else {
            return;
        };
        if staleness
            .past
            .back()
            .is_some_and(|version| version.until == now)
        {
            return;
        }
        staleness.past.push_back(Version {
            until: now,
            ec2: self.ec2.clone(),
            groups: self.groups.clone(),
        });
        while staleness
            .past
            .front()
            .is_some_and(|version| version.until < now - staleness.horizon)
        {
            staleness.past.pop_front();
        }
    }

    /// One EC2 collection as this read sees it: each item in the version that its own lag shows.
    pub fn seen<T: Clone>(
        &mut self,
        pick: fn(&Ec2) -> &BTreeMap<String, T>,
    ) -> Cow<'_, BTreeMap<String, T>> {
        let now = self.now();
        let Some(staleness) = &mut self.staleness else {
            return Cow::Borrowed(pick(&self.ec2));
        };
        let mut ids: Vec<&String> = pick(&self.ec2).keys().collect();
        ids.extend(
            staleness
                .past
                .iter()
                .flat_map(|version| pick(&version.ec2).keys()),
        );
        ids.sort();
        ids.dedup();
        let mut seen = BTreeMap::new();
        for id in ids {
            let lag = (staleness.lag)().min(staleness.horizon);
            let shown = staleness
                .version_at(now - lag)
                .map_or(&self.ec2, |version| &version.ec2);
            if let Some(item) = pick(shown).get(id) {
                seen.insert(id.clone(), item.clone());
            }
        }
        Cow::Owned(seen)
    }

    /// The groups as this read sees them, all in one version.
    pub fn groups_seen(&mut self) -> &BTreeMap<String, Group> {
        let now = self.now();
        let Some(staleness) = &mut self.staleness else {
            return &self.groups;
        };
        let lag = (staleness.lag)().min(staleness.horizon);
        staleness
            .version_at(now - lag)
            .map_or(&self.groups, |version| &version.groups)
    }
}
