"""What linters miss: document, events, dashboard, alarms, and what the function itself relies on."""

import json
import re

import botocore.session
import pytest
import yaml

import rendered
from tools import INFRA, REGION, run

SOURCES = INFRA.parent / "src"


@pytest.fixture(scope="module")
def everything():
    return rendered.from_sam(rendered.sam_resources(rendered.DEPLOYMENTS["everything"])[0])


def test_the_drain_document_is_one_that_ssm_takes():
    document = yaml.safe_load((INFRA / "ssm" / "drain.yaml").read_text())
    assert document["schemaVersion"] == "2.2"
    assert [step["action"] for step in document["mainSteps"]] == ["aws:runShellScript"]
    text = json.dumps(document["mainSteps"])
    assert len(json.dumps(document)) < 64 * 1024
    assert set(re.findall(r"\{\{ ?(\w+) ?\}\}", text)) == set(document["parameters"])
    for name, parameter in document["parameters"].items():
        assert parameter["type"] == "String" and set(parameter) <= {
            "type",
            "description",
            "default",
            "allowedPattern",
            "allowedValues",
        }
        assert re.fullmatch(parameter.get("allowedPattern", ".*"), parameter["default"]), name
        assert parameter["default"] in parameter.get("allowedValues", [parameter["default"]])
        # whatever the pattern lets through stands between single quotes in the script
        assert "'" not in parameter.get("allowedPattern", "") or name == "StopCommand"
    limit = int(document["mainSteps"][0]["inputs"]["timeoutSeconds"])
    assert not re.fullmatch(document["parameters"]["WaitSeconds"]["allowedPattern"], str(limit))


def test_the_document_runs_as_ssm_would_write_it(tmp_path):
    """Its script with the defaults in place of the parameters, up to the first thing that needs systemd."""
    document = yaml.safe_load((INFRA / "ssm" / "drain.yaml").read_text())
    script = "\n".join(document["mainSteps"][0]["inputs"]["runCommand"])
    for name, parameter in document["parameters"].items():
        script = script.replace(
            "{{ " + name + " }}",
            {"StopCommand": "echo drained >&2; exit 0"}.get(name, parameter["default"]),
        )
    assert script.startswith("#!/bin/sh\n")
    path = tmp_path / "script.sh"
    path.write_text(script)
    path.chmod(0o755)
    done = run(path)
    assert (done.returncode, done.stdout) == (
        0,
        "lifecycle-reaper: stopped unit=gitlab-runner.service by=command\n",
    ), done.stderr


def test_event_patterns_are_of_the_right_types(everything):
    patterns = {
        name: rule["EventPattern"]
        for (kind, name), rule in everything.items()
        if kind == "AWS::Events::Rule" and "EventPattern" in rule
    }
    raw = rendered.sam_resources(rendered.DEPLOYMENTS["everything"])[0]
    raw = {
        rule["Properties"]["Name"]: rule["Properties"]["EventPattern"]
        for rule in raw.values()
        if rule["Type"] == "AWS::Events::Rule" and "EventPattern" in rule["Properties"]
    }
    assert set(raw) == set(patterns) and len(raw) == 3

    def leaves(node):
        for value in node.values():
            if isinstance(value, dict):
                yield from leaves(value)
            else:
                yield value

    for pattern in raw.values():
        assert set(pattern) <= {"source", "detail-type", "detail", "account", "region", "resources"}
        for leaf in leaves(pattern):
            assert isinstance(leaf, list) and leaf and all(isinstance(value, str) for value in leaf)


def matches(pattern, event):
    """EventBridge's matching, as far as plain values go."""
    return all(
        matches(wanted, event.get(key, {}))
        if isinstance(wanted, dict)
        else event.get(key) in wanted
        for key, wanted in pattern.items()
    )


@pytest.mark.parametrize(
    ("sample", "deployment", "rule"),
    [
        ("direct-terminate-successful.json", "plan", "terminations"),
        ("direct-terminate-unsuccessful.json", "plan", "terminations"),
        ("direct-termination.json", "existing-hook", "lifecycle"),
        ("direct-termination.json", "enforce", None),
        ("direct-launch.json", "existing-hook", None),
        ("direct-launch-successful.json", "plan", None),
        ("direct-spot-interruption.json", "everything", "spot-warnings"),
        ("direct-spot-interruption.json", "enforce", None),
    ],
)
def test_rules_catch_the_sample_events(sample, deployment, rule):
    event = json.loads((INFRA.parent / "events" / sample).read_text())
    rules = rendered.sam_resources(rendered.DEPLOYMENTS[deployment])[0]
    rules = {
        r["Properties"]["Name"]: r["Properties"]["EventPattern"]
        for r in rules.values()
        if r["Type"] == "AWS::Events::Rule" and "EventPattern" in r["Properties"]
    }
    prefix = rendered.full_name(rendered.DEPLOYMENTS[deployment])
    assert [name for name, pattern in rules.items() if matches(pattern, event)] == (
        [f"{prefix}-{rule}"] if rule else []
    )
    if rule and rule != "spot-warnings":
        event["detail"]["AutoScalingGroupName"] = "somebody-elses-asg"
        assert not [name for name, pattern in rules.items() if matches(pattern, event)]


def test_drain_commands_are_caught_when_they_end():
    rules = rendered.sam_resources(rendered.DEPLOYMENTS["enforce"])[0]
    pattern = rules["DrainCommandsRule"]["Properties"]["EventPattern"]
    event = {
        "source": "aws.ssm",
        "detail-type": "EC2 Command Invocation Status-change Notification",
        "detail": {"document-name": "lifecycle-reaper-drain", "status": "Success"},
    }
    assert matches(pattern, event)
    assert not matches(
        pattern, {**event, "detail": {**event["detail"], "document-name": "AWS-RunShellScript"}}
    )
    statuses = (
        botocore.session.get_session()
        .get_service_model("ssm")
        .shape_for("CommandInvocationStatus")
        .enum
    )
    ended = [
        status
        for status in statuses
        if matches(pattern, {**event, "detail": {**event["detail"], "status": status}})
    ]
    assert sorted(ended) == ["Cancelled", "Failed", "Success", "TimedOut"]
    assert sorted(set(statuses) - set(ended)) == ["Cancelling", "Delayed", "InProgress", "Pending"]


def test_every_target_has_a_dead_letter_queue_and_every_rule_may_use_it(everything):
    for (kind, name), rule in everything.items():
        if kind == "AWS::Events::Rule":
            (target,) = rule["Targets"]
            assert target["DeadLetterConfig"]["Arn"].endswith("-dead-letters"), name
            allowed = everything[
                "AWS::SQS::QueuePolicy",
                f"https://sqs.{REGION}.amazonaws.com/123456789012/team-lifecycle-reaper-dead-letters",
            ]
            assert any(
                source.endswith(f"rule/{name}")
                for source in allowed["PolicyDocument"]["Statement"][0]["Condition"]["ArnEquals"][
                    "aws:SourceArn"
                ]
            ), name


def test_no_rule_and_no_invoke_can_reach_the_function_twice(everything):
    """Only the sweep calls the function directly, and only its rule may."""
    direct = [
        name
        for (kind, name), rule in everything.items()
        if kind == "AWS::Events::Rule"
        and any(":function:" in target["Arn"] for target in rule["Targets"])
    ]
    permitted = [name for kind, name in everything if kind == "AWS::Lambda::Permission"]
    assert (
        direct == ["team-lifecycle-reaper-sweep"]
        and [name.split("rule/")[1] for name in permitted] == direct
    )


def test_dashboard(everything):
    dashboard = next(
        value["DashboardBody"]
        for (kind, _), value in everything.items()
        if kind == "AWS::CloudWatch::Dashboard"
    )
    cells = set()
    for widget in dashboard["widgets"]:
        x, y, width, height = (int(widget[key]) for key in ("x", "y", "width", "height"))
        assert 0 <= x and x + width <= 24
        covered = {(column, row) for column in range(x, x + width) for row in range(y, y + height)}
        assert not covered & cells, f"{widget['properties'].get('title')} covers another"
        cells |= covered
        assert widget["type"] in ("metric", "log", "text")
        if widget["type"] != "text":
            assert widget["properties"]["region"] == REGION and widget["properties"]["title"]
        assert "${" not in json.dumps(widget)
    titles = " ".join(widget["properties"].get("title", "") for widget in dashboard["widgets"])
    for question in ("Is it alive", "What it deleted", "Is anything stuck", "How long drains take"):
        assert question in titles


def test_alarms(everything):
    alarms = {
        name.removeprefix("team-lifecycle-reaper-"): alarm
        for (kind, name), alarm in everything.items()
        if kind == "AWS::CloudWatch::Alarm"
    }
    assert set(alarms) == {
        "dead-letters",
        "errors",
        "throttles",
        "recursion",
        "no-sweeps",
        "deadline-releases",
        "oldest-task",
        "to-mend",
        "hook-missing",
    }
    for name, alarm in alarms.items():
        assert (
            alarm["AlarmActions"]
            == alarm["OKActions"]
            == rendered.DEPLOYMENTS["everything"]["alarm_topic_arn"]
        )
        # a metric that is never sent must not hide that nothing runs, and must not ring for ever
        assert alarm["TreatMissingData"] == ("breaching" if name == "no-sweeps" else "notBreaching")
    assert (
        int(alarms["no-sweeps"]["Period"]) * int(alarms["no-sweeps"]["EvaluationPeriods"])
        == 6 * 3600
    )
    assert int(alarms["oldest-task"]["Threshold"]) > 172800
    # what each sweep says anew stays on from one sweep to the next
    for name in ("to-mend", "hook-missing"):
        assert int(alarms[name]["Period"]) * int(alarms[name]["EvaluationPeriods"]) > 15 * 60


def test_environment_is_what_the_function_reads(everything):
    set_here = set(
        everything["AWS::Lambda::Function", "team-lifecycle-reaper"]["Environment"]["Variables"]
    )
    files = sorted((SOURCES / "config").glob("*.rs"))
    text = "".join(path.read_text().split("#[cfg(test)]")[0] for path in files)
    read = set(re.findall(r'"([A-Z]+(?:_[A-Z]+)+|MODE|DRAIN|REAP)"', text)) | {"LOG_LEVEL"}
    assert "LOG_LEVEL" in (SOURCES / "log.rs").read_text()
    given_by_lambda, other_spelling = {"AWS_REGION"}, {"NAME_EXECUTOR_INSTANCE"}
    assert set_here == read - given_by_lambda - other_spelling


def test_operations_are_those_of_the_code():
    """Every call of the SDK in the source has its line in operations.json, and every line its call."""
    text = "\n".join(path.read_text() for path in SOURCES.rglob("*.rs"))
    models = {
        service: set(botocore.session.get_session().get_service_model(service).operation_names)
        for service in ("ec2", "autoscaling", "ssm", "sqs")
    }
    snake = lambda operation: re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", operation).lower()
    called = {
        operation
        for operation in set.union(*models.values())
        if re.search(rf"\.{snake(operation)}\(\)", text)
    }
    listed = json.loads((INFRA / "iam" / "operations.json").read_text())
    listed = listed["operations"] + listed["command_line"]
    assert all(one["operation"] in models[one["service"]] for one in listed)
    assert called == {one["operation"] for one in listed}
