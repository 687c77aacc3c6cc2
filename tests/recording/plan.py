"""Shows `lifecycle-reaper plan` on an emulated account in which each verdict occurs.

Run it with the emulator's Python: tests/recording/plan [arguments of the command line, `plan` unless given].
"""

import os
import subprocess
import sys

from emulator import bootstrap, scenario, seeding
from emulator.deployment import Deployment
from emulator.scenario import HOUR
from emulator.server import Emulator

DAY = 24 * HOUR


def build(deployment: Deployment) -> None:
    """A manager that ended an hour ago with all its leftovers, one that lives, one of a neighbour, and old strays."""
    group, executor = deployment.GROUP, deployment.EXECUTOR
    gone = seeding.instance(age=9 * HOUR, state="terminated", tags={"aws:autoscaling:groupName": group})
    lives = seeding.instance(age=3 * HOUR, group=group)
    neighbour = seeding.instance(age=5 * DAY)
    scenario.start_worker(executor, 8 * HOUR, gone, spot=True)
    scenario.start_worker(executor, 6 * HOUR)
    scenario.start_worker(executor, HOUR / 20, parent=f"i-{seeding.random_hex()}")
    kept = scenario.start_worker(executor, 5 * HOUR, gone)
    deployment.ec2.create_tags(Resources=[kept.id], Tags=[{"Key": "lifecycle-reaper:keep", "Value": "a person looks at it"}])
    scenario.start_worker(executor, 2 * HOUR, lives, spot=True)
    scenario.start_worker(executor + "-eu", 4 * DAY, neighbour)
    for age in (40 * DAY, HOUR):
        seeding.key_pair(scenario.machine_name(executor, age), age)
    seeding.spot_request(scenario.machine_name(executor, 5 * DAY), "open", 5 * DAY)
    scenario.allocate_address(gone, 9 * HOUR)
    scenario.allocate_address(lives, 3 * HOUR, lives)
    dead_letters = deployment.queue_url(deployment.DEAD_LETTERS)
    deployment.sqs.set_queue_attributes(QueueUrl=dead_letters, Attributes={"MessageRetentionPeriod": str(int(14 * DAY))})  # as infra sets it


def main() -> int:
    binary = bootstrap.build().with_name("lifecycle-reaper")
    with Emulator() as aws:
        deployment = Deployment(aws, [str(binary)], rules=False)
        build(deployment)
        environment = {**os.environ, **aws.client_environment(), **deployment.variables()}
        return subprocess.run([binary, *(sys.argv[1:] or ["plan"])], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
