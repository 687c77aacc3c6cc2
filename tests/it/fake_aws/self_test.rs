//! The fake, driven by the real SDK clients: what it answers is read by them as AWS's answers are.

use super::*;
use aws_sdk_ec2::error::ProvideErrorMetadata;
use chrono::TimeDelta;

pub fn ec2(aws: &FakeAws) -> aws_sdk_ec2::Client {
    aws_sdk_ec2::Client::new(&aws.sdk_config())
}

#[test]
fn instances_come_page_by_page_with_their_fields() {
    let aws = FakeAws::cases();
    aws.world().page_size = 2;
    let pages = drive(&aws.clock, async {
        let mut stream = ec2(&aws)
            .describe_instances()
            .max_results(1000)
            .into_paginator()
            .send();
        let mut pages = Vec::new();
        while let Some(page) = stream.next().await {
            pages.push(page.expect("a page"));
        }
        pages
    });
    assert_eq!(pages.len(), 3);
    let instances: Vec<_> = pages
        .iter()
        .flat_map(|page| page.reservations())
        .flat_map(|reservation| reservation.instances())
        .collect();
    assert_eq!(instances.len(), 5);
    let worker = instances
        .iter()
        .find(|instance| instance.instance_id() == Some(W1))
        .expect("W1");
    assert_eq!(
        worker
            .state()
            .and_then(|state| state.name())
            .map(|name| name.as_str()),
        Some("running")
    );
    assert_eq!(worker.tags()[0].value(), Some(M1));
    assert_eq!(
        worker.launch_time().map(|time| time.secs()),
        Some((start() - TimeDelta::hours(1)).timestamp())
    );
    let attached = worker.network_interfaces()[0]
        .attachment()
        .and_then(|attachment| attachment.attach_time());
    assert_eq!(
        attached.map(|time| time.secs()),
        Some((start() - TimeDelta::hours(1)).timestamp())
    );
}

#[test]
fn a_missing_id_fails_the_whole_call_by_its_code() {
    let aws = FakeAws::cases();
    let error = drive(
        &aws.clock,
        ec2(&aws)
            .terminate_instances()
            .instance_ids(W1)
            .instance_ids(W8)
            .send(),
    )
    .expect_err("W8 is not there");
    assert_eq!(error.code(), Some("InvalidInstanceID.NotFound"));
    assert!(error.message().unwrap_or_default().contains(W8));
    assert_eq!(aws.world().instance(W1).state, InstanceState::Running);
    let error = drive(
        &aws.clock,
        ec2(&aws)
            .terminate_instances()
            .instance_ids("i-agent")
            .send(),
    )
    .expect_err("malformed");
    assert_eq!(error.code(), Some("InvalidInstanceID.Malformed"));
}

#[test]
fn termination_runs_its_course_in_virtual_time() {
    let aws = FakeAws::cases();
    drive(
        &aws.clock,
        ec2(&aws).terminate_instances().instance_ids(W1).send(),
    )
    .expect("accepted");
    assert_eq!(aws.world().instance(W1).state, InstanceState::ShuttingDown);
    aws.advance(minutes(1));
    assert_eq!(aws.world().instance(W1).state, InstanceState::Terminated);
    aws.advance(minutes(60));
    assert!(!aws.world().ec2.instances.contains_key(W1));
}

#[test]
fn filters_match_exactly_or_by_wildcards() {
    let aws = FakeAws::cases();
    let filtered = |name: &str, value: &str| {
        let filter = aws_sdk_ec2::types::Filter::builder()
            .name(name)
            .values(value)
            .build();
        let found = drive(
            &aws.clock,
            ec2(&aws).describe_instances().filters(filter).send(),
        )
        .expect("accepted");
        found.reservations().len()
    };
    assert_eq!(filtered("tag:gitlab-runner-parent-id", M1), 2);
    assert_eq!(filtered("tag:gitlab-runner-parent-id", "*"), 3);
    assert_eq!(filtered("tag:gitlab-runner-parent-id", "\\*"), 0);
    assert_eq!(filtered("instance-id", LONG_GONE), 0);
    assert_eq!(filtered("key-name", "runner-aa-?i-linux-*"), 2);
}

#[test]
fn key_pairs_spot_requests_and_addresses_can_be_ended() {
    let aws = FakeAws::bare_cases();
    let (key, name) = {
        let mut world = aws.world();
        let name = world.put_machine_key("aa", EXECUTOR, minutes(60));
        world.put_spot("sir-1", "open", Some(&name), minutes(60));
        world.put_address("eipalloc-1", Some(M1));
        world.put_address("eipalloc-2", Some(M2)).association_id = Some("eipassoc-2".into());
        (world.key_id(&name), name)
    };
    let client = ec2(&aws);
    let spots = drive(
        &aws.clock,
        client
            .describe_spot_instance_requests()
            .max_results(1000)
            .send(),
    )
    .expect("read");
    let specification = spots.spot_instance_requests()[0]
        .launch_specification()
        .expect("a specification");
    assert_eq!(specification.key_name(), Some(name.as_str()));
    drive(
        &aws.clock,
        client.delete_key_pair().key_pair_id(&key).send(),
    )
    .expect("deleted");
    drive(
        &aws.clock,
        client.delete_key_pair().key_pair_id(&key).send(),
    )
    .expect("deleting twice succeeds");
    drive(
        &aws.clock,
        client
            .cancel_spot_instance_requests()
            .spot_instance_request_ids("sir-1")
            .send(),
    )
    .expect("cancelled");
    drive(
        &aws.clock,
        client.release_address().allocation_id("eipalloc-1").send(),
    )
    .expect("released");
    let error = drive(
        &aws.clock,
        client.release_address().allocation_id("eipalloc-2").send(),
    )
    .expect_err("in use");
    assert_eq!(error.code(), Some("InvalidIPAddress.InUse"));
    let world = aws.world();
    assert!(world.ec2.key_pairs.is_empty());
    assert_eq!(world.ec2.spot_requests["sir-1"].state, "cancelled");
    assert_eq!(world.ec2.addresses.len(), 1);
}

#[test]
fn a_persistent_request_launches_again_unless_cancelled_first() {
    for cancel in [false, true] {
        let aws = FakeAws::bare_cases();
        aws.world().put_worker(Worker::of(M1, W1).spot("sir-1"));
        if cancel {
            drive(
                &aws.clock,
                ec2(&aws)
                    .cancel_spot_instance_requests()
                    .spot_instance_request_ids("sir-1")
                    .send(),
            )
            .expect("cancelled");
        }
        drive(
            &aws.clock,
            ec2(&aws).terminate_instances().instance_ids(W1).send(),
        )
        .expect("accepted");
        aws.advance(minutes(2));
        let running = aws
            .world()
            .ec2
            .instances
            .values()
            .filter(|instance| instance.state == InstanceState::Running)
            .count();
        assert_eq!(running, if cancel { 2 } else { 3 });
    }
}

#[test]
fn tags_are_set_and_taken_away() {
    let aws = FakeAws::bare_cases();
    aws.world().put_address("eipalloc-1", None);
    let tag = aws_sdk_ec2::types::Tag::builder()
        .key("mark")
        .value("1")
        .build();
    drive(
        &aws.clock,
        ec2(&aws)
            .create_tags()
            .resources("eipalloc-1")
            .tags(tag.clone())
            .send(),
    )
    .expect("tagged");
    assert_eq!(aws.world().ec2.addresses["eipalloc-1"].tags["mark"], "1");
    drive(
        &aws.clock,
        ec2(&aws)
            .delete_tags()
            .resources("eipalloc-1")
            .tags(tag)
            .send(),
    )
    .expect("untagged");
    assert!(aws.world().ec2.addresses["eipalloc-1"].tags.is_empty());
}

#[test]
fn fleets_end_with_or_without_their_instances() {
    let aws = FakeAws::cases();
    let fleet = |id: &str| Fleet {
        id: id.into(),
        state: "active".into(),
        kind: "maintain".into(),
        created: start(),
        key_name: Some("runner-aa-ci-linux-1741060000-00000001".into()),
        instances: vec![W1.into()],
        tags: Tags::new(),
    };
    for id in ["fleet-1", "sfr-1"] {
        aws.world().ec2.fleets.insert(id.into(), fleet(id));
    }
    let client = ec2(&aws);
    let fleets = drive(&aws.clock, client.describe_fleets().send()).expect("read");
    assert_eq!(fleets.fleets()[0].fleet_id(), Some("fleet-1"));
    let requests = drive(&aws.clock, client.describe_spot_fleet_requests().send()).expect("read");
    let config = requests.spot_fleet_request_configs()[0]
        .spot_fleet_request_config()
        .expect("a config");
    assert_eq!(
        config.launch_specifications()[0].key_name(),
        fleet("x").key_name.as_deref()
    );
    let deleted = drive(
        &aws.clock,
        client
            .delete_fleets()
            .fleet_ids("fleet-1")
            .fleet_ids("fleet-9")
            .terminate_instances(false)
            .send(),
    )
    .expect("200");
    assert_eq!(deleted.unsuccessful_fleet_deletions().len(), 1);
    assert_eq!(aws.world().instance(W1).state, InstanceState::Running);
    let cancel = client
        .cancel_spot_fleet_requests()
        .spot_fleet_request_ids("sfr-1")
        .terminate_instances(true)
        .send();
    assert_eq!(
        drive(&aws.clock, cancel)
            .expect("200")
            .successful_fleet_requests()
            .len(),
        1
    );
    assert!(aws.world().instance(W1).state.is_ending());
}

/// `cargo test --test it cost_of_a_call -- --ignored --nocapture`: what bounds the simulation's speed.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_call() {
    let aws = FakeAws::cases();
    let clients = (ec2(&aws), aws_sdk_ssm::Client::new(&aws.sdk_config()));
    let measure = |what: &str, call: &dyn Fn()| {
        call();
        let begun = std::time::Instant::now();
        (0..500).for_each(|_| call());
        println!("{what}: {:?} a call", begun.elapsed() / 500);
    };
    measure("a client", &|| drop(ec2(&aws)));
    measure("DescribeInstances, 5 instances", &|| {
        drop(
            drive(
                &aws.clock,
                clients.0.describe_instances().max_results(1000).send(),
            )
            .expect("read"),
        )
    });
    measure("DescribeKeyPairs, 3 keys", &|| {
        drop(drive(&aws.clock, clients.0.describe_key_pairs().send()).expect("read"))
    });
    measure("TerminateInstances", &|| {
        drop(
            drive(
                &aws.clock,
                clients.0.terminate_instances().instance_ids(W1).send(),
            )
            .expect("accepted"),
        )
    });
    measure("ListCommands", &|| {
        drop(drive(&aws.clock, clients.1.list_commands().send()).expect("read"))
    });
}
