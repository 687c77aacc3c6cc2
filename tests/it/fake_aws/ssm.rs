//! Systems Manager Run Command: send, list, ask, and the inventory of agents.

use super::wire::{Answer, Body, Request, refuse};
use super::world::{Command, Fate, World};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

pub fn send_command(world: &mut World, request: &Request) -> Answer {
    let now = world.now();
    let document = request.text("DocumentName").unwrap_or_default().to_owned();
    if !world.ssm.documents.contains(&document) {
        return refuse(
            "InvalidDocument",
            format!("Document with name {document} does not exist."),
        );
    }
    let delivery_timeout = request.number("TimeoutSeconds").unwrap_or(3600);
    if !(30..=2_592_000).contains(&delivery_timeout)
        || request
            .text("Comment")
            .is_some_and(|comment| comment.chars().count() > 100)
    {
        return refuse(
            "ValidationException",
            "TimeoutSeconds must be 30 to 2592000, Comment at most 100 characters",
        );
    }
    let ids = request.list("InstanceIds");
    let [instance_id] = ids.as_slice() else {
        return refuse(
            "ValidationException",
            "this fake sends a command to exactly one instance",
        );
    };
    let reachable = world.ssm.agents.contains(instance_id)
        && world
            .ec2
            .instances
            .get(instance_id)
            .is_some_and(|instance| !instance.state.is_ending());
    if !reachable {
        return refuse(
            "InvalidInstanceId",
            format!(
                "Instances [[{instance_id}]] not in a valid state for account {}",
                world.account
            ),
        );
    }
    let fate = world
        .ssm
        .fates
        .pop_front()
        .or_else(|| world.ssm.usual_fate.clone())
        .unwrap_or_else(|| Fate::says("stopped"));
    let command = Command {
        id: format!("{:08x}-0000-4000-8000-000000000c0d", world.next_serial()),
        document,
        instance_id: instance_id.clone(),
        sent: now,
        delivery_timeout,
        comment: request.text("Comment").map(Into::into),
        parameters: request
            .json
            .get("Parameters")
            .cloned()
            .unwrap_or(Value::Null),
        fate,
    };
    let reply = json!({"Command": command_json(&command, now)});
    world.ssm.commands.push(command);
    Ok(Body::Json(reply))
}

impl Command {
    /// Status and details at a moment.
    pub fn status(&self, now: DateTime<Utc>) -> (&str, &str) {
        let age = now - self.sent;
        match self.fate.ends_after {
            Some(end) if age >= end => (&self.fate.status, &self.fate.status_details),
            _ if age < self.fate.starts_after => ("Pending", "Pending"),
            _ => ("InProgress", "InProgress"),
        }
    }

    pub fn is_visible(&self, now: DateTime<Utc>) -> bool {
        now - self.sent >= self.fate.visible_after
    }
}

fn seconds(time: DateTime<Utc>) -> f64 {
    time.timestamp_millis() as f64 / 1000.0
}

fn command_json(command: &Command, now: DateTime<Utc>) -> Value {
    let (status, details) = command.status(now);
    json!({
        "CommandId": command.id,
        "DocumentName": command.document,
        "Comment": command.comment.clone().unwrap_or_default(),
        "InstanceIds": [command.instance_id],
        "Parameters": if command.parameters.is_null() { json!({}) } else { command.parameters.clone() },
        "RequestedDateTime": seconds(command.sent),
        "ExpiresAfter": seconds(command.sent + TimeDelta::seconds(command.delivery_timeout)),
        "Status": status,
        "StatusDetails": details,
        "TimeoutSeconds": command.delivery_timeout,
        "TargetCount": 1,
    })
}

pub fn list_commands(world: &mut World, request: &Request) -> Answer {
    let now = world.now();
    let size = request.number("MaxResults").unwrap_or(50);
    if !(1..=50).contains(&size) {
        return refuse(
            "ValidationException",
            format!("MaxResults {size} is not between 1 and 50"),
        );
    }
    let filters = request
        .json
        .get("Filters")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let mut found: Vec<&Command> = Vec::new();
    for command in world
        .ssm
        .commands
        .iter()
        .rev()
        .filter(|command| command.is_visible(now))
    {
        let mut passes = request.text("CommandId").is_none_or(|id| id == command.id);
        // By instance, a command is not found before it was delivered.
        passes &= request
            .text("InstanceId")
            .is_none_or(|id| id == command.instance_id && command.status(now).0 != "Pending");
        for filter in &filters {
            let value = filter["value"].as_str().unwrap_or_default();
            passes &= match filter["key"].as_str().unwrap_or_default() {
                "DocumentName" => command.document == value,
                "InvokedAfter" => parse_time(value)? < command.sent,
                "InvokedBefore" => parse_time(value)? > command.sent,
                "Status" => command.status(now).0 == value,
                other => {
                    return refuse(
                        "InvalidFilterKey",
                        format!("The filter key {other} is not valid"),
                    );
                }
            };
        }
        if passes {
            found.push(command);
        }
    }
    let start: usize = match request.text("NextToken") {
        None => 0,
        Some(token) => match token.parse() {
            Ok(start) => start,
            Err(_) => return refuse("InvalidNextToken", "The specified token is not valid."),
        },
    };
    let end = start + (size as usize).min(world.page_size);
    let page: Vec<Value> = found
        .iter()
        .skip(start)
        .take(end - start)
        .map(|command| command_json(command, now))
        .collect();
    let mut reply = json!({"Commands": page});
    if found.len() > end {
        reply["NextToken"] = json!(end.to_string());
    }
    Ok(Body::Json(reply))
}

fn parse_time(text: &str) -> Result<DateTime<Utc>, super::wire::Refusal> {
    match DateTime::parse_from_rfc3339(text) {
        Ok(time) => Ok(time.into()),
        Err(_) => refuse("ValidationException", format!("{text} is not a time")),
    }
}

pub fn get_command_invocation(world: &mut World, request: &Request) -> Answer {
    let now = world.now();
    let (id, instance_id) = (
        request.text("CommandId").unwrap_or_default(),
        request.text("InstanceId").unwrap_or_default(),
    );
    let found = world
        .ssm
        .commands
        .iter()
        .find(|command| command.id == id && command.instance_id == instance_id);
    let Some(command) = found.filter(|command| command.is_visible(now)) else {
        return refuse("InvocationDoesNotExist", "");
    };
    let (status, details) = command.status(now);
    let ended = !matches!(status, "Pending" | "InProgress" | "Delayed");
    Ok(Body::Json(json!({
        "CommandId": command.id,
        "InstanceId": command.instance_id,
        "DocumentName": command.document,
        "Status": status,
        "StatusDetails": details,
        "ResponseCode": if ended { command.fate.exit_code } else { -1 },
        "StandardOutputContent": if ended { command.fate.output.as_str() } else { "" },
        "StandardErrorContent": "",
        "ExecutionStartDateTime": "",
        "ExecutionEndDateTime": "",
    })))
}

pub fn describe_instance_information(world: &mut World, request: &Request) -> Answer {
    let wanted: Vec<String> = request.json["Filters"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|filter| filter["Key"] == "InstanceIds")
        .flat_map(|filter| filter["Values"].as_array().cloned().unwrap_or_default())
        .filter_map(|value| value.as_str().map(Into::into))
        .collect();
    let now = seconds(world.now());
    let running = |id: &str| {
        world
            .ec2
            .instances
            .get(id)
            .is_some_and(|instance| !instance.state.is_ending())
    };
    let list: Vec<Value> = world
        .ssm
        .agents
        .iter()
        .filter(|id| (wanted.is_empty() || wanted.contains(id)) && running(id))
        .map(|id| json!({"InstanceId": id, "PingStatus": "Online", "LastPingDateTime": now, "PlatformType": "Linux", "ResourceType": "EC2Instance"}))
        .collect();
    Ok(Body::Json(json!({"InstanceInformationList": list})))
}
