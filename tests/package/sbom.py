"""The bill of materials: every crate that the binary is made of, as CycloneDX 1.5 JSON, from what cargo itself resolves.

Names, versions and licences come from `cargo metadata`, checksums from Cargo.lock. Development dependencies
aren't in it, and crates for other platforms aren't either. Nothing in it changes from run to run.
"""

import json
import pathlib
import subprocess
import tomllib
import uuid


def version(root: pathlib.Path) -> str:
    """The package's version, as Cargo.toml has it."""
    return tomllib.loads((root / "Cargo.toml").read_text())["package"]["version"]


def metadata(root: pathlib.Path, triple: str) -> dict:
    """What cargo resolves for `triple`."""
    words = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", triple]
    return json.loads(subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout)


def needed(resolved: dict) -> dict[str, list[str]]:
    """Each crate that the root needs to be built, with those that it needs itself; development dependencies apart."""
    nodes = {node["id"]: node for node in resolved["nodes"]}
    found, waiting = {}, [resolved["root"]]
    while waiting:
        crate = waiting.pop()
        if crate in found:
            continue
        is_built = [d["pkg"] for d in nodes[crate]["deps"] if any(k["kind"] != "dev" for k in d["dep_kinds"])]
        found[crate] = sorted(is_built)
        waiting += is_built
    return found


def purl(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package: dict, checksums: dict[tuple[str, str], str]) -> dict:
    """One crate. Cargo's older `MIT/Apache-2.0` is written as the SPDX expression that it means."""
    entry = {"type": "library", "bom-ref": purl(package), "name": package["name"], "version": package["version"], "purl": purl(package)}
    if package["license"]:
        expression = " OR ".join(word.strip() for word in package["license"].split("/"))
        entry["licenses"] = [{"expression": expression}]
    checksum = checksums.get((package["name"], package["version"]))
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return entry


def bill(root: pathlib.Path, triple: str, binary_sha256: str) -> dict:
    """The whole bill, for the binary with this checksum."""
    read = metadata(root, triple)
    packages = {package["id"]: package for package in read["packages"]}
    crates = needed(read["resolve"])
    lock = tomllib.loads((root / "Cargo.lock").read_text())["package"]
    checksums = {(p["name"], p["version"]): p["checksum"] for p in lock if "checksum" in p}
    top = read["resolve"]["root"]
    main = {**component(packages[top], {}), "type": "application", "hashes": [{"alg": "SHA-256", "content": binary_sha256}]}
    by_name = sorted(crates, key=lambda crate: purl(packages[crate]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"lifecycle-reaper/{binary_sha256}").urn,
        "version": 1,
        "metadata": {"component": main, "properties": [{"name": "cargo:target", "value": triple}]},
        "components": [component(packages[crate], checksums) for crate in by_name if crate != top],
        "dependencies": [{"ref": purl(packages[crate]), "dependsOn": [purl(packages[d]) for d in crates[crate]]} for crate in by_name],
    }


def write(root: pathlib.Path, triple: str, path: pathlib.Path, binary_sha256: str) -> None:
    """Writes the bill to `path`."""
    path.write_text(json.dumps(bill(root, triple, binary_sha256), indent=1) + "\n")
