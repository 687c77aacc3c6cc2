"""The real function on the emulator: what must happen happens, and nothing of a live manager is touched."""

import json
import os
import time

import pytest
from conftest import wait_until

from emulator import backends, bootstrap, commands, fleets, lifecycle_hooks, scenario, seeding
from emulator.deployment import Deployment
from emulator.scenario import HOUR
from emulator.settings import SETTINGS
from emulator.timeline import LOCK

DELETIONS = ("TerminateInstances", "CancelSpotInstanceRequests", "DeleteKeyPair", "ReleaseAddress")


@pytest.fixture(scope="session")
def binary():
    path = bootstrap.path()
    if not path.exists():
        pytest.fail(f"no function at {path}: tests/emulator/run builds it")
    return str(path)


@pytest.fixture
def deploy(aws, binary):
    """Deploys the function, with waits between deliveries cut to a fiftieth."""
    deployed = []
    SETTINGS.shutting_down = 0.3

    def start(**options) -> Deployment:
        deployed.append(Deployment(aws, [binary], **{"wait_factor": 0.02} | options))
        return deployed[-1]

    yield start
    for deployment in deployed:
        deployment.__exit__()


def manager(age, **instance):
    return seeding.instance(age=age, group=Deployment.GROUP, **instance)


def leftovers(parent, age, executor=Deployment.EXECUTOR):
    """One of each kind; returns what `remaining` shows of them."""
    worker = scenario.start_worker(executor, age, parent, spot=True)
    untagged = scenario.start_worker(executor, age)
    address = scenario.allocate_address(parent, age)
    return {worker.id, worker.name, worker.spot_request, untagged.id, untagged.name, address}


def neighbours():
    """A live environment whose name begins with ours, with leftovers of its own."""
    living = seeding.instance(age=9 * HOUR)
    return {living} | leftovers(living, 8 * HOUR, Deployment.EXECUTOR + "-eu")


def remaining():
    """Everything that runs, waits or costs, by id; key pairs by name."""
    with LOCK:
        ec2 = backends.ec2()
        instances = (i for reservation in ec2.reservations.values() for i in reservation.instances)
        return (
            {i.id for i in instances if i.state not in ("shutting-down", "terminated")}
            | set(ec2.key_pairs)
            | {r.id for r in ec2.spot_instance_requests.values() if r.state in ("open", "active")}
            | {a.allocation_id for a in ec2.addresses}
        )


def wait_until_quiet(deployment, seconds=40.0):
    """Until the work queue is empty and no invocation runs."""

    def quiet():
        with LOCK:
            return not deployment.waiting() and all(i.ended.is_set() for i in deployment.function.invocations)

    wait_until(quiet, seconds, f"a quiet queue; there are {deployment.waiting()}")


def dead_letters(deployment):
    with LOCK:
        return backends.sqs().queues[deployment.DEAD_LETTERS]._messages


def times_of(aws, *actions):
    return [call.at for call in aws.calls.calls if call.action in actions and not call.error]


def log_lines(deployment):
    return [line for invocation in deployment.function.invocations for line in invocation.logs]


def hook_message(manager_id, hook=Deployment.HOOK, group=Deployment.GROUP, transition="TERMINATING"):
    return json.dumps(
        {
            "LifecycleTransition": f"autoscaling:EC2_INSTANCE_{transition}",
            "AutoScalingGroupName": group,
            "LifecycleHookName": hook,
            "EC2InstanceId": manager_id,
            "LifecycleActionToken": "7b1d5c02-3f0e-4a57-9c44-0e6f1c2d3a01",
            "Service": "AWS Auto Scaling",
            "Time": lifecycle_hooks.now_text(),
            "AccountId": "123456789012",
        }
    )


def test_a_manager_is_drained_released_and_cleaned_up_after(aws, deploy):
    with deploy() as deployment:
        first, second = manager(6 * HOUR), manager(1 * HOUR)
        theirs = leftovers(first, 4 * HOUR)
        others = leftovers(second, 0.5 * HOUR) | neighbours()
        commands.script(first, [{"answer": "busy", "running": 0.5}, {"answer": "stopped", "pending": 0.5, "running": 1.0}])
        deployment.terminate(first)
        wait_until(lambda: not theirs & remaining(), 40, "the end of all that the manager left")
        wait_until_quiet(deployment)
        assert remaining() == others | {second}
        assert dead_letters(deployment) == []
    answers = [command.outcome.stdout.split()[1] for command in reversed(commands.log(backends.ssm()))]
    assert answers == ["busy", "stopped"], "a command is sent again after `busy`, and never after `stopped`"
    (released,) = times_of(aws, "CompleteLifecycleAction")
    assert released > commands.log(backends.ssm())[0].ends_at
    assert min(times_of(aws, *DELETIONS)) > released
    assert [i.error for i in deployment.function.invocations if i.error] == []


def test_a_pass_that_was_killed_is_taken_up_again(aws, deploy):
    with deploy(timeout=8) as deployment:
        first, second = manager(6 * HOUR), manager(1 * HOUR)
        theirs, others = leftovers(first, 4 * HOUR), leftovers(second, 0.5 * HOUR)
        aws.fail(action="TerminateInstances", latency=5.0, lost_reply=True)
        aws.fail(action="CompleteLifecycleAction", lost_reply=True)
        deployment.terminate(first)
        wait_until(lambda: aws.calls.of("ec2:TerminateInstances"), 20, "the first deletion")
        deployment.function.kill()
        wait_until(lambda: not theirs & remaining(), 60, "the end of all that the manager left")
        wait_until_quiet(deployment, 60)
        assert remaining() == others | {second}
        assert dead_letters(deployment) == []
    assert any(i.error and i.error["errorType"] == "Runtime.ExitError" for i in deployment.function.invocations)


def test_duplicates_are_harmless(aws, deploy):
    with deploy(concurrency=4) as deployment:
        first, second = manager(6 * HOUR), manager(1 * HOUR)
        theirs, others = leftovers(first, 4 * HOUR), leftovers(second, 0.5 * HOUR)
        commands.script(first, [{"answer": "stopped", "running": 2.0}])
        deployment.terminate(first)
        for _ in range(3):
            deployment.send(hook_message(first))
            time.sleep(0.3)
        wait_until(lambda: not theirs & remaining(), 40, "the end of all that the manager left")
        wait_until_quiet(deployment)
        assert remaining() == others | {second}
        assert dead_letters(deployment) == []
    assert min(times_of(aws, *DELETIONS)) > times_of(aws, "CompleteLifecycleAction")[0]


@pytest.mark.parametrize("agent", ["dead", "lost"])
def test_a_manager_with_a_dead_agent_is_released_at_its_deadline_and_not_before(aws, deploy, agent):
    SETTINGS.global_timeout = 10
    with deploy(heartbeat_timeout=30) as deployment:
        first = manager(6 * HOUR)
        theirs = leftovers(first, 4 * HOUR)
        commands.set_agent(first, agent)
        began = time.time()
        deployment.terminate(first)
        wait_until(lambda: times_of(aws, "CompleteLifecycleAction"), 15, "the release")
        (released,) = times_of(aws, "CompleteLifecycleAction")
        assert 8.5 < released - began < 10, "the deadline lies a margin before the hook's own end"
        assert not any(at < released for at in times_of(aws, *DELETIONS))
        assert times_of(aws, "RecordLifecycleActionHeartbeat")
        wait_until(lambda: not theirs & remaining(), 40, "the end of all that the manager left")
        wait_until_quiet(deployment)
    assert any("deadline" in line and '"level":"WARN"' in line for line in log_lines(deployment))


def test_a_poison_record_goes_to_the_dead_letter_queue_with_its_reason(aws, deploy):
    with deploy() as deployment:
        for body in ("not json {", '{"EC2InstanceId": 7}'):
            deployment.send(body)
        wait_until(lambda: len(dead_letters(deployment)) == 2, 15, "two dead letters")
        wait_until_quiet(deployment)
    assert {message.body for message in dead_letters(deployment)} == {"not json {", '{"EC2InstanceId": 7}'}
    for message in dead_letters(deployment):
        reasons = [value.get("StringValue") for value in message.message_attributes.values()]
        assert any(reasons), "a dead letter carries its reason as an attribute"
    assert sum('"level":"ERROR"' in line for line in log_lines(deployment)) == 2
    assert [call.name for call in aws.calls.calls if call.service == "ec2" and call.action in DELETIONS] == []


def test_in_a_mixed_batch_each_record_is_treated_by_itself(aws, deploy):
    deployment = deploy(concurrency=1)
    first, second = manager(6 * HOUR), manager(1 * HOUR)
    theirs, others = leftovers(first, 4 * HOUR), leftovers(second, 0.5 * HOUR)
    deployment.send("garbage")
    deployment.send(hook_message(second, group="another-group"))
    deployment.send(hook_message(second, hook="another-teams-hook"))
    deployment.send(hook_message(second, transition="LAUNCHING"))
    deployment.terminate(first)
    with deployment:
        wait_until(lambda: not theirs & remaining(), 40, "the end of all that the manager left")
        wait_until_quiet(deployment)
        assert remaining() == others | {second}
    batch = json.loads(deployment.function.invocations[0].payload)["Records"]
    assert len(batch) == 6, "the test notification of the hook is the sixth"
    reply = deployment.function.invocations[0].answer()
    (again,) = [item["itemIdentifier"] for item in reply["batchItemFailures"]]
    assert json.loads(next(r["body"] for r in batch if r["messageId"] == again))["EC2InstanceId"] == first
    assert [message.body for message in dead_letters(deployment)] == ["garbage"]


def test_throttling_and_broken_connections_only_delay(aws, deploy):
    with deploy() as deployment:
        first, second = manager(6 * HOUR), manager(1 * HOUR)
        theirs, others = leftovers(first, 4 * HOUR), leftovers(second, 0.5 * HOUR)
        aws.fail(service="ec2", action="DescribeInstances", code="RequestLimitExceeded", status=503, times=6)
        aws.fail(service="ssm", action="ListCommands", code="ThrottlingException", times=2)
        aws.fail(service="autoscaling", action="CompleteLifecycleAction", cut=True)
        aws.fail(service="ec2", action="DescribeKeyPairs", code="InternalError", status=500, times=2)
        deployment.terminate(first)
        wait_until(lambda: not theirs & remaining(), 60, "the end of all that the manager left")
        wait_until_quiet(deployment, 60)
        assert remaining() == others | {second}
        assert dead_letters(deployment) == []


def test_scaling_to_zero_in_the_evening_leaves_nothing(aws, deploy):
    with deploy() as deployment:
        first, second = manager(6 * HOUR), manager(1 * HOUR)
        leftovers(first, 4 * HOUR)
        leftovers(second, 0.5 * HOUR)
        others = neighbours()
        deployment.autoscaling.set_desired_capacity(AutoScalingGroupName=deployment.GROUP, DesiredCapacity=0)
        wait_until(lambda: remaining() == others, 60, "an account with nothing of ours")
        wait_until_quiet(deployment, 60)
        assert dead_letters(deployment) == []


def test_a_sweep_leaves_nothing_of_a_group_that_was_deleted(aws, deploy):
    with deploy() as deployment:
        first, second = manager(6 * HOUR), manager(2 * HOUR)
        leftovers(first, 4 * HOUR)
        leftovers(second, 1 * HOUR)
        others = neighbours()
        deployment.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=deployment.GROUP, ForceDelete=True)
        reply = deployment.sweep().answer()
        assert reply["outcome"] == "Again", reply
        wait_until(lambda: remaining() == others, 60, "an account with nothing of ours")
        wait_until_quiet(deployment, 60)
        assert deployment.sweep().answer()["outcome"] == "Done"
        assert dead_letters(deployment) == []


def test_stale_keys_among_thousands_are_worked_off_within_ec2s_rate(aws, deploy):
    """Of 4,000 keys STALE_KEYS are ours to delete, five a second: all 4,000 take a quarter of an hour."""
    stale = int(os.environ.get("STALE_KEYS", "120"))
    with deploy(MAX_DELETIONS="50" if stale < 1000 else "100") as deployment:
        living = manager(1 * HOUR)
        kept = {scenario.machine_name(Deployment.EXECUTOR, 0.5 * HOUR), "my-own-key"}
        with LOCK:
            for name in kept:
                seeding.key_pair(name, 5 * HOUR)
            old = int(time.time() - 240 * HOUR)
            ours = {"count": stale, "name": f"runner-abcdef123-{Deployment.EXECUTOR}-{old}-{{n:08x}}", "age": 240 * HOUR}
            neighbours = {"count": 4000 - stale, "name": f"runner-abcdef123-prod-eu-{old}-{{n:08x}}", "age": 240 * HOUR}
            made = seeding.seed({"key_pairs": [ours, neighbours]})["key_pairs"]
            kept |= {key.key_name for key in backends.ec2().key_pairs.values() if key.id in set(made[stale:])}
        began = time.time()
        deployment.sweep()
        wait_until(lambda: remaining() == kept | {living}, 60 + stale / 3, f"the end of {stale} keys")
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
        gone = "i-0dead000000000000"
        protected = scenario.start_worker(Deployment.EXECUTOR, 5 * HOUR, gone, protected=True, zone="eu-central-1b")
        kept = scenario.start_worker(Deployment.EXECUTOR, 5 * HOUR, gone)
        with LOCK:
            backends.ec2().tags[kept.id]["lifecycle-reaper:keep"] = "for debugging"
            for _ in range(25):
                leftovers(gone, 5 * HOUR)
        expected = {living, protected.id, protected.name, kept.id, kept.name} | neighbours()
        assert deployment.sweep().answer()["outcome"] == "Again"
        wait_until(lambda: remaining() == expected, 60, "everything but what is protected")
        wait_until_quiet(deployment, 60)
        assert dead_letters(deployment) == []


def test_sweeps_that_overlap_and_are_killed_are_harmless(aws, deploy):
    with deploy(concurrency=4, timeout=8) as deployment:
        living = manager(1 * HOUR)
        for _ in range(10):
            leftovers("i-0dead000000000000", 5 * HOUR)
        expected = {living} | leftovers(living, 0.5 * HOUR) | neighbours()
        aws.fail(action="TerminateInstances", latency=1.0)
        schedule = {"detail-type": "Scheduled Event", "source": "aws.events", "detail": {}, "resources": []}
        for _ in range(3):
            deployment.direct.invoke(schedule)
        wait_until(lambda: aws.calls.of("ec2:TerminateInstances"), what="a deletion")
        deployment.function.kill()
        deployment.sweep()
        wait_until(lambda: remaining() == expected, 60, "an account with what lives and nothing else")
        wait_until_quiet(deployment, 60)


def test_fleets_of_managers_that_are_gone_go_and_their_key_stays(aws, deploy):
    with deploy(REAP="workers,spot-requests,key-pairs,addresses,fleets") as deployment:
        first, second = manager(6 * HOUR), manager(1 * HOUR)
        gone = {scenario.PARENT_TAG: first}
        mine = [seeding.fleet(age=5 * HOUR, tags=gone), seeding.spot_fleet_request("fleet-key", age=5 * HOUR, tags=gone)]
        theirs = seeding.fleet(age=0.5 * HOUR, tags={scenario.PARENT_TAG: second})
        foreign = seeding.spot_fleet_request("other-key", age=50 * HOUR)
        seeding.key_pair("fleet-key", 300 * HOUR)
        worker = seeding.instance(age=5 * HOUR, key_name="fleet-key", tags=gone | {"aws:ec2:fleet-id": mine[0]})
        deployment.terminate(first)
        wait_until(lambda: worker not in remaining(), 40, "the end of the fleet's worker")
        wait_until_quiet(deployment)
        states = {fleet.id: fleet.state.split("_")[0] for fleet in fleets.known(backends.ec2()).values()}
        assert states == {mine[0]: "deleted", mine[1]: "cancelled", theirs: "active", foreign: "active"}
        assert remaining() == {second, "fleet-key"}


def test_a_plan_writes_nothing(aws, deploy):
    with deploy(MODE="plan") as deployment:
        first, second = manager(6 * HOUR), manager(1 * HOUR)
        everything = leftovers(first, 4 * HOUR) | leftovers("i-0dead000000000000", 5 * HOUR) | {first, second}
        deployment.terminate(first)
        wait_until_quiet(deployment)
        plan = deployment.function.invoke('{"action": "plan"}').answer()
        orphans = {resource["id"] for resource in plan["resources"] if resource["verdict"] == "reap"}
        assert orphans and orphans < everything
        assert remaining() == everything
    written = {call.action for call in aws.calls.calls if not call.action.startswith(("Describe", "List", "Get"))}
    ours = {"CreateQueue", "CreateLaunchTemplate", "CreateAutoScalingGroup", "PutLifecycleHook", "CreateDocument"}
    assert written - ours - {"TerminateInstanceInAutoScalingGroup"} <= {"ChangeMessageVisibility"}
