"""SQS where moto differs: the 12 hours count from the receive, and an old receipt handle moves nothing."""

import time

from moto.sqs.exceptions import InvalidParameterValue, ReceiptHandleIsInvalid, SQSException
from moto.sqs.models import Message, Queue, SQSBackend

from .timeline import LOCK

LONGEST_INVISIBLE = 12 * 3600


def mark_received(message: Message, visibility_timeout: int | None = None) -> None:
    message.received_at = time.time()
    moto_mark_received(message, visibility_timeout)


def change_message_visibility(
    backend: SQSBackend, queue_name: str, receipt_handle: str, visibility_timeout: int
) -> None:
    queue = backend.get_queue(queue_name)
    message = next((m for m in queue._messages if m.had_receipt_handle(receipt_handle)), None)
    if message is None:
        raise ReceiptHandleIsInvalid
    if message.visible or receipt_handle != message.receipt_handle:
        raise SQSException("MessageNotInflight", "The specified message is not in flight.")
    if time.time() - message.received_at + int(visibility_timeout) > LONGEST_INVISIBLE:
        raise InvalidParameterValue(
            f"Value {visibility_timeout} for parameter VisibilityTimeout is invalid. "
            f"Reason: Total VisibilityTimeout for the message is beyond the limit [{LONGEST_INVISIBLE} seconds]"
        )
    message.change_visibility(visibility_timeout)


def delete_message(queue: Queue, receipt_handle: str) -> None:
    """With the handle of an earlier receive the call succeeds and the message stays."""
    message = next((m for m in queue._messages if m.had_receipt_handle(receipt_handle)), None)
    if message is None or message.receipt_handle == receipt_handle:
        moto_delete_message(queue, receipt_handle)


def wait_for_messages(queue: Queue, timeout: int) -> None:
    """A long poll must not hold up everybody else."""
    LOCK.release()
    try:
        time.sleep(0.05)
    finally:
        LOCK.acquire()


moto_mark_received = Message.mark_received
moto_delete_message = Queue.delete_message


def install() -> None:
    Message.mark_received = mark_received
    SQSBackend.change_message_visibility = change_message_visibility
    Queue.delete_message = delete_message
    Queue.wait_for_messages = wait_for_messages
