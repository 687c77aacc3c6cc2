"""The report: every resource with its verdict, the counts and API calls, and whether each expectation holds."""

import textwrap
from collections import Counter
from dataclasses import dataclass

from ..calls import Call
from ..runtime_api import Invocation
from .narrator import WIDTH, Narrator, cut, paint
from .world import Resource

COLUMNS = (("resource", 26), ("id", 20), ("verdict", 7), ("now", 10))
REASON_WIDTH = WIDTH - sum(width + 2 for _, width in COLUMNS)
OWNERS = {
    "M1": "M1, the manager that its group terminates",
    "M2": "M2, the manager that lives on",
    "prod-eu": "prod-eu, an environment whose name begins with ours",
}
MANAGER_REASONS = {
    "M1": "drained, released, and ended by its group",
    "M2": "in service: everything of its own is protected",
    "prod-eu": "not in a managed group",
}


@dataclass
class Expectation:
    text: str
    holds: bool
    found: str = ""


def heading(text: str) -> None:
    print(f"\n{paint(text, 'bold')}")


def row(cells: list[str], reason: str, colour: str | None = None) -> None:
    fixed = "  ".join(
        f"{cut(cell, width):<{width}}" for cell, (_, width) in zip(cells, COLUMNS, strict=True)
    )
    lines = textwrap.wrap(reason, REASON_WIDTH) or [""]
    print(f"{paint(fixed, colour)}  {lines[0]}")
    for line in lines[1:]:
        print(f"{'':{len(fixed)}}  {line}")


def table(resources: list[Resource], narrator: Narrator) -> None:
    heading("Every resource, and what became of it")
    row([title for title, _ in COLUMNS], "reason", "bold")
    for owner, title in OWNERS.items():
        print(paint(f"-- {title} ".ljust(WIDTH, "-"), "dim"))
        for resource in (r for r in resources if r.owner == owner):
            describe(resource, narrator)


def describe(resource: Resource, narrator: Narrator) -> None:
    decision = narrator.decisions.get(resource.id)
    now = resource.now().split(" with ")[0]
    if not resource.as_expected():
        now, colour = f"{now} !", "red"
    else:
        colour = "yellow" if resource.goes else "green"
    shown_id = f"...{resource.id[-17:]}" if resource.kind == "key pair" else resource.id
    row(
        [resource.what, shown_id, decision["verdict"] if decision else "-", now],
        reason(resource, decision, narrator),
        colour,
    )


def reason(resource: Resource, decision: dict | None, narrator: Narrator) -> str:
    if decision:
        return narrator.named(decision["message"])
    if resource.kind == "manager":
        return MANAGER_REASONS[resource.owner]
    return "never judged" if resource.goes else "not ours by its name: not looked at"


def counts(resources: list[Resource], calls: list[Call], invocations: list[Invocation]) -> None:
    heading("Counts")
    gone = Counter(
        resource.kind for resource in resources if resource.goes and resource.as_expected()
    )
    left = Counter(
        resource.kind for resource in resources if not resource.goes and resource.as_expected()
    )
    print("gone:       " + said(gone))
    print("untouched:  " + said(left))
    cold = [invocation for invocation in invocations if invocation.cold]
    spent = sum(invocation.seconds for invocation in invocations)
    print(f"function:   {len(invocations)} invocations, {len(cold)} cold, {spent:.2f} s in all")
    heading(f"API calls of the function: {len(calls)}")
    listed = Counter(call.name for call in calls).most_common()
    half = -(-len(listed) // 2)
    for left_cell, right_cell in zip(listed[:half], listed[half:] + [("", 0)], strict=False):
        cells = [
            f"{count:>4}  {name:<42}" if name else "" for name, count in (left_cell, right_cell)
        ]
        print("  ".join(cells).rstrip())


def said(counter: Counter) -> str:
    return (
        ", ".join(
            f"{count} {kind}{'es' if kind.endswith('s') else 's'}" if count > 1 else f"1 {kind}"
            for kind, count in counter.items()
        )
        or "nothing"
    )


def expectations(checked: list[Expectation]) -> bool:
    heading("Checked against the emulator")
    for expectation in checked:
        mark = paint("ok    ", "green") if expectation.holds else paint("FAILED", "red")
        print(f"{mark}  {expectation.text}")
        if not expectation.holds and expectation.found:
            print(textwrap.indent(textwrap.fill(f"found: {expectation.found}", WIDTH - 8), " " * 8))
    failed = [expectation for expectation in checked if not expectation.holds]
    verdict = f"{len(checked) - len(failed)} of {len(checked)} expectations hold"
    print(f"\n{paint(verdict, 'bold' if not failed else 'red')}")
    return not failed
