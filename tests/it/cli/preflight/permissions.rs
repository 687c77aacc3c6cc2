//! What EC2 would refuse to these credentials.

use super::*;

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
fn a_dry_run_that_fails_for_another_reason_says_nothing_of_permissions() {
    let throttled = Fault::Throttled.on("ReleaseAddress");
    let found = findings(|_, world| world.rules.push(throttled));
    one(
        &found,
        Level::Note,
        "ec2:ReleaseAddress",
        "EC2 could not be asked",
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
fn whoever_may_only_read_is_told_once_and_has_no_problem() {
    let aws = healthy();
    {
        let mut world = aws.world();
        put_dead_manager(&mut world, M1, minutes(10));
        world.put_worker(Worker::of(M1, W1));
        let is_dry = |request: &Request| request.text("DryRun") == Some("true");
        world.rules.push(Fault::Denied.everywhere().when(is_dry));
    }
    let ran = run(&aws, "preflight");
    assert_eq!(ran.exit, Exit::Good, "{}", ran.out);
    let told = "warning: permissions: these credentials may only read (denied: CancelSpotInstanceRequests, \
                DeleteKeyPair, ReleaseAddress, TerminateInstances)";
    assert_eq!(
        ran.flat().matches("may only read").count(),
        1,
        "{}",
        ran.out
    );
    assert!(ran.flat().contains(told), "{}", ran.out);
}
