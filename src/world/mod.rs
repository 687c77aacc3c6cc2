//! The world: what one pass saw, as plain data without AWS types.
//!
//! What could not be read is unknown, not empty: every listing carries whether it was read to its end.

mod manager;

pub use manager::{Answer, Began, Command, Hook, Lifecycle, ManagerView, Stage};

use crate::fault::Fault;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// A moment.
pub type Time = DateTime<Utc>;

/// What was read of one kind, and whether that is all there is.
#[derive(Clone, Debug)]
pub struct Listing<T> {
    /// What was read before the end or the fault.
    pub items: Vec<T>,
    /// Why it isn't all; `None` = it is.
    pub fault: Option<Fault>,
}

impl<T> Listing<T> {
    /// All there is.
    pub fn complete(items: Vec<T>) -> Self {
        Self { items, fault: None }
    }

    /// Whether it was read to its end.
    pub fn is_complete(&self) -> bool {
        self.fault.is_none()
    }
}

/// The answer of a call that has no pages: all there is, or nothing and why.
impl<T> From<Result<Vec<T>, Fault>> for Listing<T> {
    fn from(answer: Result<Vec<T>, Fault>) -> Self {
        match answer {
            Ok(items) => Self::complete(items),
            Err(fault) => Self {
                items: vec![],
                fault: Some(fault),
            },
        }
    }
}

/// An EC2 instance's state; what EC2 may add one day is `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstanceState {
    /// Starting.
    Pending,
    /// Running.
    Running,
    /// Stopping; it can be started again.
    Stopping,
    /// Stopped; it can be started again.
    Stopped,
    /// On its way to terminated; nothing brings it back.
    ShuttingDown,
    /// Terminated; EC2 shows it for about an hour.
    Terminated,
    /// A word that we don't know.
    Unknown,
}

impl InstanceState {
    /// Whether nothing can bring it back.
    pub fn is_gone(self) -> bool {
        matches!(self, Self::ShuttingDown | Self::Terminated)
    }

    /// AWS's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
            Self::ShuttingDown => "shutting-down",
            Self::Terminated => "terminated",
            Self::Unknown => "unknown",
        }
    }
}

/// An instance of the account: a worker, a manager, or what uses a key pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Instance id.
    pub id: String,
    /// What EC2 says.
    pub state: InstanceState,
    /// `LaunchTime`; restarts when a stopped instance is started.
    pub launched: Option<Time>,
    /// The earlier of `LaunchTime` and the attach time of the first network interface.
    pub born: Option<Time>,
    /// When it was terminated, as far as EC2 tells.
    pub died: Option<Time>,
    /// Value of the parent tag.
    pub parent: Option<String>,
    /// Name of the key pair that it was launched with.
    pub key_name: Option<String>,
    /// The spot request that it came from.
    pub spot_request: Option<String>,
    /// The EC2 fleet or spot fleet request that started it.
    pub fleet: Option<String>,
    /// The Auto Scaling group that it is tagged with.
    pub group: Option<String>,
    /// Whether it carries the keep tag.
    pub keep: bool,
    /// Whether its platform is Windows, which has no drain document.
    pub windows: bool,
}

/// An instance as its Auto Scaling group lists it.
#[derive(Clone, Debug)]
pub struct Member {
    /// Instance id.
    pub id: String,
    /// Its group.
    pub group: String,
    /// `LifecycleState`, AWS's word.
    pub lifecycle: String,
    /// Whether scale-in leaves it alone.
    pub protected_from_scale_in: bool,
}

/// Something that may have to be deleted, of any kind.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    /// The id that deletes it.
    pub id: String,
    /// The name that people know it by, where it has one beside the id.
    pub name: Option<String>,
    /// AWS's word for its state.
    pub state: String,
    /// When it came to be, by AWS's clock.
    pub created: Option<Time>,
    /// Value of the owner tag (of the parent tag, for a worker).
    pub owner: Option<String>,
    /// Name of the key pair that belongs to it.
    pub key_name: Option<String>,
    /// The instance that belongs to it.
    pub instance: Option<String>,
    /// The spot request that belongs to it.
    pub spot_request: Option<String>,
    /// The fleet that belongs to it.
    pub fleet: Option<String>,
    /// Whether it carries the keep tag.
    pub keep: bool,
    /// What makes it untouchable, in words: managed by a service, associated.
    pub bound: Option<&'static str>,
    /// Whether it carries exactly the tag that makes it ours without an owner.
    pub claimed: bool,
    /// Its time tag: when it was allocated.
    pub allocated: Option<Time>,
    /// The first look: since when we know it to be unassociated.
    pub marked: Option<Time>,
    /// What else is needed to delete it.
    pub border_group: Option<String>,
    /// Whether it is a public IPv4 address of Amazon's own pool, which has one price.
    pub from_amazon_pool: bool,
    /// The tool that seems to manage it.
    pub managed_by: Option<String>,
}

/// All that a reaping pass saw.
#[derive(Clone, Debug)]
pub struct World {
    /// What may be deleted, by kind; read before what protects it.
    pub resources: BTreeMap<&'static str, Listing<Resource>>,
    /// Every instance of the account and Region.
    pub instances: Listing<Instance>,
    /// The members of the managed groups, and of their worker groups.
    pub members: Listing<Member>,
    /// Groups that the configuration names and that don't exist: deleted, or misspelt.
    pub missing_groups: Vec<String>,
}
