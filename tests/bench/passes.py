"""Whole passes of the function over worlds of the stub: calls, wall time, CPU, memory."""

import json
import statistics
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from . import environments
from .aws_stub import AwsStub
from .cold_start import Process
from .worlds import World

WRITES = ("TerminateInstances", "DeleteKeyPair", "CancelSpotInstanceRequests", "ReleaseAddress", "CreateTags", "DeleteTags")


@dataclass
class Pass:
    """One sweep: what it called, how long it took, what it used."""

    calls: Counter
    wall: float
    cpu: float
    peak: float
    idle: float
    counts: dict

    def shown(self) -> dict:
        """As plain values: a Counter doesn't survive `asdict`."""
        return vars(self) | {"calls": dict(self.calls), "reads": self.reads, "writes": self.writes}

    @property
    def reads(self) -> int:
        return sum(n for operation, n in self.calls.items() if operation.startswith("Describe"))

    @property
    def writes(self) -> int:
        return sum(n for operation, n in self.calls.items() if operation in WRITES)


def sweep(bootstrap: Path, stub: AwsStub, world: World, latency: float = 0.0, warm: bool = False, variables: dict | None = None) -> Pass:
    """One sweep by a fresh process; `warm` measures its second one."""
    stub.show(world, latency)
    environment = environments.of_ours(stub.url) | (variables or {})
    with Process([str(bootstrap)], environment) as process:
        process.stub.wait_for_poll()
        idle = process.memory("VmRSS")
        for _ in range(2 if warm else 1):
            stub.take_calls()
            cpu = process.cpu()
            wall, reply = process.stub.invoke(environments.event("direct-sweep"))
            cpu = process.cpu() - cpu
            process.stub.wait_for_poll()
        answer = json.loads(reply)
        if answer.get("faults"):
            raise RuntimeError(f"the sweep met faults: {answer['faults']}")
        return Pass(stub.take_calls(), wall, cpu, process.memory("VmHWM"), idle, answer["counts"])


def fleet(latency: float) -> tuple[World, float]:
    """1,000 workers of 100 managers, one of which is gone."""
    return World(managers=100, workers=1000, keys=1000, first_manager_is_gone=True), latency


def cpu_of_a_page(bootstrap: Path, stub: AwsStub, judged: bool, rounds: int = 3) -> float:
    """Milliseconds of CPU for each page of 1,000 instances, from what ten pages more cost."""

    def world(pages: int) -> World:
        managers = 10
        rest = pages * 1000 - managers
        return World(managers=managers, workers=rest if judged else 0, strangers=0 if judged else rest)

    def median(pages: int) -> float:
        return statistics.median(sweep(bootstrap, stub, world(pages), warm=True).cpu for _ in range(rounds))

    return (median(11) - median(1)) / 10


def serial_look_ups(stub: AwsStub, latency: float) -> tuple[int, float]:
    """The Python peer's way over the same fleet; returns its calls and seconds."""
    world, latency = fleet(latency)
    stub.show(world, latency)
    script = environments.HERE / "python_peer" / "hook.py"
    ran = subprocess.run(
        [sys.executable, str(script), world.manager_id(0)],
        env=environments.of_python(stub.url) | {"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    calls, seconds = ran.stdout.split()
    return int(calls), float(seconds)
