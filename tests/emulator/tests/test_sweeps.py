"""The real function leaves nothing behind: sweeps, groups that go, thousands of keys, fleets, and plans that write nothing."""

import os
import time

from conftest import wait_until
from emulator import backends, fleets, scenario, seeding
from emulator.deployment import Deployment
from emulator.scenario import HOUR
from emulator.settings import SETTINGS
from emulator.timeline import LOCK
from reaping import GONE, dead_letters, leftovers, manager, neighbours, remaining, wait_until_quiet


def test_scaling_to_zero_in_the_evening_leaves_nothing(aws, deploy):
    with deploy() as deployment:
        first, second = manager(6 * HOUR), manager(1 * HOUR)
        leftovers(first, 4 * HOUR)
        leftovers(second, 0.5 * HOUR)
        others = neighbours()
        deployment.autoscaling.set_desired_capacity(
            AutoScalingGroupName=deployment.GROUP, DesiredCapacity=0
        )
        wait_until(lambda: remaining() == others, 60, "an account with nothing of ours")
        wait_until_quiet(deployment, 60)
        assert dead_letters(deployment) == []


def test_a_sweep_leaves_nothing_of_a_group_that_was_deleted(aws, deploy):
    with deploy() as deployment:
        first, second = manager(6 * HOUR), manager(2 * HOUR)
        leftovers(first, 4 * HOUR)
        leftovers(second, 1 * HOUR)
        others = neighbours()
        deployment.autoscaling.delete_auto_scaling_group(
            AutoScalingGroupName=deployment.GROUP, ForceDelete=True
        )
        reply = deployment.sweep().answer()
        assert reply["outcome"] == "Again", reply
        wait_until(lambda: remaining() == others, 60, "an account with nothing of ours")
        wait_until_quiet(deployment, 60)
        assert deployment.sweep().answer()["outcome"] == "Done"
        assert dead_letters(deployment) == []


def test_stale_keys_among_thousands_are_worked_off_within_ec2s_rate(aws, deploy):
    """Of 4,000 keys STALE_KEYS are ours to delete, five a second: all 4,000 take a quarter of an hour."""
    stale = int(os.environ.get("STALE_KEYS", "80"))
    with deploy(MAX_DELETIONS="50" if stale < 1000 else "100") as deployment:
        living = manager(1 * HOUR)
        kept = {scenario.machine_name(Deployment.EXECUTOR, 0.5 * HOUR), "my-own-key"}
        with LOCK:
            for name in kept:
                seeding.key_pair(name, 5 * HOUR)
            old = int(time.time() - 240 * HOUR)
            ours = {
                "count": stale,
                "name": f"runner-abcdef123-{Deployment.EXECUTOR}-{old}-{{n:08x}}",
                "age": 240 * HOUR,
            }
            neighbours = {
                "count": 4000 - stale,
                "name": f"runner-abcdef123-prod-eu-{old}-{{n:08x}}",
                "age": 240 * HOUR,
            }
            made = seeding.seed({"key_pairs": [ours, neighbours]})["key_pairs"]
            kept |= {
                key.key_name
                for key in backends.ec2().key_pairs.values()
                if key.id in set(made[stale:])
            }
        began = time.time()
        deployment.sweep()
        wait_until(
            lambda: remaining() == kept | {living}, 60 + stale / 3, f"the end of {stale} keys"
        )
        seconds = time.time() - began
        wait_until_quiet(deployment, 60)
        assert dead_letters(deployment) == []
    deletions = len(aws.calls.of("ec2:DeleteKeyPair"))
    print(f"{len(deployment.function.invocations)} passes, {seconds:.0f} s, {aws.calls.counts()}")
    assert deletions == stale, "each key is deleted once"
    assert deletions <= 50 + 6 * seconds, "EC2 lets 50 go at once and refills five a second"


def test_a_sweep_continues_by_itself_over_all_kinds(aws, deploy):
    """More of each kind than one pass may delete, in pages smaller than that, with a protected and a kept worker among them."""
    SETTINGS.change({"page_size": 7, "empty_pages": True})
    with deploy(MAX_DELETIONS="10") as deployment:
        living = manager(1 * HOUR)
        protected = scenario.start_worker(
            Deployment.EXECUTOR, 5 * HOUR, GONE, protected=True, zone="eu-central-1b"
        )
        kept = scenario.start_worker(Deployment.EXECUTOR, 5 * HOUR, GONE)
        with LOCK:
            backends.ec2().tags[kept.id]["lifecycle-reaper:keep"] = "for debugging"
            for _ in range(25):
                leftovers(GONE, 5 * HOUR)
        expected = {living, protected.id, protected.name, kept.id, kept.name} | neighbours()
        assert deployment.sweep().answer()["outcome"] == "Again"
        wait_until(lambda: remaining() == expected, 60, "everything but what is protected")
        wait_until_quiet(deployment, 60)
        assert dead_letters(deployment) == []


def test_sweeps_that_overlap_and_are_killed_are_harmless(aws, deploy):
    with deploy(concurrency=4, timeout=8) as deployment:
        living = manager(1 * HOUR)
        for _ in range(10):
            leftovers(GONE, 5 * HOUR)
        expected = {living} | leftovers(living, 0.5 * HOUR) | neighbours()
        aws.fail(action="TerminateInstances", latency=1.0)
        schedule = {
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "detail": {},
            "resources": [],
        }
        for _ in range(3):
            deployment.direct.invoke(schedule)
        wait_until(lambda: aws.calls.of("ec2:TerminateInstances"), what="a deletion")
        deployment.function.kill()
        deployment.sweep()
        wait_until(
            lambda: remaining() == expected, 60, "an account with what lives and nothing else"
        )
        wait_until_quiet(deployment, 60)


def test_fleets_of_managers_that_are_gone_go_and_their_key_stays(aws, deploy):
    with deploy(REAP="workers,spot-requests,key-pairs,addresses,fleets") as deployment:
        first, second = manager(6 * HOUR), manager(1 * HOUR)
        gone = {scenario.PARENT_TAG: first}
        mine = [
            seeding.fleet(age=5 * HOUR, tags=gone),
            seeding.spot_fleet_request("fleet-key", age=5 * HOUR, tags=gone),
        ]
        theirs = seeding.fleet(age=0.5 * HOUR, tags={scenario.PARENT_TAG: second})
        foreign = seeding.spot_fleet_request("other-key", age=50 * HOUR)
        seeding.key_pair("fleet-key", 300 * HOUR)
        worker = seeding.instance(
            age=5 * HOUR, key_name="fleet-key", tags=gone | {"aws:ec2:fleet-id": mine[0]}
        )
        deployment.terminate(first)
        wait_until(lambda: worker not in remaining(), 40, "the end of the fleet's worker")
        wait_until_quiet(deployment)
        states = {
            fleet.id: fleet.state.split("_")[0] for fleet in fleets.known(backends.ec2()).values()
        }
        assert states == {
            mine[0]: "deleted",
            mine[1]: "cancelled",
            theirs: "active",
            foreign: "active",
        }
        assert remaining() == {second, "fleet-key"}


def test_a_plan_writes_nothing(aws, deploy):
    with deploy(MODE="plan") as deployment:
        first, second = manager(6 * HOUR), manager(1 * HOUR)
        everything = leftovers(first, 4 * HOUR) | leftovers(GONE, 5 * HOUR) | {first, second}
        deployment.terminate(first)
        wait_until_quiet(deployment)
        plan = deployment.function.invoke('{"action": "plan"}').answer()
        orphans = {
            resource["id"] for resource in plan["resources"] if resource["verdict"] == "reap"
        }
        assert orphans and orphans < everything
        assert remaining() == everything
    written = {
        call.action
        for call in aws.calls.calls
        if not call.action.startswith(("Describe", "List", "Get"))
    }
    ours = {
        "CreateQueue",
        "CreateLaunchTemplate",
        "CreateAutoScalingGroup",
        "PutLifecycleHook",
        "CreateDocument",
    }
    assert written - ours - {"TerminateInstanceInAutoScalingGroup"} <= {"ChangeMessageVisibility"}
