"""A fault makes chosen calls fail: with an error code, late, with half a reply or none after the effect, or cut off before it."""

import json
from dataclasses import asdict, dataclass
from xml.sax.saxutils import escape

from .calls import Call


@dataclass
class Fault:
    service: str | None = None
    """None = any; likewise for `action`."""
    action: str | None = None
    containing: str | None = None
    """Only calls whose body contains this text, e.g. an instance id."""
    skip: int = 0
    """So many matching calls pass first."""
    times: int | None = 1
    """So many matching calls fail; None = all."""
    code: str | None = None
    status: int = 400
    message: str = "injected by the emulator"
    latency: float = 0.0
    lost_reply: bool = False
    """The call takes effect, and then the connection is closed instead of answering."""
    halved: bool = False
    """The call takes effect, and the first half of the reply comes as if it were all."""
    cut: bool = False
    """The connection is closed and the call has no effect."""
    hit: int = 0

    def matches(self, call: Call, body: str) -> bool:
        return (
            self.service in (None, call.service)
            and self.action in (None, call.action)
            and (self.containing is None or self.containing in body)
        )

    def kind(self) -> str:
        if self.cut:
            return "cut"
        if self.lost_reply:
            return "lost reply"
        if self.halved:
            return "half a reply"
        return self.code or f"latency {self.latency:g} s"


class Faults:
    def __init__(self) -> None:
        self.planned: list[Fault] = []

    def plan(self, fault: dict) -> None:
        self.planned.append(Fault(**fault))

    def due(self, call: Call, body: str) -> Fault | None:
        """The first planned fault that this call meets; it is used up by that."""
        for fault in self.planned:
            if not fault.matches(call, body) or fault.times == 0:
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            if fault.times is not None:
                fault.times -= 1
            fault.hit += 1
            return fault
        return None

    def shown(self) -> list[dict]:
        return [asdict(fault) for fault in self.planned]

    def clear(self) -> None:
        self.planned.clear()


def error_response(call: Call, json_protocol: bool, code: str, message: str) -> tuple[str, bytes]:
    """Content type and body of an error in the protocol that the call was made in."""
    if json_protocol:
        return "application/x-amz-json-1.0", json.dumps(
            {"__type": code, "message": message}
        ).encode()
    code, message = escape(code), escape(message)
    if call.service == "ec2":
        error = f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>"
        return (
            "text/xml",
            f"{error}<RequestID>emulator-{call.number}</RequestID></Response>".encode(),
        )
    error = f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"
    return (
        "text/xml",
        f"{error}<RequestId>emulator-{call.number}</RequestId></ErrorResponse>".encode(),
    )
