//! A spot request is an orphan if and only if its instance is an orphan worker; or its owner tag names a manager that
//! is gone; or its key name is ours exactly, and it is older than every live manager and than the grace period.
//!
//! It outlives its creator: an open one becomes an unmanaged, billed machine later, a persistent one replaces the
//! worker that was terminated. So it goes first.

use super::{
    Deletions, Evidence, Judgement, OwnerState, Reaper, Trail, Verdict, delete_in_halves,
    rules::{self, unless_kept},
    workers,
};
use crate::{
    aws::{Aws, Page, pages, tag_value, time},
    config::Config,
    fault::Fault,
    names::NameOwner,
    world::{Listing, Resource},
};
use aws_sdk_ec2::types::{Filter, SpotInstanceRequest};
use futures_util::{FutureExt, future::LocalBoxFuture};
use std::ops::ControlFlow;

const PAGE_SIZE: i32 = 1000;
const CHUNK: usize = 100;
/// The states in which a request can still start an instance.
const ALIVE: [&str; 3] = ["open", "active", "disabled"];

/// Requests for spot instances.
pub(super) struct SpotRequests;

impl Reaper for SpotRequests {
    fn kind(&self) -> &'static str {
        super::SPOT_REQUESTS
    }

    fn list<'a>(
        &'a self,
        aws: &'a Aws,
        config: &'a Config,
    ) -> LocalBoxFuture<'a, Listing<Resource>> {
        let alive = Filter::builder()
            .name("state")
            .set_values(Some(ALIVE.map(String::from).to_vec()))
            .build();
        async move {
            pages("DescribeSpotInstanceRequests", async |token| {
                let call = aws
                    .ec2()
                    .describe_spot_instance_requests()
                    .filters(alive.clone());
                let call = call.max_results(PAGE_SIZE).set_next_token(token);
                let answer = call
                    .send()
                    .await
                    .map_err(Fault::of("DescribeSpotInstanceRequests"))?;
                let items = answer
                    .spot_instance_requests()
                    .iter()
                    .filter_map(|r| resource(r, config));
                let items = items
                    .filter(|r| ALIVE.contains(&r.state.as_str()))
                    .collect();
                Ok(Page {
                    items,
                    next: answer.next_token,
                })
            })
            .await
        }
        .boxed_local()
    }

    fn judge(&self, resource: &Resource, evidence: &Evidence<'_>) -> Option<Judgement> {
        let mut trail = Trail::of(resource);
        trail.born(evidence.born(resource.key_name.as_deref(), resource.created));
        let mut trail = match unless_kept(trail, evidence) {
            ControlFlow::Continue(trail) => trail,
            ControlFlow::Break(kept) => return Some(kept),
        };
        let owner = resource.owner.as_deref();
        let owner = owner.map(|owner| (owner, evidence.owner_state(owner)));
        // Whatever its instance is: what names a manager that lives, or may live, isn't touched.
        if let Some((owner, OwnerState::Live(_) | OwnerState::Unknown)) = owner {
            return Some(rules::by_owner(trail, owner, evidence));
        }
        if let Some((owner, state)) = owner {
            trail.owned_by(owner, state);
        }
        let instance = evidence
            .instance_of_spot_request(&resource.id)
            .or_else(|| evidence.instance(resource.instance.as_deref()?));
        if let Some(instance) = instance {
            let worker = workers::judge(instance, evidence)?;
            if let (Some(owner), Some(state)) = (&worker.owner, worker.owner_state) {
                trail.owned_by(owner, state);
            }
            let fact = format!("as its instance {}: {}", instance.id, worker.evidence);
            return Some(trail.decide(worker.verdict, "instance", fact));
        }
        trail.pass("instance", "it has none that is seen");
        if let Some((owner, _)) = owner {
            return Some(rules::by_owner(trail, owner, evidence));
        }
        match resource
            .key_name
            .as_deref()
            .and_then(|key| evidence.owner_of_name(key))?
        {
            NameOwner::Ours(_) => Some(rules::by_time(trail, "key-name", evidence)),
            NameOwner::OursIfToken(token, _) => Some(trail.decide(
                Verdict::Unproven,
                "token",
                format!(
                    "its key name is ours only if the token {token:?} is; RUNNER_TOKENS can say so"
                ),
            )),
            NameOwner::Foreign | NameOwner::Unrelated => None,
        }
    }

    fn delete<'a>(
        &'a self,
        aws: &'a Aws,
        resources: &'a [Resource],
    ) -> LocalBoxFuture<'a, Deletions> {
        delete_in_halves(resources, CHUNK, async |ids| {
            let call = aws
                .ec2()
                .cancel_spot_instance_requests()
                .set_spot_instance_request_ids(Some(ids));
            aws.turn("CancelSpotInstanceRequests").await;
            call.send()
                .await
                .map(drop)
                .map_err(Fault::of("CancelSpotInstanceRequests"))
        })
        .boxed_local()
    }
}

fn resource(request: &SpotInstanceRequest, config: &Config) -> Option<Resource> {
    Some(Resource {
        id: request.spot_instance_request_id()?.to_owned(),
        state: request
            .state()
            .map(|s| s.as_str().to_owned())
            .unwrap_or_default(),
        created: request.create_time().and_then(time),
        owner: tag_value(request.tags(), &config.owner_tag).map(str::to_owned),
        key_name: request
            .launch_specification()
            .and_then(|l| l.key_name())
            .filter(|k| !k.is_empty())
            .map(str::to_owned),
        instance: request
            .instance_id()
            .filter(|i| !i.is_empty())
            .map(str::to_owned),
        keep: tag_value(request.tags(), &config.keep_tag).is_some(),
        ..Resource::default()
    })
}
