//! Events of every kind, source and type: acted upon, ignored or buried, and never lost.

use super::{Case, Reply, case, check, event};
use crate::fake_aws::*;
use serde_json::{Value, json};

/// Every detail-type beside ours, and ours from every source.
#[test]
fn every_kind_of_event_from_every_source() {
    let foreign = [
        "EC2 Instance Launch Successful",
        "EC2 Instance Launch Unsuccessful",
        "EC2 Instance-launch Lifecycle Action",
        "EC2 Auto Scaling Instance Refresh Started",
        "EC2 Instance Rebalance Recommendation",
        "EC2 Command Status-change Notification",
        "AWS Health Event",
        "AWS API Call via CloudTrail",
        "AWS Service Event via CloudTrail",
        "EC2 Spot Instance Request Fulfillment",
        "EC2 Fleet Instance Change",
        "Object Created",
        "ec2 instance-terminate lifecycle action",
        "",
        "🚀",
    ];
    for kind in foreign {
        for source in [
            "aws.autoscaling",
            "aws.ec2",
            "aws.ssm",
            "aws.health",
            "mine",
            "",
        ] {
            let payload = json!({ "detail-type": kind, "source": source, "region": "eu-west-1", "detail": { "EC2InstanceId": M1, "instance-id": M1, "AutoScalingGroupName": GROUP, "LifecycleHookName": HOOK } });
            let story = check(Case {
                payload: payload.to_string(),
                first: Reply::Ok,
                log: &[("INFO", "ignored:")],
                no_log: &[("ERROR", "")],
                ..case("direct-sweep")
            });
            assert!(story.aws.all_calls().is_empty(), "{kind} of {source}");
        }
    }
    // Our kinds under another service's name.
    for name in [
        "direct-termination",
        "direct-terminate-successful",
        "direct-instance-terminated",
        "direct-spot-interruption",
        "direct-scheduled-sweep",
    ] {
        for source in ["aws.s3", "com.example", "autoscaling.aws"] {
            let mut payload: Value = serde_json::from_str(&event(name)).unwrap();
            payload["source"] = source.into();
            let aws = FakeAws::cases();
            assert_eq!(
                aws.run(&payload.to_string()).expect("ignored")["outcome"],
                "Ignored",
                "{name} of {source}"
            );
            assert!(aws.all_calls().is_empty());
        }
    }
}

/// Every transition but ours, on the queue and on EventBridge.
#[test]
fn every_lifecycle_transition() {
    for transition in [
        "autoscaling:EC2_INSTANCE_LAUNCHING",
        "autoscaling:TEST_NOTIFICATION",
        "autoscaling:EC2_INSTANCE_TERMINATE",
        "autoscaling:ec2_instance_terminating",
        "",
        "x",
    ] {
        let payload = event("sqs-termination-hook")
            .replace("autoscaling:EC2_INSTANCE_TERMINATING", transition);
        let story = check(Case {
            payload,
            first: Reply::Ok,
            log: &[("INFO", "ignored:")],
            ..case("sqs-termination-hook")
        });
        assert!(story.aws.all_calls().is_empty(), "{transition}");
    }
}

/// What a command's end may say, and of whom.
#[test]
fn every_end_of_a_command() {
    let base: Value = serde_json::from_str(
        serde_json::from_str::<Value>(&event("sqs-command-ended")).unwrap()["Records"][0]["body"]
            .as_str()
            .unwrap(),
    )
    .unwrap();
    for (status, wakes) in [
        ("Success", true),
        ("Failed", true),
        ("TimedOut", true),
        ("Cancelled", true),
        ("Terminated", true),
        ("Undeliverable", true),
        ("SomethingNew", true),
        ("", true),
        ("Pending", false),
        ("InProgress", false),
        ("Delayed", false),
        ("Cancelling", false),
    ] {
        let mut payload = base.clone();
        payload["detail"]["status"] = status.into();
        let aws = FakeAws::cases();
        aws.run(&payload.to_string()).expect("safe");
        assert_eq!(!aws.all_calls().is_empty(), wakes, "{status}");
    }
    for document in [
        "AWS-RunShellScript",
        "lifecycle-reaper-drain-2",
        "drain",
        "",
    ] {
        let mut payload = base.clone();
        payload["detail"]["document-name"] = document.into();
        let aws = FakeAws::cases();
        assert_eq!(
            aws.run(&payload.to_string()).expect("safe")["outcome"],
            "Ignored",
            "{document:?}"
        );
        assert!(aws.all_calls().is_empty(), "{document:?}");
    }
    // A worker's command, and one of an instance that isn't terminating: nothing is done about it.
    for id in [W1, M2, LONG_GONE] {
        let mut payload = base.clone();
        payload["detail"]["instance-id"] = id.into();
        let aws = FakeAws::cases();
        aws.run(&payload.to_string()).expect("safe");
        assert!(aws.writes().is_empty(), "{id}");
    }
}

/// Fields of the wrong type anywhere: never acted upon, never lost.
#[test]
fn every_field_with_every_wrong_type() {
    let wrong = [
        json!(null),
        json!(0),
        json!(-1.5),
        json!(true),
        json!([]),
        json!({}),
        json!([[]]),
        json!(""),
    ];
    for name in [
        "direct-termination",
        "direct-terminate-successful",
        "direct-instance-terminated",
        "direct-reap",
        "direct-sweep",
    ] {
        let payload: Value = serde_json::from_str(&event(name)).unwrap();
        let mut places: Vec<(Option<&str>, String)> = payload
            .as_object()
            .unwrap()
            .keys()
            .map(|k| (None, k.clone()))
            .collect();
        places.extend(
            payload["detail"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(k, _)| (Some("detail"), k.clone())),
        );
        for (parent, key) in places {
            for value in &wrong {
                let mut payload = payload.clone();
                match parent {
                    Some(parent) => payload[parent][&key] = value.clone(),
                    None => payload[&key] = value.clone(),
                }
                let aws = FakeAws::cases();
                let reply = aws.run(&payload.to_string());
                let reply = reply.unwrap_or_else(|e| panic!("{name} {key}={value}: {e}"));
                let unreadable = reply["outcome"] == "Unreadable";
                assert_eq!(
                    unreadable,
                    !aws.world().queues[DEAD_LETTER_QUEUE].sent.is_empty(),
                    "{name} {key}={value}: {reply}"
                );
                if unreadable {
                    assert_eq!(aws.all_calls().len(), 1);
                }
            }
        }
    }
}

/// Records of any type among good ones: the good ones are done, nothing is acknowledged unread.
#[test]
fn every_odd_record_beside_a_good_one() {
    let good = serde_json::from_str::<Value>(&event("sqs-termination-hook")).unwrap()["Records"][0]
        .clone();
    let with = |key: &str, value: Value| {
        let mut record = good.clone();
        record[key] = value;
        record
    };
    let odd = [
        json!(null),
        json!(7),
        json!("text"),
        json!([]),
        json!({}),
        json!([good]),
        with("body", json!(7)),
        with("body", json!({})),
        with("body", json!(["x"])),
        with("receiptHandle", json!(null)),
        with("eventSourceARN", json!("nonsense")),
        with("eventSourceARN", json!(":::::")),
        with("awsRegion", json!(7)),
        with("eventSource", json!("aws:kinesis")),
        with("attributes", json!([])),
        with(
            "attributes",
            json!({ "ApproximateReceiveCount": -4, "SentTimestamp": "never" }),
        ),
        with(
            "attributes",
            json!({ "ApproximateReceiveCount": "99999999999999999999", "SentTimestamp": "99999999999999999" }),
        ),
        with(
            "attributes",
            json!({ "ApproximateReceiveCount": 1.5, "SentTimestamp": -1 }),
        ),
        with("messageAttributes", json!("x")),
        with("md5OfBody", json!(1)),
    ];
    for record in odd {
        let mut second = good.clone();
        second["messageId"] = "e0000000-0000-4000-8000-000000000002".into();
        second["receiptHandle"] = "AQEBsecond".into();
        let payload = json!({ "Records": [record, second] }).to_string();
        let aws = FakeAws::cases();
        let reply = aws.run(&payload);
        assert_eq!(aws.accepted("SendCommand"), 1, "{record}");
        match reply {
            Ok(reply) => assert!(
                reply["batchItemFailures"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|f| f["itemIdentifier"] == "e0000000-0000-4000-8000-000000000002"),
                "{record}: {reply}"
            ),
            Err(_) => assert!(
                record.get("messageId").and_then(Value::as_str).is_none(),
                "{record}: only a record without an id fails the batch"
            ),
        }
    }
}

/// A clock that is off by minutes changes nothing.
#[test]
fn messages_from_the_future_and_the_past() {
    for sent in [
        "0",
        "1",
        "1741064767100",
        "1741064999999",
        "1741164767100",
        "9999999999999",
        "-5",
        "253402300800000",
    ] {
        let mut payload: Value = serde_json::from_str(&event("sqs-termination-hook")).unwrap();
        payload["Records"][0]["attributes"]["SentTimestamp"] = sent.into();
        check(Case {
            payload: payload.to_string(),
            did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
            ..case("sqs-termination-hook")
        });
    }
}

/// Every shape reaches our own code, which says something about it; a field that nobody reads stops nothing.
#[test]
fn lc_21_every_shape_reaches_us_and_is_told() {
    for name in [
        "sqs-termination-no-attributes",
        "sqs-termination-fifo",
        "sqs-termination-message-attributes",
        "sqs-termination-unknown-fields",
        "direct-termination-bare",
        "direct-termination-bad-time",
    ] {
        let first = if name.starts_with("sqs") {
            Reply::Fail(&[1])
        } else {
            Reply::Ok
        };
        check(Case {
            first,
            did: &[
                "SendCommand M1",
                "CompleteLifecycleAction M1",
                "TerminateInstances W1",
            ],
            log: &[("INFO", "planned: drain M1")],
            ..case(name)
        });
    }
    for name in ["batch-empty", "batch-null"] {
        check(Case {
            first: Reply::Ok,
            log: &[("INFO", "batch: ok=0 retry=0")],
            ..case(name)
        });
    }
    for name in [
        "poison-empty-object",
        "poison-null",
        "poison-array",
        "poison-string",
        "poison-body-missing",
    ] {
        check(Case {
            first: Reply::Ok,
            log: &[("ERROR", "unreadable:")],
            ..case(name)
        });
    }
}

/// Whatever envelopes a message comes in, the same calls follow, and no address in them is fetched.
#[test]
fn lc_42_envelopes_change_nothing() {
    let calls = |name: &str| {
        let story = check(case(name));
        let calls = story.aws.all_calls();
        assert!(
            calls
                .iter()
                .all(|c| c.request.host.ends_with(".amazonaws.com")),
            "{name}"
        );
        let is_of_queue = |c: &&Call| c.operation() == "ChangeMessageVisibility";
        let of_aws = calls.iter().filter(|c| !is_of_queue(c));
        of_aws.map(|c| c.request.to_string()).collect::<Vec<_>>()
    };
    let plain = calls("sqs-termination-hook");
    for name in [
        "sqs-termination-eventbridge",
        "sqs-termination-sns",
        "sqs-termination-encoded-twice",
    ] {
        assert_eq!(calls(name), plain, "{name}");
    }
    // Four envelopes are more than anything real; five are refused.
    let mut payload: Value = serde_json::from_str(&event("sqs-termination-hook")).unwrap();
    let mut body = payload["Records"][0]["body"].as_str().unwrap().to_owned();
    for depth in 1..=5 {
        body = json!({ "Type": "Notification", "Message": body }).to_string();
        payload["Records"][0]["body"] = body.clone().into();
        let aws = FakeAws::cases();
        aws.run(&payload.to_string()).expect("a reply");
        assert_eq!(
            aws.accepted("SendCommand") == 1,
            depth < 4,
            "{depth} envelopes"
        );
        assert_eq!(
            aws.world().queues[DEAD_LETTER_QUEUE].sent.len() == 1,
            depth >= 4
        );
    }
}
