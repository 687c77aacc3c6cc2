"""A cold start: from the exec of a function's process to its first poll of the Runtime API, and through its first and later invocations."""

import os
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

from emulator.function import lambda_environment

from .runtime_stub import RuntimeStub

WARM = 20


@dataclass
class Subject:
    """One thing that is measured: a command, its environment, and the event that it is given."""

    name: str
    command: list[str]
    environment: dict[str, str]
    payload: bytes
    samples: list["Sample"] = field(default_factory=list)

    def median(self, what: str) -> float:
        return statistics.median(getattr(sample, what) for sample in self.samples)

    def fastest(self) -> float:
        """Milliseconds from exec through the first invocation in the best sample: other processes only ever add."""
        return min(sample.cold for sample in self.samples)


@dataclass
class Sample:
    """Milliseconds and MiB of one process's life."""

    start: float
    first: float
    warm: float
    cpu: float
    """Milliseconds of CPU from exec through the first invocation: steadier than time on a busy machine."""
    idle: float
    peak: float
    reply: bytes

    @property
    def cold(self) -> float:
        """From exec through the first invocation."""
        return self.start + self.first


class Process:
    """A function's process behind a Runtime API of its own; its output goes nowhere, or to a file."""

    def __init__(self, command: list[str], environment: dict[str, str], log: str = os.devnull) -> None:
        self.stub = RuntimeStub()
        variables = lambda_environment("lifecycle-reaper", 128) | environment | {"AWS_LAMBDA_RUNTIME_API": self.stub.address}
        to = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        redirected = [(os.POSIX_SPAWN_OPEN, 1, log, to, 0o644), (os.POSIX_SPAWN_DUP2, 1, 2)]
        self.started = time.perf_counter()
        self.pid = os.posix_spawn(command[0], command, variables, file_actions=redirected)

    def memory(self, what: str) -> float:
        """VmRSS or VmHWM, in MiB."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(what + ":"):
                return int(line.split()[1]) / 1024
        raise ValueError(f"no {what} of process {self.pid}")

    def cpu(self) -> float:
        """Milliseconds of CPU that its threads have used, to the nanosecond."""
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6

    def end(self) -> None:
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        self.stub.close()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def measure(subject: Subject) -> Sample:
    with Process(subject.command, subject.environment) as process:
        start = process.stub.wait_for_poll() - process.started
        idle = process.memory("VmRSS")
        first, reply = process.stub.invoke(subject.payload)
        cpu = process.cpu()
        warm = []
        for _ in range(WARM):
            process.stub.wait_for_poll()
            warm.append(process.stub.invoke(subject.payload)[0])
        process.stub.wait_for_poll()
        return Sample(start * 1e3, first * 1e3, statistics.median(warm) * 1e3, cpu, idle, process.memory("VmHWM"), reply)


def measure_all(subjects: list[Subject], rounds: int, say: callable) -> None:
    """Round by round, one sample of each, so that a noisy minute hits all of them."""
    for subject in subjects:
        measure(subject)
    for number in range(rounds):
        say(f"cold starts: round {number + 1} of {rounds}")
        for subject in subjects:
            subject.samples.append(measure(subject))
