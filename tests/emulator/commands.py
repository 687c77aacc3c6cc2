"""SSM Run Command with scripted instances: each command goes the way its instance's script says.

A script is a list of outcomes; each SendCommand to the instance uses up one, and the last one stays.
An instance without a script answers `stopped` at once. What the drain document prints is `answer`.
"""

import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ssm.exceptions import SSMException
from moto.ssm.models import SimpleSystemManagerBackend
from moto.ssm.responses import SimpleSystemManagerResponse

from . import backends, paging
from .event_bus import BUS, instance_arn, timestamp
from .outcomes import IN_FLIGHT, RESPONSE_CODES, Command, Outcome
from .timeline import TIMELINE


def log(backend: SimpleSystemManagerBackend) -> list[Command]:
    return backends.own(backend, "command_log", list)


def scripts(backend: SimpleSystemManagerBackend) -> dict[str, list[Outcome]]:
    return backends.own(backend, "command_scripts", dict)


def agents(backend: SimpleSystemManagerBackend) -> dict[str, str]:
    """Instance id -> `dead` (refused by SendCommand) or `lost` (accepted, never delivered); absent = online."""
    return backends.own(backend, "agent_states", dict)


def script(instance_id: str, outcomes: list[dict[str, Any]]) -> None:
    scripts(backends.ssm())[instance_id] = [Outcome(**outcome) for outcome in outcomes]


def set_agent(instance_id: str, state: str) -> None:
    if state not in ("online", "dead", "lost"):
        raise ValueError(f"an agent is online, dead or lost, not {state!r}")
    agents(backends.ssm())[instance_id] = state


def next_outcome(backend: SimpleSystemManagerBackend, instance_id: str) -> Outcome:
    known = scripts(backend)
    outcomes = known.get(instance_id) or known.get("*") or [Outcome(answer="stopped")]
    outcome = outcomes.pop(0) if len(outcomes) > 1 else outcomes[0]
    lost = agents(backend).get(instance_id) == "lost"
    return replace(outcome, answer=None, delivered=outcome.delivered and not lost)


def running_instances() -> dict[str, Any]:
    everything = (
        i for reservation in backends.ec2().reservations.values() for i in reservation.instances
    )
    return {instance.id: instance for instance in everything if instance.state == "running"}


def send_command(response: SimpleSystemManagerResponse) -> ActionResult:
    backend, document = response.ssm_backend, response._get_param("DocumentName")
    ids = response._get_param("InstanceIds", [])
    if len(ids) != 1:
        raise SSMException(
            "ValidationException", "The emulator sends a command to exactly one instance"
        )
    if not document.startswith("AWS-") and document not in backend._documents:
        raise SSMException("InvalidDocument", f"Document with name {document} does not exist.")
    instance_id = ids[0]
    if instance_id not in running_instances() or agents(backend).get(instance_id) == "dead":
        raise SSMException(
            "InvalidInstanceId",
            f"Instances [[{instance_id}]] not in a valid state for account {backend.account_id}",
        )
    outcome = next_outcome(backend, instance_id)
    if outcome.refuse:
        raise SSMException(outcome.refuse, "Refused by the instance's script")
    timeout = response._get_int_param("TimeoutSeconds") or 3600
    if timeout < 30:
        raise SSMException("ValidationException", "TimeoutSeconds must be at least 30")
    parameters = response._get_param("Parameters", {})
    command = Command(
        str(uuid.uuid4()),
        document,
        instance_id,
        response._get_param("Comment", ""),
        parameters,
        timeout,
        outcome,
    )
    log(backend).insert(0, command)
    TIMELINE.later(command.ends_at - time.time() + 0.01, lambda: announce_end(command))
    return ActionResult({"Command": described(command)})


def announce_end(command: Command) -> None:
    detail = {
        "command-id": command.id,
        "document-name": command.document,
        "instance-id": command.instance_id,
        "requested-date-time": timestamp(),
        "status": command.status()[0],
    }
    arn = instance_arn(command.instance_id)
    BUS.publish("aws.ssm", "EC2 Command Invocation Status-change Notification", detail, [arn])


def described(command: Command) -> dict[str, Any]:
    status, details = command.status()
    return {
        "CommandId": command.id,
        "Comment": command.comment,
        "DocumentName": command.document,
        "InstanceIds": [command.instance_id],
        "Parameters": command.parameters,
        "RequestedDateTime": datetime.fromtimestamp(command.sent_at, UTC),
        "ExpiresAfter": datetime.fromtimestamp(command.sent_at + command.timeout, UTC),
        "Status": status,
        "StatusDetails": details,
        "TargetCount": 1,
        "CompletedCount": int(status not in IN_FLIGHT),
        "TimeoutSeconds": command.timeout,
    }


def passes(command: Command, key: str, value: str) -> bool:
    if key in ("InvokedAfter", "InvokedBefore"):
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
        if moment.tzinfo is None:
            raise SSMException(
                "InvalidFilterKey", f"{key} wants a time such as 2026-01-31T00:00:00Z, not {value}"
            )
        return (command.sent_at >= moment.timestamp()) == (key == "InvokedAfter")
    if key == "DocumentName":
        return command.document == value
    if key == "Status":
        return command.status()[0] == value
    raise SSMException("InvalidFilterKey", f"The filter key {key} is not valid")


def list_commands(response: SimpleSystemManagerResponse) -> ActionResult:
    """Newest first. With an instance id AWS doesn't find what is still pending; so neither does this."""
    wanted, instance_id = response._get_param("CommandId"), response._get_param("InstanceId")
    asked = [(f["key"], f["value"]) for f in response._get_param("Filters", [])]
    listed = [
        command
        for command in log(response.ssm_backend)
        if wanted in (None, command.id)
        and (
            instance_id is None
            or (command.instance_id == instance_id and command.status()[0] != "Pending")
        )
        and all(passes(command, key, value) for key, value in asked)
    ]
    size = paging.checked_size(response._get_param("MaxResults"), 1, 50, SSMException) or 50
    shown, token = paging.page(listed, response._get_param("NextToken"), size, asked, SSMException)
    return ActionResult({"Commands": [described(command) for command in shown], "NextToken": token})


def get_command_invocation(response: SimpleSystemManagerResponse) -> ActionResult:
    wanted, instance_id = response._get_param("CommandId"), response._get_param("InstanceId")
    command = next(
        (c for c in log(response.ssm_backend) if (c.id, c.instance_id) == (wanted, instance_id)),
        None,
    )
    if command is None or time.time() - command.sent_at < command.outcome.hidden:
        raise SSMException("InvocationDoesNotExist", "")
    status, details = command.status()
    over, outcome = status not in IN_FLIGHT, command.outcome
    ended = over and outcome.delivered and not command.cancelled
    code = (
        outcome.response_code
        if outcome.response_code is not None
        else RESPONSE_CODES.get(status, -1)
    )
    answer = {
        "CommandId": command.id,
        "InstanceId": instance_id,
        "DocumentName": command.document,
        "Comment": command.comment,
        "ResponseCode": code if ended else -1,
        "Status": status,
        "StatusDetails": details,
        "StandardOutputContent": outcome.stdout[:24_000] if ended else "",
        "StandardErrorContent": outcome.stderr[:8_000] if ended else "",
    }
    return ActionResult(answer)


def cancel_command(response: SimpleSystemManagerResponse) -> ActionResult:
    command = next(
        (c for c in log(response.ssm_backend) if c.id == response._get_param("CommandId")), None
    )
    if command is None:
        raise SSMException("InvalidCommandId", "")
    command.cancelled = command.cancelled or command.status()[0] in IN_FLIGHT
    return ActionResult({})


def describe_instance_information(response: SimpleSystemManagerResponse) -> ActionResult:
    """Running instances whose agent has not been dead for long; a lost one shows as ConnectionLost."""
    states = agents(response.ssm_backend)
    now = datetime.now(UTC)
    listed = [
        {
            "InstanceId": instance_id,
            "PingStatus": "ConnectionLost" if states.get(instance_id) == "lost" else "Online",
            "LastPingDateTime": now,
            "PlatformType": "Windows" if instance.platform == "windows" else "Linux",
            "ResourceType": "EC2Instance",
        }
        for instance_id, instance in running_instances().items()
        if states.get(instance_id) != "dead"
    ]
    asked = response._get_param("Filters", []) or response._get_param(
        "InstanceInformationFilterList", []
    )
    for condition in asked:
        key, values = (
            condition.get("Key") or condition.get("key"),
            condition.get("Values") or condition.get("valueSet"),
        )
        field_name = {"InstanceIds": "InstanceId"}.get(key, key)
        listed = [information for information in listed if information.get(field_name) in values]
    size = paging.checked_size(response._get_param("MaxResults"), 5, 50, SSMException) or 50
    shown, token = paging.page(listed, response._get_param("NextToken"), size, asked, SSMException)
    return ActionResult({"InstanceInformationList": shown, "NextToken": token})


def install() -> None:
    SimpleSystemManagerResponse.send_command = send_command
    SimpleSystemManagerResponse.list_commands = list_commands
    SimpleSystemManagerResponse.get_command_invocation = get_command_invocation
    SimpleSystemManagerResponse.cancel_command = cancel_command
    SimpleSystemManagerResponse.describe_instance_information = describe_instance_information
