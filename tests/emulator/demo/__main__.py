"""Plays the demo and exits with 0 only if every expectation was checked against the emulator and holds."""

import argparse
import signal
import sys
import time

from .. import backends, bootstrap, commands
from ..calls import Call
from ..deployment import Deployment
from ..event_bus import BUS
from ..server import Emulator
from ..timeline import LOCK, TIMELINE
from . import report, world
from .narrator import Narrator
from .report import Expectation

LONGEST_PLAY = 90.0
DELETING = {
    "ec2:TerminateInstances",
    "ec2:CancelSpotInstanceRequests",
    "ec2:DeleteKeyPair",
    "ec2:ReleaseAddress",
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make demo", description="The reaper at work on a local AWS."
    )
    parser.add_argument(
        "--verbose", action="store_true", help="print the function's log lines as they are"
    )
    parser.add_argument(
        "--wait-factor",
        type=float,
        default=0.1,
        help="multiplies what messages wait between deliveries",
    )
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(
        "Building the function (the first time takes minutes; cargo tells how far it is)",
        flush=True,
    )
    binary = bootstrap.build()
    narrator = Narrator(arguments.verbose)
    narrator.step("starting the local AWS, with queues, group and hook as infra sets them up")
    narrator.step(
        f"time option: what a message waits between deliveries is multiplied by {arguments.wait_factor:g}"
    )
    with Emulator() as aws:
        deployment = Deployment(
            aws, [str(binary)], wait_factor=arguments.wait_factor, on_log=narrator.hear_function
        )
        scene = world.build(deployment)
        number_before = aws.calls.last_number()
        with deployment:
            play(deployment, scene, narrator)
        with LOCK:
            calls = aws.calls.since(number_before)
            return 0 if tell(deployment, scene, narrator, calls) else 1


def play(deployment: Deployment, scene: world.World, narrator: Narrator) -> None:
    narrator.names = {scene.m1: "M1", scene.m2: "M2", scene.neighbour: "prod-eu's manager"}
    name_resources(scene, narrator)
    with LOCK:
        BUS.subscribers.append(narrator.hear_aws)
        commands.script(scene.m1, [{"answer": "stopped", "pending": 0.5, "running": 3.0}])
        TIMELINE.later(2.0, lambda: start_late_worker(deployment, scene, narrator))
    print(f"{'':19}M1 = {scene.m1}, M2 = {scene.m2}, prod-eu = a neighbour", flush=True)
    narrator.step("the group terminates M1; its jobs need 3.5 s more")
    deployment.terminate(scene.m1)
    give_up = time.time() + LONGEST_PLAY
    while time.time() < give_up and not is_over(deployment, scene):
        time.sleep(0.1)
    narrator.step(
        "M1 is gone and the work queue is empty"
        if is_over(deployment, scene)
        else f"gave up after {LONGEST_PLAY:g} s"
    )


def name_resources(scene: world.World, narrator: Narrator) -> None:
    for resource in scene.resources:
        narrator.names.setdefault(resource.id, f"{resource.owner}'s {resource.what}")


def start_late_worker(deployment: Deployment, scene: world.World, narrator: Narrator) -> None:
    world.start_late_worker(scene, deployment)
    name_resources(scene, narrator)
    narrator.say("ec2", "M1, still finishing jobs, starts one more worker")


def is_over(deployment: Deployment, scene: world.World) -> bool:
    with LOCK:
        left = [resource for resource in scene.expected_to_go() if not resource.as_expected()]
        working = [
            invocation
            for invocation in deployment.function.invocations
            if not invocation.ended.is_set()
        ]
        return not left and not working and not deployment.waiting()


def tell(deployment: Deployment, scene: world.World, narrator: Narrator, calls: list[Call]) -> bool:
    calls = [call for call in calls if call.action != "TerminateInstanceInAutoScalingGroup"]
    report.table(scene.resources, narrator)
    report.counts(scene.resources, calls, deployment.function.invocations)
    return report.expectations(check(deployment, scene, calls))


def check(deployment: Deployment, scene: world.World, calls: list[Call]) -> list[Expectation]:
    return (
        drain_expectations(deployment, scene, calls)
        + resource_expectations(scene)
        + queue_expectations(deployment)
    )


def drain_expectations(
    deployment: Deployment, scene: world.World, calls: list[Call]
) -> list[Expectation]:
    sent = commands.log(backends.ssm())
    completed = [
        call
        for call in calls
        if call.name == "autoscaling:CompleteLifecycleAction" and not call.error
    ]
    beats = [
        call
        for call in calls
        if call.name == "autoscaling:RecordLifecycleActionHeartbeat" and not call.error
    ]
    deletions = [
        call for call in calls if call.name in DELETING and "DryRun" not in call.parameters
    ]
    drained_at = sent[0].ends_at if sent else float("inf")
    released_at = completed[0].at if completed else float("inf")
    results = {call.parameters.get("LifecycleActionResult") for call in completed}
    members = {
        m.instance_id: m.lifecycle_state
        for m in backends.autoscaling().autoscaling_groups[deployment.GROUP].instance_states
    }
    return [
        Expectation(
            "one drain command was sent, to M1",
            [c.instance_id for c in sent] == [scene.m1],
            f"{len(sent)} commands",
        ),
        Expectation(
            "the hook had a heartbeat while the command was in flight",
            any(b.at < drained_at for b in beats),
        ),
        Expectation(
            "the hook was completed once, with CONTINUE, after the command had said stopped",
            len(completed) == 1 and results == {"CONTINUE"} and released_at >= drained_at,
            f"{len(completed)} completions with {results}, {released_at - drained_at:+.1f} s after the command's end",
        ),
        Expectation(
            "nothing was deleted before the hook was completed",
            all(call.at > released_at for call in deletions),
            ", ".join(call.name for call in deletions if call.at <= released_at),
        ),
        Expectation(
            "the group has M2 in service, and nothing else",
            members == {scene.m2: "InService"},
            str(members),
        ),
    ]


def resource_expectations(scene: world.World) -> list[Expectation]:
    owners = {resource.owner: resource.goes for resource in scene.resources}
    expected = []
    for owner, goes in owners.items():
        own = [resource for resource in scene.resources if resource.owner == owner]
        wrong = [f"{r.what} {r.id} is {r.now()}" for r in own if not r.as_expected()]
        text = f"all {len(own)} resources of {owner} are " + ("gone" if goes else "as they were")
        expected.append(Expectation(text, not wrong, "; ".join(wrong)))
    return expected


def queue_expectations(deployment: Deployment) -> list[Expectation]:
    failed = [
        invocation.error for invocation in deployment.function.invocations if invocation.error
    ]
    waiting, dead = deployment.waiting(), deployment.waiting(deployment.DEAD_LETTERS)
    return [
        Expectation(
            "the work queue is empty", not waiting, "; ".join(body[:200] for body in waiting)
        ),
        Expectation(
            "the dead-letter queue is empty", not dead, "; ".join(body[:200] for body in dead)
        ),
        Expectation("no invocation failed", not failed, str(failed[:1])),
    ]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        sys.exit(130)
