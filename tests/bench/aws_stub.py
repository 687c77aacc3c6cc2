"""AWS over plain HTTP in a process of its own: answers that were rendered before, so that its own time is small, and a delay for each call.

It writes nothing down but the operations that were called: a deletion succeeds and changes nothing.
"""

import asyncio
import multiprocessing
import socket
from collections import Counter
from multiprocessing.connection import Connection
from urllib.parse import parse_qs

from .worlds import World

IDENTITY = (
    b'<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>'
    b"<Arn>arn:aws:iam::123456789012:user/floor</Arn><UserId>AIDAINVENTED</UserId><Account>123456789012</Account>"
    b"</GetCallerIdentityResult><ResponseMetadata><RequestId>0</RequestId></ResponseMetadata></GetCallerIdentityResponse>"
)

class AwsStub:
    def __init__(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._control, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("fork").Process(target=serve, args=(listener, theirs), daemon=True)
        self._process.start()
        listener.close()

    def show(self, world: World, latency: float = 0.0) -> None:
        """From now on answers with this world, each call so many seconds late."""
        self._ask(("show", world.pages(), latency))

    def take_calls(self) -> Counter:
        """What was called since the last time that this was asked, by operation."""
        return self._ask(("take",))

    def close(self) -> None:
        self._process.terminate()
        self._process.join(5)

    def _ask(self, question: tuple) -> object:
        self._control.send(question)
        if not self._control.poll(60):
            raise TimeoutError("the AWS stub does not answer")
        return self._control.recv()


def serve(listener: socket.socket, control: Connection) -> None:
    asyncio.run(Server(control).run(listener))


class Server:
    def __init__(self, control: Connection) -> None:
        self._control = control
        self._pages: dict[tuple[str, str], bytes] = {}
        self._latency = 0.0
        self._calls: Counter = Counter()

    async def run(self, listener: socket.socket) -> None:
        asyncio.get_running_loop().add_reader(self._control.fileno(), self._obey)
        server = await asyncio.start_server(self._connection, sock=listener, limit=1 << 20)
        async with server:
            await server.serve_forever()

    def _obey(self) -> None:
        match self._control.recv():
            case ("show", pages, latency):
                self._pages, self._latency = pages, latency
                self._calls.clear()
                self._control.send(None)
            case ("take",):
                calls, self._calls = self._calls, Counter()
                self._control.send(calls)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in head.split("\r\n")[1:])}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                kind, answer = self._answer(headers, body)
                if self._latency:
                    await asyncio.sleep(self._latency)
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(answer)}\r\n\r\n".encode() + answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, headers: dict[str, str], body: bytes) -> tuple[str, bytes]:
        target = headers.get("x-amz-target")
        if target:
            self._calls[target.rpartition(".")[2]] += 1
            return "application/x-amz-json-1.1", b"{}"
        fields = parse_qs(body.decode())
        operation = fields["Action"][0]
        self._calls[operation] += 1
        token = fields.get("NextToken", [""])[0]
        if operation == "GetCallerIdentity":
            return "text/xml", IDENTITY
        if fields["Version"][0] == "2011-01-01":
            return "text/xml", self._pages.get((operation, token)) or auto_scaling_success(operation)
        # A filter asks for one instance, or for one worker: a world without it will do.
        is_whole = "Filter.1.Name" not in fields
        return "text/xml", self._pages.get((operation, token) if is_whole else ()) or ec2_success(operation)


def ec2_success(operation: str) -> bytes:
    return f'<{operation}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>0</requestId></{operation}Response>'.encode()


def auto_scaling_success(operation: str) -> bytes:
    return (
        f'<{operation}Response xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><{operation}Result/>'
        f"<ResponseMetadata><RequestId>0</RequestId></ResponseMetadata></{operation}Response>"
    ).encode()
