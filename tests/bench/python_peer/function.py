"""What users have: a Python function with the same four clients, made at import, as such functions make them."""

import boto3

autoscaling = boto3.client("autoscaling")
ec2 = boto3.client("ec2")
sqs = boto3.client("sqs")
ssm = boto3.client("ssm")


def idle(event: dict, context: object) -> None:
    """Answers without a call."""


def reads(event: dict, context: object) -> int:
    """The same six reads that a sweep makes, one after the other; answers how many instances there are."""
    pages = ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 1000})
    ec2.describe_spot_instance_requests(MaxResults=1000)
    ec2.describe_key_pairs()
    ec2.describe_addresses()
    count = sum(len(reservation["Instances"]) for page in pages for reservation in page["Reservations"])
    autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=["ci-linux-asg"])
    return count
