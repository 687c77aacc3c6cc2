"""EC2 instances: paged by instance, found by the filters of AWS, and dying in two steps that take time."""

import copy
import re
from collections.abc import Callable
from typing import Any

from moto.core.utils import utcnow
from moto.ec2.exceptions import EC2ClientError, InvalidInstanceIdError, OperationNotPermitted4
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.instances import (
    Instance,
    InstanceBackend,
    InstanceState,
    Reservation,
    StateReason,
)
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix

from . import addresses, ec2_xml, filters, paging, spot_requests
from .event_bus import BUS, instance_arn
from .settings import SETTINGS
from .timeline import TIMELINE

FIELDS: filters.Fields = {
    "architecture": lambda instance: instance.architecture,
    "availability-zone": lambda instance: instance.placement.zone,
    "image-id": lambda instance: instance.image_id,
    "instance-id": lambda instance: instance.id,
    "instance-lifecycle": lambda instance: instance.lifecycle,
    "instance-state-code": lambda instance: str(instance.state_code),
    "instance-state-name": lambda instance: instance.state,
    "instance-type": lambda instance: instance.instance_type,
    "key-name": lambda instance: instance.key_name,
    "owner-id": lambda instance: instance.owner_id,
    "private-ip-address": lambda instance: first_interface(instance, "private_ip_address"),
    "spot-instance-request-id": lambda instance: getattr(
        instance, "spot_instance_request_id", None
    ),
    "subnet-id": lambda instance: instance.subnet_id,
    "vpc-id": lambda instance: instance.vpc_id,
}

WELL_FORMED_ID = re.compile(r"i-[0-9a-f]{8}([0-9a-f]{9})?")
ENDING = ("shutting-down", "terminated")

on_termination: list[Callable[[list[str]], None]] = []
"""Called with the ids that TerminateInstances has just ended; the groups listen."""


def first_interface(instance: Instance, attribute: str) -> Any:
    return getattr(instance.nics[0], attribute) if 0 in instance.nics else None


def tag_list(resource: TaggedEC2Resource) -> list[dict[str, str]]:
    """Moto compares every tag of the account with every resource; with 10,000 instances that takes minutes."""
    kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource.id), "") if resource.id else ""
    return [
        {"resource_id": resource.id, "key": key, "value": value, "resource_type": kind}
        for key, value in filters.tags_of(resource).items()
    ]


def described(instance: Instance) -> dict[str, Any]:
    """The instance as DescribeInstances shows it, under the names of the wire."""
    reason = instance.state_reason
    return {
        "instanceId": instance.id,
        "imageId": instance.image_id,
        "instanceState": state(instance.instance_state),
        "reason": instance.state_transition_reason,
        "stateReason": {"code": reason.code, "message": reason.message} if reason.code else None,
        "keyName": instance.key_name,
        "instanceType": instance.instance_type,
        "launchTime": instance.launch_time,
        "placement": {"availabilityZone": instance.placement.zone, "tenancy": "default"},
        "platform": instance.platform,
        "platformDetails": "Windows" if instance.platform == "windows" else "Linux/UNIX",
        "subnetId": instance.subnet_id,
        "vpcId": instance.vpc_id,
        "privateIpAddress": first_interface(instance, "private_ip_address"),
        "ipAddress": first_interface(instance, "public_ip"),
        "architecture": instance.architecture,
        "instanceLifecycle": instance.lifecycle,
        "spotInstanceRequestId": getattr(instance, "spot_instance_request_id", None),
        "networkInterfaceSet": [described_interface(nic) for nic in instance.nics.values()],
        "tagSet": [
            {"key": key, "value": value} for key, value in filters.tags_of(instance).items()
        ],
    }


def described_interface(nic: Any) -> dict[str, Any]:
    attachment = {
        "attachmentId": nic.attachment_id,
        "deviceIndex": nic.device_index,
        "status": "attached",
        "attachTime": nic.attach_time,
        "deleteOnTermination": True,
    }
    return {"networkInterfaceId": nic.id, "status": "in-use", "attachment": attachment}


def describe_instances(response: InstanceResponse) -> str:
    response.error_on_dryrun()
    wanted = response._get_param("InstanceIds", [])
    size = paging.checked_size(response._get_param("MaxResults"), 5, 1000)
    if wanted and size:
        raise EC2ClientError(
            "InvalidParameterCombination",
            "The parameter instancesSet cannot be used with the parameter maxResults",
        )
    asked = response._filters_from_querystring()
    backend = response.ec2_backend
    if wanted:
        listed = filters.keep(existing(backend, wanted), asked, FIELDS)
    else:
        everything = (
            i for reservation in backend.reservations.values() for i in reservation.instances
        )
        listed = filters.keep(everything, asked, FIELDS)
    shown, token = paging.page(listed, response._get_param("NextToken"), size, asked)
    return ec2_xml.document(
        "DescribeInstances", {"reservationSet": by_reservation(shown), "nextToken": token}
    )


def by_reservation(instances: list[Instance]) -> list[dict[str, Any]]:
    reservations: dict[str, dict[str, Any]] = {}
    for instance in instances:
        name = instance.reservation_id
        reservation = {"reservationId": name, "ownerId": instance.owner_id, "instancesSet": []}
        reservations.setdefault(name, reservation)["instancesSet"].append(described(instance))
    return list(reservations.values())


def run_instances(backend: InstanceBackend, *arguments: Any, **named: Any) -> Reservation:
    reservation = moto_run_instances(backend, *arguments, **named)
    for instance in reservation.instances:
        instance.reservation_id = reservation.id
    return reservation


def existing(backend: InstanceBackend, ids: list[str]) -> list[Instance]:
    """The instances with these ids; one that is malformed or unknown fails the call, as it does in AWS."""
    for instance_id in ids:
        if not WELL_FORMED_ID.fullmatch(instance_id):
            raise EC2ClientError("InvalidInstanceID.Malformed", f'Invalid id: "{instance_id}"')
    known = {
        i.id: i for reservation in backend.reservations.values() for i in reservation.instances
    }
    unknown = [instance_id for instance_id in ids if instance_id not in known]
    if unknown:
        raise InvalidInstanceIdError(unknown)
    return [known[instance_id] for instance_id in dict.fromkeys(ids)]


def terminate_instances(response: InstanceResponse) -> str:
    """A protected instance saves those of its availability zone; those of other zones go, and the call fails."""
    ids = response._get_param("InstanceIds", [])
    if not ids:
        raise EC2ClientError(
            "MissingParameter", "The request must contain the parameter InstanceId"
        )
    instances = existing(response.ec2_backend, ids)
    protected = [
        instance
        for instance in instances
        if str(instance.disable_api_termination).lower() == "true"
    ]
    if response._get_param("DryRun", False) and protected:
        raise OperationNotPermitted4(protected[0].id)
    response.error_on_dryrun()
    spared_zones = {instance.placement.zone for instance in protected}
    ended = [instance for instance in instances if instance.placement.zone not in spared_zones]
    changes = [
        {
            "instanceId": i.id,
            "previousState": state(i.terminate()),
            "currentState": state(i.instance_state),
        }
        for i in ended
    ]
    for listener in on_termination:
        listener([instance.id for instance in ended])
    if protected:
        raise OperationNotPermitted4(protected[0].id)
    return ec2_xml.document("TerminateInstances", {"instancesSet": changes})


def state(now: InstanceState) -> dict[str, Any]:
    return {"code": now.code, "name": now.name}


def terminate(instance: Instance) -> InstanceState:
    """Begins to terminate the instance and returns the state it was in."""
    previous = copy.copy(instance.instance_state)
    if instance.state in ENDING:
        return previous
    enter(instance, "shutting-down", 32)
    instance._reason = f"User initiated ({utcnow().strftime('%Y-%m-%d %H:%M:%S GMT')})"
    instance.state_reason = StateReason(
        "Client.UserInitiatedShutdown: User initiated shutdown", "Client.UserInitiatedShutdown"
    )
    spot_requests.close_for(instance)
    TIMELINE.later(SETTINGS.shutting_down, lambda: finish_termination(instance))
    return previous


def finish_termination(instance: Instance) -> None:
    if instance.state == "terminated":
        return
    addresses.disassociate_from(instance)
    instance.teardown_defaults()
    for nic in list(instance.nics.values()):
        instance.ec2_backend.enis.pop(nic.id, None)
    instance.nics = {}
    enter(instance, "terminated", 48)
    TIMELINE.later(SETTINGS.terminated_visible, lambda: forget(instance))


def enter(instance: Instance, name: str, code: int) -> None:
    instance._state = InstanceState(name, code)
    BUS.publish(
        "aws.ec2",
        "EC2 Instance State-change Notification",
        {"instance-id": instance.id, "state": name},
        [instance_arn(instance.id)],
    )


def forget(instance: Instance) -> None:
    """An hour after its end AWS no longer lists an instance."""
    reservations = instance.ec2_backend.reservations
    for reservation in list(reservations.values()):
        if instance in reservation.instances:
            reservation.instances.remove(instance)
            if not reservation.instances:
                del reservations[reservation.id]


def start(instance: Instance) -> InstanceState:
    previous = moto_start(instance)
    instance.launch_time = utcnow()
    return previous


moto_start = Instance.start
moto_run_instances = InstanceBackend.run_instances


def install() -> None:
    TaggedEC2Resource.get_tags = tag_list
    InstanceResponse.describe_instances = describe_instances
    InstanceResponse.terminate_instances = terminate_instances
    Instance.terminate = terminate
    Instance.start = start
    InstanceBackend.run_instances = run_instances
