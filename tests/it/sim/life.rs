//! The life of the world: managers boot, make workers the way docker-machine does, stop, start, die, and are
//! terminated by their groups. Each step is a `Happening` at a time; a step of a manager that is no longer running
//! doesn't take place, and that leaves any prefix of a birth behind.

use super::messages;
use super::play::{HOOK, Happening, MessageKind, OTHER_HOOK, Play};
use super::script::*;
use super::truth::{Time, runs, seconds};
use crate::fake_aws::world::*;

/// The id of a manager, a worker, … by its numbers in the script.
pub fn manager_id(number: usize) -> String {
    format!("i-0a{number:015x}")
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
                let warned = if end.how == EndKind::SpotTakes {
                    Happening::SpotWarns(number)
                } else {
                    Happening::End(number)
                };
                self.at(end.at, warned);
            }
            if let Some(before) = manager.old_command {
                self.at(
                    (manager.boots + 40).max(manager.end.map_or(600, |end| end.at) - before),
                    Happening::OldCommand(number),
                );
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
            Happening::HasStopped(number) => self.has_stopped(number),
            Happening::Start(number) => self.start(number),
            Happening::SpotWarns(number) => self.spot_warns(number),
            Happening::End(number) => self.end(number),
            Happening::GroupNotices(number) => self.terminate_by_group(number),
            Happening::OtherHookCompletes(number) => self.complete_hook(number, OTHER_HOOK),
            Happening::ObserverLooks(number) => self.observer_looks(number),
            Happening::OldCommand(number) => self.old_command(number),
            Happening::Fleet(index) => self.make_fleet(index),
            Happening::Warms(number) => self.warms(number),
            Happening::ReturnsFromPool(number) => self.return_from_pool(number),
            Happening::EndsInPool(number) => self.end_in_pool(number),
            Happening::ByHand(index) => self.ask_by_hand(index),
            other => unreachable!("{other:?} is not a part of life"),
        }
    }

    pub fn runs(&self, number: usize) -> bool {
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
            let mut instance = Instance {
                state: InstanceState::Pending,
                launched: now,
                attached: Some(now),
                ..Instance::running(&id, now)
            };
            instance
                .tags
                .insert("aws:autoscaling:groupName".into(), group.clone());
            world.ec2.instances.insert(id.clone(), instance);
            let member = Member {
                state: "InService".into(),
                protected_from_scale_in: false,
                zone: "eu-west-1a".into(),
                proceeds_since: None,
            };
            world.launch(&group, &id, member, now);
            if script.agent != Agent::Absent {
                world.ssm.agents.insert(id.clone());
            }
            world.note(format!(
                "manager {number} = {id} boots in {group} ({:?})",
                script.agent
            ));
        }
        self.truth().managers[number].born = Some(now);
        self.later(30, Happening::Runs(number));
    }

    fn run_manager(&mut self, number: usize) {
        let id = manager_id(number);
        {
            let mut world = self.aws.world();
            world.remember();
            if world
                .ec2
                .instances
                .get(&id)
                .is_some_and(|instance| instance.state == InstanceState::Pending)
            {
                world.instance_mut(&id).state = InstanceState::Running;
            }
        }
        for address in 0..self.script.managers[number].addresses.len() {
            let after = self.script.managers[number].addresses[address].after;
            self.later(after, Happening::Allocate(number, address));
        }
    }

    fn stop(&mut self, number: usize) {
        if !self.runs(number) {
            return;
        }
        let mut world = self.aws.world();
        world.remember();
        world.instance_mut(&manager_id(number)).state = InstanceState::Stopping;
        world.note(format!("manager {number} is stopped"));
        drop(world);
        let mut truth = self.truth();
        truth.managers[number].stopped = true;
        // Its jobs ended with it.
        truth.managers[number].jobs.clear();
        drop(truth);
        self.later(60, Happening::HasStopped(number));
    }

    fn has_stopped(&mut self, number: usize) {
        let mut world = self.aws.world();
        world.remember();
        if let Some(instance) = world.ec2.instances.get_mut(&manager_id(number))
            && instance.state == InstanceState::Stopping
        {
            instance.state = InstanceState::Stopped;
        }
    }

    fn start(&mut self, number: usize) {
        let now = self.now();
        let id = manager_id(number);
        let mut world = self.aws.world();
        world.remember();
        if world
            .ec2
            .instances
            .get(&id)
            .is_some_and(|instance| instance.state == InstanceState::Stopped)
        {
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
        let Some(end) = self.script.managers[number].end else {
            return;
        };
        if self
            .aws
            .world()
            .ec2
            .instances
            .get(&manager_id(number))
            .is_none_or(|instance| instance.state.is_ending())
        {
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
                let group = self.script.groups[self.script.managers[number].group]
                    .name
                    .clone();
                if let Some(group) = world.groups.get_mut(&group) {
                    group.members.remove(&manager_id(number));
                }
                let now = world.now();
                let others = self
                    .script
                    .managers
                    .iter()
                    .enumerate()
                    .any(|(other, manager)| {
                        other != number
                            && manager.group == self.script.managers[number].group
                            && (self.start + seconds(manager.boots) >= now
                                || world
                                    .ec2
                                    .instances
                                    .get(&manager_id(other))
                                    .is_some_and(|instance| !instance.state.is_ending()))
                    });
                if !others {
                    world.groups.remove(&group);
                    world.note(format!("the group {group} is deleted"));
                }
            }
        }
    }

    /// Events that follow the end of a manager, once its group has let it go.
    pub fn notice_ends(&mut self) {
        let now = self.now();
        for number in 0..self.script.managers.len() {
            let id = manager_id(number);
            let group = self.script.groups[self.script.managers[number].group]
                .name
                .clone();
            let (ended, listed) = {
                let world = self.aws.world();
                let ended = world
                    .ec2
                    .instances
                    .get(&id)
                    .and_then(|instance| instance.ended);
                (
                    ended,
                    world
                        .groups
                        .get(&group)
                        .and_then(|group| group.members.get(&id))
                        .is_some_and(|member| member.proceeds_since.is_none()),
                )
            };
            let (Some(ended), None, false) = (ended, self.truth().managers[number].ended, listed)
            else {
                continue;
            };
            self.truth().managers[number].ended = Some(ended);
            let Some(end) = self.script.managers[number].end else {
                continue;
            };
            if end.tells_state {
                self.send(
                    messages::state_change(&id, "shutting-down", now).to_string(),
                    MessageKind::Wake,
                    0,
                );
            }
            if end.tells_success {
                self.send(
                    messages::group_event("Successful", &group, &id, now).to_string(),
                    MessageKind::Reap(number),
                    0,
                );
            }
        }
    }

    fn die(&mut self, number: usize) {
        let now = self.now();
        let mut world = self.aws.world();
        world.remember();
        world.end_instance(&manager_id(number), now);
        if number.is_multiple_of(2) {
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
        let warm = self.next_pool(number).is_some();
        {
            let mut world = self.aws.world();
            world.remember();
            if !world
                .groups
                .get(&group.name)
                .is_some_and(|group| group.members.contains_key(&id))
            {
                return;
            }
            world.open_hook(&group.name, HOOK, &id, &token_of(number, HOOK));
            if group.other_hook.is_some() {
                world.open_hook(&group.name, OTHER_HOOK, &id, &token_of(number, OTHER_HOOK));
            }
            if warm {
                let group = world.groups.get_mut(&group.name).expect("managed");
                group.to_pool.insert(id.clone());
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
        let Some(end) = self.script.managers[number].end else {
            return;
        };
        let group = self.script.groups[self.script.managers[number].group]
            .name
            .clone();
        let (id, token) = (manager_id(number), token_of(number, HOOK));
        let mut by_hook = messages::hook_message(&group, HOOK, &id, &token, now);
        let mut by_event = messages::lifecycle_event("TERMINATING", &group, HOOK, &id, &token, now);
        if self.next_pool(number).is_some() {
            by_hook["Destination"] = "WarmPool".into();
            by_event["detail"]["Destination"] = "WarmPool".into();
        }
        let (by_hook, by_event) = (by_hook.to_string(), by_event.to_string());
        let kind = MessageKind::Terminate(number);
        if let (Some(after), Route::HookToQueue) = (self.script.rarities.echo, end.route) {
            let (body, kind) = (by_hook.clone(), kind.clone());
            self.later(after, Happening::Arrives { body, kind });
        }
        match end.route {
            Route::HookToQueue => self.send(by_hook, kind, end.duplicates),
            Route::EventBridgeToQueue => self.send(by_event, kind, end.duplicates),
            Route::EventBridgeDirect => self.later(
                1,
                Happening::Direct {
                    body: by_event,
                    kind,
                    attempt: 1,
                },
            ),
            Route::Lost => self.aws.world().note("the termination message is lost"),
        }
    }

    /// Another team's hook, or `monitor_runner.sh`, completes its own.
    fn complete_hook(&mut self, number: usize, hook: &str) {
        let now = self.now();
        let id = manager_id(number);
        let group = self.script.groups[self.script.managers[number].group]
            .name
            .clone();
        let mut world = self.aws.world();
        world.remember();
        let Some(group) = world.groups.get_mut(&group) else {
            return;
        };
        for action in group.actions.iter_mut().filter(|action| {
            action.hook == hook && action.instance_id == id && action.closed.is_none()
        }) {
            action.closed = Some(Closed {
                at: now,
                how: Closing::Completed("CONTINUE".into()),
            });
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
        world.note(format!(
            "somebody drained manager {number} by hand and started it again"
        ));
    }
}
