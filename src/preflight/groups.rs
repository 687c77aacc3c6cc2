//! Groups and their termination hooks: whether each manager will wait for its drain, and long enough.

use super::{Finding, Level};
use crate::{
    config::{Config, Drain},
    drain::LONGEST_WAIT,
    fault::Fault,
};
use chrono::TimeDelta;

/// One of the groups that the configuration names.
#[derive(Clone, Debug)]
pub struct GroupFacts {
    /// Its name.
    pub name: String,
    /// Whether it exists; a fault when nobody could tell.
    pub exists: Result<bool, Fault>,
    /// Its termination hooks, ours and others'.
    pub hooks: Result<Vec<TerminationHook>, Fault>,
}

/// A hook of the termination transition.
#[derive(Clone, Debug)]
pub struct TerminationHook {
    /// Its name.
    pub name: String,
    /// Without a heartbeat it ends after so long.
    pub heartbeat_timeout: Option<TimeDelta>,
    /// With heartbeats it ends after so long.
    pub global_timeout: Option<TimeDelta>,
    /// What its time-out means: `CONTINUE` or `ABANDON`.
    pub default_result: String,
}

impl TerminationHook {
    /// The longest that it can hold an instance.
    fn longest(&self) -> TimeDelta {
        let by_heartbeats = self.heartbeat_timeout.map_or(LONGEST_WAIT, |h| h * 100);
        let global = self.global_timeout.unwrap_or(LONGEST_WAIT);
        by_heartbeats.min(global).min(LONGEST_WAIT)
    }
}

/// What is to be said of the managed groups and their hooks.
pub fn of_groups(groups: &[GroupFacts], config: &Config) -> Vec<Finding> {
    groups
        .iter()
        .flat_map(|group| of_group(group, config))
        .collect()
}

fn of_group(group: &GroupFacts, config: &Config) -> Vec<Finding> {
    let about = format!("group {}", group.name);
    match &group.exists {
        Ok(true) => {}
        Ok(false) => {
            return vec![Finding::new(
                Level::Warning,
                about,
                "it doesn't exist in this account and Region",
                "no event of it will come, and no manager of it protects anything: what its managers left is swept",
                "correct AUTO_SCALING_GROUPS; leave the name only while a deleted group is being swept",
            )];
        }
        Err(fault) => {
            return vec![Finding::not_told(
                about,
                format!("whether it exists could not be read ({fault})"),
                "autoscaling:DescribeAutoScalingGroups",
            )];
        }
    }
    let hooks = match &group.hooks {
        Ok(hooks) => hooks,
        Err(fault) => {
            return vec![Finding::not_told(
                about,
                format!("its hooks could not be read ({fault})"),
                "autoscaling:DescribeLifecycleHooks",
            )];
        }
    };
    let (ours, others): (Vec<_>, Vec<_>) = hooks
        .iter()
        .partition(|hook| config.hooks.contains(&hook.name));
    let mut findings = vec![];
    if ours.is_empty() && !config.hooks.is_empty() {
        findings.push(Finding::new(
            Level::Problem,
            about.clone(),
            format!(
                "it has none of the termination hooks {}",
                config.hooks.join(", ")
            ),
            "its managers end without waiting for their jobs",
            "create the hook for autoscaling:EC2_INSTANCE_TERMINATING, or correct LIFECYCLE_HOOKS",
        ));
    }
    if config.drain != Drain::Off {
        findings.extend(ours.iter().flat_map(|hook| of_hook(group, hook, config)));
    }
    findings.extend(others.iter().map(|hook| {
        Finding::new(
            Level::Warning,
            about.clone(),
            if ours.is_empty() {
                format!("it has a termination hook that isn't in LIFECYCLE_HOOKS, {}", hook.name)
            } else {
                format!("it has a second termination hook, {}", hook.name)
            },
            "the manager goes only when both hooks are completed, and two drains may fight over it",
            "remove it if it is an older drain or clean-up; otherwise expect managers to wait for it",
        )
    }));
    findings
}

fn of_hook(group: &GroupFacts, hook: &TerminationHook, config: &Config) -> Vec<Finding> {
    let about = format!("hook {} of group {}", hook.name, group.name);
    let (wanted, longest) = (
        config.drain_timeout.num_seconds(),
        hook.longest().num_seconds(),
    );
    let mut findings = vec![];
    if longest < wanted {
        findings.push(Finding::new(
            Level::Problem,
            about.clone(),
            format!("it can hold a manager for {longest} s at most, DRAIN_TIMEOUT_SECONDS is {wanted}"),
            "AWS ends a hook after its global time-out (100 heartbeat time-outs, at most 48 h): longer jobs are cut off",
            format!("set its heartbeat time-out to {} s or more, or DRAIN_TIMEOUT_SECONDS to {longest} or less", (wanted + 99) / 100),
        ));
    }
    if hook.default_result == "ABANDON" {
        findings.push(Finding::new(
            Level::Warning,
            about.clone(),
            "its DefaultResult is ABANDON (AWS's default)",
            "when it times out, the group's other hooks are cut short, and a group that retains abandoned instances keeps a billed one",
            "set DefaultResult to CONTINUE",
        ));
    }
    let deliveries = config.max_receive_count.zip(hook.heartbeat_timeout);
    if let Some((max, heartbeat)) = deliveries {
        // Deliveries are at most four fifths of a heartbeat time-out apart, and two are kept for the end.
        let reach = (heartbeat * 4 / 5 * (max as i32 - 2).max(1)).num_seconds();
        if reach < wanted {
            findings.push(Finding::new(
                Level::Problem,
                about,
                format!("its heartbeat time-out of {} s lets {max} deliveries reach {reach} s, DRAIN_TIMEOUT_SECONDS is {wanted}", heartbeat.num_seconds()),
                "the queue gives up on the message before the drain ends, so the manager is released early",
                "raise the heartbeat time-out, or maxReceiveCount and MAX_RECEIVE_COUNT",
            ));
        }
    }
    findings
}
