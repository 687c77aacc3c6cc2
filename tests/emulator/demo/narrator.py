"""The narrator prints what happens as it happens: the demo's steps, AWS's events, the function's decisions."""

import json
import os
import sys
import threading
import time

WIDTH = 100
CODES = {
    "dim": "2",
    "bold": "1",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}
LEVEL_COLOURS = {"ERROR": "red", "WARN": "yellow"}


def colours_wanted() -> bool:
    return (
        sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def paint(text: str, colour: str | None) -> str:
    return f"\x1b[{CODES[colour]}m{text}\x1b[0m" if colour and colours_wanted() else text


def cut(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


class Narrator:
    def __init__(self, verbose: bool = False) -> None:
        self.verbose = verbose
        self.names: dict[str, str] = {}
        """What to call a resource, by id."""
        self.decisions: dict[str, dict] = {}
        """The function's latest decision on each resource, by id; one to delete it stays."""
        self._began = time.time()
        self._lock = threading.Lock()

    def named(self, text: str) -> str:
        for resource_id, name in list(self.names.items()):
            text = text.replace(resource_id, name)
        return text

    def say(self, who: str, text: str, colour: str | None = None) -> None:
        with self._lock:
            clock = paint(f"{time.time() - self._began:5.1f} s", "dim")
            print(
                f"{clock}  {paint(f'{who:<8}', 'cyan')}  {paint(cut(self.named(text), WIDTH - 19), colour)}",
                flush=True,
            )

    def step(self, text: str) -> None:
        self.say("demo", text, "bold")

    def hear_aws(self, event: dict) -> None:
        """An EventBridge event, in words."""
        detail, kind = event["detail"], event["detail-type"]
        if kind == "EC2 Instance State-change Notification":
            self.say("ec2", f"{detail['instance-id']} is {detail['state']}")
        elif kind == "EC2 Instance-terminate Lifecycle Action":
            self.say(
                "group",
                f"{detail['EC2InstanceId']} waits in Terminating:Wait, the hook has told the work queue",
            )
        elif kind == "EC2 Command Invocation Status-change Notification":
            self.say(
                "ssm", f"the drain command on {detail['instance-id']} ended: {detail['status']}"
            )
        elif kind == "EC2 Instance Terminate Successful":
            self.say("group", f"{detail['EC2InstanceId']} has left the group")

    def hear_function(self, line: str) -> None:
        if self.verbose:
            self.say("log", line, "dim")
        try:
            entry = json.loads(line)
        except ValueError:
            return self.say("function", line, "yellow")
        if "verdict" in entry and "id" in entry:
            return self.hear_decision(entry)
        if str(entry.get("message", "")).startswith("batch:"):
            return None
        about = entry.get("instance_id") or entry.get("id") or ""
        text = f"{about}: {entry.get('message', '')}" if about else entry.get("message", "")
        if entry.get("level") in ("ERROR", "WARN", "INFO") and not self.verbose:
            self.say("function", text, LEVEL_COLOURS.get(entry["level"]))

    def hear_decision(self, entry: dict) -> None:
        known = self.decisions.get(entry["id"])
        if known is None or (known["verdict"] != "reap" and known["verdict"] != entry["verdict"]):
            self.decisions[entry["id"]] = entry
            colour = {"reap": "red", "keep": "green"}.get(entry["verdict"], "yellow")
            if not self.verbose:
                self.say(
                    "decides",
                    f"{entry['verdict']:<7} {self.names.get(entry['id'], entry['id'])}: {entry['message']}",
                    colour,
                )
