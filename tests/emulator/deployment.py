"""A deployment is what `infra` sets up around the function: group, hook, document, queues, mapping, rules.

Commands end and instances leave through EventBridge rules onto the work queue; a sweep invokes the function directly.
"""

import json
from collections.abc import Callable

from . import backends
from .event_bus import timestamp
from .function import Function
from .runtime_api import Invocation
from .server import Emulator
from .settings import ACCOUNT_ID, REGION
from .timeline import LOCK
from .trigger import AsynchronousInvocations, EventSourceMapping, rule, to_queue

TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"
WAKING_EVENTS = {
    "EC2 Instance Terminate Successful",
    "EC2 Instance Terminate Unsuccessful",
    "EC2 Command Invocation Status-change Notification",
}


class Deployment:
    GROUP = "prod-managers"
    HOOK = "lifecycle-reaper-terminate"
    DOCUMENT = "lifecycle-reaper-drain"
    WORK = "lifecycle-reaper-work"
    DEAD_LETTERS = "lifecycle-reaper-dead-letters"
    EXECUTOR = "prod"

    def __init__(
        self,
        aws: Emulator,
        command: list[str],
        *,
        timeout: float = 60.0,
        max_receive_count: int = 74,
        heartbeat_timeout: int = 3600,
        concurrency: int = 2,
        wait_factor: float = 1.0,
        on_log: Callable[[str], None] = lambda line: None,
        rules: bool = True,
        **variables: str,
    ) -> None:
        self.aws = aws
        self.ec2, self.autoscaling, self.ssm, self.sqs = (
            aws.client(name) for name in ("ec2", "autoscaling", "ssm", "sqs")
        )
        self.visibility_timeout, self.max_receive_count = int(6 * timeout), max_receive_count
        self.make_queues()
        self.make_group(heartbeat_timeout)
        self.ssm.create_document(
            Name=self.DOCUMENT,
            Content='{"schemaVersion": "2.2", "mainSteps": []}',
            DocumentType="Command",
            DocumentFormat="JSON",
        )
        environment = aws.client_environment() | self.variables() | variables
        self.function = Function(command, environment, timeout, on_log=on_log)
        self.mapping = EventSourceMapping(
            self.WORK, self.function, concurrency=concurrency, wait_factor=wait_factor
        )
        self.direct = AsynchronousInvocations(
            self.function, wait_factor, to_queue(self.DEAD_LETTERS)
        )
        if rules:
            rule(WAKING_EVENTS, to_queue(self.WORK))

    def __enter__(self) -> "Deployment":
        self.mapping.__enter__()
        self.direct.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.function.close()
        self.mapping.__exit__()
        self.direct.__exit__()

    def make_queues(self) -> None:
        self.sqs.create_queue(QueueName=self.DEAD_LETTERS)
        redrive = {
            "deadLetterTargetArn": self.queue_arn(self.DEAD_LETTERS),
            "maxReceiveCount": self.max_receive_count,
        }
        attributes = {
            "VisibilityTimeout": str(self.visibility_timeout),
            "RedrivePolicy": json.dumps(redrive),
        }
        self.sqs.create_queue(QueueName=self.WORK, Attributes=attributes)

    def make_group(self, heartbeat_timeout: int) -> None:
        self.ec2.create_launch_template(
            LaunchTemplateName="manager",
            LaunchTemplateData={"ImageId": "ami-12c6146b", "InstanceType": "t3.micro"},
        )
        self.autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=self.GROUP,
            MinSize=0,
            MaxSize=0,
            DesiredCapacity=0,
            LaunchTemplate={"LaunchTemplateName": "manager"},
            AvailabilityZones=[REGION + "a"],
        )
        self.autoscaling.put_lifecycle_hook(
            AutoScalingGroupName=self.GROUP,
            LifecycleHookName=self.HOOK,
            LifecycleTransition=TERMINATING,
            HeartbeatTimeout=heartbeat_timeout,
            DefaultResult="CONTINUE",
            NotificationTargetARN=self.queue_arn(self.WORK),
            RoleARN=f"arn:aws:iam::{ACCOUNT_ID}:role/lifecycle-reaper-hook",
        )

    def variables(self) -> dict[str, str]:
        return {
            "AUTO_SCALING_GROUPS": self.GROUP,
            "LIFECYCLE_HOOKS": self.HOOK,
            "EXECUTOR_NAME": self.EXECUTOR,
            "MODE": "enforce",
            "DRAIN": "ssm",
            "DRAIN_DOCUMENT": self.DOCUMENT,
            "MAX_RECEIVE_COUNT": str(self.max_receive_count),
            "WORK_QUEUE_URL": self.queue_url(self.WORK),
            "DEAD_LETTER_QUEUE_URL": self.queue_url(self.DEAD_LETTERS),
            "LOG_LEVEL": "info",
        }

    @staticmethod
    def queue_arn(name: str) -> str:
        return f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{name}"

    def queue_url(self, name: str) -> str:
        return self.sqs.get_queue_url(QueueName=name)["QueueUrl"]

    def terminate(self, manager: str, decrement: bool = True) -> None:
        self.autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId=manager, ShouldDecrementDesiredCapacity=decrement
        )

    def sweep(self) -> Invocation:
        """What the schedule does, waiting for the reply."""
        event = {
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "detail": {},
            "version": "0",
            "id": "scheduled",
        }
        event |= {"account": ACCOUNT_ID, "region": REGION, "time": timestamp(), "resources": []}
        return self.function.invoke(json.dumps(event))

    def send(self, body: str) -> None:
        self.sqs.send_message(QueueUrl=self.queue_url(self.WORK), MessageBody=body)

    def waiting(self, queue_name: str | None = None) -> list[str]:
        """The bodies of all messages of a queue, in flight or not."""
        with LOCK:
            return [
                message.body for message in backends.sqs().queues[queue_name or self.WORK]._messages
            ]
