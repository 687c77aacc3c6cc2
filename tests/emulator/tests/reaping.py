"""What the end-to-end tests say: managers and what they leave, what remains, when all is quiet."""

import json

from conftest import wait_until
from emulator import backends, lifecycle_hooks, scenario, seeding
from emulator.deployment import Deployment
from emulator.scenario import HOUR
from emulator.timeline import LOCK

DELETIONS = ("TerminateInstances", "CancelSpotInstanceRequests", "DeleteKeyPair", "ReleaseAddress")
GONE = "i-0dead000000000000"
"""A manager that no longer exists."""


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
            return not deployment.waiting() and all(
                i.ended.is_set() for i in deployment.function.invocations
            )

    wait_until(quiet, seconds, f"a quiet queue; there are {deployment.waiting()}")


def dead_letters(deployment):
    with LOCK:
        return backends.sqs().queues[deployment.DEAD_LETTERS]._messages


def times_of(aws, *actions):
    return [call.at for call in aws.calls.calls if call.action in actions and not call.error]


def log_lines(deployment):
    return [line for invocation in deployment.function.invocations for line in invocation.logs]


def hook_message(
    manager_id, hook=Deployment.HOOK, group=Deployment.GROUP, transition="TERMINATING"
):
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
