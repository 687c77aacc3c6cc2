"""Everything in one run: cold starts interleaved, memory, passes over large worlds, and the Python peer's way beside ours.

    tests/bench/run [--rounds N] [--quick] [--build] [--json FILE]
"""

import argparse
import json
import sys
from dataclasses import asdict

from . import builds, environments, machine, passes
from .aws_stub import AwsStub
from .cold_start import Subject, measure_all
from .goals import Goal, table
from .worlds import World

MEDIANS = ("start", "first", "cold", "cpu", "warm", "idle", "peak")


def main() -> int:
    options = argparse.ArgumentParser(prog="tests/bench/run", description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=15, help="samples of each cold start (15)")
    options.add_argument("--quick", action="store_true", help="leave out what takes minutes: the Python peer's thousand look-ups")
    options.add_argument("--build", action="store_true", help="build the function even if a binary is there")
    options.add_argument("--json", metavar="FILE", help="write the results there too")
    options = options.parse_args()
    bootstrap, floors = builds.bootstrap(options.build), {name: builds.floor(name) for name in "ab"}
    facts = machine.facts(versions())
    stub = AwsStub()
    try:
        stub.show(World())
        subjects = cold_subjects(bootstrap, floors, stub.url)
        measure_all(list(subjects.values()), options.rounds, say)
        work = measure_passes(bootstrap, stub, options.quick)
    finally:
        stub.close()
    zipped = builds.zipped(bootstrap) / 1024 / 1024
    goals = all_goals(subjects, work, zipped)
    print("\n\n".join([machine_table(facts), cold_table(subjects), pass_table(work), table(goals)]))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result(facts, subjects, work, goals), file, indent=2)
    return 0


def say(text: str) -> None:
    print(text, file=sys.stderr)


def versions() -> dict[str, str]:
    import awslambdaric
    import boto3

    return {"boto3": boto3.__version__, "awslambdaric": awslambdaric.__version__}


def cold_subjects(bootstrap, floors, url: str) -> dict[str, Subject]:
    """What is started cold. The AWS calls go to the stub over plain HTTP; the trust store is loaded by whoever would connect over TLS."""
    ours, aws, python = [str(bootstrap)], environments.of_aws(url), environments.of_python(url)
    settings, one_file = environments.of_ours(url), environments.one_ca_file()
    event = environments.event

    def peer(handler: str) -> list[str]:
        return [sys.executable, "-m", "awslambdaric", f"function.{handler}"]

    subjects = [
        Subject("floor A: empty function", [str(floors["a"])], {}, b"{}"),
        Subject("floor B: A, ready to call AWS", [str(floors["b"])], aws, b"{}"),
        Subject("floor B, one call", [str(floors["b"])], aws, b'{"call":true}'),
        Subject("floor B, one call, CA bundle of one file", [str(floors["b"])], aws | one_file, b'{"call":true}'),
        Subject("ours, test notification", ours, settings, event("sqs-test-notification")),
        Subject("ours, another group's event", ours, settings, event("sqs-other-group")),
        Subject("ours, sweep (5 calls)", ours, settings, event("direct-sweep")),
        Subject("ours, sweep, CA bundle of one file", ours, settings | one_file, event("direct-sweep")),
        Subject("ours, termination of a gone manager", ours, settings, event("sqs-termination-hook")),
        Subject("Python, no call", peer("idle"), python, b"{}"),
        Subject("Python, the sweep's calls", peer("reads"), python, b"{}"),
    ]
    return {subject.name: subject for subject in subjects}


def measure_passes(bootstrap, stub: AwsStub, quick: bool) -> dict[str, object]:
    """The larger worlds, each pass in a process of its own."""
    work: dict[str, object] = {}
    for latency in (0.0, 0.02, 0.15):
        say(f"a sweep over 1,000 workers of 100 managers, {latency * 1000:.0f} ms a call")
        work[f"1,000 workers, 100 managers, {latency * 1000:.0f} ms a call"] = passes.sweep(bootstrap, stub, *passes.fleet(latency), warm=True)
    say("a sweep over 10,000 instances and 4,000 keys")
    work["10,000 instances, 4,000 keys, all ours"] = passes.sweep(bootstrap, stub, World(managers=900, workers=9100, keys=4000))
    work["10,000 instances of others, no keys"] = passes.sweep(bootstrap, stub, World(strangers=10_000))
    say("the CPU time of a page")
    work["page judged"] = passes.cpu_of_a_page(bootstrap, stub, judged=True)
    work["page of others"] = passes.cpu_of_a_page(bootstrap, stub, judged=False)
    if not quick:
        say("the Python peer's look-ups, one after the other (half a minute)")
        work["peer"] = passes.serial_look_ups(stub, 0.02)
    return work


def machine_table(facts: dict[str, str]) -> str:
    return "\n".join(["| machine | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts.items())])


def cold_table(subjects: dict[str, Subject]) -> str:
    floor, python = subjects["floor A: empty function"], subjects["Python, no call"]
    # Ratios are of the fastest samples; everything else is a median.
    lines = [
        "| medians | start ms | first ms | start + first ms | its CPU ms | its fastest ms | × floor A | Python is × | warm ms | idle MiB | peak MiB |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for subject in subjects.values():
        start, first, cold, cpu, warm, idle, peak = (subject.median(what) for what in MEDIANS)
        fastest = subject.fastest()
        ratios = f"{fastest:.2f} | {fastest / floor.fastest():.1f} | {python.fastest() / fastest:.0f}"
        lines.append(f"| {subject.name} | {start:.2f} | {first:.2f} | {cold:.2f} | {cpu:.2f} | {ratios} | {warm:.2f} | {idle:.1f} | {peak:.1f} |")
    return "\n".join(lines)


def pass_table(work: dict[str, object]) -> str:
    lines = ["| one sweep | reads | writes to EC2 | wall ms | CPU ms | peak MiB |", "|---|---|---|---|---|---|"]
    for name, measured in work.items():
        if isinstance(measured, passes.Pass):
            lines.append(
                f"| {name} | {measured.reads} | {measured.writes} | {measured.wall * 1000:.0f} | {measured.cpu:.0f} | {measured.peak:.1f} |"
            )
    lines.append(f"\nCPU for a page of 1,000 instances: {work['page judged']:.1f} ms judged and logged, {work['page of others']:.1f} ms of others.")
    if "peer" in work:
        calls, seconds = work["peer"]
        lines.append(f"The Python peer's way at 20 ms a call: {calls} calls one after the other, {seconds:.1f} s.")
    return "\n".join(lines)


def all_goals(subjects: dict[str, Subject], work: dict[str, object], zipped: float) -> list[Goal]:
    cold = {name: subject.fastest() for name, subject in subjects.items()}
    a, b, python = cold["floor A: empty function"], cold["floor B: A, ready to call AWS"], cold["Python, no call"]
    quiet, busy = "ours, test notification", "ours, sweep (5 calls)"
    large = work["10,000 instances, 4,000 keys, all ours"]
    fleet = work["1,000 workers, 100 managers, 20 ms a call"]
    return [
        Goal("cold, an event without a call", cold[quiet] / a, 2, "× A"),
        Goal("cold, another group's event", cold["ours, another group's event"] / a, 2, "× A"),
        Goal("cold, a sweep with its 5 calls (B makes none)", cold[busy] / b, 1, "× B"),
        Goal("cold, a sweep with its 5 calls, B with one", cold[busy] / cold["floor B, one call"], 1, "× B"),
        Goal("Python against ours, no call", python / cold[quiet], 50, "×", at_least=True),
        Goal("Python against ours, the same calls", cold["Python, the sweep's calls"] / cold[busy], 50, "×", at_least=True),
        Goal("idle memory", max(subject.median("idle") for name, subject in subjects.items() if name.startswith("ours")), 10, "MiB"),
        Goal("peak memory, 10,000 instances and 4,000 keys", large.peak, 32, "MiB"),
        Goal("the zip", zipped, 3, "MiB"),
        Goal("reads for 1,000 workers of 100 managers", fleet.reads, 19, "calls"),
        Goal("the same pass at 20 ms a call", fleet.wall, 1, "s"),
        Goal("CPU of a page of 1,000 instances", work["page judged"], 20, "ms"),
    ]


def result(facts: dict, subjects: dict[str, Subject], work: dict, goals: list[Goal]) -> dict:
    return {
        "machine": facts,
        "cold": {name: {what: subject.median(what) for what in MEDIANS} | {"fastest": subject.fastest()} for name, subject in subjects.items()},
        "passes": {name: value.shown() if isinstance(value, passes.Pass) else value for name, value in work.items()},
        "goals": [asdict(goal) | {"is_met": goal.is_met} for goal in goals],
    }


if __name__ == "__main__":
    sys.exit(main())
