//! Groups and their hooks.

use super::*;

fn with_hook(change: impl FnOnce(&mut LifecycleHook)) -> Vec<Finding> {
    findings(|_, world| {
        change(
            world
                .groups
                .get_mut(GROUP)
                .expect("the group")
                .hooks
                .get_mut(HOOK)
                .expect("the hook"),
        )
    })
}

#[test]
fn a_hook_that_is_shorter_than_the_drain() {
    let found = with_hook(|hook| hook.global_timeout = seconds(6000));
    one(
        &found,
        Level::Problem,
        HOOK,
        "it can hold a manager for 6000 s at most, DRAIN_TIMEOUT_SECONDS is 7200",
    );
    let found = with_hook(|hook| {
        hook.heartbeat_timeout = seconds(60);
        hook.global_timeout = TimeDelta::hours(48);
    });
    one(
        &found,
        Level::Problem,
        HOOK,
        "it can hold a manager for 6000 s at most",
    );
    assert_eq!(with_hook(|hook| hook.global_timeout = seconds(7200)), []);
}

#[test]
fn a_hook_whose_time_out_abandons() {
    one(
        &with_hook(|hook| hook.default_result = "ABANDON".into()),
        Level::Warning,
        HOOK,
        "its DefaultResult is ABANDON",
    );
}

#[test]
fn a_heartbeat_too_short_for_the_queues_deliveries() {
    let few = |count: &'static str| {
        move |aws: &FakeAws, world: &mut World| {
            aws.set("MAX_RECEIVE_COUNT", count);
            let redrive = format!(
                "{{\"deadLetterTargetArn\":\"arn:aws:sqs:eu-west-1:1:dlq\",\"maxReceiveCount\":{count}}}"
            );
            set_queue(world, WORK_QUEUE, &[("RedrivePolicy", &redrive)]);
            world
                .groups
                .get_mut(GROUP)
                .expect("the group")
                .hooks
                .get_mut(HOOK)
                .expect("the hook")
                .heartbeat_timeout = seconds(300);
        }
    };
    one(
        &findings(few("20")),
        Level::Problem,
        HOOK,
        "lets 20 deliveries reach 4320 s",
    );
    assert_eq!(findings(few("32")), []);
}

#[test]
fn a_second_termination_hook() {
    let second = |transition: &'static str| {
        move |_: &FakeAws, world: &mut World| {
            let group = world.groups.get_mut(GROUP).expect("the group");
            let hook = LifecycleHook {
                name: "terminate-agent-hook".into(),
                transition: transition.into(),
                ..group.hooks[HOOK].clone()
            };
            group.hooks.insert(hook.name.clone(), hook);
        }
    };
    one(
        &findings(second("autoscaling:EC2_INSTANCE_TERMINATING")),
        Level::Warning,
        GROUP,
        "a second termination hook, terminate-agent-hook",
    );
    assert_eq!(findings(second("autoscaling:EC2_INSTANCE_LAUNCHING")), []);
}

#[test]
fn a_group_without_our_hook_or_without_existence() {
    one(
        &findings(|aws, _| aws.set("LIFECYCLE_HOOKS", "other")),
        Level::Problem,
        GROUP,
        "it has none of the termination hooks other",
    );
    one(
        &findings(|aws, _| aws.set("AUTO_SCALING_GROUPS", &format!("{GROUP},gone-asg"))),
        Level::Warning,
        "group gone-asg",
        "doesn't exist",
    );
    one(
        &findings(|_, world| world.rules.push(Fault::Denied.on("DescribeLifecycleHooks"))),
        Level::Note,
        GROUP,
        "its hooks could not be read",
    );
}
