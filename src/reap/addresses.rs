//! An Elastic IP is an orphan if and only if it is not associated, no service manages it, and its owner tag names a
//! manager that is gone; or it carries exactly `EIP_TAG` and was seen unassociated in two looks a grace period apart.
//!
//! EC2 doesn't say how old an address is, and a successor's address is unassociated for seconds while it boots.
//! So where no owner speaks, the first look is written down as a tag, where a crash can't lose it.

use super::{
    ALLOCATED_TAG, Deletions, Evidence, FIRST_LOOK_TAG, Judgement, OwnerState, Reaper, Trail,
    Verdict, delete_singly,
    evidence::stamp,
    rules::{self, unless_kept},
};
use crate::{
    aws::{Aws, tag_value},
    config::Config,
    fault::Fault,
    world::{Listing, Resource, Time},
};
use aws_sdk_ec2::types::{Address, Tag};
use chrono::DateTime;
use futures_util::{FutureExt, future::LocalBoxFuture};
use std::ops::ControlFlow;

/// Elastic IPs of managers.
pub(super) struct Addresses;

impl Reaper for Addresses {
    fn kind(&self) -> &'static str {
        super::ADDRESSES
    }

    fn list<'a>(
        &'a self,
        aws: &'a Aws,
        config: &'a Config,
    ) -> LocalBoxFuture<'a, Listing<Resource>> {
        async move {
            let answer = aws.ec2().describe_addresses().send().await;
            let ours = |addresses: &[Address]| {
                addresses
                    .iter()
                    .filter_map(|a| resource(a, config))
                    .collect()
            };
            answer
                .map(|a| ours(a.addresses()))
                .map_err(Fault::of("DescribeAddresses"))
                .into()
        }
        .boxed_local()
    }

    fn judge(&self, resource: &Resource, evidence: &Evidence<'_>) -> Option<Judgement> {
        let mut trail = Trail::of(resource);
        trail.born(resource.allocated);
        let mut trail = match unless_kept(trail, evidence) {
            ControlFlow::Continue(trail) => trail,
            ControlFlow::Break(kept) => return Some(kept),
        };
        if let Some(bound) = resource.bound {
            let keep = if resource.marked.is_some() {
                Verdict::ForgetLook
            } else {
                Verdict::Keep
            };
            return Some(trail.decide(keep, "in-use", bound));
        }
        trail.pass("in-use", "not associated");
        let Some(owner) = &resource.owner else {
            return Some(two_looks(trail, resource, evidence));
        };
        match evidence.owner_state(owner) {
            OwnerState::Live(word) if resource.marked.is_some() => {
                let fact = format!("its manager {owner} is {word}");
                Some(trail.decide(Verdict::ForgetLook, "owner-lives", fact))
            }
            OwnerState::Absent if resource.allocated.is_none() => {
                let fact = format!(
                    "its manager {owner} is absent, and no tag {ALLOCATED_TAG} tells its age"
                );
                trail.owned_by(owner, OwnerState::Absent);
                trail.pass("owner-absent", fact);
                Some(two_looks(trail, resource, evidence))
            }
            OwnerState::Malformed if resource.claimed => {
                trail.pass("owner-tag", "not an instance id");
                Some(two_looks(trail, resource, evidence))
            }
            _ => Some(rules::by_owner(trail, owner, evidence)),
        }
    }

    fn delete<'a>(
        &'a self,
        aws: &'a Aws,
        resources: &'a [Resource],
    ) -> LocalBoxFuture<'a, Deletions> {
        delete_singly(resources, async |resource| {
            let call = aws.ec2().release_address().allocation_id(&resource.id);
            let call = call.set_network_border_group(foreign_border_group(resource, aws));
            aws.turn("ReleaseAddress").await;
            call.send()
                .await
                .map(drop)
                .map_err(Fault::of("ReleaseAddress"))
        })
        .boxed_local()
    }
}

/// EC2 asks for the border group only where it isn't the Region itself.
fn foreign_border_group(address: &Resource, aws: &Aws) -> Option<String> {
    address
        .border_group
        .clone()
        .filter(|group| aws.region() != Some(group.as_str()))
}

/// Unassociated now and a grace period ago.
fn two_looks(trail: Trail, address: &Resource, evidence: &Evidence<'_>) -> Judgement {
    const RULE: &str = "two-looks";
    match address.marked.filter(|mark| *mark <= evidence.now) {
        None => trail.decide(
            Verdict::FirstLook(evidence.now),
            RULE,
            "unassociated at the first look; a second one comes after the grace period",
        ),
        Some(first) => match evidence.too_young_until(first) {
            Some(until) => trail.decide(
                Verdict::Defer(Some(until)),
                RULE,
                format!(
                    "unassociated since {} at least; the second look comes at {}",
                    stamp(first),
                    stamp(until)
                ),
            ),
            None => trail.decide(
                Verdict::Orphan,
                RULE,
                format!("unassociated in two looks, the first at {}", stamp(first)),
            ),
        },
    }
}

/// An address that has an owner tag or `EIP_TAG`; the others are not ours.
fn resource(address: &Address, config: &Config) -> Option<Resource> {
    let tags = address.tags();
    let owner = tag_value(tags, &config.owner_tag).map(str::to_owned);
    let claimed = config
        .eip_tag
        .as_ref()
        .is_some_and(|(key, value)| tag_value(tags, key) == Some(value));
    if owner.is_none() && !claimed {
        return None;
    }
    let is_set = |id: Option<&str>| id.is_some_and(|id| !id.is_empty());
    let bound = match () {
        () if address.service_managed().is_some() => Some("a service manages it"),
        () if is_set(address.association_id())
            || is_set(address.instance_id())
            || is_set(address.network_interface_id()) =>
        {
            Some("associated")
        }
        () => None,
    };
    Some(Resource {
        id: address.allocation_id()?.to_owned(),
        name: address.public_ip().map(str::to_owned),
        state: bound.unwrap_or("not associated").to_owned(),
        owner,
        instance: address
            .instance_id()
            .filter(|i| !i.is_empty())
            .map(str::to_owned),
        keep: tag_value(tags, &config.keep_tag).is_some(),
        bound,
        claimed,
        allocated: unix_seconds(tag_value(tags, ALLOCATED_TAG)),
        marked: unix_seconds(tag_value(tags, FIRST_LOOK_TAG)),
        border_group: address
            .network_border_group()
            .filter(|g| !g.is_empty())
            .map(str::to_owned),
        from_amazon_pool: address.public_ip().is_some()
            && address.public_ipv4_pool() == Some("amazon"),
        managed_by: managing_tool(tags),
        ..Resource::default()
    })
}

fn unix_seconds(value: Option<&str>) -> Option<Time> {
    DateTime::from_timestamp(value?.trim().parse().ok()?, 0)
}

/// The tool whose tags the address carries: then a person manages it, and `EIP_TAG` should not be on it.
fn managing_tool(tags: &[Tag]) -> Option<String> {
    let is = |tag: &Tag, word: &str| {
        tag.key()
            .is_some_and(|key| key.to_ascii_lowercase().contains(word))
    };
    let by = |tag: &Tag, word: &str| {
        is(tag, "managed")
            && tag
                .value()
                .is_some_and(|v| v.to_ascii_lowercase().contains(word))
    };
    ["cloudformation", "terraform", "pulumi"]
        .into_iter()
        .find(|tool| tags.iter().any(|tag| is(tag, tool) || by(tag, tool)))
        .map(str::to_owned)
}
