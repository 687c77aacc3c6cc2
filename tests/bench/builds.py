"""The binaries that are measured: ours as `make package` builds it, and the floors at opt-level s."""

import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

from .environments import HERE, ROOT

sys.path.insert(0, str(ROOT / "tests/package"))
import package  # noqa: E402  (a script's folder, not a package of Python's)

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lifecycle-reaper"


def bootstrap(build: bool) -> Path:
    """BOOTSTRAP names another binary, which is then not built."""
    if chosen := os.environ.get("BOOTSTRAP"):
        return Path(chosen).resolve()
    architecture = next(a for a in package.ARCHITECTURES.values() if platform.machine() == a.triple.partition("-")[0])
    how = package.cargo(architecture)
    return package.build(architecture, how) if build or not how.binary.exists() else how.binary


def floor(name: str) -> Path:
    target = CACHE / "bench" / "target"
    cargo(f"floor {name}", "--package", f"floor-{name}", folder=HERE / "floors", target=target)
    return target / "release" / f"floor-{name}"


def cargo(what: str, *arguments: str, folder: Path, target: Path) -> None:
    print(f"building {what}", file=sys.stderr)
    environment = os.environ | {"CARGO_TARGET_DIR": str(target)}
    built = subprocess.run(["cargo", "build", "--release", "--locked", "--quiet", *arguments], cwd=folder, env=environment)
    if built.returncode:
        raise SystemExit(f"cargo could not build {what}")


def zipped(binary: Path) -> int:
    """Bytes of the archive that Lambda would be given."""
    archive = CACHE / "bench" / "bootstrap.zip"
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        file.write(binary, "bootstrap")
    return archive.stat().st_size
