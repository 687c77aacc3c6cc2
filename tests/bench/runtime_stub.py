"""A Runtime API on a bare socket: one process, one invocation at a time, and the moment of each request.

The emulator's is a whole HTTP server, whose own time would be most of what is measured here.
"""

import select
import socket
import time
import uuid
from dataclasses import dataclass

NEXT = "/2018-06-01/runtime/invocation/next"
FUNCTION_ARN = "arn:aws:lambda:eu-central-1:123456789012:function:lifecycle-reaper"


@dataclass
class Request:
    """A request of the function, and when the last byte of it was here."""

    method: str
    path: str
    body: bytes
    at: float


class Silence(Exception):
    """The function did not ask or answer in time."""


class RuntimeStub:
    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: dict[socket.socket, bytes] = {}
        self._asker: socket.socket | None = None
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        for connection in (*self._connections, self._listener):
            connection.close()

    def wait_for_poll(self, seconds: float = 30) -> float:
        """Waits until the function asks for its next invocation; returns when it did."""
        request = self._receive(seconds)
        if (request.method, request.path) != ("GET", NEXT):
            raise Silence(f"instead of asking for work the function sent {request.method} {request.path}: {request.body[:500]!r}")
        return request.at

    def invoke(self, payload: bytes, seconds: float = 120) -> tuple[float, bytes]:
        """Gives the function that asked an invocation; returns the seconds until its reply was here, and the reply."""
        request_id = str(uuid.uuid4())
        deadline = int((time.time() + seconds) * 1000)
        head = (
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            f"Lambda-Runtime-Aws-Request-Id: {request_id}\r\nLambda-Runtime-Deadline-Ms: {deadline}\r\n"
            f"Lambda-Runtime-Invoked-Function-Arn: {FUNCTION_ARN}\r\n"
            "Lambda-Runtime-Trace-Id: Root=1-00000000-000000000000000000000000;Sampled=0\r\n"
            f"Content-Length: {len(payload)}\r\n\r\n"
        )
        given = time.perf_counter()
        self._asker.sendall(head.encode() + payload)
        request = self._receive(seconds)
        self._asker.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        if not request.path.endswith(f"/{request_id}/response"):
            raise Silence(f"the invocation failed: {request.path} {request.body[:500]!r}")
        return request.at - given, request.body

    def _receive(self, seconds: float) -> Request:
        """The next whole request on any connection."""
        limit = time.perf_counter() + seconds
        while True:
            left = limit - time.perf_counter()
            ready = select.select([self._listener, *self._connections], [], [], max(left, 0))[0]
            if not ready:
                raise Silence(f"the function was silent for {seconds} s")
            for source in ready:
                if source is self._listener:
                    connection = source.accept()[0]
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._connections[connection] = b""
                elif request := self._read(source):
                    self._asker = source
                    return request

    def _read(self, connection: socket.socket) -> Request | None:
        data = connection.recv(1 << 20)
        at = time.perf_counter()
        if not data:
            del self._connections[connection]
            connection.close()
            return None
        received = self._connections[connection] + data
        self._connections[connection] = received
        head, separator, rest = received.partition(b"\r\n\r\n")
        if not separator:
            return None
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        body = unchunked(rest) if "chunked" in headers.get("transfer-encoding", "") else sized(rest, headers)
        if body is None:
            return None
        self._connections[connection] = b""
        method, path, _ = lines[0].split(" ")
        return Request(method, path, body, at)


def sized(rest: bytes, headers: dict[str, str]) -> bytes | None:
    return rest if len(rest) >= int(headers.get("content-length", 0)) else None


def unchunked(rest: bytes) -> bytes | None:
    """The body of a chunked request, once its last chunk is here."""
    body = b""
    while True:
        size, separator, rest = rest.partition(b"\r\n")
        if not separator:
            return None
        length = int(size.split(b";")[0], 16)
        if length == 0:
            return body
        if len(rest) < length + 2:
            return None
        body, rest = body + rest[:length], rest[length + 2 :]
