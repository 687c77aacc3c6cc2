//! A worker is an orphan if and only if its parent tag names a manager that is gone; or, without that tag, if its key
//! name is ours exactly, and it is older than every live manager and than the grace period.
//!
//! docker-machine tags last: a manager killed in between leaves a worker that only its key name speaks for.

use super::{
    Candidates, Deletions, Evidence, Judgement, OwnerState, Reaper, Trail, Verdict,
    delete_in_halves,
    evidence::stamp,
    rules::{absent, by_time, unless_kept},
};
use crate::{
    aws::Aws,
    config::Config,
    fault::Fault,
    names::NameOwner,
    world::{Instance, InstanceState, Listing, Resource, World},
};
use futures_util::{
    FutureExt,
    future::{self, LocalBoxFuture},
};
use std::ops::ControlFlow;

/// AWS recommends batches well below its limit of 1,000.
const CHUNK: usize = 100;

/// Instances that managers started.
pub(super) struct Workers;

impl Reaper for Workers {
    fn kind(&self) -> &'static str {
        super::WORKERS
    }

    fn list<'a>(&'a self, _: &'a Aws, _: &'a Config) -> LocalBoxFuture<'a, Listing<Resource>> {
        future::ready(Listing::complete(vec![])).boxed_local()
    }

    fn candidates<'a>(&self, world: &'a World, evidence: &'a Evidence<'_>) -> Candidates<'a> {
        let alive = world.instances.items.iter().filter(|i| !i.state.is_gone());
        let ours = alive
            .filter(|i| !evidence.is_manager(i) && (i.parent.is_some() || is_named(i, evidence)));
        Box::new(ours.map(resource))
    }

    fn judge(&self, resource: &Resource, evidence: &Evidence<'_>) -> Option<Judgement> {
        let instance = evidence.instance(&resource.id)?;
        judge(instance, evidence)
    }

    fn delete<'a>(
        &'a self,
        aws: &'a Aws,
        resources: &'a [Resource],
    ) -> LocalBoxFuture<'a, Deletions> {
        delete_in_halves(resources, CHUNK, async |ids| {
            let call = aws.ec2().terminate_instances().set_instance_ids(Some(ids));
            aws.turn("TerminateInstances").await;
            call.send()
                .await
                .map(drop)
                .map_err(Fault::of("TerminateInstances"))
        })
        .boxed_local()
    }
}

fn is_named(instance: &Instance, evidence: &Evidence<'_>) -> bool {
    let owner = instance
        .key_name
        .as_deref()
        .and_then(|key| evidence.owner_of_name(key));
    matches!(owner, Some(NameOwner::Ours(_) | NameOwner::OursIfToken(..)))
}

fn resource(instance: &Instance) -> Resource {
    Resource {
        id: instance.id.clone(),
        state: instance.state.word().to_owned(),
        created: instance.launched,
        owner: instance.parent.clone(),
        key_name: instance.key_name.clone(),
        spot_request: instance.spot_request.clone(),
        fleet: instance.fleet.clone(),
        keep: instance.keep,
        ..Resource::default()
    }
}

/// Judges an instance as a worker, whatever its state: its spot request and its key hang on the same answer.
pub(super) fn judge(instance: &Instance, evidence: &Evidence<'_>) -> Option<Judgement> {
    if evidence.is_manager(instance) {
        return None;
    }
    let mut trail = Trail::of(&resource(instance));
    trail.born(evidence.born(instance.key_name.as_deref(), instance.launched));
    let mut trail = match unless_kept(trail, evidence) {
        ControlFlow::Continue(trail) => trail,
        ControlFlow::Break(kept) => return Some(kept),
    };
    let name = instance
        .key_name
        .as_deref()
        .and_then(|key| evidence.owner_of_name(key));
    match name {
        Some(NameOwner::Foreign) => {
            return Some(trail.decide(
                Verdict::Keep,
                "foreign-name",
                "its key name is another executor's",
            ));
        }
        Some(NameOwner::OursIfToken(token, _)) => {
            let fact = format!(
                "its key name is ours only if the token {token:?} is; RUNNER_TOKENS can say so"
            );
            return Some(trail.decide(Verdict::Unproven, "token", fact));
        }
        Some(NameOwner::Ours(_)) => trail.pass("key-name", "ours exactly"),
        Some(NameOwner::Unrelated) | None => trail.pass("key-name", "says nothing"),
    }
    match (&instance.parent, name) {
        (Some(parent), _) => Some(by_parent(trail, parent, evidence)),
        (None, Some(NameOwner::Ours(_))) => Some(by_time(trail, "untagged-worker", evidence)),
        (None, _) => None,
    }
}

fn by_parent(mut trail: Trail, parent: &str, evidence: &Evidence<'_>) -> Judgement {
    let state = evidence.owner_state(parent);
    trail.owned_by(parent, state);
    match state {
        OwnerState::Malformed => trail.decide(
            Verdict::Unproven,
            "parent-tag",
            "its parent tag is not an instance id",
        ),
        OwnerState::Live(word) => trail.decide(
            Verdict::Keep,
            "parent-lives",
            format!("its manager {parent} is {word}"),
        ),
        OwnerState::Unknown => trail.decide(
            Verdict::Unproven,
            "parent-unknown",
            format!("its manager {parent} was not seen in what could be read"),
        ),
        OwnerState::Gone(word) => match finishing_until(parent, evidence) {
            Some(until) => trail.decide(
                Verdict::Defer(Some(until)),
                "worker-grace",
                format!(
                    "its manager {parent} is {word} and was not drained; its jobs may run until {}",
                    stamp(until)
                ),
            ),
            None => trail.decide(
                Verdict::Orphan,
                "parent-gone",
                format!("its manager {parent} is {word}"),
            ),
        },
        OwnerState::Absent => absent(trail, "parent-absent", parent, evidence),
    }
}

/// Until when the workers of an undrained manager may finish their jobs.
fn finishing_until(parent: &str, evidence: &Evidence<'_>) -> Option<crate::world::Time> {
    let was_drained = evidence.drained.is_some_and(|m| m.as_str() == parent);
    if was_drained || evidence.config.worker_grace.is_zero() {
        return None;
    }
    let manager = evidence.instance(parent)?;
    // EC2 doesn't always say when; then the wait is as long as EC2 says shutting-down, and no longer.
    let Some(died) = manager.died else {
        return (manager.state == InstanceState::ShuttingDown)
            .then(|| evidence.now + evidence.config.worker_grace);
    };
    let until = died + evidence.config.worker_grace;
    (evidence.now < until).then_some(until)
}
