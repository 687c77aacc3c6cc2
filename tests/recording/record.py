"""A recording is what a command printed on a terminal, with the times, drawn as an SVG picture.

    record.py docs/pictures/plan.svg -- command...            the whole output, standing still
    record.py --moving docs/pictures/demo.svg -- command...   as it came, line by line

The command's exit code is the script's: a picture of a failure is not written. Paths of this machine are left out.
"""

import argparse
import os
import pathlib
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from dataclasses import dataclass
from fcntl import ioctl

import drawing

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = 100
OTHER_SEQUENCES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-ln-z]|\][^\x07]*\x07|[()][A-Z0-9])")


@dataclass
class Line:
    """One line as it stood when it ended, colours still in it."""

    at: float
    text: str


def run(command: list[str], give_up_after: float) -> tuple[list[Line], int]:
    """Runs `command` on a terminal of its own; shows what it prints, and returns it with the exit code."""
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "CARGO_TERM_PROGRESS_WHEN": "never", "MAKEFLAGS": ""}
    began = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execvpe(command[0], command, environment)
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    lines, unfinished = [], ""
    try:
        while time.monotonic() - began < give_up_after:
            if not select.select([terminal], [], [], 1)[0]:
                continue
            try:
                chunk = os.read(terminal, 65536)
            except OSError:  # the other end is closed
                chunk = b""
            if not chunk:
                break
            sys.stdout.buffer.write(chunk)
            sys.stdout.flush()
            *ended, unfinished = (unfinished + chunk.decode(errors="replace")).split("\n")
            lines += [Line(time.monotonic() - began, clean(text)) for text in ended]
        else:
            os.kill(pid, signal.SIGTERM)
            print(f"\ngave up after {give_up_after:g} s", file=sys.stderr)
    finally:
        os.close(terminal)
    _, status = os.waitpid(pid, 0)
    if unfinished.strip():
        lines.append(Line(time.monotonic() - began, clean(unfinished)))
    return lines, os.waitstatus_to_exitcode(status)


def clean(text: str) -> str:
    """What stands in the line in the end, without this machine's paths."""
    text = OTHER_SEQUENCES.sub("", text.rstrip("\r")).rsplit("\r", 1)[-1]
    return text.replace(str(ROOT), ".").replace(str(pathlib.Path.home()), "~").expandtabs(8)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moving", action="store_true")
    parser.add_argument("--rows", type=int, default=32, help="height of a moving picture")
    parser.add_argument("--show", help="the command to show in the first line, where it differs")
    parser.add_argument("--give-up-after", type=float, default=600.0)
    parser.add_argument("picture", type=pathlib.Path)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    lines, code = run(arguments.command, arguments.give_up_after)
    if code:
        print(f"not written: the command ended with {code}", file=sys.stderr)
        return code if code > 0 else 1
    prompt = Line(0.0, f"\x1b[1m$ {arguments.show or ' '.join(arguments.command)}\x1b[0m")
    screen = [prompt, *lines]
    svg = drawing.moving(screen, COLUMNS, arguments.rows) if arguments.moving else drawing.still(screen, COLUMNS)
    arguments.picture.parent.mkdir(parents=True, exist_ok=True)
    arguments.picture.write_text(svg)
    print(f"{arguments.picture}: {len(screen)} lines, {len(svg) / 1024:.0f} KiB", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
