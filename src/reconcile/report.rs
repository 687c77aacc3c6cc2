//! What a pass did, and what comes next.

use crate::{
    act::Results, document::PlanDocument, drain, fault::Fault, plan::ReapPlan, task::InstanceId,
};
use chrono::TimeDelta;

/// What comes after a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do.
    Done,
    /// Come again after so long.
    Again(TimeDelta),
    /// A person must act.
    Failed(Fault),
}

impl Outcome {
    /// The word for logs and replies.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done => "Done",
            Self::Again(_) => "Again",
            Self::Failed(_) => "Failed",
        }
    }
}

/// What one pass did, for the log, the reply and the metrics.
#[derive(Clone, Debug)]
pub struct Report {
    /// What comes next.
    pub outcome: Outcome,
    /// Why, in words.
    pub reason: String,
    /// Every decision about a resource.
    pub plan: ReapPlan,
    /// What became of the steps.
    pub results: Results,
    /// The hooks that this pass released, and how long each had waited.
    pub released: Vec<Released>,
    /// Managers that wait in a hook, as a sweep found them.
    pub waiting: Vec<InstanceId>,
    /// Managers that wait in a hook although their group has none of ours.
    pub without_hook: usize,
    /// The plan written down, where a person asked for it.
    pub document: Option<Box<PlanDocument>>,
}

/// A hook that was completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// Why.
    pub why: drain::Release,
    /// Since the task was first seen.
    pub after: TimeDelta,
}

impl Report {
    /// Before anything was planned or done.
    pub(super) fn new(outcome: Outcome, reason: impl Into<String>) -> Self {
        Self {
            outcome,
            reason: reason.into(),
            plan: ReapPlan::default(),
            results: Results::default(),
            released: vec![],
            waiting: vec![],
            without_hook: 0,
            document: None,
        }
    }

    /// Adds what came of a sweep's look at one waiting manager.
    pub(super) fn add_look(&mut self, look: Self) {
        if !look.results.faults.is_empty() {
            let faults = look.results.faults.iter().map(ToString::to_string);
            let faults: Vec<String> = faults.collect();
            self.reason += &format!("; a waiting manager: {}", faults.join(", "));
        }
        if look.without_hook > 0 {
            self.reason += &format!("; a waiting manager: {}", look.reason);
        }
        self.released.extend(look.released);
        self.results.faults.extend(look.results.faults);
        self.without_hook += look.without_hook;
    }
}
