//! The calls of the preflight: what it asks beside the reads of a pass, and dry runs, which change nothing.

use super::{Aws, Page, in_chunks, pages};
use crate::{
    fault::{Fault, dry_run_permits},
    preflight::{Agent, Probe, QueueAttributes},
    world::Listing,
};
use aws_sdk_ec2::types::Tag;
use aws_sdk_sqs::types::QueueAttributeName;
use aws_sdk_ssm::types::InstanceInformationStringFilter;
use aws_smithy_runtime_api::client::{orchestrator::HttpResponse, result::SdkError};
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use chrono::TimeDelta;
use std::collections::HashMap;

/// SSM takes no more values in one filter.
const AGENTS_PER_CALL: usize = 50;

impl Aws {
    /// What SSM knows of the agents on `instances`; one that it doesn't list is not there.
    pub async fn agents(&self, instances: &[String]) -> Listing<Agent> {
        in_chunks(instances, AGENTS_PER_CALL, async |ids| {
            let filter = InstanceInformationStringFilter::builder()
                .key("InstanceIds")
                .set_values(Some(ids.to_vec()))
                .build();
            let Ok(filter) = filter else {
                return Listing::complete(vec![]);
            };
            pages("DescribeInstanceInformation", async |token| {
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
                let items = agents.filter_map(|a| {
                    let ping = a.ping_status().map(|p| p.as_str().to_owned());
                    Some(Agent {
                        instance: a.instance_id()?.to_owned(),
                        ping: ping.unwrap_or_default(),
                    })
                });
                Ok(Page {
                    items: items.collect(),
                    next: answer.next_token,
                })
            })
            .await
        })
        .await
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
            "TerminateInstances" => {
                let call = ec2.terminate_instances().dry_run(true);
                effect(operation, call.instance_ids(id).send().await)
            }
            "CancelSpotInstanceRequests" => {
                let call = ec2.cancel_spot_instance_requests().dry_run(true);
                effect(operation, call.spot_instance_request_ids(id).send().await)
            }
            "DeleteKeyPair" => {
                let call = ec2.delete_key_pair().dry_run(true);
                effect(operation, call.key_name(id).send().await)
            }
            "ReleaseAddress" => {
                let call = ec2.release_address().dry_run(true);
                effect(operation, call.allocation_id(id).send().await)
            }
            "CreateTags" => {
                let call = ec2.create_tags().dry_run(true);
                effect(
                    operation,
                    call.resources(id).tags(of_mark(Some("0"))).send().await,
                )
            }
            "DeleteTags" => {
                let call = ec2.delete_tags().dry_run(true);
                effect(
                    operation,
                    call.resources(id).tags(of_mark(None)).send().await,
                )
            }
            "DeleteFleets" => {
                let call = ec2.delete_fleets().dry_run(true);
                effect(
                    operation,
                    call.fleet_ids(id).terminate_instances(true).send().await,
                )
            }
            "CancelSpotFleetRequests" => {
                let call = ec2.cancel_spot_fleet_requests().dry_run(true);
                effect(
                    operation,
                    call.spot_fleet_request_ids(id)
                        .terminate_instances(true)
                        .send()
                        .await,
                )
            }
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

/// Whether a call took effect; what else its answer says is of no interest.
fn effect<T, E>(
    operation: &'static str,
    answer: Result<T, SdkError<E, HttpResponse>>,
) -> Result<(), Fault>
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    answer.map(drop).map_err(Fault::of(operation))
}
