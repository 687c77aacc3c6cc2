//! Key pairs and Elastic IPs: neighbours, newborns, quotas, and addresses that change hands.

use super::{Case, case, check};
use crate::fake_aws::*;

#[test]
fn lc_08_a_neighbours_name_is_not_ours() {
    let day = minutes(2880);
    let name = |token: &str, executor: &str| machine_name(token, executor, start() - day, 7);
    let neighbours = vec![
        name("bb", "ci-gpu"),
        name("cc", "circle"),
        name("dd", "prod-ci"),
        name("gg", "CI"),
        name("hh", "ci."),
        name("", "ci"),
        name("AA", "ci"),
        name("abcdefghij", "ci"),
        name("aa", "ci").replacen("runner-", "RUNNER-", 1),
        name("aa", "ci").replacen("runner-", "xrunner-", 1),
        format!("{} ", name("aa", "ci")),
        format!("{}0", name("aa", "ci")),
        "my-ci-key".into(),
        "runner-aa-ci-1".into(),
        "runner-aa-ci-".into(),
        format!("runner-aa-ci-{}-ABCDEF01", (start() - day).timestamp()),
        format!("runner-aa-ci-{}-1234567", (start() - day).timestamp()),
        "runner-aa-ci-99999999-00000001".into(),
        "ci".into(),
        "runner-ключ-ci-1700000000-00000001".into(),
    ];
    let ours = vec![
        name("aa", "ci"),
        name("a1b2c3d4e", "ci"),
        name("0123456789abcdef0", "ci"),
    ];
    let story = check(Case {
        world: &|w| {
            w.ec2.key_pairs.clear();
            neighbours
                .iter()
                .chain(&ours)
                .for_each(|name| drop(w.put_key(name, day)));
            put_spots(w, &neighbours);
        },
        config: &[("EXECUTOR_NAME", "ci")],
        never: &["CancelSpotInstanceRequests"],
        ..case("sqs-termination-hook")
    });
    let mut deleted: Vec<String> = story.aws.ids_of("DeleteKeyPair");
    deleted.sort();
    deleted.dedup();
    let mut expected = ours.clone();
    expected.sort();
    assert_eq!(deleted, expected);
    assert!(
        neighbours
            .iter()
            .all(|name| story.aws.world().has_key(name))
    );
}

fn put_spots(w: &mut World, keys: &[String]) {
    for (n, key) in keys.iter().enumerate() {
        w.put_spot(&format!("sir-{n}"), "open", Some(key), minutes(2880));
    }
}

#[test]
fn lc_26_a_key_that_was_just_made() {
    check(Case {
        world: &|w| {
            w.put_machine_key("young", EXECUTOR, seconds(30));
            w.put_machine_key("old", EXECUTOR, minutes(2880));
        },
        did: &["DeleteKeyPair runner-old-"],
        never: &["DeleteKeyPair runner-young-"],
        log: &[("INFO", "runner-young- it may be its own")],
        ..case("sqs-termination-hook")
    });
}

/// With no manager alive a young key still waits for its grace period.
#[test]
fn lc_26_a_young_key_of_nobody() {
    let aws = FakeAws::bare_cases();
    {
        let mut world = aws.world();
        world.ec2.instances.clear();
        world.groups.get_mut(GROUP).unwrap().members.clear();
        world.put_machine_key("young", EXECUTOR, seconds(899));
        world.put_machine_key("ripe", EXECUTOR, seconds(900));
    }
    aws.run(&super::event("direct-sweep")).expect("safe");
    let deleted = aws.ids_of("DeleteKeyPair");
    assert!(
        deleted.len() == 1 && deleted[0].starts_with("runner-ripe-"),
        "{deleted:?}"
    );
}

#[test]
fn lc_27_a_key_in_use_in_any_state() {
    use InstanceState::*;
    for (state, parent, kept) in [
        (Stopped, M2, true),
        (Stopping, M2, true),
        (Pending, M2, true),
        (Running, M2, true),
        (ShuttingDown, M2, true),
        (Terminated, LONG_GONE, false),
    ] {
        let story = check(Case {
            world: &|w| {
                w.put_worker(
                    Worker::of(parent, W4)
                        .token("dd")
                        .state(state)
                        .age(minutes(300)),
                );
                if state == ShuttingDown {
                    w.pace.shut_down = minutes(20);
                }
            },
            ..case("sqs-termination-hook")
        });
        // Used, it is kept; only a use that ends by itself is waited for.
        let (_, word) = state.wire();
        let line = format!("runner-dd- uses it and is {word} \"verdict\":\"keep\"");
        assert_eq!(
            story.has_line("INFO", &line),
            kept && state != ShuttingDown,
            "{word}"
        );
        let is_kept = story
            .aws
            .calls("DeleteKeyPair")
            .iter()
            .all(|c| !c.request.to_string().contains("runner-dd-"));
        assert_eq!(is_kept, kept, "used by an instance that is {state:?}");
    }
}

#[test]
fn lc_27_no_key_goes_while_its_users_are_unknown() {
    let second_page =
        |r: &Request| r.operation == "DescribeInstances" && r.text("NextToken").is_some();
    for fault in [
        Fault::Denied,
        Fault::Throttled,
        Fault::Garbled,
        Fault::Halved,
    ] {
        check(Case {
            world: &|w| w.page_size = 2,
            faults: vec![fault.everywhere().when(second_page)],
            never: &["DeleteKeyPair"],
            log: &[
                ("ERROR", "not read to its end DescribeInstances"),
                (
                    "INFO",
                    "the instances that may use it were not read to their end",
                ),
            ],
            cut_after: Some(8),
            ..case("sqs-termination-hook")
        });
    }
    check(Case {
        faults: vec![Fault::Throttled.on("DescribeSpotInstanceRequests")],
        never: &["DeleteKeyPair"],
        cut_after: Some(8),
        ..case("sqs-termination-hook")
    });
}

/// That its manager is gone needs no grace, but an open request of that manager may be about to use the key.
#[test]
fn a_young_key_stays_while_spot_requests_are_denied() {
    let young = |w: &mut World| {
        let worker = Worker::of(M1, W4).token("zz").age(minutes(5));
        w.put_worker(worker.state(InstanceState::Terminated));
    };
    check(Case {
        world: &young,
        did: &["DeleteKeyPair runner-zz"],
        ..case("sqs-termination-hook")
    });
    check(Case {
        world: &young,
        faults: vec![Fault::Denied.on("DescribeSpotInstanceRequests")],
        did: &["CompleteLifecycleAction M1", "DeleteKeyPair runner-aa"],
        never: &["DeleteKeyPair runner-zz"],
        // The sixth comes when the key is old enough for the other rule.
        cut_after: Some(5),
        ..case("sqs-termination-hook")
    });
}

#[test]
fn lc_48_thousands_of_keys_are_worked_off_over_passes() {
    let story = check(Case {
        world: &|w| {
            for n in 0..4000 {
                w.put_key(
                    &machine_name("old", EXECUTOR, start() - minutes(3000), n),
                    minutes(3000),
                );
            }
        },
        faults: vec![Fault::Throttled.on("DeleteKeyPair").after(150).times(40)],
        seconds: 60,
        in_order: &["CompleteLifecycleAction M1", "DeleteKeyPair runner-old-"],
        log: &[("INFO", "wait for the next pass")],
        cut_after: Some(6),
        ..case("sqs-termination-hook")
    });
    for (number, delivery) in story.deliveries.iter().enumerate() {
        let deleted: std::collections::BTreeSet<_> = story
            .aws
            .calls("DeleteKeyPair")
            .iter()
            .filter(|c| c.run as usize == number + 1)
            .flat_map(|c| c.request.ids())
            .collect();
        assert!(deleted.len() <= 100, "{} in pass {number}", deleted.len());
        assert!(delivery.took < seconds(60));
    }
    let left = story.aws.world().ec2.key_pairs.len();
    assert!((3500..3850).contains(&left), "{left} left");
}

#[test]
fn lc_48_the_limit_and_one_past_it() {
    for (keys, first_pass) in [(9, 9), (10, 10), (11, 10)] {
        let aws = FakeAws::bare_cases();
        aws.set("MAX_DELETIONS", "10");
        (0..keys).for_each(|n| {
            drop(aws.world().put_key(
                &machine_name("old", EXECUTOR, start() - minutes(3000), n),
                minutes(3000),
            ))
        });
        aws.run(&super::event("direct-sweep")).expect("safe");
        assert_eq!(aws.ids_of("DeleteKeyPair").len(), first_pass);
        for _ in 0..2 {
            aws.advance(seconds(60));
            aws.run(&super::event("direct-sweep")).expect("safe");
        }
        assert_eq!(aws.world().ec2.key_pairs.len(), 0);
    }
}

fn put_addresses(w: &mut World) {
    w.put_address("eipalloc-1", Some(M1));
    w.put_address("eipalloc-2", Some(M2));
    w.put_address("eipalloc-3", None);
    let held = w.put_address("eipalloc-4", Some(M1));
    held.association_id = Some("eipassoc-4".into());
    held.instance_id = Some(M2.into());
    held.network_interface_id = Some("eni-4".into());
}

#[test]
fn lc_49_an_address_that_the_next_manager_is_about_to_take() {
    for state in [
        InstanceState::Pending,
        InstanceState::Running,
        InstanceState::Stopped,
    ] {
        check(Case {
            world: &|w| {
                put_addresses(w);
                w.instance_mut(M2).state = state;
            },
            did: &["ReleaseAddress AllocationId=eipalloc-1"],
            never: &[
                "ReleaseAddress eipalloc-2",
                "ReleaseAddress eipalloc-3",
                "ReleaseAddress eipalloc-4",
                "DisassociateAddress",
                "ReleaseAddress PublicIp",
            ],
            ..case("sqs-termination-hook")
        });
    }
}

#[test]
fn lc_50_what_happens_between_the_look_and_the_release() {
    let codes = [
        "InvalidIPAddress.InUse",
        "InvalidAddress.Locked",
        "InvalidAddress.PtrSet",
        "InvalidAllocationID.NotFound",
        "AuthFailure",
        "OperationNotPermitted",
    ];
    let faults = codes
        .iter()
        .enumerate()
        .map(|(n, code)| {
            Fault::Code(code)
                .on("ReleaseAddress")
                .naming(&format!("eipalloc-{n}"))
        })
        .collect();
    let story = check(Case {
        world: &|w| {
            for n in 0..8 {
                w.put_address(&format!("eipalloc-{n}"), Some(M1));
            }
        },
        faults,
        before: &|aws, _| {
            if aws.touched("eipalloc-7", "ReleaseAddress") {
                aws.world().ec2.addresses.remove("eipalloc-3");
            }
        },
        did: &[
            "ReleaseAddress AllocationId=eipalloc-6",
            "ReleaseAddress AllocationId=eipalloc-7",
        ],
        never: &["ReleaseAddress PublicIp"],
        log: &[
            (
                "WARN",
                "EC2 refuses to delete it eipalloc-0 InvalidIPAddress.InUse",
            ),
            (
                "WARN",
                "EC2 refuses to delete it eipalloc-1 InvalidAddress.Locked",
            ),
            (
                "WARN",
                "EC2 refuses to delete it eipalloc-2 InvalidAddress.PtrSet",
            ),
            ("WARN", "gone already eipalloc-3"),
            ("WARN", "EC2 refuses to delete it eipalloc-4 AuthFailure"),
        ],
        ..case("sqs-termination-hook")
    });
    assert!(
        story.aws.world().queues[DEAD_LETTER_QUEUE].sent.is_empty(),
        "a refused address is no failure of the task"
    );
}

/// An address outside the Region's own border group is released there.
#[test]
fn lc_50_an_address_in_a_local_zone() {
    check(Case {
        world: &|w| {
            w.put_address("eipalloc-1", Some(M1)).network_border_group = "eu-west-1-lhr-1".into()
        },
        did: &["ReleaseAddress AllocationId=eipalloc-1 NetworkBorderGroup=eu-west-1-lhr-1"],
        ..case("sqs-termination-hook")
    });
}

/// What a service manages is nobody's to release, whatever its tags say.
#[test]
fn lc_50_an_address_of_a_service() {
    for bound in ["service", "association", "interface"] {
        check(Case {
            world: &|w| {
                let address = w.put_address("eipalloc-1", Some(M1));
                match bound {
                    "service" => address.service_managed = Some("alb".into()),
                    "association" => address.association_id = Some("eipassoc-1".into()),
                    _ => address.network_interface_id = Some("eni-1".into()),
                }
            },
            never: &["ReleaseAddress"],
            ..case("sqs-termination-hook")
        });
    }
}
