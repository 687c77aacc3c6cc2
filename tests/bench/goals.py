"""The goals, each with what was measured, so that nobody has to look them up in a table."""

from dataclasses import dataclass


@dataclass
class Goal:
    what: str
    measured: float
    limit: float
    unit: str
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def line(self) -> str:
        sign = "≥" if self.at_least else "≤"
        return f"| {self.what} | {sign} {self.limit:g} {self.unit} | {self.measured:.2f} {self.unit} | {'yes' if self.is_met else 'NO'} |"


def table(goals: list[Goal]) -> str:
    return "\n".join(["| goal | limit | measured | met |", "|---|---|---|---|", *(goal.line() for goal in goals)])
