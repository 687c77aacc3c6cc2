//! A manager as a drain sees it: its place in its group, our hooks, its instance, and the newest drain command.

use super::{Instance, Time};
use crate::fault::Fault;
use chrono::TimeDelta;

/// A manager as a drain sees it.
#[derive(Clone, Debug)]
pub struct ManagerView {
    /// What its group says; `None` = no group has it.
    pub lifecycle: Result<Option<Lifecycle>, Fault>,
    /// Our hooks on its group.
    pub hooks: Result<Vec<Hook>, Fault>,
    /// What EC2 says; `None` = EC2 doesn't know it.
    pub instance: Result<Option<Instance>, Fault>,
    /// The newest drain command that can be evidence.
    pub command: Command,
    /// When the newest drain command was requested, whether or not it is evidence.
    pub requested: Option<Time>,
    /// When its termination began, where a message can't tell or may be wrong.
    pub began: Began,
}

/// When a group began to terminate an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Began {
    /// Nothing depends on it, or no activity of the group tells.
    NotTold,
    /// Then.
    At(Time),
    /// It could not be read this time.
    Unread(Fault),
}

impl ManagerView {
    /// Where it stands in its group.
    pub fn stage(&self) -> Stage {
        match &self.lifecycle {
            Err(_) => Stage::Unread,
            Ok(None) => Stage::NoGroup,
            Ok(Some(lifecycle)) => Stage::of(&lifecycle.state),
        }
    }

    /// Its group, and the group's own word for its state, where a group has it.
    pub fn in_group(&self) -> Option<&Lifecycle> {
        self.lifecycle.as_ref().ok()?.as_ref()
    }

    /// Whether a hook waits, or nobody could tell.
    pub fn may_wait(&self) -> bool {
        matches!(self.stage(), Stage::Waiting | Stage::Unread)
    }
}

/// Where an instance stands in its group, as far as its termination is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The group could not be asked.
    Unread,
    /// No group has it.
    NoGroup,
    /// In a state from before its termination: it may yet wait in our hook.
    Before,
    /// It waits in a termination hook.
    Waiting,
    /// Its group is letting it go, and no hook holds it.
    Going,
    /// Terminated, or in its group's warm pool.
    Over,
}

impl Stage {
    /// What a `LifecycleState` says; an instance that its group's warm pool terminates waits as any other does.
    pub fn of(lifecycle: &str) -> Self {
        match lifecycle {
            "Terminating:Wait" | "Warmed:Terminating:Wait" => Self::Waiting,
            state if state.contains("Terminating") => Self::Going,
            state if state.starts_with("Terminated") || state.starts_with("Warmed") => Self::Over,
            _ => Self::Before,
        }
    }
}

/// An instance's place in its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    /// The group.
    pub group: String,
    /// `LifecycleState`, AWS's word.
    pub state: String,
}

/// One of our lifecycle hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Its name.
    pub name: String,
    /// Without a heartbeat it ends after so long.
    pub heartbeat_timeout: TimeDelta,
    /// With heartbeats it ends after so long.
    pub global_timeout: TimeDelta,
}

/// The newest drain command for an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// None was sent since the task was first seen.
    None,
    /// Sent, and its end not seen.
    InFlight {
        /// SSM's word, or that it isn't visible yet.
        status: String,
    },
    /// Ended with the document's own line.
    Answered(Answer, String),
    /// Ended in any other way.
    Ended {
        /// SSM's status and status details.
        status: String,
    },
    /// Could not be read: there may be one in flight.
    Unreadable(Fault),
    /// Not looked for, because nothing depends on it.
    NotRead,
}

impl Command {
    /// What became of it, in words.
    pub fn in_words(&self) -> String {
        match self {
            Self::None => "no drain command was sent".into(),
            Self::InFlight { status } => format!("the drain command is {status}"),
            Self::Answered(answer, _) => format!("the drain document says {}", answer.word()),
            Self::Ended { status } => {
                format!("the drain command ended without an answer: {status}")
            }
            Self::Unreadable(fault) => format!("the drain command could not be read: {fault}"),
            Self::NotRead => "the drain commands were not looked at".into(),
        }
    }
}

/// The answers of the drain document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Jobs ended, service down.
    Stopped,
    /// No such unit, or it never ran.
    NothingToDrain,
    /// Service down, but not gracefully.
    Aborted,
    /// Still finishing jobs when the bounded wait ended, or another copy holds the lock.
    Busy,
    /// The document could not tell.
    Unknown,
}

/// What the document's line begins with.
const ANSWER_PREFIX: &str = "lifecycle-reaper:";

impl Answer {
    /// Finds the document's line in a command's output; returns the answer and the facts after it.
    pub fn in_output(output: &str) -> Option<(Self, String)> {
        let line = output
            .lines()
            .rev()
            .find_map(|line| line.trim().strip_prefix(ANSWER_PREFIX))?
            .trim_start();
        let (word, facts) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let answer = match word {
            "stopped" => Self::Stopped,
            "nothing-to-drain" => Self::NothingToDrain,
            "aborted" => Self::Aborted,
            "busy" => Self::Busy,
            _ => Self::Unknown,
        };
        Some((answer, facts.chars().take(200).collect()))
    }

    /// The document's word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::NothingToDrain => "nothing-to-drain",
            Self::Aborted => "aborted",
            Self::Busy => "busy",
            Self::Unknown => "unknown",
        }
    }
}
