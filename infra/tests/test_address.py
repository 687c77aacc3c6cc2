"""The Elastic IP of a manager, on the emulated account, with a fault at each step: never two addresses, never
someone else's, none left that the function would not reap."""

import pathlib
import subprocess

import boto3
import pytest

import aws_cli
import emulated
from tools import CACHE, INFRA, run

OWNER, GROUP, SINCE = (
    "lifecycle-reaper:owner",
    "lifecycle-reaper:group",
    "lifecycle-reaper:allocated-at",
)
OTHER = "i-0a22aa22aa22aa220"
# AWS refuses the call; the call has its effect and the answer is lost; the call never arrives.
FAULTS = {
    "refused": {"code": "RequestLimitExceeded", "status": 503},
    "answer lost": {"lost_reply": True},
    "cut off": {"cut": True},
}


@pytest.fixture(scope="module")
def cli(needs, tmp_path_factory):
    """The folder of a fast `aws`."""
    python = CACHE / "awscli" / "bin" / "python"
    if not python.exists():
        needs("the AWS CLI (PyPI awscli; infra/check installs it)")
    folder = tmp_path_factory.mktemp("aws")
    command = [python, pathlib.Path(aws_cli.__file__), folder / "socket"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "ready\n"
        aws_cli.install(folder, folder / "socket")
        yield folder
    finally:
        server.kill()
        server.wait(10)


@pytest.fixture(scope="module")
def shared_account():
    with emulated.account() as account:
        yield account


@pytest.fixture
def account(shared_account):
    shared_account.control("POST", "reset")
    return shared_account


@pytest.fixture
def ec2(account):
    return boto3.client("ec2", endpoint_url=account.endpoint)


@pytest.fixture
def manager(account, ec2, cli):
    """A running instance, beside addresses of others."""
    mine, other = (
        ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1)["Instances"][0][
            "InstanceId"
        ]
        for _ in range(2)
    )
    tags = lambda **pairs: [
        {
            "ResourceType": "elastic-ip",
            "Tags": [{"Key": key, "Value": value} for key, value in pairs.items()],
        }
    ]
    ec2.allocate_address(Domain="vpc")
    ec2.allocate_address(Domain="vpc", TagSpecifications=tags(**{OWNER: OTHER}))
    used = ec2.allocate_address(Domain="vpc", TagSpecifications=tags(**{OWNER: other}))[
        "AllocationId"
    ]
    ec2.associate_address(AllocationId=used, InstanceId=other)
    with emulated.metadata(mine) as url:
        yield Manager(account, ec2, mine, url, cli)


class Manager:
    def __init__(self, account, ec2, instance, metadata_url, cli):
        self.account, self.ec2, self.instance, self.metadata_url, self.cli = (
            account,
            ec2,
            instance,
            metadata_url,
            cli,
        )
        self.others = self.addresses(mine=False)

    def run(self, verb, **settings):
        environment = {
            "PATH": f"{self.cli}:/usr/bin:/bin",
            "AWS_ENDPOINT_URL": self.account.endpoint,
            "METADATA_URL": self.metadata_url,
            "AUTO_SCALING_GROUP": "ci-linux-asg",
            "ATTEMPTS": "3",
            "PAUSE_SECONDS": "0",
            **settings,
        }
        return run(INFRA / "instance" / "address", verb, env=environment)

    def addresses(self, mine=True):
        tags = lambda address: {tag["Key"]: tag["Value"] for tag in address.get("Tags", [])}
        found = [
            {**address, "Tags": tags(address)}
            for address in self.ec2.describe_addresses()["Addresses"]
        ]
        return [
            address for address in found if (address["Tags"].get(OWNER) == self.instance) == mine
        ]

    def holds(self):
        """The one address in use, with all that the function needs to reap it."""
        (address,) = self.addresses()
        assert address["InstanceId"] == self.instance
        assert (
            address["Tags"][GROUP] == "ci-linux-asg" and int(address["Tags"][SINCE]) > 1_700_000_000
        )
        return address["AllocationId"]

    def unharmed(self):
        assert self.addresses(mine=False) == self.others


def test_claim_and_release(manager):
    assert manager.run("claim").returncode == 0
    first = manager.holds()
    assert manager.run("claim").returncode == 0  # as after a reboot
    assert manager.holds() == first
    done = manager.run("release")
    assert done.returncode == 0 and manager.addresses() == [], done.stderr
    assert manager.run("release").returncode == 0
    manager.unharmed()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("action", ["DescribeAddresses", "AllocateAddress", "AssociateAddress"])
def test_claim_with_one_fault(manager, action, fault):
    manager.account.fail(service="ec2", action=action, **FAULTS[fault])
    done = manager.run("claim")
    assert done.returncode == 0, done.stderr
    manager.holds()
    manager.unharmed()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("action", ["DescribeAddresses", "DisassociateAddress", "ReleaseAddress"])
def test_release_with_one_fault(manager, action, fault):
    assert manager.run("claim").returncode == 0
    manager.account.fail(service="ec2", action=action, **FAULTS[fault])
    done = manager.run("release")
    assert done.returncode == 0 and manager.addresses() == [], done.stderr
    manager.unharmed()


@pytest.mark.parametrize("action", ["DescribeAddresses", "AllocateAddress"])
def test_claim_that_cannot_succeed(manager, action):
    manager.account.fail(service="ec2", action=action, times=None, code="InternalError", status=500)
    assert manager.run("claim").returncode == 1
    manager.account.control("DELETE", "faults")
    assert manager.addresses() == []
    manager.unharmed()


def test_an_address_that_cannot_be_associated_is_given_back(manager):
    manager.account.fail(
        service="ec2", action="AssociateAddress", times=None, code="InternalError", status=500
    )
    done = manager.run("claim")
    assert done.returncode == 1 and "could not be associated" in done.stderr
    assert manager.addresses() == []
    manager.unharmed()


def test_what_cannot_be_given_back_is_left_to_the_function(manager):
    manager.account.fail(
        service="ec2", action="AssociateAddress", times=None, code="InternalError", status=500
    )
    manager.account.fail(
        service="ec2", action="ReleaseAddress", times=None, code="InternalError", status=500
    )
    assert manager.run("claim").returncode == 1
    (left,) = manager.addresses()
    assert (
        left["Tags"][OWNER] == manager.instance and "AssociationId" not in left
    )  # what the function reaps
    manager.unharmed()


def test_release_that_cannot_succeed_leaves_the_owner_tag(manager):
    assert manager.run("claim").returncode == 0
    manager.account.fail(
        service="ec2", action="ReleaseAddress", times=None, code="InternalError", status=500
    )
    done = manager.run("release")
    assert done.returncode == 1 and "left to lifecycle-reaper" in done.stderr
    assert [address["Tags"][OWNER] for address in manager.addresses()] == [manager.instance]
    manager.unharmed()


def test_the_quota_is_named(manager):
    manager.account.fail(
        service="ec2",
        action="AllocateAddress",
        times=None,
        code="AddressLimitExceeded",
        message="The maximum number of addresses has been reached.",
    )
    done = manager.run("claim")
    assert (
        done.returncode == 1
        and "quota of Elastic IPs" in done.stderr
        and "L-0263D0A3" in done.stderr
    )
    assert (
        manager.account.calls().count("AllocateAddress") == 3 + 1
    )  # three of this test's own, and no second try
    assert manager.addresses() == []


def test_a_crash_after_the_allocation_leads_to_no_second_address(manager):
    tags = [
        {"Key": OWNER, "Value": manager.instance},
        {"Key": GROUP, "Value": "ci-linux-asg"},
        {"Key": SINCE, "Value": "1735689600"},
    ]
    left = manager.ec2.allocate_address(
        Domain="vpc", TagSpecifications=[{"ResourceType": "elastic-ip", "Tags": tags}]
    )["AllocationId"]
    assert manager.run("claim").returncode == 0
    assert manager.holds() == left


def test_a_second_own_address_is_given_back(manager):
    assert manager.run("claim").returncode == 0
    manager.ec2.allocate_address(
        Domain="vpc",
        TagSpecifications=[
            {"ResourceType": "elastic-ip", "Tags": [{"Key": OWNER, "Value": manager.instance}]}
        ],
    )
    assert manager.run("claim").returncode == 0
    manager.holds()


def test_an_address_that_serves_another_instance_by_now_is_left_alone(manager):
    assert manager.run("claim").returncode == 0
    (mine,) = manager.addresses()
    other = next(address["InstanceId"] for address in manager.others if address.get("InstanceId"))
    manager.ec2.associate_address(
        AllocationId=mine["AllocationId"], InstanceId=other, AllowReassociation=True
    )
    done = manager.run("release")
    assert done.returncode == 0 and "left alone" in done.stderr
    assert [address["InstanceId"] for address in manager.addresses()] == [other]


def test_nothing_is_allocated_without_a_group_or_an_identity(manager):
    assert manager.run("claim", AUTO_SCALING_GROUP="").returncode == 1
    assert manager.run("claim", METADATA_URL="http://127.0.0.1:9").returncode == 1
    assert manager.addresses() == []


def test_the_installer_names_the_runners_unit(tmp_path):
    """Only its substitution: the rest needs a machine of its own."""
    text = (INFRA / "instance" / "install").read_text()
    command = next(line for line in text.splitlines() if line.startswith("sed ")).split(" >")[0]
    done = subprocess.run(
        ["sh", "-c", f"here={INFRA}/instance unit=runner@a.service; {command}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Before=runner@a.service\nPartOf=runner@a.service\n" in done.stdout
