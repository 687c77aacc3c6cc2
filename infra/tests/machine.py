"""A machine: a real systemd in namespaces of its own, to run the drain script in. Needs root."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from tools import run

HERE = pathlib.Path(__file__).parent
# DRAIN_SCRIPT: a broken copy, by which test_mutations checks the tests
SCRIPT = pathlib.Path(os.environ.get("DRAIN_SCRIPT", HERE.parent / "ssm" / "drain.sh"))
SUDO = [] if os.getuid() == 0 else ["sudo", "-n"]
NAMESPACES = ["--pid", "--mount", "--cgroup", "--uts", "--ipc"]


class Impossible(Exception):
    """This computer can't make such a machine; the text says what was tried."""


class Machine:
    def __init__(self):
        for tool in ("unshare", "nsenter", "/lib/systemd/systemd", "journalctl"):
            if not shutil.which(tool):
                raise Impossible(
                    f"{tool} is not installed (Debian: apt-get install systemd util-linux)"
                )
        self.log = tempfile.TemporaryFile("w+")
        command = [
            *SUDO,
            "unshare",
            "--fork",
            "--mount-proc",
            *NAMESPACES,
            HERE / "systemd" / "init.sh",
        ]
        self.outer = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
        self.init = None
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self.outer.poll() is None:
            self.init = self.init or first_process(self.outer.pid)
            if (
                self.init
                and self.run("systemctl", "is-active", "systemd-journald").stdout == "active\n"
            ):
                return
            time.sleep(0.1)
        self.log.seek(0)
        said = self.log.read()[-600:]
        self.stop()
        raise Impossible(
            f"`{' '.join(map(str, command))}` as uid {os.getuid()} did not bring systemd up: {said}"
        )

    def stop(self):
        if self.init:
            subprocess.run([*SUDO, "kill", "-KILL", str(self.init)], check=False)
        self.outer.terminate()
        self.outer.wait(10)
        self.log.close()

    def command(self, *words):
        enter = ["-p", "-m", "-C", "-u", "-i"]
        return [*SUDO, "nsenter", "--target", str(self.init), *enter, *map(str, words)]

    def run(self, *words, timeout=60):
        return run(*self.command(*words), timeout=timeout)

    def write(self, path, text):
        subprocess.run(
            self.command("sh", "-c", 'mkdir -p "${1%/*}"; cat >"$1"', "-", path),
            input=text,
            text=True,
            check=True,
        )


class Unit:
    """One fake manager on the machine, as a unit of its own, so that tests share the machine."""

    def __init__(
        self, machine, name, jobs="", service="Restart=always\nRestartSec=1", enabled=True, **env
    ):
        self.machine, self.name, self.record = machine, f"{name}.service", f"/run/record-{name}"
        settings = {"JOBS": jobs, "RECORD": self.record, **env}
        environment = "\n".join(f'Environment="{key}={value}"' for key, value in settings.items())
        if "ExecStart=" not in service:
            service = f"ExecStart={HERE}/systemd/fake-gitlab-runner\n{service}"
        machine.write(
            f"/etc/systemd/system/{self.name}",
            f"[Unit]\nDefaultDependencies=no\n[Service]\n{environment}\n{service}\n",
        )
        if enabled:
            link = f"/run/systemd/system/drain-test.target.wants/{self.name}"
            machine.run(
                "sh",
                "-c",
                f"mkdir -p {os.path.dirname(link)}; ln -s /etc/systemd/system/{self.name} {link}",
            )
        machine.run("systemctl", "daemon-reload")

    def start(self):
        self.machine.run("systemctl", "start", self.name)
        self.until(lambda: "started" in self.happened())
        return self

    def happened(self):
        return self.machine.run("cat", self.record).stdout.split("\n")[:-1]

    def until(self, condition, seconds=10):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{self.name}: waited {seconds} s in vain"
            time.sleep(0.05)

    def shown(self, *properties):
        lines = self.machine.run(
            "systemctl", "show", self.name, *[f"-p{name}" for name in properties]
        ).stdout.split("\n")
        found = dict(line.split("=", 1) for line in lines if line)
        return [found.get(name) for name in properties]

    def drain_command(self, wait=20, shell="sh", **env):
        variables = {"UNIT_NAME": self.name, "WAIT_SECONDS": wait, **env}
        return self.machine.command(
            "env", *[f"{key}={value}" for key, value in variables.items()], *shell.split(), SCRIPT
        )

    def drain_begin(self, **options):
        return subprocess.Popen(
            self.drain_command(**options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def drain_end(self, process):
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, f"exit code {process.returncode}: {err}"
        lines = out.splitlines()
        assert len(lines) == 1, f"one line expected: {out!r} {err!r}"
        head, _, rest = lines[0].partition(": ")
        assert head == "lifecycle-reaper", lines[0]
        answer, *facts = rest.split(" ")
        return answer, dict(fact.split("=", 1) for fact in facts)

    def drain(self, **options):
        return self.drain_end(self.drain_begin(**options))


def first_process(pid):
    """The descendant that is process 1 of a namespace of its own; None while there is none."""
    try:
        while True:
            pid = int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
            numbers = re.search(
                r"^NSpid:(.*)$", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
            )[1].split()
            if len(numbers) > 1 and numbers[-1] == "1":
                return pid
    except (FileNotFoundError, IndexError):
        return None
