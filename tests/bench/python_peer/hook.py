"""How the Python hooks of this kind find a worker's manager: one look-up for each worker that isn't the dead manager's own.

A replica of that one habit: lists every instance page by page, then asks for the manager of each foreign worker, one after the other.
"""

import sys
import time

import boto3


def look(dead_manager: str) -> int:
    ec2 = boto3.client("ec2")
    calls, foreign = 0, []
    for page in ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 1000}):
        calls += 1
        for reservation in page["Reservations"]:
            for instance in reservation["Instances"]:
                tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
                parent = tags.get("gitlab-runner-parent-id")
                if parent and parent != dead_manager:
                    foreign.append(parent)
    for manager in foreign:
        ec2.describe_instances(Filters=[{"Name": "instance-id", "Values": [manager]}])
        calls += 1
    return calls


if __name__ == "__main__":
    began = time.perf_counter()
    made = look(sys.argv[1])
    print(made, time.perf_counter() - began)
