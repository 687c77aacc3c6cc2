//! A task: one thing to do, as an event asked for it, together with how often and since when it was asked.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use std::fmt;

/// An EC2 instance id that is well formed: `i-` and 8 or 17 lower-case hexadecimal digits.
///
/// Nothing else may reach a call or a filter: EC2 reads `*` and `?` in a filter as wildcards,
/// and an empty id matches everything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct InstanceId(String);

impl InstanceId {
    /// The id, if it is one.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("i-")?;
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (matches!(digits.len(), 8 | 17) && digits.bytes().all(hex)).then(|| Self(text.to_owned()))
    }

    /// The id as AWS writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// One of our termination hooks waits: drain the manager, complete the hook, reap.
    Terminate {
        /// The terminating manager.
        manager: InstanceId,
        /// Its Auto Scaling group.
        group: String,
        /// The lifecycle hook that sent the message.
        hook: String,
        /// The instance goes to a warm pool and comes back: drain and release, reap nothing.
        to_warm_pool: bool,
    },
    /// A manager is said to be gone and no hook waits: reap what it left.
    Reap {
        /// The manager that is gone, if EC2 agrees.
        manager: InstanceId,
        /// Who says that it is gone.
        told_by: ToldBy,
    },
    /// Look at everything.
    Sweep {
        /// `false`: write nothing whatever the mode, and answer with the whole plan.
        writes: bool,
    },
    /// Something changed for one instance: one pass now, and never again by itself.
    Wake {
        /// The instance.
        manager: InstanceId,
        /// What changed.
        change: Change,
    },
}

/// Who says that a manager is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToldBy {
    /// `EC2 Instance Terminate Successful`: EC2 may lag a little behind.
    TerminateSuccessful,
    /// `EC2 Instance Terminate Unsuccessful`: the manager may well live on.
    TerminateUnsuccessful,
    /// A person, with `{"action":"reap"}`.
    Person,
}

/// What changed for an instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// A drain command ended; its id proves that the command belongs to what goes on now.
    CommandEnded(String),
    /// EC2 takes the spot instance back in two minutes.
    SpotInterruption,
    /// EC2 reports another instance state.
    State,
    /// A sweep found it waiting in its hook.
    FoundWaiting,
}

impl Task {
    /// The word for logs and replies.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Terminate { .. } => "Terminate",
            Self::Reap { .. } => "Reap",
            Self::Sweep { .. } => "Sweep",
            Self::Wake { .. } => "Wake",
        }
    }

    /// The instance that the task is about, if it is about one.
    pub fn manager(&self) -> Option<&InstanceId> {
        match self {
            Self::Terminate { manager, .. }
            | Self::Reap { manager, .. }
            | Self::Wake { manager, .. } => Some(manager),
            Self::Sweep { .. } => None,
        }
    }
}

/// How a task reached us: since when it has been asked for, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The earlier of the message's `SentTimestamp` and the event's own time.
    pub first_seen: DateTime<Utc>,
    /// Which delivery this is; 1 is the first.
    pub count: u32,
    /// How many deliveries the queue allows before it gives the message to its dead-letter queue.
    pub max_count: Option<u32>,
}

/// So many deliveries before the last one, a task does what it would do at its deadline.
const RESERVED_DELIVERIES: u32 = 2;

impl Delivery {
    /// A first delivery at `now`.
    pub fn first(now: DateTime<Utc>) -> Self {
        Self {
            first_seen: now,
            count: 1,
            max_count: None,
        }
    }

    /// Whether the task must be settled now, because the queue will soon give up on the message.
    ///
    /// A count above the maximum proves that the configured maximum isn't the queue's: it is ignored then.
    /// A queue that allows only a few deliveries keeps fewer in reserve.
    pub fn is_among_the_last(&self) -> bool {
        self.max_count.is_some_and(|max| {
            self.count <= max && self.count >= max - RESERVED_DELIVERIES.min(max / 4)
        })
    }

    /// How many deliveries are left before [`Self::is_among_the_last`] holds.
    pub fn left(&self) -> Option<u32> {
        let max = self.max_count.filter(|max| self.count <= *max)?;
        Some((max - RESERVED_DELIVERIES.min(max / 4)).saturating_sub(self.count))
    }

    /// How long ago the task was first seen; never negative.
    pub fn age(&self, now: DateTime<Utc>) -> TimeDelta {
        (now - self.first_seen).max(TimeDelta::zero())
    }
}
