//! Auto Scaling: members, lifecycle states and lifecycle hooks.

use super::{Aws, Page, in_chunks, pages};
use crate::{
    config::Config,
    drain::LONGEST_WAIT,
    fault::Fault,
    preflight::TerminationHook,
    task::InstanceId,
    world::{Hook, Lifecycle, Listing, Member, Time},
};
use aws_sdk_autoscaling::types::{LifecycleHook, LifecycleState};
use chrono::{DateTime, TimeDelta};
use std::collections::BTreeSet;

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
    /// Those of `names` that exist.
    async fn groups(&self, names: &[String]) -> Listing<Group> {
        in_chunks(names, GROUPS_PER_CALL, async |names| {
            pages("DescribeAutoScalingGroups", async |token| {
                let call = self.auto_scaling().describe_auto_scaling_groups();
                let call = call
                    .set_auto_scaling_group_names(Some(names.to_vec()))
                    .set_next_token(token);
                let answer = call
                    .send()
                    .await
                    .map_err(Fault::of("DescribeAutoScalingGroups"))?;
                let items = answer.auto_scaling_groups().iter().map(group);
                Ok(Page {
                    items: items.filter(|g| names.contains(&g.name)).collect(),
                    next: answer.next_token,
                })
            })
            .await
        })
        .await
    }

    /// The members of `groups`, and those of `groups` that don't exist.
    pub async fn members(&self, groups: &[String]) -> (Listing<Member>, Vec<String>) {
        let Listing { items, fault } = self.groups(groups).await;
        let is_missing = |name: &&String| items.iter().all(|g| g.name != **name);
        // What was not read to its end shows no group to be missing.
        let asked = groups.iter().filter(|_| fault.is_none());
        let missing = asked.filter(is_missing).cloned().collect();
        let items = items.into_iter().flat_map(|g| g.members).collect();
        (Listing { items, fault }, missing)
    }

    /// Those of `names` that are groups.
    pub async fn existing_groups(&self, names: &[String]) -> Result<BTreeSet<String>, Fault> {
        let Listing { items, fault } = self.groups(names).await;
        fault.map_or_else(|| Ok(items.into_iter().map(|g| g.name).collect()), Err)
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

    /// Every termination hook of a group, ours and others'.
    async fn hooks_on_termination(&self, group: &str) -> Result<Vec<LifecycleHook>, Fault> {
        let call = self.auto_scaling().describe_lifecycle_hooks();
        let answer = call
            .auto_scaling_group_name(group)
            .send()
            .await
            .map_err(Fault::of("DescribeLifecycleHooks"))?;
        let mut hooks = answer.lifecycle_hooks.unwrap_or_default();
        let terminates = |transition: &str| transition == "autoscaling:EC2_INSTANCE_TERMINATING";
        hooks.retain(|h| h.lifecycle_transition().is_none_or(terminates));
        Ok(hooks)
    }

    /// Our termination hooks on a group.
    pub async fn hooks(&self, group: &str, config: &Config) -> Result<Vec<Hook>, Fault> {
        let hooks = self.hooks_on_termination(group).await?;
        let ours = hooks.iter().filter(|h| {
            h.lifecycle_hook_name()
                .is_some_and(|name| config.hooks.iter().any(|ours| ours == name))
        });
        Ok(ours.map(hook).collect())
    }

    /// The termination hooks of a group as a preflight looks at them, ours and others'.
    pub async fn termination_hooks(&self, group: &str) -> Result<Vec<TerminationHook>, Fault> {
        let hooks = self.hooks_on_termination(group).await?;
        Ok(hooks.iter().map(termination_hook).collect())
    }

    /// When the group began to terminate an instance, as far as its latest activities tell; newest come first.
    pub async fn termination_began(
        &self,
        group: &str,
        id: &InstanceId,
    ) -> Result<Option<Time>, Fault> {
        let mut token = None;
        for _ in 0..ACTIVITY_PAGES {
            let page = self.activities(group, "Terminating", id, token).await?;
            let began = page.items.into_iter().max();
            token = page.next.filter(|token| !token.is_empty());
            if began.is_some() || token.is_none() {
                return Ok(began);
            }
        }
        Ok(None)
    }

    /// When the group launched an instance, if that is among its newest activities.
    pub async fn launched(&self, group: &str, id: &InstanceId) -> Result<Option<Time>, Fault> {
        let page = self.activities(group, "Launching", id, None).await?;
        Ok(page.items.into_iter().max())
    }

    /// Of one page of a group's activities, the beginnings of those whose description begins with `verb` and ends
    /// with the instance: no field of theirs names it.
    async fn activities(
        &self,
        group: &str,
        verb: &str,
        id: &InstanceId,
        token: Option<String>,
    ) -> Result<Page<Time>, Fault> {
        let call = self.auto_scaling().describe_scaling_activities();
        let call = call.auto_scaling_group_name(group).set_next_token(token);
        let answer = call
            .send()
            .await
            .map_err(Fault::of("DescribeScalingActivities"))?;
        let of_ours = answer.activities().iter().filter(|a| {
            let words = a.description().unwrap_or_default();
            words.starts_with(verb) && words.trim_end().ends_with(id.as_str())
        });
        let began = of_ours
            .filter_map(|a| a.start_time())
            .filter_map(|t| DateTime::from_timestamp(t.secs(), 0));
        Ok(Page {
            items: began.collect(),
            next: answer.next_token,
        })
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

fn hook(hook: &LifecycleHook) -> Hook {
    let heartbeat_timeout = seconds(hook.heartbeat_timeout()).unwrap_or(DEFAULT_HEARTBEAT);
    let longest = (heartbeat_timeout * 100).min(LONGEST_WAIT);
    Hook {
        name: hook.lifecycle_hook_name().unwrap_or_default().to_owned(),
        heartbeat_timeout,
        global_timeout: seconds(hook.global_timeout()).unwrap_or(longest),
    }
}

fn termination_hook(hook: &LifecycleHook) -> TerminationHook {
    TerminationHook {
        name: hook.lifecycle_hook_name().unwrap_or_default().to_owned(),
        heartbeat_timeout: seconds(hook.heartbeat_timeout()),
        global_timeout: seconds(hook.global_timeout()),
        default_result: hook.default_result().unwrap_or("ABANDON").to_owned(),
    }
}

fn seconds(count: Option<i32>) -> Option<TimeDelta> {
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
