//! Why a hook is completed, and what a person should know of it.

use crate::world::Answer;

/// Why a hook is completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// The document said so.
    Drained(Answer, String),
    /// The instance runs no jobs any more.
    ManagerDown(&'static str),
    /// The deadline has come, or the last deliveries.
    Deadline(String),
    /// The configuration asks for no drain.
    NotAsked,
    /// There is no drain document for the platform.
    UnsupportedPlatform,
}

impl Release {
    /// The reason in words.
    pub fn reason(&self) -> String {
        match self {
            Self::Drained(answer, facts) if facts.is_empty() => {
                format!("the drain document says {}", answer.word())
            }
            Self::Drained(answer, facts) => {
                format!("the drain document says {} ({facts})", answer.word())
            }
            Self::ManagerDown(state) => format!("the manager is {state}: nothing is left to drain"),
            Self::Deadline(what) => format!("released undrained: {what}"),
            Self::NotAsked => "DRAIN=off".into(),
            Self::UnsupportedPlatform => "no drain document for this platform".into(),
        }
    }

    /// Whether jobs may have been cut, so that a person should know.
    pub fn is_loud(&self) -> bool {
        matches!(
            self,
            Self::Deadline(_) | Self::UnsupportedPlatform | Self::Drained(Answer::Aborted, _)
        )
    }

    /// Whether the manager ended its jobs.
    pub fn is_drained(&self) -> bool {
        matches!(
            self,
            Self::Drained(Answer::Stopped | Answer::NothingToDrain, _)
        )
    }
}
