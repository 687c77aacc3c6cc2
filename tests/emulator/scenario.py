"""What managers of GitLab Runner leave in an account: workers, their keys and spot requests, addresses."""

import time
from dataclasses import dataclass

from . import seeding

PARENT_TAG = "gitlab-runner-parent-id"
OWNER_TAG = "lifecycle-reaper:owner"
ALLOCATED_TAG = "lifecycle-reaper:allocated-at"
HOUR = 3600.0


@dataclass
class Worker:
    id: str
    name: str
    key_pair: str
    spot_request: str | None


def machine_name(executor: str, age: float, token: str = "abcdef123") -> str:
    """A name as docker-machine makes it, and the key pair's with it."""
    return f"runner-{token}-{executor}-{int(time.time() - age)}-{seeding.random_hex(8)}"


def start_worker(
    executor: str,
    age: float,
    parent: str | None = None,
    state: str = "running",
    spot: bool = False,
    **instance: object,
) -> Worker:
    """A worker and its key pair; without `parent` its manager was cut off before it set the tags."""
    name = machine_name(executor, age)
    key_pair = seeding.key_pair(name, age)
    tags = {"Name": name, PARENT_TAG: parent} if parent else {}
    worker = seeding.instance(state=state, key_name=name, tags=tags, age=age, **instance)
    request = seeding.spot_request(name, "active", age, worker) if spot else None
    return Worker(worker, name, key_pair, request)


def allocate_address(owner: str | None, age: float = 0.0, instance_id: str | None = None) -> str:
    tags = {OWNER_TAG: owner, ALLOCATED_TAG: str(int(time.time() - age))} if owner else {}
    return seeding.address(tags, instance_id)
