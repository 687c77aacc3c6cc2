//! The managers of a plan document: who may own what.

use crate::reap::{Evidence, Liveness, stamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A manager as a plan shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manager {
    /// Instance id.
    pub id: String,
    /// Its group.
    pub group: String,
    /// Auto Scaling's `LifecycleState`; absent when its group doesn't list it.
    pub lifecycle: Option<String>,
    /// EC2's word, or `absent`.
    pub state: String,
    /// Since its launch.
    pub age_seconds: Option<i64>,
    /// How many workers point to it.
    pub workers: usize,
}

/// Which managers live, in words.
pub(super) fn liveness(liveness: &Liveness) -> String {
    match liveness {
        Liveness::NoneLives => "no manager lives".into(),
        Liveness::OldestBorn(born, id) => {
            format!("the oldest live manager is {id}, born {}", stamp(*born))
        }
        Liveness::Unknown(why) => format!("the live managers are not known: {why}"),
    }
}

/// Every manager, of its group's list or by its group's tag.
pub(super) fn managers(evidence: &Evidence<'_>) -> Vec<Manager> {
    let mut workers = BTreeMap::<&str, usize>::new();
    for instance in evidence
        .world
        .instances
        .items
        .iter()
        .filter(|i| !i.state.is_gone())
    {
        if let Some(parent) = &instance.parent {
            *workers.entry(parent).or_default() += 1;
        }
    }
    let members = evidence
        .world
        .members
        .items
        .iter()
        .filter(|m| evidence.config.groups.contains(&m.group));
    let members: BTreeMap<&str, _> = members.map(|m| (m.id.as_str(), m)).collect();
    let tagged = evidence
        .world
        .instances
        .items
        .iter()
        .filter(|i| evidence.is_manager(i))
        .map(|i| i.id.as_str());
    let ids: BTreeSet<&str> = members.keys().copied().chain(tagged).collect();
    ids.into_iter()
        .map(|id| {
            let (member, instance) = (members.get(id), evidence.instance(id));
            let group = member
                .map(|m| m.group.clone())
                .or_else(|| instance.and_then(|i| i.group.clone()));
            Manager {
                id: id.to_owned(),
                group: group.unwrap_or_default(),
                lifecycle: member.map(|m| m.lifecycle.clone()),
                state: instance.map_or("absent", |i| i.state.word()).to_owned(),
                age_seconds: instance
                    .and_then(|i| i.born)
                    .map(|born| (evidence.now - born).num_seconds()),
                workers: workers.get(id).copied().unwrap_or_default(),
            }
        })
        .collect()
}
