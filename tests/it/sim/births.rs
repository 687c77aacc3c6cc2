//! What a manager makes: addresses, and workers as docker-machine gives birth to them: key, then spot request or
//! instance, then tags, each a moment apart, and any prefix of it when the manager is gone in between.

use super::life::manager_id;
use super::play::{Happening, Play};
use super::truth::{Kind, Owner, Thing, Time, seconds};
use crate::fake_aws::cases::{EXECUTOR, machine_name};
use crate::fake_aws::world::*;

fn worker_id(manager: usize, worker: usize) -> String {
    format!("i-0b{manager:07x}{worker:08x}")
}

fn spot_id(manager: usize, worker: usize) -> String {
    format!("sir-{manager:04}{worker:04}")
}

fn allocation_id(manager: usize, address: usize) -> String {
    format!("eipalloc-0{manager:08x}{address:08x}")
}

impl Play {
    pub fn allocate(&mut self, number: usize, address: usize) {
        if !self.runs(number) {
            return;
        }
        let script = self.script.managers[number].addresses[address];
        let id = allocation_id(number, address);
        let mut tags = Tags::new();
        if script.pool {
            tags.insert("pool".into(), "ci".into());
        }
        self.put_address(&id, tags, Owner::Manager(number), false);
        self.later(
            script.allocate_to_tag,
            Happening::TagAddress(number, address),
        );
    }

    pub fn put_address(&mut self, id: &str, tags: Tags, owner: Owner, kept: bool) {
        let now = self.now();
        {
            let mut world = self.aws.world();
            world.remember();
            world.put_address(id, None).tags = tags;
            world.note(format!("address {id} is allocated"));
        }
        self.truth().free_since.insert(id.into(), now);
        self.truth().things.insert(
            id.into(),
            Thing {
                kind: Kind::Address,
                owner,
                born: now,
                kept,
                named: false,
            },
        );
    }

    pub fn tag_address(&mut self, number: usize, address: usize) {
        let script = self.script.managers[number].addresses[address];
        if !self.runs(number) {
            return;
        }
        let now = self.now();
        let mut world = self.aws.world();
        world.remember();
        if let (false, Some(address)) = (
            script.pool,
            world.ec2.addresses.get_mut(&allocation_id(number, address)),
        ) {
            address
                .tags
                .insert("lifecycle-reaper:owner".into(), manager_id(number));
            if script.time_tag {
                address.tags.insert(
                    "lifecycle-reaper:allocated-at".into(),
                    now.timestamp().to_string(),
                );
            }
        }
        drop(world);
        self.later(
            script.tag_to_associate,
            Happening::Associate(number, address),
        );
    }

    pub fn associate(&mut self, number: usize, address: usize) {
        if !self.runs(number) {
            return;
        }
        let script = self.script.managers[number].addresses[address];
        let mut world = self.aws.world();
        world.remember();
        if let Some(address) = world.ec2.addresses.get_mut(&allocation_id(number, address)) {
            address.association_id = Some(format!("eipassoc-{number}"));
            address.instance_id = Some(manager_id(number));
        }
        world.note(format!("manager {number} associates its address"));
        drop(world);
        let id = allocation_id(number, address);
        self.truth().free_since.remove(&id);
        if let Some(after) = script.let_go_after {
            self.later(after, Happening::LetGo(number, address));
        }
    }

    pub fn let_go(&mut self, number: usize, address: usize) {
        let mut world = self.aws.world();
        world.remember();
        if let Some(address) = world.ec2.addresses.get_mut(&allocation_id(number, address)) {
            address.association_id = None;
            address.instance_id = None;
        }
        world.note(format!("manager {number} lets its address go"));
        drop(world);
        let now = self.now();
        let id = allocation_id(number, address);
        self.truth().free_since.insert(id, now);
        if self.script.managers[number].addresses[address].pool {
            // It is only moved: nobody may think that it was free all the time.
            self.later(240, Happening::Associate(number, address));
        }
    }

    /// Whether the manager's service would begin a new worker now.
    fn takes_work(&mut self, number: usize) -> bool {
        let now = self.now();
        self.runs(number)
            && self.truth().managers[number]
                .closes
                .is_none_or(|at| at > now)
    }

    /// The time in a worker's name, by its manager's clock: its age counts from there, however late EC2 starts it.
    fn name_time(&self, number: usize, worker: usize) -> Time {
        let manager = &self.script.managers[number];
        self.start + seconds(manager.workers[worker].at + manager.clock)
    }

    /// Whether what bears this manager's token is ours by its name alone.
    fn is_named(&self, number: usize) -> bool {
        !self.script.managers[number].token.contains('-') || self.script.rarities.lists_tokens
    }

    /// The tags that a manager's keys and spot requests have from their birth.
    fn birth_tags(&self, number: usize) -> Tags {
        let tags = self.script.managers[number]
            .owner_tags
            .then(|| ("lifecycle-reaper:owner".to_owned(), manager_id(number)));
        tags.into_iter().collect()
    }

    fn key_name(&self, number: usize, worker: usize) -> String {
        let script = &self.script.managers[number];
        machine_name(
            &script.token,
            EXECUTOR,
            self.name_time(number, worker),
            (number * 100 + worker) as u32,
        )
    }

    pub fn make_key(&mut self, number: usize, worker: usize) {
        if !self.takes_work(number) {
            return;
        }
        let name = self.key_name(number, worker);
        let (named, tags) = (self.is_named(number), self.birth_tags(number));
        let key = self.put_key(&name, Owner::Manager(number), named, false);
        // Its age counts from the time in its name.
        let born = self.name_time(number, worker);
        self.truth().things.get_mut(&key).expect("just put").born = born;
        self.aws
            .world()
            .ec2
            .key_pairs
            .get_mut(&key)
            .expect("just put")
            .tags = tags;
        let script = &self.script.managers[number].workers[worker];
        if !script.launch_fails {
            self.later(script.key_to_launch, Happening::Launch(number, worker));
        }
    }

    pub fn put_key(&mut self, name: &str, owner: Owner, named: bool, kept: bool) -> String {
        let now = self.now();
        let id = {
            let mut world = self.aws.world();
            world.remember();
            let id = world.put_key(name, seconds(0));
            world.note(format!("key {name} is made"));
            id
        };
        self.truth().things.insert(
            id.clone(),
            Thing {
                kind: Kind::Key,
                owner,
                born: now,
                kept,
                named,
            },
        );
        id
    }

    pub fn launch(&mut self, number: usize, worker: usize) {
        if !self.runs(number) {
            return;
        }
        let script = self.script.managers[number].workers[worker].clone();
        let name = self.key_name(number, worker);
        match script.spot {
            None => {
                self.put_worker(number, worker, &name, None);
                self.later(script.launch_to_tag, Happening::Tag(number, worker));
            }
            Some(spot) => {
                let id = spot_id(number, worker);
                let (named, tags) = (self.is_named(number), self.birth_tags(number));
                {
                    let mut world = self.aws.world();
                    world.remember();
                    world.put_spot(&id, "open", Some(&name), seconds(0));
                    let request = world.ec2.spot_requests.get_mut(&id).expect("just put");
                    request.persistent = spot.persistent;
                    request.tags = tags;
                    world.note(format!("{id} is requested"));
                }
                let born = self.name_time(number, worker);
                let thing = Thing {
                    kind: Kind::Spot,
                    owner: Owner::Manager(number),
                    born,
                    kept: false,
                    named,
                };
                self.truth().things.insert(id, thing);
                if let Some(after) = spot.fulfilled_after {
                    self.later(after, Happening::Fulfil(number, worker));
                }
            }
        }
    }

    /// EC2 fulfils a request whether or not anybody still waits for it.
    pub fn fulfil(&mut self, number: usize, worker: usize) {
        let id = spot_id(number, worker);
        let open = self
            .aws
            .world()
            .ec2
            .spot_requests
            .get(&id)
            .is_some_and(|request| request.state == "open");
        if !open {
            return;
        }
        let name = self.key_name(number, worker);
        self.put_worker(number, worker, &name, Some(&id));
        {
            let mut world = self.aws.world();
            let request = world.ec2.spot_requests.get_mut(&id).expect("open");
            request.state = "active".into();
            request.instance_id = Some(worker_id(number, worker));
        }
        let after = self.script.managers[number].workers[worker].launch_to_tag;
        self.later(after, Happening::Tag(number, worker));
    }

    fn put_worker(&mut self, number: usize, worker: usize, key: &str, spot: Option<&str>) {
        let script = self.script.managers[number].workers[worker].clone();
        let now = self.now();
        let id = worker_id(number, worker);
        {
            let mut world = self.aws.world();
            world.remember();
            let mut instance = Instance {
                launched: now,
                attached: Some(now),
                ..Instance::running(&id, now)
            };
            instance.key_name = Some(key.into());
            instance.spot_request_id = spot.map(Into::into);
            instance.termination_protection = script.protected;
            // Protection in one zone stops a call for all instances there; each worker has its own, so that
            // the simulation doesn't depend on which share one.
            instance.zone = format!("eu-west-1{}", if script.protected { "p" } else { "a" });
            if script.keep {
                instance
                    .tags
                    .insert("lifecycle-reaper:keep".into(), "yes".into());
            }
            world.ec2.instances.insert(id.clone(), instance);
            world.note(format!("worker {id} of manager {number} starts"));
        }
        let born = self.name_time(number, worker);
        let thing = Thing {
            kind: Kind::Worker,
            owner: Owner::Manager(number),
            born,
            kept: script.keep,
            named: self.is_named(number),
        };
        self.truth().things.insert(id, thing);
    }

    pub fn tag_worker(&mut self, number: usize, worker: usize) {
        if !self.runs(number) {
            return;
        }
        let script = self.script.managers[number].workers[worker].clone();
        {
            let mut world = self.aws.world();
            world.remember();
            if let Some(instance) = world.ec2.instances.get_mut(&worker_id(number, worker)) {
                instance
                    .tags
                    .insert("gitlab-runner-parent-id".into(), manager_id(number));
            }
        }
        self.later(script.job_after, Happening::Job(number, worker));
    }

    pub fn begin_job(&mut self, number: usize, worker: usize) {
        let there = self
            .aws
            .world()
            .ec2
            .instances
            .get(&worker_id(number, worker))
            .is_some_and(|instance| !instance.state.is_ending());
        if !self.takes_work(number) || !there {
            return;
        }
        let script = self.script.managers[number].workers[worker].clone();
        let until = self.now() + seconds(script.job_for);
        self.truth().managers[number].jobs.push(until);
        if script.removed {
            self.later(script.job_for + 5, Happening::Remove(number, worker));
        }
    }

    /// docker-machine removes a machine: request, instance, key.
    pub fn remove(&mut self, number: usize, worker: usize) {
        if !self.runs(number) {
            return;
        }
        let name = self.key_name(number, worker);
        let now = self.now();
        let mut world = self.aws.world();
        world.remember();
        if let Some(request) = world.ec2.spot_requests.get_mut(&spot_id(number, worker)) {
            request.state = "cancelled".into();
        }
        if !world
            .ec2
            .instances
            .get(&worker_id(number, worker))
            .is_some_and(|instance| instance.termination_protection)
        {
            world.end_instance(&worker_id(number, worker), now);
        }
        world.ec2.key_pairs.retain(|_, key| key.name != name);
        world.note(format!("manager {number} removes its worker {worker}"));
    }
}
