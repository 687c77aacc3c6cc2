"""ministack as the AWS that the stack is deployed to: CloudFormation, Lambda with its mapping, SQS, EventBridge.

The function's other calls (EC2, Auto Scaling, SSM) go to the repository's own emulator, which knows hooks and
commands; ministack can't be trusted with those. What it can't do is changed in the test's copy of the template."""

import contextlib
import copy
import json
import os
import socket
import subprocess
import time
import urllib.request

import boto3

from rendered import Evaluator
from tools import CACHE, REGION


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def ministack(folder):
    port = free_port()
    environment = {
        **os.environ,
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_REGION": REGION,
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LAMBDA_EXECUTOR": "local",
        "TMPDIR": str(folder),
        "PERSIST_STATE": "0",
        "LOG_LEVEL": "INFO",
    }
    with open(folder / "ministack.log", "w") as log:
        server = subprocess.Popen(
            [CACHE / "ministack" / "bin" / "ministack"],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        try:
            endpoint = f"http://127.0.0.1:{port}"
            until(lambda: answers(endpoint), 60, "ministack starts")
            yield endpoint
        finally:
            server.terminate()
            try:
                server.wait(15)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait(5)


def answers(endpoint):
    with contextlib.suppress(OSError):
        urllib.request.urlopen(f"{endpoint}/_ministack/health", timeout=2)
        return True
    return False


def until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s in vain: {what}"
        time.sleep(0.3)
    return value


def copy_for_ministack(template, parameters, endpoint, account_endpoint):
    """The translated template with what ministack can't take changed, and nothing else."""
    changed = copy.deepcopy(template)
    evaluate = Evaluator(template, parameters)
    for name in template["Conditions"]:  # it knows no Split, Sub or Join there
        changed["Conditions"][name] = {
            "Fn::Equals": ["true", str(evaluate.condition(name)).lower()]
        }
    resources = changed["Resources"]
    del resources["DrainDocument"]  # refused: AWS::SSM::Document
    del changed["Outputs"]["DrainDocumentName"]
    function, mapping = resources["Function"]["Properties"], resources["FunctionWork"]["Properties"]
    for place, key in (
        (function, "Timeout"),
        (function, "MemorySize"),
        (mapping["ScalingConfig"], "MaximumConcurrency"),
    ):
        place[key] = int(
            evaluate(place[key])
        )  # parameters are text, and it does not make numbers of them
    variables = function["Environment"]["Variables"]
    for name, value in variables.items():  # nor text of numbers
        if str(evaluate(value)).isdigit():
            variables[name] = str(evaluate(value))
    variables["AWS_ENDPOINT_URL"] = endpoint
    for service in ("EC2", "AUTO_SCALING", "SSM"):
        variables[f"AWS_ENDPOINT_URL_{service}"] = account_endpoint
    for rule in resources.values():
        if rule["Type"] == "AWS::Events::Rule" and "EventPattern" in rule["Properties"]:
            disguise(rule["Properties"])
    return changed


def disguise(rule):
    """PutEvents refuses `aws.` sources, there as on AWS: the rule listens to `test.` and the target restores it."""
    (source,) = rule["EventPattern"]["source"]
    rule["EventPattern"]["source"] = [source.replace("aws.", "test.")]
    fields = {
        "id": "id",
        "kind": "detail-type",
        "account": "account",
        "time": "time",
        "region": "region",
        "resources": "resources",
        "detail": "detail",
    }
    restored = ", ".join(f'"{field}": <{name}>' for name, field in fields.items())
    for target in rule["Targets"]:
        target["InputTransformer"] = {
            "InputPathsMap": {name: f"$.{field}" for name, field in fields.items()},
            "InputTemplate": f'{{"version": "0", "source": "{source}", {restored}}}',
        }


class Stack:
    """The deployed stack, through clients as a person has them."""

    NAME = "lifecycle-reaper"

    def __init__(self, endpoint, template, parameters, package):
        client = lambda service: boto3.client(service, endpoint_url=endpoint)
        self.sqs, self.events, self.function, self.logs = map(
            client, ("sqs", "events", "lambda", "logs")
        )
        s3, cloudformation = client("s3"), client("cloudformation")
        s3.create_bucket(Bucket="code", CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.upload_file(str(package), "code", "bootstrap.zip")
        # by URL, as sam deploy does: a template in the request itself may have 51,200 bytes
        s3.put_object(Bucket="code", Key="template.json", Body=json.dumps(template).encode())
        cloudformation.create_stack(
            StackName=self.NAME,
            TemplateURL=f"{endpoint}/code/template.json",
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Parameters=[
                {"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()
            ],
        )
        status = lambda: cloudformation.describe_stacks(StackName=self.NAME)["Stacks"][0][
            "StackStatus"
        ]
        until(lambda: "PROGRESS" not in status(), 60, "the stack is deployed")
        assert status() == "CREATE_COMPLETE", [
            e.get("ResourceStatusReason")
            for e in cloudformation.describe_stack_events(StackName=self.NAME)["StackEvents"]
        ]
        self.work = self.sqs.get_queue_url(QueueName=f"{self.NAME}-work")["QueueUrl"]
        self.dead_letters = self.sqs.get_queue_url(QueueName=f"{self.NAME}-dead-letters")[
            "QueueUrl"
        ]

    def send(self, body):
        self.sqs.send_message(QueueUrl=self.work, MessageBody=body)

    def publish(self, event):
        entry = {
            "Source": event["source"].replace("aws.", "test."),
            "DetailType": event["detail-type"],
            "Detail": json.dumps(event["detail"]),
            "Resources": event["resources"],
        }
        answer = self.events.put_events(Entries=[entry])
        assert answer["FailedEntryCount"] == 0, answer

    def invoke(self, event):
        answer = self.function.invoke(FunctionName=self.NAME, Payload=json.dumps(event).encode())
        return json.loads(answer["Payload"].read())

    def dead(self):
        found = self.sqs.receive_message(
            QueueUrl=self.dead_letters,
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            VisibilityTimeout=0,
        )
        return found.get("Messages", [])

    def waiting(self):
        names = [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ]
        counted = self.sqs.get_queue_attributes(QueueUrl=self.work, AttributeNames=names)[
            "Attributes"
        ]
        return sum(map(int, counted.values()))
