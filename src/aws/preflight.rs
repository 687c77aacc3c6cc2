//! The calls of the preflight: what it asks beside the reads of a pass, and dry runs, which change nothing.

use super::{Aws, Page, auto_scaling::seconds, pages};
use crate::{
    fault::{Fault, dry_run_permits},
    preflight::{Agent, Probe, QueueAttributes, TerminationHook},
    world::Listing,
};
use aws_sdk_ec2::types::Tag;
use aws_sdk_sqs::types::QueueAttributeName;
use aws_sdk_ssm::types::InstanceInformationStringFilter;
use chrono::TimeDelta;
use std::collections::{BTreeSet, HashMap};

/// Auto Scaling names at most so many groups in one call.
const GROUPS_PER_CALL: usize = 50;
/// SSM takes no more values in one filter.
const AGENTS_PER_CALL: usize = 50;

impl Aws {
    /// Those of `names` that are groups.
    pub async fn existing_groups(&self, names: &[String]) -> Result<BTreeSet<String>, Fault> {
        let mut found = BTreeSet::new();
        for names in names.chunks(GROUPS_PER_CALL) {
            let read = pages("DescribeAutoScalingGroups", async |token| {
                let call = self.auto_scaling().describe_auto_scaling_groups();
                let call = call
                    .set_auto_scaling_group_names(Some(names.to_vec()))
                    .set_next_token(token);
                let answer = call
                    .send()
                    .await
                    .map_err(Fault::of("DescribeAutoScalingGroups"))?;
                let groups = answer.auto_scaling_groups().iter();
                let items = groups
                    .filter_map(|g| g.auto_scaling_group_name().map(str::to_owned))
                    .collect();
                Ok(Page {
                    items,
                    next: answer.next_token,
                })
            })
            .await;
            match read.fault {
                Some(fault) => return Err(fault),
                None => found.extend(read.items),
            }
        }
        Ok(found)
    }

    /// Every termination hook of a group, ours and others'.
    pub async fn termination_hooks(&self, group: &str) -> Result<Vec<TerminationHook>, Fault> {
        let call = self.auto_scaling().describe_lifecycle_hooks();
        let answer = call
            .auto_scaling_group_name(group)
            .send()
            .await
            .map_err(Fault::of("DescribeLifecycleHooks"))?;
        let terminates = |transition: &str| transition == "autoscaling:EC2_INSTANCE_TERMINATING";
        let hooks = answer
            .lifecycle_hooks()
            .iter()
            .filter(|h| h.lifecycle_transition().is_none_or(terminates));
        Ok(hooks
            .map(|h| TerminationHook {
                name: h.lifecycle_hook_name().unwrap_or_default().to_owned(),
                heartbeat_timeout: seconds(h.heartbeat_timeout()),
                global_timeout: seconds(h.global_timeout()),
                default_result: h.default_result().unwrap_or("ABANDON").to_owned(),
            })
            .collect())
    }

    /// What SSM knows of the agents on `instances`; one that it doesn't list is not there.
    pub async fn agents(&self, instances: &[String]) -> Listing<Agent> {
        let mut agents = vec![];
        for ids in instances.chunks(AGENTS_PER_CALL) {
            let filter = InstanceInformationStringFilter::builder()
                .key("InstanceIds")
                .set_values(Some(ids.to_vec()))
                .build();
            let Ok(filter) = filter else { continue };
            let read = pages("DescribeInstanceInformation", async |token| {
                let call = self
                    .ssm()
                    .describe_instance_information()
                    .filters(filter.clone());
                let answer = call
                    .set_next_token(token)
                    .send()
                    .await
                    .map_err(Fault::of("DescribeInstanceInformation"))?;
                let agents = answer.instance_information_list().iter();
                let items = agents
                    .filter_map(|a| {
                        Some(Agent {
                            instance: a.instance_id()?.to_owned(),
                            ping: a
                                .ping_status()
                                .map(|p| p.as_str().to_owned())
                                .unwrap_or_default(),
                        })
                    })
                    .collect();
                Ok(Page {
                    items,
                    next: answer.next_token,
                })
            })
            .await;
            agents.extend(read.items);
            if read.fault.is_some() {
                return Listing {
                    items: agents,
                    fault: read.fault,
                };
            }
        }
        Listing::complete(agents)
    }

    /// What a queue is set to.
    pub async fn queue_attributes(&self, url: &str) -> Result<QueueAttributes, Fault> {
        let call = self.sqs().get_queue_attributes().queue_url(url);
        let answer = call
            .attribute_names(QueueAttributeName::All)
            .send()
            .await
            .map_err(Fault::of("GetQueueAttributes"))?;
        let attributes: HashMap<String, String> = answer
            .attributes
            .unwrap_or_default()
            .into_iter()
            .map(|(name, value)| (name.as_str().to_owned(), value))
            .collect();
        let seconds = |name: &str| {
            attributes
                .get(name)
                .and_then(|v| v.parse().ok())
                .map(TimeDelta::seconds)
        };
        let redrive = attributes
            .get("RedrivePolicy")
            .and_then(|policy| serde_json::from_str::<serde_json::Value>(policy).ok())
            .unwrap_or_default();
        // SQS writes the number as a number or as a string, as it was set.
        let max = redrive.get("maxReceiveCount");
        Ok(QueueAttributes {
            visibility: seconds("VisibilityTimeout"),
            retention: seconds("MessageRetentionPeriod"),
            max_receive_count: max
                .and_then(|m| m.as_u64().or_else(|| m.as_str()?.parse().ok()))
                .and_then(|m| u32::try_from(m).ok()),
            dead_letter_arn: redrive
                .get("deadLetterTargetArn")
                .and_then(|arn| arn.as_str())
                .map(str::to_owned),
        })
    }

    /// Whether EC2 would permit a call; asked with `DryRun`, which never has an effect.
    pub async fn would_permit(&self, probe: &Probe) -> Result<bool, Fault> {
        let (ec2, id) = (self.ec2(), probe.id.as_str());
        let operation = probe.operation;
        let of_mark = |value: Option<&str>| {
            let tag = Tag::builder().key(crate::reap::FIRST_LOOK_TAG);
            tag.set_value(value.map(str::to_owned)).build()
        };
        let result = match operation {
            "TerminateInstances" => ec2
                .terminate_instances()
                .dry_run(true)
                .instance_ids(id)
                .send()
                .await
                .map(drop)
                .map_err(Fault::of("TerminateInstances")),
            "CancelSpotInstanceRequests" => ec2
                .cancel_spot_instance_requests()
                .dry_run(true)
                .spot_instance_request_ids(id)
                .send()
                .await
                .map(drop)
                .map_err(Fault::of("CancelSpotInstanceRequests")),
            "DeleteKeyPair" => ec2
                .delete_key_pair()
                .dry_run(true)
                .key_name(id)
                .send()
                .await
                .map(drop)
                .map_err(Fault::of("DeleteKeyPair")),
            "ReleaseAddress" => ec2
                .release_address()
                .dry_run(true)
                .allocation_id(id)
                .send()
                .await
                .map(drop)
                .map_err(Fault::of("ReleaseAddress")),
            "CreateTags" => ec2
                .create_tags()
                .dry_run(true)
                .resources(id)
                .tags(of_mark(Some("0")))
                .send()
                .await
                .map(drop)
                .map_err(Fault::of("CreateTags")),
            "DeleteTags" => ec2
                .delete_tags()
                .dry_run(true)
                .resources(id)
                .tags(of_mark(None))
                .send()
                .await
                .map(drop)
                .map_err(Fault::of("DeleteTags")),
            "DeleteFleets" => ec2
                .delete_fleets()
                .dry_run(true)
                .fleet_ids(id)
                .terminate_instances(true)
                .send()
                .await
                .map(drop)
                .map_err(Fault::of("DeleteFleets")),
            "CancelSpotFleetRequests" => ec2
                .cancel_spot_fleet_requests()
                .dry_run(true)
                .spot_fleet_request_ids(id)
                .terminate_instances(true)
                .send()
                .await
                .map(drop)
                .map_err(Fault::of("CancelSpotFleetRequests")),
            _ => {
                return Err(Fault::stop(
                    operation,
                    "the preflight knows no dry run of it",
                ));
            }
        };
        match result {
            Ok(()) => Ok(true),
            Err(fault) => dry_run_permits(&fault.code).ok_or(fault),
        }
    }
}
