//! The preflight: each finding in a world that has it, and silence in one that doesn't.

use super::*;
use lifecycle_reaper::preflight::{Finding, Level};

/// The findings in a healthy world that was changed.
fn findings(change: impl FnOnce(&FakeAws, &mut World)) -> Vec<Finding> {
    let aws = healthy();
    change(&aws, &mut aws.world());
    serde_json::from_value(run(&aws, "preflight --format json").json()).expect("findings")
}

/// Asserts that exactly one finding has these words, that it has this level, and that a healthy world has none.
fn one(found: &[Finding], level: Level, about: &str, what: &str) {
    let matching: Vec<_> = found
        .iter()
        .filter(|f| f.about.contains(about) && f.what.contains(what))
        .collect();
    assert_eq!(matching.len(), 1, "{about}: {what} in {found:#?}");
    assert_eq!(matching[0].level, level, "{:?}", matching[0]);
    assert!(!matching[0].why.is_empty() && !matching[0].action.is_empty());
    assert!(
        !healthy_findings()
            .iter()
            .any(|f| f.about.contains(about) && f.what.contains(what))
    );
}

fn healthy_findings() -> Vec<Finding> {
    findings(|_, _| {})
}

#[test]
fn a_healthy_world_has_none() {
    assert_eq!(healthy_findings(), []);
    let ran = run(&healthy(), "preflight");
    assert_eq!(
        (ran.exit, ran.out.as_str()),
        (Exit::Good, "Nothing stands in the way of MODE=enforce.\n")
    );
}

#[test]
fn findings_are_shown_with_why_and_what_to_do_and_problems_first() {
    let aws = healthy();
    aws.inject(Fault::Denied.on("DeleteKeyPair"));
    aws.world()
        .put_machine_key("old", EXECUTOR, TimeDelta::days(60));
    aws.unset("DEAD_LETTER_QUEUE_URL");
    let ran = run(&aws, "preflight");
    assert_eq!(ran.exit, Exit::PersonNeeded);
    let flat = ran.flat();
    let at = |text: &str| {
        flat.find(text)
            .unwrap_or_else(|| panic!("no {text:?} in {flat}"))
    };
    assert!(
        at("problem: ec2:DeleteKeyPair: these credentials may not do it to runner-old-")
            < at("warning: DEAD_LETTER_QUEUE_URL: it is not set")
    );
    assert!(flat.contains("why: ") && flat.contains("do: "), "{flat}");
    assert!(
        run(&aws, "preflight --format markdown")
            .out
            .contains("| problem | ec2:DeleteKeyPair |")
    );
    assert!(
        run(&aws, "plan")
            .flat()
            .contains("problem: ec2:DeleteKeyPair"),
        "plan has it too"
    );
    assert!(
        aws.world().ec2.key_pairs.len() == 2,
        "a dry run deletes nothing"
    );
}

#[test]
fn permissions_are_asked_about_what_would_be_deleted() {
    for (operation, put) in [
        (
            "TerminateInstances",
            (|w: &mut World| drop(w.put_worker(Worker::of(M1, W1).without_key())))
                as fn(&mut World),
        ),
        ("CancelSpotInstanceRequests", |w| {
            w.put_spot(
                "sir-00000001",
                "open",
                Some(&machine_name("aa", EXECUTOR, start() - minutes(120), 1)),
                minutes(120),
            )
        }),
        ("DeleteKeyPair", |w| {
            drop(w.put_machine_key("aa", EXECUTOR, minutes(120)))
        }),
        ("ReleaseAddress", |w| {
            w.put_address("eipalloc-00000000000000001", Some(M1));
        }),
    ] {
        let found = findings(|_, world| {
            put_dead_manager(world, M1, minutes(10));
            put(world);
            world.rules.push(Fault::Denied.on(operation));
        });
        one(
            &found,
            Level::Problem,
            &format!("ec2:{operation}"),
            "may not do it to",
        );
    }
}

#[test]
fn each_rule_that_found_an_orphan_is_asked_for_because_policies_depend_on_tags() {
    let found = findings(|_, world| {
        put_dead_manager(world, M1, minutes(10));
        world.put_worker(Worker::of(M1, W1));
        world.put_worker(Worker::of(M1, W2).untagged().age(minutes(120)));
        world
            .rules
            .push(Fault::Denied.on("TerminateInstances").naming(W2));
    });
    one(
        &found,
        Level::Problem,
        "ec2:TerminateInstances",
        &format!("{W2} (found by the rule untagged-worker)"),
    );
    assert!(!found.iter().any(|f| f.what.contains(W1)), "{found:#?}");
}

#[test]
fn without_anything_to_delete_a_refusal_is_no_proof() {
    let found = findings(|_, world| world.rules.push(Fault::Denied.on("TerminateInstances")));
    one(
        &found,
        Level::Warning,
        "ec2:TerminateInstances",
        "a resource that doesn't exist",
    );
    let found = findings(|_, world| {
        world
            .rules
            .push(Fault::Code("InvalidInstanceID.NotFound").on("TerminateInstances"))
    });
    one(
        &found,
        Level::Note,
        "ec2:TerminateInstances",
        "EC2 didn't say",
    );
}

#[test]
fn the_mark_of_the_first_look_needs_its_permissions() {
    let address = |aws: &FakeAws, world: &mut World| {
        aws.set("EIP_TAG", "pool=ci");
        world
            .put_address("eipalloc-00000000000000001", None)
            .tags
            .insert("pool".into(), "ci".into());
    };
    let found = findings(|aws, world| {
        address(aws, world);
        world.rules.push(Fault::Denied.on("CreateTags"));
    });
    one(
        &found,
        Level::Problem,
        "ec2:CreateTags",
        "eipalloc-00000000000000001",
    );
    assert_eq!(findings(address), []);
}

#[test]
fn a_manager_that_ssm_cannot_reach() {
    let found = findings(|_, world| assert!(world.ssm.agents.remove(M2)));
    one(&found, Level::Problem, M2, "SSM doesn't know it");
    let booting = findings(|_, world| {
        world.ssm.agents.remove(M2);
        world.instance_mut(M2).launched = start() - minutes(3);
        world.instance_mut(M2).attached = None;
    });
    assert_eq!(booting, [], "an agent registers while its instance boots");
    let found = findings(|_, world| {
        world
            .rules
            .push(Fault::Denied.on("DescribeInstanceInformation"))
    });
    one(&found, Level::Note, "SSM", "could not be listed");
    let without_ssm = findings(|aws, world| {
        aws.set("DRAIN", "off");
        world.ssm.agents.remove(M2);
    });
    assert_eq!(without_ssm, []);
}

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

#[test]
fn a_manager_outside_the_listed_groups_with_the_same_executor_name() {
    let outside = |executor: &'static str| {
        move |_: &FakeAws, world: &mut World| {
            world.put_group("other-asg", "h");
            world.put_manager("other-asg", M1, minutes(100));
            world
                .instance_mut(M1)
                .tags
                .insert("aws:autoscaling:groupName".into(), "other-asg".into());
            world.put_worker(Worker::of(M1, W1));
            world.instance_mut(W1).key_name =
                Some(machine_name("aa", executor, start() - minutes(60), 3));
        }
    };
    one(
        &findings(outside(EXECUTOR)),
        Level::Problem,
        M1,
        "it is in group other-asg, not in AUTO_SCALING_GROUPS, and runs 1 worker(s) named for \"ci-linux\"",
    );
    assert_eq!(findings(outside("ci-windows")), []);
}

#[test]
fn an_address_with_eip_tag_that_looks_managed() {
    let tagged = |key: &'static str, value: &'static str| {
        move |aws: &FakeAws, world: &mut World| {
            aws.set("EIP_TAG", "pool=ci");
            let tags = &mut world.put_address("eipalloc-00000000000000001", None).tags;
            tags.extend([
                ("pool".to_owned(), "ci".to_owned()),
                (key.to_owned(), value.to_owned()),
            ]);
        }
    };
    one(
        &findings(tagged("aws:cloudformation:stack-name", "net")),
        Level::Problem,
        "eipalloc-00000000000000001",
        "looks managed by cloudformation",
    );
    one(
        &findings(tagged("managed-by", "Terraform")),
        Level::Problem,
        "eipalloc-00000000000000001",
        "looks managed by terraform",
    );
    assert_eq!(findings(tagged("Name", "ci")), []);
}

#[test]
fn queues_that_are_missing() {
    one(
        &findings(|aws, _| aws.unset("WORK_QUEUE_URL")),
        Level::Warning,
        "WORK_QUEUE_URL",
        "it is not set",
    );
    one(
        &findings(|aws, _| aws.unset("DEAD_LETTER_QUEUE_URL")),
        Level::Warning,
        "DEAD_LETTER_QUEUE_URL",
        "it is not set",
    );
    one(
        &findings(|_, world| drop(world.queues.remove(DEAD_LETTER_QUEUE))),
        Level::Problem,
        "DEAD_LETTER_QUEUE_URL",
        "doesn't exist",
    );
    one(
        &findings(|_, world| {
            world
                .rules
                .push(Fault::Denied.on("GetQueueAttributes").times(1))
        }),
        Level::Note,
        "WORK_QUEUE_URL",
        "could not be read",
    );
    one(
        &findings(|aws, _| aws.unset("EXECUTOR_NAME")),
        Level::Warning,
        "EXECUTOR_NAME",
        "it is not set",
    );
}

fn with_work_queue(attributes: &'static [(&'static str, &'static str)]) -> Vec<Finding> {
    findings(|_, world| set_queue(world, WORK_QUEUE, attributes))
}

#[test]
fn a_work_queue_that_gives_up_at_another_count() {
    let redrive =
        |count| findings(move |_, world| set_queue(world, WORK_QUEUE, &[("RedrivePolicy", count)]));
    one(
        &redrive(r#"{"maxReceiveCount":50}"#),
        Level::Problem,
        "WORK_QUEUE_URL",
        "its maxReceiveCount is 50, MAX_RECEIVE_COUNT is 74",
    );
    one(
        &redrive(r#"{"maxReceiveCount":"100"}"#),
        Level::Warning,
        "WORK_QUEUE_URL",
        "its maxReceiveCount is 100, MAX_RECEIVE_COUNT is 74",
    );
    one(
        &redrive("{}"),
        Level::Warning,
        "WORK_QUEUE_URL",
        "no redrive policy",
    );
    one(
        &findings(|aws, _| aws.unset("MAX_RECEIVE_COUNT")),
        Level::Warning,
        "WORK_QUEUE_URL",
        "MAX_RECEIVE_COUNT is not set",
    );
}

#[test]
fn a_work_queue_that_forgets_too_soon() {
    one(
        &with_work_queue(&[("MessageRetentionPeriod", "3600")]),
        Level::Problem,
        "WORK_QUEUE_URL",
        "it keeps messages for 3600 s, DRAIN_TIMEOUT_SECONDS is 7200",
    );
    one(
        &with_work_queue(&[("VisibilityTimeout", "10")]),
        Level::Problem,
        "WORK_QUEUE_URL",
        "its visibility timeout is 10 s",
    );
    one(
        &with_work_queue(&[("MessageRetentionPeriod", "1209600")]),
        Level::Warning,
        "DEAD_LETTER_QUEUE_URL",
        "it keeps messages for 1209600 s, the work queue for 1209600 s",
    );
}

#[test]
fn a_retained_instance_is_an_alarm() {
    let found = findings(|_, world| {
        world
            .groups
            .get_mut(GROUP)
            .expect("the group")
            .members
            .get_mut(M2)
            .expect("M2")
            .state = "Terminating:Retained".into()
    });
    one(
        &found,
        Level::Problem,
        M2,
        "retains it after an abandoned hook",
    );
}

#[test]
fn the_function_says_what_it_can_know_itself() {
    let aws = healthy();
    aws.unset("WORK_QUEUE_URL");
    {
        let mut world = aws.world();
        aws.set("EIP_TAG", "pool=ci");
        let tags = &mut world.put_address("eipalloc-00000000000000001", None).tags;
        tags.extend([
            ("pool".to_owned(), "ci".to_owned()),
            ("terraform".to_owned(), "yes".to_owned()),
        ]);
        let group = world.groups.get_mut(GROUP).expect("the group");
        let hook = LifecycleHook {
            name: "terminate-agent-hook".into(),
            ..group.hooks[HOOK].clone()
        };
        group.hooks.insert(hook.name.clone(), hook);
    }
    let reply = aws.run(r#"{"action":"plan"}"#).expect("a reply");
    let found: Vec<Finding> = serde_json::from_value(reply["findings"].clone()).expect("findings");
    let about: Vec<(Level, &str)> = found.iter().map(|f| (f.level, f.about.as_str())).collect();
    assert_eq!(
        about,
        [
            (
                Level::Problem,
                "address eipalloc-00000000000000001 198.51.100.1"
            ),
            (Level::Warning, "group ci-linux-asg"),
            (Level::Warning, "WORK_QUEUE_URL")
        ]
    );
    assert!(
        aws.all_calls()
            .iter()
            .all(|call| call.operation().starts_with("Describe")),
        "the function asks for nothing beyond its reads"
    );
}
