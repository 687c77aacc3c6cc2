"""The trigger treats replies, errors, time-outs and crashes as Lambda's event source mapping does."""

import json
import sys
from pathlib import Path

import pytest
from conftest import wait_until
from emulator import backends
from emulator.function import Function
from emulator.trigger import AsynchronousInvocations, EventSourceMapping

SCRIPTED = str(Path(__file__).with_name("scripted_function.py"))


@pytest.fixture
def function(aws):
    scripted = Function([sys.executable, SCRIPTED], {}, timeout=3)
    yield scripted
    scripted.close()


@pytest.fixture
def work(sqs):
    """A queue whose messages come again after a second and go to `dead` after three receives."""
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"][
        "QueueArn"
    ]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "3"})
    return sqs.create_queue(
        QueueName="work", Attributes={"VisibilityTimeout": "1", "RedrivePolicy": redrive}
    )["QueueUrl"]


def send(sqs, work, *bodies):
    entries = [{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies)]
    sent = sqs.send_message_batch(QueueUrl=work, Entries=entries)["Successful"]
    return [entry["MessageId"] for entry in sent]


def waiting(name="work"):
    return [message.body for message in backends.sqs().queues[name]._messages]


def received(function):
    """The bodies of each invocation that has ended, with their receive counts."""
    ended = [invocation for invocation in function.invocations if invocation.ended.is_set()]
    return [
        [
            (record["body"], int(record["attributes"]["ApproximateReceiveCount"]))
            for record in json.loads(i.payload)["Records"]
        ]
        for i in ended
    ]


def test_only_what_was_not_acknowledged_comes_again(function, sqs, work):
    send(sqs, work, "fine", "again", "fine too")
    with EventSourceMapping("work", function):
        wait_until(lambda: len(received(function)) >= 2, what="a second delivery")
        assert received(function)[0] == [("fine", 1), ("again", 1), ("fine too", 1)]
        assert received(function)[1] == [("again", 2)]
        wait_until(lambda: waiting("dead") == ["again"], 8, "the dead-letter queue")
    assert waiting() == []
    assert [len(batch) for batch in received(function)] == [3, 1, 1]


@pytest.mark.parametrize("order", ["raise", "garble", "unknown", "exit"])
def test_an_error_or_a_reply_that_makes_no_sense_fails_the_whole_batch(function, sqs, work, order):
    send(sqs, work, "fine", order)
    with EventSourceMapping("work", function):
        wait_until(lambda: len(received(function)) >= 2, what="a second delivery")
    assert received(function)[1] == [("fine", 2), (order, 2)]


def test_the_function_is_killed_at_its_timeout_and_starts_again(function, sqs, work):
    function.timeout = 0.5
    send(sqs, work, "hang")
    with EventSourceMapping("work", function):
        wait_until(lambda: len(received(function)) >= 2, what="a second delivery")
    assert "timed out after 0.50 seconds" in function.invocations[0].error["errorMessage"]
    assert function.invocations[1].cold


def test_a_record_is_as_lambda_makes_it(function, sqs, work):
    attributes = {"reason": {"DataType": "String", "StringValue": "because"}}
    sqs.send_message(QueueUrl=work, MessageBody="fine", MessageAttributes=attributes)
    with EventSourceMapping("work", function):
        wait_until(lambda: received(function), what="the delivery")
    (record,) = json.loads(function.invocations[0].payload)["Records"]
    assert record["eventSource"] == "aws:sqs"
    assert record["eventSourceARN"].endswith(":work")
    assert int(record["attributes"]["SentTimestamp"]) > 1_700_000_000_000
    assert record["messageAttributes"]["reason"]["stringValue"] == "because"
    assert (
        "left=3.0" in function.invocations[0].logs[0]
        or "left=2.9" in function.invocations[0].logs[0]
    )
    assert function.arn in function.invocations[0].logs[0]


def test_a_wait_factor_shortens_the_waiting_between_deliveries(function, sqs, work):
    sqs.set_queue_attributes(QueueUrl=work, Attributes={"VisibilityTimeout": "30"})
    send(sqs, work, "again")
    with EventSourceMapping("work", function, wait_factor=0.01):
        wait_until(lambda: len(received(function)) >= 2, 3, "a second delivery long before 30 s")


def test_a_batch_is_no_larger_than_asked(function, sqs, work):
    send(sqs, work, *["fine"] * 5)
    with EventSourceMapping("work", function, batch_size=2, concurrency=1):
        wait_until(lambda: waiting() == [], what="an empty queue")
    assert [len(batch) for batch in received(function)] == [2, 2, 1]


def test_an_asynchronous_invocation_is_tried_three_times(function):
    told = []
    with AsynchronousInvocations(function, 0.001, told.append) as direct:
        direct.invoke({"order": "raise"})
        direct.invoke({"order": "fine"})
        wait_until(lambda: told, what="the event to be given up")
    assert (told[0]["requestPayload"], told[0]["responsePayload"]["errorType"]) == (
        {"order": "raise"},
        "Boom",
    )
    attempts = [(json.loads(i.payload)["order"], i.attempt) for i in function.invocations]
    assert sorted(attempts) == [("fine", 1), ("raise", 1), ("raise", 2), ("raise", 3)]


def test_an_old_receipt_handle_moves_nothing(sqs, work):
    send(sqs, work, "fine")
    (first,) = sqs.receive_message(QueueUrl=work)["Messages"]
    (second,) = wait_until(
        lambda: sqs.receive_message(QueueUrl=work).get("Messages"), what="the second receive"
    )
    sqs.delete_message(QueueUrl=work, ReceiptHandle=first["ReceiptHandle"])
    assert waiting() == ["fine"]
    with pytest.raises(sqs.exceptions.ClientError, match="MessageNotInflight"):
        sqs.change_message_visibility(
            QueueUrl=work, ReceiptHandle=first["ReceiptHandle"], VisibilityTimeout=5
        )
    sqs.delete_message(QueueUrl=work, ReceiptHandle=second["ReceiptHandle"])
    assert waiting() == []
