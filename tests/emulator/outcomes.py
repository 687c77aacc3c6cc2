"""What becomes of one command: its scripted outcome, and its status at each moment.

What the drain document prints is `answer`; everything else is what SSM says of a command that ends otherwise.
"""

import time
from dataclasses import dataclass, field

ANSWERS = ("stopped", "nothing-to-drain", "aborted", "busy", "unknown")
IN_FLIGHT = ("Pending", "InProgress", "Delayed", "Cancelling")
RESPONSE_CODES = {"Success": 0, "Failed": 1}


@dataclass
class Outcome:
    answer: str | None = None
    """One of the document's five answers: Success with its line on stdout."""
    status: str = "Success"
    status_details: str | None = None
    response_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    hidden: float = 0.0
    """Seconds in which GetCommandInvocation doesn't know it yet."""
    pending: float = 0.0
    """Seconds until it is delivered."""
    running: float = 0.0
    """Seconds from delivery to its end."""
    delivered: bool = True
    """False: pending until the delivery timeout of SendCommand, then timed out."""
    refuse: str | None = None
    """An error code with which SendCommand refuses, e.g. UnsupportedPlatformType."""

    def __post_init__(self) -> None:
        if self.answer is not None:
            if self.answer not in ANSWERS:
                raise ValueError(
                    f"the drain document never answers {self.answer!r}; it answers {', '.join(ANSWERS)}"
                )
            self.stdout = f"lifecycle-reaper: {self.answer} unit=gitlab-runner\n"


@dataclass
class Command:
    id: str
    document: str
    instance_id: str
    comment: str
    parameters: dict
    timeout: int
    outcome: Outcome
    sent_at: float = field(default_factory=time.time)
    cancelled: bool = False

    @property
    def ends_at(self) -> float:
        waiting = self.outcome.pending + self.outcome.running
        return self.sent_at + (waiting if self.outcome.delivered else self.timeout)

    def status(self) -> tuple[str, str]:
        """Status and StatusDetails as of now."""
        age, outcome = time.time() - self.sent_at, self.outcome
        if self.cancelled:
            return "Cancelled", "Cancelled"
        if not outcome.delivered:
            return (
                ("Pending", "Pending") if age < self.timeout else ("TimedOut", "DeliveryTimedOut")
            )
        if age < outcome.pending:
            return "Pending", "Pending"
        if age < outcome.pending + outcome.running:
            return "InProgress", "InProgress"
        return outcome.status, outcome.status_details or outcome.status
