"""Auto Scaling groups: an instance leaves through its hooks, and has a successor only if the capacity asks for one.

InService -> Terminating:Wait (while an action is open) -> Terminating:Proceed -> out of the group, terminated.
"""

from moto.autoscaling.exceptions import AutoscalingClientError, ValidationError
from moto.autoscaling.models import (
    AutoScalingBackend,
    FakeAutoScalingGroup,
    InstanceState,
    TerminateInstanceActivity,
)
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult, EmptyResult

from . import backends, instances, lifecycle_hooks, paging
from .event_bus import BUS, instance_arn
from .settings import SETTINGS
from .timeline import TIMELINE


def members(backend: AutoScalingBackend) -> dict[str, InstanceState]:
    return {
        member.instance_id: member
        for group in backend.autoscaling_groups.values()
        for member in group.instance_states
    }


def activities(backend: AutoScalingBackend) -> list[TerminateInstanceActivity]:
    """The terminations, newest first."""
    return backends.own(backend, "scaling_activities", list)


def describe_scaling_activities(response: AutoScalingResponse) -> ActionResult:
    wanted, size = (
        response._get_param("AutoScalingGroupName"),
        response._get_int_param("MaxRecords") or 100,
    )
    listed = [
        activity
        for activity in activities(response.autoscaling_backend)
        if wanted in (None, activity.auto_scaling_group_name)
    ]
    shown, token = paging.page(
        listed, response._get_param("NextToken"), size, wanted, AutoscalingClientError
    )
    return ActionResult({"Activities": shown, "NextToken": token})


def settle(group: FakeAutoScalingGroup) -> None:
    """Launches or ends as many instances as lie between the group and its desired capacity."""
    in_service = group.active_instances()
    surplus = len(in_service) - (group.desired_capacity or 0)
    if surplus < 0:
        group.replace_autoscaling_group_instances(-surplus, group.get_propagated_tags())
    unprotected = [member for member in in_service if not member.protected_from_scale_in]
    for member in unprotected[: max(surplus, 0)]:
        begin_termination(group, member)


def begin_termination(group: FakeAutoScalingGroup, member: InstanceState) -> None:
    if member.lifecycle_state.startswith("Terminating"):
        return
    member.lifecycle_state = "Terminating:Wait"
    backend = group.autoscaling_backend
    activities(backend).insert(
        0, TerminateInstanceActivity(member.instance, group.desired_capacity)
    )
    if not lifecycle_hooks.open_actions(
        backend, group.name, member.instance_id, lambda: proceed(group, member)
    ):
        proceed(group, member)


def proceed(group: FakeAutoScalingGroup, member: InstanceState) -> None:
    """The hooks are over: the instance ends, whatever protects it from TerminateInstances."""
    member.lifecycle_state = "Terminating:Proceed"
    member.instance.terminate()
    TIMELINE.later(SETTINGS.shutting_down + 0.1, lambda: leave(group, member))


def leave(group: FakeAutoScalingGroup, member: InstanceState) -> None:
    if member not in group.instance_states:
        return
    group.instance_states.remove(member)
    detail = {
        "StatusCode": "InProgress",
        "AutoScalingGroupName": group.name,
        "EC2InstanceId": member.instance_id,
        "Description": f"Terminating EC2 instance: {member.instance_id}",
    }
    BUS.publish(
        "aws.autoscaling",
        "EC2 Instance Terminate Successful",
        detail,
        [group.arn, instance_arn(member.instance_id)],
    )
    settle(group)


def notice_terminated(backend: AutoScalingBackend, ids: list[str]) -> None:
    """An instance ended behind the group's back: a health check later the group takes it out, through its hooks."""
    known = members(backend)
    for member in (known[instance_id] for instance_id in ids if instance_id in known):
        group = member.auto_scaling_group
        TIMELINE.later(
            SETTINGS.health_check,
            lambda group=group, member=member: begin_termination(group, member),
        )


def set_desired_capacity(group: FakeAutoScalingGroup, capacity: int | None) -> None:
    group.desired_capacity = group.min_size if capacity is None else capacity
    settle(group)


def terminate_instance(
    backend: AutoScalingBackend, instance_id: str, should_decrement: bool
) -> TerminateInstanceActivity:
    member = members(backend).get(instance_id)
    if member is None:
        raise ValidationError(
            f"Instance Id not found - No managed instance found for instance ID: {instance_id}"
        )
    group = member.auto_scaling_group
    original_size = group.desired_capacity
    if should_decrement and group.desired_capacity <= group.min_size:
        raise ValidationError(
            f"Currently, desiredSize equals minSize ({group.min_size}). Terminating instance without replacement will "
            "violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or lower group's min size."
        )
    if should_decrement:
        group.desired_capacity -= 1
    begin_termination(group, member)
    return TerminateInstanceActivity(member.instance, original_size)


def delete_auto_scaling_group(response: AutoScalingResponse) -> EmptyResult:
    """With ForceDelete the instances end at once, and no hook is asked."""
    backend, name = response.autoscaling_backend, response._get_param("AutoScalingGroupName")
    group = backend.autoscaling_groups.get(name)
    if group is None:
        raise ValidationError(
            f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found"
        )
    forced = response._get_bool_param("ForceDelete", False)
    if group.instance_states and not forced:
        raise AutoscalingClientError(
            "ResourceInUse",
            "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group.",
        )
    for member in group.instance_states:
        member.instance.terminate()
    group.instance_states = []
    del backend.autoscaling_groups[name]
    lifecycle_hooks.forget_group(backend, name)
    return EmptyResult()


def install() -> None:
    FakeAutoScalingGroup.set_desired_capacity = set_desired_capacity
    AutoScalingBackend.terminate_instance = terminate_instance
    AutoScalingResponse.describe_scaling_activities = describe_scaling_activities
    AutoScalingResponse.delete_auto_scaling_group = delete_auto_scaling_group
    instances.on_termination.append(lambda ids: notice_terminated(backends.autoscaling(), ids))
