"""The settings of the emulated account: where it is, and how long its slow things take."""

import os
from dataclasses import dataclass, fields

ACCOUNT_ID = os.environ.get("EMULATOR_ACCOUNT_ID", "123456789012")
REGION = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "eu-central-1"


@dataclass
class Settings:
    """Durations are seconds. AWS takes minutes for most of these; tests can't wait so long."""

    shutting_down: float = 1.0
    """From `shutting-down` to `terminated`."""

    terminated_visible: float = 3600.0
    """How long DescribeInstances still lists a terminated instance."""

    health_check: float = 1.0
    """Until a group notices that one of its instances was terminated behind its back."""

    global_timeout: float | None = None
    """Caps every hook's GlobalTimeout below AWS's rule (100 heartbeats, at most 48 hours)."""

    spot_capacity: bool = True
    """False leaves new spot requests open."""

    page_size: int | None = None
    """Caps every page, so that small worlds are paged too."""

    empty_pages: bool = False
    """True puts an empty page with a NextToken before the first one, as AWS may."""

    def change(self, changes: dict) -> None:
        known = {field.name for field in fields(self)}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise ValueError(
                f"no such setting: {', '.join(unknown)}; there are {', '.join(sorted(known))}"
            )
        for name, value in changes.items():
            setattr(self, name, value)

    def reset(self) -> None:
        self.__init__()


SETTINGS = Settings()
