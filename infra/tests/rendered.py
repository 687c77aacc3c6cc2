"""Both templates, rendered to the resources that they create, in CloudFormation's words.

Terraform: `terraform test` with a mocked provider applies the module and prints its state.
SAM: the template is translated by AWS's own translator and its functions are evaluated."""

import functools
import json
import re

import yaml
from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

from tools import ACCOUNT, INFRA, PARTITION, REGION, Terraform, messages

SQS = f"arn:{PARTITION}:sqs:{REGION}:{ACCOUNT}"
BASE = {"auto_scaling_groups": ["ci-linux-asg"]}
KEY = f"arn:{PARTITION}:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
PROFILE = f"arn:{PARTITION}:iam::{ACCOUNT}:instance-profile/ci-linux-worker"

# Deployments that the checks look at, in the module's variables.
DEPLOYMENTS = {
    "plan": BASE,
    "enforce": {**BASE, "mode": "enforce", "executor_name": "ci-linux"},
    "everything": {
        "auto_scaling_groups": ["ci-linux-asg", "ci-arm-asg"],
        "mode": "enforce",
        "executor_name": "ci-linux",
        "runner_tokens": ["ab-c"],
        "worker_groups": {"ci-linux-asg": "ci-linux-workers"},
        "reap": ["workers", "spot-requests", "key-pairs", "addresses", "fleets"],
        "eip_tag": "lifecycle-reaper:pool=ci",
        "untagged_worker_instance_profile_arns": [PROFILE],
        "cancel_untagged_spot_requests": True,
        "drain_timeout_seconds": 172800,
        "function_timeout_seconds": 300,
        "unregister_runner": True,
        "runner_unit": "runner@ci.service",
        "architecture": "x86_64",
        "xray_tracing": True,
        "vpc_config": {"subnet_ids": ["subnet-1", "subnet-2"], "security_group_ids": ["sg-1"]},
        "spot_interruption_warnings": True,
        "sweep_alarm_hours": 6,
        "alarm_topic_arn": f"arn:{PARTITION}:sns:{REGION}:{ACCOUNT}:alarms",
        "name_prefix": "team-",
        "kms_key_arn": KEY,
        "permissions_boundary_arn": f"arn:{PARTITION}:iam::{ACCOUNT}:policy/boundary",
    },
    "existing-hook": {**BASE, "mode": "enforce", "create_lifecycle_hook": False, "lifecycle_hook_name": "ci-terminate-instances", "drain": "observe"},
    "hook-to-queue": {**BASE, "mode": "enforce", "create_lifecycle_hook": False, "lifecycle_hook_name": "inline", "lifecycle_hook_target": "queue", "stop_command": "systemctl stop x"},
    "no-drain": {**BASE, "mode": "enforce", "create_lifecycle_hook": False, "drain": "off", "reap": ["workers"]},
}


def full_name(variables):
    return variables.get("name_prefix", "") + variables.get("name", "lifecycle-reaper")


# --- Terraform

MOCKS = """
mock_provider "aws" {
  mock_data "aws_caller_identity" { defaults = { account_id = "%s" } }
  mock_data "aws_partition" { defaults = { partition = "%s" } }
  mock_data "aws_region" { defaults = { region = "%s" } }
}
""" % (ACCOUNT, PARTITION, REGION)


def known_after_apply(name):
    """What AWS would answer for the resources, in place of a mock's random words."""
    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}"
    role = f"arn:{PARTITION}:iam::{ACCOUNT}:role/{name}-{REGION}"
    return {
        "aws_sqs_queue.work": {"arn": f"{SQS}:{name}-work", "url": f"{url}-work", "id": f"{url}-work"},
        "aws_sqs_queue.dead_letters": {"arn": f"{SQS}:{name}-dead-letters", "url": f"{url}-dead-letters", "id": f"{url}-dead-letters"},
        "aws_lambda_function.reaper": {"arn": f"arn:{PARTITION}:lambda:{REGION}:{ACCOUNT}:function:{name}"},
        "aws_cloudwatch_event_rule.sweep": {"arn": f"arn:{PARTITION}:events:{REGION}:{ACCOUNT}:rule/{name}-sweep"},
        "aws_iam_role.function": {"arn": role, "id": f"{name}-{REGION}"},
        "aws_iam_role.hook": {"arn": f"{role}-hook", "id": f"{name}-{REGION}-hook"},
    }


def test_file(runs, name):
    """A terraform test that applies the module once for each set of variables."""
    blocks = [MOCKS.replace(" { defaults = ", " {\n    defaults = ").replace(" } }\n", " }\n  }\n")]
    for target, values in known_after_apply(name).items():
        blocks.append(f"override_resource {{\n  target = {target}\n  values = {json.dumps(values)}\n}}")
    for label, variables in runs.items():
        settings = {"package": {"s3_bucket": "code", "s3_key": "bootstrap.zip", "hash": "c2hh"}, **variables}
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
                raise RenderError(f"{message['diagnostic']['summary']}: {message['diagnostic']['detail']}")
            if "test_state" in message:
                state = message["test_state"]
                outputs = {key: output.get("value") for key, output in state.get("outputs", {}).items()}
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
            target = {"Id": v["target_id"], "Arn": v["arn"], "DeadLetterConfig": {"Arn": v["dead_letter_config"][0]["arn"]}}
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
        "RedrivePolicy": json.loads(v["redrive_policy"]) if (v["redrive_policy"] or "").startswith("{") else None,
    }


def function(v):
    vpc = v["vpc_config"][0] if v["vpc_config"] else None
    return ("AWS::Lambda::Function", v["function_name"]), {
        "Description": v["description"], "Runtime": v["runtime"], "Handler": v["handler"], "Architectures": v["architectures"],
        "MemorySize": v["memory_size"], "Timeout": v["timeout"], "Role": v["role"], "KmsKeyArn": v["kms_key_arn"],
        "Environment": {"Variables": v["environment"][0]["variables"]},
        "LoggingConfig": {"LogFormat": v["logging_config"][0]["log_format"], "LogGroup": v["logging_config"][0]["log_group"]},
        "TracingConfig": {"Mode": v["tracing_config"][0]["mode"]},
        "VpcConfig": vpc and {"SubnetIds": sorted(vpc["subnet_ids"]), "SecurityGroupIds": sorted(vpc["security_group_ids"])},
    }


def invoke_config(v):
    return ("AWS::Lambda::EventInvokeConfig", v["function_name"]), {
        "MaximumRetryAttempts": v["maximum_retry_attempts"],
        "MaximumEventAgeInSeconds": v["maximum_event_age_in_seconds"],
        "DestinationConfig": {"OnFailure": {"Destination": v["destination_config"][0]["on_failure"][0]["destination"]}},
    }


def mapping(v):
    return ("AWS::Lambda::EventSourceMapping", v["event_source_arn"]), {
        "BatchSize": v["batch_size"], "FunctionResponseTypes": v["function_response_types"],
        "ScalingConfig": {"MaximumConcurrency": v["scaling_config"][0]["maximum_concurrency"]},
    }


def alarm(v):
    return ("AWS::CloudWatch::Alarm", v["alarm_name"]), {
        "AlarmDescription": v["alarm_description"], "Namespace": v["namespace"], "MetricName": v["metric_name"],
        "Dimensions": [{"Name": name, "Value": value} for name, value in v["dimensions"].items()],
        "Statistic": v["statistic"], "Period": v["period"], "EvaluationPeriods": v["evaluation_periods"],
        "ComparisonOperator": v["comparison_operator"], "Threshold": v["threshold"], "TreatMissingData": v["treat_missing_data"],
        "AlarmActions": v["alarm_actions"] or None, "OKActions": v["ok_actions"] or None,
    }


def hook(v):
    return ("AWS::AutoScaling::LifecycleHook", f"{v['autoscaling_group_name']}/{v['name']}"), {
        "LifecycleTransition": v["lifecycle_transition"], "DefaultResult": v["default_result"], "HeartbeatTimeout": v["heartbeat_timeout"],
        "NotificationTargetARN": v["notification_target_arn"], "RoleARN": v["role_arn"],
    }


def rule(v):
    return ("AWS::Events::Rule", v["name"]), {
        "EventPattern": v["event_pattern"] and json.loads(v["event_pattern"]), "ScheduleExpression": v["schedule_expression"],
    }


TERRAFORM_KINDS = {
    "sqs_queue": queue,
    "sqs_queue_policy": lambda v: (("AWS::SQS::QueuePolicy", v["queue_url"]), {"PolicyDocument": json.loads(v["policy"])}),
    "cloudwatch_log_group": lambda v: (("AWS::Logs::LogGroup", v["name"]), {"RetentionInDays": v["retention_in_days"], "KmsKeyId": v["kms_key_id"]}),
    "lambda_function": function,
    "lambda_function_event_invoke_config": invoke_config,
    "lambda_event_source_mapping": mapping,
    "lambda_permission": lambda v: (("AWS::Lambda::Permission", v["source_arn"]), {"Action": v["action"], "Principal": v["principal"], "FunctionName": v["function_name"]}),
    "cloudwatch_event_rule": rule,
    "autoscaling_lifecycle_hook": hook,
    "iam_role": lambda v: (("AWS::IAM::Role", v["name"]), {"Description": v["description"], "PermissionsBoundary": v["permissions_boundary"], "AssumeRolePolicyDocument": json.loads(v["assume_role_policy"])}),
    "ssm_document": lambda v: (("AWS::SSM::Document", v["name"]), {"DocumentType": v["document_type"], "DocumentFormat": v["document_format"], "Content": json.loads(v["content"])}),
    "cloudwatch_metric_alarm": alarm,
    "cloudwatch_dashboard": lambda v: (("AWS::CloudWatch::Dashboard", v["dashboard_name"]), {"DashboardBody": json.loads(v["dashboard_body"])}),
}


# --- SAM

NO_VALUE = object()


@functools.cache
def translated(path):
    """The template as CloudFormation gets it, after AWS's own translation."""
    template = yaml_parse(path.read_text())
    template["Resources"]["Function"]["Properties"]["CodeUri"] = {"Bucket": "code", "Key": "bootstrap.zip"}

    class NoManagedPolicies:
        def load(self):
            return {}

    return json.loads(json.dumps(transform(template, {}, NoManagedPolicies()), default=str))


def sam_parameters(variables):
    """The module's variables as the template's parameters."""
    found = {}
    for key, value in variables.items():
        if key == "eip_tag":
            found["EipTagValue"] = value.split("=", 1)[1]
        elif key == "vpc_config":
            found.update(SubnetIds=",".join(value["subnet_ids"]), SecurityGroupIds=",".join(value["security_group_ids"]))
        elif key == "worker_groups":
            found["WorkerGroups"] = ",".join(f"{manager}={worker}" for manager, worker in value.items())
        else:
            text = ",".join(value) if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else str(value)
            found["".join(word.capitalize() for word in key.split("_"))] = text
    return found


class Evaluator:
    """CloudFormation's functions, as far as the template uses them."""

    def __init__(self, template, parameters):
        self.template = template
        unknown = set(parameters) - set(template["Parameters"])
        assert not unknown, f"no such parameters: {unknown}"
        self.parameters = {}
        for name, declared in template["Parameters"].items():
            value = parameters.get(name, declared.get("Default"))
            assert value is not None, f"parameter {name} has no value"
            allowed, pattern = declared.get("AllowedValues"), declared.get("AllowedPattern")
            assert not allowed or str(value) in map(str, allowed), f"{name}={value} is not allowed"
            assert not pattern or re.fullmatch(pattern, str(value)), f"{name}={value} does not match {pattern}"
            self.parameters[name] = str(value).split(",") if declared["Type"] == "CommaDelimitedList" else str(value)
        for name, rule in template["Rules"].items():
            if self(rule["RuleCondition"]):
                assert all(self(one["Assert"]) for one in rule["Assertions"]), f"rule {name} refuses it"

    def condition(self, name):
        return self(self.template["Conditions"][name])

    def __call__(self, node):
        if isinstance(node, list):
            return [value for value in map(self, node) if value is not NO_VALUE]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            (name, argument), = node.items()
            if name in ("Ref", "Condition") and isinstance(argument, str):
                return self.reference(argument) if name == "Ref" else self.condition(argument)
            if name.startswith("Fn::"):
                return getattr(self, "fn_" + name.removeprefix("Fn::"))(argument)
        evaluated = {key: self(value) for key, value in node.items()}
        return {key: value for key, value in evaluated.items() if value is not NO_VALUE}

    def reference(self, name):
        if name == "AWS::NoValue":
            return NO_VALUE
        pseudo = {"AWS::Region": REGION, "AWS::AccountId": ACCOUNT, "AWS::Partition": PARTITION, "AWS::StackName": "stack"}
        if name in pseudo:
            return pseudo[name]
        return self.parameters[name] if name in self.parameters else self.attribute(name, "Ref")

    def attribute(self, logical_id, attribute):
        resource = self.template["Resources"][logical_id]
        kind, properties = resource["Type"], resource["Properties"]
        name_key, arn = {
            "AWS::SQS::Queue": ("QueueName", SQS + ":{}"),
            "AWS::Lambda::Function": ("FunctionName", f"arn:{PARTITION}:lambda:{REGION}:{ACCOUNT}:function:{{}}"),
            "AWS::Events::Rule": ("Name", f"arn:{PARTITION}:events:{REGION}:{ACCOUNT}:rule/{{}}"),
            "AWS::IAM::Role": ("RoleName", f"arn:{PARTITION}:iam::{ACCOUNT}:role/{{}}"),
            "AWS::Logs::LogGroup": ("LogGroupName", None),
            "AWS::SSM::Document": ("Name", None),
        }[kind]
        name = self(properties[name_key])
        if attribute == "Arn":
            return arn.format(name)
        if attribute == "Ref" and kind == "AWS::SQS::Queue":
            return f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{name}"
        assert attribute in ("Ref", "QueueName"), f"{logical_id}.{attribute}"
        return name

    def fn_GetAtt(self, argument):
        return self.attribute(*(argument.split(".", 1) if isinstance(argument, str) else argument))

    def fn_Sub(self, argument):
        text, values = (argument, {}) if isinstance(argument, str) else argument
        values = self(values)

        def value(match):
            name = match[1]
            found = values[name] if name in values else self.fn_GetAtt(name) if "." in name else self.reference(name)
            return str(found)

        return re.sub(r"\$\{([^!}][^}]*)\}", value, text)

    def fn_If(self, argument):
        return self(argument[1] if self.condition(argument[0]) else argument[2])

    def fn_FindInMap(self, argument):
        first, second, third = self(argument)
        return self.template["Mappings"][first][second][third]

    def fn_Select(self, argument):
        index, values = self(argument)
        return values[int(index)]

    def fn_Split(self, argument):
        separator, text = self(argument)
        return text.split(separator)

    def fn_Join(self, argument):
        separator, values = self(argument)
        return separator.join(values)

    def fn_Equals(self, argument):
        left, right = self(argument)
        return str(left) == str(right)

    def fn_Not(self, argument):
        return not self(argument)[0]

    def fn_And(self, argument):
        return all(self(argument))

    def fn_Or(self, argument):
        return any(self(argument))


def sam_resources(variables, path=INFRA / "sam" / "template.yaml"):
    """(resources, outputs) of the template with these variables."""
    template = translated(path)
    evaluate = Evaluator(template, sam_parameters(variables))
    wanted = lambda one: "Condition" not in one or evaluate.condition(one["Condition"])
    resources = {name: {**r, "Properties": evaluate(r["Properties"])} for name, r in template["Resources"].items() if wanted(r)}
    outputs = {name: evaluate(output["Value"]) for name, output in template["Outputs"].items() if wanted(output)}
    return resources, outputs


def from_sam(resources):
    """The template's resources: (type, name) -> properties."""
    found = {}
    for resource in resources.values():
        kind, p = resource["Type"], dict(resource["Properties"])
        p.pop("Tags", None)
        if kind == "AWS::Lambda::Function":
            for key in ("Code", "PackageType"):
                p.pop(key, None)
        if kind == "AWS::IAM::Role":
            p["Policies"] = {policy["PolicyName"]: policy["PolicyDocument"] for policy in p["Policies"]}
        if kind == "AWS::CloudWatch::Dashboard":
            p["DashboardBody"] = json.loads(p["DashboardBody"])
        if kind == "AWS::SSM::Document":
            p.pop("UpdateMethod")
        if kind == "AWS::Lambda::EventInvokeConfig":
            p.pop("Qualifier", None)
        if kind == "AWS::SQS::QueuePolicy":
            p["Queue"] = p.pop("Queues")[0]
        if kind == "AWS::Lambda::EventSourceMapping":
            p.pop("FunctionName")
        name = SAM_NAMES[kind](p)
        found[kind, name] = p
    return canonical(found)


SAM_NAMES = {
    "AWS::SQS::Queue": lambda p: p.pop("QueueName"),
    "AWS::SQS::QueuePolicy": lambda p: p.pop("Queue"),
    "AWS::Logs::LogGroup": lambda p: p.pop("LogGroupName"),
    "AWS::Lambda::Function": lambda p: p.pop("FunctionName"),
    "AWS::Lambda::EventInvokeConfig": lambda p: p.pop("FunctionName"),
    "AWS::Lambda::EventSourceMapping": lambda p: p.pop("EventSourceArn"),
    "AWS::Lambda::Permission": lambda p: p.pop("SourceArn"),
    "AWS::Events::Rule": lambda p: p.pop("Name"),
    "AWS::AutoScaling::LifecycleHook": lambda p: f"{p.pop('AutoScalingGroupName')}/{p.pop('LifecycleHookName')}",
    "AWS::IAM::Role": lambda p: p.pop("RoleName"),
    "AWS::SSM::Document": lambda p: p.pop("Name"),
    "AWS::CloudWatch::Alarm": lambda p: p.pop("AlarmName"),
    "AWS::CloudWatch::Dashboard": lambda p: p.pop("DashboardName"),
}

# Lists whose order means nothing.
UNORDERED = {"Action", "Resource", "SubnetIds", "SecurityGroupIds", "aws:SourceArn", "Service", "AWS"}


def canonical(node, key=None):
    """Numbers and truth values as text, nothing empty, unordered lists sorted: what both templates mean."""
    if isinstance(node, dict):
        return {k: canonical(v, k) for k, v in node.items() if v is not None}
    if isinstance(node, list):
        values = [canonical(value) for value in node]
        if key in UNORDERED:
            values = sorted(values)
        return values[0] if len(values) == 1 and isinstance(values[0], str) else values
    if isinstance(node, bool):
        return str(node).lower()
    return node if isinstance(node, str) or node is None else f"{node:g}" if isinstance(node, float) else str(node)
