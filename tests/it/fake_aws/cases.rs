//! The world of the cases in a few lines: one group with a terminating and a healthy manager, their workers, the queues.

use super::clock::Clock;
use super::connector::FakeAws;
use super::faults::{Call, Outcome};
use super::world::*;
use chrono::{DateTime, TimeDelta, TimeZone, Utc};

pub const GROUP: &str = "ci-linux-asg";
pub const HOOK: &str = "ci-linux-terminate";
pub const EXECUTOR: &str = "ci-linux";
pub const DOCUMENT: &str = "lifecycle-reaper-drain";
pub const WORK_QUEUE: &str = "https://sqs.eu-west-1.amazonaws.com/123456789012/lifecycle-cleanup";
pub const DEAD_LETTER_QUEUE: &str =
    "https://sqs.eu-west-1.amazonaws.com/123456789012/lifecycle-cleanup-dlq";
pub const M1: &str = "i-0a11aa11aa11aa110";
pub const M2: &str = "i-0a22aa22aa22aa220";
pub const W1: &str = "i-0b11bb11bb11bb110";
pub const W2: &str = "i-0b22bb22bb22bb220";
pub const W3: &str = "i-0b33bb33bb33bb330";
pub const W4: &str = "i-0b44bb44bb44bb440";
pub const W8: &str = "i-0b88bb88bb88bb880";
/// A manager that no longer exists anywhere.
pub const LONG_GONE: &str = "i-0dead0dead0dead00";
/// The token of M1's lifecycle action, as in event 01.
pub const TOKEN: &str = "7b1d5c02-3f0e-4a57-9c44-0e6f1c2d3a01";

/// When the cases begin: a second after event 01 was made.
pub fn start() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2025, 3, 4, 5, 6, 8)
        .single()
        .expect("a real moment")
}

pub fn minutes(number: i64) -> TimeDelta {
    TimeDelta::minutes(number)
}

pub fn seconds(number: i64) -> TimeDelta {
    TimeDelta::seconds(number)
}

/// A name as docker-machine makes it.
pub fn machine_name(token: &str, executor: &str, born: DateTime<Utc>, number: u32) -> String {
    format!(
        "runner-{token}-{executor}-{}-{number:08x}",
        born.timestamp()
    )
}

impl Instance {
    /// A running instance, two hours old, without tags.
    pub fn running(id: &str, now: DateTime<Utc>) -> Self {
        let launched = now - TimeDelta::hours(2);
        Self {
            id: id.into(),
            state: InstanceState::Running,
            launched,
            attached: Some(launched),
            tags: Tags::new(),
            key_name: None,
            spot_request_id: None,
            termination_protection: false,
            zone: "eu-west-1a".into(),
            platform: None,
            ended: None,
            end_reason: None,
        }
    }
}

/// A worker to be put into a world, with its key pair unless told otherwise.
#[derive(Clone, Debug)]
pub struct Worker {
    pub id: String,
    pub parent: Option<String>,
    pub age: TimeDelta,
    pub state: InstanceState,
    pub key: Option<String>,
    pub spot: Option<String>,
    pub tags: Tags,
    pub termination_protection: bool,
}

impl Worker {
    /// A worker of `parent`, an hour old, whose key is named after M1 (`aa`) or anybody else (`bb`).
    pub fn of(parent: &str, id: &str) -> Self {
        Self {
            id: id.into(),
            parent: Some(parent.into()),
            age: TimeDelta::hours(1),
            state: InstanceState::Running,
            key: Some(if parent == M1 { "aa" } else { "bb" }.into()),
            spot: None,
            tags: Tags::new(),
            termination_protection: false,
        }
    }

    pub fn untagged(self) -> Self {
        Self {
            parent: None,
            ..self
        }
    }

    pub fn stopped(self) -> Self {
        Self {
            state: InstanceState::Stopped,
            ..self
        }
    }

    pub fn state(self, state: InstanceState) -> Self {
        Self { state, ..self }
    }

    pub fn age(self, age: TimeDelta) -> Self {
        Self { age, ..self }
    }

    /// The runner token in the name of its key.
    pub fn token(self, token: &str) -> Self {
        Self {
            key: Some(token.into()),
            ..self
        }
    }

    pub fn without_key(self) -> Self {
        Self { key: None, ..self }
    }

    /// Launched by this spot request, which becomes active.
    pub fn spot(self, request_id: &str) -> Self {
        Self {
            spot: Some(request_id.into()),
            ..self
        }
    }

    pub fn tag(mut self, key: &str, value: &str) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }

    pub fn protected(self) -> Self {
        Self {
            termination_protection: true,
            ..self
        }
    }
}

impl World {
    /// The work queue and the dead-letter queue, empty.
    pub fn put_queues(&mut self) {
        for url in [WORK_QUEUE, DEAD_LETTER_QUEUE] {
            let name = url.rsplit('/').next().unwrap_or_default().to_owned();
            let queue = Queue {
                url: url.into(),
                name,
                ..Queue::default()
            };
            self.queues.insert(url.into(), queue);
        }
    }

    /// The world of the cases, without workers.
    pub fn cases() -> Self {
        let mut world = Self::empty(Clock::starting_at(start()));
        world.put_queues();
        world.ssm.documents.insert(DOCUMENT.into());
        world.put_group(GROUP, HOOK);
        world.put_manager(GROUP, M1, TimeDelta::hours(4));
        world.put_manager(GROUP, M2, TimeDelta::hours(1));
        world.open_hook(GROUP, HOOK, M1, TOKEN);
        world
    }

    pub fn put_group(&mut self, name: &str, hook: &str) {
        let hook = LifecycleHook {
            name: hook.into(),
            transition: "autoscaling:EC2_INSTANCE_TERMINATING".into(),
            heartbeat_timeout: TimeDelta::hours(1),
            global_timeout: TimeDelta::hours(48),
            default_result: "CONTINUE".into(),
        };
        let group = Group {
            name: name.into(),
            hooks: [(hook.name.clone(), hook)].into(),
            ..Group::default()
        };
        self.groups.insert(name.into(), group);
    }

    /// A running manager InService, its agent registered.
    pub fn put_manager(&mut self, group: &str, id: &str, age: TimeDelta) {
        let now = self.now();
        let instance = Instance {
            launched: now - age,
            attached: Some(now - age),
            ..Instance::running(id, now)
        };
        self.ec2.instances.insert(id.into(), instance);
        self.ssm.agents.insert(id.into());
        let member = Member {
            state: "InService".into(),
            protected_from_scale_in: false,
            zone: "eu-west-1a".into(),
            proceeds_since: None,
        };
        self.launch(group, id, member, now - age);
    }

    /// The group launches an instance: it has it, and says when it did.
    pub fn launch(&mut self, group: &str, id: &str, member: Member, started: DateTime<Utc>) {
        let activity = Activity {
            id: format!("{:08x}-0000-4000-8000-0000000000ac", self.next_serial()),
            description: format!("Launching a new EC2 instance: {id}"),
            started,
            status: "Successful".into(),
        };
        let group = self.groups.get_mut(group).expect("the group exists");
        group.activities.push(activity);
        group.members.insert(id.into(), member);
    }

    /// The member waits on this hook from now on.
    pub fn open_hook(&mut self, group: &str, hook: &str, instance_id: &str, token: &str) {
        let now = self.now();
        let activity = Activity {
            id: format!("{:08x}-0000-4000-8000-0000000000ac", self.next_serial()),
            description: format!("Terminating EC2 instance: {instance_id}"),
            started: now,
            status: "MidTerminatingLifecycleAction".into(),
        };
        let group = self.groups.get_mut(group).expect("the group exists");
        if !group
            .actions
            .iter()
            .any(|action| action.instance_id == instance_id && action.closed.is_none())
        {
            group.activities.push(activity);
        }
        group.members.get_mut(instance_id).expect("a member").state = "Terminating:Wait".into();
        group.actions.push(LifecycleAction {
            hook: hook.into(),
            instance_id: instance_id.into(),
            token: token.into(),
            opened: now,
            last_heartbeat: now,
            heartbeats: 0,
            closed: None,
            invisible_until: None,
        });
    }

    /// Puts a worker with its key pair (and spot request); returns its key's name.
    pub fn put_worker(&mut self, worker: Worker) -> String {
        let born = self.now() - worker.age;
        let number = self.next_serial();
        let key_name = worker
            .key
            .as_ref()
            .map(|token| machine_name(token, EXECUTOR, born, number as u32));
        if let Some(name) = &key_name {
            self.put_key(name, worker.age);
        }
        if let Some(spot) = &worker.spot {
            self.put_spot(spot, "active", key_name.as_deref(), worker.age);
            self.ec2
                .spot_requests
                .get_mut(spot)
                .expect("just put")
                .instance_id = Some(worker.id.clone());
        }
        let mut tags = worker.tags;
        if let Some(parent) = worker.parent {
            tags.insert("gitlab-runner-parent-id".into(), parent);
        }
        let now = self.now();
        let instance = Instance {
            state: worker.state,
            launched: born,
            attached: Some(born),
            tags,
            key_name: key_name.clone(),
            spot_request_id: worker.spot,
            termination_protection: worker.termination_protection,
            ended: worker.state.is_ending().then_some(now),
            ..Instance::running(&worker.id, now)
        };
        self.ec2.instances.insert(worker.id, instance);
        key_name.unwrap_or_default()
    }

    /// A key pair of this name; returns its id.
    pub fn put_key(&mut self, name: &str, age: TimeDelta) -> String {
        let id = format!("key-0{:016x}", self.next_serial());
        let created = Some(self.now() - age);
        self.ec2.key_pairs.insert(
            id.clone(),
            KeyPair {
                id: id.clone(),
                name: name.into(),
                created,
                tags: Tags::new(),
            },
        );
        id
    }

    /// A key pair named by docker-machine's rule, as old as its name says; returns its name.
    pub fn put_machine_key(&mut self, token: &str, executor: &str, age: TimeDelta) -> String {
        let number = self.next_serial() as u32;
        let name = machine_name(token, executor, self.now() - age, number);
        self.put_key(&name, age);
        name
    }

    /// A persistent spot request (docker-machine's are one-time: change the field where it matters).
    pub fn put_spot(&mut self, id: &str, state: &str, key_name: Option<&str>, age: TimeDelta) {
        let request = SpotRequest {
            id: id.into(),
            state: state.into(),
            persistent: true,
            created: Some(self.now() - age),
            key_name: key_name.map(Into::into),
            instance_id: None,
            tags: Tags::new(),
        };
        self.ec2.spot_requests.insert(id.into(), request);
    }

    /// A free address with this owner tag, if any.
    pub fn put_address(&mut self, allocation_id: &str, owner: Option<&str>) -> &mut Address {
        let tags = owner
            .map(|owner| ("lifecycle-reaper:owner".to_owned(), owner.to_owned()))
            .into_iter()
            .collect();
        let address = Address {
            allocation_id: allocation_id.into(),
            public_ip: format!("198.51.100.{}", self.ec2.addresses.len() + 1),
            association_id: None,
            instance_id: None,
            network_interface_id: None,
            network_border_group: self.region.clone(),
            service_managed: None,
            tags,
        };
        self.ec2
            .addresses
            .entry(allocation_id.into())
            .or_insert(address)
    }

    /// The id of the key pair with this name.
    pub fn key_id(&self, name: &str) -> String {
        self.ec2
            .key_pairs
            .values()
            .find(|key| key.name == name)
            .unwrap_or_else(|| panic!("no key {name}"))
            .id
            .clone()
    }

    pub fn has_key(&self, name: &str) -> bool {
        self.ec2.key_pairs.values().any(|key| key.name == name)
    }
}

impl FakeAws {
    /// The world of the cases with W1, W2 (of M1) and W3 (of M2), and the function's variables for it, `MODE=enforce`.
    pub fn cases() -> Self {
        let mut world = World::cases();
        world.put_worker(Worker::of(M1, W1));
        world.put_worker(Worker::of(M1, W2));
        world.put_worker(Worker::of(M2, W3).age(TimeDelta::minutes(30)));
        Self::with_variables(world)
    }

    /// The same without any worker or key.
    pub fn bare_cases() -> Self {
        Self::with_variables(World::cases())
    }

    pub fn with_variables(world: World) -> Self {
        let aws = Self::new(world);
        for (name, value) in [
            ("AUTO_SCALING_GROUPS", GROUP),
            ("LIFECYCLE_HOOKS", HOOK),
            ("EXECUTOR_NAME", EXECUTOR),
            ("MODE", "enforce"),
            ("DRAIN_DOCUMENT", DOCUMENT),
            ("WORK_QUEUE_URL", WORK_QUEUE),
            ("DEAD_LETTER_QUEUE_URL", DEAD_LETTER_QUEUE),
        ] {
            aws.set(name, value);
        }
        aws
    }

    /// Sets a variable of the function.
    pub fn set(&self, name: &str, value: &str) {
        self.variables
            .lock()
            .expect("unpoisoned")
            .insert(name.into(), value.into());
    }

    pub fn unset(&self, name: &str) {
        self.variables.lock().expect("unpoisoned").remove(name);
    }

    /// Every call of one operation, in order.
    pub fn calls(&self, operation: &str) -> Vec<Call> {
        self.world()
            .calls
            .iter()
            .filter(|call| call.operation() == operation)
            .cloned()
            .collect()
    }

    pub fn all_calls(&self) -> Vec<Call> {
        self.world().calls.clone()
    }

    /// Whether a call of this operation that names this id took effect.
    pub fn touched(&self, id: &str, operation: &str) -> bool {
        self.calls(operation)
            .iter()
            .any(|call| call.took_effect() && call.request.names(id))
    }

    /// The ids that calls of one operation named with effect, in order.
    pub fn ids_of(&self, operation: &str) -> Vec<String> {
        self.calls(operation)
            .iter()
            .filter(|call| call.took_effect())
            .flat_map(|call| call.request.ids())
            .collect()
    }

    /// Every call that changes something in AWS (queues apart), refused ones included.
    pub fn writes(&self) -> Vec<Call> {
        let is_read = |name: &str| {
            ["Describe", "Get", "List"]
                .iter()
                .any(|verb| name.starts_with(verb))
        };
        let is_queue = |name: &str| matches!(name, "SendMessage" | "ChangeMessageVisibility");
        self.all_calls()
            .into_iter()
            .filter(|call| !is_read(call.operation()) && !is_queue(call.operation()))
            .collect()
    }

    /// How many calls of one operation were answered well, as the caller saw it.
    pub fn accepted(&self, operation: &str) -> usize {
        self.calls(operation)
            .iter()
            .filter(|call| call.outcome == Outcome::Accepted)
            .count()
    }
}
