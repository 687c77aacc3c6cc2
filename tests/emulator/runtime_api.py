"""The Runtime API is what Lambda gives a custom runtime to talk to: next, response, error, and the initialization error."""

import json
import sys
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT = "/2018-06-01/runtime/"


@dataclass
class Invocation:
    """One invocation of the function: what it was given, what it answered, what it said meanwhile."""

    request_id: str
    source: str
    payload: str
    function_arn: str
    timeout: float
    attempt: int = 1
    asked_at: float = field(default_factory=time.time)
    started_at: float | None = None
    cold: bool = False
    seconds: float = 0.0
    reply: str | None = None
    error: dict | None = None
    logs: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def deadline(self) -> float:
        return (self.started_at or self.asked_at) + self.timeout

    def answer(self) -> object:
        """The reply as JSON; raises if the invocation failed."""
        if self.error:
            raise RuntimeError(f"the invocation failed: {self.error}")
        return json.loads(self.reply or "null")

    def end(self, reply: str | None = None, error: dict | None = None) -> None:
        if not self.ended.is_set():
            self.reply, self.error = reply, error
            self.seconds = time.time() - (self.started_at or self.asked_at)
            self.ended.set()

    def shown(self) -> dict:
        names = (
            "request_id",
            "source",
            "attempt",
            "payload",
            "cold",
            "started_at",
            "seconds",
            "reply",
            "error",
            "logs",
        )
        return {name: getattr(self, name) for name in names}


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A sandbox that is killed resets its connections; anything else is worth a trace."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class RuntimeApi:
    """The endpoint of one sandbox; it holds at most one invocation."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: Invocation | None = None
        self.current: Invocation | None = None
        self.closed = False
        api = self

        class Endpoint(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                api.get(self)

            def do_POST(self) -> None:
                api.post(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Endpoint)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()

    def offer(self, invocation: Invocation) -> None:
        with self._changed:
            self._waiting = invocation
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self.closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def get(self, request: BaseHTTPRequestHandler) -> None:
        if request.path != ROOT + "invocation/next":
            return respond(request, 404, {"errorMessage": f"no {request.path}"})
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self.closed)
            if self.closed:
                request.close_connection = True
                return None
            invocation, self._waiting = self._waiting, None
            self.current = invocation
        invocation.started_at = time.time()
        trace = f"Root=1-{int(invocation.asked_at):08x}-{invocation.request_id.replace('-', '')[:24]};Sampled=0"
        headers = {
            "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
            "Lambda-Runtime-Deadline-Ms": str(int(invocation.deadline * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": invocation.function_arn,
            "Lambda-Runtime-Trace-Id": trace,
        }
        respond(request, 200, invocation.payload, headers)

    def post(self, request: BaseHTTPRequestHandler) -> None:
        body = read_body(request)
        parts = request.path.removeprefix(ROOT).split("/")
        if parts == ["init", "error"]:
            if self._waiting:
                self._waiting.end(error=error_of(body))
            return respond(request, 202, {"status": "OK"})
        named = len(parts) == 3 and parts[0] == "invocation" and parts[2] in ("response", "error")
        if not named or not self.current or parts[1] != self.current.request_id:
            return respond(
                request,
                400,
                {"errorMessage": "no such invocation", "errorType": "InvalidRequestID"},
            )
        if parts[2] == "response":
            self.current.end(reply=body)
        else:
            self.current.end(error=error_of(body))
        respond(request, 202, {"status": "OK"})


def error_of(body: str) -> dict:
    try:
        error = json.loads(body)
    except ValueError:
        error = None
    return (
        error
        if isinstance(error, dict) and error
        else {"errorType": "Unreadable", "errorMessage": body}
    )


def read_body(request: BaseHTTPRequestHandler) -> str:
    if request.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return request.rfile.read(int(request.headers.get("Content-Length") or 0)).decode(
            "utf-8", "replace"
        )
    body = b""
    while size := int(request.rfile.readline().split(b";")[0], 16):
        body += request.rfile.read(size)
        request.rfile.readline()
    while request.rfile.readline().strip():
        """Trailers, up to the empty line."""
    return body.decode("utf-8", "replace")


def respond(
    request: BaseHTTPRequestHandler,
    status: int,
    body: str | dict,
    headers: dict[str, str] | None = None,
) -> None:
    data = (body if isinstance(body, str) else json.dumps(body)).encode()
    try:
        request.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(data)),
            **(headers or {}),
        }.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(data)
    except (BrokenPipeError, ConnectionResetError):
        request.close_connection = True
