//! The preflight: what would keep a plan from coming true, or make it do something that nobody meant.
//!
//! Each finding says what was found, why it matters and what to do. What decides is plain functions of facts; the
//! function itself reports what it can know, the command line asks for the rest with the caller's credentials.

mod agents;
mod groups;
mod permissions;
mod queues;
mod world;

pub use agents::{Agent, expected_agents, of_agents};
pub use groups::{GroupFacts, TerminationHook, of_groups};
pub use permissions::{Probe, ProbeResult, of_permissions, probes};
pub use queues::{QueueAttributes, QueueFacts, of_queues, queues_of};
pub use world::of_world;

use serde::{Deserialize, Serialize};
use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It will fail, cut jobs short, or leave something behind.
    Problem,
    /// It works, and is unlikely to be meant.
    Warning,
    /// It could not be told.
    Note,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// One thing that a person should know before `MODE=enforce`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// What it is about: a group, a hook, a queue, an address.
    pub about: String,
    /// What was found.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// What to do.
    pub action: String,
}

impl Finding {
    fn new(
        level: Level,
        about: impl Into<String>,
        what: impl Into<String>,
        why: impl Into<String>,
        action: impl Into<String>,
    ) -> Self {
        Self {
            level,
            about: about.into(),
            what: what.into(),
            why: why.into(),
            action: action.into(),
        }
    }

    /// A fact that could not be read, so that nothing was checked by it.
    fn not_told(about: impl Into<String>, what: impl Into<String>, permission: &str) -> Self {
        Self::new(
            Level::Note,
            about,
            what,
            "what could not be read was not checked",
            format!("allow {permission} to whoever runs the preflight, or check it by hand"),
        )
    }
}
