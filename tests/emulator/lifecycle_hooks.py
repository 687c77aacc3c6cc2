"""Termination hooks that really hold an instance: they tell their queue, take heartbeats, and time out.

An open action ends in one of three ways: CompleteLifecycleAction, the heartbeat timeout, the global timeout.
When the last action of an instance is over, the group goes on with it.
"""

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from moto.autoscaling.exceptions import ValidationError
from moto.autoscaling.models import AutoScalingBackend, LifecycleHook
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult, EmptyResult

from . import backends
from .event_bus import BUS
from .settings import SETTINGS
from .timeline import TIMELINE

TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
TRANSITIONS = (TERMINATING, "autoscaling:EC2_INSTANCE_LAUNCHING")
LONGEST_WAIT = 48 * 3600


@dataclass
class LifecycleAction:
    group_name: str
    hook: LifecycleHook
    instance_id: str
    when_over: Callable[[], None]
    token: str
    started_at: float
    expires_at: float
    heartbeats: int = 0


def actions(backend: AutoScalingBackend) -> list[LifecycleAction]:
    return backends.own(backend, "lifecycle_actions", list)


def put_lifecycle_hook(response: AutoScalingResponse) -> EmptyResult:
    backend = response.autoscaling_backend
    name, group_name = (
        response._get_param("LifecycleHookName"),
        response._get_param("AutoScalingGroupName"),
    )
    if group_name not in backend.autoscaling_groups:
        raise ValidationError("AutoScalingGroup name not found - null")
    hook = backend.lifecycle_hooks.get(f"{group_name}_{name}")
    is_new = hook is None
    if hook is None:
        hook = LifecycleHook(name, group_name, None, None, None)
        hook.notification_target_arn = hook.role_arn = hook.notification_metadata = None
    hook.lifecycle_transition = (
        response._get_param("LifecycleTransition") or hook.lifecycle_transition
    )
    if hook.lifecycle_transition not in TRANSITIONS:
        raise ValidationError("LifecycleTransition must be one of " + ", ".join(TRANSITIONS))
    hook.heartbeat_timeout = response._get_int_param("HeartbeatTimeout") or hook.heartbeat_timeout
    hook.default_result = response._get_param("DefaultResult") or hook.default_result
    hook.notification_target_arn = (
        response._get_param("NotificationTargetARN") or hook.notification_target_arn
    )
    hook.role_arn = response._get_param("RoleARN") or hook.role_arn
    hook.notification_metadata = (
        response._get_param("NotificationMetadata") or hook.notification_metadata
    )
    hook.global_timeout = int(
        min(100 * hook.heartbeat_timeout, LONGEST_WAIT, SETTINGS.global_timeout or LONGEST_WAIT)
    )
    backend.lifecycle_hooks[f"{group_name}_{name}"] = hook
    if is_new:
        tell(hook, test_notification(backend, group_name))
    return EmptyResult()


def test_notification(backend: AutoScalingBackend, group_name: str) -> dict[str, str]:
    return {
        "AccountId": backend.account_id,
        "RequestId": str(uuid.uuid4()),
        "AutoScalingGroupARN": backend.autoscaling_groups[group_name].arn,
        "AutoScalingGroupName": group_name,
        "Service": "AWS Auto Scaling",
        "Event": "autoscaling:TEST_NOTIFICATION",
        "Time": now_text(),
    }


def now_text() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def tell(hook: LifecycleHook, message: dict[str, str]) -> None:
    """Sends to the hook's target; only queues are emulated, a topic hears nothing."""
    target = hook.notification_target_arn or ""
    if ":sqs:" in target:
        backends.sqs().send_message(target.rsplit(":", 1)[1], json.dumps(message))


def open_actions(
    backend: AutoScalingBackend, group_name: str, instance_id: str, when_over: Callable[[], None]
) -> bool:
    """Opens an action for each termination hook of the group; False if there is none."""
    hooks = [
        h
        for h in backend.describe_lifecycle_hooks(group_name)
        if h.lifecycle_transition == TERMINATING
    ]
    for hook in hooks:
        started_at = time.time()
        expires_at = started_at + min(hook.heartbeat_timeout, hook.global_timeout)
        action = LifecycleAction(
            group_name, hook, instance_id, when_over, str(uuid.uuid4()), started_at, expires_at
        )
        actions(backend).append(action)
        TIMELINE.later(expires_at - started_at, lambda action=action: expire(backend, action))
        announce(backend, action)
    return bool(hooks)


def announce(backend: AutoScalingBackend, action: LifecycleAction) -> None:
    hook = action.hook
    detail = {
        "LifecycleActionToken": action.token,
        "AutoScalingGroupName": action.group_name,
        "LifecycleHookName": hook.name,
        "EC2InstanceId": action.instance_id,
        "LifecycleTransition": TERMINATING,
        "Origin": "AutoScalingGroup",
        "Destination": "EC2",
    }
    if hook.notification_metadata:
        detail["NotificationMetadata"] = hook.notification_metadata
    message = {
        "AccountId": backend.account_id,
        "RequestId": str(uuid.uuid4()),
        "Service": "AWS Auto Scaling",
        "Time": now_text(),
    }
    tell(hook, message | detail)
    group_arn = backend.autoscaling_groups[action.group_name].arn
    BUS.publish("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", detail, [group_arn])


def expire(backend: AutoScalingBackend, action: LifecycleAction) -> None:
    if action not in actions(backend):
        return
    left = action.expires_at - time.time()
    if left > 0:
        TIMELINE.later(left, lambda: expire(backend, action))
    else:
        end(backend, action, action.hook.default_result)


def end(backend: AutoScalingBackend, action: LifecycleAction, result: str) -> None:
    """Ends one action; ABANDON ends the instance's other actions with it."""
    same_instance = [
        a
        for a in actions(backend)
        if (a.group_name, a.instance_id) == (action.group_name, action.instance_id)
    ]
    over = same_instance if result == "ABANDON" else [action]
    for ended in over:
        actions(backend).remove(ended)
    if len(over) == len(same_instance):
        action.when_over()


def forget_group(backend: AutoScalingBackend, group_name: str) -> None:
    actions(backend)[:] = [action for action in actions(backend) if action.group_name != group_name]
    for key, hook in list(backend.lifecycle_hooks.items()):
        if hook.auto_scaling_group_name == group_name:
            del backend.lifecycle_hooks[key]


def named_action(response: AutoScalingResponse) -> LifecycleAction:
    names = ("AutoScalingGroupName", "LifecycleHookName", "InstanceId", "LifecycleActionToken")
    group_name, hook_name, instance_id, token = (response._get_param(name) for name in names)
    for action in actions(response.autoscaling_backend):
        by_instance = instance_id in (None, action.instance_id)
        by_token = token in (None, action.token)
        if (
            (action.group_name, action.hook.name) == (group_name, hook_name)
            and by_instance
            and by_token
            and (instance_id or token)
        ):
            return action
    whose = f"token {token}" if token else f"instance ID {instance_id}"
    raise ValidationError(f"No active Lifecycle Action found with {whose}")


def record_lifecycle_action_heartbeat(response: AutoScalingResponse) -> ActionResult:
    action = named_action(response)
    action.heartbeats += 1
    latest = action.started_at + action.hook.global_timeout
    action.expires_at = min(time.time() + action.hook.heartbeat_timeout, latest)
    return ActionResult({})


def complete_lifecycle_action(response: AutoScalingResponse) -> ActionResult:
    result = response._get_param("LifecycleActionResult")
    if result not in ("CONTINUE", "ABANDON"):
        raise ValidationError(f"Invalid lifecycle action result: {result}")
    end(response.autoscaling_backend, named_action(response), result)
    return ActionResult({})


def install() -> None:
    AutoScalingResponse.put_lifecycle_hook = put_lifecycle_hook
    AutoScalingResponse.record_lifecycle_action_heartbeat = record_lifecycle_action_heartbeat
    AutoScalingResponse.complete_lifecycle_action = complete_lifecycle_action
