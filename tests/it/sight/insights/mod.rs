//! As much of CloudWatch Logs Insights' language as docs/logs.md uses: `fields`, `filter`, `stats … by`, `sort`, `limit`.
//!
//! Anything else is an error, so that a query can't pass by not being understood. A field that no line has is an error
//! too: Logs Insights shows nothing for it, which looks like good news.

mod reader;

use super::capture::Line;
use chrono::{DateTime, TimeDelta, Utc};
use reader::{Reader, tokens};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A line, or a group of lines, as fields.
pub type Row = BTreeMap<String, Value>;

/// Runs `query` over `lines`, as a person does who asks two hours after the last of them.
pub fn run(query: &str, lines: &[&Line]) -> Result<Vec<Row>, String> {
    let last = lines
        .iter()
        .filter_map(|line| millis(row(line).get("@timestamp")))
        .reduce(f64::max)
        .ok_or("there are no lines")?;
    let last = DateTime::from_timestamp_millis(last as i64).ok_or("a line of no time")?;
    run_at(query, lines, last + TimeDelta::hours(2))
}

/// Runs `query` over `lines`, asked at `now`.
pub fn run_at(query: &str, lines: &[&Line], now: DateTime<Utc>) -> Result<Vec<Row>, String> {
    let mut rows: Vec<Row> = lines.iter().map(|line| row(line)).collect();
    let mut known: BTreeSet<String> = rows.iter().flat_map(|row| row.keys().cloned()).collect();
    for command in query.split('|') {
        let tokens = tokens(command)?;
        let mut reader = Reader::of(&tokens, &known, now);
        match reader.word()?.as_str() {
            "fields" | "display" => {
                let new = reader.columns()?;
                reader.end()?;
                for (name, expression) in new {
                    for row in &mut rows {
                        if let Some(value) = expression.value(row) {
                            row.insert(name.clone(), json!(value));
                        }
                    }
                    known.insert(name);
                }
                continue;
            }
            "filter" => {
                let condition = reader.either()?;
                rows.retain(|row| condition.holds(row));
            }
            "stats" => {
                rows = reader.stats(&rows)?;
                known = rows
                    .iter()
                    .flat_map(|row| row.keys().cloned())
                    .chain(reader.stats_names())
                    .collect();
                continue;
            }
            "sort" => {
                let name = reader.word()?;
                reader.check(&name)?;
                rows.sort_by(|a, b| order(a.get(&name), b.get(&name)));
                match reader.optional().as_deref() {
                    None | Some("asc") => {}
                    Some("desc") => rows.reverse(),
                    Some(other) => return Err(format!("sort {other}")),
                }
            }
            "limit" => rows.truncate(reader.word()?.parse().map_err(|_| "limit what?")?),
            other => return Err(format!("the command {other} is not known here")),
        }
        reader.end()?;
    }
    Ok(rows)
}

/// Logs Insights finds a JSON line's fields by itself, with dots and numbers for what is inside.
fn row(line: &Line) -> Row {
    fn flatten(prefix: &str, value: &Value, row: &mut Row) {
        let inside = |name: &dyn std::fmt::Display| {
            if prefix.is_empty() {
                name.to_string()
            } else {
                format!("{prefix}.{name}")
            }
        };
        match value {
            Value::Object(members) => members
                .iter()
                .for_each(|(name, v)| flatten(&inside(name), v, row)),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .for_each(|(n, v)| flatten(&inside(&n), v, row)),
            _ => drop(row.insert(prefix.to_owned(), value.clone())),
        }
    }
    let mut row = Row::new();
    flatten("", &line.json, &mut row);
    row.insert("@message".into(), json!(line.raw));
    let timestamp = line
        .json
        .get("timestamp")
        .cloned()
        .unwrap_or_else(|| line.json["_aws"]["Timestamp"].clone());
    row.insert("@timestamp".into(), timestamp);
    row
}

fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

/// A time as Logs Insights counts it: of our lines an RFC 3339 word, of metric lines a number.
fn millis(value: Option<&Value>) -> Option<f64> {
    match value? {
        Value::String(text) => DateTime::parse_from_rfc3339(text)
            .ok()
            .map(|time| time.timestamp_millis() as f64),
        other => other.as_f64(),
    }
}

/// A number made of a row's fields. What has no number in a row has none as a whole, as in SQL.
enum Expression {
    Number(f64),
    Field(String),
    Millis(String),
    FirstOf(Vec<Expression>),
    Of(Box<Expression>, char, Box<Expression>),
}

impl Expression {
    fn value(&self, row: &Row) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Field(name) => row.get(name).and_then(Value::as_f64),
            Self::Millis(name) => millis(row.get(name)),
            Self::FirstOf(parts) => parts.iter().find_map(|part| part.value(row)),
            Self::Of(left, sign, right) => {
                let (left, right) = (left.value(row)?, right.value(row)?);
                Some(match sign {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    _ => left / right,
                })
            }
        }
    }
}

fn order(a: Option<&Value>, b: Option<&Value>) -> std::cmp::Ordering {
    match (a.and_then(Value::as_f64), b.and_then(Value::as_f64)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => text(a).cmp(&text(b)),
    }
}

/// A condition on one row.
enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Present(String),
    Like(String, String),
    Equals(String, Vec<String>, bool),
    Above(String, Expression),
    Below(String, Expression),
}

impl Condition {
    fn holds(&self, row: &Row) -> bool {
        let field = |name: &String| text(row.get(name));
        let number = |name: &String| row.get(name).and_then(Value::as_f64);
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(row)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(row)),
            Self::Present(name) => field(name).is_some(),
            Self::Like(name, part) => {
                field(name).is_some_and(|value| match part.strip_prefix('^') {
                    Some(begin) => value.starts_with(begin),
                    None => value.contains(part.as_str()),
                })
            }
            Self::Equals(name, values, wanted) => {
                field(name).is_some_and(|value| values.contains(&value)) == *wanted
            }
            Self::Above(name, bound) => number(name)
                .zip(bound.value(row))
                .is_some_and(|(value, bound)| value > bound),
            Self::Below(name, bound) => number(name)
                .zip(bound.value(row))
                .is_some_and(|(value, bound)| value < bound),
        }
    }
}

fn aggregate(function: &str, field: Option<&str>, rows: &[&Row]) -> Result<Value, String> {
    let present: Vec<&Value> = rows
        .iter()
        .filter_map(|row| field.map_or(Some(&Value::Bool(true)), |name| row.get(name)))
        .collect();
    let numbers = || present.iter().filter_map(|value| value.as_f64());
    Ok(match function {
        "count" => json!(present.len()),
        "count_distinct" => json!(
            present
                .iter()
                .map(ToString::to_string)
                .collect::<BTreeSet<_>>()
                .len()
        ),
        "sum" => json!(numbers().sum::<f64>()),
        "max" => json!(numbers().reduce(f64::max)),
        "avg" => json!(numbers().sum::<f64>() / numbers().count().max(1) as f64),
        "latest" => present.last().map_or(Value::Null, |value| (*value).clone()),
        other => return Err(format!("the function {other} is not known here")),
    })
}
