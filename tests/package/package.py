"""A package is what a person deploys: a zip that holds `bootstrap` alone, its checksum, and its bill of materials.

Cargo builds, and builds nothing that is up to date. Zips are made so that equal binaries give equal zips.
The same script packs on a developer's machine and for a release; `make package` calls it.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from dataclasses import dataclass

import sbom

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "lifecycle-reaper"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or CACHE / "target")
NEWEST_GLIBC = (2, 34)
"""What `provided.al2023` has. A binary that wants a newer one doesn't start there."""


@dataclass(frozen=True)
class Architecture:
    """One of Lambda's two, with Rust's name for it and the number that an ELF file bears."""

    name: str
    triple: str
    elf_machine: int
    linker: str


ARCHITECTURES = {
    a.name: a
    for a in (
        Architecture("x86_64", "x86_64-unknown-linux-gnu", 62, "x86_64-linux-gnu-gcc"),
        Architecture("arm64", "aarch64-unknown-linux-gnu", 183, "aarch64-linux-gnu-gcc"),
    )
}
SIMILAR_TOGETHER = ("-C", "link-arg=-Wl,--bp-compression-sort=both")
"""Lets lld lay functions and constants beside those that they resemble: the same code, in a zip that is 7 % smaller."""


class NoPackage(Exception):
    """Why there is no package, in words."""


@dataclass(frozen=True)
class Cargo:
    """The command that builds, what it needs in its environment, and where the binary is afterwards."""

    words: list[str]
    environment: dict[str, str]
    binary: pathlib.Path


def asked(*words: str) -> str:
    """What the compiler says that cargo will use: rustup's, Debian's, or the one that `RUSTC` names."""
    return subprocess.run([os.environ.get("RUSTC", "rustc"), *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def links_with_lld(host: str) -> bool:
    """Rust's own builds bring an lld and link with it for x86_64; a distribution's compiler leaves that to the system."""
    return (pathlib.Path(asked("--print", "sysroot")) / "lib/rustlib" / host / "bin/gcc-ld/ld.lld").is_file()


def cargo(architecture: Architecture) -> Cargo:
    """How this machine builds for `architecture`; raises with what it lacks."""
    triple, subcommand, target, environment = architecture.triple, "build", [], {}
    host = re.search(r"^host: (.+)$", asked("-vV"), re.MULTILINE)[1]
    if triple != host and not (pathlib.Path(asked("--print", "sysroot")) / "lib/rustlib" / triple / "lib").is_dir():
        raise NoPackage(f"Rust's standard library for {triple} is not installed: rustup target add {triple}, or see CONTRIBUTING.md")
    if shutil.which("cargo-zigbuild"):
        # Zig brings its own C library, so the glibc to link against can be named, whatever this system has.
        subcommand, target = "zigbuild", ["--target", f"{triple}.{NEWEST_GLIBC[0]}.{NEWEST_GLIBC[1]}"]
    elif triple != host:
        if not shutil.which(architecture.linker):
            raise NoPackage(f"nothing links for {triple}: neither {architecture.linker} nor cargo-zigbuild is installed, see CONTRIBUTING.md")
        target, variable = ["--target", triple], triple.replace("-", "_")
        environment = {f"CARGO_TARGET_{variable.upper()}_LINKER": architecture.linker, f"CC_{variable}": architecture.linker}
    more: list[str] = []
    if subcommand == "build" and architecture.name == "x86_64" and links_with_lld(host):
        subcommand, more = "rustc", ["--", *SIMILAR_TOGETHER]
    words = ["cargo", subcommand, "--release", "--locked", "--bin", "bootstrap", *target, *more]
    return Cargo(words, environment, TARGET / (triple if target else "") / "release/bootstrap")


def build(architecture: Architecture, how: Cargo) -> pathlib.Path:
    """Builds `bootstrap` in release mode and returns where it is."""
    print(f"building bootstrap for {architecture.name}, from nothing 15 to 20 minutes of CPU: {' '.join(how.words)}", flush=True)
    done = subprocess.run(how.words, cwd=ROOT, env={**os.environ, "CARGO_TARGET_DIR": str(TARGET), **how.environment}, check=False)
    if done.returncode:
        raise NoPackage("cargo failed")
    return how.binary


def check_binary(content: bytes, architecture: Architecture) -> None:
    """Raises unless Lambda can start this file."""
    if content[:5] != b"\x7fELF\x02":
        raise NoPackage("bootstrap is no 64-bit ELF file")
    machine = struct.unpack_from("<H", content, 18)[0]
    if machine != architecture.elf_machine:
        raise NoPackage(f"bootstrap is for the ELF machine {machine}, {architecture.name} is {architecture.elf_machine}")
    wanted = {tuple(int(n) for n in found.split(b".")) for found in re.findall(rb"\0GLIBC_(\d+\.\d+)", content)}
    if max(wanted, default=NEWEST_GLIBC) > NEWEST_GLIBC:
        newest = ".".join(str(n) for n in max(wanted))
        raise NoPackage(f"bootstrap wants glibc {newest}, and provided.al2023 has 2.34: build with cargo-zigbuild, or on an older system")


def write_zip(path: pathlib.Path, content: bytes) -> None:
    """One executable file, without this machine's clock or user in it."""
    entry = zipfile.ZipInfo("bootstrap", date_time=(1980, 1, 1, 0, 0, 0))
    entry.create_system, entry.external_attr = 3, 0o100755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(entry, content, compresslevel=9)


def pack(architecture: Architecture, binary: pathlib.Path, out: pathlib.Path) -> list[pathlib.Path]:
    """Writes the zip, its bill of materials and the checksums of both; returns their paths."""
    content = binary.read_bytes()
    check_binary(content, architecture)
    stem = f"lifecycle-reaper-{sbom.version(ROOT)}-{architecture.name}"
    archive, bill, checksums = (out / f"{stem}.{end}" for end in ("zip", "cdx.json", "sha256"))
    write_zip(archive, content)
    sbom.write(ROOT, architecture.triple, bill, hashlib.sha256(content).hexdigest())
    write_checksums(checksums, [archive, bill])
    digest = hashlib.sha256(archive.read_bytes()).digest()
    print(f"{archive}  {archive.stat().st_size / 2**20:.2f} MiB, bootstrap {len(content) / 2**20:.2f} MiB")
    print(f"  for Terraform's package.hash: {base64.b64encode(digest).decode()}")
    return [archive, bill, checksums]


def write_checksums(path: pathlib.Path, files: list[pathlib.Path]) -> None:
    """In the format that `sha256sum --check` reads."""
    path.write_text("".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files)))


def check_tag(tag: str, changelog: str) -> None:
    """Raises unless the tag names this version, and the changelog tells of it."""
    number = sbom.version(ROOT)
    if tag != f"v{number}":
        raise NoPackage(f"the tag is {tag}, and Cargo.toml says {number}")
    if not re.search(rf"^## {re.escape(number)}\b", changelog, re.MULTILINE):
        raise NoPackage(f"CHANGELOG.md has no section {number}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make package", description=__doc__.splitlines()[0])
    parser.add_argument("architectures", nargs="*", help="x86_64, arm64; without any: those that this machine can build")
    parser.add_argument("--out", type=pathlib.Path, default=TARGET / "package")
    parser.add_argument("--binary", type=pathlib.Path, help="pack this file instead of building (one architecture)")
    parser.add_argument("--tag", help="refuse to pack unless this is the tag of the version in Cargo.toml")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.architectures if name not in ARCHITECTURES]
    if unknown or (arguments.binary and len(arguments.architectures) != 1):
        parser.error(f"no architecture of Lambda's: {', '.join(unknown)}" if unknown else "--binary wants one architecture")
    try:
        if arguments.tag:
            check_tag(arguments.tag, (ROOT / "CHANGELOG.md").read_text())
        return pack_all(arguments)
    except NoPackage as reason:
        print(f"no package: {reason}", file=sys.stderr)
        return 1


def pack_all(arguments: argparse.Namespace) -> int:
    """Packs what was asked for. What was asked for by name and can't be built is an error, and otherwise said."""
    arguments.out.mkdir(parents=True, exist_ok=True)
    packed = 0
    for architecture in [ARCHITECTURES[name] for name in arguments.architectures or ARCHITECTURES]:
        try:
            how = None if arguments.binary else cargo(architecture)
        except NoPackage as lacking:
            if arguments.architectures:
                raise
            print(f"no {architecture.name} package: {lacking}", file=sys.stderr)
            continue
        pack(architecture, arguments.binary or build(architecture, how), arguments.out)
        packed += 1
    return 0 if packed else 1


if __name__ == "__main__":
    sys.exit(main())
