"""The real function drains managers on the emulator: what must happen happens, nothing of a live manager is touched."""

import json
import time

import pytest
from conftest import wait_until
from emulator import backends, commands, lifecycle_hooks
from emulator.scenario import HOUR
from emulator.settings import SETTINGS
from reaping import (
    DELETIONS,
    dead_letters,
    hook_message,
    leftovers,
    log_lines,
    manager,
    neighbours,
    remaining,
    times_of,
    wait_until_quiet,
)


def test_a_manager_is_drained_released_and_cleaned_up_after(aws, deploy):
    with deploy() as deployment:
        first, second = manager(6 * HOUR), manager(1 * HOUR)
        theirs = leftovers(first, 4 * HOUR)
        others = leftovers(second, 0.5 * HOUR) | neighbours()
        commands.script(
            first,
            [
                {"answer": "busy", "running": 0.5},
                {"answer": "stopped", "pending": 0.5, "running": 1.0},
            ],
        )
        deployment.terminate(first)
        wait_until(lambda: not theirs & remaining(), 40, "the end of all that the manager left")
        wait_until_quiet(deployment)
        assert remaining() == others | {second}
        assert dead_letters(deployment) == []
    answers = [
        command.outcome.stdout.split()[1] for command in reversed(commands.log(backends.ssm()))
    ]
    assert answers == ["busy", "stopped"], (
        "a command is sent again after `busy`, and never after `stopped`"
    )
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
    assert any(
        i.error and i.error["errorType"] == "Runtime.ExitError"
        for i in deployment.function.invocations
    )


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
    assert {message.body for message in dead_letters(deployment)} == {
        "not json {",
        '{"EC2InstanceId": 7}',
    }
    for message in dead_letters(deployment):
        reasons = [value.get("StringValue") for value in message.message_attributes.values()]
        assert any(reasons), "a dead letter carries its reason as an attribute"
    assert sum('"level":"ERROR"' in line for line in log_lines(deployment)) == 2
    assert [
        call.name for call in aws.calls.calls if call.service == "ec2" and call.action in DELETIONS
    ] == []


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
    assert (
        json.loads(next(r["body"] for r in batch if r["messageId"] == again))["EC2InstanceId"]
        == first
    )
    assert [message.body for message in dead_letters(deployment)] == ["garbage"]


def test_throttling_and_broken_connections_only_delay(aws, deploy):
    with deploy() as deployment:
        first, second = manager(6 * HOUR), manager(1 * HOUR)
        theirs, others = leftovers(first, 4 * HOUR), leftovers(second, 0.5 * HOUR)
        aws.fail(
            service="ec2",
            action="DescribeInstances",
            code="RequestLimitExceeded",
            status=503,
            times=6,
        )
        aws.fail(service="ssm", action="ListCommands", code="ThrottlingException", times=2)
        aws.fail(service="autoscaling", action="CompleteLifecycleAction", cut=True)
        aws.fail(
            service="ec2", action="DescribeKeyPairs", code="InternalError", status=500, times=2
        )
        aws.fail(service="ec2", action="DescribeInstances", halved=True, times=2)
        aws.fail(service="autoscaling", action="DescribeAutoScalingGroups", halved=True)
        deployment.terminate(first)
        wait_until(lambda: not theirs & remaining(), 60, "the end of all that the manager left")
        wait_until_quiet(deployment, 60)
        assert remaining() == others | {second}
        assert dead_letters(deployment) == []
        assert all(fault["hit"] for fault in aws.front.faults.shown())


def test_another_teams_hook_is_neither_completed_nor_kept_alive(aws, deploy):
    with deploy() as deployment:
        theirs = {"AutoScalingGroupName": deployment.GROUP, "LifecycleHookName": "another-teams"}
        transition = "autoscaling:EC2_INSTANCE_TERMINATING"
        deployment.autoscaling.put_lifecycle_hook(**theirs, LifecycleTransition=transition)
        first = manager(6 * HOUR)
        left = leftovers(first, 4 * HOUR)
        deployment.terminate(first)
        wait_until(lambda: times_of(aws, "CompleteLifecycleAction"), what="the release of our hook")
        time.sleep(1.5)
        (open_action,) = lifecycle_hooks.actions(backends.autoscaling())
        assert (open_action.hook.name, open_action.heartbeats) == ("another-teams", 0)
        assert left <= remaining(), "nothing is reaped while EC2 says that the manager lives"
        deployment.autoscaling.complete_lifecycle_action(
            **theirs, InstanceId=first, LifecycleActionResult="CONTINUE"
        )
        wait_until(lambda: not left & remaining(), 40, "the end of all that the manager left")
        wait_until_quiet(deployment)


def test_a_manager_that_died_outside_its_group_is_released_without_a_command(aws, deploy):
    with deploy() as deployment:
        first = manager(6 * HOUR)
        left = leftovers(first, 4 * HOUR)
        deployment.ec2.terminate_instances(InstanceIds=[first])
        wait_until(lambda: not left & remaining(), 40, "the end of all that the manager left")
        wait_until_quiet(deployment)
        assert len(times_of(aws, "CompleteLifecycleAction")) == 1
        assert aws.calls.of("ssm:SendCommand") == []
        assert dead_letters(deployment) == []
