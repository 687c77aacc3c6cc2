"""The machine and the versions that a result belongs to."""

import os
import platform
import subprocess
from pathlib import Path


def facts(versions: dict[str, str]) -> dict[str, str]:
    return {
        "processor": field("/proc/cpuinfo", "model name"),
        "cpus": str(os.cpu_count()),
        "memory": f"{int(field('/proc/meminfo', 'MemTotal').split()[0]) / 1024 / 1024:.0f} GiB",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load before": f"{os.getloadavg()[0]:.2f}",
        "rustc": output("rustc", "--version"),
        "python": platform.python_version(),
        **versions,
    }


def field(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"


def output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return f"unknown ({error})"
