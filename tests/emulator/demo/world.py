"""The demo's world: manager M1 that will terminate, manager M2 that lives on, and a neighbour environment `prod-eu`."""

from dataclasses import dataclass, field

from .. import backends, scenario, seeding
from ..deployment import Deployment
from ..scenario import HOUR
from ..timeline import LOCK

GONE = {
    "worker": {"shutting-down", "terminated", "absent"},
    "manager": {"shutting-down", "terminated", "absent"},
    "spot request": {"cancelled", "closed"},
    "key pair": {"absent"},
    "address": {"absent"},
}


@dataclass
class Resource:
    kind: str
    id: str
    owner: str
    what: str
    goes: bool
    before: str = ""

    def now(self) -> str:
        """Its state in the emulator, as one word or two."""
        return STATES[self.kind](self.id)

    def as_expected(self) -> bool:
        return self.now() in GONE[self.kind] if self.goes else self.now() == self.before


@dataclass
class World:
    m1: str
    m2: str
    neighbour: str
    resources: list[Resource] = field(default_factory=list)

    def add(self, kind: str, id: str, owner: str, what: str, goes: bool) -> None:
        resource = Resource(kind, id, owner, what, goes)
        resource.before = resource.now()
        self.resources.append(resource)

    def add_worker(self, worker: scenario.Worker, owner: str, what: str, goes: bool) -> None:
        if worker.spot_request:
            self.add("spot request", worker.spot_request, owner, f"request of the {what}", goes)
        self.add("worker", worker.id, owner, what, goes)
        self.add("key pair", worker.name, owner, f"key of the {what}", goes)

    def expected_to_go(self) -> list[Resource]:
        return [resource for resource in self.resources if resource.goes]


def instance_state(instance_id: str) -> str:
    found = (
        i for r in backends.ec2().reservations.values() for i in r.instances if i.id == instance_id
    )
    return next((instance.state for instance in found), "absent")


def key_pair_state(name: str) -> str:
    return "exists" if name in backends.ec2().key_pairs else "absent"


def spot_request_state(request_id: str) -> str:
    request = backends.ec2().spot_instance_requests.get(request_id)
    return request.state if request else "absent"


def address_state(allocation_id: str) -> str:
    found = next((a for a in backends.ec2().addresses if a.allocation_id == allocation_id), None)
    if found is None:
        return "absent"
    return f"associated with {found.instance.id}" if found.instance else "free"


STATES = {
    "manager": instance_state,
    "worker": instance_state,
    "key pair": key_pair_state,
    "spot request": spot_request_state,
    "address": address_state,
}


def build(deployment: Deployment) -> World:
    """M1 is six hours old, M2 one: what is older than M2 and has no owner can only be M1's, or a predecessor's."""
    with LOCK:
        m1 = seeding.instance(age=6 * HOUR, group=deployment.GROUP)
        m2 = seeding.instance(age=1 * HOUR, group=deployment.GROUP)
        neighbour = seeding.instance(age=9 * HOUR)
        world = World(m1, m2, neighbour)
        world.add("manager", m1, "M1", "manager", True)
        leave_of(world, "M1", m1, deployment.EXECUTOR, 4 * HOUR, True)
        untagged = scenario.start_worker(deployment.EXECUTOR, 3 * HOUR)
        world.add_worker(untagged, "M1", "untagged worker", True)
        world.add("manager", m2, "M2", "manager", False)
        leave_of(world, "M2", m2, deployment.EXECUTOR, 0.5 * HOUR, False)
        neighbour_executor = deployment.EXECUTOR + "-eu"
        world.add("manager", neighbour, neighbour_executor, "manager", False)
        leave_of(world, neighbour_executor, neighbour, neighbour_executor, 8 * HOUR, False)
        orphan = scenario.start_worker(neighbour_executor, 8 * HOUR)
        world.add_worker(orphan, neighbour_executor, "untagged worker", False)
    return world


def leave_of(world: World, owner: str, manager: str, executor: str, age: float, goes: bool) -> None:
    """Of every kind something: running and stopped workers, spot requests, keys, addresses."""
    running = scenario.start_worker(executor, age, manager, spot=True)
    world.add_worker(running, owner, "spot worker", goes)
    world.add_worker(
        scenario.start_worker(executor, age, manager, state="stopped"),
        owner,
        "stopped worker",
        goes,
    )
    waiting = scenario.machine_name(executor, age)
    world.add(
        "spot request", seeding.spot_request(waiting, "open", age), owner, "open spot request", goes
    )
    seeding.key_pair(waiting, age)
    world.add("key pair", waiting, owner, "key of the open request", goes)
    address = scenario.allocate_address(manager, age, running.id)
    world.add("address", address, owner, "address of the spot worker", goes)


def start_late_worker(world: World, deployment: Deployment) -> None:
    """A spot request that M1 made 20 minutes ago is fulfilled only now that M1 is being drained."""
    late = scenario.start_worker(deployment.EXECUTOR, HOUR / 3, world.m1, spot=True)
    seeding.find_instance(late.id).launch_time = seeding.ago(0)
    world.add_worker(late, "M1", "late worker", True)
