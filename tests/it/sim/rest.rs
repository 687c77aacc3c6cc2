//! The checker at rest: nothing is left that the design's section 5 can prove, no hook waits, the queue is empty.

use super::checker::{OWNER_TAG, used};
use super::neighbours::WORKER_GROUP;
use super::play::{HOOK, MessageKind, Play};
use super::trigger::Queued;
use super::truth::{Kind, Owner, Thing, Time, Truth, seconds};
use crate::fake_aws::world::{Closing, Fleet, World};

/// Clocks of managers and of AWS may differ by less than this; births that are closer prove nothing.
const CLOSE_BIRTHS: i64 = 90;

impl Play {
    /// At rest: nothing provable is left, no hook waits, no message waits.
    pub fn rest(&mut self) {
        self.follow_up();
        if self.script.settings.mode_plan {
            return;
        }
        let mut problems = Vec::new();
        {
            let world = self.aws.world();
            let truth = self.truth.lock().expect("unpoisoned");
            problems.extend(self.waiting_hooks(&world, &truth));
            problems.extend(
                self.left_over(&world, &truth)
                    .into_iter()
                    .map(|what| (5, what)),
            );
            problems.extend(self.unreported(&world, &truth));
        }
        // A lie about a healthy manager may stay, if it keeps nobody busy.
        // So may a sweep that waits for what it has seen lately: for a grace period, and a quarter of an hour.
        let lately = self.now() - seconds(self.script.settings.grace + 2100);
        let is_late = |message: &&Queued| match message.kind {
            MessageKind::Lie => message.receives > 100,
            MessageKind::Sweep => message.sent < lately,
            _ => true,
        };
        let late: Vec<String> = self
            .queue
            .iter()
            .filter(is_late)
            .map(|message| format!("{:?}, received {} times", message.kind, message.receives))
            .collect();
        problems.extend(
            late.into_iter()
                .map(|what| (5, format!("a message is left in the queue: {what}"))),
        );
        for (promise, what) in problems {
            self.violate(promise, format!("at rest, {what}"));
        }
    }

    /// Every hook of ours is released in time, if a message came or a sweep ran.
    fn waiting_hooks(&self, world: &World, truth: &Truth) -> Vec<(u8, String)> {
        let settings = &self.script.settings;
        let limit = seconds(settings.limit());
        let mut problems = Vec::new();
        for action in world
            .groups
            .values()
            .flat_map(|group| &group.actions)
            .filter(|action| action.hook == HOOK)
        {
            let Some(number) = truth.manager_named(&action.instance_id) else {
                continue;
            };
            let manager = &truth.managers[number];
            let Some(closed) = &action.closed else {
                problems.push((3, format!("the hook of manager {number} still waits")));
                continue;
            };
            // Late by faults, lost messages and sweeps only: how late depends on what went wrong.
            let calm = self.script.mishaps.are_none()
                && truth.receives_of.contains_key(&number)
                && manager
                    .noticed
                    .is_some_and(|noticed| noticed < action.opened + seconds(700));
            let slack = seconds(if calm {
                120
            } else {
                2 * self.script.trigger.sweep_every + 1200
            });
            let due = action.opened.max(manager.noticed.unwrap_or(action.opened)) + limit;
            // Who may not complete a hook, or can't tell since when it waits, does so once somebody has mended that.
            let may_not = matches!(
                self.script.mishaps.rates.denied,
                Some("CompleteLifecycleAction" | "DescribeScalingActivities")
            );
            let mended = self.start + seconds(self.script.quiet_from);
            let due = if may_not { due.max(mended) } else { due };
            if closed.at > due + slack {
                problems.push((
                    3,
                    format!(
                        "the hook of manager {number} was released {} s after it opened",
                        (closed.at - action.opened).num_seconds()
                    ),
                ));
            }
            // What a command has proven is acted on by the next delivery, a quarter of an hour later at most.
            let proven = truth
                .proven
                .get(&number)
                .map(|proven| (*proven).max(action.opened));
            if calm && proven.is_some_and(|proven| closed.at > proven + seconds(900 + 120)) {
                problems.push((
                    3,
                    format!(
                        "the hook of manager {number} waited for {} s after it was proven drained",
                        (closed.at - proven.unwrap_or(closed.at)).num_seconds()
                    ),
                ));
            }
            // Where no message came at all, each sweep looks after the hook, and none is lost.
            let sweeps = seconds(self.script.trigger.sweep_every + 60);
            let by_sweeps = self.script.mishaps.are_none() && !self.script.settings.mode_plan;
            let outlives_sweeps = seconds(self.script.settings.heartbeat) > sweeps;
            if by_sweeps && outlives_sweeps && closed.how == Closing::HeartbeatTimeout {
                let what = format!("the hook of manager {number} ran out though sweeps ran");
                problems.push((3, what));
            }
            if by_sweeps && proven.is_some_and(|proven| closed.at > proven + seconds(960) + sweeps)
            {
                let what = format!("the hook of manager {number} was proven drained and forgotten");
                problems.push((3, what));
            }
            if calm
                && matches!(
                    closed.how,
                    Closing::HeartbeatTimeout | Closing::GlobalTimeout
                )
                && manager
                    .noticed
                    .is_some_and(|noticed| noticed < closed.at - seconds(60))
            {
                problems.push((
                    3,
                    format!(
                        "the hook of manager {number} ran out by itself: {:?}",
                        closed.how
                    ),
                ));
            }
        }
        problems
    }

    /// What nothing can prove must at least be reported: counted as `unknown` by the last sweep.
    fn unreported(&self, world: &World, truth: &Truth) -> Vec<(u8, String)> {
        let Some(sweep) = &self.last_sweep else {
            return vec![];
        };
        let oldest = truth.oldest_birth(world);
        let is_unproven = |thing: &Thing| oldest.is_some_and(|oldest| thing.born > oldest);
        let of_no_live_owner = |thing: &Thing| match thing.owner {
            Owner::Manager(number) => !truth.lives(world, number),
            Owner::LongGone => true,
            Owner::Foreign | Owner::Nobody => false,
        };
        let unproven_workers = world.ec2.instances.values().filter(|worker| {
            let untagged = !worker.tags.contains_key("gitlab-runner-parent-id");
            let unproven = truth.thing(world, &worker.id).is_some_and(|thing| {
                let by_age =
                    untagged && thing.named && of_no_live_owner(&thing) && is_unproven(&thing);
                !thing.kept && (by_age || thing.owner == Owner::Nobody)
            });
            unproven && !worker.state.is_ending()
        });
        let unproven_keys = world.ec2.key_pairs.values().filter(|key| {
            let ever_used = world
                .ec2
                .instances
                .values()
                .any(|instance| instance.key_name.as_ref() == Some(&key.name))
                || world
                    .ec2
                    .spot_requests
                    .values()
                    .any(|request| request.key_name.as_ref() == Some(&key.name));
            let unproven = truth.things.get(&key.id).is_some_and(|thing| {
                thing.named && !thing.kept && of_no_live_owner(thing) && is_unproven(thing)
            });
            unproven && !ever_used
        });
        let expected = [
            ("workers", unproven_workers.count()),
            ("key-pairs", unproven_keys.count()),
            ("worker-groups", self.unclaimed_workers(world, truth)),
        ];
        let told = |kind: &str| sweep["counts"][kind]["unknown"].as_u64().unwrap_or(0) as usize;
        expected
            .into_iter()
            .filter(|(kind, count)| *count > told(kind))
            .map(|(kind, count)| {
                (
                    5,
                    format!(
                        "{count} {kind} can't be proven, and the last sweep reports {}",
                        told(kind)
                    ),
                )
            })
            .collect()
    }

    /// Protected workers of a group whose managers are all gone, for long enough to be reported.
    fn unclaimed_workers(&self, world: &World, truth: &Truth) -> usize {
        let long_ago = world.now() - seconds(2 * self.script.trigger.sweep_every + 300);
        let is_unclaimed = (0..truth.managers.len())
            .filter(|number| self.script.managers[*number].group == 0)
            .all(|number| {
                let instance = world.ec2.instances.get(&truth.managers[number].id);
                let ended = instance.map_or(truth.managers[number].ended, |manager| manager.ended);
                ended.is_some_and(|ended| ended < long_ago)
            });
        let grace = seconds(self.script.settings.grace);
        let workers = world.groups.get(WORKER_GROUP).into_iter();
        workers
            .flat_map(|group| &group.members)
            .filter(|(_, member)| is_unclaimed && member.protected_from_scale_in)
            .filter(|(id, _)| world.instance(id).launched + grace < long_ago)
            .count()
    }

    fn left_over(&self, world: &World, truth: &Truth) -> Vec<String> {
        let evidence = Evidence::of(self, world, truth);
        let mut left = Vec::new();
        for instance in world
            .ec2
            .instances
            .values()
            .filter(|instance| !instance.state.is_ending() && !instance.termination_protection)
        {
            if truth
                .thing(world, &instance.id)
                .is_some_and(|thing| evidence.worker(&instance.id, &thing))
            {
                left.push(format!("the worker {} is left", instance.id));
            }
        }
        for (kind, id) in world
            .ec2
            .key_pairs
            .keys()
            .map(|id| (Kind::Key, id))
            .chain(world.ec2.spot_requests.keys().map(|id| (Kind::Spot, id)))
        {
            if truth
                .thing(world, id)
                .is_some_and(|thing| evidence.key_or_spot(kind, id, &thing))
            {
                left.push(format!("the {kind:?} {id} is left"));
            }
        }
        for id in world.ec2.addresses.keys() {
            if truth
                .thing(world, id)
                .is_some_and(|thing| evidence.address(id, &thing))
            {
                left.push(format!("the address {id} is left"));
            }
        }
        for fleet in world.ec2.fleets.values() {
            if truth
                .thing(world, &fleet.id)
                .is_some_and(|thing| evidence.fleet(fleet, &thing))
            {
                left.push(format!("the fleet {} is left", fleet.id));
            }
        }
        left.extend(self.still_provable(world));
        left
    }
}

/// Section 5 once more, from the truth: what can be proven an orphan, whatever the function read.
pub struct Evidence<'a> {
    play: &'a Play,
    world: &'a World,
    truth: &'a Truth,
    oldest: Option<Time>,
    now: Time,
}

impl<'a> Evidence<'a> {
    pub fn of(play: &'a Play, world: &'a World, truth: &'a Truth) -> Self {
        Self {
            play,
            world,
            truth,
            oldest: truth.oldest_birth(world),
            now: world.now(),
        }
    }

    fn denied(&self, kind: Kind) -> bool {
        let operations: &[&str] = match kind {
            Kind::Worker => &["TerminateInstances"],
            Kind::Key => &[
                "DescribeKeyPairs",
                "DeleteKeyPair",
                "DescribeSpotInstanceRequests",
                "TerminateInstances",
            ],
            Kind::Fleet => &["DescribeFleets"],
            Kind::Spot => &["DescribeSpotInstanceRequests", "CancelSpotInstanceRequests"],
            Kind::Address => &["DescribeAddresses", "ReleaseAddress", "CreateTags"],
        };
        // The denial itself ends with the quiet, but a kind that was denied throughout has had less time.
        self.play
            .script
            .mishaps
            .rates
            .denied
            .is_some_and(|denied| operations.contains(&denied))
    }

    pub fn is_gone(&self, tag: Option<&String>) -> bool {
        tag.is_some_and(|tag| {
            let well_formed = crate::fake_aws::ec2_reads::well_formed_instance_id(tag);
            let listed = self
                .world
                .groups
                .values()
                .any(|group| group.members.contains_key(tag));
            well_formed
                && self
                    .world
                    .ec2
                    .instances
                    .get(tag)
                    .map_or(!listed, |instance| instance.state.is_ending())
        })
    }

    pub fn is_older_than_all(&self, born: Time) -> bool {
        self.oldest
            .is_none_or(|oldest| born + seconds(CLOSE_BIRTHS) < oldest)
    }

    /// Old enough to have been judged by a sweep since.
    fn is_ripe(&self, thing: &Thing) -> bool {
        let settings = &self.play.script.settings;
        thing.born + seconds(settings.grace + 2 * self.play.script.trigger.sweep_every + 300)
            < self.now
    }

    pub fn may_go(&self, thing: &Thing) -> bool {
        !thing.kept
            && !matches!(thing.owner, Owner::Foreign | Owner::Nobody)
            && self.is_ripe(thing)
            && !self.denied(thing.kind)
    }

    fn worker(&self, id: &str, thing: &Thing) -> bool {
        if thing.kind != Kind::Worker || !self.may_go(thing) {
            return false;
        }
        match self.world.ec2.instances[id]
            .tags
            .get("gitlab-runner-parent-id")
        {
            Some(parent) => self.is_gone(Some(parent)),
            None => thing.named && self.is_older_than_all(thing.born),
        }
    }

    fn key_or_spot(&self, kind: Kind, id: &str, thing: &Thing) -> bool {
        if thing.kind != kind || !self.may_go(thing) || !thing.named {
            return false;
        }
        let owner = match kind {
            Kind::Key => self.world.ec2.key_pairs[id].tags.get(OWNER_TAG),
            _ => self.world.ec2.spot_requests[id].tags.get(OWNER_TAG),
        };
        let is_orphan = match owner {
            Some(_) => self.is_gone(owner),
            None => self.is_older_than_all(thing.born),
        };
        if kind == Kind::Key {
            let name = &self.world.ec2.key_pairs[id].name;
            let of_active = self.world.ec2.spot_requests.values().any(|request| {
                request.state == "active" && request.key_name.as_ref() == Some(name)
            });
            return !used(self.world, id) && !of_active && is_orphan;
        }
        let request = &self.world.ec2.spot_requests[id];
        let alive = request.instance_id.as_ref().is_some_and(|id| {
            self.world
                .ec2
                .instances
                .get(id)
                .is_some_and(|instance| !instance.state.is_ending())
        });
        request.state == "open" && !alive && is_orphan
    }

    /// By its tag; or by its instances, if there are some and all of them are workers of the gone.
    fn fleet(&self, fleet: &Fleet, thing: &Thing) -> bool {
        if fleet.state != "active" || !self.may_go(thing) {
            return false;
        }
        let tags = [OWNER_TAG, "gitlab-runner-parent-id"];
        if let Some(owner) = tags.iter().find_map(|tag| fleet.tags.get(*tag)) {
            return self.is_gone(Some(owner));
        }
        let mut alive = fleet
            .instances
            .iter()
            .filter_map(|id| self.world.ec2.instances.get(id))
            .filter(|instance| !instance.state.is_ending())
            .peekable();
        alive.peek().is_some()
            && alive.all(|instance| self.is_gone(instance.tags.get("gitlab-runner-parent-id")))
    }

    fn address(&self, id: &str, thing: &Thing) -> bool {
        let address = &self.world.ec2.addresses[id];
        if !self.may_go(thing)
            || address.association_id.is_some()
            || address.service_managed.is_some()
        {
            return false;
        }
        let pool = self.play.script.settings.eip_tag
            && address.tags.get("pool").is_some_and(|value| value == "ci");
        let owner = address.tags.get("lifecycle-reaper:owner");
        // One of the pool that a live manager moves is free for a moment only.
        let is_theirs =
            matches!(thing.owner, Owner::Manager(number) if self.truth.lives(self.world, number));
        match owner {
            Some(owner) => self.is_gone(Some(owner)),
            None => pool && !is_theirs,
        }
    }
}
