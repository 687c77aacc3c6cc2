//! The preflight: each finding in a world that has it, and silence in one that doesn't.

mod groups;
mod permissions;
mod queues;

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
