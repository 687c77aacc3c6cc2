"""The programs that the checks run, and where they work: never in the checkout."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

INFRA = pathlib.Path(__file__).resolve().parent.parent
CACHE = (
    pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    / "lifecycle-reaper"
    / "infra"
)
ACCOUNT, REGION, PARTITION = "123456789012", "eu-central-1", "aws"


def run(*words, cwd=None, env=None, timeout=300, stdin=None):
    """Runs a program to its end; what it wrote and how it ended."""
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


class Terraform:
    """A copy of infra/ in which terraform is set up, without a backend and without AWS."""

    def __init__(self, infra=INFRA):
        self.folder = tempfile.TemporaryDirectory(prefix="infra-")
        self.infra = pathlib.Path(self.folder.name) / "infra"
        ignored = shutil.ignore_patterns(".terraform*", "__pycache__")
        shutil.copytree(infra, self.infra, ignore=ignored)
        self.module = self.infra / "terraform"

    def __call__(self, *words, cwd=None, timeout=300):
        return run(
            "terraform",
            *words,
            cwd=cwd or self.module,
            timeout=timeout,
            env={"TF_IN_AUTOMATION": "1", "NO_COLOR": "1"},
        )

    def init(self, cwd=None):
        done = self("init", "-backend=false", "-input=false", "-no-color", cwd=cwd)
        assert done.returncode == 0, done.stdout + done.stderr


def messages(output):
    """The JSON lines of `terraform test -json`."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]
