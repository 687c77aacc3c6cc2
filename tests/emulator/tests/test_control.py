"""Faults break what they name and nothing else; the call log and the control API tell what was."""

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError
from emulator import seeding


def control(aws, method, path, body=None):
    request = urllib.request.Request(
        f"{aws.endpoint}/_emulator/{path}", json.dumps(body).encode(), method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)
    except urllib.error.HTTPError as refused:
        return json.load(refused)


def test_a_fault_fails_so_many_calls_with_its_code(aws, ec2, sqs):
    control(
        aws,
        "POST",
        "faults",
        [
            {
                "service": "ec2",
                "action": "DescribeInstances",
                "skip": 1,
                "times": 2,
                "code": "RequestLimitExceeded",
                "status": 503,
            }
        ],
    )
    outcomes = []
    for _ in range(4):
        try:
            ec2.describe_instances()
            outcomes.append("ok")
        except ClientError as failure:
            outcomes.append(failure.response["Error"]["Code"])
    assert outcomes == ["ok", "RequestLimitExceeded", "RequestLimitExceeded", "ok"]
    aws.fail(service="sqs", code="ThrottlingException", times=None)
    with pytest.raises(ClientError, match="ThrottlingException"):
        sqs.list_queues()


def test_a_lost_reply_comes_after_the_effect_and_a_cut_before_it(aws, ec2):
    kept, gone = seeding.instance(), seeding.instance()
    aws.fail(action="TerminateInstances", containing=kept, cut=True)
    aws.fail(action="TerminateInstances", containing=gone, lost_reply=True)
    for instance in (kept, gone):
        with pytest.raises(ConnectionClosedError):
            ec2.terminate_instances(InstanceIds=[instance])
    states = control(aws, "GET", "state")["instances"]
    assert states == {kept: "running", gone: "shutting-down"}


def test_latency_delays_and_still_answers(aws, ec2):
    aws.fail(action="DescribeKeyPairs", latency=0.3)
    began = time.time()
    ec2.describe_key_pairs()
    assert time.time() - began > 0.3


def test_the_call_log_says_what_a_call_was_about(aws, ec2, sqs):
    instance = seeding.instance()
    ec2.terminate_instances(InstanceIds=[instance])
    url = sqs.create_queue(QueueName="work")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="hello", DelaySeconds=7)
    with pytest.raises(ClientError):
        ec2.release_address(AllocationId="eipalloc-1")
    logged = control(aws, "GET", "calls")
    assert [(call["service"], call["action"], call["error"]) for call in logged] == [
        ("ec2", "TerminateInstances", None),
        ("sqs", "CreateQueue", None),
        ("sqs", "SendMessage", None),
        ("ec2", "ReleaseAddress", "InvalidAllocationID.NotFound"),
    ]
    assert logged[0]["summary"] == instance
    assert "DelaySeconds=7" in logged[2]["summary"]
    assert control(aws, "GET", f"calls?counts&since={logged[1]['number']}") == {
        "sqs:SendMessage": 1,
        "ec2:ReleaseAddress": 1,
    }


def test_a_call_that_is_not_emulated_has_an_error_code(ec2):
    with pytest.raises(ClientError, match="NotImplemented"):
        ec2.describe_spot_datafeed_subscription()


def test_everything_can_be_steered_over_http(aws, ec2, ssm):
    made = control(
        aws,
        "POST",
        "seed",
        {"instances": [{"count": 2, "age": 60}], "key_pairs": [{"name": "k{n}", "age": 5}]},
    )
    assert len(made["instances"]) == 2
    control(aws, "POST", "settings", {"shutting_down": 0.0})
    control(aws, "POST", "agents", {made["instances"][0]: "dead"})
    control(aws, "POST", "times", {made["key_pairs"][0]: {"create_time": "2026-01-01T00:00:00Z"}})
    assert len(ssm.describe_instance_information()["InstanceInformationList"]) == 1
    assert ec2.describe_key_pairs()["KeyPairs"][0]["CreateTime"].year == 2026
    assert control(aws, "POST", "reset") == {"done": True}
    assert control(aws, "GET", "state")["instances"] == {}


def test_what_the_control_api_doesnt_understand_it_refuses_with_a_reason(aws):
    assert "no such setting: speed" in control(aws, "POST", "settings", {"speed": 3})["error"]
    assert "can't seed volumes" in control(aws, "POST", "seed", {"volumes": []})["error"]
    assert "GET /_emulator/state" in control(aws, "GET", "nothing")["known"]


def test_the_emulator_starts_by_hand_with_a_function_and_stops_what_it_started(tmp_path):
    seed = tmp_path / "seed.json"
    seed.write_text('{"key_pairs": [{"name": "runner-a", "age": 60}]}')
    scripted = Path(__file__).with_name("scripted_function.py")
    command = [
        sys.executable,
        "-m",
        "emulator",
        "--seed",
        str(seed),
        "--set",
        "EXTRA=1",
        "--",
        sys.executable,
        str(scripted),
    ]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as started:
        lines = iter(started.stderr.readline, "")
        endpoint = (
            next(line for line in lines if "AWS_ENDPOINT_URL=" in line).split("=", 1)[1].strip()
        )
        assert any("control API" in line for line in lines)

        def ask(path, body=None):
            request = urllib.request.Request(f"{endpoint}/_emulator/{path}", body)
            return json.load(urllib.request.urlopen(request, timeout=10))

        assert list(ask("state")["key_pairs"].values()) == ["runner-a"]
        assert ask("invoke", b'{"order": "fine"}')["reply"] == '{"batchItemFailures": []}'
        assert ask("invoke", b'{"order": "raise"}')["error"]["errorType"] == "Boom"
        assert [made["source"] for made in ask("invocations") if made["source"] == "direct"] == [
            "direct",
            "direct",
        ]
        children = [
            child
            for task in Path(f"/proc/{started.pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
        started.terminate()
        assert started.wait(timeout=10) == 0
    assert children
    assert not any(Path(f"/proc/{child}").exists() for child in children)
