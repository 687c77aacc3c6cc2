"""Where the function's binary is, building it first if asked.

It is built in the profile that the tests use, so that the AWS SDK is never compiled twice.
BOOTSTRAP names another binary instead, which is then not built.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def path() -> Path:
    if chosen := os.environ.get("BOOTSTRAP"):
        return Path(chosen).resolve()
    metadata = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return Path(json.loads(metadata.stdout)["target_directory"]) / "debug" / "bootstrap"


def build() -> Path:
    """Builds with cargo's own progress on stderr; exits if that fails."""
    if "BOOTSTRAP" not in os.environ:
        built = subprocess.run(["cargo", "build", "--locked", "--bin", "bootstrap", "--bin", "lifecycle-reaper"], cwd=ROOT)
        if built.returncode:
            sys.exit(f"cargo could not build the function (status {built.returncode})")
    binary = path()
    if not os.access(binary, os.X_OK):
        sys.exit(f"there is no executable at {binary}")
    return binary


if __name__ == "__main__":
    print(build())
