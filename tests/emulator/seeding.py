"""Seeding puts resources of any age and state straight into the account: 10,000 instances in a second or two.

`seed` takes {"instances": [...], "key_pairs": [...]} and so on (see MAKERS), each entry with an optional `count`.
In its texts `{n}` is the entry's number, and `{n:08x}` the same as eight hex digits. Ages are in seconds.
"""

import copy
import itertools
import random
from datetime import UTC, datetime, timedelta
from typing import Any

from moto.autoscaling.models import InstanceState as GroupMember
from moto.core.utils import utcnow
from moto.ec2.models.instances import Instance, InstanceState, Reservation
from moto.ec2.models.key_pairs import KeyPair
from moto.ec2.models.spot_requests import LaunchSpecification, SpotInstanceRequest

from . import backends, fleets
from .settings import REGION

STATE_CODES = {
    "pending": 0,
    "running": 16,
    "shutting-down": 32,
    "terminated": 48,
    "stopping": 64,
    "stopped": 80,
}
_numbers = itertools.count(1)


def random_hex(digits: int = 17) -> str:
    return f"{random.getrandbits(4 * digits):0{digits}x}"


def ago(seconds: float) -> datetime:
    return utcnow() - timedelta(seconds=seconds)


def instance(
    id: str | None = None,
    state: str = "running",
    key_name: str | None = None,
    tags: dict[str, str] | None = None,
    age: float = 0.0,
    attached_age: float | None = None,
    zone: str = REGION + "a",
    lifecycle: str | None = None,
    platform: str | None = None,
    protected: bool = False,
    group: str | None = None,
    lifecycle_state: str = "InService",
    scale_in_protected: bool = False,
) -> str:
    """An instance; `attached_age` is that of its first network interface, `group` makes it a member there."""
    backend = backends.ec2()
    made = blank_instance(backend, zone, attached_age if attached_age is not None else age)
    made.id = id or f"i-{random_hex()}"
    made.key_name, made.lifecycle, made.platform = key_name, lifecycle, platform
    made.launch_time = ago(age)
    made.disable_api_termination = protected
    made._state = InstanceState(state, STATE_CODES[state])
    reservation = Reservation(f"r-{made.id[2:]}", backend.account_id)
    reservation.instances = [made]
    made.reservation_id = reservation.id
    backend.reservations[reservation.id] = reservation
    if tags:
        backend.tags[made.id] = dict(tags)
    if group:
        join(made, group, lifecycle_state, scale_in_protected)
    return made.id


def blank_instance(backend: Any, zone: str, attached_age: float) -> Instance:
    """A copy of one real instance: making each of 10,000 as RunInstances does would take a minute."""
    pattern = backends.own(backend, "seeding_pattern", dict)
    if "instance" not in pattern:
        reservation = backend.run_instances(
            None,
            1,
            None,
            [],
            instance_type="t3.micro",
            is_instance_type_default=False,
            region_name=REGION,
        )
        pattern["instance"] = reservation.instances[0]
        pattern["instance"].teardown_defaults()
        del backend.reservations[reservation.id]
        backend.enis.pop(pattern["instance"].nics[0].id)
    made = copy.copy(pattern["instance"])
    made._placement = copy.copy(made._placement)
    made._placement.zone = zone
    made.block_device_mapping = type(made.block_device_mapping)()
    nic = copy.copy(pattern["instance"].nics[0])
    nic.id, nic.attachment_id, nic.instance = (
        f"eni-{random_hex()}",
        f"eni-attach-{random_hex()}",
        made,
    )
    nic.attach_time = ago(attached_age)
    made.nics = {0: nic}
    backend.enis[nic.id] = nic
    return made


def join(made: Instance, group_name: str, lifecycle_state: str, scale_in_protected: bool) -> None:
    """As AttachInstances: the desired capacity grows by one."""
    group = backends.autoscaling().autoscaling_groups[group_name]
    member = GroupMember(
        made, lifecycle_state, protected_from_scale_in=scale_in_protected, autoscaling_group=group
    )
    group.instance_states.append(member)
    group.desired_capacity += 1
    group.max_size = max(group.max_size, group.desired_capacity)
    backends.ec2().tags[made.id]["aws:autoscaling:groupName"] = group_name


def key_pair(
    name: str, age: float = 0.0, tags: dict[str, str] | None = None, id: str | None = None
) -> str:
    backend = backends.ec2()
    made = KeyPair(name, "rsa", "00:00", b"", b"", tags or {}, backend)
    if id:
        made.id = id
    made.create_time = ago(age)
    backend.key_pairs[name] = made
    return made.id


def spot_request(
    key_name: str | None = None,
    state: str = "open",
    age: float = 0.0,
    instance_id: str | None = None,
    tags: dict[str, str] | None = None,
    id: str | None = None,
    status_code: str | None = None,
) -> str:
    backend = backends.ec2()
    made = SpotInstanceRequest.__new__(SpotInstanceRequest)
    made.ec2_backend, made.id = backend, id or f"sir-{random_hex(8)}"
    made.state = state
    made._status_code = status_code or ("fulfilled" if state == "active" else "pending-evaluation")
    made.created_at = ago(age)
    made.price, made.type, made.launch_group = "0.050000", "one-time", None
    made.launch_specification = LaunchSpecification(
        None, None, None, key_name, "t3.micro", None, False, None
    )
    made.instance = find_instance(instance_id) if instance_id else None
    if made.instance:
        made.instance.spot_instance_request_id, made.instance.lifecycle = made.id, "spot"
    if tags:
        backend.tags[made.id] = dict(tags)
    backend.spot_instance_requests[made.id] = made
    return made.id


def address(
    tags: dict[str, str] | None = None,
    instance_id: str | None = None,
    service_managed: str | None = None,
    network_border_group: str | None = None,
) -> str:
    backend = backends.ec2()
    made = backend.allocate_address("vpc", tags=tags or {})
    made.service_managed, made.network_border_group = service_managed, network_border_group
    if instance_id:
        backend.associate_address(
            instance=find_instance(instance_id), allocation_id=made.allocation_id
        )
    return made.allocation_id


def fleet(
    type: str = "maintain",
    state: str = "active",
    age: float = 0.0,
    tags: dict[str, str] | None = None,
    id: str | None = None,
) -> str:
    """An EC2 fleet; instances with the tag `aws:ec2:fleet-id` are its own."""
    return add_fleet(
        fleets.Fleet(id or f"fleet-{random_hex(32)}", ago(age), None, type, state), tags
    )


def spot_fleet_request(
    key_name: str | None = None,
    state: str = "active",
    age: float = 0.0,
    tags: dict[str, str] | None = None,
    id: str | None = None,
) -> str:
    """A spot fleet request; instances with the tag `aws:ec2spot:fleet-request-id` are its own."""
    return add_fleet(
        fleets.Fleet(id or f"sfr-{random_hex(32)}", ago(age), key_name, "maintain", state), tags
    )


def add_fleet(made: fleets.Fleet, tags: dict[str, str] | None) -> str:
    fleets.known(made.ec2_backend)[made.id] = made
    if tags:
        made.ec2_backend.tags[made.id] = dict(tags)
    return made.id


def find_instance(instance_id: str) -> Instance:
    for reservation in backends.ec2().reservations.values():
        for found in reservation.instances:
            if found.id == instance_id:
                return found
    raise LookupError(f"no instance {instance_id}")


MAKERS = {
    "fleets": fleet,
    "spot_fleet_requests": spot_fleet_request,
    "instances": instance,
    "key_pairs": key_pair,
    "spot_requests": spot_request,
    "addresses": address,
}


def seed(plan: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    """Makes what the plan lists and returns the ids, in its order."""
    unknown = sorted(set(plan) - set(MAKERS))
    if unknown:
        raise ValueError(f"can't seed {', '.join(unknown)}; can seed {', '.join(MAKERS)}")
    made: dict[str, list[str]] = {}
    for kind in (k for k in MAKERS if k in plan):
        made[kind] = []
        for entry in plan[kind]:
            fields = {key: value for key, value in entry.items() if key != "count"}
            made[kind] += [MAKERS[kind](**numbered(fields)) for _ in range(entry.get("count", 1))]
    return made


def numbered(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with `{n}` filled in by the next number."""
    n = next(_numbers)

    def fill(value: Any) -> Any:
        if isinstance(value, str) and "{n" in value:
            return value.format(n=n)
        return (
            {key: fill(inner) for key, inner in value.items()} if isinstance(value, dict) else value
        )

    return {key: fill(value) for key, value in fields.items()}


def set_times(times: dict[str, dict[str, str]]) -> None:
    """{"i-…": {"launch_time": T, "attach_time": T}, "key-…": {"create_time": T}, "sir-…": {"create_time": T}}."""
    backend = backends.ec2()
    for resource_id, wanted in times.items():
        for name, text in wanted.items():
            moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
            moment = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment
            set_time(backend, resource_id, name, moment)


def set_time(backend: Any, resource_id: str, name: str, moment: datetime) -> None:
    if name == "launch_time":
        find_instance(resource_id).launch_time = moment
    elif name == "attach_time":
        find_instance(resource_id).nics[0].attach_time = moment
    elif name == "create_time" and resource_id in backend.spot_instance_requests:
        backend.spot_instance_requests[resource_id].created_at = moment
    elif name == "create_time":
        key = next(
            (key for key in backend.key_pairs.values() if resource_id in (key.id, key.key_name)),
            None,
        )
        if key is None:
            raise LookupError(f"no key pair or spot request {resource_id}")
        key.create_time = moment
    else:
        raise ValueError(f"can set launch_time, attach_time and create_time, not {name}")
