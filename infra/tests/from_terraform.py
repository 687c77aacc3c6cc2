"""The Terraform module rendered: `terraform test` with a mocked provider applies it and prints its state."""

import json

from deployments import SQS, canonical, full_name
from tools import ACCOUNT, INFRA, PARTITION, REGION, Terraform, messages

MOCKS = f"""
mock_provider "aws" {{
  mock_data "aws_caller_identity" {{
    defaults = {{ account_id = "{ACCOUNT}" }}
  }}
  mock_data "aws_partition" {{
    defaults = {{ partition = "{PARTITION}" }}
  }}
  mock_data "aws_region" {{
    defaults = {{ region = "{REGION}" }}
  }}
}}
"""


def known_after_apply(name):
    """What AWS would answer for the resources, in place of a mock's random words."""
    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}"
    role = f"arn:{PARTITION}:iam::{ACCOUNT}:role/{name}-{REGION}"
    return {
        "aws_sqs_queue.work": {
            "arn": f"{SQS}:{name}-work",
            "url": f"{url}-work",
            "id": f"{url}-work",
        },
        "aws_sqs_queue.dead_letters": {
            "arn": f"{SQS}:{name}-dead-letters",
            "url": f"{url}-dead-letters",
            "id": f"{url}-dead-letters",
        },
        "aws_lambda_function.reaper": {
            "arn": f"arn:{PARTITION}:lambda:{REGION}:{ACCOUNT}:function:{name}"
        },
        "aws_cloudwatch_event_rule.sweep": {
            "arn": f"arn:{PARTITION}:events:{REGION}:{ACCOUNT}:rule/{name}-sweep"
        },
        "aws_iam_role.function": {"arn": role, "id": f"{name}-{REGION}"},
        "aws_iam_role.hook": {"arn": f"{role}-hook", "id": f"{name}-{REGION}-hook"},
    }


def test_file(runs, name):
    """A terraform test that applies the module once for each set of variables."""
    blocks = [MOCKS]
    for target, values in known_after_apply(name).items():
        blocks.append(
            f"override_resource {{\n  target = {target}\n  values = {json.dumps(values)}\n}}"
        )
    for label, variables in runs.items():
        settings = {
            "package": {"s3_bucket": "code", "s3_key": "bootstrap.zip", "hash": "c2hh"},
            **variables,
        }
        lines = "\n".join(f"    {key} = {json.dumps(value)}" for key, value in settings.items())
        blocks.append(f'run "{label}" {{\n  command = apply\n  variables {{\n{lines}\n  }}\n}}')
    return "\n".join(blocks)


class RenderError(AssertionError):
    """A template could not be rendered; the text is the tool's own."""


def terraform_states(runs, infra=INFRA):
    """label -> (resources, outputs) of the module with each set of variables."""
    by_name = {}
    for label, variables in runs.items():
        by_name.setdefault(full_name(variables), {})[label] = variables
    terraform, states = Terraform(infra), {}
    terraform.init()
    for old in (terraform.module / "tests").glob("*.tftest.hcl"):
        old.unlink()
    for name, group in by_name.items():
        (terraform.module / "tests" / "render.tftest.hcl").write_text(test_file(group, name))
        done = terraform("test", "-json", "-verbose")
        for message in messages(done.stdout):
            if message["type"] == "diagnostic" and message["diagnostic"]["severity"] == "error":
                raise RenderError(
                    f"{message['diagnostic']['summary']}: {message['diagnostic']['detail']}"
                )
            if "test_state" in message:
                state = message["test_state"]
                outputs = {
                    key: output.get("value") for key, output in state.get("outputs", {}).items()
                }
                states[message["@testrun"]] = (state["root_module"]["resources"], outputs)
        if done.returncode != 0:
            raise RenderError(done.stdout + done.stderr)
    return states


def from_terraform(resources):
    """The module's resources in CloudFormation's words: (type, name) -> properties."""
    found, policies, targets, allow = {}, {}, {}, {}
    for resource in resources:
        if resource["mode"] == "data":
            continue
        v = resource["values"]
        kind = resource["type"].removeprefix("aws_")
        if kind == "iam_role_policy":
            policies.setdefault(v["role"], {})[v["name"]] = json.loads(v["policy"])
        elif kind == "cloudwatch_event_target":
            target = {
                "Id": v["target_id"],
                "Arn": v["arn"],
                "DeadLetterConfig": {"Arn": v["dead_letter_config"][0]["arn"]},
            }
            targets.setdefault(v["rule"], []).append(target)
        elif kind == "sqs_queue_redrive_allow_policy":
            allow[v["queue_url"]] = json.loads(v["redrive_allow_policy"])
        else:
            key, properties = TERRAFORM_KINDS[kind](v)
            found[key] = properties
    for (kind, name), properties in found.items():
        if kind == "AWS::IAM::Role":
            properties["Policies"] = policies.get(name, {})
        elif kind == "AWS::Events::Rule":
            properties["Targets"] = targets.get(name, [])
        elif kind == "AWS::SQS::Queue":
            url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}"
            properties["RedriveAllowPolicy"] = allow.get(url)
    return canonical(found)


def queue(v):
    return ("AWS::SQS::Queue", v["name"]), {
        "MessageRetentionPeriod": v["message_retention_seconds"],
        "VisibilityTimeout": v["visibility_timeout_seconds"],
        "SqsManagedSseEnabled": v["sqs_managed_sse_enabled"] or None,
        "KmsMasterKeyId": v["kms_master_key_id"],
        "KmsDataKeyReusePeriodSeconds": v["kms_data_key_reuse_period_seconds"] or None,
        "RedrivePolicy": json.loads(v["redrive_policy"])
        if (v["redrive_policy"] or "").startswith("{")
        else None,
    }


def function(v):
    vpc = v["vpc_config"][0] if v["vpc_config"] else None
    return ("AWS::Lambda::Function", v["function_name"]), {
        "Description": v["description"],
        "Runtime": v["runtime"],
        "Handler": v["handler"],
        "Architectures": v["architectures"],
        "MemorySize": v["memory_size"],
        "Timeout": v["timeout"],
        "Role": v["role"],
        "KmsKeyArn": v["kms_key_arn"],
        "Environment": {"Variables": v["environment"][0]["variables"]},
        "LoggingConfig": {
            "LogFormat": v["logging_config"][0]["log_format"],
            "LogGroup": v["logging_config"][0]["log_group"],
        },
        "TracingConfig": {"Mode": v["tracing_config"][0]["mode"]},
        "VpcConfig": vpc
        and {
            "SubnetIds": sorted(vpc["subnet_ids"]),
            "SecurityGroupIds": sorted(vpc["security_group_ids"]),
        },
    }


def invoke_config(v):
    return ("AWS::Lambda::EventInvokeConfig", v["function_name"]), {
        "MaximumRetryAttempts": v["maximum_retry_attempts"],
        "MaximumEventAgeInSeconds": v["maximum_event_age_in_seconds"],
        "DestinationConfig": {
            "OnFailure": {"Destination": v["destination_config"][0]["on_failure"][0]["destination"]}
        },
    }


def mapping(v):
    return ("AWS::Lambda::EventSourceMapping", v["event_source_arn"]), {
        "BatchSize": v["batch_size"],
        "FunctionResponseTypes": v["function_response_types"],
        "ScalingConfig": {"MaximumConcurrency": v["scaling_config"][0]["maximum_concurrency"]},
    }


def alarm(v):
    return ("AWS::CloudWatch::Alarm", v["alarm_name"]), {
        "AlarmDescription": v["alarm_description"],
        "Namespace": v["namespace"],
        "MetricName": v["metric_name"],
        "Dimensions": [{"Name": name, "Value": value} for name, value in v["dimensions"].items()],
        "Statistic": v["statistic"],
        "Period": v["period"],
        "EvaluationPeriods": v["evaluation_periods"],
        "ComparisonOperator": v["comparison_operator"],
        "Threshold": v["threshold"],
        "TreatMissingData": v["treat_missing_data"],
        "AlarmActions": v["alarm_actions"] or None,
        "OKActions": v["ok_actions"] or None,
    }


def hook(v):
    return ("AWS::AutoScaling::LifecycleHook", f"{v['autoscaling_group_name']}/{v['name']}"), {
        "LifecycleTransition": v["lifecycle_transition"],
        "DefaultResult": v["default_result"],
        "HeartbeatTimeout": v["heartbeat_timeout"],
        "NotificationTargetARN": v["notification_target_arn"],
        "RoleARN": v["role_arn"],
    }


def rule(v):
    return ("AWS::Events::Rule", v["name"]), {
        "EventPattern": v["event_pattern"] and json.loads(v["event_pattern"]),
        "ScheduleExpression": v["schedule_expression"],
    }


TERRAFORM_KINDS = {
    "sqs_queue": queue,
    "sqs_queue_policy": lambda v: (
        ("AWS::SQS::QueuePolicy", v["queue_url"]),
        {"PolicyDocument": json.loads(v["policy"])},
    ),
    "cloudwatch_log_group": lambda v: (
        ("AWS::Logs::LogGroup", v["name"]),
        {"RetentionInDays": v["retention_in_days"], "KmsKeyId": v["kms_key_id"]},
    ),
    "lambda_function": function,
    "lambda_function_event_invoke_config": invoke_config,
    "lambda_event_source_mapping": mapping,
    "lambda_permission": lambda v: (
        ("AWS::Lambda::Permission", v["source_arn"]),
        {"Action": v["action"], "Principal": v["principal"], "FunctionName": v["function_name"]},
    ),
    "cloudwatch_event_rule": rule,
    "autoscaling_lifecycle_hook": hook,
    "iam_role": lambda v: (
        ("AWS::IAM::Role", v["name"]),
        {
            "Description": v["description"],
            "PermissionsBoundary": v["permissions_boundary"],
            "AssumeRolePolicyDocument": json.loads(v["assume_role_policy"]),
        },
    ),
    "ssm_document": lambda v: (
        ("AWS::SSM::Document", v["name"]),
        {
            "DocumentType": v["document_type"],
            "DocumentFormat": v["document_format"],
            "Content": json.loads(v["content"]),
        },
    ),
    "cloudwatch_metric_alarm": alarm,
    "cloudwatch_dashboard": lambda v: (
        ("AWS::CloudWatch::Dashboard", v["dashboard_name"]),
        {"DashboardBody": json.loads(v["dashboard_body"])},
    ),
}
