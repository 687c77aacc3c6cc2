//! Metrics are in CloudWatch's embedded metric format, to the letter of its specification.
//!
//! The schema is the one that AWS publishes with it, and the rules beside it are that page's prose:
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>

use super::capture::everything;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const UNITS: [&str; 27] = [
    "Seconds",
    "Microseconds",
    "Milliseconds",
    "Bytes",
    "Kilobytes",
    "Megabytes",
    "Gigabytes",
    "Terabytes",
    "Bits",
    "Kilobits",
    "Megabits",
    "Gigabits",
    "Terabits",
    "Percent",
    "Count",
    "Bytes/Second",
    "Kilobytes/Second",
    "Megabytes/Second",
    "Gigabytes/Second",
    "Terabytes/Second",
    "Bits/Second",
    "Kilobits/Second",
    "Megabits/Second",
    "Gigabits/Second",
    "Terabits/Second",
    "Count/Second",
    "None",
];

fn schema() -> Value {
    let text = |longest: usize| json!({ "type": "string", "minLength": 1, "maxLength": longest });
    json!({
        "type": "object",
        "required": ["_aws"],
        "properties": { "_aws": {
            "type": "object",
            "required": ["Timestamp", "CloudWatchMetrics"],
            "properties": {
                "Timestamp": { "type": "integer" },
                "CloudWatchMetrics": { "type": "array", "items": {
                    "type": "object",
                    "required": ["Namespace", "Dimensions", "Metrics"],
                    "properties": {
                        "Namespace": text(1024),
                        "Dimensions": { "type": "array", "minItems": 1, "items": {
                            "type": "array", "minItems": 0, "maxItems": 30, "items": text(250),
                        } },
                        "Metrics": { "type": "array", "maxItems": 100, "items": {
                            "type": "object",
                            "required": ["Name"],
                            "properties": {
                                "Name": text(1024),
                                "Unit": { "type": "string", "enum": UNITS },
                                "StorageResolution": { "type": "integer", "enum": [1, 60] },
                            },
                        } },
                    },
                } },
            },
        } },
    })
}

/// Where `value` breaks `schema`, as far as the schema above uses JSON Schema's words.
fn broken(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = vec![];
    let is_type = match schema["type"]
        .as_str()
        .expect("every schema here has a type")
    {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("the schema's type {other} is not known here"),
    };
    if !is_type {
        return vec![format!("{at} is not of the type {}", schema["type"])];
    }
    let size = value
        .as_array()
        .map(Vec::len)
        .or_else(|| value.as_str().map(|s| s.chars().count()));
    let bound = |word: &str| schema[word].as_u64().map(|n| n as usize);
    if size
        .zip(bound("minLength").or(bound("minItems")))
        .is_some_and(|(size, least)| size < least)
        || size
            .zip(bound("maxLength").or(bound("maxItems")))
            .is_some_and(|(size, most)| size > most)
    {
        found.push(format!("{at} has the size {size:?}"));
    }
    if schema["enum"]
        .as_array()
        .is_some_and(|words| !words.contains(value))
    {
        found.push(format!("{at} is {value}"));
    }
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        if value.get(name).is_none() {
            found.push(format!("{at} has no {name}"));
        }
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(member) = value.get(name) {
            found.extend(broken(inner, member, &format!("{at}.{name}")));
        }
    }
    if let Some(inner) = schema.get("items") {
        for (number, item) in value.as_array().into_iter().flatten().enumerate() {
            found.extend(broken(inner, item, &format!("{at}[{number}]")));
        }
    }
    found
}

/// What the specification's prose asks beyond its schema.
fn broken_prose(line: &Value) -> Vec<String> {
    let mut found = vec![];
    for directive in line["_aws"]["CloudWatchMetrics"]
        .as_array()
        .into_iter()
        .flatten()
    {
        for name in directive["Dimensions"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|set| set.as_array().into_iter().flatten())
        {
            let value = name
                .as_str()
                .and_then(|name| line.get(name))
                .and_then(Value::as_str);
            if !value.is_some_and(|v| !v.is_empty() && v.len() <= 1024 && v.is_ascii()) {
                found.push(format!("the dimension {name} has the value {value:?}"));
            }
        }
        let metrics: Vec<&str> = directive["Metrics"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|m| m["Name"].as_str())
            .collect();
        if metrics.iter().collect::<BTreeSet<_>>().len() != metrics.len() {
            found.push("a metric is defined twice".into());
        }
        for name in metrics {
            if !line
                .get(name)
                .is_some_and(|v| v.as_f64().is_some_and(f64::is_finite))
            {
                found.push(format!("the metric {name} has no number"));
            }
        }
    }
    found
}

#[test]
fn every_metric_line_follows_the_specification() {
    let schema = schema();
    let mut lines = 0;
    for scene in everything() {
        for line in scene.metrics() {
            let found = [broken(&schema, &line.json, "$"), broken_prose(&line.json)].concat();
            assert!(
                found.is_empty(),
                "{}: {found:?} in {}",
                scene.name,
                line.raw
            );
            assert!(
                line.raw.len() < 256 * 1024,
                "{}: CloudWatch takes no longer event",
                scene.name
            );
            let defined: usize = line.json["_aws"]["CloudWatchMetrics"][0]["Metrics"]
                .as_array()
                .map_or(0, Vec::len);
            assert!(
                defined > 0,
                "{}: a line without a metric: {}",
                scene.name,
                line.raw
            );
            lines += 1;
        }
    }
    assert!(lines > 20, "only {lines} lines were looked at");
}

#[test]
fn the_schema_refuses_what_it_should() {
    let schema = schema();
    let good = json!({ "_aws": { "Timestamp": 1, "CloudWatchMetrics": [{ "Namespace": "n", "Dimensions": [["F"]], "Metrics": [{ "Name": "M", "Unit": "Count" }] }] }, "F": "f", "M": 1.0 });
    assert_eq!(
        [broken(&schema, &good, "$"), broken_prose(&good)].concat(),
        Vec::<String>::new()
    );
    let bad = |change: &dyn Fn(&mut Value)| {
        let mut line = good.clone();
        change(&mut line);
        [broken(&schema, &line, "$"), broken_prose(&line)].concat()
    };
    let directive = "/_aws/CloudWatchMetrics/0";
    let changes: [&dyn Fn(&mut Value); 8] = [
        &|l| l["_aws"]["Timestamp"] = json!("1"),
        &|l| l["_aws"] = json!({}),
        &|l| *l.pointer_mut(&format!("{directive}/Namespace")).unwrap() = json!(""),
        &|l| *l.pointer_mut(&format!("{directive}/Dimensions")).unwrap() = json!([]),
        &|l| *l.pointer_mut(&format!("{directive}/Dimensions")).unwrap() = json!(["F"]),
        &|l| {
            *l.pointer_mut(&format!("{directive}/Metrics/0/Unit"))
                .unwrap() = json!("Count/Minute")
        },
        &|l| l["F"] = json!(""),
        &|l| l["M"] = json!("1"),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        assert!(!bad(change).is_empty(), "change {number} passes");
    }
}

#[test]
fn metrics_are_written_whatever_the_level_of_the_log() {
    for scene in everything() {
        let counts = ["error", "info", "debug"].map(|level| scene.again(level).metrics().count());
        assert_eq!(counts, [scene.metrics().count(); 3], "{}", scene.name);
    }
}
