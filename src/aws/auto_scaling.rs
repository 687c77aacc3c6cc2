//! Auto Scaling: members, lifecycle states and lifecycle hooks.

use super::{Aws, Page, pages};
use crate::{
    config::Config,
    fault::Fault,
    task::InstanceId,
    world::{Hook, Lifecycle, Listing, Member, Time},
};
use aws_sdk_autoscaling::types::LifecycleState;
use chrono::{DateTime, TimeDelta};

/// Auto Scaling names at most so many groups in one call.
const GROUPS_PER_CALL: usize = 50;
/// A termination that a hook still holds up began at most two days ago: it is among the latest activities.
const ACTIVITY_PAGES: usize = 10;
/// What a hook without a heartbeat timeout has.
const DEFAULT_HEARTBEAT: TimeDelta = TimeDelta::seconds(3600);

/// A group that answered, with its members.
#[derive(Clone, Debug)]
struct Group {
    name: String,
    members: Vec<Member>,
}

impl Aws {
    /// The members of `groups`, and those of `groups` that don't exist.
    pub async fn members(&self, groups: &[String]) -> (Listing<Member>, Vec<String>) {
        let (mut members, mut missing) = (vec![], vec![]);
        for names in groups.chunks(GROUPS_PER_CALL) {
            let read = pages("DescribeAutoScalingGroups", async |token| {
                let call = self.auto_scaling().describe_auto_scaling_groups();
                let call = call
                    .set_auto_scaling_group_names(Some(names.to_vec()))
                    .set_next_token(token);
                let answer = call
                    .send()
                    .await
                    .map_err(Fault::of("DescribeAutoScalingGroups"))?;
                let items = answer.auto_scaling_groups().iter().map(group).collect();
                Ok(Page {
                    items,
                    next: answer.next_token,
                })
            })
            .await;
            let found: Vec<Group> = read.items;
            missing.extend(
                names
                    .iter()
                    .filter(|name| found.iter().all(|g| g.name != **name))
                    .cloned(),
            );
            let ours = found.into_iter().filter(|g| names.contains(&g.name));
            members.extend(ours.flat_map(|g| g.members));
            if read.fault.is_some() {
                let listing = Listing {
                    items: members,
                    fault: read.fault,
                };
                return (listing, vec![]);
            }
        }
        (Listing::complete(members), missing)
    }

    /// Where one instance stands in its group; `None` = no group has it.
    pub async fn lifecycle(&self, id: &InstanceId) -> Result<Option<Lifecycle>, Fault> {
        let listing = pages("DescribeAutoScalingInstances", async |token| {
            let call = self
                .auto_scaling()
                .describe_auto_scaling_instances()
                .instance_ids(id.as_str());
            let call = call.set_next_token(token);
            let answer = call
                .send()
                .await
                .map_err(Fault::of("DescribeAutoScalingInstances"))?;
            let ours = answer
                .auto_scaling_instances()
                .iter()
                .filter(|i| i.instance_id() == Some(id.as_str()));
            let items = ours.map(|i| Lifecycle {
                group: i.auto_scaling_group_name().unwrap_or_default().to_owned(),
                state: i.lifecycle_state().unwrap_or_default().to_owned(),
            });
            Ok(Page {
                items: items.collect(),
                next: answer.next_token,
            })
        })
        .await;
        match (listing.items.into_iter().next(), listing.fault) {
            (Some(lifecycle), _) => Ok(Some(lifecycle)),
            (None, Some(fault)) => Err(fault),
            (None, None) => Ok(None),
        }
    }

    /// Our termination hooks on a group.
    pub async fn hooks(&self, group: &str, config: &Config) -> Result<Vec<Hook>, Fault> {
        let call = self
            .auto_scaling()
            .describe_lifecycle_hooks()
            .auto_scaling_group_name(group);
        let answer = call
            .send()
            .await
            .map_err(Fault::of("DescribeLifecycleHooks"))?;
        let ours = answer.lifecycle_hooks().iter().filter(|h| {
            let terminates = h
                .lifecycle_transition()
                .is_none_or(|t| t == "autoscaling:EC2_INSTANCE_TERMINATING");
            terminates
                && h.lifecycle_hook_name()
                    .is_some_and(|name| config.hooks.iter().any(|ours| ours == name))
        });
        Ok(ours
            .map(|h| {
                let heartbeat_timeout = seconds(h.heartbeat_timeout()).unwrap_or(DEFAULT_HEARTBEAT);
                let longest = (heartbeat_timeout * 100).min(crate::drain::LONGEST_WAIT);
                Hook {
                    name: h.lifecycle_hook_name().unwrap_or_default().to_owned(),
                    heartbeat_timeout,
                    global_timeout: seconds(h.global_timeout()).unwrap_or(longest),
                }
            })
            .collect())
    }

    /// When the group began to terminate an instance, as far as its latest activities tell; newest come first.
    pub async fn termination_began(
        &self,
        group: &str,
        id: &InstanceId,
    ) -> Result<Option<Time>, Fault> {
        let mut token = None;
        for _ in 0..ACTIVITY_PAGES {
            let call = self.auto_scaling().describe_scaling_activities();
            let call = call.auto_scaling_group_name(group).set_next_token(token);
            let answer = call
                .send()
                .await
                .map_err(Fault::of("DescribeScalingActivities"))?;
            let of_ours = answer.activities().iter().filter(|a| {
                let words = a.description().unwrap_or_default();
                words.starts_with("Terminating") && words.trim_end().ends_with(id.as_str())
            });
            let began = of_ours
                .filter_map(|a| a.start_time())
                .filter_map(|t| DateTime::from_timestamp(t.secs(), 0))
                .max();
            token = answer.next_token.filter(|token| !token.is_empty());
            if began.is_some() || token.is_none() {
                return Ok(began);
            }
        }
        Ok(None)
    }

    /// Restarts a hook's heartbeat timeout.
    pub async fn heartbeat(&self, group: &str, hook: &str, id: &InstanceId) -> Result<(), Fault> {
        let call = self.auto_scaling().record_lifecycle_action_heartbeat();
        let call = call
            .auto_scaling_group_name(group)
            .lifecycle_hook_name(hook)
            .instance_id(id.as_str());
        call.send()
            .await
            .map(drop)
            .map_err(Fault::of("RecordLifecycleActionHeartbeat"))
    }

    /// Completes a hook, always with `CONTINUE`: `ABANDON` would cut other hooks short, and where the group retains
    /// instances on it, leave a billed one behind.
    pub async fn complete(&self, group: &str, hook: &str, id: &InstanceId) -> Result<(), Fault> {
        let call = self
            .auto_scaling()
            .complete_lifecycle_action()
            .lifecycle_action_result("CONTINUE");
        let call = call
            .auto_scaling_group_name(group)
            .lifecycle_hook_name(hook)
            .instance_id(id.as_str());
        call.send()
            .await
            .map(drop)
            .map_err(Fault::of("CompleteLifecycleAction"))
    }
}

pub(super) fn seconds(count: Option<i32>) -> Option<TimeDelta> {
    count
        .filter(|s| *s > 0)
        .map(|s| TimeDelta::seconds(s.into()))
}

fn group(group: &aws_sdk_autoscaling::types::AutoScalingGroup) -> Group {
    let name = group.auto_scaling_group_name().unwrap_or_default();
    let members = group.instances().iter().filter_map(|i| {
        Some(Member {
            id: i.instance_id()?.to_owned(),
            group: name.to_owned(),
            lifecycle: i
                .lifecycle_state()
                .map(LifecycleState::as_str)
                .unwrap_or_default()
                .to_owned(),
            protected_from_scale_in: i.protected_from_scale_in().unwrap_or_default(),
        })
    });
    Group {
        members: members.collect(),
        name: name.to_owned(),
    }
}
