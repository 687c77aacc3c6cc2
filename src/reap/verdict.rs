//! What was decided of one resource, and each fact on the way to it.

use super::OwnerState;
use crate::world::{Resource, Time};

/// What is to be done with a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its owner is proven gone: delete.
    Orphan,
    /// It can't be judged before some time has passed; `None` = as soon as what it hangs on has gone.
    Defer(Option<Time>),
    /// It is somebody's, or protected.
    Keep,
    /// Nothing proves whose it is: kept, and reported.
    Unproven,
    /// First look: remember that it was unassociated now, and judge after the grace period.
    FirstLook(Time),
    /// It was associated in between: forget the first look.
    ForgetLook,
}

impl Verdict {
    /// The word in plans and logs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Orphan => "reap",
            Self::Defer(_) | Self::FirstLook(_) => "defer",
            Self::Keep | Self::ForgetLook => "keep",
            Self::Unproven => "unknown",
        }
    }
}

/// One rule that was tried, and the fact that it met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The rule's name.
    pub rule: &'static str,
    /// What was seen.
    pub fact: String,
}

/// A decision, with everything that led to it.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// What was judged.
    pub resource: Resource,
    /// What is to be done.
    pub verdict: Verdict,
    /// The rule that decided.
    pub rule: &'static str,
    /// The fact that decided, in words.
    pub evidence: String,
    /// Rules that were tried before and did not decide.
    pub before: Vec<Tried>,
    /// The manager that the resource belongs to, as far as anything names one.
    pub owner: Option<String>,
    /// What is known of that manager.
    pub owner_state: Option<OwnerState>,
    /// When it came to be: the time in its name, else AWS's.
    pub born: Option<Time>,
}

/// The rules tried so far for one resource.
#[derive(Clone, Debug)]
pub struct Trail {
    resource: Resource,
    before: Vec<Tried>,
    owner: Option<String>,
    owner_state: Option<OwnerState>,
    born: Option<Time>,
}

impl Trail {
    /// Before the first rule.
    pub fn of(resource: &Resource) -> Self {
        let (owner, born) = (resource.owner.clone(), resource.created);
        Self {
            resource: resource.clone(),
            before: vec![],
            owner,
            owner_state: None,
            born,
        }
    }

    /// Whether the resource carries the keep tag.
    pub fn is_kept(&self) -> bool {
        self.resource.keep
    }

    /// A rule that did not decide.
    pub fn pass(&mut self, rule: &'static str, fact: impl Into<String>) {
        self.before.push(Tried {
            rule,
            fact: fact.into(),
        });
    }

    /// Who owns the resource, and what is known of them.
    pub fn owned_by(&mut self, owner: &str, state: OwnerState) {
        self.owner = Some(owner.to_owned());
        self.owner_state = Some(state);
    }

    /// When the resource came to be.
    pub fn born(&mut self, born: Option<Time>) {
        self.born = born;
    }

    /// When the resource came to be, if that is known.
    pub fn birth(&self) -> Option<Time> {
        self.born
    }

    /// The rule that decides.
    pub fn decide(
        self,
        verdict: Verdict,
        rule: &'static str,
        evidence: impl Into<String>,
    ) -> Judgement {
        let Self {
            resource,
            before,
            owner,
            owner_state,
            born,
        } = self;
        Judgement {
            resource,
            verdict,
            rule,
            evidence: evidence.into(),
            before,
            owner,
            owner_state,
            born,
        }
    }
}
