"""The package's own tests: what must not be packed is refused, and equal input gives equal output."""

import contextlib
import io
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest
import unittest.mock
import zipfile

import package
import sbom


def elf(machine: int = 62, glibc: str = "2.34") -> bytes:
    """As much of an ELF file as is looked at."""
    return b"\x7fELF\x02" + bytes(13) + struct.pack("<H", machine) + b"\0GLIBC_2.2.5\0GLIBC_" + glibc.encode() + b"\0"


class Binary(unittest.TestCase):
    def test_what_lambda_can_start_is_packed(self):
        package.check_binary(elf(), package.ARCHITECTURES["x86_64"])
        package.check_binary(elf(183, "2.17"), package.ARCHITECTURES["arm64"])

    def test_anything_else_is_refused_with_the_reason(self):
        cases = [(elf(183), "ELF machine 183"), (elf(glibc="2.35"), "glibc 2.35"), (elf(glibc="2.100"), "glibc 2.100"), (b"#!/bin/sh\n", "no 64-bit ELF")]
        for content, reason in cases:
            with self.subTest(reason), self.assertRaisesRegex(package.NoPackage, reason):
                package.check_binary(content, package.ARCHITECTURES["x86_64"])


class Cargo(unittest.TestCase):
    """Which command builds, on a machine that has only what a test puts into one folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.sysroot = pathlib.Path(folder.name)
        self.install("rustc", f'[ "$1" = -vV ] && echo "host: x86_64-unknown-linux-gnu" || echo "{self.sysroot}"')
        environment = unittest.mock.patch.dict(os.environ, {"PATH": folder.name})
        environment.start()
        self.addCleanup(environment.stop)
        os.environ.pop("RUSTC", None)

    def install(self, program: str, script: str = "") -> pathlib.Path:
        path = self.sysroot / program
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def install_arm64_library(self) -> None:
        (self.sysroot / "lib/rustlib/aarch64-unknown-linux-gnu/lib").mkdir(parents=True)

    def arm64(self) -> package.Cargo:
        return package.cargo(package.ARCHITECTURES["arm64"])

    def test_this_machines_architecture_needs_nothing_more(self):
        how = package.cargo(package.ARCHITECTURES["x86_64"])
        self.assertEqual(how.words, ["cargo", "build", "--release", "--locked", "--bin", "bootstrap"])
        self.assertEqual((how.environment, how.binary), ({}, package.TARGET / "release/bootstrap"))

    def test_rusts_own_linker_lays_like_beside_like(self):
        folder = self.sysroot / "lib/rustlib/x86_64-unknown-linux-gnu/bin/gcc-ld"
        folder.mkdir(parents=True)
        (folder / "ld.lld").touch()
        how = package.cargo(package.ARCHITECTURES["x86_64"])
        self.assertEqual(how.words[:6], ["cargo", "rustc", "--release", "--locked", "--bin", "bootstrap"])
        self.assertEqual(how.words[6:], ["--", *package.SIMILAR_TOGETHER])
        self.assertEqual(how.binary, package.TARGET / "release/bootstrap")
        # Zig's linker and the system's don't know the option.
        self.install("cargo-zigbuild")
        self.assertNotIn("--", package.cargo(package.ARCHITECTURES["x86_64"]).words)

    def test_what_the_other_one_lacks_is_said(self):
        self.install("aarch64-linux-gnu-gcc")
        with self.assertRaisesRegex(package.NoPackage, "standard library for aarch64-unknown-linux-gnu is not installed"):
            self.arm64()
        (self.sysroot / "aarch64-linux-gnu-gcc").unlink()
        self.install_arm64_library()
        with self.assertRaisesRegex(package.NoPackage, "neither aarch64-linux-gnu-gcc nor cargo-zigbuild"):
            self.arm64()

    def test_a_cross_compiler_compiles_c_and_links(self):
        self.install("aarch64-linux-gnu-gcc")
        self.install_arm64_library()
        how = self.arm64()
        self.assertEqual(how.words[-2:], ["--target", "aarch64-unknown-linux-gnu"])
        self.assertEqual(how.environment["CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER"], "aarch64-linux-gnu-gcc")
        self.assertEqual(how.environment["CC_aarch64_unknown_linux_gnu"], "aarch64-linux-gnu-gcc")
        self.assertEqual(how.binary, package.TARGET / "aarch64-unknown-linux-gnu/release/bootstrap")

    def test_zig_links_against_the_glibc_of_lambda_for_either(self):
        self.install("cargo-zigbuild")
        self.install_arm64_library()
        for name, triple in [("arm64", "aarch64-unknown-linux-gnu"), ("x86_64", "x86_64-unknown-linux-gnu")]:
            how = package.cargo(package.ARCHITECTURES[name])
            self.assertEqual((how.words[1], how.words[-2:]), ("zigbuild", ["--target", f"{triple}.2.34"]))
            self.assertEqual((how.environment, how.binary), ({}, package.TARGET / triple / "release/bootstrap"))

    def test_the_compiler_that_cargo_is_told_to_use_is_asked(self):
        os.environ["RUSTC"] = str(self.install("another-rustc", 'echo "host: aarch64-unknown-linux-gnu"'))
        self.assertEqual(self.arm64().words[1:], ["build", "--release", "--locked", "--bin", "bootstrap"])


class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.binary = self.folder / "bootstrap"
        self.binary.write_bytes(elf())

    def pack(self, name: str) -> list[pathlib.Path]:
        out = self.folder / name
        out.mkdir()
        with contextlib.redirect_stdout(io.StringIO()):
            return package.pack(package.ARCHITECTURES["x86_64"], self.binary, out)

    def test_the_zip_holds_one_executable_and_its_checksums_hold(self):
        archive, _, checksums = self.pack("out")
        with zipfile.ZipFile(archive) as opened:
            (entry,) = opened.infolist()
            self.assertEqual((entry.filename, entry.external_attr >> 16), ("bootstrap", 0o100755))
            self.assertEqual(opened.read(entry), elf())
        subprocess.run(["sha256sum", "--check", "--quiet", checksums.name], cwd=archive.parent, check=True)

    def test_equal_binaries_give_equal_packages(self):
        for one, other in zip(self.pack("one"), self.pack("other")):
            self.assertEqual(one.read_bytes(), other.read_bytes(), one.name)


class Tag(unittest.TestCase):
    def test_a_release_has_the_version_and_a_section_in_the_changelog(self):
        number = sbom.version(package.ROOT)
        package.check_tag(f"v{number}", f"# Changelog\n\n## {number}, 2026-01-01\n")
        for tag, changelog, reason in [(f"v{number}9", f"## {number}9", "Cargo.toml says"), (f"v{number}", "## Unreleased", "no section")]:
            with self.subTest(reason), self.assertRaisesRegex(package.NoPackage, reason):
                package.check_tag(tag, changelog)


class Bill(unittest.TestCase):
    def test_every_crate_that_the_binary_is_built_of_is_in_it_and_no_other(self):
        bill = sbom.bill(package.ROOT, "x86_64-unknown-linux-gnu", "0" * 64)
        names = {component["name"] for component in bill["components"]}
        self.assertLessEqual({"aws-sdk-ec2", "tokio", "rustls", "aws-lc-sys", "serde_derive"}, names)
        self.assertFalse({"proptest", "ring", "windows-sys", "lifecycle-reaper"} & names)
        self.assertTrue(all("licenses" in c and "hashes" in c for c in bill["components"]))

    def test_its_graph_is_closed_and_reaches_every_crate(self):
        bill = sbom.bill(package.ROOT, "x86_64-unknown-linux-gnu", "0" * 64)
        needs = {d["ref"]: d["dependsOn"] for d in bill["dependencies"]}
        reached, waiting = set(), [bill["metadata"]["component"]["bom-ref"]]
        while waiting:
            ref = waiting.pop()
            if ref not in reached:
                reached.add(ref)
                waiting += needs[ref]
        self.assertEqual(reached, set(needs))
        self.assertEqual(len(reached), len(bill["components"]) + 1)


if __name__ == "__main__":
    unittest.main()
