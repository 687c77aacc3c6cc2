//! What the dashboard and the alarms look at is what the function really emits, under the same dimensions.

use super::capture::everything;
use serde_json::Value;
use std::collections::BTreeSet;

const NAMESPACE: &str = lifecycle_reaper::metrics::NAMESPACE;

/// A metric and the names of its dimensions, as CloudWatch tells metrics apart.
type Metric = (String, BTreeSet<String>);

fn emitted() -> BTreeSet<Metric> {
    let mut metrics = BTreeSet::new();
    for scene in everything() {
        for line in scene.metrics() {
            for directive in line.json["_aws"]["CloudWatchMetrics"]
                .as_array()
                .into_iter()
                .flatten()
            {
                for set in directive["Dimensions"].as_array().into_iter().flatten() {
                    let set: BTreeSet<String> = set
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(Value::as_str)
                        .map(str::to_owned)
                        .collect();
                    let names = directive["Metrics"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(|m| m["Name"].as_str());
                    metrics.extend(names.map(|name| (name.to_owned(), set.clone())));
                }
            }
        }
    }
    metrics
}

fn infra(file: &str) -> String {
    let path = format!("{}/infra/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The dashboard with numbers and words where Terraform and SAM put theirs.
fn dashboard() -> Value {
    let mut text = infra("dashboard.json");
    while let Some((before, rest)) = text.clone().split_once("${") {
        let (_, after) = rest.split_once('}').expect("a placeholder ends");
        text = format!("{before}1{after}");
    }
    serde_json::from_str(&text).expect("the dashboard is JSON")
}

/// Every metric of ours that the dashboard plots, by name or by a search.
fn plotted(dashboard: &Value) -> BTreeSet<Metric> {
    let mut metrics = BTreeSet::new();
    for widget in dashboard["widgets"].as_array().expect("widgets") {
        let mut above: Vec<String> = vec![];
        for row in widget["properties"]["metrics"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let cells: Vec<&str> = row
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            if let Some(expression) = row[0]["expression"]
                .as_str()
                .filter(|e| e.contains(NAMESPACE))
            {
                metrics.extend(searched(expression));
            }
            // A dot repeats the cell above it, three dots all of them.
            let full: Vec<String> = match cells.as_slice() {
                ["..."] => above.clone(),
                cells => cells
                    .iter()
                    .enumerate()
                    .map(|(n, cell)| {
                        if *cell == "." {
                            above[n].clone()
                        } else {
                            (*cell).to_owned()
                        }
                    })
                    .collect(),
            };
            if full.first().is_some_and(|namespace| namespace == NAMESPACE) {
                metrics.insert((
                    full[1].clone(),
                    full[2..].iter().step_by(2).cloned().collect(),
                ));
            }
            if !full.is_empty() {
                above = full;
            }
        }
    }
    metrics
}

/// `SEARCH('{Namespace,Dimension,…} … MetricName="Name"', …)`
fn searched(expression: &str) -> Option<Metric> {
    let (schema, rest) = expression.split_once('{')?.1.split_once('}')?;
    let name = rest.split_once("MetricName=\"")?.1.split_once('"')?.0;
    Some((
        name.to_owned(),
        schema
            .split(',')
            .skip(1)
            .map(|d| d.trim().to_owned())
            .collect(),
    ))
}

/// Every metric of ours that an alarm watches.
fn watched() -> BTreeSet<Metric> {
    let text = infra("terraform/alarms.tf");
    let ours = text
        .lines()
        .filter(|line| line.contains(&format!("namespace  = \"{NAMESPACE}\"")));
    ours.map(|line| {
        let name = line
            .split_once("metric = \"")
            .expect("an alarm's metric")
            .1
            .split_once('"')
            .expect("closed")
            .0;
        (name.to_owned(), BTreeSet::from(["FunctionName".to_owned()]))
    })
    .collect()
}

#[test]
fn the_dashboard_plots_what_is_emitted() {
    let (emitted, plotted) = (emitted(), plotted(&dashboard()));
    assert!(plotted.len() > 10, "only {plotted:?}");
    let missing: Vec<_> = plotted.difference(&emitted).collect();
    assert!(missing.is_empty(), "plotted and never emitted: {missing:?}");
    let plotted: BTreeSet<&String> = plotted.iter().map(|(name, _)| name).collect();
    let unseen: BTreeSet<&String> = emitted
        .iter()
        .map(|(name, _)| name)
        .filter(|name| !plotted.contains(name))
        .collect();
    assert!(unseen.is_empty(), "emitted and on no dashboard: {unseen:?}");
}

#[test]
fn the_alarms_watch_what_is_emitted() {
    let (emitted, watched) = (emitted(), watched());
    assert!(watched.len() >= 5, "only {watched:?}");
    let missing: Vec<_> = watched.difference(&emitted).collect();
    assert!(missing.is_empty(), "watched and never emitted: {missing:?}");
}

#[test]
fn each_alarm_has_its_paragraph_in_the_runbook() {
    let text = infra("terraform/alarms.tf");
    let (_, alarms) = text.split_once("alarms = {").expect("the alarms");
    let names: Vec<&str> = alarms
        .lines()
        .filter_map(|line| line.trim().strip_suffix(" = {"))
        .filter(|name| !name.contains(' '))
        .collect();
    assert!(names.len() >= 9, "only {names:?}");
    let runbook =
        std::fs::read_to_string(format!("{}/docs/runbook.md", env!("CARGO_MANIFEST_DIR")))
            .expect("docs/runbook.md");
    for name in names {
        let (_, section) = runbook
            .split_once(&format!("\n## `{name}`\n"))
            .unwrap_or_else(|| panic!("the runbook has no section for the alarm {name}"));
        let section = section.split("\n## ").next().expect("a section");
        for part in ["**Means**", "**Look**", "**Do**"] {
            assert!(
                section.contains(part),
                "the runbook's section {name} has no {part}"
            );
        }
    }
}
