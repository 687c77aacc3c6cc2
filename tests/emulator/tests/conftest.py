"""One emulator for the whole run, emptied before each test, and boto3 clients that talk to it."""

import time
from collections.abc import Callable, Iterator

import boto3
import pytest
from botocore.config import Config

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


def client(server: Emulator, service: str):
    """Without retries, so that one call is one call."""
    return boto3.client(
        service,
        endpoint_url=server.endpoint,
        region_name=REGION,
        aws_access_key_id="emulator",
        aws_secret_access_key="emulator",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=20),
    )


@pytest.fixture(scope="session")
def clients(server: Emulator) -> dict:
    return {service: client(server, service) for service in ("ec2", "autoscaling", "ssm", "sqs")}


@pytest.fixture
def ec2(aws: Emulator, clients: dict):
    return clients["ec2"]


@pytest.fixture
def autoscaling(aws: Emulator, clients: dict):
    return clients["autoscaling"]


@pytest.fixture
def ssm(aws: Emulator, clients: dict):
    return clients["ssm"]


@pytest.fixture
def sqs(aws: Emulator, clients: dict):
    return clients["sqs"]


def queue_arn(name: str) -> str:
    return f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{name}"


def wait_until(happened: Callable[[], object], seconds: float = 5.0, what: str = "it") -> object:
    """Returns what `happened` returns as soon as that is true; fails when the time is up."""
    give_up = time.time() + seconds
    while time.time() < give_up:
        if found := happened():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds:g} s in vain for {what}")
