//! The account as plain data: what exists, since when, and in which state. Tests read and write these fields directly.

use super::clock::Clock;
use super::faults::{Call, Draw, Rule, Witness};
use super::passing::Pace;
use super::views::Staleness;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// EC2's names, so that a test reads like the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceState {
    Pending,
    Running,
    Stopping,
    Stopped,
    ShuttingDown,
    Terminated,
}

impl InstanceState {
    pub fn wire(self) -> (u8, &'static str) {
        match self {
            Self::Pending => (0, "pending"),
            Self::Running => (16, "running"),
            Self::ShuttingDown => (32, "shutting-down"),
            Self::Terminated => (48, "terminated"),
            Self::Stopping => (64, "stopping"),
            Self::Stopped => (80, "stopped"),
        }
    }

    pub fn is_ending(self) -> bool {
        matches!(self, Self::ShuttingDown | Self::Terminated)
    }
}

pub type Tags = BTreeMap<String, String>;

#[derive(Clone, Debug)]
pub struct Instance {
    pub id: String,
    pub state: InstanceState,
    /// LaunchTime: starts again when a stopped instance is started.
    pub launched: DateTime<Utc>,
    /// When the first network interface was attached: never starts again. None = the interface is not listed.
    pub attached: Option<DateTime<Utc>>,
    pub tags: Tags,
    pub key_name: Option<String>,
    pub spot_request_id: Option<String>,
    pub termination_protection: bool,
    pub zone: String,
    pub platform: Option<String>,
    /// When it entered shutting-down; the rest of its end follows by the clock.
    pub ended: Option<DateTime<Utc>>,
    /// StateTransitionReason, once it is over. EC2 names the time only where somebody asked for the end.
    pub end_reason: Option<String>,
}

#[derive(Clone, Debug)]
pub struct KeyPair {
    pub id: String,
    pub name: String,
    pub created: Option<DateTime<Utc>>,
    pub tags: Tags,
}

#[derive(Clone, Debug)]
pub struct SpotRequest {
    pub id: String,
    /// open, active, closed, cancelled, failed, disabled
    pub state: String,
    pub persistent: bool,
    pub created: Option<DateTime<Utc>>,
    pub key_name: Option<String>,
    pub instance_id: Option<String>,
    pub tags: Tags,
}

#[derive(Clone, Debug)]
pub struct Address {
    pub allocation_id: String,
    pub public_ip: String,
    pub association_id: Option<String>,
    pub instance_id: Option<String>,
    pub network_interface_id: Option<String>,
    pub network_border_group: String,
    pub service_managed: Option<String>,
    pub tags: Tags,
}

/// An EC2 Fleet or, with an id that starts with `sfr-`, a spot fleet request.
#[derive(Clone, Debug)]
pub struct Fleet {
    pub id: String,
    /// active, deleted_running, deleted_terminating, … (a spot fleet: active, cancelled_running, …)
    pub state: String,
    /// instant, request, maintain
    pub kind: String,
    pub created: DateTime<Utc>,
    pub key_name: Option<String>,
    pub instances: Vec<String>,
    pub tags: Tags,
}

/// Everything that EC2 knows.
#[derive(Clone, Debug, Default)]
pub struct Ec2 {
    pub instances: BTreeMap<String, Instance>,
    pub key_pairs: BTreeMap<String, KeyPair>,
    pub spot_requests: BTreeMap<String, SpotRequest>,
    pub addresses: BTreeMap<String, Address>,
    pub fleets: BTreeMap<String, Fleet>,
}

#[derive(Clone, Debug)]
pub struct Member {
    pub state: String,
    pub protected_from_scale_in: bool,
    pub zone: String,
    /// Since when it proceeds to its end, once every hook has let it go.
    pub proceeds_since: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug)]
pub struct LifecycleHook {
    pub name: String,
    pub transition: String,
    pub heartbeat_timeout: TimeDelta,
    pub global_timeout: TimeDelta,
    pub default_result: String,
}

/// One waiting of one instance on one hook.
#[derive(Clone, Debug)]
pub struct LifecycleAction {
    pub hook: String,
    pub instance_id: String,
    pub token: String,
    pub opened: DateTime<Utc>,
    pub last_heartbeat: DateTime<Utc>,
    pub heartbeats: u32,
    pub closed: Option<Closed>,
    /// Until then Auto Scaling answers "No active Lifecycle Action found", though it waits.
    pub invisible_until: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    pub at: DateTime<Utc>,
    pub how: Closing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closing {
    /// By CompleteLifecycleAction, with this result.
    Completed(String),
    HeartbeatTimeout,
    GlobalTimeout,
    /// The instance or the group went away underneath.
    Abandoned,
}

/// One line of a group's history.
#[derive(Clone, Debug)]
pub struct Activity {
    pub id: String,
    pub description: String,
    pub started: DateTime<Utc>,
    pub status: String,
}

#[derive(Clone, Debug, Default)]
pub struct Group {
    pub name: String,
    pub members: BTreeMap<String, Member>,
    pub hooks: BTreeMap<String, LifecycleHook>,
    pub actions: Vec<LifecycleAction>,
    /// Members that go to the warm pool, and not to their end, once their hooks have let them go.
    pub to_pool: BTreeSet<String>,
    /// Oldest first; `open_hook` adds the termination.
    pub activities: Vec<Activity>,
}

impl Group {
    pub fn open_action(&self, hook: &str, instance_id: &str) -> Option<&LifecycleAction> {
        self.actions.iter().find(|action| {
            action.hook == hook && action.instance_id == instance_id && action.closed.is_none()
        })
    }
}

/// What becomes of one command, decided when it is sent.
#[derive(Clone, Debug)]
pub struct Fate {
    /// GetCommandInvocation and ListCommands don't know it before.
    pub visible_after: TimeDelta,
    /// Pending until then.
    pub starts_after: TimeDelta,
    /// In progress until then; None = for ever.
    pub ends_after: Option<TimeDelta>,
    pub status: String,
    pub status_details: String,
    pub exit_code: i64,
    pub output: String,
}

impl Fate {
    /// The document's own line, at once.
    pub fn says(word: &str) -> Self {
        Self {
            visible_after: TimeDelta::zero(),
            starts_after: TimeDelta::zero(),
            ends_after: Some(TimeDelta::seconds(1)),
            status: "Success".into(),
            status_details: "Success".into(),
            exit_code: 0,
            output: format!("lifecycle-reaper: {word} unit=gitlab-runner.service\n"),
        }
    }

    /// Any end without the document's line.
    pub fn ends(status: &str, details: &str) -> Self {
        Self {
            status: status.into(),
            status_details: details.into(),
            exit_code: 1,
            output: String::new(),
            ..Self::says("")
        }
    }

    /// Still in progress whenever one looks.
    pub fn never_ends() -> Self {
        Self {
            ends_after: None,
            ..Self::says("stopped")
        }
    }

    pub fn after(self, length: TimeDelta) -> Self {
        Self {
            ends_after: Some(length),
            ..self
        }
    }

    pub fn visible_after(self, delay: TimeDelta) -> Self {
        Self {
            visible_after: delay,
            ..self
        }
    }
}

#[derive(Clone, Debug)]
pub struct Command {
    pub id: String,
    pub document: String,
    pub instance_id: String,
    pub sent: DateTime<Utc>,
    pub delivery_timeout: i64,
    pub comment: Option<String>,
    pub parameters: serde_json::Value,
    pub fate: Fate,
}

#[derive(Debug, Default)]
pub struct Ssm {
    pub documents: BTreeSet<String>,
    /// Instances whose agent has registered. Others answer InvalidInstanceId.
    pub agents: BTreeSet<String>,
    pub commands: Vec<Command>,
    /// Taken in order by the commands that are sent; then `usual_fate`.
    pub fates: VecDeque<Fate>,
    pub usual_fate: Option<Fate>,
}

#[derive(Clone, Debug)]
pub struct SentMessage {
    pub id: String,
    pub body: String,
    pub attributes: BTreeMap<String, String>,
    pub delay_seconds: i64,
    pub sent: DateTime<Utc>,
}

#[derive(Clone, Debug, Default)]
pub struct Queue {
    pub url: String,
    pub name: String,
    /// What SendMessage put there, in order.
    pub sent: Vec<SentMessage>,
    /// What ChangeMessageVisibility set last, by receipt handle, and when.
    pub visibility: BTreeMap<String, (i64, DateTime<Utc>)>,
    /// What GetQueueAttributes tells: `VisibilityTimeout`, `RedrivePolicy` and the like.
    pub attributes: BTreeMap<String, String>,
    /// Receipt handles that are no good; any other is accepted.
    pub expired_receipts: BTreeSet<String>,
}

/// A line of the chronicle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub at: DateTime<Utc>,
    pub moment: u64,
    pub what: String,
}

/// The world: one account in one region, its clock, its faults and the log of its calls.
pub struct World {
    pub clock: Clock,
    pub region: String,
    pub account: String,
    pub ec2: Ec2,
    pub groups: BTreeMap<String, Group>,
    pub ssm: Ssm,
    pub queues: BTreeMap<String, Queue>,
    /// At most so many items a page, whatever the caller asks for.
    pub page_size: usize,
    /// How long things take by themselves.
    pub pace: Pace,
    /// How far reads lag behind writes. None = not at all.
    pub staleness: Option<Staleness>,
    /// How long every call takes, half of it before the effect.
    pub latency: TimeDelta,
    pub rules: Vec<Rule>,
    /// Draws what happens to a call that no rule hits.
    pub draw: Option<Draw>,
    /// Sees every call that takes effect.
    pub witness: Option<Box<dyn Witness>>,
    /// The number of the run that is being polled, for the log.
    pub run: u64,
    pub calls: Vec<Call>,
    /// What happened in the world, besides calls: a line each.
    pub chronicle: Vec<Note>,
    /// Counts notes and calls, so that they can be put in order.
    pub moments: u64,
    pub serial: u64,
}

impl World {
    pub fn empty(clock: Clock) -> Self {
        Self {
            clock,
            region: "eu-west-1".into(),
            account: "123456789012".into(),
            ec2: Ec2::default(),
            groups: BTreeMap::new(),
            ssm: Ssm::default(),
            queues: BTreeMap::new(),
            page_size: 1000,
            pace: Pace::default(),
            staleness: None,
            latency: TimeDelta::zero(),
            rules: Vec::new(),
            draw: None,
            witness: None,
            run: 0,
            calls: Vec::new(),
            chronicle: Vec::new(),
            moments: 0,
            serial: 0,
        }
    }

    pub fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// The next number of this world, for ids that have to be new.
    pub fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    pub fn note(&mut self, what: impl Into<String>) {
        let now = self.now();
        self.note_at(now, what);
    }

    /// Notes something that happened before anybody looked.
    pub fn note_at(&mut self, at: DateTime<Utc>, what: impl Into<String>) {
        self.moments += 1;
        let note = Note {
            at,
            moment: self.moments,
            what: what.into(),
        };
        self.chronicle.push(note);
    }

    pub fn instance(&self, id: &str) -> &Instance {
        self.ec2
            .instances
            .get(id)
            .unwrap_or_else(|| panic!("no instance {id} in this world"))
    }

    pub fn instance_mut(&mut self, id: &str) -> &mut Instance {
        self.ec2
            .instances
            .get_mut(id)
            .unwrap_or_else(|| panic!("no instance {id} in this world"))
    }
}
