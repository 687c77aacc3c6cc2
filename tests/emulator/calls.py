"""The call log: every API call as it came in, what it was about in one line, and how it ended."""

import io
import json
import re
import time
import urllib.parse
from collections import Counter, deque
from dataclasses import asdict, dataclass, field

SIGNED_SERVICE = re.compile(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/")
IDENTIFYING = re.compile(
    r"(InstanceId|SpotInstanceRequestId|KeyPairId|KeyName|AllocationId|AutoScalingGroupName|LifecycleHookName|CommandId"
    r"|DocumentName|ResourceId|VisibilityTimeout|DelaySeconds|LifecycleActionResult|DryRun|NextToken|Filter\.\d+\.Name"
    r"|Filter\.\d+\.Value|Tag\.\d+\.\w+)"
)


@dataclass
class Call:
    number: int
    service: str
    action: str
    parameters: dict
    at: float = field(default_factory=time.time)
    seconds: float = 0.0
    status: int = 0
    error: str | None = None
    fault: str | None = None

    @property
    def name(self) -> str:
        return f"{self.service}:{self.action}"

    def summary(self) -> str:
        """The ids and names that the call is about."""
        said = []
        for key, value in flat(self.parameters):
            if IDENTIFYING.search(key):
                text = value if len(value) <= 60 else value[:57] + "..."
                said.append(text if "Id" in key or key.endswith("Name") else f"{key}={text}")
        return ", ".join(said[:12]) + (f" and {len(said) - 12} more" if len(said) > 12 else "")

    def shown(self) -> dict:
        return asdict(self) | {"summary": self.summary()}


def flat(value: object, key: str = "") -> list[tuple[str, str]]:
    """(path, text) of every leaf of a JSON value or of query parameters."""
    if isinstance(value, dict):
        return [
            leaf
            for name, inner in value.items()
            for leaf in flat(inner, f"{key}.{name}" if key else name)
        ]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in flat(inner, key)]
    return [(key, str(value))]


class CallLog:
    def __init__(self) -> None:
        self.calls: deque[Call] = deque(maxlen=200_000)
        self._next = 1

    def open(self, service: str, action: str, parameters: dict) -> Call:
        call = Call(self._next, service, action, parameters)
        self._next += 1
        self.calls.append(call)
        return call

    def since(self, number: int = 0) -> list[Call]:
        return [call for call in self.calls if call.number > number]

    def counts(self, since: int = 0) -> dict[str, int]:
        return dict(Counter(call.name for call in self.since(since)).most_common())

    def of(self, name: str) -> list[Call]:
        """The calls named like `ec2:TerminateInstances`."""
        return [call for call in self.calls if call.name == name]

    def last_number(self) -> int:
        return self._next - 1

    def clear(self) -> None:
        self.calls.clear()


def read_request(environ: dict) -> tuple[str, str, dict, str]:
    """Service, action, parameters and body of a request; the body can be read again by who comes after."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    text = body.decode("utf-8", "replace")
    signed = SIGNED_SERVICE.search(environ.get("HTTP_AUTHORIZATION", ""))
    service = signed.group(1) if signed else "unsigned"
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        return service, target.rsplit(".", 1)[-1], parsed_json(text), text
    parameters = dict(
        urllib.parse.parse_qsl(text or environ.get("QUERY_STRING", ""), keep_blank_values=True)
    )
    parameters.pop("Version", None)
    return service, parameters.pop("Action", ""), parameters, text


def parsed_json(text: str) -> dict:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {"unreadable": text[:200]}
    return value if isinstance(value, dict) else {"value": value}
