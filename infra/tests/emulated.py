"""The emulator and the instance metadata service, as the checks use them."""

import contextlib
import http.server
import json
import pathlib
import subprocess
import threading
import urllib.request

from tools import INFRA, REGION

EMULATOR = INFRA.parent / "tests" / "emulator"


class Account:
    """One emulated AWS account on a loopback port."""

    def __init__(self, endpoint):
        self.endpoint = endpoint

    def control(self, method, path, body=None):
        request = urllib.request.Request(
            f"{self.endpoint}/_emulator/{path}",
            method=method,
            data=json.dumps(body).encode() if body is not None else None,
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def fail(self, **fault):
        self.control("POST", "faults", [fault])

    def calls(self):
        return [call["action"] for call in self.control("GET", "calls")]


@contextlib.contextmanager
def account():
    command = [EMULATOR / "python", pathlib.Path(__file__).parent / "emulator_process.py"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Account(process.stdout.readline().strip())
    finally:
        process.stdin.close()
        process.wait(20)


class Metadata(http.server.BaseHTTPRequestHandler):
    """The metadata service of one instance; without a token it answers nothing, as IMDSv2."""

    def do_PUT(self):
        self.reply(
            "secret"
            if self.path == "/latest/api/token"
            and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
            else None
        )

    def do_GET(self):
        known = {
            "/latest/meta-data/instance-id": self.server.instance,
            "/latest/meta-data/placement/region": REGION,
        }
        self.reply(
            known.get(self.path) if self.headers["X-aws-ec2-metadata-token"] == "secret" else None
        )

    def reply(self, text):
        self.send_response(200 if text else 401)
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def metadata(instance):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    server.instance = instance
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
