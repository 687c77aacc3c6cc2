//! A key pair is an orphan if and only if its name is ours exactly, no instance that isn't terminated and no open spot
//! request uses it, and the manager of its worker (or of its owner tag) is gone; or, with the same name and use, if it
//! is older than every live manager. Where EC2 doesn't prove that the manager is gone, it is older than the grace
//! period as well.
//!
//! docker-machine makes the key first and the instance afterwards: "unused" at one moment includes the keys of
//! machines that are just being born.

use super::{
    Deletions, Evidence, Judgement, OwnerState, Reaper, SPOT_REQUESTS, Trail, Verdict,
    delete_singly, evidence::stamp, rules::unless_kept,
};
use crate::{
    aws::{Aws, tag_value, time},
    config::Config,
    fault::{Disposition, Fault},
    names::NameOwner,
    world::{InstanceState, Listing, Resource, Time},
};
use aws_sdk_ec2::types::KeyPairInfo;
use futures_util::{FutureExt, future::LocalBoxFuture};
use std::ops::ControlFlow;

/// Key pairs that docker-machine made.
pub(super) struct KeyPairs;

impl Reaper for KeyPairs {
    fn kind(&self) -> &'static str {
        super::KEY_PAIRS
    }

    fn list<'a>(
        &'a self,
        aws: &'a Aws,
        config: &'a Config,
    ) -> LocalBoxFuture<'a, Listing<Resource>> {
        async move {
            let answer = aws.ec2().describe_key_pairs().send().await;
            let ours =
                |keys: &[KeyPairInfo]| keys.iter().filter_map(|k| resource(k, config)).collect();
            answer
                .map(|a| ours(a.key_pairs()))
                .map_err(Fault::of("DescribeKeyPairs"))
                .into()
        }
        .boxed_local()
    }

    fn judge(&self, resource: &Resource, evidence: &Evidence<'_>) -> Option<Judgement> {
        let mut trail = Trail::of(resource);
        trail.born(evidence.born(Some(&resource.id), resource.created));
        let born = match evidence.owner_of_name(&resource.id)? {
            NameOwner::Ours(born) => born,
            NameOwner::OursIfToken(token, _) => {
                let fact = format!("ours only if the token {token:?} is; RUNNER_TOKENS can say so");
                return Some(trail.decide(Verdict::Unproven, "token", fact));
            }
            NameOwner::Foreign | NameOwner::Unrelated => return None,
        };
        trail.pass("name", "ours exactly");
        let mut trail = match unless_kept(trail, evidence) {
            ControlFlow::Continue(trail) => trail,
            ControlFlow::Break(kept) => return Some(kept),
        };
        if !evidence.world.instances.is_complete() {
            return Some(trail.decide(
                Verdict::Unproven,
                "users-unknown",
                "the instances that may use it were not read to their end",
            ));
        }
        let users = evidence.users_of_key(&resource.id);
        let owner = resource
            .owner
            .as_deref()
            .or_else(|| users.iter().find_map(|i| i.parent.as_deref()));
        let owner = owner.map(|owner| (owner, evidence.owner_state(owner)));
        if let Some((owner, state)) = owner {
            trail.owned_by(owner, state);
        }
        match user(resource, evidence) {
            Some((verdict, fact)) => return Some(trail.decide(verdict, "in-use", fact)),
            None => trail.pass("in-use", "by no instance and no open spot request"),
        }
        Some(unused(trail, owner, born, evidence))
    }

    fn delete<'a>(
        &'a self,
        aws: &'a Aws,
        resources: &'a [Resource],
    ) -> LocalBoxFuture<'a, Deletions> {
        delete_singly(resources, async |resource| {
            let call = aws.ec2().delete_key_pair().key_name(&resource.id);
            aws.turn("DeleteKeyPair").await;
            call.send()
                .await
                .map(drop)
                .map_err(Fault::of("DeleteKeyPair"))
        })
        .boxed_local()
    }
}

/// Who uses the key, and whether that will pass by itself.
fn user(key: &Resource, evidence: &Evidence<'_>) -> Option<(Verdict, String)> {
    let users = || {
        evidence
            .users_of_key(&key.id)
            .iter()
            .filter(|i| i.state != InstanceState::Terminated)
    };
    if let Some(instance) = users().find(|i| i.state != InstanceState::ShuttingDown) {
        let uses = format!("{} uses it and is {}", instance.id, instance.state.word());
        let ends = super::workers::judge(instance, evidence)
            .is_some_and(|worker| worker.verdict == Verdict::Orphan);
        return Some((
            Verdict::Keep,
            if ends {
                format!("{uses}: that worker is to be deleted, and this after it")
            } else {
                uses
            },
        ));
    }
    if let Some(instance) = users().next() {
        return Some((
            Verdict::Defer(None),
            format!("{} used it and is shutting down", instance.id),
        ));
    }
    let requests = evidence.world.resources.get(SPOT_REQUESTS)?;
    // A read that will succeed next time is waited for. One that is denied never comes, and what a dead manager's
    // request needs a key for is nobody's loss.
    if let Some(fault) = requests
        .fault
        .as_ref()
        .filter(|f| f.disposition == Disposition::Retry)
    {
        return Some((
            Verdict::Defer(None),
            format!(
                "the spot requests that may use it could not be read ({})",
                fault.operation
            ),
        ));
    }
    let request = evidence.request_with_key(&key.id)?;
    // The request of a terminated instance ends by itself; an open one is judged on its own.
    Some((
        Verdict::Keep,
        format!("the {} spot request {} uses it", request.state, request.id),
    ))
}

/// Nobody uses the key: its owner or its age decides.
fn unused(
    mut trail: Trail,
    owner: Option<(&str, OwnerState)>,
    born: Time,
    evidence: &Evidence<'_>,
) -> Judgement {
    let gone = match owner {
        Some((owner, OwnerState::Live(word))) => {
            return trail.decide(
                Verdict::Keep,
                "owner-lives",
                format!("its manager {owner} is {word}"),
            );
        }
        // EC2 itself proves it: nobody is left who could be about to use the key, however young it is. Unless the
        // spot requests could not be read: one of them may be about to.
        Some((owner, OwnerState::Gone(word))) => {
            let fact = format!("its manager {owner} is {word}");
            if evidence.is_read(SPOT_REQUESTS) {
                return trail.decide(Verdict::Orphan, "owner-gone", fact);
            }
            Some(fact)
        }
        Some((owner, OwnerState::Absent)) => Some(format!("its manager {owner} is absent")),
        Some((_, OwnerState::Unknown | OwnerState::Malformed)) | None => None,
    };
    let fact = match gone.map_or_else(|| evidence.older_than_every_live_manager(born), Ok) {
        Ok(fact) => fact,
        Err(why) => return trail.decide(Verdict::Unproven, "age", why),
    };
    match evidence.too_young_until(born) {
        Some(until) => {
            trail.pass("owner", fact);
            trail.decide(
                Verdict::Defer(Some(until)),
                "grace",
                format!("too young to tell before {}", stamp(until)),
            )
        }
        None => trail.decide(Verdict::Orphan, "unused", fact),
    }
}

fn resource(key: &KeyPairInfo, config: &Config) -> Option<Resource> {
    let name = key.key_name()?.to_owned();
    // Whatever isn't made by docker-machine is not worth the memory.
    config.executor.as_ref()?;
    name.starts_with("runner-").then(|| Resource {
        id: name.clone(),
        name: key.key_pair_id().map(str::to_owned),
        created: key.create_time().and_then(time),
        owner: tag_value(key.tags(), &config.owner_tag).map(str::to_owned),
        key_name: Some(name),
        keep: tag_value(key.tags(), &config.keep_tag).is_some(),
        ..Resource::default()
    })
}
