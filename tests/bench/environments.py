"""What each measured process finds in its environment: Lambda's variables, credentials, the stub as its endpoint, our settings."""

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EVENTS = ROOT / "events"
CA_FILES = ("/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/certs/ca-certificates.crt")


def event(name: str) -> bytes:
    return (EVENTS / f"{name}.json").read_bytes()


def of_aws(url: str | None) -> dict[str, str]:
    """Region and credentials as Lambda gives them; without a URL the endpoints are AWS's own, and nothing may call them."""
    variables = {
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "AKIDINVENTED",
        "AWS_SECRET_ACCESS_KEY": "invented",
        "AWS_SESSION_TOKEN": "invented",
    }
    return variables | ({"AWS_ENDPOINT_URL": url} if url else {})


def one_ca_file() -> dict[str, str]:
    """The trust store as one file, without the folder beside it: Debian's holds hundreds of links that are all read, Amazon Linux's doesn't."""
    found = [path for path in CA_FILES if Path(path).exists()]
    return {"SSL_CERT_FILE": found[0]} if found else {}


def of_ours(url: str) -> dict[str, str]:
    return of_aws(url) | {
        "AUTO_SCALING_GROUPS": "ci-linux-asg",
        "LIFECYCLE_HOOKS": "ci-linux-terminate",
        "EXECUTOR_NAME": "ci-linux",
        "MODE": "enforce",
        "DRAIN_DOCUMENT": "lifecycle-reaper-drain",
        "WORK_QUEUE_URL": f"{url}/123456789012/lifecycle-cleanup",
        "DEAD_LETTER_QUEUE_URL": f"{url}/123456789012/lifecycle-cleanup-dlq",
    }


def of_python(url: str) -> dict[str, str]:
    return of_aws(url) | {"PYTHONPATH": str(HERE / "python_peer"), "AWS_EC2_METADATA_DISABLED": "true"}
