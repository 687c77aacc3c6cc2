"""What the files say, without running them: the linters, and small tests for what they miss."""

import json
import pathlib
import re
import sys

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
    scripts = [
        path
        for path in INFRA.rglob("*")
        if path.is_file() and re.match(rb"#!/(usr/)?bin/(env )?(ba)?sh\b", path.read_bytes()[:30])
    ]
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
    changed = re.sub(
        r'source\s+= "cattle-ops/gitlab-runner/aws"\n\s+version = "[^"]+"',
        'source = "./runner"',
        text,
    )
    assert changed != text
    (folder / "main.tf").write_text(changed)
    terraform.init(cwd=folder)
    done = terraform("validate", "-no-color", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_destroy_order_of_the_standalone_example():
    """The group refers to the module (queue, role), the module to the group only by a name."""
    text = (INFRA / "terraform" / "examples" / "standalone" / "main.tf").read_text()
    blocks = dict(
        re.findall(r'^((?:module|resource) "[^{]+) \{\n(.*?)^\}', text, re.MULTILINE | re.DOTALL)
    )
    assert (
        "module.lifecycle_reaper.work_queue_arn"
        in blocks['resource "aws_autoscaling_group" "managers"']
    )
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


@pytest.mark.parametrize(
    ("framework", "place"), [("terraform", "terraform"), ("cloudformation", "sam")]
)
def test_checkov(needs, framework, place):
    from tools import CACHE

    checkov = CACHE / "checkov" / "bin" / "checkov"
    if not checkov.exists():
        needs("checkov (PyPI; infra/check installs it)")
    done = run(
        checkov,
        "--config-file",
        INFRA / "tests" / "checkov.yaml",
        "--framework",
        framework,
        "--directory",
        INFRA / place,
        "--output",
        "json",
        env={"LOG_LEVEL": "ERROR"},
    )
    report = json.loads(done.stdout)
    assert report["summary"]["passed"] > 10
    failed = [
        f"{one['check_id']} {one['check_name']}: {one['resource']}"
        for one in report["results"]["failed_checks"]
        if "/examples/" not in one["file_path"]
    ]
    assert not failed, "\n".join(failed)


def test_the_build_is_what_make_deploy_updates():
    function = yaml.load(TEMPLATE.read_text(), Loader=Loose)["Resources"]["Function"]
    assert function["Metadata"] == {
        "BuildMethod": "rust-cargolambda",
        "BuildProperties": {"Binary": "bootstrap"},
    }
    manifest = (INFRA.parent / "Cargo.toml").read_text()
    assert re.search(r'^\[\[bin\]\]\nname = "bootstrap"', manifest, re.MULTILINE)
    assert (INFRA / "sam" / function["Properties"]["CodeUri"]).resolve() == INFRA.parent


class Loose(yaml.SafeLoader):
    """YAML with CloudFormation's tags left as their values."""


def untagged(loader, _tag, node):
    construct = {
        yaml.MappingNode: loader.construct_mapping,
        yaml.SequenceNode: loader.construct_sequence,
    }.get(type(node), loader.construct_scalar)
    return construct(node, True) if construct != loader.construct_scalar else construct(node)


Loose.add_multi_constructor("!", untagged)


@pytest.mark.parametrize(
    "refused",
    [
        {"auto_scaling_groups": []},
        {"auto_scaling_groups": ["ci-*"]},
        {"auto_scaling_groups": ["a", "b", "c", "d", "e"]},
        {"mode": "delete"},
        {"executor_name": "*"},
        {"reap": ["volumes"]},
        {"drain_timeout_seconds": 7201},
        {"architecture": "mips"},
        {"log_level": "verbose"},
        {"name_prefix": "a-long-prefix-"},
        {"create_lifecycle_hook": False},
    ],
)
def test_sam_refuses(refused):
    """What the module refuses too."""
    with pytest.raises(AssertionError):
        rendered.sam_resources({**rendered.BASE, **refused})


@pytest.fixture(scope="module")
def everything():
    return rendered.from_sam(rendered.sam_resources(rendered.DEPLOYMENTS["everything"])[0])


# What parliament says and we leave as it is.
FINDINGS = {
    (
        "function",
        "RESOURCE_STAR",
    ): "network interfaces that don't exist yet have no narrower ARN; AWS's own managed policy says the same",
    (
        "function",
        "UNKNOWN_CONDITION_FOR_ACTION",
    ): "lambda:SourceFunctionArn is a key of the caller, given with every call of a function's code",
    (
        "function",
        "RESOURCE_MISMATCH",
    ): "ssm:SendCommand needs the document and the instance; each has a statement of its own, on purpose",
    ("plan-user", "RESOURCE_STAR"): "a person's plan may look at any deployment's queues",
    (
        "instance",
        "RESOURCE_EFFECTIVELY_STAR",
    ): "the file knows neither account nor Region; the owner tag narrows it",
}


def test_parliament(everything):
    found = {
        **policies.of_deployment(everything, rendered.DEPLOYMENTS["everything"]),
        **policies.standing_alone(),
    }
    said = set()
    for policy in (*policies.OF_ROLES, "plan-user", "instance"):
        for document in found[policy]:
            for finding in parliament.analyze_policy_string(json.dumps(document)).findings:
                said.add((policy, finding.issue))
                assert (policy, finding.issue) in FINDINGS, f"{policy}: {finding}"
    assert said == set(FINDINGS)
