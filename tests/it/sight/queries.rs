//! docs/logs.md against what the function writes: every query finds something, every field is told of.

use super::capture::{Line, Scene, everything};
use super::insights;
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
