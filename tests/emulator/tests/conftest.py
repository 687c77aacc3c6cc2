"""One emulator for the whole run, emptied before each test, and boto3 clients that talk to it."""

import time
from collections.abc import Callable, Iterator

import pytest
from emulator import bootstrap, control
from emulator.deployment import Deployment
from emulator.server import Emulator
from emulator.settings import ACCOUNT_ID, REGION, SETTINGS


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


@pytest.fixture(scope="session")
def binary():
    path = bootstrap.path()
    if not path.exists():
        pytest.fail(f"no function at {path}: tests/emulator/run builds it")
    return str(path)


@pytest.fixture
def deploy(aws, binary):
    """Deploys the function, with waits between deliveries cut to a fiftieth."""
    deployed = []
    SETTINGS.shutting_down = 0.3

    def start(**options) -> Deployment:
        deployed.append(Deployment(aws, [binary], **{"wait_factor": 0.02} | options))
        return deployed[-1]

    yield start
    for deployment in deployed:
        deployment.__exit__()


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
