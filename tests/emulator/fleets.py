"""EC2 fleets and spot fleet requests: seeded, described in pages, deleted with or without their instances.

A fleet's instances are those whose `aws:` tag names it. An instant fleet is described only when asked for by its id,
and goes only together with its instances; that is how AWS documents it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import EC2Backend
from moto.ec2.models.instances import Instance
from moto.ec2.responses.fleets import Fleets
from moto.ec2.responses.spot_fleets import SpotFleets

from . import backends, filters, paging

FLEET_TAG = "aws:ec2:fleet-id"
REQUEST_TAG = "aws:ec2spot:fleet-request-id"
LIVE = ("submitted", "active", "modifying")
FIELDS: filters.Fields = {
    "fleet-state": lambda fleet: fleet.state,
    "type": lambda fleet: fleet.type,
}


@dataclass
class Fleet:
    id: str
    created_at: datetime
    key_name: str | None
    type: str = "maintain"
    state: str = "active"
    ec2_backend: EC2Backend = field(default_factory=backends.ec2)

    @property
    def is_request(self) -> bool:
        return self.id.startswith("sfr-")

    def instances(self) -> list[Instance]:
        tag = REQUEST_TAG if self.is_request else FLEET_TAG
        everything = (
            i
            for reservation in self.ec2_backend.reservations.values()
            for i in reservation.instances
        )
        return [
            i
            for i in everything
            if filters.tags_of(i).get(tag) == self.id
            and i.state not in ("shutting-down", "terminated")
        ]

    def delete(self, with_instances: bool) -> tuple[str, str]:
        """Returns the state before and after."""
        before, left = self.state, self.instances()
        word = "cancelled" if self.is_request else "deleted"
        self.state = f"{word}_{'terminating' if with_instances else 'running'}" if left else word
        for instance in left if with_instances else []:
            instance.terminate()
        return before, self.state


def known(backend: EC2Backend) -> dict[str, Fleet]:
    return backends.own(backend, "fleets_by_id", dict)


def asked_for(response: Any, prefix: str, ids: list[str], missing: str) -> list[Fleet]:
    fleets = {
        fleet_id: fleet
        for fleet_id, fleet in known(response.ec2_backend).items()
        if fleet_id.startswith(prefix)
    }
    for fleet_id in ids:
        if fleet_id not in fleets:
            raise EC2ClientError(missing, f"The fleet ID '{fleet_id}' does not exist")
    return [fleets[fleet_id] for fleet_id in ids] if ids else list(fleets.values())


def tags(fleet: Fleet) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in filters.tags_of(fleet).items()]


def describe_fleets(response: Fleets) -> ActionResult:
    response.error_on_dryrun()
    ids, asked = response._get_param("FleetIds", []), response._filters_from_querystring()
    listed = [
        f
        for f in asked_for(response, "fleet-", ids, "InvalidFleetId.NotFound")
        if ids or f.type != "instant"
    ]
    size = paging.checked_size(response._get_param("MaxResults"), 1, 1000)
    shown, token = paging.page(
        filters.keep(listed, asked, FIELDS), response._get_param("NextToken"), size, asked
    )
    described = [
        {
            "FleetId": f.id,
            "FleetState": f.state,
            "Type": f.type,
            "CreateTime": f.created_at,
            "Tags": tags(f),
        }
        for f in shown
    ]
    return ActionResult({"Fleets": described, "NextToken": token})


def describe_spot_fleet_requests(response: SpotFleets) -> ActionResult:
    response.error_on_dryrun()
    ids = response._get_param("SpotFleetRequestIds", [])
    listed = asked_for(response, "sfr-", ids, "InvalidSpotFleetRequestId.NotFound")
    size = paging.checked_size(response._get_param("MaxResults"), 1, 1000)
    shown, token = paging.page(listed, response._get_param("NextToken"), size, None)
    described = [
        {
            "SpotFleetRequestId": f.id,
            "SpotFleetRequestState": f.state,
            "CreateTime": f.created_at,
            "SpotFleetRequestConfig": {
                "Type": f.type,
                "LaunchSpecifications": [{"KeyName": f.key_name}],
            },
            "Tags": tags(f),
        }
        for f in shown
    ]
    return ActionResult({"SpotFleetRequestConfigs": described, "NextToken": token})


def delete_fleets(response: Fleets) -> ActionResult:
    response.error_on_dryrun()
    with_instances = response._get_bool_param("TerminateInstances")
    gone, refused = each(response, "fleet-", response._get_param("FleetIds", []))
    if any(fleet.type == "instant" for fleet in gone) and not with_instances:
        raise EC2ClientError(
            "NoTerminateInstancesNotSupported",
            "An instant fleet is deleted only with its instances",
        )
    deleted = []
    for fleet in gone:
        before, after = fleet.delete(with_instances)
        deleted.append(
            {"FleetId": fleet.id, "PreviousFleetState": before, "CurrentFleetState": after}
        )
    errors = [
        {"FleetId": i, "Error": {"Code": "fleetIdDoesNotExist", "Message": "no such fleet"}}
        for i in refused
    ]
    return ActionResult({"SuccessfulFleetDeletions": deleted, "UnsuccessfulFleetDeletions": errors})


def cancel_spot_fleet_requests(response: SpotFleets) -> ActionResult:
    response.error_on_dryrun()
    with_instances = response._get_bool_param("TerminateInstances")
    gone, refused = each(response, "sfr-", response._get_param("SpotFleetRequestIds", []))
    cancelled = []
    for fleet in gone:
        before, after = fleet.delete(with_instances)
        states = {"PreviousSpotFleetRequestState": before, "CurrentSpotFleetRequestState": after}
        cancelled.append({"SpotFleetRequestId": fleet.id} | states)
    errors = [
        {
            "SpotFleetRequestId": i,
            "Error": {"Code": "fleetRequestIdDoesNotExist", "Message": "no such request"},
        }
        for i in refused
    ]
    return ActionResult({"SuccessfulFleetRequests": cancelled, "UnsuccessfulFleetRequests": errors})


def each(response: Any, prefix: str, ids: Iterable[str]) -> tuple[list[Fleet], list[str]]:
    """The fleets with these ids, and the ids that are nobody's: here each has its own result."""
    fleets = known(response.ec2_backend)
    found = [fleets[i] for i in ids if i in fleets and i.startswith(prefix)]
    return found, [i for i in ids if i not in fleets or not i.startswith(prefix)]


def install() -> None:
    Fleets.describe_fleets = describe_fleets
    Fleets.delete_fleets = delete_fleets
    SpotFleets.describe_spot_fleet_requests = describe_spot_fleet_requests
    SpotFleets.cancel_spot_fleet_requests = cancel_spot_fleet_requests
