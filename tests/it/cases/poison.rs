//! Selectors that would be too wide, and settings that would be.

use super::{Case, Reply, case, check, event};
use crate::fake_aws::*;
use lifecycle_reaper::config::Config;
use serde_json::{Value, json};

/// The hook's message with one field changed.
fn with(key: &str, value: &Value) -> String {
    let mut payload: Value = serde_json::from_str(&event("sqs-termination-hook")).unwrap();
    let mut body: Value =
        serde_json::from_str(payload["Records"][0]["body"].as_str().unwrap()).unwrap();
    body[key] = value.clone();
    payload["Records"][0]["body"] = body.to_string().into();
    payload.to_string()
}

#[test]
fn lc_09_ids_that_are_none() {
    let odd = [
        json!(null),
        json!(""),
        json!(" "),
        json!("*"),
        json!("?"),
        json!("i-*"),
        json!("i-"),
        json!("i-0a11aa11aa11aa11?"),
        json!("I-0A11AA11AA11AA110"),
        json!("i-0A11aa11aa11aa110"),
        json!("i-0a11aa11aa11aa11"),
        json!("i-0a11aa11aa11aa1100"),
        json!("i-1a2b3c4"),
        json!("i-1a2b3c4d5"),
        json!(" i-0a11aa11aa11aa110"),
        json!("i-0a11aa11aa11aa110\n"),
        json!("i-0a11aa11aa11aa110\u{0}"),
        json!("i-0a11aa11aa11aa11g"),
        json!("i-０a11aa11aa11aa110"),
        json!("mi-0a11aa11aa11aa110"),
        json!("i-0a11aa11aa11aa110,i-0a22aa22aa22aa220"),
        json!("i-0a11aa11aa11aa110\" OR \"1\"=\"1"),
        json!("$(reboot)"),
        json!(0),
        json!(1.5),
        json!(true),
        json!([M1]),
        json!({"id": M1}),
        json!("i-0a11aa11aa11aa110".repeat(4000)),
    ];
    for id in odd {
        let story = check(Case {
            payload: with("EC2InstanceId", &id),
            first: Reply::Ok,
            times: &[("SendMessage", 1)],
            log: &[("ERROR", "unreadable: EC2InstanceId")],
            ..case("sqs-termination-hook")
        });
        assert_eq!(story.aws.all_calls().len(), 1, "{id}");
        assert!(story.log.iter().all(|line| line.raw.len() < 1500));
    }
    for name in [
        "poison-id-null",
        "poison-id-missing",
        "poison-id-empty",
        "poison-id-wildcard",
        "poison-id-upper-case",
    ] {
        let aws = FakeAws::cases();
        assert_eq!(
            aws.run(&event(name)).expect("acknowledged"),
            json!({ "batchItemFailures": [] })
        );
        assert!(aws.writes().is_empty());
    }
}

#[test]
fn lc_09_an_old_short_id_is_one() {
    check(Case {
        world: &|w| {
            w.put_manager(GROUP, "i-1a2b3c4d", minutes(200));
            w.open_hook(GROUP, HOOK, "i-1a2b3c4d", TOKEN);
            w.put_worker(Worker::of("i-1a2b3c4d", W8));
        },
        did: &[
            "SendCommand i-1a2b3c4d",
            "CompleteLifecycleAction i-1a2b3c4d",
            "TerminateInstances W8",
        ],
        never: &["TerminateInstances W1"],
        ..case("sqs-termination-short-id")
    });
}

/// Groups and hooks are compared, never searched for.
#[test]
fn lc_09_names_that_are_none() {
    for key in ["AutoScalingGroupName", "LifecycleHookName"] {
        for value in [
            json!(null),
            json!(""),
            json!(7),
            json!([GROUP]),
            json!({"a": 1}),
        ] {
            let story = check(Case {
                payload: with(key, &value),
                first: Reply::Ok,
                times: &[("SendMessage", 1)],
                log: &[("ERROR", &format!("unreadable: {key}"))],
                ..case("sqs-termination-hook")
            });
            assert_eq!(story.aws.all_calls().len(), 1);
        }
        for value in [
            "*",
            "ci-linux",
            "ci-linux-asg ",
            "CI-LINUX-ASG",
            "ci-linux-asg*",
            "ci-linux-terminate ",
            "xci-linux-terminate",
        ] {
            let story = check(Case {
                payload: with(key, &json!(value)),
                first: Reply::Ok,
                log: &[("INFO", "ignored")],
                no_log: &[("ERROR", "")],
                ..case("sqs-termination-hook")
            });
            assert!(story.aws.all_calls().is_empty(), "{key} {value}");
        }
    }
}

#[test]
fn lc_09_an_executor_name_that_would_match_everything() {
    for variable in ["EXECUTOR_NAME", "NAME_EXECUTOR_INSTANCE"] {
        for name in [
            "", " ", "\t", "*", "ci*", "?", "c?i", "ci linux", "ci/linux", "läufer", "ci,linux",
        ] {
            let vars = [
                ("AUTO_SCALING_GROUPS", GROUP),
                ("DRAIN", "off"),
                (variable, name),
            ]
            .map(|(k, v)| (k.to_owned(), v.to_owned()));
            let errors =
                Config::from_vars(vars).expect_err(&format!("{variable}={name:?} must be refused"));
            assert!(
                errors.0.len() == 1 && errors.0[0].variable == variable,
                "{errors}"
            );
        }
    }
}

/// Without a name, what only a name speaks for is not touched.
#[test]
fn lc_09_without_an_executor_name_names_prove_nothing() {
    check(Case {
        world: &|w| {
            w.put_machine_key("old", EXECUTOR, minutes(3000));
            w.put_spot(
                "sir-1",
                "open",
                Some(&machine_name("old", EXECUTOR, start() - minutes(3000), 1)),
                minutes(3000),
            );
            w.put_worker(Worker::of(M1, W8).untagged().age(minutes(3000)));
        },
        config: &[("EXECUTOR_NAME", "")],
        did: &["TerminateInstances W1", "TerminateInstances W2"],
        never: &[
            "DeleteKeyPair",
            "CancelSpotInstanceRequests",
            "TerminateInstances W8",
        ],
        ..case("sqs-termination-hook")
    });
}

/// A body of any size that SQS takes is buried, with the reason where there is room for it; and so is one that no
/// message can hold as it is.
#[test]
fn lc_65_unreadable_bodies_of_any_size_are_buried() {
    const LARGEST: usize = 1_048_576;
    for (size, has_reason) in [
        (1, true),
        (LARGEST - 10_000, true),
        (LARGEST - 1, false),
        (LARGEST, false),
    ] {
        let mut payload: Value = serde_json::from_str(&event("poison-body-not-json")).unwrap();
        payload["Records"][0]["body"] = "x".repeat(size).into();
        let aws = FakeAws::cases();
        let reply = aws.run(&payload.to_string()).expect("a reply");
        assert_eq!(reply, json!({ "batchItemFailures": [] }), "{size} bytes");
        let sent = aws.world().queues[DEAD_LETTER_QUEUE].sent.clone();
        assert_eq!((sent.len(), sent[0].body.len()), (1, size));
        assert_eq!(sent[0].attributes.contains_key("Reason"), has_reason);
    }
    // Through a topic a message may hold what SQS doesn't take.
    for odd in ["a\u{0}b", "\u{1b}[31m", "\u{fffe}", "\u{ffff}", "\u{b}"] {
        let payload =
            json!({ "Records": [{ "EventSource": "aws:sns", "Sns": { "Message": odd } }] });
        let aws = FakeAws::cases();
        aws.run(&payload.to_string()).expect("buried");
        let sent = aws.world().queues[DEAD_LETTER_QUEUE].sent.clone();
        assert!(sent[0].body.contains('\u{fffd}'), "{odd:?}");
    }
    for plain in ["tab\t", "line\r\n", "ä\u{85}\u{7f}", "🚀"] {
        let payload =
            json!({ "Records": [{ "EventSource": "aws:sns", "Sns": { "Message": plain } }] });
        let aws = FakeAws::cases();
        aws.run(&payload.to_string()).expect("buried");
        assert_eq!(aws.world().queues[DEAD_LETTER_QUEUE].sent[0].body, plain);
    }
}
