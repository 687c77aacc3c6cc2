//! Any event at all: parsed without a panic, acted upon only where it names what is ours, and never lost.

use super::cases;
use crate::{cases::event, fake_aws::*};
use lifecycle_reaper::{
    event::{self, Event, Place},
    incoming::Incoming,
    task::{InstanceId, Task},
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Words that matter to the parser, so that arbitrary JSON gets beyond the first key.
const WORDS: [&str; 40] = [
    "Records",
    "body",
    "messageId",
    "receiptHandle",
    "attributes",
    "ApproximateReceiveCount",
    "SentTimestamp",
    "eventSourceARN",
    "awsRegion",
    "Sns",
    "Message",
    "Type",
    "Notification",
    "detail-type",
    "detail",
    "source",
    "aws.autoscaling",
    "region",
    "eu-west-1",
    "account",
    "123456789012",
    "time",
    "2025-03-04T05:06:07Z",
    "LifecycleTransition",
    "autoscaling:EC2_INSTANCE_TERMINATING",
    "AutoScalingGroupName",
    GROUP,
    "LifecycleHookName",
    HOOK,
    "EC2InstanceId",
    M1,
    "instance-id",
    "state",
    "terminated",
    "action",
    "sweep",
    "reap",
    "instance_id",
    "EC2 Instance-terminate Lifecycle Action",
    "Scheduled Event",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(&WORDS[..]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "i-[0-9a-f]{8,18}",
    ]
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        let object = prop::collection::vec((word(), inner.clone()), 0..8)
            .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>()))
            .boxed();
        prop_oneof![
            3 => object.clone(),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::Array),
            // JSON in a string, as envelopes have it.
            1 => object.prop_map(|value| Value::String(value.to_string())),
        ]
    })
}

/// The names of all sample payloads.
fn names() -> Vec<String> {
    let files =
        std::fs::read_dir(format!("{}/events", env!("CARGO_MANIFEST_DIR"))).expect("a folder");
    let names = files.filter_map(|f| {
        f.expect("a file")
            .file_name()
            .into_string()
            .ok()?
            .strip_suffix(".json")
            .map(str::to_owned)
    });
    let mut names: Vec<String> = names.filter(|n| !n.contains("huge")).collect();
    names.sort();
    names
}

/// One edit of a payload: at the `place`th value, something else, or nothing.
#[derive(Clone, Debug)]
enum Edit {
    Replace(usize, Value),
    Remove(usize),
    Rename(usize, String),
    Bytes(usize, Vec<u8>),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (0..60_usize, json()).prop_map(|(place, value)| Edit::Replace(place, value)),
        2 => (0..60_usize).prop_map(Edit::Remove),
        1 => (0..60_usize, word()).prop_map(|(place, name)| Edit::Rename(place, name)),
        2 => (0..2000_usize, prop::collection::vec(any::<u8>(), 0..6)).prop_map(|(at, bytes)| Edit::Bytes(at, bytes)),
    ]
}

/// Goes through a value and, inside its strings, through the JSON that they hold; edits at the `left`th key.
fn edit_at(value: &mut Value, left: &mut usize, edit: &Edit) {
    match value {
        Value::Object(object) => {
            for key in object.keys().cloned().collect::<Vec<_>>() {
                if *left == 0 {
                    *left = usize::MAX;
                    match edit {
                        Edit::Replace(_, new) => drop(object.insert(key, new.clone())),
                        Edit::Rename(_, name) => {
                            let old = object.remove(&key).unwrap_or_default();
                            object.insert(name.clone(), old);
                        }
                        _ => drop(object.remove(&key)),
                    }
                    return;
                }
                *left -= 1;
                if let Some(inner) = object.get_mut(&key) {
                    edit_at(inner, left, edit);
                }
                if *left == usize::MAX {
                    return;
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| {
            if *left != usize::MAX {
                edit_at(item, left, edit);
            }
        }),
        Value::String(text) => {
            if let Ok(mut inner @ (Value::Object(_) | Value::Array(_))) =
                serde_json::from_str::<Value>(text)
            {
                edit_at(&mut inner, left, edit);
                *text = inner.to_string();
            }
        }
        _ => {}
    }
}

fn edited(payload: &str, edits: &[Edit]) -> String {
    let mut text = payload.to_owned();
    for edit in edits {
        match edit {
            Edit::Bytes(at, bytes) => {
                let mut raw = text.into_bytes();
                let at = at % raw.len().max(1);
                raw.splice(at..(at + bytes.len()).min(raw.len()), bytes.iter().copied());
                text = String::from_utf8_lossy(&raw).into_owned();
            }
            Edit::Replace(place, _) | Edit::Remove(place) | Edit::Rename(place, _) => {
                if let Ok(mut value) = serde_json::from_str::<Value>(&text) {
                    edit_at(&mut value, &mut place.clone(), edit);
                    text = value.to_string();
                }
            }
        }
    }
    text
}

fn place() -> Place {
    Place {
        region: Some("eu-west-1".into()),
        account: Some("123456789012".into()),
    }
}

/// A task names only what is well formed and ours.
fn is_sound(parsed: &Event) -> Result<(), TestCaseError> {
    if let Event::Task(task, _) = parsed {
        if let Some(id) = task.manager() {
            prop_assert!(InstanceId::parse(id.as_str()).is_some());
        }
        if let Task::Terminate { group, hook, .. } = task {
            prop_assert_eq!((group.as_str(), hook.as_str()), (GROUP, HOOK));
        }
    }
    Ok(())
}

fn parse_all(payload: &str) -> Result<(), TestCaseError> {
    let config = FakeAws::bare_cases().config();
    match Incoming::read(payload) {
        Incoming::Batch(records) => {
            for record in &records {
                let _ = record.delivery(None, &config, start());
                is_sound(&event::parse_text(
                    record.as_it_came(),
                    &record.place(&place()),
                    &config,
                ))?;
            }
        }
        Incoming::Messages(messages) => messages
            .iter()
            .try_for_each(|m| is_sound(&event::parse_text(m, &place(), &config)))?,
        Incoming::Event(value) => is_sound(&event::parse(&value, &place(), &config))?,
        Incoming::Unreadable(reason) => prop_assert!(!reason.is_empty()),
    }
    Ok(())
}

/// The whole function on a payload: an answer or an error, in time; no record acknowledged that was neither done,
/// ignored nor buried; nothing deleted of the healthy manager.
fn whole_function(payload: &str) -> Result<(), TestCaseError> {
    let aws = FakeAws::cases();
    let reply = aws.run(payload);
    prop_assert!(!aws.touched(W3, "TerminateInstances") && !aws.touched(M2, "TerminateInstances"));
    let buried = aws.world().queues[DEAD_LETTER_QUEUE].sent.len();
    if let (Ok(reply), Incoming::Batch(records)) = (&reply, Incoming::read(payload)) {
        let listed = reply["batchItemFailures"].as_array().expect("a list").len();
        let config = aws.config();
        let unreadable = records
            .iter()
            .filter(|r| r.service.is_none() || r.body.is_some());
        let unreadable = unreadable.filter(|r| match &r.body {
            Some(body) if !body.trim().is_empty() => matches!(
                event::parse_text(body, &r.place(&place()), &config),
                Event::Unreadable(_)
            ),
            _ => true,
        });
        prop_assert!(
            buried == unreadable.count() && listed <= records.len(),
            "{buried} buried, {listed} listed: {reply}"
        );
        prop_assert!(reply.as_object().is_some_and(|o| o.len() == 1));
    }
    if reply.is_err() {
        prop_assert!(
            matches!(Incoming::read(payload), Incoming::Batch(r) if r.iter().any(|r| r.message_id.is_none())),
            "an error: {reply:?}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn any_json_is_parsed(value in json()) {
        parse_all(&value.to_string())?;
        parse_all(&json!({ "Records": [value.clone(), { "messageId": "m", "body": value.to_string() }, { "Sns": { "Message": value } }] }).to_string())?;
    }

    #[test]
    fn any_text_is_parsed(text in any::<String>()) {
        parse_all(&text)?;
        parse_all(&json!({ "Records": [{ "messageId": "m", "body": text }] }).to_string())?;
    }

    #[test]
    fn any_edit_of_a_real_payload_is_parsed(name in prop::sample::select(names()), edits in prop::collection::vec(edit(), 1..4)) {
        parse_all(&edited(&event(&name), &edits))?;
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn the_function_survives_any_json(value in json()) {
        whole_function(&value.to_string())?;
    }

    #[test]
    fn the_function_survives_any_edit_of_a_real_payload(name in prop::sample::select(names()), edits in prop::collection::vec(edit(), 1..4)) {
        whole_function(&edited(&event(&name), &edits))?;
    }
}
