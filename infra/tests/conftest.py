"""How the checks run: what can't run here is said loudly, and fails where CI=true."""

import os
import pathlib
import shutil
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

# Nothing here may reach AWS, and the SDKs must know that they are somewhere.
os.environ.update(
    AWS_DEFAULT_REGION="eu-central-1",
    AWS_ACCESS_KEY_ID="test",
    AWS_SECRET_ACCESS_KEY="test",
    AWS_EC2_METADATA_DISABLED="true",
)

missing = []


@pytest.fixture(scope="session")
def needs():
    """Called when something that a check needs is not there: never a silent skip."""

    def give_up(what):
        missing.append(what)
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must run this, and it needs {what}")
        pytest.skip(f"needs {what}")

    return give_up


@pytest.fixture(scope="session")
def terraform_provider(needs):
    """infra/check has found a way to the AWS provider's schema."""
    if not shutil.which("terraform"):
        needs("terraform (https://developer.hashicorp.com/terraform/install)")
    if os.environ.get("INFRA_NO_PROVIDER"):
        needs(f"the Terraform AWS provider: {os.environ['INFRA_NO_PROVIDER']}")


@pytest.fixture(scope="session")
def states(terraform_provider):
    """The Terraform module's state in each deployment of rendered.py."""
    import rendered

    return rendered.terraform_states(rendered.DEPLOYMENTS)


def pytest_terminal_summary(terminalreporter, config):
    stats = terminalreporter.stats
    for what in dict.fromkeys(missing):
        terminalreporter.write_line(f"NOT RUN here, needs {what}")
    if stats.get("skipped"):
        terminalreporter.write_line(f"{len(stats['skipped'])} checks were SKIPPED")
    failed = len(stats.get("failed", [])) + len(stats.get("error", []))
    config.last_line = f"{len(stats.get('passed', []))} passed, {failed} failed"


def pytest_unconfigure(config):
    """The last line, for whoever reads only that."""
    if hasattr(config, "last_line"):
        print(config.last_line, flush=True)
