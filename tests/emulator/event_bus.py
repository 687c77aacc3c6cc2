"""The event bus carries what AWS would tell EventBridge to whoever subscribed, and remembers the latest."""

import uuid
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime

from .settings import ACCOUNT_ID, REGION


def timestamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class EventBus:
    def __init__(self) -> None:
        self.published: deque[dict] = deque(maxlen=10_000)
        self.subscribers: list[Callable[[dict], None]] = []

    def publish(
        self, source: str, detail_type: str, detail: dict, resources: list[str] | None = None
    ) -> None:
        event = {
            "version": "0",
            "id": str(uuid.uuid4()),
            "detail-type": detail_type,
            "source": source,
            "account": ACCOUNT_ID,
            "time": timestamp(),
            "region": REGION,
            "resources": resources or [],
            "detail": detail,
        }
        self.published.append(event)
        for subscriber in self.subscribers:
            subscriber(event)

    def clear(self) -> None:
        self.published.clear()
        self.subscribers.clear()


BUS = EventBus()


def instance_arn(instance_id: str) -> str:
    return f"arn:aws:ec2:{REGION}:{ACCOUNT_ID}:instance/{instance_id}"
