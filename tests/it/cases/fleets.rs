//! The module's fleet mode: EC2 fleets and spot fleet requests of managers. Off unless named; a shared key stays.

use super::event;
use crate::fake_aws::*;
use chrono::TimeDelta;

const FLEET: &str = "fleet-12345678-1234-1234-1234-123456789012";
const REQUEST: &str = "sfr-12345678-1234-1234-1234-123456789012";
const PARENT: &str = "gitlab-runner-parent-id";

fn fleet(id: &str, kind: &str, owner: Option<&str>) -> Fleet {
    Fleet {
        id: id.into(),
        state: "active".into(),
        kind: kind.into(),
        created: start() - TimeDelta::hours(2),
        key_name: Some("shared-fleet-key".into()),
        instances: vec![],
        tags: owner
            .map(|owner| (PARENT.into(), owner.into()))
            .into_iter()
            .collect(),
    }
}

/// M1 gone; a fleet and a spot fleet request as given, with the kind switched on or off.
fn world_with(fleets: Vec<Fleet>, is_on: bool) -> FakeAws {
    let aws = FakeAws::cases();
    if is_on {
        aws.set("REAP", "workers,spot-requests,key-pairs,addresses,fleets");
    }
    {
        let mut world = aws.world();
        world.instance_mut(M1).state = InstanceState::Terminated;
        world.put_key("shared-fleet-key", TimeDelta::days(90));
        for fleet in fleets {
            world.ec2.fleets.insert(fleet.id.clone(), fleet);
        }
    }
    aws
}

fn sweep(aws: &FakeAws) {
    for _ in 0..3 {
        aws.run(&event("direct-sweep")).expect("safe");
        aws.advance(minutes(2));
    }
    assert!(
        aws.world().has_key("shared-fleet-key"),
        "the shared key stays"
    );
}

fn both(owner: Option<&str>) -> Vec<Fleet> {
    vec![
        fleet(FLEET, "maintain", owner),
        fleet(REQUEST, "maintain", owner),
    ]
}

#[test]
fn fleets_of_a_manager_that_is_gone_are_deleted() {
    let aws = world_with(both(Some(M1)), true);
    sweep(&aws);
    assert!(aws.touched(FLEET, "DeleteFleets"));
    assert!(aws.touched(REQUEST, "CancelSpotFleetRequests"));
    let before_workers = |operation| {
        let at = |operation| aws.calls(operation).first().map(|call| call.moment);
        at(operation) < at("TerminateInstances")
    };
    assert!(before_workers("DeleteFleets") && before_workers("CancelSpotFleetRequests"));
}

#[test]
fn what_lives_or_is_nobodys_or_is_not_asked_for_stays() {
    for (fleets, is_on) in [
        (both(Some(M1)), false),
        (both(Some(M2)), true),
        (both(Some("i-nonsense")), true),
        (both(None), true),
        (vec![fleet(FLEET, "instant", Some(M1))], true),
    ] {
        let words = format!("{fleets:?}, on: {is_on}");
        let aws = world_with(fleets, is_on);
        sweep(&aws);
        let calls = [
            aws.calls("DeleteFleets"),
            aws.calls("CancelSpotFleetRequests"),
        ]
        .concat();
        assert!(calls.is_empty(), "{words}: {calls:?}");
    }
}

#[test]
fn an_untagged_fleet_goes_with_its_instances_and_not_before() {
    for (owner, goes) in [(M1, true), (M2, false)] {
        let mut untagged = fleet(FLEET, "maintain", None);
        untagged.instances = vec!["i-0f1ee7000000000a1".into()];
        let aws = world_with(vec![untagged], true);
        {
            let mut world = aws.world();
            let worker = Worker::of(owner, "i-0f1ee7000000000a1").without_key();
            world.put_worker(worker.tag("aws:ec2:fleet-id", FLEET));
        }
        sweep(&aws);
        assert_eq!(
            aws.touched(FLEET, "DeleteFleets"),
            goes,
            "instances of {owner}"
        );
    }
}

/// A fleet that keeps its size starts another instance for each that ends while the fleet lives.
#[test]
fn instances_wait_for_a_fleet_that_waits_itself() {
    for late in [false, true] {
        let mut young = fleet(FLEET, "maintain", None);
        young.created = start() - minutes(5);
        young.instances = vec!["i-0f1ee7000000000a1".into()];
        let aws = world_with(vec![young], true);
        {
            let mut world = aws.world();
            let worker = Worker::of(M1, "i-0f1ee7000000000a1").without_key();
            world.put_worker(worker.tag("aws:ec2:fleet-id", FLEET));
        }
        if late {
            // The usual grace period of 15 minutes is over for the fleet as well.
            aws.advance(minutes(11));
        }
        aws.run(&event("direct-sweep")).expect("safe");
        let went = |id, operation| aws.touched(id, operation);
        assert_eq!(went(FLEET, "DeleteFleets"), late);
        assert_eq!(went("i-0f1ee7000000000a1", "TerminateInstances"), late);
    }
}

/// The deletion fails: its instance waits with it.
#[test]
fn instances_wait_for_a_fleet_that_could_not_be_deleted() {
    let mut active = fleet(FLEET, "maintain", Some(M1));
    active.instances = vec!["i-0f1ee7000000000a1".into()];
    let aws = world_with(vec![active], true);
    {
        let mut world = aws.world();
        let worker = Worker::of(M1, "i-0f1ee7000000000a1").without_key();
        world.put_worker(worker.tag("aws:ec2:fleet-id", FLEET));
    }
    aws.inject(Fault::ServerError.on("DeleteFleets"));
    aws.run(&event("direct-sweep")).expect("safe");
    assert!(!aws.touched("i-0f1ee7000000000a1", "TerminateInstances"));
    assert!(
        !aws.calls("TerminateInstances").is_empty(),
        "other workers go"
    );
}
