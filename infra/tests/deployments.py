"""The deployments that the checks look at, and what makes two renderings of one comparable."""

from tools import ACCOUNT, PARTITION, REGION

SQS = f"arn:{PARTITION}:sqs:{REGION}:{ACCOUNT}"
BASE = {"auto_scaling_groups": ["ci-linux-asg"]}
KEY = f"arn:{PARTITION}:kms:{REGION}:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
PROFILE = f"arn:{PARTITION}:iam::{ACCOUNT}:instance-profile/ci-linux-worker"

# Deployments that the checks look at, in the module's variables.
DEPLOYMENTS = {
    "plan": BASE,
    "enforce": {**BASE, "mode": "enforce", "executor_name": "ci-linux"},
    "everything": {
        "auto_scaling_groups": ["ci-linux-asg", "ci-arm-asg"],
        "mode": "enforce",
        "executor_name": "ci-linux",
        "runner_tokens": ["ab-c"],
        "worker_groups": {"ci-linux-asg": "ci-linux-workers"},
        "reap": ["workers", "spot-requests", "key-pairs", "addresses", "fleets"],
        "eip_tag": "lifecycle-reaper:pool=ci",
        "untagged_worker_instance_profile_arns": [PROFILE],
        "cancel_untagged_spot_requests": True,
        "drain_timeout_seconds": 172800,
        "function_timeout_seconds": 300,
        "unregister_runner": True,
        "runner_unit": "runner@ci.service",
        "architecture": "x86_64",
        "xray_tracing": True,
        "vpc_config": {"subnet_ids": ["subnet-1", "subnet-2"], "security_group_ids": ["sg-1"]},
        "spot_interruption_warnings": True,
        "sweep_alarm_hours": 6,
        "alarm_topic_arn": f"arn:{PARTITION}:sns:{REGION}:{ACCOUNT}:alarms",
        "name_prefix": "team-",
        "kms_key_arn": KEY,
        "permissions_boundary_arn": f"arn:{PARTITION}:iam::{ACCOUNT}:policy/boundary",
    },
    "existing-hook": {
        **BASE,
        "mode": "enforce",
        "create_lifecycle_hook": False,
        "lifecycle_hook_name": "ci-terminate-instances",
        "drain": "observe",
    },
    "hook-to-queue": {
        **BASE,
        "mode": "enforce",
        "create_lifecycle_hook": False,
        "lifecycle_hook_name": "inline",
        "lifecycle_hook_target": "queue",
        "stop_command": "systemctl stop x",
    },
    "no-drain": {
        **BASE,
        "mode": "enforce",
        "create_lifecycle_hook": False,
        "drain": "off",
        "reap": ["workers"],
    },
}


def full_name(variables):
    return variables.get("name_prefix", "") + variables.get("name", "lifecycle-reaper")


# Lists whose order means nothing.
UNORDERED = {
    "Action",
    "Resource",
    "SubnetIds",
    "SecurityGroupIds",
    "aws:SourceArn",
    "Service",
    "AWS",
}


def canonical(node, key=None):
    """Numbers and truth values as text, nothing empty, unordered lists sorted: what both templates mean."""
    if isinstance(node, dict):
        return {k: canonical(v, k) for k, v in node.items() if v is not None}
    if isinstance(node, list):
        values = [canonical(value) for value in node]
        if key in UNORDERED:
            values = sorted(values)
        return values[0] if len(values) == 1 and isinstance(values[0], str) else values
    if isinstance(node, bool):
        return str(node).lower()
    return (
        node
        if isinstance(node, str) or node is None
        else f"{node:g}"
        if isinstance(node, float)
        else str(node)
    )
