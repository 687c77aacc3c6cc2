//! Events: whatever JSON reaches the function becomes a task, or is ignored or unreadable, each with a reason.
//!
//! Parsing is by hand and total: a typed event would reject a payload for a field that nobody reads.
//! Keys are AWS's own, to the letter. What is read is what is acted upon; everything else may be missing or odd.

mod event_bridge;

use crate::{
    config::Config,
    task::{InstanceId, Task, ToldBy},
    world::Time,
};
use chrono::DateTime;
use serde_json::{Map, Value};

/// What an event means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something to do, and the event's own time.
    Task(Task, Option<Time>),
    /// Readable, and nothing to do with us.
    Ignored(String),
    /// Not to be understood: retrying can't help, and it must not be lost.
    Unreadable(String),
}

/// Where the function runs, as far as the invocation tells; an event of another place is not ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Region.
    pub region: Option<String>,
    /// Account.
    pub account: Option<String>,
}

/// A task and the event's own time, or the event that says why there is none.
type Reading<T = (Task, Option<Time>)> = Result<T, Event>;

/// An envelope in an envelope in an envelope: nothing real is nested deeper.
const MOST_ENVELOPES: usize = 4;

/// Parses an event that arrived as text.
pub fn parse_text(text: &str, place: &Place, config: &Config) -> Event {
    match serde_json::from_str(text) {
        Ok(value) => parse(&value, place, config),
        Err(error) => Event::Unreadable(format!("not JSON: {error}")),
    }
}

/// Parses an event.
pub fn parse(value: &Value, place: &Place, config: &Config) -> Event {
    unwrap(value, place, config, MOST_ENVELOPES)
}

fn unwrap(value: &Value, place: &Place, config: &Config, depth: usize) -> Event {
    if depth == 0 {
        return Event::Unreadable("too many envelopes".into());
    }
    let inner = |text: &str| match serde_json::from_str::<Value>(text) {
        Ok(value) => unwrap(&value, place, config, depth - 1),
        Err(_) => Event::Unreadable("the envelope's message is not JSON".into()),
    };
    match value {
        Value::Object(object) => match text(object, "Type") {
            Some("Notification") if object.contains_key("Message") => match text(object, "Message")
            {
                Some(message) => inner(message),
                None => Event::Unreadable("the SNS envelope's Message is not a string".into()),
            },
            Some(kind @ ("SubscriptionConfirmation" | "UnsubscribeConfirmation")) => {
                Event::Ignored(format!(
                    "SNS {kind}: a person confirms it, the function follows no URL"
                ))
            }
            _ => of_object(object, place, config)
                .map_or_else(|refusal| refusal, |(task, time)| Event::Task(task, time)),
        },
        // A producer that encoded twice.
        Value::String(text) if text.trim_start().starts_with(['{', '"']) => inner(text),
        Value::String(_) => Event::Unreadable("a bare string".into()),
        Value::Array(_) => Event::Unreadable("an array, not an event".into()),
        Value::Null => Event::Unreadable("null".into()),
        Value::Bool(_) | Value::Number(_) => Event::Unreadable("a bare value, not an event".into()),
    }
}

fn of_object(object: &Map<String, Value>, place: &Place, config: &Config) -> Reading {
    if object.contains_key("detail-type") {
        return event_bridge::read(object, place, config);
    }
    if object.contains_key("action") {
        return of_person(object);
    }
    let is_test = [text(object, "Event"), text(object, "LifecycleTransition")]
        .contains(&Some("autoscaling:TEST_NOTIFICATION"));
    if is_test {
        return Err(Event::Ignored(
            "the test notification of a new lifecycle hook".into(),
        ));
    }
    if object.contains_key("LifecycleTransition") {
        return lifecycle(object, time(object, "Time"), config);
    }
    let service = ["Service", "Event", "eventSource", "source"]
        .into_iter()
        .find_map(|key| text(object, key));
    Err(match service {
        Some(service) => Event::Ignored(format!("a message of {}", short(service))),
        None => Event::Unreadable("no key that an event of ours has".into()),
    })
}

/// A termination hook's message, or the detail of the same event on EventBridge.
fn lifecycle(detail: &Map<String, Value>, time: Option<Time>, config: &Config) -> Reading {
    match detail.get("LifecycleTransition") {
        Some(Value::String(t)) if t == "autoscaling:EC2_INSTANCE_TERMINATING" => {}
        Some(Value::String(t)) => {
            return Err(Event::Ignored(format!(
                "the lifecycle transition {}",
                short(t)
            )));
        }
        Some(_) => {
            return Err(Event::Unreadable(
                "LifecycleTransition is not a string".into(),
            ));
        }
        // EventBridge's detail-type has said it already.
        None => {}
    }
    let group = managed_group(detail, config)?;
    let hook = required(detail, "LifecycleHookName")?;
    if !config.hooks.iter().any(|h| h == hook) {
        let manager = text(detail, "EC2InstanceId").unwrap_or_default();
        return Err(Event::Ignored(format!(
            "the hook {} is not ours, the manager {} waits in it",
            short(hook),
            short(manager)
        )));
    }
    let task = Task::Terminate {
        manager: instance_id(detail, "EC2InstanceId")?,
        group: group.to_owned(),
        hook: hook.to_owned(),
        to_warm_pool: text(detail, "Destination") == Some("WarmPool"),
    };
    Ok((task, time))
}

/// What a person asks for by hand.
fn of_person(object: &Map<String, Value>) -> Reading {
    let task = match text(object, "action") {
        Some("sweep") => Task::Sweep { writes: true },
        Some("plan") => Task::Sweep { writes: false },
        Some("reap") => Task::Reap {
            manager: instance_id(object, "instance_id")?,
            told_by: ToldBy::Person,
        },
        Some(action) => {
            return Err(Event::Unreadable(format!(
                "the action {} is none of sweep, plan, reap",
                short(action)
            )));
        }
        None => return Err(Event::Unreadable("action is not a string".into())),
    };
    Ok((task, None))
}

/// The group that an event is about, if it is one of ours.
fn managed_group<'a>(detail: &'a Map<String, Value>, config: &Config) -> Reading<&'a str> {
    let group = required(detail, "AutoScalingGroupName")?;
    if config.groups.iter().any(|g| g == group) {
        return Ok(group);
    }
    Err(Event::Ignored(format!(
        "the group {} is not managed here",
        short(group)
    )))
}

fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

fn required<'a>(object: &'a Map<String, Value>, key: &str) -> Reading<&'a str> {
    let why = || Event::Unreadable(format!("{key} is missing, empty or not a string"));
    text(object, key).filter(|t| !t.is_empty()).ok_or_else(why)
}

fn instance_id(object: &Map<String, Value>, key: &str) -> Reading<InstanceId> {
    let text = required(object, key)?;
    let why = || Event::Unreadable(format!("{key} {} is not an instance id", short(text)));
    InstanceId::parse(text).ok_or_else(why)
}

fn time(object: &Map<String, Value>, key: &str) -> Option<Time> {
    DateTime::parse_from_rfc3339(text(object, key)?)
        .ok()
        .map(|t| t.to_utc())
}

/// Foreign text for a reason: quoted, escaped, and no longer than a line can bear.
fn short(text: &str) -> String {
    let mut short: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().nth(80).is_some() {
        short.push('…');
    }
    format!("\"{short}\"")
}
