"""The SAM template and the Terraform module create the same things, whatever is asked of them."""

import json
import math

import pytest

import rendered


@pytest.mark.parametrize("deployment", rendered.DEPLOYMENTS)
def test_same_resources(states, deployment):
    terraform = rendered.from_terraform(states[deployment][0])
    sam = rendered.from_sam(rendered.sam_resources(rendered.DEPLOYMENTS[deployment])[0])
    assert sorted(terraform) == sorted(sam)
    for key in terraform:
        assert terraform[key] == sam[key], key


@pytest.mark.parametrize("deployment", rendered.DEPLOYMENTS)
def test_same_outputs(states, deployment):
    terraform = {key: value for key, value in states[deployment][1].items() if value is not None}
    sam = rendered.sam_resources(rendered.DEPLOYMENTS[deployment])[1]
    words = {
        "".join(word.capitalize() for word in key.split("_")): value
        for key, value in terraform.items()
    }
    for outputs in (words, sam):
        if "KmsKeyPolicyStatements" in outputs:
            outputs["KmsKeyPolicyStatements"] = rendered.canonical(
                json.loads(outputs["KmsKeyPolicyStatements"])
            )
    assert rendered.canonical(words) == rendered.canonical(sam)


MAPPINGS = rendered.translated(rendered.INFRA / "sam" / "template.yaml")["Mappings"]


def arithmetic(seconds):
    """locals.tf in words: heartbeat timeout, receive count and alarm threshold of a drain timeout."""
    return (
        min(3600, max(300, math.ceil(seconds / 2))),
        50 + math.ceil(seconds / 300),
        seconds + 1800,
    )


@pytest.mark.parametrize("seconds", MAPPINGS["DrainTimeout"])
def test_the_mapping_is_the_arithmetic(seconds):
    mapping = MAPPINGS["DrainTimeout"][seconds]
    assert (
        mapping["HeartbeatTimeout"],
        mapping["MaxReceiveCount"],
        mapping["OldestTaskAlarm"],
    ) == arithmetic(int(seconds))
    assert all(
        mapping["Visibility"] == 6 * int(timeout)
        for timeout, mapping in MAPPINGS["FunctionTimeout"].items()
    )


def test_the_module_does_the_arithmetic(terraform_provider):
    timeouts = {"shortest": 60, "odd": 4001, "half-a-day": 43200}
    runs = {
        label: {**rendered.BASE, "drain_timeout_seconds": seconds, "function_timeout_seconds": 77}
        for label, seconds in timeouts.items()
    }
    for label, (resources, outputs) in rendered.terraform_states(runs).items():
        found = rendered.from_terraform(resources)
        work = found["AWS::SQS::Queue", "lifecycle-reaper-work"]
        threshold = found["AWS::CloudWatch::Alarm", "lifecycle-reaper-oldest-task"]["Threshold"]
        computed = (
            outputs["heartbeat_timeout_seconds"],
            int(work["RedrivePolicy"]["maxReceiveCount"]),
            int(threshold),
        )
        assert computed == arithmetic(timeouts[label])
        assert work["VisibilityTimeout"] == str(6 * 77)


def test_every_parameter_is_a_variable_and_the_other_way_round():
    parameters = set(rendered.translated(rendered.INFRA / "sam" / "template.yaml")["Parameters"])
    text = (rendered.INFRA / "terraform" / "variables.tf").read_text()
    variables = {line.split('"')[1] for line in text.splitlines() if line.startswith("variable ")}
    # CloudFormation can't put a parameter into a condition's key; code and tags are SAM's own business
    terraform_only = {"parent_tag", "owner_tag", "keep_tag", "package", "tags"}
    expected = {
        "".join(word.capitalize() for word in name.split("_"))
        for name in variables - terraform_only - {"eip_tag", "vpc_config"}
    }
    assert parameters == expected | {"EipTagValue", "SubnetIds", "SecurityGroupIds"}


@pytest.mark.parametrize("seconds", [60, 300, 599, 600, 7200, 7201, 86400, 172800])
def test_the_arithmetic_reaches_the_configured_drain(seconds):
    """What the formulas promise, for every drain timeout."""
    heartbeat, receives, _ = arithmetic(seconds)
    assert 30 <= heartbeat <= 7200
    assert min(172800, 100 * heartbeat) >= seconds  # the hook's global timeout
    # while draining, passes are a third of a heartbeat apart at most, 900 s at most, less a fifth of jitter
    steady = 0.8 * min(900, heartbeat / 3)
    assert receives <= 1000 and receives - 7 >= seconds / steady
