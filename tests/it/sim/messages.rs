//! The events as AWS writes them.

use super::truth::Time;
use chrono::SecondsFormat;
use serde_json::{Value, json};

const ACCOUNT: &str = "123456789012";
const REGION: &str = "eu-west-1";
pub const WORK_QUEUE_ARN: &str = "arn:aws:sqs:eu-west-1:123456789012:lifecycle-cleanup";

fn stamp(time: Time) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// What a lifecycle hook puts on its queue.
pub fn hook_message(group: &str, hook: &str, instance_id: &str, token: &str, now: Time) -> Value {
    json!({
        "Origin": "AutoScalingGroup", "Destination": "EC2", "LifecycleHookName": hook, "AccountId": ACCOUNT,
        "RequestId": "c0ffee00-0001-4002-8003-000000000004", "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "AutoScalingGroupName": group, "Service": "AWS Auto Scaling", "Time": stamp(now), "EC2InstanceId": instance_id,
        "LifecycleActionToken": token,
    })
}

fn envelope(source: &str, detail_type: &str, resources: Value, detail: Value, now: Time) -> Value {
    json!({
        "version": "0", "id": "0d0d0d0d-aaaa-4bbb-8ccc-0000000000e1", "detail-type": detail_type, "source": source,
        "account": ACCOUNT, "time": now.to_rfc3339_opts(SecondsFormat::Secs, true), "region": REGION,
        "resources": resources, "detail": detail,
    })
}

fn group_arn(group: &str) -> String {
    format!(
        "arn:aws:autoscaling:{REGION}:{ACCOUNT}:autoScalingGroup:5e0c1f7a-1111-4222-8333-444455556666:autoScalingGroupName/{group}"
    )
}

fn instance_arn(instance_id: &str) -> String {
    format!("arn:aws:ec2:{REGION}:{ACCOUNT}:instance/{instance_id}")
}

pub fn lifecycle_event(
    transition: &str,
    group: &str,
    hook: &str,
    instance_id: &str,
    token: &str,
    now: Time,
) -> Value {
    let detail = json!({
        "LifecycleActionToken": token, "AutoScalingGroupName": group, "LifecycleHookName": hook, "EC2InstanceId": instance_id,
        "LifecycleTransition": format!("autoscaling:EC2_INSTANCE_{transition}"), "Origin": "AutoScalingGroup", "Destination": "EC2",
    });
    let word = if transition == "LAUNCHING" {
        "launch"
    } else {
        "terminate"
    };
    envelope(
        "aws.autoscaling",
        &format!("EC2 Instance-{word} Lifecycle Action"),
        json!([group_arn(group)]),
        detail,
        now,
    )
}

/// `EC2 Instance Terminate Successful` or `Unsuccessful`.
pub fn group_event(outcome: &str, group: &str, instance_id: &str, now: Time) -> Value {
    let detail = json!({
        "StatusCode": "InProgress", "AutoScalingGroupName": group, "ActivityId": "a-1", "RequestId": "a-1", "EC2InstanceId": instance_id,
        "Description": format!("Terminating EC2 instance: {instance_id}"), "Details": {"Availability Zone": "eu-west-1a"},
        "StatusMessage": "", "StartTime": stamp(now), "EndTime": stamp(now), "Cause": "scaling", "Origin": "AutoScalingGroup", "Destination": "EC2",
    });
    envelope(
        "aws.autoscaling",
        &format!("EC2 Instance Terminate {outcome}"),
        json!([group_arn(group), instance_arn(instance_id)]),
        detail,
        now,
    )
}

pub fn state_change(instance_id: &str, state: &str, now: Time) -> Value {
    let detail = json!({"instance-id": instance_id, "state": state});
    envelope(
        "aws.ec2",
        "EC2 Instance State-change Notification",
        json!([instance_arn(instance_id)]),
        detail,
        now,
    )
}

pub fn spot_interruption(instance_id: &str, now: Time) -> Value {
    let detail = json!({"instance-id": instance_id, "instance-action": "terminate"});
    envelope(
        "aws.ec2",
        "EC2 Spot Instance Interruption Warning",
        json!([instance_arn(instance_id)]),
        detail,
        now,
    )
}

pub fn rebalance(instance_id: &str, now: Time) -> Value {
    let detail = json!({"instance-id": instance_id});
    envelope(
        "aws.ec2",
        "EC2 Instance Rebalance Recommendation",
        json!([instance_arn(instance_id)]),
        detail,
        now,
    )
}

pub fn command_ended(
    command_id: &str,
    document: &str,
    instance_id: &str,
    status: &str,
    now: Time,
) -> Value {
    let detail = json!({
        "command-id": command_id, "document-name": document, "instance-id": instance_id,
        "requested-date-time": stamp(now), "status": status,
    });
    envelope(
        "aws.ssm",
        "EC2 Command Invocation Status-change Notification",
        json!([instance_arn(instance_id)]),
        detail,
        now,
    )
}

pub fn scheduled(now: Time) -> Value {
    let rule = format!("arn:aws:events:{REGION}:{ACCOUNT}:rule/lifecycle-reaper-sweep");
    envelope(
        "aws.events",
        "Scheduled Event",
        json!([rule]),
        json!({}),
        now,
    )
}

pub fn test_notification(group: &str, now: Time) -> Value {
    json!({
        "AccountId": ACCOUNT, "RequestId": "c0ffee00-0001-4002-8003-000000000005", "AutoScalingGroupARN": group_arn(group),
        "AutoScalingGroupName": group, "Service": "AWS Auto Scaling", "Event": "autoscaling:TEST_NOTIFICATION", "Time": stamp(now),
    })
}

/// One record of an SQS batch.
pub fn sqs_record(id: &str, receipt: &str, body: &str, receives: u32, sent: Time) -> Value {
    json!({
        "messageId": id, "receiptHandle": receipt, "body": body,
        "attributes": {
            "ApproximateReceiveCount": receives.to_string(), "SentTimestamp": sent.timestamp_millis().to_string(),
            "SenderId": "AROAINVENTEDROLEID:asg", "ApproximateFirstReceiveTimestamp": sent.timestamp_millis().to_string(),
        },
        "messageAttributes": {}, "md5OfBody": "d41d8cd98f00b204e9800998ecf8427e",
        "eventSource": "aws:sqs", "eventSourceARN": WORK_QUEUE_ARN, "awsRegion": REGION,
    })
}
