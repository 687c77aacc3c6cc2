"""What the files say, without running them: the linters, and small tests for what they miss."""

import json
import pathlib
import re
import sys

import botocore.session
import parliament
import pytest
import yaml

import policies
import rendered
from tools import INFRA, REGION, Terraform, run

BIN = pathlib.Path(sys.executable).parent
TEMPLATE = INFRA / "sam" / "template.yaml"
SOURCES = INFRA.parent / "src"


def test_copies_are_fresh():
    done = run(INFRA / "embed", "--check")
    assert done.returncode == 0, done.stdout


def test_shellcheck():
    scripts = [path for path in INFRA.rglob("*") if path.is_file() and re.match(rb"#!/(usr/)?bin/(env )?(ba)?sh\b", path.read_bytes()[:30])]
    assert {"drain.sh", "address", "install", "check"} <= {path.name for path in scripts}
    done = run(BIN / "shellcheck", *scripts)
    assert done.returncode == 0, done.stdout


# --- Terraform


@pytest.fixture(scope="module")
def terraform(terraform_provider):
    ready = Terraform()
    ready.init()
    return ready


def test_terraform_format():
    done = run("terraform", "fmt", "-check", "-diff", "-recursive", INFRA / "terraform")
    assert done.returncode == 0, done.stdout


def test_terraform_validate(terraform):
    done = terraform("validate", "-no-color")
    assert done.returncode == 0, done.stdout + done.stderr


def test_terraform_tests(terraform):
    done = terraform("test", "-no-color", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\b2\d passed, 0 failed", done.stdout), done.stdout[-300:]


def test_example_standalone(terraform):
    folder = terraform.module / "examples" / "standalone"
    terraform.init(cwd=folder)
    done = terraform("validate", "-no-color", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


# What the example sets and reads of cattle-ops/gitlab-runner/aws, as version 9.5.2 declares it.
CATTLE_OPS = """
variable "environment" { type = string }
variable "vpc_id" { type = string }
variable "subnet_id" { type = string }
variable "runner_gitlab" {
  type = object({ url = optional(string, ""), preregistered_runner_token_ssm_parameter_name = optional(string, "") })
}
variable "runner_instance" {
  type = object({ name = string, ssm_access = optional(bool, false) })
}
variable "runner_terminate_ec2_lifecycle_timeout_duration" {
  type    = number
  default = null
}
variable "runner_terminate_ec2_lambda_handler" {
  type    = string
  default = null
}
output "runner_as_group_name" { value = "${var.environment}-as-group" }
"""


def test_example_cattle_ops(terraform):
    """With a stand-in for their module, which no registry hands out here."""
    folder = terraform.module / "examples" / "cattle-ops"
    (folder / "runner").mkdir(exist_ok=True)
    (folder / "runner" / "main.tf").write_text(CATTLE_OPS)
    text = (folder / "main.tf").read_text()
    changed = re.sub(r'source\s+= "cattle-ops/gitlab-runner/aws"\n\s+version = "[^"]+"', 'source = "./runner"', text)
    assert changed != text
    (folder / "main.tf").write_text(changed)
    terraform.init(cwd=folder)
    done = terraform("validate", "-no-color", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_destroy_order_of_the_standalone_example():
    """The group refers to the module (queue, role), the module to the group only by a name."""
    text = (INFRA / "terraform" / "examples" / "standalone" / "main.tf").read_text()
    blocks = dict(re.findall(r'^((?:module|resource) "[^{]+) \{\n(.*?)^\}', text, re.M | re.S))
    assert "module.lifecycle_reaper.work_queue_arn" in blocks['resource "aws_autoscaling_group" "managers"']
    assert "aws_autoscaling_group" not in blocks['module "lifecycle_reaper"']


# --- SAM


@pytest.mark.parametrize("form", ["raw", "translated"])
def test_cfn_lint(form, tmp_path):
    path = TEMPLATE
    if form == "translated":
        path = tmp_path / "template.json"
        path.write_text(json.dumps(rendered.translated(TEMPLATE)))
    done = run(BIN / "cfn-lint", "--regions", REGION, "us-east-1", "--", path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("framework", "place"), [("terraform", "terraform"), ("cloudformation", "sam")])
def test_checkov(needs, framework, place):
    from tools import CACHE

    checkov = CACHE / "checkov" / "bin" / "checkov"
    if not checkov.exists():
        needs("checkov (PyPI; infra/check installs it)")
    done = run(checkov, "--config-file", INFRA / "tests" / "checkov.yaml", "--framework", framework, "--directory", INFRA / place, "--output", "json", env={"LOG_LEVEL": "ERROR"})
    report = json.loads(done.stdout)
    assert report["summary"]["passed"] > 10
    failed = [f"{one['check_id']} {one['check_name']}: {one['resource']}" for one in report["results"]["failed_checks"] if "/examples/" not in one["file_path"]]
    assert not failed, "\n".join(failed)


def test_the_build_is_what_make_deploy_updates():
    function = yaml.load(TEMPLATE.read_text(), Loader=Loose)["Resources"]["Function"]
    assert function["Metadata"] == {"BuildMethod": "rust-cargolambda", "BuildProperties": {"Binary": "bootstrap"}}
    manifest = (INFRA.parent / "Cargo.toml").read_text()
    assert re.search(r'^\[\[bin\]\]\nname = "bootstrap"', manifest, re.M)
    assert (INFRA / "sam" / function["Properties"]["CodeUri"]).resolve() == INFRA.parent


class Loose(yaml.SafeLoader):
    """YAML with CloudFormation's tags left as their values."""


def untagged(loader, _tag, node):
    construct = {yaml.MappingNode: loader.construct_mapping, yaml.SequenceNode: loader.construct_sequence}.get(type(node), loader.construct_scalar)
    return construct(node, True) if construct != loader.construct_scalar else construct(node)


Loose.add_multi_constructor("!", untagged)


@pytest.mark.parametrize(
    "refused",
    [
        {"auto_scaling_groups": []}, {"auto_scaling_groups": ["ci-*"]}, {"auto_scaling_groups": ["a", "b", "c", "d", "e"]}, {"mode": "delete"},
        {"executor_name": "*"}, {"reap": ["volumes"]}, {"drain_timeout_seconds": 7201}, {"architecture": "mips"}, {"name_prefix": "a-long-prefix-"},
        {"create_lifecycle_hook": False},
    ],
)
def test_sam_refuses(refused):
    """What the module refuses too."""
    with pytest.raises(AssertionError):
        rendered.sam_resources({**rendered.BASE, **refused})


# --- What linters miss


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
        assert parameter["type"] == "String" and set(parameter) <= {"type", "description", "default", "allowedPattern", "allowedValues"}
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
        script = script.replace("{{ " + name + " }}", {"StopCommand": "echo drained >&2; exit 0"}.get(name, parameter["default"]))
    assert script.startswith("#!/bin/sh\n")
    path = tmp_path / "script.sh"
    path.write_text(script)
    path.chmod(0o755)
    done = run(path)
    assert (done.returncode, done.stdout) == (0, "lifecycle-reaper: stopped unit=gitlab-runner.service by=command\n"), done.stderr


def test_event_patterns_are_of_the_right_types(everything):
    patterns = {name: rule["EventPattern"] for (kind, name), rule in everything.items() if kind == "AWS::Events::Rule" and "EventPattern" in rule}
    raw = rendered.sam_resources(rendered.DEPLOYMENTS["everything"])[0]
    raw = {rule["Properties"]["Name"]: rule["Properties"]["EventPattern"] for rule in raw.values() if rule["Type"] == "AWS::Events::Rule" and "EventPattern" in rule["Properties"]}
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
    return all(matches(wanted, event.get(key, {})) if isinstance(wanted, dict) else event.get(key) in wanted for key, wanted in pattern.items())


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
    rules = {r["Properties"]["Name"]: r["Properties"]["EventPattern"] for r in rules.values() if r["Type"] == "AWS::Events::Rule" and "EventPattern" in r["Properties"]}
    prefix = rendered.full_name(rendered.DEPLOYMENTS[deployment])
    assert [name for name, pattern in rules.items() if matches(pattern, event)] == ([f"{prefix}-{rule}"] if rule else [])
    if rule and rule != "spot-warnings":
        event["detail"]["AutoScalingGroupName"] = "somebody-elses-asg"
        assert not [name for name, pattern in rules.items() if matches(pattern, event)]


def test_drain_commands_are_caught_when_they_end():
    rules = rendered.sam_resources(rendered.DEPLOYMENTS["enforce"])[0]
    pattern = rules["DrainCommandsRule"]["Properties"]["EventPattern"]
    event = {"source": "aws.ssm", "detail-type": "EC2 Command Invocation Status-change Notification", "detail": {"document-name": "lifecycle-reaper-drain", "status": "Success"}}
    assert matches(pattern, event)
    assert not matches(pattern, {**event, "detail": {**event["detail"], "document-name": "AWS-RunShellScript"}})
    statuses = botocore.session.get_session().get_service_model("ssm").shape_for("CommandInvocationStatus").enum
    ended = [status for status in statuses if matches(pattern, {**event, "detail": {**event["detail"], "status": status}})]
    assert sorted(ended) == ["Cancelled", "Failed", "Success", "TimedOut"]
    assert sorted(set(statuses) - set(ended)) == ["Cancelling", "Delayed", "InProgress", "Pending"]


def test_every_target_has_a_dead_letter_queue_and_every_rule_may_use_it(everything):
    for (kind, name), rule in everything.items():
        if kind == "AWS::Events::Rule":
            target, = rule["Targets"]
            assert target["DeadLetterConfig"]["Arn"].endswith("-dead-letters"), name
            allowed = everything["AWS::SQS::QueuePolicy", f"https://sqs.{REGION}.amazonaws.com/123456789012/team-lifecycle-reaper-dead-letters"]
            assert any(source.endswith(f"rule/{name}") for source in allowed["PolicyDocument"]["Statement"][0]["Condition"]["ArnEquals"]["aws:SourceArn"]), name


def test_no_rule_and_no_invoke_can_reach_the_function_twice(everything):
    """Only the sweep calls the function directly, and only its rule may."""
    direct = [name for (kind, name), rule in everything.items() if kind == "AWS::Events::Rule" and any(":function:" in target["Arn"] for target in rule["Targets"])]
    permitted = [name for kind, name in everything if kind == "AWS::Lambda::Permission"]
    assert direct == ["team-lifecycle-reaper-sweep"] and [name.split("rule/")[1] for name in permitted] == direct


def test_dashboard(everything):
    dashboard = next(value["DashboardBody"] for (kind, _), value in everything.items() if kind == "AWS::CloudWatch::Dashboard")
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
    alarms = {name.removeprefix("team-lifecycle-reaper-"): alarm for (kind, name), alarm in everything.items() if kind == "AWS::CloudWatch::Alarm"}
    assert set(alarms) == {"dead-letters", "errors", "throttles", "recursion", "no-sweeps", "deadline-releases", "oldest-task"}
    for name, alarm in alarms.items():
        assert alarm["AlarmActions"] == alarm["OKActions"] == rendered.DEPLOYMENTS["everything"]["alarm_topic_arn"]
        # a metric that is never sent must not hide that nothing runs, and must not ring for ever
        assert alarm["TreatMissingData"] == ("breaching" if name == "no-sweeps" else "notBreaching")
    assert int(alarms["no-sweeps"]["Period"]) * int(alarms["no-sweeps"]["EvaluationPeriods"]) == 6 * 3600
    assert int(alarms["oldest-task"]["Threshold"]) > 172800


def test_environment_is_what_the_function_reads(everything):
    set_here = set(everything["AWS::Lambda::Function", "team-lifecycle-reaper"]["Environment"]["Variables"])
    text = (SOURCES / "config.rs").read_text().split("#[cfg(test)]")[0]
    read = set(re.findall(r'"([A-Z]+(?:_[A-Z]+)+|MODE|DRAIN|REAP)"', text)) | {"LOG_LEVEL"}
    assert "LOG_LEVEL" in (SOURCES / "log.rs").read_text()
    given_by_lambda, other_spelling = {"AWS_REGION"}, {"NAME_EXECUTOR_INSTANCE"}
    assert set_here == read - given_by_lambda - other_spelling


def test_operations_are_those_of_the_code():
    """Every call of the SDK in the source has its line in operations.json, and every line its call."""
    text = "\n".join(path.read_text() for path in SOURCES.rglob("*.rs"))
    models = {service: set(botocore.session.get_session().get_service_model(service).operation_names) for service in ("ec2", "autoscaling", "ssm", "sqs")}
    snake = lambda operation: re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", operation).lower()
    called = {operation for operation in set.union(*models.values()) if re.search(rf"\.{snake(operation)}\(\)", text)}
    listed = json.loads((INFRA / "iam" / "operations.json").read_text())
    listed = listed["operations"] + listed["command_line"]
    assert all(one["operation"] in models[one["service"]] for one in listed)
    assert called == {one["operation"] for one in listed}


# What parliament says and we leave as it is.
FINDINGS = {
    ("function", "RESOURCE_STAR"): "network interfaces that don't exist yet have no narrower ARN; AWS's own managed policy says the same",
    ("function", "UNKNOWN_CONDITION_FOR_ACTION"): "lambda:SourceFunctionArn is a key of the caller, given with every call of a function's code",
    ("function", "RESOURCE_MISMATCH"): "ssm:SendCommand needs the document and the instance; each has a statement of its own, on purpose",
    ("plan-user", "RESOURCE_STAR"): "a person's plan may look at any deployment's queues",
    ("instance", "RESOURCE_EFFECTIVELY_STAR"): "the file knows neither account nor Region; the owner tag narrows it",
}


def test_parliament(everything):
    found = {**policies.of_deployment(everything, rendered.DEPLOYMENTS["everything"]), **policies.standing_alone()}
    said = set()
    for policy in (*policies.OF_ROLES, "plan-user", "instance"):
        for document in found[policy]:
            for finding in parliament.analyze_policy_string(json.dumps(document)).findings:
                said.add((policy, finding.issue))
                assert (policy, finding.issue) in FINDINGS, f"{policy}: {finding}"
    assert said == set(FINDINGS)
