//! The rules that several kinds share: the keep tag, the owner that a tag names, absence, and age.

use std::ops::ControlFlow;

use super::{Evidence, Judgement, OwnerState, Trail, Verdict, evidence::stamp};

/// The keep tag protects on every path.
pub(super) fn unless_kept(
    mut trail: Trail,
    evidence: &Evidence<'_>,
) -> ControlFlow<Judgement, Trail> {
    if trail.is_kept() {
        let fact = format!("carries the tag {}", evidence.config.keep_tag);
        return ControlFlow::Break(trail.decide(Verdict::Keep, "keep-tag", fact));
    }
    trail.pass("keep-tag", "not set");
    ControlFlow::Continue(trail)
}

/// The manager that the owner tag names decides alone.
pub(super) fn by_owner(mut trail: Trail, owner: &str, evidence: &Evidence<'_>) -> Judgement {
    let state = evidence.owner_state(owner);
    trail.owned_by(owner, state);
    let (verdict, rule, fact) = match state {
        OwnerState::Absent => return absent(trail, "owner-absent", owner, evidence),
        OwnerState::Malformed => (
            Verdict::Unproven,
            "owner-tag",
            "its owner tag is not an instance id".to_owned(),
        ),
        OwnerState::Live(word) => (
            Verdict::Keep,
            "owner-lives",
            format!("its manager {owner} is {word}"),
        ),
        OwnerState::Unknown => (
            Verdict::Unproven,
            "owner-unknown",
            format!("its manager {owner} was not seen in what could be read"),
        ),
        OwnerState::Gone(word) => (
            Verdict::Orphan,
            "owner-gone",
            format!("its manager {owner} is {word}"),
        ),
    };
    trail.decide(verdict, rule, fact)
}

/// The manager can't be found: what names it proves that it once was, if it is older than the grace period.
pub(super) fn absent(
    trail: Trail,
    rule: &'static str,
    owner: &str,
    evidence: &Evidence<'_>,
) -> Judgement {
    match trail.birth() {
        None => trail.decide(
            Verdict::Unproven,
            rule,
            format!("its manager {owner} is absent, and its own age can't be read"),
        ),
        Some(born) => match evidence.too_young_until(born) {
            Some(until) => trail.decide(
                Verdict::Defer(Some(until)),
                rule,
                format!(
                    "its manager {owner} is absent, but it is too young to tell before {}",
                    stamp(until)
                ),
            ),
            None => trail.decide(
                Verdict::Orphan,
                rule,
                format!("its manager {owner} is absent, and it is older than the grace period"),
            ),
        },
    }
}

/// Ownership by time: docker-machine's store is local to its manager, so what is older than every live manager
/// can't be theirs.
pub(super) fn by_time(mut trail: Trail, rule: &'static str, evidence: &Evidence<'_>) -> Judgement {
    let Some(born) = trail.birth() else {
        return trail.decide(Verdict::Unproven, rule, "its age can't be read");
    };
    match evidence.older_than_every_live_manager(born) {
        Err(why) => trail.decide(Verdict::Unproven, rule, why),
        Ok(fact) => match evidence.too_young_until(born) {
            Some(until) => {
                trail.pass("older-than-managers", fact);
                trail.decide(
                    Verdict::Defer(Some(until)),
                    rule,
                    format!("too young to tell before {}", stamp(until)),
                )
            }
            None => trail.decide(Verdict::Orphan, rule, fact),
        },
    }
}
