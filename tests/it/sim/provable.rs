//! The checker between sweeps: what could be proven an orphan when a sweep of the quiet began is gone when the next one
//! begins; and what a manager left is gone when its message is acknowledged.

use super::checker::{OWNER_TAG, used};
use super::play::Play;
use super::rest::Evidence;
use super::truth::{Kind, Owner, Time, Truth, seconds};
use crate::fake_aws::world::{Instance, InstanceState, World};
use std::collections::BTreeMap;

/// From shutting-down to terminated, with a margin for clocks that differ.
const TO_TERMINATED: i64 = 60;

impl Play {
    /// At the beginning of each sweep of the quiet.
    pub fn follow_provable(&mut self) {
        let (late, provable) = {
            let world = self.aws.world();
            let truth = self.truth();
            let now = self.provable_keys(&world, &truth);
            let before = &self.provable;
            let counted = now
                .into_iter()
                .map(|id| (id.clone(), before.get(&id).copied().unwrap_or(0) + 1))
                .collect::<BTreeMap<_, _>>();
            (self.still_provable(&world), counted)
        };
        for what in late {
            self.violate(5, what);
        }
        self.provable = provable;
    }

    /// What two sweeps in a row could have proven (a few more, where a pass deletes little), and is still there.
    pub fn still_provable(&self, world: &World) -> Vec<String> {
        let enough = if self.script.settings.max_deletions < 100 {
            8
        } else {
            2
        };
        self.provable
            .iter()
            .filter(|(id, count)| **count >= enough && world.ec2.key_pairs.contains_key(*id))
            .map(|(id, count)| {
                format!(
                    "the key {id} is left after {count} sweeps, and its worker's manager is gone"
                )
            })
            .collect()
    }

    /// Keys that nobody uses, whose terminated worker still tells that its manager is gone: however young they are
    /// beside the managers that live.
    fn provable_keys(&self, world: &World, truth: &Truth) -> Vec<String> {
        let evidence = Evidence::of(self, world, truth);
        let is_provable = |id: &String, name: &String| {
            let Some(thing) = truth.things.get(id) else {
                return false;
            };
            let users = || {
                let instances = world.ec2.instances.values();
                instances.filter(|instance| instance.key_name.as_ref() == Some(name))
            };
            let mut requests = world.ec2.spot_requests.values();
            thing.named
                && evidence.may_go(thing)
                && !used(world, id)
                && users().all(|user| has_terminated(user, world.now()))
                && users().any(|user| evidence.is_gone(user.tags.get("gitlab-runner-parent-id")))
                && !requests.any(|request| {
                    request.key_name.as_ref() == Some(name) && request.state == "active"
                })
        };
        let keys = world.ec2.key_pairs.values();
        keys.filter(|key| is_provable(&key.id, &key.name))
            .map(|key| key.id.clone())
            .collect()
    }

    /// What a manager left that could be judged, or had to be waited for, all the time since a run began.
    pub fn left_by(&self, world: &World, truth: &Truth, number: usize, begun: Time) -> Vec<String> {
        let manager = world.ec2.instances.get(&truth.managers[number].id);
        let is_gone = manager.is_some_and(|manager| has_terminated(manager, begun));
        // A manager that ended meanwhile would make more provable than the run can have seen.
        let is_steady = world.ec2.instances.values().all(|instance| {
            instance
                .ended
                .is_none_or(|ended| ended + seconds(TO_TERMINATED) < begun)
        });
        if !is_gone || !is_steady {
            return vec![];
        }
        let evidence = Evidence::of(self, world, truth);
        let mut left = Vec::new();
        for (id, thing) in &truth.things {
            let is_theirs =
                thing.owner == Owner::Manager(number) && !thing.kept && thing.born < begun;
            if !is_theirs {
                continue;
            }
            let by_name = thing.named && evidence.is_older_than_all(thing.born);
            let waits = match thing.kind {
                Kind::Key => {
                    let Some(key) = world.ec2.key_pairs.get(id) else {
                        continue;
                    };
                    let mut instances = world.ec2.instances.values();
                    let mut requests = world.ec2.spot_requests.values();
                    by_name
                        && instances.all(|instance| {
                            instance.key_name.as_ref() != Some(&key.name)
                                || has_terminated(instance, begun)
                        })
                        && requests.all(|request| request.key_name.as_ref() != Some(&key.name))
                }
                Kind::Address => world.ec2.addresses.get(id).is_some_and(|address| {
                    let in_pool = self.script.settings.eip_tag && address.tags.contains_key("pool");
                    address.association_id.is_none()
                        && (in_pool || address.tags.contains_key(OWNER_TAG))
                }),
                Kind::Spot => world
                    .ec2
                    .spot_requests
                    .get(id)
                    .is_some_and(|request| by_name && request.state == "open"),
                Kind::Worker | Kind::Fleet => false,
            };
            if waits {
                left.push(format!("its {:?} {id} is still there", thing.kind));
            }
        }
        left
    }
}

/// Whether it had terminated at a moment, for everybody to see.
fn has_terminated(instance: &Instance, at: Time) -> bool {
    instance.state == InstanceState::Terminated
        && instance
            .ended
            .is_some_and(|ended| ended + seconds(TO_TERMINATED) < at)
}
