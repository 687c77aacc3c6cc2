"""Spot requests: open until there is capacity, listed with their real age, kept as `cancelled` or `closed`."""

from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.instances import Instance
from moto.ec2.models.spot_requests import SpotInstanceRequest
from moto.ec2.responses.spot_instances import SpotInstances

from . import filters, paging
from .settings import SETTINGS

FIELDS: filters.Fields = {
    "instance-id": lambda request: instance_id(request),
    "launch-group": lambda request: request.launch_group,
    "launch.image-id": lambda request: request.launch_specification.image_id,
    "launch.instance-type": lambda request: request.launch_specification.instance_type,
    "launch.key-name": lambda request: request.launch_specification.key_name,
    "spot-instance-request-id": lambda request: request.id,
    "state": lambda request: request.state,
    "type": lambda request: request.type,
}


def instance_id(request: SpotInstanceRequest) -> str | None:
    return request.instance.id if request.instance else None


def begin(request: SpotInstanceRequest, *arguments: Any, **named: Any) -> None:
    """A new request. Moto fulfils each at once; here it stays open while the account has no spot capacity."""
    request.created_at = utcnow()
    moto_begin(request, *arguments, **named)
    if request.instance is None:
        enter(request, "open", "capacity-not-available")
    else:
        request.instance.spot_instance_request_id = request.id


def launch(request: SpotInstanceRequest) -> Instance | None:
    return moto_launch(request) if SETTINGS.spot_capacity else None


def enter(request: SpotInstanceRequest, state: str, status_code: str) -> None:
    request.state, request._status_code, request.changed_at = state, status_code, utcnow()


def close_for(instance: Instance) -> None:
    """A one-time request is closed when its instance ends."""
    request = instance.ec2_backend.spot_instance_requests.get(
        getattr(instance, "spot_instance_request_id", None)
    )
    if request and request.state in ("open", "active"):
        enter(request, "closed", "instance-terminated-by-user")


def described(request: SpotInstanceRequest) -> dict[str, Any]:
    specification = request.launch_specification
    return {
        "SpotInstanceRequestId": request.id,
        "State": request.state,
        "Status": {
            "Code": request._status_code,
            "UpdateTime": getattr(request, "changed_at", request.created_at),
        },
        "CreateTime": request.created_at,
        "InstanceId": instance_id(request),
        "Type": request.type,
        "LaunchGroup": request.launch_group,
        "LaunchSpecification": {
            "ImageId": specification.image_id,
            "InstanceType": specification.instance_type,
            "KeyName": specification.key_name,
        },
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": request.price,
        "Tags": [{"Key": key, "Value": value} for key, value in filters.tags_of(request).items()],
    }


def request_spot_instances(response: SpotInstances) -> ActionResult:
    made = moto_request_spot_instances(response).result["SpotInstanceRequests"]
    return ActionResult({"SpotInstanceRequests": [described(request) for request in made]})


def describe_spot_instance_requests(response: SpotInstances) -> ActionResult:
    response.error_on_dryrun()
    size = paging.checked_size(response._get_param("MaxResults"), 5, 1000)
    wanted = response._get_param("SpotInstanceRequestIds", [])
    known = response.ec2_backend.spot_instance_requests
    listed = existing(known, wanted) if wanted else known.values()
    asked = response._filters_from_querystring()
    shown, token = paging.page(
        filters.keep(listed, asked, FIELDS), response._get_param("NextToken"), size, asked
    )
    return ActionResult(
        {"SpotInstanceRequests": [described(request) for request in shown], "NextToken": token}
    )


def existing(known: dict[str, SpotInstanceRequest], ids: list[str]) -> list[SpotInstanceRequest]:
    for request_id in ids:
        if request_id not in known:
            raise EC2ClientError(
                "InvalidSpotInstanceRequestID.NotFound",
                f"The spot instance request ID '{request_id}' does not exist",
            )
    return [known[request_id] for request_id in dict.fromkeys(ids)]


def cancel_spot_instance_requests(response: SpotInstances) -> ActionResult:
    """All or none: one unknown id fails the call. Instances run on."""
    ids = response._get_param("SpotInstanceRequestIds", [])
    cancelled = existing(response.ec2_backend.spot_instance_requests, ids)
    response.error_on_dryrun()
    for request in cancelled:
        if request.state in ("open", "active"):
            enter(
                request,
                "cancelled",
                "request-canceled-and-instance-running"
                if request.instance
                else "canceled-before-fulfillment",
            )
    return ActionResult(
        {
            "CancelledSpotInstanceRequests": [
                {"SpotInstanceRequestId": r.id, "State": r.state} for r in cancelled
            ]
        }
    )


moto_begin = SpotInstanceRequest.__init__
moto_launch = SpotInstanceRequest.launch_instance
moto_request_spot_instances = SpotInstances.request_spot_instances


def install() -> None:
    SpotInstanceRequest.__init__ = begin
    SpotInstanceRequest.launch_instance = launch
    SpotInstances.request_spot_instances = request_spot_instances
    SpotInstances.describe_spot_instance_requests = describe_spot_instance_requests
    SpotInstances.cancel_spot_instance_requests = cancel_spot_instance_requests
