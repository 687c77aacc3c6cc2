"""The server: moto with this package's behaviour, one account, on a loopback port.

A request passes: control path? -> call log -> planned fault? -> moto, under the one lock.
"""

import json
import os
import re
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterable

from . import calls, control, faults
from .settings import ACCOUNT_ID, REGION
from .timeline import LOCK, TIMELINE, run_forever

os.environ["MOTO_ACCOUNT_ID"] = ACCOUNT_ID
os.environ["AWS_DEFAULT_REGION"] = REGION

import boto3  # noqa: E402
from botocore.config import Config  # noqa: E402
from moto.moto_server.werkzeug_app import (  # noqa: E402  (moto reads the environment when it is imported)
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import make_server  # noqa: E402

from . import (
    addresses,
    commands,
    fleets,
    groups,
    instances,
    key_pairs,
    lifecycle_hooks,
    queues,
    spot_requests,
)  # noqa: E402

ERROR_CODE = re.compile(rb"<Code>([^<]+)</Code>|\"__type\": *\"(?:[^\"#]*#)?([^\"]+)\"")


class QuietHandler(MotoRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *arguments: object) -> None:
        """The call log says it better."""


class Front:
    """The WSGI application in front of moto."""

    def __init__(self) -> None:
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.calls = calls.CallLog()
        self.faults = faults.Faults()
        self.deployment: object | None = None
        """The Deployment whose function the control API invokes, if there is one."""

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith(control.PREFIX):
            status, value = control.answer(self, environ)
            start_response(status, [("Content-Type", "application/json")])
            return [json.dumps(value, default=str).encode()]
        service, action, parameters, body = calls.read_request(environ)
        with LOCK:
            call = self.calls.open(service, action, parameters)
            fault = self.faults.due(call, body)
        call.fault = fault.kind() if fault else None
        try:
            return self.answer(call, fault, environ, start_response)
        finally:
            call.seconds = time.time() - call.at

    def answer(
        self, call: calls.Call, fault: faults.Fault | None, environ: dict, start_response: Callable
    ) -> Iterable[bytes]:
        json_protocol = "HTTP_X_AMZ_TARGET" in environ
        if fault and fault.latency:
            time.sleep(fault.latency)
        if fault and fault.cut:
            return close_connection(environ)
        if fault and fault.code:
            call.status, call.error = fault.status, fault.code
            kind, body = faults.error_response(call, json_protocol, fault.code, fault.message)
            start_response(
                f"{fault.status} Fault",
                [("Content-Type", kind), ("Content-Length", str(len(body)))],
            )
            return [body]
        status, headers, body = self.ask_moto(call, environ)
        call.status = int(status.split()[0])
        if call.status >= 400:
            found = ERROR_CODE.search(body)
            call.error = (found.group(1) or found.group(2)).decode() if found else "Unreadable"
        if fault and fault.lost_reply:
            return close_connection(environ)
        if fault and fault.halved:
            body = body[: len(body) // 2]
        start_response(
            status,
            [(k, v) for k, v in headers if k.lower() != "content-length"]
            + [("Content-Length", str(len(body)))],
        )
        return [body]

    def ask_moto(self, call: calls.Call, environ: dict) -> tuple[str, list, bytes]:
        """Status, headers and body; what moto can't do becomes an error with a code, as an SDK expects one."""
        answered: list = []
        try:
            with LOCK:
                TIMELINE.run_due()
                chunks = self.moto(
                    environ, lambda status, headers, error=None: answered.extend((status, headers))
                )
                return answered[0], answered[1], b"".join(chunks)
        except Exception as wrong:
            if not isinstance(wrong, NotImplementedError):
                traceback.print_exc()
            code = "NotImplemented" if isinstance(wrong, NotImplementedError) else "InternalError"
            kind, body = faults.error_response(
                call, "HTTP_X_AMZ_TARGET" in environ, code, f"{call.name}: {wrong}"
            )
            return "501 Not Implemented", [("Content-Type", kind)], body


def close_connection(environ: dict) -> Iterable[bytes]:
    connection: socket.socket = environ["werkzeug.socket"]
    connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError("closed by a planned fault")


class Emulator:
    """The emulated account as a running server. There is one in a process: moto's state is the process's."""

    def __init__(self, port: int = 0) -> None:
        install()
        self.front = Front()
        control.reset(self.front)
        self._server = make_server(
            "127.0.0.1", port, self.front, threaded=True, request_handler=QuietHandler
        )
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._stop = threading.Event()
        self._clients: dict = {}

    @property
    def calls(self) -> calls.CallLog:
        return self.front.calls

    def fail(self, **fault: object) -> None:
        self.front.faults.plan(fault)

    def __enter__(self) -> "Emulator":
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        threading.Thread(target=run_forever, args=[self._stop], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._server.shutdown()
        self._server.server_close()

    def client(self, service: str):
        """A boto3 client of this account, without retries: one call is one call."""
        if service not in self._clients:
            self._clients[service] = boto3.client(
                service,
                endpoint_url=self.endpoint,
                region_name=REGION,
                aws_access_key_id="emulator",
                aws_secret_access_key="emulator",
                config=Config(retries={"total_max_attempts": 1}, read_timeout=30),
            )
        return self._clients[service]

    def client_environment(self) -> dict[str, str]:
        """What an SDK needs in its environment to talk to this account and to nothing else."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": "emulator",
            "AWS_SECRET_ACCESS_KEY": "emulator",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


installed = False


def install() -> None:
    """Puts this package's behaviour into moto, once."""
    global installed
    if not installed:
        for part in (
            instances,
            spot_requests,
            fleets,
            addresses,
            key_pairs,
            groups,
            lifecycle_hooks,
            commands,
            queues,
        ):
            part.install()
        installed = True
