"""The checks checked: templates broken in twelve places, and the drain script in seven, must each be noticed."""

import re
import shutil
import sys

import pytest

import machine as machines
import rendered
from tools import INFRA, run

# What is broken: the file, the text, its replacement, and a deployment that shows it.
TEMPLATES = {
    "partial replies switched off": (
        "terraform/function.tf",
        '["ReportBatchItemFailures"]',
        "[]",
        "plan",
    ),
    "a hook that abandons": ("terraform/hook.tf", '"CONTINUE"', '"ABANDON"', "enforce"),
    "a hook in plan mode": (
        "terraform/locals.tf",
        "var.create_lifecycle_hook && local.enforce",
        "var.create_lifecycle_hook",
        "plan",
    ),
    "visibility too short": (
        "terraform/locals.tf",
        "6 * var.function_timeout_seconds",
        "5 * var.function_timeout_seconds",
        "plan",
    ),
    "another receive count than the queue's": (
        "terraform/function.tf",
        "tostring(local.max_receive_count)",
        '"5"',
        "plan",
    ),
    "every group's terminations": (
        "terraform/events.tf",
        "detail      = { AutoScalingGroupName = var.auto_scaling_groups }",
        "detail = {}",
        "plan",
    ),
    "a sweep that can't be dead-lettered": (
        "terraform/queues.tf",
        'sort(concat(keys(local.event_patterns), ["sweep"]))',
        "sort(keys(local.event_patterns))",
        "plan",
    ),
    "workers by any parent tag": (
        "terraform/statements.tf",
        '"ec2:ResourceTag/${var.parent_tag}" = "i-*"',
        '"ec2:ResourceTag/${var.parent_tag}" = "*"',
        "enforce",
    ),
    "an alarm that never rings": ("terraform/alarms.tf", '"breaching"', '"notBreaching"', "plan"),
    "a document that lets another command through": (
        "terraform/document.tf",
        ", allowedValues = [var.stop_command]",
        "",
        "hook-to-queue",
    ),
    "the wrong architecture in SAM": (
        "sam/template.yaml",
        "Architectures: [!Ref Architecture]",
        "Architectures: [arm64]",
        "everything",
    ),
    "a mapping that does not add up": (
        "sam/template.yaml",
        "MaxReceiveCount: 74",
        "MaxReceiveCount: 3",
        "plan",
    ),
}


@pytest.mark.parametrize("broken", TEMPLATES)
def test_a_broken_template_is_noticed(terraform_provider, states, broken, tmp_path):
    """By the comparison of the two."""
    file, text, replacement, deployment = TEMPLATES[broken]
    infra = tmp_path / "infra"
    shutil.copytree(INFRA, infra, ignore=shutil.ignore_patterns("tests", ".terraform*"))
    (infra / "terraform" / "tests").mkdir()
    whole = (infra / file).read_text()
    assert text in whole, "the place has changed: mend this test"
    (infra / file).write_text(whole.replace(text, replacement))
    variables = rendered.DEPLOYMENTS[deployment]
    after = (
        rendered.terraform_states({deployment: variables}, infra)
        if file.endswith(".tf")
        else states
    )
    sam = rendered.from_sam(rendered.sam_resources(variables, infra / "sam" / "template.yaml")[0])
    assert rendered.from_terraform(after[deployment][0]) != sam


# What is broken in the script, and the test that must fail then.
SCRIPT = {
    "no lock": ("flock -n 9 ||", "true ||", "second_copy"),
    "SIGTERM to everybody": (
        "KillMode=mixed\nKillSignal=SIGQUIT",
        "KillMode=control-group\nKillSignal=SIGTERM",
        "three_lengths",
    ),
    "children get the signal too": ("KillMode=mixed", "KillMode=control-group", "three_lengths"),
    "how the unit ended is forgotten": ("Before=$unit", "Description=nothing", "not_enabled"),
    "exit 0 taken for graceful": ("elif jobs_were_cut; then", "elif false; then", "sigterm_during"),
    "failed taken for stopped": (
        "failed) echo aborted ;;",
        "failed) echo stopped ;;",
        "failed_for_good",
    ),
    "never more than a second": ("TimeoutStopSec=0", "TimeoutStopSec=1", "three_lengths"),
}


@pytest.fixture(scope="module")
def machines_can_be_made(needs):
    try:
        machines.Machine().stop()
    except machines.Impossible as problem:
        needs(f"systemd in namespaces: {problem}")


@pytest.mark.parametrize("broken", SCRIPT)
def test_a_broken_drain_script_is_noticed(machines_can_be_made, broken, tmp_path):
    """By a test of test_drain.py, run on the broken copy."""
    text, replacement, test = SCRIPT[broken]
    whole = machines.SCRIPT.read_text()
    # the guard that refuses an ungraceful stop would hide what the settings do
    whole = re.sub(
        r'  case \$\(shown_value TimeoutStopUSec\).*?\n  \[ "\$\(shown_value KillMode\).*?\n',
        "",
        whole,
        flags=re.DOTALL,
    )
    assert text in whole, "the place has changed: mend this test"
    script = tmp_path / "drain.sh"
    script.write_text(whole.replace(text, replacement))
    script.chmod(0o755)
    words = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", test, "test_drain.py"]
    done = run(
        sys.executable, *words, cwd=INFRA / "tests", env={"DRAIN_SCRIPT": str(script)}, timeout=180
    )
    assert done.returncode == 1 and re.search(
        rf"^FAILED test_drain.py::test_\w*{test}", done.stdout, re.MULTILINE
    ), done.stdout[-500:]
