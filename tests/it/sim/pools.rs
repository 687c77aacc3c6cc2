//! Warm pools: a group may keep what it scales in. The hook waits as at any termination, but the instance comes back,
//! and everything that it made is a live manager's all the time.

use super::life::{manager_id, token_of};
use super::messages;
use super::play::{HOOK, Happening, MessageKind, Play};
use super::script::{AfterWarm, Agent, Warm};
use super::truth::seconds;
use crate::fake_aws::world::*;

/// From the hook's release to the pool.
const TO_THE_POOL: i64 = 45;

impl Play {
    /// The stay in the pool that a termination leads to, unless it has been there.
    pub fn next_pool(&self, number: usize) -> Option<Warm> {
        let has_been = self.truth().managers[number].was_in_pool;
        self.script.managers[number].warm.filter(|_| !has_been)
    }

    fn group_of(&self, number: usize) -> String {
        self.script.groups[self.script.managers[number].group]
            .name
            .clone()
    }

    /// Instances that their hooks have let go on their way to the pool.
    pub fn notice_pools(&mut self) {
        for number in 0..self.script.managers.len() {
            let Some(warm) = self.next_pool(number) else {
                continue;
            };
            let (id, group) = (manager_id(number), self.group_of(number));
            {
                let mut world = self.aws.world();
                let arrives = world
                    .groups
                    .get(&group)
                    .and_then(|group| group.members.get(&id))
                    .is_some_and(|member| member.state == "Warmed:Pending");
                if !arrives {
                    continue;
                }
                world.remember();
                if !warm.running {
                    world.instance_mut(&id).state = InstanceState::Stopping;
                }
                // What hung there hangs no more.
                let now = world.now();
                let commands = world.ssm.commands.iter_mut();
                for command in commands.filter(|command| command.instance_id == id) {
                    if matches!(command.status(now).0, "Pending" | "InProgress") {
                        let ended = Fate::ends("TimedOut", "ExecutionTimedOut");
                        command.fate = ended.after(now - command.sent);
                    }
                }
                world.note(format!("manager {number} goes to its warm pool"));
            }
            let mut truth = self.truth();
            let manager = &mut truth.managers[number];
            manager.was_in_pool = true;
            // Whatever still ran was cut, by the deadline at the latest.
            manager.jobs.clear();
            manager.stopped = !warm.running;
            drop(truth);
            self.later(TO_THE_POOL, Happening::Warms(number));
        }
    }

    pub fn warms(&mut self, number: usize) {
        let Some(warm) = self.script.managers[number].warm else {
            return;
        };
        let word = if warm.running {
            "Warmed:Running"
        } else {
            "Warmed:Stopped"
        };
        if self.move_member(number, "Warmed:Pending", word) && !warm.running {
            self.aws.world().instance_mut(&manager_id(number)).state = InstanceState::Stopped;
        }
        match warm.then {
            AfterWarm::Stays => {}
            AfterWarm::Returns(after) | AfterWarm::ReturnsAndEnds(after, _) => {
                self.later(after, Happening::ReturnsFromPool(number));
            }
            AfterWarm::Ends(after) => self.later(after, Happening::EndsInPool(number)),
        }
    }

    /// Another state in its group, if it is in the first and lives.
    fn move_member(&mut self, number: usize, from: &str, to: &str) -> bool {
        let (id, group) = (manager_id(number), self.group_of(number));
        let mut world = self.aws.world();
        let lives = world
            .ec2
            .instances
            .get(&id)
            .is_some_and(|instance| !instance.state.is_ending());
        world.remember();
        let member = world
            .groups
            .get_mut(&group)
            .and_then(|group| group.members.get_mut(&id))
            .filter(|member| lives && member.state == from);
        let Some(member) = member else { return false };
        member.state = to.into();
        true
    }

    /// Back in service: started again, with everything as it was and no memory of a drain.
    pub fn return_from_pool(&mut self, number: usize) {
        let moved = ["Warmed:Stopped", "Warmed:Running"]
            .iter()
            .any(|state| self.move_member(number, state, "InService"));
        if !moved {
            return;
        }
        let now = self.now();
        {
            let mut world = self.aws.world();
            let instance = world.instance_mut(&manager_id(number));
            if instance.state != InstanceState::Running {
                instance.state = InstanceState::Running;
                instance.launched = now;
            }
            world.note(format!("manager {number} returns from its warm pool"));
        }
        {
            let idle = self.script.managers[number].agent == Agent::Idle;
            let mut truth = self.truth();
            truth.proven.remove(&number);
            truth.receives_of.remove(&number);
            let manager = &mut truth.managers[number];
            manager.stopped = false;
            manager.closes = None;
            manager.aborted = idle;
            manager.noticed = None;
            manager.commands = 0;
        }
        if let Some(Warm {
            then: AfterWarm::ReturnsAndEnds(_, ends),
            ..
        }) = self.script.managers[number].warm
        {
            // Too late where faults held the first termination up: the quiet must find everything begun.
            let latest = self.script.quiet_from - self.script.settings.limit() - 900;
            if now + seconds(ends) < self.start + seconds(latest) {
                self.later(ends, Happening::End(number));
            }
            // A job in between: a drain of last time proves nothing about it.
            let until = now + seconds(ends + 300);
            self.truth().managers[number].jobs.push(until);
        }
    }

    /// The pool terminates an instance: the same hook waits, by another name of the state.
    pub fn end_in_pool(&mut self, number: usize) {
        let (id, group) = (manager_id(number), self.group_of(number));
        let now = self.now();
        {
            let mut world = self.aws.world();
            world.remember();
            let in_pool = world
                .groups
                .get(&group)
                .and_then(|group| group.members.get(&id))
                .is_some_and(|member| member.state.starts_with("Warmed:"));
            if !in_pool {
                return;
            }
            world.open_hook(&group, HOOK, &id, &token_of(number, HOOK));
            let member = world
                .groups
                .get_mut(&group)
                .and_then(|group| group.members.get_mut(&id))
                .expect("a member");
            member.state = "Warmed:Terminating:Wait".into();
            world.note(format!(
                "the warm pool of {group} terminates manager {number}"
            ));
        }
        {
            let mut truth = self.truth();
            truth.proven.remove(&number);
            truth.receives_of.remove(&number);
            truth.managers[number].noticed = None;
        }
        let mut message = messages::hook_message(&group, HOOK, &id, &token_of(number, HOOK), now);
        message["Origin"] = "WarmPool".into();
        self.send(message.to_string(), MessageKind::Terminate(number), 0);
    }
}
