//! The life of the world: managers boot, make workers the way docker-machine does, stop, start, die, and are
//! terminated by their groups. Each step is a `Happening` at a time; a step of a manager that is no longer running
//! doesn't take place, and that leaves any prefix of a birth behind.

use super::messages;
use super::play::{HOOK, Happening, MessageKind, OTHER_HOOK, Play};
use super::script::*;
use super::truth::{Kind, Owner, Thing, Time, runs, seconds};
use crate::fake_aws::cases::{EXECUTOR, machine_name};
use crate::fake_aws::world::*;

/// The id of a manager, a worker, … by its numbers in the script.
pub fn manager_id(number: usize) -> String {
    format!("i-0a{number:015x}")
}

fn worker_id(manager: usize, worker: usize) -> String {
    format!("i-0b{manager:07x}{worker:08x}")
}

fn spot_id(manager: usize, worker: usize) -> String {
    format!("sir-{manager:04}{worker:04}")
}

fn allocation_id(manager: usize, address: usize) -> String {
    format!("eipalloc-0{manager:08x}{address:08x}")
}

pub fn token_of(number: usize, hook: &str) -> String {
    format!("{number:08x}-0000-4000-8000-{:012x}", hook.len())
}

impl Play {
    /// Puts everything on the agenda that is not a consequence of something else.
    pub fn schedule_lives(&mut self) {
        for number in 0..self.script.managers.len() {
            let manager = self.script.managers[number].clone();
            self.at(manager.boots, Happening::Boot(number));
            for worker in 0..manager.workers.len() {
                self.at(manager.workers[worker].at, Happening::Key(number, worker));
            }
            if let Some((stop, start)) = manager.stopped {
                self.at(stop, Happening::Stop(number));
                self.at(start, Happening::Start(number));
            }
            if let Some(end) = manager.end {
                let warned = if end.how == EndKind::SpotTakes { Happening::SpotWarns(number) } else { Happening::End(number) };
                self.at(end.at, warned);
            }
            if let Some(before) = manager.old_command {
                self.at((manager.boots + 40).max(manager.end.map_or(600, |end| end.at) - before), Happening::OldCommand(number));
            }
        }
    }

    pub fn live(&mut self, happening: Happening) {
        match happening {
            Happening::Boot(number) => self.boot(number),
            Happening::Runs(number) => self.run_manager(number),
            Happening::Allocate(number, address) => self.allocate(number, address),
            Happening::TagAddress(number, address) => self.tag_address(number, address),
            Happening::Associate(number, address) => self.associate(number, address),
            Happening::LetGo(number, address) => self.let_go(number, address),
            Happening::Key(number, worker) => self.make_key(number, worker),
            Happening::Launch(number, worker) => self.launch(number, worker),
            Happening::Fulfil(number, worker) => self.fulfil(number, worker),
            Happening::Tag(number, worker) => self.tag_worker(number, worker),
            Happening::Job(number, worker) => self.begin_job(number, worker),
            Happening::Remove(number, worker) => self.remove(number, worker),
            Happening::Stop(number) => self.stop(number),
            Happening::Start(number) => self.start(number),
            Happening::SpotWarns(number) => self.spot_warns(number),
            Happening::End(number) => self.end(number),
            Happening::GroupNotices(number) => self.terminate_by_group(number),
            Happening::OtherHookCompletes(number) => self.complete_hook(number, OTHER_HOOK),
            Happening::ObserverLooks(number) => self.observer_looks(number),
            Happening::OldCommand(number) => self.old_command(number),
            other => unreachable!("{other:?} is not a part of life"),
        }
    }

    fn runs(&self, number: usize) -> bool {
        runs(&self.aws.world(), &manager_id(number))
    }

    fn boot(&mut self, number: usize) {
        let script = self.script.managers[number].clone();
        let now = self.now();
        let id = manager_id(number);
        let group = self.script.groups[script.group].name.clone();
        {
            let mut world = self.aws.world();
            world.remember();
            let mut instance = Instance { state: InstanceState::Pending, launched: now, attached: Some(now), ..Instance::running(&id, now) };
            instance.tags.insert("aws:autoscaling:groupName".into(), group.clone());
            world.ec2.instances.insert(id.clone(), instance);
            let member = Member { state: "InService".into(), zone: "eu-west-1a".into(), proceeds_since: None };
            world.groups.get_mut(&group).expect("managed").members.insert(id.clone(), member);
            if script.agent != Agent::Absent {
                world.ssm.agents.insert(id.clone());
            }
            world.note(format!("manager {number} = {id} boots in {group} ({:?})", script.agent));
        }
        self.truth().managers[number].born = Some(now);
        self.later(30, Happening::Runs(number));
    }

    fn run_manager(&mut self, number: usize) {
        let id = manager_id(number);
        {
            let mut world = self.aws.world();
            world.remember();
            if world.ec2.instances.get(&id).is_some_and(|instance| instance.state == InstanceState::Pending) {
                world.instance_mut(&id).state = InstanceState::Running;
            }
        }
        for address in 0..self.script.managers[number].addresses.len() {
            let after = self.script.managers[number].addresses[address].after;
            self.later(after, Happening::Allocate(number, address));
        }
    }

    fn allocate(&mut self, number: usize, address: usize) {
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
        self.later(script.allocate_to_tag, Happening::TagAddress(number, address));
    }

    pub fn put_address(&mut self, id: &str, tags: Tags, owner: Owner, kept: bool) {
        let now = self.now();
        {
            let mut world = self.aws.world();
            world.remember();
            world.put_address(id, None).tags = tags;
            world.note(format!("address {id} is allocated"));
        }
        self.truth().things.insert(id.into(), Thing { kind: Kind::Address, owner, born: now, kept, named: false });
    }

    fn tag_address(&mut self, number: usize, address: usize) {
        let script = self.script.managers[number].addresses[address];
        if !self.runs(number) {
            return;
        }
        let now = self.now();
        let mut world = self.aws.world();
        world.remember();
        if let (false, Some(address)) = (script.pool, world.ec2.addresses.get_mut(&allocation_id(number, address))) {
            address.tags.insert("lifecycle-reaper:owner".into(), manager_id(number));
            if script.time_tag {
                address.tags.insert("lifecycle-reaper:allocated-at".into(), now.timestamp().to_string());
            }
        }
        drop(world);
        self.later(script.tag_to_associate, Happening::Associate(number, address));
    }

    fn associate(&mut self, number: usize, address: usize) {
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
        drop(world);
        if let (Some(after), false) = (script.let_go_after, script.pool) {
            self.later(after, Happening::LetGo(number, address));
        }
    }

    fn let_go(&mut self, number: usize, address: usize) {
        let mut world = self.aws.world();
        world.remember();
        if let Some(address) = world.ec2.addresses.get_mut(&allocation_id(number, address)) {
            address.association_id = None;
            address.instance_id = None;
        }
    }

    /// Whether the manager's service would begin a new worker now.
    fn takes_work(&mut self, number: usize) -> bool {
        let now = self.now();
        self.runs(number) && self.truth().managers[number].closes.is_none_or(|at| at > now)
    }

    /// The time in a worker's name: its age counts from there, however late EC2 starts it.
    fn name_time(&self, number: usize, worker: usize) -> Time {
        self.start + seconds(self.script.managers[number].workers[worker].at)
    }

    fn key_name(&self, number: usize, worker: usize) -> String {
        let script = &self.script.managers[number];
        machine_name(&script.token, EXECUTOR, self.name_time(number, worker), (number * 100 + worker) as u32)
    }

    fn make_key(&mut self, number: usize, worker: usize) {
        if !self.takes_work(number) {
            return;
        }
        let name = self.key_name(number, worker);
        self.put_key(&name, Owner::Manager(number), true, false);
        let after = self.script.managers[number].workers[worker].key_to_launch;
        self.later(after, Happening::Launch(number, worker));
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
        self.truth().things.insert(id.clone(), Thing { kind: Kind::Key, owner, born: now, kept, named });
        id
    }

    fn launch(&mut self, number: usize, worker: usize) {
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
                {
                    let mut world = self.aws.world();
                    world.remember();
                    world.put_spot(&id, "open", Some(&name), seconds(0));
                    world.ec2.spot_requests.get_mut(&id).expect("just put").persistent = spot.persistent;
                    world.note(format!("{id} is requested"));
                }
                let born = self.name_time(number, worker);
                let thing = Thing { kind: Kind::Spot, owner: Owner::Manager(number), born, kept: false, named: true };
                self.truth().things.insert(id, thing);
                if let Some(after) = spot.fulfilled_after {
                    self.later(after, Happening::Fulfil(number, worker));
                }
            }
        }
    }

    /// EC2 fulfils a request whether or not anybody still waits for it.
    fn fulfil(&mut self, number: usize, worker: usize) {
        let id = spot_id(number, worker);
        let open = self.aws.world().ec2.spot_requests.get(&id).is_some_and(|request| request.state == "open");
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
            let mut instance = Instance { launched: now, attached: Some(now), ..Instance::running(&id, now) };
            instance.key_name = Some(key.into());
            instance.spot_request_id = spot.map(Into::into);
            instance.termination_protection = script.protected;
            // Protection in one zone stops a call for all instances there; each worker has its own, so that
            // the simulation doesn't depend on which share one.
            instance.zone = format!("eu-west-1{}", if script.protected { "p" } else { "a" });
            if script.keep {
                instance.tags.insert("lifecycle-reaper:keep".into(), "yes".into());
            }
            world.ec2.instances.insert(id.clone(), instance);
            world.note(format!("worker {id} of manager {number} starts"));
        }
        let born = self.name_time(number, worker);
        let thing = Thing { kind: Kind::Worker, owner: Owner::Manager(number), born, kept: script.keep, named: true };
        self.truth().things.insert(id, thing);
    }

    fn tag_worker(&mut self, number: usize, worker: usize) {
        if !self.runs(number) {
            return;
        }
        let script = self.script.managers[number].workers[worker].clone();
        {
            let mut world = self.aws.world();
            world.remember();
            if let Some(instance) = world.ec2.instances.get_mut(&worker_id(number, worker)) {
                instance.tags.insert("gitlab-runner-parent-id".into(), manager_id(number));
            }
        }
        self.later(script.job_after, Happening::Job(number, worker));
    }

    fn begin_job(&mut self, number: usize, worker: usize) {
        let there = self.aws.world().ec2.instances.get(&worker_id(number, worker)).is_some_and(|instance| !instance.state.is_ending());
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
    fn remove(&mut self, number: usize, worker: usize) {
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
        if !world.ec2.instances.get(&worker_id(number, worker)).is_some_and(|instance| instance.termination_protection) {
            world.end_instance(&worker_id(number, worker), now);
        }
        world.ec2.key_pairs.retain(|_, key| key.name != name);
        world.note(format!("manager {number} removes its worker {worker}"));
    }

    fn stop(&mut self, number: usize) {
        if !self.runs(number) {
            return;
        }
        let mut world = self.aws.world();
        world.remember();
        world.instance_mut(&manager_id(number)).state = InstanceState::Stopped;
        world.note(format!("manager {number} is stopped"));
        drop(world);
        let mut truth = self.truth();
        truth.managers[number].stopped = true;
        // Its jobs ended with it.
        truth.managers[number].jobs.clear();
    }

    fn start(&mut self, number: usize) {
        let now = self.now();
        let id = manager_id(number);
        let mut world = self.aws.world();
        world.remember();
        if world.ec2.instances.get(&id).is_some_and(|instance| instance.state == InstanceState::Stopped) {
            let instance = world.instance_mut(&id);
            instance.state = InstanceState::Running;
            // LaunchTime starts again; the network interface stays attached.
            instance.launched = now;
            world.note(format!("manager {number} is started again"));
            drop(world);
            self.truth().managers[number].stopped = false;
        }
    }

    fn spot_warns(&mut self, number: usize) {
        let now = self.now();
        self.truth().managers[number].warned_by_spot = true;
        let body = messages::spot_interruption(&manager_id(number), now);
        self.send(body.to_string(), MessageKind::Wake, 0);
        self.later(120, Happening::End(number));
    }

    fn end(&mut self, number: usize) {
        let Some(end) = self.script.managers[number].end else { return };
        if self.aws.world().ec2.instances.get(&manager_id(number)).is_none_or(|instance| instance.state.is_ending()) {
            return;
        }
        match end.how {
            EndKind::ScaleIn => self.terminate_by_group(number),
            EndKind::Dies(notice) => {
                self.die(number);
                self.later(notice, Happening::GroupNotices(number));
            }
            EndKind::SpotTakes => {
                self.die(number);
                self.later(30, Happening::GroupNotices(number));
            }
            EndKind::GroupDeleted => {
                self.die(number);
                let mut world = self.aws.world();
                let group = self.script.groups[self.script.managers[number].group].name.clone();
                if let Some(group) = world.groups.get_mut(&group) {
                    group.members.remove(&manager_id(number));
                }
            }
        }
    }

    /// Events that follow the end of a manager, once its group has let it go.
    pub fn notice_ends(&mut self) {
        let now = self.now();
        for number in 0..self.script.managers.len() {
            let id = manager_id(number);
            let group = self.script.groups[self.script.managers[number].group].name.clone();
            let (ended, listed) = {
                let world = self.aws.world();
                let ended = world.ec2.instances.get(&id).and_then(|instance| instance.ended);
                (ended, world.groups[&group].members.get(&id).is_some_and(|member| member.proceeds_since.is_none()))
            };
            let (Some(ended), None, false) = (ended, self.truth().managers[number].ended, listed) else { continue };
            self.truth().managers[number].ended = Some(ended);
            let Some(end) = self.script.managers[number].end else { continue };
            if end.tells_state {
                self.send(messages::state_change(&id, "shutting-down", now).to_string(), MessageKind::Wake, 0);
            }
            if end.tells_success {
                self.send(messages::group_event("Successful", &group, &id, now).to_string(), MessageKind::Reap(number), 0);
            }
        }
    }

    fn die(&mut self, number: usize) {
        let now = self.now();
        let mut world = self.aws.world();
        world.remember();
        world.end_instance(&manager_id(number), now);
        if number % 2 == 0 {
            // Nobody asked for this end, and EC2 doesn't say when it came.
            world.instance_mut(&manager_id(number)).end_reason = None;
        }
        drop(world);
        let mut truth = self.truth();
        let undrained = !truth.managers[number].is_drained(now);
        truth.managers[number].undrained = undrained;
    }

    /// The group terminates the instance, dead or alive: every hook opens, ours sends its message.
    fn terminate_by_group(&mut self, number: usize) {
        let script = self.script.managers[number].clone();
        let group = self.script.groups[script.group].clone();
        let id = manager_id(number);
        let now = self.now();
        {
            let mut world = self.aws.world();
            world.remember();
            if !world.groups.get(&group.name).is_some_and(|group| group.members.contains_key(&id)) {
                return;
            }
            world.open_hook(&group.name, HOOK, &id, &token_of(number, HOOK));
            if group.other_hook.is_some() {
                world.open_hook(&group.name, OTHER_HOOK, &id, &token_of(number, OTHER_HOOK));
            }
            world.note(format!("{} terminates manager {number}", group.name));
        }
        if let Some(after) = group.other_hook {
            self.later(after, Happening::OtherHookCompletes(number));
        }
        if self.script.settings.drain == DrainMode::Observe {
            // Something on the instance notices, and closes the service.
            self.truth().managers[number].closes = Some(now + seconds(20));
            self.later(30, Happening::ObserverLooks(number));
        }
        self.send_termination(number, now);
    }

    fn send_termination(&mut self, number: usize, now: Time) {
        let Some(end) = self.script.managers[number].end else { return };
        let group = self.script.groups[self.script.managers[number].group].name.clone();
        let (id, token) = (manager_id(number), token_of(number, HOOK));
        let by_hook = messages::hook_message(&group, HOOK, &id, &token, now).to_string();
        let by_event = messages::lifecycle_event("TERMINATING", &group, HOOK, &id, &token, now).to_string();
        let kind = MessageKind::Terminate(number);
        match end.route {
            Route::HookToQueue => self.send(by_hook, kind, end.duplicates),
            Route::EventBridgeToQueue => self.send(by_event, kind, end.duplicates),
            Route::EventBridgeDirect => self.later(1, Happening::Direct { body: by_event, kind, attempt: 1 }),
            Route::Lost => self.aws.world().note("the termination message is lost"),
        }
    }

    /// Another team's hook, or `monitor_runner.sh`, completes its own.
    fn complete_hook(&mut self, number: usize, hook: &str) {
        let now = self.now();
        let id = manager_id(number);
        let group = self.script.groups[self.script.managers[number].group].name.clone();
        let mut world = self.aws.world();
        world.remember();
        let Some(group) = world.groups.get_mut(&group) else { return };
        for action in group.actions.iter_mut().filter(|action| action.hook == hook && action.instance_id == id && action.closed.is_none()) {
            action.closed = Some(Closed { at: now, how: Closing::Completed("CONTINUE".into()) });
        }
        group.proceed_if_free(&id, now);
    }

    fn observer_looks(&mut self, number: usize) {
        let now = self.now();
        if !self.runs(number) {
            return;
        }
        if self.truth().managers[number].is_drained(now) {
            self.complete_hook(number, HOOK);
        } else {
            self.later(30, Happening::ObserverLooks(number));
        }
    }

    /// Somebody ran the document by hand: it said stopped, and the service was started again.
    fn old_command(&mut self, number: usize) {
        if !self.runs(number) {
            return;
        }
        let now = self.now();
        let mut world = self.aws.world();
        let id = format!("{number:08x}-0000-4000-8000-00000000001d");
        let command = Command {
            id,
            document: crate::fake_aws::cases::DOCUMENT.into(),
            instance_id: manager_id(number),
            sent: now,
            delivery_timeout: 60,
            comment: None,
            parameters: serde_json::Value::Null,
            fate: Fate::says("stopped"),
        };
        world.ssm.commands.push(command);
        world.note(format!("somebody drained manager {number} by hand and started it again"));
    }
}
