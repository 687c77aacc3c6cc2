"""The timeline holds what is still to happen: an instance that ends shutting down, a hook that times out.

Whoever runs an API call, or a part of the timeline, holds LOCK: moto's state is not made for two threads.
"""

import heapq
import itertools
import threading
import time
from collections.abc import Callable

LOCK = threading.RLock()


class Timeline:
    def __init__(self) -> None:
        self._pending: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def later(self, seconds: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._pending, (time.time() + seconds, next(self._order), happen))

    def run_due(self) -> None:
        while self._pending and self._pending[0][0] <= time.time():
            heapq.heappop(self._pending)[2]()

    def clear(self) -> None:
        self._pending.clear()


TIMELINE = Timeline()


def run_forever(stop: threading.Event) -> None:
    """Makes things happen on time when nobody calls."""
    while not stop.wait(0.05):
        with LOCK:
            TIMELINE.run_due()
