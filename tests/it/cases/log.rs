//! The log: safe to read, and nothing in it that should not be.

use super::{Case, Reply, Story, case, check, event, play, story::Play};
use crate::fake_aws::*;
use serde_json::{Value, json};

const SECRET: &str = "s3cr3t-0a1b2c3d4e5f";

/// The hook's message with these fields beside it.
fn message_with(fields: &[(&str, Value)]) -> String {
    let mut payload: Value = serde_json::from_str(&event("sqs-termination-hook")).unwrap();
    let mut body: Value =
        serde_json::from_str(payload["Records"][0]["body"].as_str().unwrap()).unwrap();
    for (key, value) in fields {
        body[key] = value.clone();
    }
    payload["Records"][0]["body"] = body.to_string().into();
    payload.to_string()
}

fn told(story: &Story) -> String {
    story
        .log
        .iter()
        .map(|l| l.raw.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn lc_65_large_bodies_and_short_lines() {
    let mut sizes = vec![message_with(&[]), event("sqs-termination-huge-body")];
    // Just under a mebibyte, the largest message that SQS takes.
    sizes.push(message_with(&[(
        "NotificationMetadata",
        json!("é".repeat(500_000)),
    )]));
    for payload in sizes {
        let story = check(Case {
            payload,
            did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
            ..case("sqs-termination-hook")
        });
        assert!(
            story
                .deliveries
                .iter()
                .all(|d| d.reply.as_ref().unwrap().to_string().len() < 200)
        );
    }
    // Unreadable and huge: buried whole, told in 200 characters.
    let aws = FakeAws::cases();
    let body = format!("not json {}", "y".repeat(900_000));
    let mut payload: Value = serde_json::from_str(&event("poison-body-not-json")).unwrap();
    payload["Records"][0]["body"] = body.clone().into();
    let story = play(
        aws,
        &payload.to_string(),
        &Play {
            seconds: 300,
            before: &|_, _| {},
            most: 1,
        },
    );
    assert_eq!(
        story.aws.world().queues[DEAD_LETTER_QUEUE].sent[0].body,
        body
    );
    assert!(story.has_line("ERROR", "unreadable: \"body_bytes\":900009"));
    assert!(story.log.iter().all(|l| l.raw.len() < 2048));
}

/// Wherever a secret stands in an event, the log doesn't have it, at any level.
#[test]
fn lc_65_secrets_of_events_stay_out_of_the_log() {
    for key in [
        "LifecycleActionToken",
        "NotificationMetadata",
        "RequestId",
        "SomethingNew",
    ] {
        let story = check(Case {
            payload: message_with(&[(key, json!(SECRET))]),
            ..case("sqs-termination-hook")
        });
        assert!(!told(&story).contains(SECRET), "{key}");
    }
    for name in [
        "sqs-termination-eventbridge",
        "sqs-termination-sns",
        "direct-termination",
        "sns-termination",
    ] {
        let payload = event(name).replace("7b1d5c02-3f0e-4a57-9c44-0e6f1c2d3a01", SECRET);
        let first = if name.starts_with("sqs") {
            Reply::Fail(&[1])
        } else {
            Reply::Ok
        };
        let story = check(Case {
            payload,
            first,
            ..case(name)
        });
        assert!(!told(&story).contains(SECRET), "{name}");
    }
}

/// An unreadable body is shown from its beginning; a token further in isn't, and one of another message never.
#[test]
fn lc_65_an_unreadable_body_is_never_shown_whole() {
    for name in [
        "poison-id-null",
        "poison-body-array",
        "poison-keys-lower-camel",
        "poison-detail-missing",
    ] {
        let story = check(Case {
            first: Reply::Ok,
            ..case(name)
        });
        assert!(!told(&story).contains(TOKEN), "{name}");
    }
}

#[test]
fn lc_65_command_output_is_never_shown_whole() {
    let line = format!(
        "lifecycle-reaper: stopped unit=gitlab-runner.service {}{SECRET}",
        "x".repeat(300)
    );
    for output in [
        format!("{SECRET}\n{line}\n{SECRET}\n"),
        format!("{SECRET}\nlifecycle-reaper: stopped jobs=0\n"),
    ] {
        let story = check(Case {
            world: &|w| {
                w.ssm.usual_fate = Some(Fate {
                    output: output.clone(),
                    ..Fate::says("")
                })
            },
            did: &["CompleteLifecycleAction M1"],
            ..case("sqs-termination-hook")
        });
        assert!(!told(&story).contains(SECRET));
    }
}

#[test]
fn lc_65_the_environment_stays_out_of_the_log() {
    let aws = FakeAws::cases();
    aws.set("AWS_SECRET_ACCESS_KEY", SECRET);
    aws.set("AWS_SESSION_TOKEN", SECRET);
    let story = play(
        aws,
        &event("sqs-termination-hook"),
        &Play {
            seconds: 300,
            before: &|_, _| {},
            most: 60,
        },
    );
    assert!(!told(&story).contains(SECRET) && !told(&story).contains("AKIDINVENTED"));
}

/// Whatever comes from outside leaves as ASCII on one line: names, tags, messages of AWS, the document's words.
#[test]
fn lc_65_control_characters_and_directions_are_escaped() {
    let odd = "a\u{202e}b\u{2066}c\u{200f}d\re\nf\u{1b}[31mg\u{0}h\u{7f}i\u{85}j\u{2028}k\u{feff}l😈m\"n\\o";
    let poison = |body: Value| {
        let mut payload: Value = serde_json::from_str(&event("poison-body-not-json")).unwrap();
        payload["Records"][0]["body"] = body;
        payload.to_string()
    };
    let payloads = [
        message_with(&[("AutoScalingGroupName", json!(odd))]),
        message_with(&[("LifecycleHookName", json!(odd))]),
        message_with(&[("EC2InstanceId", json!(odd))]),
        message_with(&[("LifecycleTransition", json!(odd))]),
        poison(json!(odd)),
        poison(json!(
            json!({ "detail-type": odd, "source": odd, "region": "eu-west-1" }).to_string()
        )),
        json!({ "action": odd }).to_string(),
        json!({ "Service": odd }).to_string(),
        json!({ "Records": [{ "eventSource": odd, "messageId": odd }] }).to_string(),
    ];
    for payload in payloads {
        let story = play(
            FakeAws::cases(),
            &payload,
            &Play {
                seconds: 300,
                before: &|_, _| {},
                most: 1,
            },
        );
        assert!(!story.log.is_empty(), "{payload}");
        for line in &story.log {
            assert!(
                line.raw.bytes().all(|b| (0x20..0x7f).contains(&b)) && line.raw.len() < 2048,
                "{}",
                line.raw
            );
        }
    }
    check(Case {
        world: &|w| {
            // What XML can't hold, no tag can.
            w.put_worker(
                Worker::of(&odd.replace(['\u{0}', '\u{1b}', '\u{7f}'], ""), W8).age(minutes(180)),
            );
            w.ssm.usual_fate = Some(Fate {
                output: format!(
                    "lifecycle-reaper: stopped {}\n",
                    odd.replace(['\n', '\r'], " ")
                ),
                ..Fate::says("")
            });
        },
        faults: vec![
            Fault::CodeAndMessage(
                "SomethingNew",
                odd.repeat(100).replace(['\u{0}', '\u{1b}', '\u{7f}'], " "),
            )
            .on("TerminateInstances")
            .times(1),
        ],
        did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
        ..case("sqs-termination-hook")
    });
}

/// Long lines stay one JSON object of less than 2 KiB.
#[test]
fn lc_65_long_names_and_messages() {
    for letter in ["n", "é", "\\", "\"", "😈", "\u{1}"] {
        let long = letter.repeat(60_000 / letter.len());
        for payload in [
            message_with(&[("AutoScalingGroupName", json!(long))]),
            message_with(&[("EC2InstanceId", json!(long))]),
            json!({ "action": long }).to_string(),
        ] {
            let story = play(
                FakeAws::cases(),
                &payload,
                &Play {
                    seconds: 300,
                    before: &|_, _| {},
                    most: 1,
                },
            );
            assert!(
                story
                    .log
                    .iter()
                    .all(|l| l.raw.len() < 2048 && l.raw.is_ascii())
            );
        }
    }
    // A group of AWS's longest name that is ours.
    let name = "g".repeat(255);
    check(Case {
        world: &|w| {
            w.groups.clear();
            w.put_group(&name, HOOK);
            w.put_manager(&name, M1, minutes(240));
            w.open_hook(&name, HOOK, M1, TOKEN);
        },
        config: &[("AUTO_SCALING_GROUPS", &name)],
        payload: message_with(&[("AutoScalingGroupName", json!(name))]),
        did: &["CompleteLifecycleAction M1"],
        ..case("sqs-termination-hook")
    });
}

/// Every reply to a direct invocation is small, and never the event.
#[test]
fn lc_65_no_reply_holds_the_event() {
    for name in [
        "direct-termination",
        "direct-sweep",
        "direct-terminate-successful",
        "direct-launch",
        "poison-string",
        "poison-array",
        "sns-termination",
    ] {
        let payload = event(name).replace("eu-west-1a", SECRET);
        let reply = FakeAws::cases().run(&payload).expect("a reply").to_string();
        assert!(
            !reply.contains(SECRET) && !reply.contains(TOKEN) && reply.len() < 4096,
            "{name}: {reply}"
        );
    }
}
