//! Events as EventBridge brings them: of Auto Scaling, EC2 and SSM, and of a schedule.

use super::{Event, Place, Reading, instance_id, lifecycle, managed_group, short, text, time};
use crate::{
    config::{Config, Drain},
    task::{Change, InstanceId, Task, ToldBy},
    world::Time,
};
use serde_json::{Map, Value};

/// An event of EventBridge, by its source and detail-type.
pub(super) fn read(event: &Map<String, Value>, place: &Place, config: &Config) -> Reading {
    let Some(kind) = text(event, "detail-type") else {
        return Err(Event::Unreadable("detail-type is not a string".into()));
    };
    for (what, here) in [("region", &place.region), ("account", &place.account)] {
        if let (Some(there), Some(here)) = (text(event, what), here)
            && there != here
        {
            return Err(Event::Ignored(format!(
                "an event of the {what} {}, and this is {here}",
                short(there)
            )));
        }
    }
    let source = text(event, "source").unwrap_or_default();
    // Only the service's own name is compared: a test bus can't send as `aws.`.
    let service = source
        .split_once('.')
        .map_or(source, |(_, service)| service);
    let time = time(event, "time");
    let detail = || detail(event);
    match (service, kind) {
        ("autoscaling" | "", "EC2 Instance-terminate Lifecycle Action") => {
            lifecycle(&detail()?, time, config)
        }
        ("autoscaling" | "", "EC2 Instance Terminate Successful") => {
            terminated(&detail()?, ToldBy::TerminateSuccessful, time, config)
        }
        ("autoscaling" | "", "EC2 Instance Terminate Unsuccessful") => {
            terminated(&detail()?, ToldBy::TerminateUnsuccessful, time, config)
        }
        ("ec2" | "", "EC2 Instance State-change Notification") => state_change(&detail()?, time),
        ("ec2" | "", "EC2 Spot Instance Interruption Warning") => {
            woken(&detail()?, Change::SpotInterruption, time)
        }
        ("ssm" | "", "EC2 Command Invocation Status-change Notification") => {
            command_ended(&detail()?, event, time, config)
        }
        ("events" | "scheduler" | "", "Scheduled Event") => {
            Ok((Task::Sweep { writes: true }, time))
        }
        _ => Err(Event::Ignored(format!(
            "the event {} of {}",
            short(kind),
            short(source)
        ))),
    }
}

/// The detail; an input transformer may have quoted it.
fn detail(event: &Map<String, Value>) -> Reading<Map<String, Value>> {
    let why = match event.get("detail") {
        Some(Value::Object(detail)) => return Ok(detail.clone()),
        Some(Value::String(quoted)) => match serde_json::from_str(quoted) {
            Ok(Value::Object(detail)) => return Ok(detail),
            _ => "detail is a string that holds no object",
        },
        _ => "detail is missing or no object",
    };
    Err(Event::Unreadable(why.into()))
}

fn terminated(
    detail: &Map<String, Value>,
    told_by: ToldBy,
    time: Option<Time>,
    config: &Config,
) -> Reading {
    managed_group(detail, config)?;
    let manager = instance_id(detail, "EC2InstanceId")?;
    Ok((Task::Reap { manager, told_by }, time))
}

fn state_change(detail: &Map<String, Value>, time: Option<Time>) -> Reading {
    match text(detail, "state") {
        Some("stopped" | "shutting-down" | "terminated") => woken(detail, Change::State, time),
        Some(state) => Err(Event::Ignored(format!(
            "the instance state {}",
            short(state)
        ))),
        None => Err(Event::Unreadable("state is missing or not a string".into())),
    }
}

fn woken(detail: &Map<String, Value>, change: Change, time: Option<Time>) -> Reading {
    let manager = instance_id(detail, "instance-id")?;
    Ok((Task::Wake { manager, change }, time))
}

fn command_ended(
    detail: &Map<String, Value>,
    event: &Map<String, Value>,
    time: Option<Time>,
    config: &Config,
) -> Reading {
    let Drain::Ssm { document } = &config.drain else {
        return Err(Event::Ignored("no drain document is configured".into()));
    };
    let named = text(detail, "document-name").unwrap_or_default();
    if named != document && !document.ends_with(&format!("/{named}")) {
        return Err(Event::Ignored(format!(
            "a command of the document {}",
            short(named)
        )));
    }
    let status = text(detail, "status").unwrap_or_default();
    if matches!(status, "Pending" | "InProgress" | "Delayed" | "Cancelling") {
        return Err(Event::Ignored(format!("the command is {status}")));
    }
    let command = text(detail, "command-id").unwrap_or_default();
    let manager = instance_id(detail, "instance-id").or_else(|refusal| {
        // Older samples of the event name the instance in its ARN alone.
        let arn = event
            .get("resources")
            .and_then(|r| r.get(0))
            .and_then(Value::as_str)
            .unwrap_or_default();
        arn.rsplit_once('/')
            .and_then(|(_, id)| InstanceId::parse(id))
            .ok_or(refusal)
    })?;
    let change = Change::CommandEnded(command.chars().take(64).collect());
    Ok((Task::Wake { manager, change }, time))
}
