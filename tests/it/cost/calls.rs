//! A pass reads pages, never single workers: its calls grow with pages, and with nothing else.

use crate::{cases::event, fake_aws::*};
use chrono::TimeDelta;
use std::collections::BTreeMap;

/// Managers m0…, each with `workers` workers and their keys; m0 is terminated, the others live.
fn fleet(managers: usize, workers: usize, page_size: usize) -> FakeAws {
    let mut world = World::empty(Clock::starting_at(start()));
    world.put_group(GROUP, HOOK);
    world.page_size = page_size;
    for manager in 0..managers {
        let id = format!("i-0a{manager:015x}");
        world.put_manager(GROUP, &id, TimeDelta::hours(4));
        for worker in 0..workers {
            world.put_worker(Worker::of(
                &id,
                &format!("i-0b{:015x}", manager * workers + worker),
            ));
        }
    }
    world
        .groups
        .get_mut(GROUP)
        .expect("the group")
        .members
        .remove("i-0a000000000000000");
    let now = world.now();
    world.end_instance("i-0a000000000000000", now - TimeDelta::minutes(10));
    // What a sweep leaves for its next pass goes there.
    world.queues.insert(
        WORK_QUEUE.into(),
        Queue {
            url: WORK_QUEUE.into(),
            name: "lifecycle-cleanup".into(),
            ..Queue::default()
        },
    );
    FakeAws::with_variables(world)
}

const SWEEP: &str = r#"{"action":"sweep"}"#;

/// One sweep's calls by operation.
fn calls_of_a_sweep(aws: &FakeAws) -> BTreeMap<String, usize> {
    let reply = aws.run(SWEEP).expect("a reply");
    assert_eq!(reply["faults"], serde_json::json!([]), "{reply}");
    let mut calls = BTreeMap::new();
    for call in aws.all_calls() {
        *calls.entry(call.operation().to_owned()).or_default() += 1;
    }
    calls
}

fn reads(calls: &BTreeMap<String, usize>) -> usize {
    calls
        .iter()
        .filter(|(operation, _)| {
            operation.starts_with("Describe")
                || operation.starts_with("Get")
                || operation.starts_with("List")
        })
        .map(|(_, n)| n)
        .sum()
}

#[test]
fn a_thousand_workers_of_a_hundred_managers_take_seven_reads_and_one_deletion() {
    let aws = fleet(100, 10, 1000);
    let calls = calls_of_a_sweep(&aws);
    assert_eq!(
        calls["DescribeInstances"], 3,
        "pages of 500 instances: {calls:?}"
    );
    assert_eq!(reads(&calls), 7, "{calls:?}");
    assert_eq!(
        calls["TerminateInstances"], 1,
        "ten workers are one call: {calls:?}"
    );
    let terminated = aws
        .world()
        .ec2
        .instances
        .values()
        .filter(|i| i.id.starts_with("i-0b") && i.state.is_ending())
        .count();
    assert_eq!(terminated, 10);
}

#[test]
fn calls_are_pages_and_do_not_depend_on_managers_or_keys() {
    for (managers, workers) in [(2, 10), (20, 10), (2, 200), (100, 4)] {
        let instances = managers * (workers + 1);
        let aws = fleet(managers, workers, 100);
        for number in 0..50 {
            aws.world()
                .put_machine_key("zz", EXECUTOR, TimeDelta::days(number + 1));
        }
        let calls = calls_of_a_sweep(&aws);
        assert_eq!(
            calls["DescribeInstances"],
            instances.div_ceil(100),
            "{managers} managers with {workers} workers: {calls:?}"
        );
        for once in [
            "DescribeKeyPairs",
            "DescribeSpotInstanceRequests",
            "DescribeAddresses",
        ] {
            assert_eq!(calls[once], 1, "{calls:?}");
        }
        let group_pages = calls["DescribeAutoScalingGroups"];
        assert!(group_pages <= 1 + managers / 100, "{calls:?}");
    }
}

#[test]
fn deletions_of_instances_go_by_the_hundred() {
    let aws = fleet(2, 250, 1000);
    aws.set("MAX_DELETIONS", "1000");
    let calls = calls_of_a_sweep(&aws);
    assert_eq!(calls["TerminateInstances"], 3, "{calls:?}");
}

/// An event that is nothing to us must not even build a client, let alone call.
#[test]
fn what_is_not_ours_costs_no_call() {
    for name in [
        "sqs-test-notification",
        "sqs-other-group",
        "sqs-other-hook",
        "sqs-launch-hook",
        "s3-object-created",
    ] {
        let aws = FakeAws::cases();
        aws.run(&event(name)).expect("a reply");
        assert_eq!(aws.all_calls().len(), 0, "{name}: {:?}", aws.all_calls());
    }
}

/// While a manager drains, a look costs the same whatever else the account holds.
#[test]
fn a_look_at_a_draining_manager_reads_only_that_manager() {
    let count = |strangers: usize| {
        let aws = FakeAws::cases();
        for number in 0..strangers {
            aws.world()
                .put_worker(Worker::of(M2, &format!("i-0c{number:015x}")));
        }
        aws.world().page_size = 100;
        aws.world().ssm.usual_fate = Some(Fate::never_ends());
        aws.run(&event("sqs-termination-hook")).expect("a reply");
        aws.all_calls().len()
    };
    assert_eq!(count(0), count(1000));
    assert!(count(0) <= 8, "{} calls", count(0));
}
