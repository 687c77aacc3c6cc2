//! A person's slip deletes nothing that lives: a misspelt group, a neighbour's manager named by hand; and a limit
//! never parts a worker from its spot request.

use super::event;
use crate::fake_aws::*;
use chrono::TimeDelta;

/// A live manager with what only age speaks for: an open request, an untagged worker, a key.
fn idle_manager(aws: &FakeAws) {
    let mut world = aws.world();
    for id in [M1, M2] {
        let tags = &mut world.instance_mut(id).tags;
        tags.insert("aws:autoscaling:groupName".into(), GROUP.into());
    }
    world.put_worker(
        Worker::of(M2, "i-0cafe000000000001")
            .untagged()
            .age(minutes(30)),
    );
    let name = machine_name("cc", "ci-linux", start() - minutes(40), 9);
    world.put_spot("sir-idle0001", "open", Some(&name), minutes(40));
    world.put_machine_key("dd", "ci-linux", minutes(50));
    // Its tagged workers would protect it: it has none, and is older than all of these.
    let tagged: Vec<String> = world
        .ec2
        .instances
        .keys()
        .filter(|id| ![M1, M2, "i-0cafe000000000001"].contains(&id.as_str()))
        .cloned()
        .collect();
    for id in tagged {
        world.ec2.instances.remove(&id);
    }
    world
        .ec2
        .key_pairs
        .retain(|_, key| key.name.contains("-dd-"));
}

#[test]
fn a_misspelt_group_is_not_an_empty_one() {
    for name in [
        "ci-linux-asgs",
        "ci-linx-asg",
        "Ci-Linux-Asg",
        "ci-linux-asg-old",
        "x",
    ] {
        let aws = FakeAws::cases();
        idle_manager(&aws);
        aws.set("AUTO_SCALING_GROUPS", name);
        for _ in 0..3 {
            aws.run(&event("direct-sweep")).expect("safe");
            aws.advance(minutes(2));
        }
        let deleted: Vec<_> = [
            "TerminateInstances",
            "CancelSpotInstanceRequests",
            "DeleteKeyPair",
        ]
        .into_iter()
        .flat_map(|operation| aws.calls(operation))
        .collect();
        assert!(deleted.is_empty(), "{name}: {deleted:?}");
    }
}

#[test]
fn a_deleted_group_is_cleaned_though_a_neighbour_lives() {
    let aws = FakeAws::cases();
    idle_manager(&aws);
    {
        let mut world = aws.world();
        for id in [M1, M2] {
            world.instance_mut(id).state = InstanceState::Terminated;
        }
        world.groups.remove(GROUP);
        world.put_group("ci-linux-eu-asg", "ci-linux-eu-terminate");
        world.put_manager(
            "ci-linux-eu-asg",
            "i-0eeeeeeeeeeeeeee1",
            TimeDelta::hours(9),
        );
    }
    for _ in 0..4 {
        aws.run(&event("direct-sweep")).expect("safe");
        aws.advance(minutes(2));
    }
    assert!(aws.touched("i-0cafe000000000001", "TerminateInstances"));
    assert!(aws.touched("sir-idle0001", "CancelSpotInstanceRequests"));
    assert!(aws.world().ec2.key_pairs.is_empty());
}

#[test]
fn a_limit_never_parts_a_worker_from_its_request() {
    for limit in 1..6 {
        let aws = FakeAws::cases();
        aws.set("MAX_DELETIONS", &limit.to_string());
        {
            let mut world = aws.world();
            world.instance_mut(M1).state = InstanceState::Terminated;
            for n in 0..6 {
                let id = format!("i-0beef00000000000{n}");
                world.put_worker(Worker::of(M1, &id).spot(&format!("sir-beef000{n}")));
            }
        }
        aws.run(&event("direct-sweep")).expect("safe");
        for n in 0..6 {
            let id = format!("i-0beef00000000000{n}");
            let request = format!("sir-beef000{n}");
            assert!(
                !aws.touched(&id, "TerminateInstances")
                    || aws.touched(&request, "CancelSpotInstanceRequests"),
                "limit {limit}: {id} went and {request} stayed"
            );
        }
    }
}

#[test]
fn a_neighbours_manager_named_by_hand_proves_no_token() {
    let aws = FakeAws::cases();
    {
        let mut world = aws.world();
        // To us the executor `ci-linux` with the token `a-b`; in truth `b-ci-linux` with the token `a`.
        let neighbour = "i-0fade000000000001";
        world.put_group("elsewhere", "elsewhere-terminate");
        world.put_manager("elsewhere", neighbour, TimeDelta::hours(9));
        world.instance_mut(neighbour).state = InstanceState::Terminated;
        world.put_worker(Worker::of(neighbour, "i-0fade000000000002").token("a-b"));
        world.put_worker(
            Worker::of("i-0fade000000000009", "i-0fade000000000003")
                .token("a-b")
                .untagged()
                .age(TimeDelta::hours(8)),
        );
    }
    aws.run(r#"{"action":"reap","instance_id":"i-0fade000000000001"}"#)
        .expect("safe");
    for id in ["i-0fade000000000002", "i-0fade000000000003"] {
        assert!(!aws.touched(id, "TerminateInstances"), "{id}");
    }
}
