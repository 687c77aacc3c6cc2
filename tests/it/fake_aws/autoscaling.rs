//! Auto Scaling: who is a member and in which state, the hooks, heartbeat and completion.

use super::paging::{PageFault, checked_size, cut};
use super::wire::{Answer, Body, Refusal, Request, element, iso, optional, refuse, wrap};
use super::world::{Closed, Closing, Group, LifecycleAction, Member, World};

pub fn describe_auto_scaling_instances(
    world: &mut World,
    request: &Request,
    fault: &PageFault,
) -> Answer {
    let asked = request.list("InstanceIds");
    if asked.len() > 50 {
        return refuse("ValidationError", "The number of instance ids exceeds 50");
    }
    let size = checked_size(request.number("MaxRecords"), 1, 50, world.page_size.min(50))?;
    let mut found: Vec<(String, String)> = world
        .groups_seen()
        .values()
        .flat_map(|group| {
            group
                .members
                .iter()
                .map(move |(id, member)| (group, id, member))
        })
        .filter(|(_, id, _)| asked.is_empty() || asked.contains(id))
        .map(|(group, id, member)| (id.clone(), member_xml(id, member, Some(&group.name))))
        .collect();
    found.sort();
    let page = cut(found.into_iter(), request.text("NextToken"), size, fault)?;
    let inside = wrap("AutoScalingInstances", &page.items.concat())
        + &optional("NextToken", page.next_token.as_deref());
    Ok(Body::Xml(inside))
}

fn member_xml(id: &str, member: &Member, group: Option<&str>) -> String {
    let inside = [
        element("InstanceId", id),
        optional("AutoScalingGroupName", group),
        element("AvailabilityZone", &member.zone),
        element("LifecycleState", &member.state),
        element(
            "HealthStatus",
            if group.is_some() {
                "HEALTHY"
            } else {
                "Healthy"
            },
        ),
        element("ProtectedFromScaleIn", member.protected_from_scale_in),
    ];
    wrap("member", &inside.concat())
}

pub fn describe_auto_scaling_groups(
    world: &mut World,
    request: &Request,
    fault: &PageFault,
) -> Answer {
    let asked = request.list("AutoScalingGroupNames");
    let size = checked_size(
        request.number("MaxRecords"),
        1,
        100,
        world.page_size.min(50),
    )?;
    let found: Vec<(String, String)> = world
        .groups_seen()
        .values()
        .filter(|group| asked.is_empty() || asked.contains(&group.name))
        .map(|group| (group.name.clone(), group_xml(group)))
        .collect();
    let page = cut(found.into_iter(), request.text("NextToken"), size, fault)?;
    Ok(Body::Xml(
        wrap("AutoScalingGroups", &page.items.concat())
            + &optional("NextToken", page.next_token.as_deref()),
    ))
}

fn group_xml(group: &Group) -> String {
    let members: String = group
        .members
        .iter()
        .map(|(id, member)| member_xml(id, member, None))
        .collect();
    let inside = [
        element("AutoScalingGroupName", &group.name),
        element("MinSize", 0),
        element("MaxSize", 100),
        element("DesiredCapacity", group.members.len()),
        element("DefaultCooldown", 300),
        wrap("AvailabilityZones", &element("member", "eu-west-1a")),
        element("HealthCheckType", "EC2"),
        element("CreatedTime", "2024-01-01T00:00:00.000Z"),
        wrap("Instances", &members),
    ];
    wrap("member", &inside.concat())
}

pub fn describe_lifecycle_hooks(world: &mut World, request: &Request) -> Answer {
    let names = request.list("LifecycleHookNames");
    let group = find_group(world, request)?;
    let hooks: String = group
        .hooks
        .values()
        .filter(|hook| names.is_empty() || names.contains(&hook.name))
        .map(|hook| {
            let inside = [
                element("LifecycleHookName", &hook.name),
                element("AutoScalingGroupName", &group.name),
                element("LifecycleTransition", &hook.transition),
                element("HeartbeatTimeout", hook.heartbeat_timeout.num_seconds()),
                element("GlobalTimeout", hook.global_timeout.num_seconds()),
                element("DefaultResult", &hook.default_result),
            ];
            wrap("member", &inside.concat())
        })
        .collect();
    Ok(Body::Xml(wrap("LifecycleHooks", &hooks)))
}

/// Newest first. A page's place is remembered by its number, as ids have no order here.
pub fn describe_scaling_activities(
    world: &mut World,
    request: &Request,
    fault: &PageFault,
) -> Answer {
    let size = checked_size(
        request.number("MaxRecords"),
        1,
        100,
        world.page_size.min(100),
    )?;
    let group = find_group(world, request)?;
    let found = group
        .activities
        .iter()
        .rev()
        .enumerate()
        .map(|(place, activity)| {
            let inside = [
                element("ActivityId", &activity.id),
                element("AutoScalingGroupName", &group.name),
                element("Description", &activity.description),
                element("Cause", "a user request"),
                element("StartTime", iso(activity.started)),
                element("StatusCode", &activity.status),
                element("Progress", 60),
            ];
            (format!("{place:06}"), wrap("member", &inside.concat()))
        });
    let page = cut(found, request.text("NextToken"), size, fault)?;
    Ok(Body::Xml(
        wrap("Activities", &page.items.concat())
            + &optional("NextToken", page.next_token.as_deref()),
    ))
}

fn find_group<'a>(world: &'a mut World, request: &Request) -> Result<&'a mut Group, Refusal> {
    let name = request.text("AutoScalingGroupName").unwrap_or_default();
    match world.groups.get_mut(name) {
        Some(group) => Ok(group),
        None => refuse(
            "ValidationError",
            format!("AutoScalingGroup name not found - AutoScalingGroup {name} not found"),
        ),
    }
}

/// The open action that a heartbeat or a completion means, by token or by instance.
fn find_action<'a>(
    world: &'a mut World,
    request: &Request,
) -> Result<(&'a mut LifecycleAction, String), Refusal> {
    let now = world.now();
    let group = find_group(world, request)?;
    let hook = request.text("LifecycleHookName").unwrap_or_default();
    if !group.hooks.contains_key(hook) {
        return refuse(
            "ValidationError",
            format!("No Lifecycle Hook found with name: {hook}"),
        );
    }
    let (token, instance) = (
        request.text("LifecycleActionToken"),
        request.text("InstanceId"),
    );
    if token.is_some_and(|token| token.len() != 36) {
        return refuse(
            "ValidationError",
            "1 validation error detected: lifecycleActionToken must have length 36",
        );
    }
    let means = |action: &LifecycleAction| {
        let by_token = token.is_none_or(|token| action.token == token);
        let by_instance = instance.is_none_or(|instance| action.instance_id == instance);
        by_token && by_instance && (token.is_some() || instance.is_some())
    };
    let name = group.name.clone();
    let open = group.actions.iter_mut().find(|action| {
        action.hook == hook
            && action.closed.is_none()
            && means(action)
            && action.invisible_until.is_none_or(|until| until <= now)
    });
    match (open, instance) {
        (Some(action), _) => Ok((action, name)),
        (None, Some(instance)) => refuse(
            "ValidationError",
            format!("No active Lifecycle Action found with instance ID {instance}"),
        ),
        (None, None) => refuse(
            "ValidationError",
            format!(
                "No active Lifecycle Action found with token {}",
                token.unwrap_or_default()
            ),
        ),
    }
}

pub fn record_lifecycle_action_heartbeat(world: &mut World, request: &Request) -> Answer {
    let now = world.now();
    let (action, _) = find_action(world, request)?;
    action.last_heartbeat = now;
    action.heartbeats += 1;
    Ok(Body::Xml(String::new()))
}

pub fn complete_lifecycle_action(world: &mut World, request: &Request) -> Answer {
    let now = world.now();
    let result = request
        .text("LifecycleActionResult")
        .unwrap_or_default()
        .to_owned();
    if result != "CONTINUE" && result != "ABANDON" {
        return refuse(
            "ValidationError",
            format!("Invalid lifecycle action result {result}"),
        );
    }
    let (action, group) = find_action(world, request)?;
    action.closed = Some(Closed {
        at: now,
        how: Closing::Completed(result),
    });
    let instance_id = action.instance_id.clone();
    world
        .groups
        .get_mut(&group)
        .expect("found")
        .proceed_if_free(&instance_id, now);
    Ok(Body::Xml(String::new()))
}
