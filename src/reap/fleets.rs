//! A fleet is an orphan if and only if its owner or parent tag names a manager that is gone; or, without such a tag,
//! if it has instances, all of them are workers of managers that are gone, and it is older than the grace period.
//!
//! EC2 fleets and spot fleet requests start instances by themselves, so they go before everything else. They share
//! one key pair, which no name of docker-machine's claims: it is never touched. Off unless `REAP` names the kind.
//!
//! A fleet of type `instant` starts nothing after its creation, and EC2 lists it only to those who know its id: its
//! instances are workers like any others, and the fleet itself is left to end with them.

use super::{
    Deletions, Evidence, Judgement, Reaper, Trail, Verdict,
    evidence::stamp,
    rules::{self, unless_kept},
    workers,
};
use crate::{
    aws::{Aws, Page, pages, tag_value, time},
    config::Config,
    fault::Fault,
    world::{Instance, Listing, Resource},
};
use aws_sdk_ec2::types::{
    BatchState, FleetData, FleetStateCode, FleetType, SpotFleetRequestConfig, Tag,
};
use futures_util::{
    FutureExt,
    future::{LocalBoxFuture, join},
};
use std::collections::HashMap;
use std::ops::ControlFlow;

const PAGE_SIZE: i32 = 1000;
/// What both calls that delete take at once, and less than that.
const CHUNK: usize = 25;

/// EC2 fleets and spot fleet requests.
pub(super) struct Fleets;

impl Reaper for Fleets {
    fn kind(&self) -> &'static str {
        super::FLEETS
    }

    fn is_on_by_default(&self) -> bool {
        false
    }

    fn list<'a>(
        &'a self,
        aws: &'a Aws,
        config: &'a Config,
    ) -> LocalBoxFuture<'a, Listing<Resource>> {
        async move {
            let (fleets, requests) =
                join(fleets(aws, config), spot_fleet_requests(aws, config)).await;
            let items = fleets.items.into_iter().chain(requests.items).collect();
            Listing {
                items,
                fault: fleets.fault.or(requests.fault),
            }
        }
        .boxed_local()
    }

    fn judge(&self, fleet: &Resource, evidence: &Evidence<'_>) -> Option<Judgement> {
        let trail = Trail::of(fleet);
        let trail = match unless_kept(trail, evidence) {
            ControlFlow::Continue(trail) => trail,
            ControlFlow::Break(kept) => return Some(kept),
        };
        let instances = || {
            evidence
                .world
                .instances
                .items
                .iter()
                .filter(|i| i.fleet.as_ref() == Some(&fleet.id) && !i.state.is_gone())
        };
        if let Some(kept) = instances().find(|i| i.keep) {
            return Some(trail.decide(
                Verdict::Keep,
                "keep-tag",
                format!(
                    "its instance {} carries the tag {}",
                    kept.id, evidence.config.keep_tag
                ),
            ));
        }
        let Some(owner) = &fleet.owner else {
            return by_instances(trail, fleet, &mut instances(), evidence);
        };
        Some(rules::by_owner(trail, owner, evidence))
    }

    fn delete<'a>(
        &'a self,
        aws: &'a Aws,
        resources: &'a [Resource],
    ) -> LocalBoxFuture<'a, Deletions> {
        async move {
            let (requests, fleets): (Vec<&Resource>, Vec<&Resource>) =
                resources.iter().partition(|r| r.id.starts_with("sfr-"));
            let mut deletions = vec![];
            for chunk in requests.chunks(CHUNK) {
                deletions.extend(cancel_requests(aws, chunk).await);
            }
            for chunk in fleets.chunks(CHUNK) {
                deletions.extend(delete_fleets(aws, chunk).await);
            }
            deletions
        }
        .boxed_local()
    }
}

/// No tag speaks for the fleet: its instances do, if all of them are orphans.
fn by_instances(
    mut trail: Trail,
    fleet: &Resource,
    instances: &mut dyn Iterator<Item = &Instance>,
    evidence: &Evidence<'_>,
) -> Option<Judgement> {
    const RULE: &str = "instances";
    if !evidence.world.instances.is_complete() {
        return Some(trail.decide(
            Verdict::Unproven,
            RULE,
            "its instances were not read to their end",
        ));
    }
    let mut count = 0;
    for instance in instances {
        count += 1;
        // A fleet whose instances no manager tagged is nobody's of ours.
        instance.parent.as_ref()?;
        let worker = workers::judge(instance, evidence)?;
        if let (Some(owner), Some(state)) = (&worker.owner, worker.owner_state) {
            trail.owned_by(owner, state);
        }
        if worker.verdict != Verdict::Orphan {
            return Some(trail.decide(
                worker.verdict,
                RULE,
                format!("its instance {}: {}", instance.id, worker.evidence),
            ));
        }
    }
    if count == 0 {
        return None;
    }
    let Some(created) = fleet.created else {
        return Some(trail.decide(Verdict::Unproven, RULE, "its age can't be read"));
    };
    Some(match evidence.too_young_until(created) {
        Some(until) => trail.decide(
            Verdict::Defer(Some(until)),
            RULE,
            format!("too young to tell before {}", stamp(until)),
        ),
        None => trail.decide(
            Verdict::Orphan,
            RULE,
            format!("all of its {count} instances are workers of managers that are gone"),
        ),
    })
}

async fn fleets(aws: &Aws, config: &Config) -> Listing<Resource> {
    pages("DescribeFleets", async |token| {
        let call = aws
            .ec2()
            .describe_fleets()
            .max_results(PAGE_SIZE)
            .set_next_token(token);
        let answer = call.send().await.map_err(Fault::of("DescribeFleets"))?;
        Ok(Page {
            items: answer
                .fleets()
                .iter()
                .filter_map(|f| fleet(f, config))
                .collect(),
            next: answer.next_token,
        })
    })
    .await
}

async fn spot_fleet_requests(aws: &Aws, config: &Config) -> Listing<Resource> {
    pages("DescribeSpotFleetRequests", async |token| {
        let call = aws
            .ec2()
            .describe_spot_fleet_requests()
            .max_results(PAGE_SIZE)
            .set_next_token(token);
        let answer = call
            .send()
            .await
            .map_err(Fault::of("DescribeSpotFleetRequests"))?;
        let items = answer
            .spot_fleet_request_configs()
            .iter()
            .filter_map(|r| request(r, config))
            .collect();
        Ok(Page {
            items,
            next: answer.next_token,
        })
    })
    .await
}

fn fleet(fleet: &FleetData, config: &Config) -> Option<Resource> {
    let state = fleet.fleet_state()?;
    matches!(
        state,
        FleetStateCode::Submitted | FleetStateCode::Active | FleetStateCode::Modifying
    )
    .then_some(())?;
    (fleet.r#type() != Some(&FleetType::Instant)).then_some(())?;
    Some(Resource {
        id: fleet.fleet_id()?.to_owned(),
        name: fleet.r#type().map(FleetType::as_str).map(str::to_owned),
        state: state.as_str().to_owned(),
        created: fleet.create_time().and_then(time),
        ..tagged(fleet.tags(), config)
    })
}

fn request(request: &SpotFleetRequestConfig, config: &Config) -> Option<Resource> {
    let state = request.spot_fleet_request_state()?;
    matches!(
        state,
        BatchState::Submitted | BatchState::Active | BatchState::Modifying
    )
    .then_some(())?;
    Some(Resource {
        id: request.spot_fleet_request_id()?.to_owned(),
        state: state.as_str().to_owned(),
        created: request.create_time().and_then(time),
        ..tagged(request.tags(), config)
    })
}

fn tagged(tags: &[Tag], config: &Config) -> Resource {
    let owner = tag_value(tags, &config.owner_tag).or_else(|| tag_value(tags, &config.parent_tag));
    Resource {
        owner: owner.map(str::to_owned),
        keep: tag_value(tags, &config.keep_tag).is_some(),
        ..Resource::default()
    }
}

/// The fleets go without their instances: those are the workers' own reaper's, one decision each.
async fn delete_fleets(aws: &Aws, fleets: &[&Resource]) -> Deletions {
    const OPERATION: &str = "DeleteFleets";
    let call = aws.ec2().delete_fleets().terminate_instances(false);
    let call = call.set_fleet_ids(Some(ids(fleets)));
    aws.turn(OPERATION).await;
    let answer = call.send().await.map_err(Fault::of(OPERATION));
    let refused = answer.map(|answer| {
        let refused = answer.unsuccessful_fleet_deletions.unwrap_or_default();
        refused
            .into_iter()
            .filter_map(|r| {
                let code = r.error().and_then(|e| e.code()).map(|c| c.as_str());
                let message = r.error().and_then(|e| e.message());
                Some((
                    r.fleet_id()?.to_owned(),
                    Fault::with_code(OPERATION, code, message),
                ))
            })
            .collect()
    });
    each_with_its_result(fleets, refused)
}

async fn cancel_requests(aws: &Aws, requests: &[&Resource]) -> Deletions {
    const OPERATION: &str = "CancelSpotFleetRequests";
    let call = aws
        .ec2()
        .cancel_spot_fleet_requests()
        .terminate_instances(false);
    let call = call.set_spot_fleet_request_ids(Some(ids(requests)));
    aws.turn(OPERATION).await;
    let answer = call.send().await.map_err(Fault::of(OPERATION));
    let refused = answer.map(|answer| {
        let refused = answer.unsuccessful_fleet_requests.unwrap_or_default();
        refused
            .into_iter()
            .filter_map(|r| {
                let code = r.error().and_then(|e| e.code()).map(|c| c.as_str());
                let message = r.error().and_then(|e| e.message());
                Some((
                    r.spot_fleet_request_id()?.to_owned(),
                    Fault::with_code(OPERATION, code, message),
                ))
            })
            .collect()
    });
    each_with_its_result(requests, refused)
}

fn ids(resources: &[&Resource]) -> Vec<String> {
    resources.iter().map(|r| r.id.clone()).collect()
}

/// EC2 answers success and lists what did not succeed: each id has its own result.
fn each_with_its_result(
    resources: &[&Resource],
    refused: Result<HashMap<String, Fault>, Fault>,
) -> Deletions {
    let result = |id: &String| match &refused {
        Err(fault) => Err(fault.clone()),
        Ok(refused) => refused.get(id).map_or(Ok(()), |fault| Err(fault.clone())),
    };
    resources
        .iter()
        .map(|r| (r.id.clone(), result(&r.id)))
        .collect()
}
