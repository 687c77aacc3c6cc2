"""The function: any command that speaks the Runtime API, run in sandboxes as Lambda runs it.

An invocation takes an idle sandbox or starts one (a cold start). A sandbox that overruns the function's timeout is
killed, and one whose process ends is replaced; either way the invocation has failed.
"""

import os
import subprocess
import threading
import time
import uuid
from collections.abc import Callable

from .runtime_api import Invocation, RuntimeApi
from .settings import ACCOUNT_ID, REGION

INITIALIZATION_TIMEOUT = 10.0


class Sandbox:
    def __init__(self, function: "Function") -> None:
        self.function = function
        self.api = RuntimeApi()
        self.is_new = True
        environment = function.environment | {"AWS_LAMBDA_RUNTIME_API": self.api.address}
        self.process = subprocess.Popen(
            function.command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._early_lines: list[str] = []
        threading.Thread(target=self.read_lines, daemon=True).start()

    def read_lines(self) -> None:
        """What the process prints belongs to the invocation it works on, or to the first one that comes."""
        for line in self.process.stdout:
            line = line.rstrip("\n")
            invocation = self.api.current
            if invocation is None:
                self._early_lines.append(line)
            else:
                invocation.logs.append(line)
            self.function.on_log(line)

    def run(self, invocation: Invocation) -> None:
        invocation.cold, self.is_new = self.is_new, False
        self.api.offer(invocation)
        while not invocation.ended.wait(0.02):
            if self.process.poll() is not None:
                message = f"RequestId: {invocation.request_id} Error: Runtime exited with status {self.process.returncode}"
                invocation.end(error={"errorType": "Runtime.ExitError", "errorMessage": message})
            elif time.time() > (
                invocation.deadline
                if invocation.started_at
                else invocation.asked_at + INITIALIZATION_TIMEOUT
            ):
                message = f"RequestId: {invocation.request_id} Error: Task timed out after {invocation.timeout:.2f} seconds"
                invocation.end(error={"errorType": "Sandbox.Timedout", "errorMessage": message})
                self.kill()
        invocation.logs[:0], self._early_lines = self._early_lines, []

    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        if self.alive():
            self.process.kill()
        self.process.wait(timeout=5)

    def close(self) -> None:
        self.kill()
        self.api.close()


class Function:
    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        timeout: float = 60.0,
        name: str = "lifecycle-reaper",
        memory_size: int = 128,
        on_log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.command, self.timeout, self.name, self.on_log = command, timeout, name, on_log
        self.arn = f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{name}"
        self.environment = lambda_environment(name, memory_size) | environment
        self.invocations: list[Invocation] = []
        self._idle: list[Sandbox] = []
        self._all: list[Sandbox] = []
        self._lock = threading.Lock()
        self._closed = False

    def invoke(self, payload: str, source: str = "direct", attempt: int = 1) -> Invocation:
        """Runs one invocation to its end, however it ends."""
        invocation = Invocation(str(uuid.uuid4()), source, payload, self.arn, self.timeout, attempt)
        with self._lock:
            if self._closed:
                raise RuntimeError("the function is closed")
            self.invocations.append(invocation)
            sandbox = self._idle.pop() if self._idle else self.start_sandbox()
        sandbox.run(invocation)
        with self._lock:
            if sandbox.alive() and not self._closed:
                self._idle.append(sandbox)
            else:
                sandbox.close()
                self._all.remove(sandbox)
        return invocation

    def start_sandbox(self) -> Sandbox:
        sandbox = Sandbox(self)
        self._all.append(sandbox)
        return sandbox

    def kill(self) -> None:
        """Kills every sandbox at once, as a crash would; the next invocation is a cold start."""
        with self._lock:
            for sandbox in self._all:
                sandbox.kill()
            for sandbox in self._idle:
                sandbox.close()
                self._all.remove(sandbox)
            self._idle.clear()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self.kill()


def lambda_environment(name: str, memory_size: int) -> dict[str, str]:
    """The variables that Lambda sets; nothing else of this process's environment reaches the function."""
    return {
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(memory_size),
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "2026/01/01/[$LATEST]emulator",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_EXECUTION_ENV": "AWS_Lambda_provided.al2023",
        "LAMBDA_TASK_ROOT": "/var/task",
        "_HANDLER": "bootstrap",
        "TZ": ":UTC",
        "LANG": "en_US.UTF-8",
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
    }
