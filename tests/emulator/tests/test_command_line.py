"""The real command line: what it shows of an account of 10,000 instances, and how it leaves one clean."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
from conftest import wait_until
from emulator import seeding
from emulator.deployment import Deployment
from emulator.scenario import HOUR, PARENT_TAG
from emulator.timeline import LOCK
from reaping import GONE, leftovers, manager, neighbours, remaining

SETTINGS = ["--groups", Deployment.GROUP, "--executor-name", Deployment.EXECUTOR]


@pytest.fixture
def command(binary):
    path = Path(os.environ.get("COMMAND_LINE", Path(binary).with_name("lifecycle-reaper")))
    if not path.exists() and "BOOTSTRAP" in os.environ:
        pytest.skip("no command line beside BOOTSTRAP, and COMMAND_LINE names none")
    if not path.exists():
        pytest.fail(f"no command line at {path}: tests/emulator/run builds it")
    return str(path)


@pytest.fixture
def run(aws, command):
    def run(*arguments: str, seconds: float = 60, **variables: str) -> subprocess.CompletedProcess:
        environment = {"PATH": os.environ["PATH"]} | aws.client_environment() | variables
        return subprocess.run(
            [command, *arguments],
            env={name: value for name, value in environment.items() if value},
            capture_output=True,
            text=True,
            timeout=seconds,
        )

    return run


def written(aws) -> list[str]:
    """The calls that changed something, or would have."""
    reads = ("Describe", "List", "Get")
    return [
        call.name
        for call in aws.calls.calls
        if not call.action.startswith(reads) and "DryRun=true" not in call.summary()
    ]


def crowd() -> str:
    """10,000 instances, a tenth of them left behind by a manager that is gone; returns the one that lives."""
    living = manager(3 * HOUR)
    old = int(time.time() - 2000 * HOUR)
    with LOCK:
        seeding.seed(
            {
                "instances": [
                    {"count": 1000, "age": 5 * HOUR, "tags": {PARENT_TAG: GONE}},
                    {"count": 5000, "age": 2 * HOUR, "tags": {PARENT_TAG: living}},
                    {"count": 3999, "age": 9 * HOUR, "tags": {"team": "web"}},
                ],
                "key_pairs": [{"count": 4000, "name": f"runner-abc-prod-{old}-{{n:08x}}"}],
                "addresses": [{"count": 20, "tags": {"lifecycle-reaper:owner": GONE}}],
            }
        )
    return living


def test_a_plan_of_ten_thousand_instances_fits_the_terminal_and_writes_nothing(aws, deploy, run):
    with deploy():
        living = crowd()
        before = remaining()
        aws.calls.calls.clear()
        began = time.time()
        shown = run("plan", *SETTINGS, COLUMNS="80")
        print(f"planned in {time.time() - began:.1f} s with {aws.calls.counts()}")
        assert shown.returncode == 0, shown.stderr
        assert "Reading the account in " in shown.stderr
        assert max(map(len, shown.stdout.splitlines())) <= 80
        head = " ".join(shown.stdout.split("TO BE DELETED: ")[0].split())
        assert "5000 to be deleted (4000 key-pairs, 1000 workers), 20 not yet decided" in head
        assert f"the oldest live manager is {living}" in head
        assert written(aws) == []
        assert len(aws.calls.of("ec2:DescribeInstances")) <= 22, "a call a page, none a worker"

        plan = json.loads(run("plan", *SETTINGS, "--format", "json").stdout)
        reaped = {r["id"] for r in plan["resources"] if r["verdict"] == "reap"}
        assert len(reaped) == 5000 and living not in reaped
        assert remaining() == before


def test_why_explains_from_a_saved_plan_without_an_account(aws, deploy, run, tmp_path):
    with deploy():
        manager(3 * HOUR)
        worker = next(id for id in leftovers(GONE, 5 * HOUR) if id.startswith("i-"))
        saved = str(tmp_path / "plan.json")
        assert run("plan", *SETTINGS, "--save", saved).returncode == 0
        aws.calls.calls.clear()
        why = run("why", worker, "--plan", saved, AWS_ACCESS_KEY_ID="", AWS_REGION="")
        assert why.returncode == 0, why.stderr
        assert "TO BE DELETED" in why.stdout and "-> decides: reap" in why.stdout
        unknown = run("why", "i-0123456789abcdef0", "--plan", saved)
        assert unknown.returncode == 2 and "not in the plan" in unknown.stdout
        assert not aws.calls.calls


def test_without_credentials_or_region_it_says_so_at_once(aws, run):
    keyless = run("plan", *SETTINGS, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
    assert keyless.returncode == 1
    assert "no credentials" in keyless.stderr and "AWS_PROFILE" in keyless.stderr
    placeless = run("plan", *SETTINGS, AWS_REGION="", AWS_DEFAULT_REGION="")
    assert placeless.returncode == 1 and "no Region is configured" in placeless.stderr
    groupless = run("plan")
    assert groupless.returncode == 64 and "AUTO_SCALING_GROUPS (--groups)" in groupless.stderr
    assert not aws.calls.calls


def test_half_an_answer_is_a_plan_that_says_so(aws, deploy, run):
    """The command line's HTTP client is the SDK's own, and the SDK takes half a page for a whole one."""
    with deploy():
        manager(3 * HOUR)
        leftovers(GONE, 5 * HOUR)
        aws.fail(service="ec2", action="DescribeInstances", halved=True, times=None)
        aws.calls.calls.clear()
        half = run("plan", *SETTINGS)
        assert half.returncode == 1
        assert "DescribeInstances" in half.stderr and "the answer ends inside" in half.stderr
        assert not written(aws)


def test_a_sweep_before_leaving_ends_clean_and_may_be_broken_off_at_any_time(aws, deploy, run):
    """Each run has time for one pass alone; together they do what one long run would."""
    with deploy() as deployment:
        deployment.autoscaling.delete_auto_scaling_group(
            AutoScalingGroupName=deployment.GROUP, ForceDelete=True
        )
        for _ in range(3):
            leftovers(GONE, 5 * HOUR)
        others = neighbours()
        aws.calls.calls.clear()
        assert run("sweep", *SETTINGS).returncode == 0
        assert written(aws) == [], "without --yes it is a plan"

        once = run("sweep", "--yes", *SETTINGS, "--timeout-seconds", "5")
        assert once.returncode == 2, once.stderr
        assert "NOT clean after 1 passes" in once.stdout

        def clean():
            return run("sweep", "--yes", *SETTINGS, "--timeout-seconds", "5").returncode == 0

        wait_until(clean, 60, "a clean account")
        last = run("sweep", "--yes", *SETTINGS, "--timeout-seconds", "5")
        assert last.returncode == 0 and "Destroy is safe now" in last.stdout
        assert remaining() == others


def test_a_sweep_while_a_manager_lives_touches_nothing_of_it(aws, deploy, run):
    with deploy():
        living = manager(3 * HOUR)
        its_own = leftovers(living, 1 * HOUR) | {living}
        swept = run("sweep", "--yes", *SETTINGS, "--timeout-seconds", "5")
        assert swept.returncode == 2
        assert f"manager {living}" in swept.stdout and "scale their groups to zero" in swept.stdout
        assert remaining() >= its_own
