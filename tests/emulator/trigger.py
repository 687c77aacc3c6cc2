"""What brings events to the function: the SQS event source mapping, asynchronous invocations, EventBridge rules.

`wait_factor` below 1 shortens only the waiting: once an invocation is over, what is left of a message's invisibility
or delay is multiplied by it. While the function works, every timeout is the real one.
"""

import json
import queue
import threading
import time
from collections.abc import Callable

from moto.sqs.models import Message, Queue

from . import backends
from .event_bus import BUS, timestamp
from .function import Function
from .runtime_api import Invocation
from .settings import REGION
from .timeline import LOCK


def records_of(source: Queue, messages: list[Message]) -> list[dict]:
    return [
        {
            "messageId": message.id,
            "receiptHandle": message.receipt_handle,
            "body": message.body,
            "attributes": {
                "ApproximateReceiveCount": str(message.approximate_receive_count),
                "SentTimestamp": str(message.sent_timestamp),
                "SenderId": message.sender_id,
                "ApproximateFirstReceiveTimestamp": str(
                    message.approximate_first_receive_timestamp
                ),
            },
            "messageAttributes": {
                name: {
                    "stringValue": value.get("StringValue"),
                    "dataType": value["DataType"],
                    "stringListValues": [],
                    "binaryListValues": [],
                }
                for name, value in message.message_attributes.items()
            },
            "md5OfBody": message.body_md5,
            "eventSource": "aws:sqs",
            "eventSourceARN": source.queue_arn,
            "awsRegion": REGION,
        }
        for message in messages
    ]


def failed_items(invocation: Invocation, message_ids: list[str]) -> list[str]:
    """The ids that the reply doesn't acknowledge; all of them for an error, a malformed reply or an unknown id."""
    if invocation.error:
        return message_ids
    try:
        reply = json.loads(invocation.reply or "null")
        if not reply:
            return []
        failures = [item["itemIdentifier"] for item in reply.get("batchItemFailures") or []]
    except (ValueError, AttributeError, KeyError, TypeError):
        return message_ids
    return failures if set(failures) <= set(message_ids) else message_ids


class EventSourceMapping:
    """Polls one queue and invokes the function with batches; at most `concurrency` at once."""

    def __init__(
        self,
        queue_name: str,
        function: Function,
        batch_size: int = 10,
        concurrency: int = 2,
        wait_factor: float = 1.0,
    ) -> None:
        self.queue_name, self.function = queue_name, function
        self.batch_size, self.wait_factor = batch_size, wait_factor
        self._free = threading.Semaphore(concurrency)
        self._stop = threading.Event()
        self._shortened: set[str] = set()
        self._thread = threading.Thread(target=self.poll, daemon=True)

    def __enter__(self) -> "EventSourceMapping":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def poll(self) -> None:
        while not self._stop.wait(0.05):
            if not self._free.acquire(timeout=0.05):
                continue
            with LOCK:
                messages, records = self.receive()
            if messages:
                threading.Thread(target=self.deliver, args=[records], daemon=True).start()
            else:
                self._free.release()

    def receive(self) -> tuple[list[Message], list[dict]]:
        sqs = backends.sqs()
        if self.queue_name not in sqs.queues:
            return [], []
        source = sqs.queues[self.queue_name]
        if self.wait_factor != 1.0:
            self.shorten_delays(source)
        messages = sqs.receive_message(
            self.queue_name, self.batch_size, 0, source.visibility_timeout, ["All"]
        )
        return messages, records_of(source, messages)

    def deliver(self, records: list[dict]) -> None:
        try:
            invocation = self.function.invoke(json.dumps({"Records": records}), "sqs")
            failed = failed_items(invocation, [record["messageId"] for record in records])
            with LOCK:
                self.settle(records, failed)
        except RuntimeError:
            """The function was closed meanwhile; the messages come again when they are visible."""
        finally:
            self._free.release()

    def settle(self, records: list[dict], failed: list[str]) -> None:
        """Deletes what was acknowledged; the rest comes again when its visibility timeout ends."""
        source = backends.sqs().queues.get(self.queue_name)
        if source is None:
            return
        for record in records:
            if record["messageId"] not in failed:
                source.delete_message(record["receiptHandle"])
        now = time.time() * 1000
        for message in source._messages:
            if message.id in failed and message.visible_at > now:
                message.visible_at = now + (message.visible_at - now) * self.wait_factor

    def shorten_delays(self, source: Queue) -> None:
        now = time.time() * 1000
        for message in source._messages:
            if message.delayed_until > now and message.id not in self._shortened:
                self._shortened.add(message.id)
                message.delayed_until = now + (message.delayed_until - now) * self.wait_factor


class AsynchronousInvocations:
    """Lambda's own queue for direct events: two retries, a minute and two later, then the failure destination."""

    RETRY_DELAYS = (60.0, 120.0)

    def __init__(
        self,
        function: Function,
        wait_factor: float = 1.0,
        on_failure: Callable[[dict], None] = lambda record: None,
    ) -> None:
        self.function, self.wait_factor, self.on_failure = function, wait_factor, on_failure
        self._events: queue.Queue[str | None] = queue.Queue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.work, daemon=True)

    def __enter__(self) -> "AsynchronousInvocations":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._events.put(None)
        self._thread.join(timeout=5)

    def invoke(self, event: dict) -> None:
        self._events.put(json.dumps(event))

    def work(self) -> None:
        while (payload := self._events.get()) is not None and not self._stop.is_set():
            threading.Thread(target=self.attempt, args=[payload], daemon=True).start()

    def attempt(self, payload: str) -> None:
        for number, delay in enumerate((*self.RETRY_DELAYS, None), start=1):
            try:
                invocation = self.function.invoke(payload, "async", number)
            except RuntimeError:
                return  # the function was closed meanwhile
            if not invocation.error:
                return
            if delay is None:
                with LOCK:
                    self.on_failure(failure_record(invocation))
            elif self._stop.wait(delay * self.wait_factor):
                return


def failure_record(invocation: Invocation) -> dict:
    """What Lambda sends to the failure destination."""
    return {
        "version": "1.0",
        "timestamp": timestamp(),
        "requestContext": {
            "requestId": invocation.request_id,
            "functionArn": f"{invocation.function_arn}:$LATEST",
            "condition": "RetriesExhausted",
            "approximateInvokeCount": invocation.attempt,
        },
        "requestPayload": json.loads(invocation.payload),
        "responseContext": {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": "Unhandled",
        },
        "responsePayload": invocation.error,
    }


def rule(detail_types: set[str], target: Callable[[dict], None]) -> None:
    """An EventBridge rule: events of these detail types go to the target."""
    BUS.subscribers.append(
        lambda event: target(event) if event["detail-type"] in detail_types else None
    )


def to_queue(queue_name: str) -> Callable[[dict], None]:
    return lambda event: backends.sqs().send_message(queue_name, json.dumps(event))
