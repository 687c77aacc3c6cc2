//! docs/logs.md against what the function writes: every query finds something, every field is told of.

use super::capture::{Line, Scene, everything};
use super::insights;
use crate::start;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use std::collections::BTreeSet;

fn page() -> String {
    std::fs::read_to_string(format!("{}/docs/logs.md", env!("CARGO_MANIFEST_DIR")))
        .expect("docs/logs.md")
}

/// Each query of the page with the sentence before it.
fn queries(page: &str) -> Vec<(String, String)> {
    let mut parts = page.split("```logs-insights\n");
    let mut sentence = parts
        .next()
        .and_then(|text| text.trim().lines().last())
        .unwrap_or_default()
        .to_owned();
    let mut found = vec![];
    for part in parts {
        let (query, rest) = part.split_once("```").expect("a query ends");
        found.push((std::mem::take(&mut sentence), query.to_owned()));
        sentence = rest.trim().lines().last().unwrap_or_default().to_owned();
    }
    found
}

fn log(scenes: &[Scene]) -> Vec<&Line> {
    scenes.iter().flat_map(Scene::log).collect()
}

#[test]
fn every_query_of_the_page_finds_what_it_is_for() {
    let scenes = everything();
    let lines = log(&scenes);
    let queries = queries(&page());
    assert!(queries.len() >= 10, "only {} queries", queries.len());
    for (sentence, query) in queries {
        match insights::run(&query, &lines) {
            Ok(rows) => assert!(!rows.is_empty(), "{sentence}\n{query}finds nothing"),
            Err(error) => panic!("{sentence}\n{query}{error}"),
        }
    }
}

/// The query of the page whose sentence begins so.
fn query(begins: &str) -> String {
    let queries = queries(&page());
    let mut found = queries.iter().filter(|(s, _)| s.starts_with(begins));
    match (found.next(), found.next()) {
        (Some((_, query)), None) => query.clone(),
        _ => panic!("not one query begins {begins:?}"),
    }
}

/// The managers that a query names, over the lines of a scene until so many passes ended.
fn managers_of(query: &str, scene: &str, number_of_outcomes: usize) -> Vec<String> {
    let scenes = everything();
    let scene = scenes.iter().find(|s| s.name == scene).expect("the scene");
    let mut outcomes = 0;
    let lines: Vec<&Line> = scene
        .log()
        .take_while(|line| {
            let is_before = outcomes < number_of_outcomes;
            outcomes += usize::from(line.message().starts_with("outcome: "));
            is_before
        })
        .collect();
    let rows = insights::run(query, &lines).unwrap_or_else(|e| panic!("{e}: {query}"));
    rows.iter()
        .filter_map(|row| row.get("spans.1.instance_id")?.as_str())
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_is_done_is_not_stuck() {
    let stuck = query("What is stuck");
    let drained = "a manager is drained, released and cleaned up after";
    assert_eq!(managers_of(&stuck, drained, 2), [crate::fake_aws::M1]);
    assert!(managers_of(&stuck, drained, usize::MAX).is_empty());
    let denied = "Auto Scaling denies the completion";
    assert_eq!(
        managers_of(&stuck, denied, usize::MAX),
        [crate::fake_aws::M1]
    );
}

/// A task that said `Again`, so long after it should have come again.
fn overdue_by(minutes: i64) -> usize {
    let scenes = everything();
    let scene = scenes
        .iter()
        .find(|s| s.name == "no agent takes the drain command")
        .expect("the scene");
    let mut lines: Vec<Line> = scene.log().cloned().collect();
    let last = lines
        .iter_mut()
        .rfind(|line| line.text("outcome") == "Again")
        .expect("a task that comes again");
    last.json["again_seconds"] = json!(600);
    let said: DateTime<Utc> = last.text("timestamp").parse().expect("a time");
    let lines: Vec<&Line> = lines.iter().collect();
    let now = said + TimeDelta::minutes(10 + minutes);
    insights::run_at(&query("Tasks without an end"), &lines, now)
        .expect("a query")
        .len()
}

#[test]
fn a_task_without_an_end_is_one_that_is_overdue() {
    assert_eq!([29, 31].map(overdue_by), [0, 1]);
    let without_end = query("Tasks without an end");
    let drained = "a manager is drained, released and cleaned up after";
    assert_eq!(managers_of(&without_end, drained, 2), [crate::fake_aws::M1]);
    assert!(managers_of(&without_end, drained, usize::MAX).is_empty());
}

#[test]
fn a_query_finds_the_manager_whose_hook_is_not_ours() {
    let scenes = everything();
    let rows = insights::run(&query("Managers that wait in a hook"), &log(&scenes));
    let mut said: Vec<(String, String)> = rows
        .expect("a query")
        .iter()
        .map(|row| {
            let text = |name: &str| row.get(name).and_then(|v| v.as_str()).unwrap_or_default();
            let begins = text("message").split(':').next().unwrap_or_default();
            (begins.to_owned(), text("instance_id").to_owned())
        })
        .collect();
    said.sort();
    let [ignored, planned] = said.as_slice() else {
        panic!("{said:?}");
    };
    assert_eq!(ignored.0, "ignored");
    assert_eq!(
        (planned.0.as_str(), planned.1.as_str()),
        ("planned", crate::fake_aws::M1)
    );
}

#[test]
fn a_query_tells_the_kept_from_the_deleted() {
    let scenes = everything();
    let scene = scenes
        .iter()
        .find(|s| s.name == "a sweep meets something of every kind")
        .expect("the scene");
    let lines: Vec<&Line> = scene.log().collect();
    let verdicts = |id: &str| {
        let rows = insights::run(
            &format!(
                "filter id = \"{id}\" and ispresent(verdict) | stats count(*) as n by verdict"
            ),
            &lines,
        )
        .expect("a query");
        rows.iter()
            .filter_map(|row| row["verdict"].as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert_eq!(verdicts(crate::fake_aws::W3), ["keep"]);
    assert!(verdicts(crate::fake_aws::W8).contains(&"reap".to_owned()));
    assert_eq!(verdicts("i-0b99bb99bb99bb990"), ["unknown"]);
}

#[test]
fn the_interpreter_refuses_what_it_does_not_know() {
    let scenes = everything();
    let lines = log(&scenes);
    for bad in [
        "filter nonsense = \"x\"",
        "parse message \"*\" as x",
        "stats median(age_seconds) as m",
        "fields message, colour",
        "sort nonsense",
        "filter level ~ \"x\"",
        "filter level = \"INFO\" level",
        "fields age_seconds + 1",
        "fields sqrt(age_seconds) as root",
        "filter age_seconds > nonsense",
        "filter age_seconds >= 1",
    ] {
        assert!(insights::run(bad, &lines).is_err(), "{bad}");
    }
    let rows = insights::run(
        "filter level = \"INFO\" and message like \"^planned\" | stats count(*) as n by level",
        &lines,
    )
    .expect("a query");
    let counted = lines
        .iter()
        .filter(|l| l.level() == "INFO" && l.message().starts_with("planned"))
        .count();
    assert_eq!(rows[0]["n"], counted);
}

/// The first column of the page's table of fields.
fn told(page: &str) -> BTreeSet<String> {
    let (_, table) = page.split_once("## Fields").expect("the fields");
    let table = table.split("## Queries").next().expect("a table");
    let cells = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    cells
        .flat_map(|cell| {
            cell.split(['`', ',', ' '])
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn every_field_of_the_start_is_on_the_page() {
    let lines = start::lines_of_start(&[
        ("AUTO_SCALING_GROUPS", "ci-a"),
        ("LIFECYCLE_HOOKS", "terminate"),
        ("EXECUTOR_NAME", "ci-linux"),
        ("DRAIN_DOCUMENT", "drain"),
        ("MAX_RECEIVE_COUNT", "74"),
    ]);
    let started = lines
        .iter()
        .find(|line| line["message"] == "started")
        .expect("the start's line");
    let page = page();
    let (_, paragraph) = page
        .split_once("A start writes lines")
        .expect("what a start writes");
    let paragraph = paragraph.lines().next().expect("a paragraph");
    for name in started.as_object().expect("an object").keys() {
        let is_told = paragraph.contains(&format!("`{name}`"));
        assert!(
            is_told || ["timestamp", "level", "message"].contains(&name.as_str()),
            "the page says nothing of {name}"
        );
    }
}

#[test]
fn every_field_is_on_the_page_and_no_other() {
    let scenes = everything();
    let told = told(&page());
    let mut written = BTreeSet::new();
    for line in log(&scenes) {
        for name in line.json.as_object().expect("an object").keys() {
            if !["timestamp", "level", "message", "spans"].contains(&name.as_str()) {
                assert!(
                    told.contains(name),
                    "the page says nothing of {name}: {}",
                    line.raw
                );
                written.insert(name.clone());
            }
        }
    }
    // No scene makes the function plan what it must not do, has hundreds of workers, or an address with a tool's tags.
    let rare = BTreeSet::from(["violation", "tool", "not_shown"].map(str::to_owned));
    let unwritten: Vec<_> = told
        .difference(&written)
        .filter(|name| !rare.contains(*name))
        .collect();
    assert!(
        unwritten.is_empty(),
        "on the page and never written: {unwritten:?}"
    );
}
