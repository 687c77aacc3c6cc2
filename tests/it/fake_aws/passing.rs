//! What happens by itself as time passes: hooks time out, instances end and are forgotten, persistent requests launch again.

use super::world::{Closed, Closing, Group, Instance, InstanceState, World};
use chrono::{DateTime, TimeDelta, Utc};

/// How long things take by themselves.
#[derive(Clone, Debug)]
pub struct Pace {
    /// From the last hook's release until EC2 says shutting-down.
    pub proceed: TimeDelta,
    /// From shutting-down to terminated.
    pub shut_down: TimeDelta,
    /// How long a terminated instance stays visible.
    pub forget: TimeDelta,
    /// How long a persistent spot request, or a fleet that maintains its size, takes to replace an instance that ended.
    pub respawn: TimeDelta,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            proceed: TimeDelta::seconds(2),
            shut_down: TimeDelta::seconds(40),
            forget: TimeDelta::minutes(60),
            respawn: TimeDelta::seconds(30),
        }
    }
}

impl World {
    /// Brings everything up to the clock. Called before every request.
    pub fn settle(&mut self) {
        self.remember();
        let now = self.now();
        self.time_hooks_out(now);
        self.proceed_members(now);
        self.respawn_spot(now);
        self.respawn_fleets(now);
        self.forget_instances(now);
        self.drop_members(now);
    }

    /// When a request or a fleet launches another instance by itself, if one is about to.
    pub fn next_launch(&self) -> Option<DateTime<Utc>> {
        let requests = self.ec2.spot_requests.values();
        let of_requests = requests
            .filter(|request| request.persistent && request.state == "active")
            .filter_map(|request| request.instance_id.as_ref());
        let fleets = self.ec2.fleets.values();
        let of_fleets = fleets
            .filter(|fleet| fleet.kind == "maintain" && fleet.state == "active")
            .flat_map(|fleet| &fleet.instances);
        of_requests
            .chain(of_fleets)
            .filter_map(|id| self.ec2.instances.get(id)?.ended)
            .map(|ended| ended + self.pace.respawn)
            .filter(|at| *at > self.now())
            .min()
    }

    fn time_hooks_out(&mut self, now: DateTime<Utc>) {
        let mut notes = Vec::new();
        for group in self.groups.values_mut() {
            for index in 0..group.actions.len() {
                let action = &group.actions[index];
                let Some(hook) = group
                    .hooks
                    .get(&action.hook)
                    .filter(|_| action.closed.is_none())
                else {
                    continue;
                };
                let by_heartbeat = action.last_heartbeat + hook.heartbeat_timeout;
                let by_global = action.opened + hook.global_timeout;
                let (at, how) = if by_global <= by_heartbeat {
                    (by_global, Closing::GlobalTimeout)
                } else {
                    (by_heartbeat, Closing::HeartbeatTimeout)
                };
                if at <= now {
                    let instance_id = action.instance_id.clone();
                    notes.push((
                        at,
                        format!("hook {} of {instance_id} times out: {how:?}", action.hook),
                    ));
                    group.actions[index].closed = Some(Closed { at, how });
                    group.proceed_if_free(&instance_id, at);
                }
            }
        }
        for (at, what) in notes {
            self.note_at(at, what);
        }
    }

    fn proceed_members(&mut self, now: DateTime<Utc>) {
        let due: Vec<(String, DateTime<Utc>)> = self
            .groups
            .values()
            .flat_map(|group| &group.members)
            .filter_map(|(id, member)| {
                Some((id.clone(), member.proceeds_since? + self.pace.proceed))
            })
            .filter(|(_, at)| *at <= now)
            .collect();
        for (id, at) in due {
            if self.goes_to_pool(&id) {
                continue;
            }
            self.end_instance(&id, at);
        }
    }

    /// Lets a member that its group keeps warm go on there; false where it ends.
    fn goes_to_pool(&mut self, id: &str) -> bool {
        let lives = self
            .ec2
            .instances
            .get(id)
            .is_some_and(|instance| !instance.state.is_ending());
        for group in self.groups.values_mut() {
            if group.to_pool.remove(id)
                && lives
                && let Some(member) = group.members.get_mut(id)
            {
                member.state = "Warmed:Pending".into();
                member.proceeds_since = None;
                return true;
            }
        }
        false
    }

    /// A fleet that maintains its size launches another for each instance that ended: with the fleet's tag alone.
    fn respawn_fleets(&mut self, now: DateTime<Utc>) {
        let mut due = Vec::new();
        for fleet in self.ec2.fleets.values() {
            if fleet.kind != "maintain" || fleet.state != "active" {
                continue;
            }
            for (place, id) in fleet.instances.iter().enumerate() {
                if let Some(model) = self.ec2.instances.get(id)
                    && let Some(ended) = model.ended
                    && ended + self.pace.respawn <= now
                {
                    due.push((fleet.id.clone(), place, model.clone()));
                }
            }
        }
        for (fleet, place, model) in due {
            let id = format!("i-0{:016x}", 0xffff_0000_0000 + self.next_serial());
            let at = model.ended.unwrap_or(now) + self.pace.respawn;
            let mut tags = model.tags.clone();
            tags.retain(|key, _| key.starts_with("aws:"));
            let fresh = Instance {
                id: id.clone(),
                state: InstanceState::Running,
                launched: at,
                attached: Some(at),
                tags,
                ended: None,
                end_reason: None,
                ..model
            };
            self.ec2.instances.insert(id.clone(), fresh);
            if let Some(fleet) = self.ec2.fleets.get_mut(&fleet) {
                fleet.instances[place] = id.clone();
            }
            self.note_at(at, format!("{fleet} launches {id} again"));
        }
    }

    /// Starts the end of an instance, whoever asked for it. Its addresses come free at once.
    pub fn end_instance(&mut self, id: &str, at: DateTime<Utc>) {
        let Some(instance) = self.ec2.instances.get_mut(id) else {
            return;
        };
        if instance.ended.is_some() {
            return;
        }
        instance.ended = Some(at);
        instance.end_reason = Some(format!(
            "User initiated ({} GMT)",
            at.format("%Y-%m-%d %H:%M:%S")
        ));
        instance.state = InstanceState::ShuttingDown;
        for address in self
            .ec2
            .addresses
            .values_mut()
            .filter(|address| address.instance_id.as_deref() == Some(id))
        {
            address.association_id = None;
            address.instance_id = None;
            address.network_interface_id = None;
        }
        for request in self.ec2.spot_requests.values_mut() {
            if request.instance_id.as_deref() == Some(id)
                && request.state == "active"
                && !request.persistent
            {
                request.state = "closed".into();
            }
        }
        self.note_at(at, format!("{id} shuts down"));
    }

    /// An active persistent request whose instance ended launches another: untagged, with the same key.
    fn respawn_spot(&mut self, now: DateTime<Utc>) {
        let due: Vec<(String, Instance)> = self
            .ec2
            .spot_requests
            .values()
            .filter(|request| request.persistent && request.state == "active")
            .filter_map(|request| {
                let instance = self.ec2.instances.get(request.instance_id.as_ref()?)?;
                (instance.ended? + self.pace.respawn <= now)
                    .then(|| (request.id.clone(), instance.clone()))
            })
            .collect();
        for (request_id, model) in due {
            let id = format!("i-0{:016x}", 0xaaaa_0000_0000 + self.next_serial());
            let at = model.ended.unwrap_or(now) + self.pace.respawn;
            let fresh = Instance {
                id: id.clone(),
                state: InstanceState::Running,
                launched: at,
                attached: Some(at),
                tags: Default::default(),
                ended: None,
                end_reason: None,
                ..model
            };
            self.ec2.instances.insert(id.clone(), fresh);
            if let Some(request) = self.ec2.spot_requests.get_mut(&request_id) {
                request.instance_id = Some(id.clone());
            }
            self.note_at(at, format!("{request_id} launches {id} again"));
        }
    }

    fn forget_instances(&mut self, now: DateTime<Utc>) {
        let pace = self.pace.clone();
        for instance in self.ec2.instances.values_mut() {
            if instance
                .ended
                .is_some_and(|ended| ended + pace.shut_down <= now)
            {
                instance.state = InstanceState::Terminated;
            }
        }
        self.ec2
            .instances
            .retain(|_, instance| instance.ended.is_none_or(|ended| ended + pace.forget > now));
    }

    /// A group forgets a member whose instance has terminated (or never was), unless it still waits on a hook.
    fn drop_members(&mut self, now: DateTime<Utc>) {
        let Self {
            groups, ec2, pace, ..
        } = self;
        for group in groups.values_mut() {
            group.members.retain(|id, member| {
                let Some(since) = member.proceeds_since else {
                    return true;
                };
                ec2.instances
                    .get(id)
                    .is_some_and(|instance| instance.state != InstanceState::Terminated)
                    || since + pace.proceed > now
            });
        }
    }
}

impl Group {
    /// Lets the instance go on once none of its actions is open.
    pub fn proceed_if_free(&mut self, instance_id: &str, at: DateTime<Utc>) {
        let waits = self
            .actions
            .iter()
            .any(|action| action.instance_id == instance_id && action.closed.is_none());
        let Some(member) = self.members.get_mut(instance_id).filter(|_| !waits) else {
            return;
        };
        if let Some(before) = member.state.strip_suffix("Terminating:Wait") {
            member.state = format!("{before}Terminating:Proceed");
            member.proceeds_since = Some(at);
        }
    }
}
