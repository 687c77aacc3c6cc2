//! Batches and replies: each record by its own, in the one shape that Lambda takes.

use super::{Case, Reply, case, check, event, termination_of};
use crate::fake_aws::*;

/// The managers of `batch-ten-managers`, each waiting in its hook.
pub fn put_ten_managers(w: &mut World) -> Vec<String> {
    let ids: Vec<String> = (0..10)
        .map(|n| format!("i-0c{n:02}cccccccccccc0"))
        .collect();
    for id in &ids {
        w.put_manager(GROUP, id, minutes(200));
        w.open_hook(GROUP, HOOK, id, TOKEN);
    }
    ids
}

#[test]
fn lc_01_no_message_is_ever_sent_to_the_queue_that_triggers() {
    let story = check(Case {
        world: &|w| {
            (0..20).for_each(|_| w.ssm.fates.push_back(Fate::says("busy").after(minutes(2))));
            w.ssm.usual_fate = Some(Fate::says("stopped"));
        },
        config: &[("DRAIN_TIMEOUT_SECONDS", "2400")],
        did: &[
            "CompleteLifecycleAction M1",
            "TerminateInstances W1",
            "TerminateInstances W2",
        ],
        never: &["SendMessage"],
        log: &[
            (
                "WARN",
                "released undrained: deadline DRAIN_TIMEOUT_SECONDS \"delivery\":",
            ),
            ("WARN", "M1"),
        ],
        ..case("sqs-termination-hook")
    });
    let waited = story.aws.calls("CompleteLifecycleAction")[0].at - start();
    assert!(
        (minutes(38)..=minutes(40)).contains(&waited),
        "released after {waited}"
    );
}

/// A direct invocation is put on the queue once; from there it is a record, and no second message follows.
#[test]
fn lc_01_a_direct_event_is_sent_once() {
    for name in ["direct-termination", "sns-termination"] {
        let story = check(Case {
            first: Reply::Ok,
            times: &[("SendMessage", 1)],
            did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
            ..case(name)
        });
        let body = story.aws.world().queues[WORK_QUEUE].sent[0].body.clone();
        assert!(serde_json::from_str::<serde_json::Value>(&body).is_ok());
        assert!(story.deliveries.len() > 3);
    }
}

/// The queue that is deployed in place of ours, or none: the function says that it failed.
#[test]
fn lc_14_an_asynchronous_invocation_that_fails_says_so() {
    for name in ["direct-termination", "sns-termination"] {
        let story = check(Case {
            config: &[("WORK_QUEUE_URL", "")],
            faults: vec![Fault::ServerError.on("SendCommand")],
            first: Reply::Err,
            last: Reply::Err,
            never: &["CompleteLifecycleAction", "TerminateInstances"],
            log: &[("ERROR", "not done: drain command sent")],
            ..case(name)
        });
        // Lambda tries twice more.
        assert_eq!(story.deliveries.len(), 3);
        let error = story.deliveries[0]
            .reply
            .as_ref()
            .expect_err("an error")
            .to_string();
        assert!(
            error.contains("is not finished and not on a queue"),
            "{error}"
        );
    }
    check(Case {
        world: &|w| {
            w.end_instance(M1, w.now());
            w.groups.get_mut(GROUP).unwrap().members.remove(M1);
        },
        config: &[("WORK_QUEUE_URL", "")],
        faults: vec![Fault::ServerError.on("TerminateInstances").times(5)],
        first: Reply::Err,
        last: Reply::Err,
        ..case("direct-terminate-successful")
    });
}

#[test]
fn lc_14_a_queue_that_refuses_is_no_queue() {
    for fault in [
        Fault::Denied,
        Fault::Code("QueueDoesNotExist"),
        Fault::Hanging,
        Fault::Refused,
    ] {
        check(Case {
            faults: vec![fault.on("SendMessage")],
            first: Reply::Err,
            last: Reply::Err,
            log: &[("ERROR", "not on the work queue")],
            ..case("direct-termination")
        });
    }
    // Tried again by Lambda, it gets there.
    check(Case {
        faults: vec![Fault::Denied.on("SendMessage").nth(1)],
        first: Reply::Err,
        did: &["CompleteLifecycleAction M1"],
        ..case("direct-termination")
    });
}

#[test]
fn lc_15_a_poison_record_in_a_batch() {
    let story = check(Case {
        world: &|w| w.open_hook(GROUP, HOOK, M2, "another-token"),
        first: Reply::Fail(&[1, 5]),
        did: &[
            "CompleteLifecycleAction M1",
            "CompleteLifecycleAction M2",
            "TerminateInstances W1",
            "TerminateInstances W3",
        ],
        log: &[(
            "ERROR",
            "unreadable: not JSON a0000000-0000-4000-8000-000000000002 \"body_bytes\":15",
        )],
        times: &[("SendMessage", 1)],
        ..case("batch-mixed")
    });
    let dead = &story.aws.world().queues[DEAD_LETTER_QUEUE].sent;
    assert_eq!((dead.len(), dead[0].body.as_str()), (1, "not json at all"));
}

#[test]
fn lc_15_poison_that_can_not_be_buried_stays_listed() {
    let good_and_poison = |aws: &FakeAws, payload: &str| aws.run(payload).expect("a reply");
    for (variable, fault) in [
        ("DEAD_LETTER_QUEUE_URL", None),
        ("", Some(Fault::Denied)),
        ("", Some(Fault::Hanging)),
    ] {
        let aws = FakeAws::cases();
        aws.unset(variable);
        fault
            .into_iter()
            .for_each(|f| aws.inject(f.on("SendMessage")));
        let reply = good_and_poison(&aws, &event("poison-body-not-json"));
        let failures = reply["batchItemFailures"].as_array().unwrap();
        assert_eq!(failures.len(), 1, "{variable}");
    }
}

#[test]
fn lc_20_every_record_of_a_batch_is_handled() {
    let story = check(Case {
        world: &|w| drop(put_ten_managers(w)),
        first: Reply::Fail(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        faults: vec![
            Fault::Throttled
                .on("SendCommand")
                .naming("i-0c02cccccccccccc0")
                .times(5),
        ],
        times: &[("CompleteLifecycleAction", 10)],
        ..case("batch-ten-managers")
    });
    assert_eq!(story.aws.accepted("SendCommand"), 10);
}

#[test]
fn lc_20_only_the_record_that_fails_comes_again() {
    check(Case {
        world: &|w| {
            for (n, id) in put_ten_managers(w).iter().enumerate() {
                if n != 2 {
                    w.end_instance(id, w.now() - minutes(2));
                    let group = w.groups.get_mut(GROUP).unwrap();
                    group.members.remove(id);
                    group.actions.retain(|a| a.instance_id != *id);
                }
            }
            w.settle();
            w.ec2.instances.retain(|id, _| !id.starts_with("i-0b"));
            w.ec2.key_pairs.clear();
        },
        first: Reply::Fail(&[3]),
        faults: vec![Fault::Throttled.on("SendCommand").times(5)],
        log: &[
            ("INFO", "batch: ok=9 retry=1"),
            (
                "ERROR",
                "not done: drain command sent i-0c02cccccccccccc0 ThrottlingException",
            ),
        ],
        ..case("batch-ten-managers")
    });
}

#[test]
fn lc_54_a_panic_is_one_records_failure() {
    let story = check(Case {
        world: &|w| w.open_hook(GROUP, HOOK, M2, "another-token"),
        faults: vec![
            Fault::Panics
                .on("DescribeAutoScalingInstances")
                .naming(M1)
                .times(1),
        ],
        first: Reply::Fail(&[1, 5]),
        did: &[
            "SendCommand M2",
            "CompleteLifecycleAction M1",
            "CompleteLifecycleAction M2",
        ],
        log: &[(
            "ERROR",
            "panic: DescribeAutoScalingInstances was told to panic",
        )],
        ..case("batch-mixed")
    });
    let first: Vec<_> = story
        .aws
        .calls("SendCommand")
        .into_iter()
        .filter(|c| c.run == 1)
        .collect();
    assert!(
        first.len() == 1 && first[0].request.names(M2),
        "M2 was drained in the same invocation"
    );
}

#[test]
fn lc_54_a_panic_anywhere_is_survived() {
    for operation in [
        "ListCommands",
        "SendCommand",
        "RecordLifecycleActionHeartbeat",
        "CompleteLifecycleAction",
        "TerminateInstances",
        "DescribeKeyPairs",
        "DescribeAutoScalingGroups",
        "DeleteKeyPair",
    ] {
        check(Case {
            faults: vec![Fault::Panics.on(operation).nth(1)],
            did: &[
                "CompleteLifecycleAction M1",
                "TerminateInstances W1",
                "TerminateInstances W2",
            ],
            log: &[("ERROR", &format!("panic: {operation} was told to panic"))],
            ..case("sqs-termination-hook")
        });
    }
    // Beside the passes: the message's own visibility, and the dead letters.
    let aws = FakeAws::cases();
    aws.inject(Fault::Panics.on("SendMessage"));
    assert!(
        aws.run(&event("poison-body-not-json")).is_err(),
        "nothing is acknowledged"
    );
}

#[test]
fn lc_55_the_shape_of_the_failure_list() {
    let aws = FakeAws::cases();
    let reply = aws
        .run(&event("sqs-termination-ninth-delivery"))
        .expect("a reply");
    let id = serde_json::from_str::<serde_json::Value>(&event("sqs-termination-ninth-delivery"))
        .unwrap()["Records"][0]["messageId"]
        .clone();
    assert_eq!(
        reply,
        serde_json::json!({ "batchItemFailures": [{ "itemIdentifier": id }] })
    );
    // Ids are taken to the letter.
    for id in [
        "",
        " ",
        "x",
        "ïd-\u{202e}",
        "00000000-0000-4000-8000-000000000001 ",
    ] {
        let mut payload: serde_json::Value =
            serde_json::from_str(&event("sqs-termination-hook")).unwrap();
        payload["Records"][0]["messageId"] = id.into();
        match FakeAws::cases().run(&payload.to_string()) {
            Err(_) => assert_eq!(
                id, "",
                "an empty identifier would fail the batch and say nothing"
            ),
            Ok(reply) => assert_eq!(reply["batchItemFailures"][0]["itemIdentifier"], id),
        }
    }
    // Records without an id that are done need none.
    let mut payload: serde_json::Value =
        serde_json::from_str(&event("sqs-test-notification")).unwrap();
    payload["Records"][0]["messageId"] = serde_json::Value::Null;
    assert_eq!(
        FakeAws::cases().run(&payload.to_string()).expect("done"),
        serde_json::json!({ "batchItemFailures": [] })
    );
}

/// From one record to more than any batch, and the same id twice.
#[test]
fn lc_55_batches_of_any_size() {
    for size in [1, 2, 9, 10, 11, 30] {
        let ids: Vec<String> = (0..size).map(|n| format!("i-0d{n:015x}")).collect();
        let aws = FakeAws::bare_cases();
        for id in &ids {
            aws.world().put_manager(GROUP, id, minutes(200));
            aws.world().open_hook(GROUP, HOOK, id, TOKEN);
        }
        let payload = termination_of(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        let reply = aws.run(&payload).expect("a reply");
        assert_eq!(reply["batchItemFailures"].as_array().unwrap().len(), size);
        assert_eq!(aws.accepted("SendCommand"), size);
    }
}

/// Two records under one id: listed once, and as long as one of them isn't done.
#[test]
fn lc_55_one_id_for_two_records() {
    let mut payload: serde_json::Value =
        serde_json::from_str(&event("batch-duplicates")).expect("JSON");
    for (second, listed) in [("same", 1), ("poison", 1), ("ignored", 1)] {
        payload["Records"][1]["messageId"] = payload["Records"][0]["messageId"].clone();
        match second {
            "poison" => payload["Records"][1]["body"] = "text".into(),
            "ignored" => payload["Records"][1]["body"] = r#"{"Service":"x"}"#.into(),
            _ => {}
        }
        let reply = FakeAws::cases().run(&payload.to_string()).expect("a reply");
        let failures = reply["batchItemFailures"].as_array().expect("a list");
        assert_eq!(failures.len(), listed, "{second}: {reply}");
    }
}
