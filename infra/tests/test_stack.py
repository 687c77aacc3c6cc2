"""The deployed stack end to end: hook or rule -> queue -> mapping -> the real bootstrap -> emulated account."""

import json
import os
import pathlib
import zipfile

import boto3
import pytest

import emulated
import local_lambda
import rendered
from local_lambda import until
from tools import ACCOUNT, CACHE, INFRA, REGION

GROUP, HOOK, DOCUMENT = "ci-linux-asg", "lifecycle-reaper-terminate", "lifecycle-reaper-drain"
HOOK_QUEUE = "what-auto-scaling-sends"


@pytest.fixture(scope="module")
def package(needs, tmp_path_factory):
    target = (
        os.environ.get("CARGO_TARGET_DIR")
        or pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
        / "lifecycle-reaper"
        / "target"
    )
    binary = pathlib.Path(
        os.environ.get("BOOTSTRAP") or pathlib.Path(target) / "debug" / "bootstrap"
    )
    if not os.access(binary, os.X_OK):
        needs(f"the function's binary at {binary} (cargo build, or BOOTSTRAP=path)")
    path = tmp_path_factory.mktemp("package") / "bootstrap.zip"
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo("bootstrap")
        entry.external_attr = 0o755 << 16
        archive.writestr(entry, binary.read_bytes())
    return path


@pytest.fixture(scope="module")
def account():
    with emulated.account() as account:
        yield account


@pytest.fixture(scope="module")
def stack(needs, account, package, tmp_path_factory):
    if not (CACHE / "ministack" / "bin" / "ministack").exists():
        needs("ministack (PyPI; infra/check installs it)")
    with local_lambda.ministack(tmp_path_factory.mktemp("ministack")) as endpoint:
        parameters = rendered.sam_parameters(
            {
                "auto_scaling_groups": [GROUP],
                "mode": "enforce",
                "executor_name": "ci-linux",
                "architecture": "x86_64",
                "log_level": "debug",
            }
        )
        template = local_lambda.copy_for_ministack(
            rendered.translated(INFRA / "sam" / "template.yaml"),
            parameters,
            endpoint,
            account.endpoint,
        )
        yield local_lambda.Stack(endpoint, template, parameters, package)


@pytest.fixture
def world(account, stack):
    """A manager in a group with our hook, its worker and that worker's key, and what belongs to nobody we know."""
    account.control("POST", "reset")
    account.control("POST", "settings", {"shutting_down": 0.5})
    yield World(account, stack)
    stack.sqs.purge_queue(QueueUrl=stack.work)


class World:
    def __init__(self, account, stack):
        self.account, self.stack = account, stack
        client = lambda service: boto3.client(service, endpoint_url=account.endpoint)
        self.ec2, self.groups, self.sqs, ssm = map(client, ("ec2", "autoscaling", "sqs", "ssm"))
        self.from_auto_scaling = self.sqs.create_queue(QueueName=HOOK_QUEUE)["QueueUrl"]
        ssm.create_document(
            Name=DOCUMENT,
            Content='{"schemaVersion": "2.2", "mainSteps": []}',
            DocumentType="Command",
            DocumentFormat="JSON",
        )
        self.ec2.create_launch_template(
            LaunchTemplateName="manager",
            LaunchTemplateData={"ImageId": "ami-12c6146b", "InstanceType": "t3.micro"},
        )
        self.groups.create_auto_scaling_group(
            AutoScalingGroupName=GROUP,
            MinSize=0,
            MaxSize=2,
            DesiredCapacity=0,
            LaunchTemplate={"LaunchTemplateName": "manager"},
            AvailabilityZones=[f"{REGION}a"],
        )
        self.groups.put_lifecycle_hook(
            AutoScalingGroupName=GROUP,
            LifecycleHookName=HOOK,
            LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
            HeartbeatTimeout=3600,
            DefaultResult="CONTINUE",
            NotificationTargetARN=f"arn:aws:sqs:{REGION}:{ACCOUNT}:{HOOK_QUEUE}",
            RoleARN=f"arn:aws:iam::{ACCOUNT}:role/hook",
        )
        key = "runner-ab12cd34-ci-linux-1735689600-0a1b2c3d"
        (self.manager,) = self.seed("instances", {"age": 7200, "group": GROUP})
        self.worker, self.strange = self.seed(
            "instances",
            {"age": 3600, "key_name": key, "tags": {"gitlab-runner-parent-id": self.manager}},
            {"age": 3600, "key_name": "somebodys"},
        )
        self.key, self.strange_key = self.seed(
            "key_pairs", {"name": key, "age": 3600}, {"name": "somebodys", "age": 3600}
        )
        self.relayed = 0

    def seed(self, kind, *resources):
        return self.account.control("POST", "seed", {kind: list(resources)})[kind]

    def state(self):
        return self.account.control("GET", "state")

    def relay(self):
        """Auto Scaling's messages to the work queue, and AWS's events to the stack's rules."""
        for message in self.sqs.receive_message(
            QueueUrl=self.from_auto_scaling, MaxNumberOfMessages=10
        ).get("Messages", []):
            self.stack.send(message["Body"])
            self.sqs.delete_message(
                QueueUrl=self.from_auto_scaling, ReceiptHandle=message["ReceiptHandle"]
            )
        events = self.account.control("GET", "events")
        for event in events[self.relayed :]:
            self.stack.publish(event)
        self.relayed = len(events)

    def until(self, condition, seconds, what):
        def relayed():
            self.relay()
            return condition(self.state())

        return until(relayed, seconds, what)

    def calls(self):
        return self.account.calls()


def test_a_manager_is_drained_released_and_cleaned_up_after(world):
    world.account.control(
        "POST", "commands", {world.manager: [{"answer": "busy"}, {"answer": "stopped"}]}
    )
    world.groups.terminate_instance_in_auto_scaling_group(
        InstanceId=world.manager, ShouldDecrementDesiredCapacity=True
    )
    world.until(
        lambda state: state["instances"].get(world.manager) in ("shutting-down", "terminated"),
        120,
        "the hook is released",
    )
    assert world.calls().count("SendCommand") == 2 and "CompleteLifecycleAction" in world.calls()
    assert world.calls().index("CompleteLifecycleAction") > world.calls().index("SendCommand")
    state = world.until(
        lambda state: (
            state["instances"][world.worker] == "terminated"
            and world.key not in state["key_pairs"]
            and state
        ),
        150,
        "worker and key are gone",
    )
    assert (
        state["instances"][world.strange] == "running" and world.strange_key in state["key_pairs"]
    )
    assert world.stack.dead() == []


def test_without_the_hooks_message_the_rule_reaps(world):
    """As where the manager died by itself: only EventBridge tells."""
    world.ec2.terminate_instances(InstanceIds=[world.manager])
    world.sqs.purge_queue(QueueUrl=world.from_auto_scaling)
    event = {
        "source": "aws.autoscaling",
        "detail-type": "EC2 Instance Terminate Successful",
        "resources": [],
        "detail": {
            "AutoScalingGroupName": GROUP,
            "EC2InstanceId": world.manager,
            "StatusCode": "InProgress",
            "ActivityId": "a",
            "Cause": "",
            "Details": {},
        },
    }
    until(lambda: world.state()["instances"][world.manager] == "terminated", 20, "EC2 ends it")
    world.stack.publish(event)
    until(
        lambda: world.state()["instances"][world.worker] == "terminated", 60, "the worker is gone"
    )
    assert world.state()["instances"][world.strange] == "running"


def test_events_of_other_groups_do_not_arrive(world):
    before = len(world.calls())
    world.stack.publish(
        {
            "source": "aws.autoscaling",
            "detail-type": "EC2 Instance Terminate Successful",
            "resources": [],
            "detail": {"AutoScalingGroupName": "other", "EC2InstanceId": "i-0a11aa11aa11aa110"},
        }
    )
    world.stack.publish(
        {
            "source": "aws.ssm",
            "detail-type": "EC2 Command Invocation Status-change Notification",
            "resources": [],
            "detail": {"document-name": DOCUMENT, "status": "InProgress"},
        }
    )
    assert world.stack.waiting() == 0
    assert len(world.calls()) == before


def test_a_poison_message_ends_in_the_dead_letter_queue(world):
    world.stack.send("{ this is no JSON")
    (message,) = until(world.stack.dead, 30, "the message arrives")
    assert message["Body"] == "{ this is no JSON"
    assert message["MessageAttributes"], "the reason is an attribute"
    until(lambda: world.stack.waiting() == 0, 20, "and is acknowledged")
    world.stack.sqs.purge_queue(QueueUrl=world.stack.dead_letters)


def test_the_sweep_is_answered(world):
    answer = world.stack.invoke(
        {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}, "resources": []}
    )
    assert "errorMessage" not in answer, answer
    assert "sweep" in json.dumps(answer).lower()
    assert world.state()["instances"][world.worker] == "running"  # its manager lives


def test_what_was_deployed_is_what_the_template_says(stack):
    """Where ministack keeps it: mapping, redrive, environment."""
    (mapping,) = stack.function.list_event_source_mappings(FunctionName=stack.NAME)[
        "EventSourceMappings"
    ]
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    attributes = stack.sqs.get_queue_attributes(QueueUrl=stack.work, AttributeNames=["All"])[
        "Attributes"
    ]
    redrive = json.loads(attributes["RedrivePolicy"])
    assert int(redrive["maxReceiveCount"]) == 74 and redrive["deadLetterTargetArn"].endswith(
        ":lifecycle-reaper-dead-letters"
    )
    variables = stack.function.get_function_configuration(FunctionName=stack.NAME)["Environment"][
        "Variables"
    ]
    assert variables["MAX_RECEIVE_COUNT"] == "74" and int(attributes["VisibilityTimeout"]) == 720
