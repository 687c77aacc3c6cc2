"""Elastic IPs: in use while associated, free again when their instance ends, and no empty strings for "nothing"."""

from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import EC2ClientError, InvalidAllocationIdError
from moto.ec2.models.elastic_ip_addresses import ElasticAddress
from moto.ec2.models.instances import Instance
from moto.ec2.responses.elastic_ip_addresses import ElasticIPAddresses

from . import filters

FIELDS: filters.Fields = {
    "allocation-id": lambda address: address.allocation_id,
    "association-id": lambda address: address.association_id,
    "domain": lambda address: address.domain,
    "instance-id": lambda address: address.instance.id if address.instance else None,
    "network-border-group": lambda address: border_group(address),
    "network-interface-id": lambda address: address.eni.id if address.eni else None,
    "public-ip": lambda address: address.public_ip,
}


def border_group(address: ElasticAddress) -> str:
    return getattr(address, "network_border_group", None) or address.ec2_backend.region_name


def described(address: ElasticAddress) -> dict[str, Any]:
    return {
        "AllocationId": address.allocation_id,
        "AssociationId": address.association_id,
        "Domain": address.domain,
        "InstanceId": address.instance.id if address.instance else None,
        "NetworkInterfaceId": address.eni.id if address.eni else None,
        "PrivateIpAddress": address.eni.private_ip_address if address.eni else None,
        "PublicIp": address.public_ip,
        "NetworkBorderGroup": border_group(address),
        "PublicIpv4Pool": "amazon",
        "ServiceManaged": getattr(address, "service_managed", None),
        "Tags": [{"Key": key, "Value": value} for key, value in filters.tags_of(address).items()],
    }


def describe_addresses(response: ElasticIPAddresses) -> ActionResult:
    response.error_on_dryrun()
    backend = response.ec2_backend
    found = backend.describe_addresses(
        response._get_param("AllocationIds", []), response._get_param("PublicIps", [])
    )
    kept = filters.keep(found, response._filters_from_querystring(), FIELDS)
    return ActionResult({"Addresses": [described(address) for address in kept]})


def release_address(response: ElasticIPAddresses) -> EmptyResult:
    backend = response.ec2_backend
    wanted, public_ip = response._get_param("AllocationId"), response._get_param("PublicIp")
    address = next(
        (a for a in backend.addresses if a.allocation_id == wanted or a.public_ip == public_ip),
        None,
    )
    if address is None:
        raise InvalidAllocationIdError(wanted or public_ip)
    group = response._get_param("NetworkBorderGroup")
    if group and group != border_group(address):
        raise EC2ClientError(
            "InvalidParameterValue",
            f"The network border group '{group}' is not that of the address",
        )
    if address.association_id:
        raise EC2ClientError("InvalidIPAddress.InUse", f"Address {address.public_ip} is in use.")
    response.error_on_dryrun()
    backend.addresses.remove(address)
    backend.tags.pop(address.id, None)
    return EmptyResult()


def disassociate_from(instance: Instance) -> None:
    """What happens to the addresses of an instance that ends."""
    for address in instance.ec2_backend.addresses:
        if address.instance is instance:
            address.instance = address.eni = address.association_id = None


def install() -> None:
    ElasticIPAddresses.describe_addresses = describe_addresses
    ElasticIPAddresses.release_address = release_address
