//! EC2: the instances, and the marks on addresses.

use super::{Aws, Page, in_chunks, pages};
use crate::{
    config::Config,
    fault::Fault,
    task::InstanceId,
    world::{Instance, InstanceState, Listing, Time},
};
use aws_sdk_ec2::types::{Filter, Instance as Ec2Instance, InstanceStateName, Tag};
use chrono::{DateTime, NaiveDateTime};

/// Half of EC2's largest page: a page is held as text and as the SDK's objects at once, which is most of the memory
/// that a pass over a large account needs.
const PAGE_SIZE: i32 = 500;
/// Values that one filter takes.
const FILTER_VALUES: usize = 200;

/// An SDK time as a plain one.
pub fn time(time: &aws_sdk_ec2::primitives::DateTime) -> Option<Time> {
    DateTime::from_timestamp(time.secs(), time.subsec_nanos())
}

/// The value of the tag `key`.
pub fn tag_value<'a>(tags: &'a [Tag], key: &str) -> Option<&'a str> {
    tags.iter()
        .find(|t| t.key() == Some(key))
        .map(|t| t.value().unwrap_or_default())
}

impl Aws {
    /// Every instance of the Region, terminated ones included while EC2 shows them.
    pub async fn instances(&self, config: &Config) -> Listing<Instance> {
        pages("DescribeInstances", async |token| {
            let call = self
                .ec2()
                .describe_instances()
                .max_results(PAGE_SIZE)
                .set_next_token(token);
            let answer = call.send().await.map_err(Fault::of("DescribeInstances"))?;
            let items = answer.reservations().iter().flat_map(|r| r.instances());
            let items = items.filter_map(|i| instance(i, config)).collect();
            Ok(Page {
                items,
                next: answer.next_token,
            })
        })
        .await
    }

    /// One instance; `None` = EC2 doesn't know it.
    pub async fn instance(
        &self,
        id: &InstanceId,
        config: &Config,
    ) -> Result<Option<Instance>, Fault> {
        let listing = self.instances_named(std::slice::from_ref(id), config).await;
        match (listing.items.into_iter().next(), listing.fault) {
            (Some(instance), _) => Ok(Some(instance)),
            (None, Some(fault)) => Err(fault),
            (None, None) => Ok(None),
        }
    }

    /// Those of `ids` that EC2 knows. By a filter, because an unknown id given as an id fails the whole call.
    pub async fn instances_named(&self, ids: &[InstanceId], config: &Config) -> Listing<Instance> {
        in_chunks(ids, FILTER_VALUES, async |ids| {
            let values = ids.iter().map(|id| id.as_str().to_owned()).collect();
            let filter = Filter::builder()
                .name("instance-id")
                .set_values(Some(values))
                .build();
            pages("DescribeInstances", async |token| {
                let call = self
                    .ec2()
                    .describe_instances()
                    .filters(filter.clone())
                    .set_next_token(token);
                let answer = call.send().await.map_err(Fault::of("DescribeInstances"))?;
                let items = answer.reservations().iter().flat_map(|r| r.instances());
                // Not every server honours the filter: what isn't asked for isn't taken.
                let items =
                    items.filter(|i| ids.iter().any(|id| i.instance_id() == Some(id.as_str())));
                Ok(Page {
                    items: items.filter_map(|i| instance(i, config)).collect(),
                    next: answer.next_token,
                })
            })
            .await
        })
        .await
    }

    /// Writes a mark on a resource.
    pub async fn mark(&self, id: &str, key: &str, value: &str) -> Result<(), Fault> {
        let tag = Tag::builder().key(key).value(value).build();
        self.turn("CreateTags").await;
        self.ec2()
            .create_tags()
            .resources(id)
            .tags(tag)
            .send()
            .await
            .map(drop)
            .map_err(Fault::of("CreateTags"))
    }

    /// Takes a mark off a resource.
    pub async fn unmark(&self, id: &str, key: &str) -> Result<(), Fault> {
        let tag = Tag::builder().key(key).build();
        self.turn("DeleteTags").await;
        self.ec2()
            .delete_tags()
            .resources(id)
            .tags(tag)
            .send()
            .await
            .map(drop)
            .map_err(Fault::of("DeleteTags"))
    }
}

fn instance(i: &Ec2Instance, config: &Config) -> Option<Instance> {
    let launched = i.launch_time().and_then(time);
    let first_interface = i
        .network_interfaces()
        .iter()
        .find(|n| n.attachment().and_then(|a| a.device_index()) == Some(0));
    let attached = first_interface
        .or(i.network_interfaces().first())
        .and_then(|n| n.attachment())
        .and_then(|a| a.attach_time())
        .and_then(time);
    let group = tag_value(i.tags(), "aws:autoscaling:groupName").map(str::to_owned);
    Some(Instance {
        id: i.instance_id()?.to_owned(),
        state: state(i.state().and_then(|s| s.name())),
        launched,
        born: [launched, attached].into_iter().flatten().min(),
        died: i.state_transition_reason().and_then(transition_time),
        parent: tag_value(i.tags(), &config.parent_tag).map(str::to_owned),
        key_name: i.key_name().filter(|k| !k.is_empty()).map(str::to_owned),
        spot_request: i
            .spot_instance_request_id()
            .filter(|s| !s.is_empty())
            .map(str::to_owned),
        fleet: ["aws:ec2:fleet-id", "aws:ec2spot:fleet-request-id"]
            .into_iter()
            .find_map(|key| tag_value(i.tags(), key))
            .map(str::to_owned),
        group,
        keep: tag_value(i.tags(), &config.keep_tag).is_some(),
        windows: i
            .platform()
            .is_some_and(|p| p.as_str().eq_ignore_ascii_case("windows")),
    })
}

fn state(name: Option<&InstanceStateName>) -> InstanceState {
    match name {
        Some(InstanceStateName::Pending) => InstanceState::Pending,
        Some(InstanceStateName::Running) => InstanceState::Running,
        Some(InstanceStateName::Stopping) => InstanceState::Stopping,
        Some(InstanceStateName::Stopped) => InstanceState::Stopped,
        Some(InstanceStateName::ShuttingDown) => InstanceState::ShuttingDown,
        Some(InstanceStateName::Terminated) => InstanceState::Terminated,
        _ => InstanceState::Unknown,
    }
}

/// EC2 tells the time of a state change only inside a sentence: `User initiated (2025-03-04 05:06:07 GMT)`.
fn transition_time(reason: &str) -> Option<Time> {
    let inside = reason.rsplit_once('(')?.1.split_once(')')?.0;
    NaiveDateTime::parse_from_str(inside, "%Y-%m-%d %H:%M:%S GMT")
        .ok()
        .map(|t| t.and_utc())
}
