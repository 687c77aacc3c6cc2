"""The backends are moto's in-memory services of the one emulated account and region."""

from moto.autoscaling.models import AutoScalingBackend, autoscaling_backends
from moto.core.base_backend import BackendDict, BaseBackend
from moto.ec2 import ec2_backends
from moto.ec2.models import EC2Backend
from moto.sqs.models import SQSBackend, sqs_backends
from moto.ssm.models import SimpleSystemManagerBackend, ssm_backends

from .settings import ACCOUNT_ID, REGION


def ec2() -> EC2Backend:
    return ec2_backends[ACCOUNT_ID][REGION]


def autoscaling() -> AutoScalingBackend:
    return autoscaling_backends[ACCOUNT_ID][REGION]


def ssm() -> SimpleSystemManagerBackend:
    return ssm_backends[ACCOUNT_ID][REGION]


def sqs() -> SQSBackend:
    return sqs_backends[ACCOUNT_ID][REGION]


def own(backend: BaseBackend, name: str, make: type) -> object:
    """State of ours that lives on moto's backend, so that moto's reset forgets it too."""
    return backend.__dict__.setdefault(name, make())


def reset() -> None:
    BackendDict.reset()
