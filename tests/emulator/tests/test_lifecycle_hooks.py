"""Hooks wait, tell, take heartbeats and time out; groups replace only what their capacity asks for."""

import json

import pytest
from botocore.exceptions import ClientError
from conftest import queue_arn, wait_until
from emulator import seeding

HOOK = {"AutoScalingGroupName": "managers", "LifecycleHookName": "drain"}
ROLE = "arn:aws:iam::123456789012:role/hook"


@pytest.fixture
def managers(autoscaling, ec2, sqs):
    """A group of two with a hook that tells the queue `work`."""
    sqs.create_queue(QueueName="work")
    ec2.create_launch_template(
        LaunchTemplateName="manager",
        LaunchTemplateData={"InstanceType": "t3.micro", "ImageId": "ami-12c6146b"},
    )
    autoscaling.create_auto_scaling_group(
        AutoScalingGroupName="managers",
        MinSize=0,
        MaxSize=4,
        DesiredCapacity=2,
        LaunchTemplate={"LaunchTemplateName": "manager"},
        AvailabilityZones=["eu-central-1a"],
    )
    put_hook(autoscaling, HeartbeatTimeout=60)
    return [member["InstanceId"] for member in group(autoscaling)["Instances"]]


def put_hook(autoscaling, name="drain", **settings):
    autoscaling.put_lifecycle_hook(
        AutoScalingGroupName="managers",
        LifecycleHookName=name,
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        NotificationTargetARN=queue_arn("work"),
        RoleARN=ROLE,
        NotificationMetadata="ours",
        **settings,
    )


def group(autoscaling):
    return autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=["managers"])[
        "AutoScalingGroups"
    ][0]


def states(autoscaling):
    return {
        member["InstanceId"]: member["LifecycleState"] for member in group(autoscaling)["Instances"]
    }


def messages(sqs):
    url = sqs.get_queue_url(QueueName="work")["QueueUrl"]
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    return [json.loads(message["Body"]) for message in received]


def ec2_state(ec2, instance_id):
    return ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0][
        "State"
    ]["Name"]


def terminate(autoscaling, instance_id, decrement=True):
    autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=instance_id, ShouldDecrementDesiredCapacity=decrement
    )


def test_putting_a_hook_tells_its_queue_so(managers, sqs, autoscaling):
    (test,) = messages(sqs)
    assert test["Event"] == "autoscaling:TEST_NOTIFICATION"
    assert test["AutoScalingGroupName"] == "managers"
    (hook,) = autoscaling.describe_lifecycle_hooks(AutoScalingGroupName="managers")[
        "LifecycleHooks"
    ]
    assert (hook["HeartbeatTimeout"], hook["GlobalTimeout"], hook["DefaultResult"]) == (
        60,
        6000,
        "ABANDON",
    )
    assert hook["NotificationTargetARN"] == queue_arn("work")


def test_a_terminated_member_waits_until_its_action_is_completed(managers, sqs, autoscaling, ec2):
    first, second = managers
    messages(sqs)
    terminate(autoscaling, first)
    assert states(autoscaling) == {first: "Terminating:Wait", second: "InService"}
    assert ec2_state(ec2, first) == "running"
    (activity,) = autoscaling.describe_scaling_activities(AutoScalingGroupName="managers")[
        "Activities"
    ]
    assert activity["Description"] == f"Terminating EC2 instance: {first}"
    (message,) = messages(sqs)
    assert message["EC2InstanceId"] == first
    assert message["LifecycleTransition"] == "autoscaling:EC2_INSTANCE_TERMINATING"
    assert message["NotificationMetadata"] == "ours"

    autoscaling.record_lifecycle_action_heartbeat(
        **HOOK, LifecycleActionToken=message["LifecycleActionToken"]
    )
    autoscaling.complete_lifecycle_action(
        **HOOK, InstanceId=first, LifecycleActionResult="CONTINUE"
    )
    assert ec2_state(ec2, first) == "shutting-down"
    assert states(autoscaling)[first] == "Terminating:Proceed"
    wait_until(
        lambda: states(autoscaling) == {second: "InService"},
        what="the group without its first manager",
    )
    assert ec2_state(ec2, first) == "terminated"
    with pytest.raises(ClientError, match="No active Lifecycle Action found"):
        autoscaling.complete_lifecycle_action(
            **HOOK, InstanceId=first, LifecycleActionResult="CONTINUE"
        )


@pytest.mark.parametrize("decrement, successors", [(True, 0), (False, 1)])
def test_a_successor_comes_only_if_the_capacity_asks(managers, autoscaling, decrement, successors):
    first, second = managers
    terminate(autoscaling, first, decrement)
    autoscaling.complete_lifecycle_action(
        **HOOK, InstanceId=first, LifecycleActionResult="CONTINUE"
    )
    wait_until(lambda: first not in states(autoscaling), what="the manager out of its group")
    assert len(set(states(autoscaling)) - {second}) == successors


def test_without_heartbeats_the_hook_times_out_with_its_default(managers, autoscaling, ec2):
    put_hook(autoscaling, HeartbeatTimeout=1, DefaultResult="CONTINUE")
    terminate(autoscaling, managers[0])
    wait_until(lambda: ec2_state(ec2, managers[0]) == "terminated", what="the time-out")


def test_heartbeats_hold_the_hook_until_the_global_timeout(managers, aws, autoscaling):
    from emulator.settings import SETTINGS

    SETTINGS.global_timeout = 2
    put_hook(autoscaling, HeartbeatTimeout=1)
    terminate(autoscaling, managers[0])
    beats = 0

    def gave_up():
        nonlocal beats
        try:
            autoscaling.record_lifecycle_action_heartbeat(**HOOK, InstanceId=managers[0])
            beats += 1
        except ClientError:
            return True

    wait_until(gave_up, what="the global timeout")
    assert beats > 20, "the heartbeats should have held it for two seconds"


def test_the_instance_waits_for_every_hook_and_abandon_ends_all(managers, autoscaling):
    put_hook(autoscaling, "backup", HeartbeatTimeout=60)
    terminate(autoscaling, managers[0])
    autoscaling.complete_lifecycle_action(
        **HOOK, InstanceId=managers[0], LifecycleActionResult="CONTINUE"
    )
    assert states(autoscaling)[managers[0]] == "Terminating:Wait"
    terminate(autoscaling, managers[1])
    autoscaling.complete_lifecycle_action(
        **HOOK, InstanceId=managers[1], LifecycleActionResult="ABANDON"
    )
    assert states(autoscaling)[managers[1]] == "Terminating:Proceed"


def test_an_instance_that_died_outside_its_group_goes_through_the_hook_too(
    managers, sqs, autoscaling, ec2
):
    messages(sqs)
    ec2.terminate_instances(InstanceIds=[managers[0]])
    wait_until(
        lambda: states(autoscaling).get(managers[0]) == "Terminating:Wait",
        what="the group to notice",
    )
    (message,) = messages(sqs)
    assert message["EC2InstanceId"] == managers[0]
    assert ec2_state(ec2, managers[0]) in ("shutting-down", "terminated")


def test_scaling_to_zero_asks_every_hook_and_deleting_by_force_asks_none(
    managers, sqs, autoscaling, ec2
):
    messages(sqs)
    autoscaling.set_desired_capacity(AutoScalingGroupName="managers", DesiredCapacity=0)
    assert set(states(autoscaling).values()) == {"Terminating:Wait"}
    assert {message["EC2InstanceId"] for message in messages(sqs)} == set(managers)
    with pytest.raises(ClientError, match="ResourceInUse"):
        autoscaling.delete_auto_scaling_group(AutoScalingGroupName="managers")
    autoscaling.delete_auto_scaling_group(AutoScalingGroupName="managers", ForceDelete=True)
    assert autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"] == []
    wait_until(lambda: ec2_state(ec2, managers[0]) == "terminated", what="the end of the instances")


def test_only_a_member_can_be_terminated(managers, autoscaling):
    stranger = seeding.instance()
    with pytest.raises(ClientError, match="No managed instance found"):
        terminate(autoscaling, stranger)
