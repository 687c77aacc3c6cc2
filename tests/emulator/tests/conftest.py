"""One emulator for the whole run, emptied before each test, and boto3 clients that talk to it."""

import time
from collections.abc import Callable, Iterator

import pytest

from emulator import control
from emulator.server import Emulator
from emulator.settings import ACCOUNT_ID, REGION


@pytest.fixture(scope="session")
def server() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


@pytest.fixture
def aws(server: Emulator) -> Emulator:
    control.reset(server.front)
    return server


@pytest.fixture
def ec2(aws: Emulator):
    return aws.client("ec2")


@pytest.fixture
def autoscaling(aws: Emulator):
    return aws.client("autoscaling")


@pytest.fixture
def ssm(aws: Emulator):
    return aws.client("ssm")


@pytest.fixture
def sqs(aws: Emulator):
    return aws.client("sqs")


def queue_arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{name}"


def wait_until(happened: Callable[[], object], seconds: float = 15.0, what: str = "it") -> object:
    """Returns what `happened` returns as soon as that is true; fails when the time is up."""
    give_up = time.time() + seconds
    while time.time() < give_up:
        if found := happened():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds:g} s in vain for {what}")
