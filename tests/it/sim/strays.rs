//! What was there before, and what comes by the way: leftovers, neighbours' things, protected things; messages that
//! lead to nothing, or are broken.

use super::life::{manager_id, token_of};
use super::messages;
use super::play::{HOOK, MessageKind, OTHER_HOOK, Play};
use super::script::{NoiseKind, Stray, StrayKind};
use super::truth::{Kind, Owner, Thing, Time, seconds};
use crate::fake_aws::cases::{EXECUTOR, LONG_GONE, machine_name};
use crate::fake_aws::world::{Instance, InstanceState, Tags, World};

impl Play {
    /// Puts the strays into the world as it was when they were born.
    pub fn schedule_strays(&mut self) {
        for (index, stray) in self.script.strays.clone().iter().enumerate() {
            let born = self.start - seconds(stray.age);
            self.put_stray(index, stray, born);
        }
    }

    fn put_stray(&mut self, index: usize, stray: &Stray, born: Time) {
        use StrayKind::*;
        let named = machine_name("old1", EXECUTOR, born, 0xa000 + index as u32);
        match stray.kind {
            WorkerOfLongGone => self.stray_worker(
                index,
                born,
                Some(LONG_GONE),
                &named,
                Owner::LongGone,
                |_| {},
            ),
            StoppedWorkerOfLongGone => {
                self.stray_worker(
                    index,
                    born,
                    Some(LONG_GONE),
                    &named,
                    Owner::LongGone,
                    |worker| worker.state = InstanceState::Stopped,
                );
            }
            KeptWorkerOfLongGone => self.stray_worker(
                index,
                born,
                Some(LONG_GONE),
                &named,
                Owner::LongGone,
                |worker| {
                    worker
                        .tags
                        .insert("lifecycle-reaper:keep".into(), String::new());
                },
            ),
            ProtectedWorkerOfLongGone => self.stray_worker(
                index,
                born,
                Some(LONG_GONE),
                &named,
                Owner::LongGone,
                |worker| {
                    worker.termination_protection = true;
                    worker.zone = "eu-west-1p".into();
                },
            ),
            WorkerOfNobody => {
                let parent = if index.is_multiple_of(2) {
                    ""
                } else {
                    "unknown"
                };
                self.stray_worker(index, born, Some(parent), &named, Owner::Nobody, |_| {});
            }
            ForeignWorker => {
                let theirs = machine_name("fr1", "ci-linux-gpu", born, index as u32);
                self.stray_worker(
                    index,
                    born,
                    Some(LONG_GONE),
                    &theirs,
                    Owner::Foreign,
                    |_| {},
                );
            }
            UntaggedWorker => self.stray_worker(index, born, None, &named, Owner::LongGone, |_| {}),
            OldKey => self.stray_key(&named, born, Owner::LongGone, true, false),
            KeptKey => self.stray_key(&named, born, Owner::LongGone, true, true),
            NeighbourKey(which) => self.stray_key(
                &neighbour(which, born, index),
                born,
                Owner::Foreign,
                false,
                false,
            ),
            OpenSpotRequest => self.stray_spot(index, &named, born, Owner::LongGone),
            NeighbourSpotRequest => self.stray_spot(
                index,
                &neighbour(index as u8, born, index),
                born,
                Owner::Foreign,
            ),
            KeptAddress => {
                self.stray_address(
                    index,
                    born,
                    &[
                        ("lifecycle-reaper:owner", LONG_GONE),
                        ("lifecycle-reaper:keep", ""),
                    ],
                    Owner::LongGone,
                    false,
                );
            }
            KeptSpotRequest => {
                self.stray_spot(index, &named, born, Owner::LongGone);
                self.keep_spot(index);
                // Its key, which goes no sooner than the request.
                self.stray_key(&named, born, Owner::LongGone, true, false);
            }
            AmbiguousKey => {
                self.stray_key(&ambiguous(born, index), born, Owner::Foreign, false, false);
            }
            AmbiguousWorker => self.stray_worker(
                index,
                born,
                None,
                &ambiguous(born, index),
                Owner::Foreign,
                |_| {},
            ),
            AmbiguousSpotRequest => {
                self.stray_spot(index, &ambiguous(born, index), born, Owner::Foreign);
            }
            AddressOfLongGone => self.stray_address(
                index,
                born,
                &[("lifecycle-reaper:owner", LONG_GONE)],
                Owner::LongGone,
                false,
            ),
            AddressOfLongGoneTimed => {
                let time = born.timestamp().to_string();
                let tags = [
                    ("lifecycle-reaper:owner", LONG_GONE),
                    ("lifecycle-reaper:allocated-at", time.as_str()),
                ];
                self.stray_address(index, born, &tags, Owner::LongGone, false);
            }
            ForeignAddress => self.stray_address(
                index,
                born,
                &[("pool", "ci-other"), ("Name", "ci")],
                Owner::Foreign,
                false,
            ),
            ServiceAddress => self.stray_address(
                index,
                born,
                &[("lifecycle-reaper:owner", LONG_GONE)],
                Owner::Foreign,
                true,
            ),
            PoolAddress => {
                let owner = if self.script.settings.eip_tag {
                    Owner::LongGone
                } else {
                    Owner::Foreign
                };
                self.stray_address(index, born, &[("pool", "ci")], owner, false);
            }
        }
    }

    fn stray_worker(
        &mut self,
        index: usize,
        born: Time,
        parent: Option<&str>,
        key: &str,
        owner: Owner,
        change: impl Fn(&mut Instance),
    ) {
        let id = format!("i-0c{index:015x}");
        let mut worker = Instance {
            launched: born,
            attached: Some(born),
            key_name: Some(key.into()),
            ..Instance::running(&id, born)
        };
        if let Some(parent) = parent {
            worker
                .tags
                .insert("gitlab-runner-parent-id".into(), parent.into());
        }
        change(&mut worker);
        let kept = worker.tags.contains_key("lifecycle-reaper:keep");
        if index.is_multiple_of(2) {
            self.stray_key(key, born, owner.clone(), owner == Owner::LongGone, false);
        }
        let named = owner == Owner::LongGone;
        self.aws.world().ec2.instances.insert(id.clone(), worker);
        self.truth().things.insert(
            id,
            Thing {
                kind: Kind::Worker,
                owner,
                born,
                kept,
                named,
            },
        );
    }

    fn stray_key(&mut self, name: &str, born: Time, owner: Owner, named: bool, kept: bool) {
        let id = {
            let mut world = self.aws.world();
            let id = world.put_key(name, seconds(0));
            let key = world.ec2.key_pairs.get_mut(&id).expect("just put");
            key.created = Some(born);
            if kept {
                key.tags.insert("lifecycle-reaper:keep".into(), "1".into());
            }
            id
        };
        self.truth().things.insert(
            id,
            Thing {
                kind: Kind::Key,
                owner,
                born,
                kept,
                named,
            },
        );
    }

    fn stray_spot(&mut self, index: usize, name: &str, born: Time, owner: Owner) {
        let id = format!("sir-stray{index:03}");
        {
            let mut world = self.aws.world();
            world.put_spot(&id, "open", Some(name), seconds(0));
            world
                .ec2
                .spot_requests
                .get_mut(&id)
                .expect("just put")
                .created = Some(born);
        }
        let named = owner == Owner::LongGone;
        self.truth().things.insert(
            id,
            Thing {
                kind: Kind::Spot,
                owner,
                born,
                kept: false,
                named,
            },
        );
    }

    fn keep_spot(&mut self, index: usize) {
        let id = format!("sir-stray{index:03}");
        let mut world = self.aws.world();
        let request = world.ec2.spot_requests.get_mut(&id).expect("just put");
        request
            .tags
            .insert("lifecycle-reaper:keep".into(), "yes".into());
        drop(world);
        self.truth().things.get_mut(&id).expect("just put").kept = true;
    }

    fn stray_address(
        &mut self,
        index: usize,
        born: Time,
        tags: &[(&str, &str)],
        owner: Owner,
        by_service: bool,
    ) {
        let id = format!("eipalloc-0c{index:014x}");
        let tags: Tags = tags
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let kept = tags.contains_key("lifecycle-reaper:keep");
        self.put_address(&id, tags, owner, kept);
        let mut world = self.aws.world();
        world
            .ec2
            .addresses
            .get_mut(&id)
            .expect("just put")
            .service_managed = by_service.then(|| "nat".into());
        drop(world);
        self.truth().things.get_mut(&id).expect("just put").born = born;
    }

    /// Sends a message that leads to nothing, or a broken one.
    pub fn make_noise(&mut self, index: usize) {
        let now = self.now();
        let kind = self.script.noise[index].kind;
        let group = self.script.groups[0].name.clone();
        let living = {
            let world = self.aws.world();
            (0..self.script.managers.len()).find(|number| healthy(&world, &manager_id(*number)))
        };
        let someone = "i-0d44dd44dd44dd440";
        let token = token_of(999, HOOK);
        let (body, kind) = match kind {
            NoiseKind::TestNotification => (
                messages::test_notification(&group, now).to_string(),
                MessageKind::Irrelevant,
            ),
            NoiseKind::LaunchTransition => {
                let event = messages::lifecycle_event(
                    "LAUNCHING",
                    &group,
                    "ours-launch",
                    someone,
                    &token,
                    now,
                );
                (event.to_string(), MessageKind::Irrelevant)
            }
            NoiseKind::OtherGroup => (
                messages::hook_message("web-asg", HOOK, someone, &token, now).to_string(),
                MessageKind::Irrelevant,
            ),
            NoiseKind::OtherHook => (
                messages::hook_message(&group, OTHER_HOOK, someone, &token, now).to_string(),
                MessageKind::Irrelevant,
            ),
            NoiseKind::NotJson => (
                "{\"AutoScalingGroupName\": \"ci-lin".into(),
                MessageKind::Unreadable,
            ),
            NoiseKind::BadInstanceId => (
                messages::hook_message(&group, HOOK, "i-*", &token, now).to_string(),
                MessageKind::Unreadable,
            ),
            NoiseKind::RebalanceRecommendation => (
                messages::rebalance(someone, now).to_string(),
                MessageKind::Irrelevant,
            ),
            lie => match living {
                Some(number) => (
                    lie_about(lie, &group, number, &token, now),
                    MessageKind::Lie,
                ),
                None => return,
            },
        };
        self.send(body, kind, 0);
    }
}

fn healthy(world: &World, id: &str) -> bool {
    let in_service = world.groups.values().any(|group| {
        group
            .members
            .get(id)
            .is_some_and(|member| member.state == "InService")
    });
    in_service
        && world
            .ec2
            .instances
            .get(id)
            .is_some_and(|instance| instance.state == InstanceState::Running)
}

fn lie_about(kind: NoiseKind, group: &str, number: usize, token: &str, now: Time) -> String {
    let id = manager_id(number);
    match kind {
        NoiseKind::FalseSuccess => messages::group_event("Successful", group, &id, now),
        NoiseKind::Unsuccessful => messages::group_event("Unsuccessful", group, &id, now),
        NoiseKind::FalseState => messages::state_change(&id, "terminated", now),
        _ => messages::hook_message(group, HOOK, &id, token, now),
    }
    .to_string()
}

/// Executor `gpu-ci-linux` with the token `t`, or ours with the token `t-gpu`: nobody can tell.
fn ambiguous(born: Time, index: usize) -> String {
    machine_name("t-gpu", EXECUTOR, born, index as u32)
}

/// Names that contain ours, begin or end with it, or differ by a letter's case: other environments' keys.
fn neighbour(which: u8, born: Time, index: usize) -> String {
    let seconds = born.timestamp();
    match which % 6 {
        0 => format!("runner-bb-ci-linux-gpu-{seconds}-{index:08x}"),
        1 => format!("runner-cc-circle-ci-linux2-{seconds}-{index:08x}"),
        2 => format!("runner-DD-prod-ci-linux-{seconds}-{index:08x}"),
        3 => format!("RUNNER-ee-ci-linux-{seconds}-{index:08x}"),
        4 => "my-ci-linux-key".into(),
        _ => format!("runner-ff-xci-linux-{seconds}-{index:08x}"),
    }
}
