"""The oldest Rust that can build us, as `rust-version` states it, is at least what every dependency asks for.

With that Rust installed (`rustup toolchain install`), it must also compile the library and both binaries.
"""

import pathlib
import subprocess
import sys

import sbom

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = "x86_64-unknown-linux-gnu"


def parsed(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in (version + ".0.0").split(".")[:3])


def is_installed(version: str) -> bool:
    """Whether rustup has it; without rustup nothing is."""
    try:
        return subprocess.run(["rustup", "run", version, "rustc", "-V"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def main() -> int:
    packages = {package["name"]: package for package in sbom.metadata(ROOT, TARGET)["packages"]}
    stated = packages.pop("lifecycle-reaper")["rust_version"]
    asked = {name: package["rust_version"] for name, package in packages.items() if package["rust_version"]}
    newer = sorted(f"{name} asks for {version}" for name, version in asked.items() if parsed(version) > parsed(stated))
    if newer:
        print(f"Cargo.toml states Rust {stated}, but " + ", ".join(newer), file=sys.stderr)
        return 1
    print(f"Rust {stated} is stated, and no dependency asks for a newer one")
    if not is_installed(stated):
        print(f"NOT COMPILED with Rust {stated}: it is not installed (rustup toolchain install {stated} --profile minimal)")
        return 0
    return subprocess.run(["rustup", "run", stated, "cargo", "check", "--locked", "--all-targets"], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
