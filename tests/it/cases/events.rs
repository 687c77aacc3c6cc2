//! `events/`: every payload leads to what its README says.

use super::{Case, Reply, Story, case, check, event};
use crate::fake_aws::*;
use serde_json::Value;
use std::collections::BTreeMap;

/// What each file leads to, as the tables of the README say.
fn table() -> BTreeMap<String, String> {
    let readme =
        std::fs::read_to_string(format!("{}/events/README.md", env!("CARGO_MANIFEST_DIR")))
            .expect("a README");
    let rows = readme.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, file, _, leads_to, _] = cells.as_slice() else {
            return None;
        };
        let name = file.strip_prefix('`')?.strip_suffix(".json`")?;
        Some((name.to_owned(), (*leads_to).to_owned()))
    });
    rows.collect()
}

#[test]
fn every_file_is_in_the_readme() {
    let directory = format!("{}/events", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(directory)
        .expect("a directory")
        .map(|f| f.expect("a file").file_name().into_string().expect("UTF-8"));
    let mut names: Vec<String> = files
        .filter_map(|f| f.strip_suffix(".json").map(str::to_owned))
        .collect();
    names.sort();
    assert_eq!(names, table().into_keys().collect::<Vec<_>>());
}

#[test]
fn every_file_leads_to_what_the_readme_says() {
    for (name, leads_to) in table() {
        match leads_to.as_str() {
            "drains" => drains(&name),
            "reaps" => drop(reaps(&name)),
            "refuses" => refuses(&name),
            "wakes" => wakes(&name),
            "sweeps" => sweeps(&name),
            "ignored" => ignored(&name),
            "dead-letter" => dead_letter(&name),
            "mixed" => mixed(&name),
            other => panic!("{name} leads to {other:?}"),
        }
    }
}

/// The managers that a payload names, each waiting in its hook.
fn put_managers(w: &mut World, payload: &str) {
    for id in ["i-1a2b3c4d"]
        .into_iter()
        .map(str::to_owned)
        .chain((0..10).map(|n| format!("i-0c{n:02}cccccccccccc0")))
    {
        if payload.contains(&id) {
            w.put_manager(GROUP, &id, minutes(200));
            w.open_hook(GROUP, HOOK, &id, TOKEN);
        }
    }
    // Two files name another group and hook.
    if payload.contains("ci-läufer-日本-🚀") {
        w.groups.clear();
        w.put_group("ci-läufer-日本-🚀", "hook-é");
        w.put_manager("ci-läufer-日本-🚀", M1, minutes(240));
        w.open_hook("ci-läufer-日本-🚀", "hook-é", M1, TOKEN);
    }
    if payload.contains(M2) {
        w.open_hook(GROUP, HOOK, M2, TOKEN);
    }
}

fn drains(name: &str) {
    let payload = event(name);
    let ids: Vec<&str> = ["i-1a2b3c4d", M1, M2]
        .into_iter()
        .filter(|id| payload.contains(*id))
        .collect();
    let expected = if ids.is_empty() { 10 } else { ids.len() };
    let records = serde_json::from_str::<Value>(&payload).unwrap()["Records"]
        .as_array()
        .map_or(0, Vec::len);
    let config: &[_] = if name.contains("unicode") {
        &[
            ("AUTO_SCALING_GROUPS", "ci-läufer-日本-🚀"),
            ("LIFECYCLE_HOOKS", "hook-é"),
        ]
    } else {
        &[]
    };
    let first = match (name, records) {
        ("sqs-termination-no-message-id", _) => Reply::Err,
        ("sns-termination", _) | (_, 0) => Reply::Ok,
        (_, 1) => Reply::Fail(&[1]),
        (_, 2) => Reply::Fail(&[1, 2]),
        _ => Reply::Fail(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    };
    let story = check(Case {
        world: &|w| put_managers(w, &payload),
        config,
        first,
        ..case(name)
    });
    assert_eq!(story.aws.accepted("SendCommand"), expected, "{name}");
    assert_eq!(
        story.aws.accepted("CompleteLifecycleAction"),
        expected,
        "{name}"
    );
    let reaped = ids.contains(&M1) && !name.contains("warm-pool");
    assert_eq!(
        story.aws.touched(W1, "TerminateInstances"),
        reaped,
        "{name}"
    );
    assert_eq!(
        story.aws.touched(W3, "TerminateInstances"),
        ids.contains(&M2),
        "{name}"
    );
    assert!(
        story.aws.world().queues[DEAD_LETTER_QUEUE].sent.is_empty(),
        "{name}"
    );
}

fn reaps(name: &str) -> Story {
    check(Case {
        world: &|w| {
            w.end_instance(M1, w.now());
            w.groups.get_mut(GROUP).unwrap().members.remove(M1);
        },
        first: Reply::Outcome("Again"),
        did: &["TerminateInstances W1", "TerminateInstances W2"],
        never: &[
            "TerminateInstances W3",
            "SendCommand",
            "CompleteLifecycleAction",
            "RecordLifecycleActionHeartbeat",
        ],
        times: &[("SendMessage", 1)],
        ..case(name)
    })
}

fn refuses(name: &str) {
    let story = check(Case {
        first: Reply::Outcome("Done"),
        last: Reply::Ok,
        log: &[("WARN", "manager alive M1")],
        ..case(name)
    });
    assert!(story.aws.writes().is_empty(), "{name}");
    reaps(name);
}

/// Once: no message is sent, and nothing comes again by itself.
fn wakes(name: &str) {
    let is_batch = name.starts_with("sqs");
    let story = check(Case {
        first: if is_batch {
            Reply::Ok
        } else {
            Reply::Outcome("Done")
        },
        never: &["SendMessage", "TerminateInstances"],
        ..case(name)
    });
    assert_eq!(story.deliveries.len(), 1, "{name}");
    let sends = name != "direct-spot-interruption-worker";
    assert_eq!(story.aws.touched(M1, "SendCommand"), sends, "{name}");
}

fn sweeps(name: &str) {
    let writes = name != "direct-plan";
    let world = |w: &mut World| drop(w.put_worker(Worker::of(LONG_GONE, W8).age(minutes(180))));
    let story = check(Case {
        world: &world,
        first: Reply::Outcome(if writes { "Again" } else { "Done" }),
        ..case(name)
    });
    assert_eq!(
        story.aws.touched(W8, "TerminateInstances"),
        writes,
        "{name}"
    );
    // A manager that waits though no message came is not forgotten.
    assert_eq!(
        story.aws.touched(M1, "CompleteLifecycleAction"),
        writes,
        "{name}"
    );
    if !writes {
        assert!(story.aws.writes().is_empty());
        let plan = story.deliveries[0].reply.as_ref().expect("a plan");
        let orphan = &plan["resources"][0];
        assert_eq!(
            (orphan["id"].as_str(), orphan["verdict"].as_str()),
            (Some(W8), Some("reap"))
        );
        assert_eq!(plan["truncated"], 0);
        assert_eq!(plan["waiting_managers"][0], M1);
    }
}

fn ignored(name: &str) {
    let story = check(Case {
        first: Reply::Ok,
        no_log: &[("ERROR", ""), ("WARN", "")],
        ..case(name)
    });
    assert!(story.aws.all_calls().is_empty(), "{name}");
    let lines = if name.starts_with("batch") { 0 } else { 1 };
    assert_eq!(story.lines("INFO", "ignored:"), lines, "{name}");
}

fn dead_letter(name: &str) {
    let payload = event(name);
    let value: Value = serde_json::from_str(&payload).unwrap();
    let records = value["Records"].as_array().cloned().unwrap_or_default();
    let count = records.len().max(1);
    let story = check(Case {
        first: Reply::Ok,
        times: &[("SendMessage", count)],
        ..case(name)
    });
    assert_eq!(
        story.aws.all_calls().len(),
        count,
        "{name}: nothing but the dead letters"
    );
    assert_eq!(story.lines("ERROR", "unreadable:"), count, "{name}");
    let sent = story.aws.world().queues[DEAD_LETTER_QUEUE].sent.clone();
    assert!(sent.iter().all(|m| !m.attributes["Reason"].is_empty()));
    for record in &records {
        // As it came: the body, or the whole record where there is none.
        let body = record["body"].as_str().filter(|b| !b.is_empty());
        let found = sent
            .iter()
            .find(|m| {
                Some(m.attributes["OriginalMessageId"].as_str()) == record["messageId"].as_str()
            })
            .expect("sent");
        match body {
            Some(body) => assert_eq!(found.body, body),
            None => assert_eq!(&serde_json::from_str::<Value>(&found.body).unwrap(), record),
        }
    }
    if records.is_empty() {
        assert_eq!(sent[0].body, payload, "{name}");
    }
}

fn mixed(name: &str) {
    let payload = event(name);
    let first = if name == "batch-mixed" {
        Reply::Fail(&[1, 5])
    } else {
        Reply::Fail(&[2])
    };
    let story = check(Case {
        world: &|w| put_managers(w, &payload),
        first,
        did: &["CompleteLifecycleAction M1", "TerminateInstances W1"],
        times: &[("SendMessage", 1)],
        ..case(name)
    });
    assert_eq!(
        story.aws.touched(M2, "CompleteLifecycleAction"),
        name == "batch-mixed"
    );
    assert_eq!(story.lines("ERROR", "unreadable:"), 1);
}
