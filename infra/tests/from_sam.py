"""The SAM template rendered: AWS's own translator makes it CloudFormation, and its functions are evaluated here."""

import functools
import json
import re

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse

from deployments import SQS, canonical
from tools import ACCOUNT, INFRA, PARTITION, REGION

NO_VALUE = object()


@functools.cache
def translated(path):
    """The template as CloudFormation gets it, after AWS's own translation."""
    template = yaml_parse(path.read_text())
    template["Resources"]["Function"]["Properties"]["CodeUri"] = {
        "Bucket": "code",
        "Key": "bootstrap.zip",
    }

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
            found.update(
                SubnetIds=",".join(value["subnet_ids"]),
                SecurityGroupIds=",".join(value["security_group_ids"]),
            )
        elif key == "worker_groups":
            found["WorkerGroups"] = ",".join(
                f"{manager}={worker}" for manager, worker in value.items()
            )
        else:
            text = (
                ",".join(value)
                if isinstance(value, list)
                else str(value).lower()
                if isinstance(value, bool)
                else str(value)
            )
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
            assert not pattern or re.fullmatch(pattern, str(value)), (
                f"{name}={value} does not match {pattern}"
            )
            self.parameters[name] = (
                str(value).split(",") if declared["Type"] == "CommaDelimitedList" else str(value)
            )
        for name, rule in template["Rules"].items():
            if self(rule["RuleCondition"]):
                assert all(self(one["Assert"]) for one in rule["Assertions"]), (
                    f"rule {name} refuses it"
                )

    def condition(self, name):
        return self(self.template["Conditions"][name])

    def __call__(self, node):
        if isinstance(node, list):
            return [value for value in map(self, node) if value is not NO_VALUE]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            ((name, argument),) = node.items()
            if name in ("Ref", "Condition") and isinstance(argument, str):
                return self.reference(argument) if name == "Ref" else self.condition(argument)
            if name.startswith("Fn::"):
                return getattr(self, "fn_" + name.removeprefix("Fn::"))(argument)
        evaluated = {key: self(value) for key, value in node.items()}
        return {key: value for key, value in evaluated.items() if value is not NO_VALUE}

    def reference(self, name):
        if name == "AWS::NoValue":
            return NO_VALUE
        pseudo = {
            "AWS::Region": REGION,
            "AWS::AccountId": ACCOUNT,
            "AWS::Partition": PARTITION,
            "AWS::StackName": "stack",
        }
        if name in pseudo:
            return pseudo[name]
        return self.parameters[name] if name in self.parameters else self.attribute(name, "Ref")

    def attribute(self, logical_id, attribute):
        resource = self.template["Resources"][logical_id]
        kind, properties = resource["Type"], resource["Properties"]
        name_key, arn = {
            "AWS::SQS::Queue": ("QueueName", SQS + ":{}"),
            "AWS::Lambda::Function": (
                "FunctionName",
                f"arn:{PARTITION}:lambda:{REGION}:{ACCOUNT}:function:{{}}",
            ),
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
            found = (
                values[name]
                if name in values
                else self.fn_GetAtt(name)
                if "." in name
                else self.reference(name)
            )
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
    resources = {
        name: {**r, "Properties": evaluate(r["Properties"])}
        for name, r in template["Resources"].items()
        if wanted(r)
    }
    outputs = {
        name: evaluate(output["Value"])
        for name, output in template["Outputs"].items()
        if wanted(output)
    }
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
            p["Policies"] = {
                policy["PolicyName"]: policy["PolicyDocument"] for policy in p["Policies"]
            }
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
    "AWS::AutoScaling::LifecycleHook": lambda p: (
        f"{p.pop('AutoScalingGroupName')}/{p.pop('LifecycleHookName')}"
    ),
    "AWS::IAM::Role": lambda p: p.pop("RoleName"),
    "AWS::SSM::Document": lambda p: p.pop("Name"),
    "AWS::CloudWatch::Alarm": lambda p: p.pop("AlarmName"),
    "AWS::CloudWatch::Dashboard": lambda p: p.pop("DashboardName"),
}
