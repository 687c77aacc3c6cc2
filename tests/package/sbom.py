"""The bill of materials: every crate that the binary is made of, as CycloneDX 1.5 JSON, from what cargo itself resolves.

Names, versions and who needs whom come from `cargo tree`, licences from `cargo metadata`, checksums from Cargo.lock.
Development dependencies aren't in it, and crates for other platforms aren't either. Nothing changes from run to run.
"""

import json
import pathlib
import re
import subprocess
import tomllib
import uuid

Crate = tuple[str, str]
"""Name and version."""


def version(root: pathlib.Path) -> str:
    """The package's version, as Cargo.toml has it."""
    return tomllib.loads((root / "Cargo.toml").read_text())["package"]["version"]


def metadata(root: pathlib.Path, triple: str) -> dict:
    """What cargo resolves for `triple`."""
    words = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", triple]
    return json.loads(subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout)


def needed(root: pathlib.Path, triple: str) -> dict[Crate, list[Crate]]:
    """Each crate that is built for `triple`, ours among them, with those that it needs itself; development dependencies apart.

    From `cargo tree`: the graph of `cargo metadata` also has optional crates that no feature switches on.
    """
    words = ["cargo", "tree", "--locked", "--edges", "normal,build", "--target", triple, "--prefix", "depth", "--format", " {p}"]
    told = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout
    found: dict[Crate, set[Crate]] = {}
    path: list[Crate] = []
    for line in told.splitlines():
        depth, name, number = re.match(r"(\d+) (\S+) v(\S+)", line).groups()
        path[int(depth) :] = [(name, number)]
        found.setdefault(path[-1], set())
        if len(path) > 1:
            found[path[-2]].add(path[-1])
    return {crate: sorted(needs) for crate, needs in found.items()}


def purl(crate: Crate) -> str:
    return f"pkg:cargo/{crate[0]}@{crate[1]}"


def component(crate: Crate, licence: str | None, sha256: str | None) -> dict:
    """One crate. Cargo's older `MIT/Apache-2.0` is written as the SPDX expression that it means."""
    entry = {"type": "library", "bom-ref": purl(crate), "name": crate[0], "version": crate[1], "purl": purl(crate)}
    if licence:
        entry["licenses"] = [{"expression": " OR ".join(word.strip() for word in licence.split("/"))}]
    if sha256:
        entry["hashes"] = [{"alg": "SHA-256", "content": sha256}]
    return entry


def bill(root: pathlib.Path, triple: str, binary_sha256: str) -> dict:
    """The whole bill, for the binary with this checksum."""
    crates = needed(root, triple)
    licences = {(p["name"], p["version"]): p["license"] for p in metadata(root, triple)["packages"]}
    lock = tomllib.loads((root / "Cargo.lock").read_text())["package"]
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in lock}
    ours = ("lifecycle-reaper", version(root))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"lifecycle-reaper/{binary_sha256}").urn,
        "version": 1,
        "metadata": {
            "component": {**component(ours, licences[ours], binary_sha256), "type": "application"},
            "properties": [{"name": "cargo:target", "value": triple}],
        },
        "components": [component(crate, licences[crate], checksums[crate]) for crate in sorted(crates) if crate != ours],
        "dependencies": [{"ref": purl(crate), "dependsOn": [purl(need) for need in crates[crate]]} for crate in sorted(crates)],
    }


def write(root: pathlib.Path, triple: str, path: pathlib.Path, binary_sha256: str) -> None:
    """Writes the bill to `path`."""
    path.write_text(json.dumps(bill(root, triple, binary_sha256), indent=1) + "\n")
