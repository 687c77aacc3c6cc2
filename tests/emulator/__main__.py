"""Runs the emulator by hand, with a function behind its queue if a command is given."""

import argparse
import json
import signal
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

from . import seeding
from .deployment import Deployment
from .server import Emulator
from .timeline import LOCK


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m emulator", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="loopback port (default: a free one)")
    parser.add_argument(
        "--seed", type=Path, help="JSON file of resources, as POST /_emulator/seed takes it"
    )
    parser.add_argument(
        "--timeout", type=float, default=60.0, help="the function's timeout in seconds"
    )
    parser.add_argument("--concurrency", type=int, default=2, help="how many batches at once")
    parser.add_argument(
        "--wait-factor",
        type=float,
        default=1.0,
        help="multiplies what messages wait between deliveries",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="environment of the function",
    )
    parser.add_argument(
        "command", nargs="*", help="the function, after --: any command that speaks the Runtime API"
    )
    return parser.parse_args()


def main() -> int:
    chosen = arguments()
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    variables = dict(setting.split("=", 1) for setting in chosen.set)
    with Emulator(chosen.port) as aws:
        deployment = None
        if chosen.command:
            deployment = aws.front.deployment = Deployment(
                aws,
                chosen.command,
                timeout=chosen.timeout,
                concurrency=chosen.concurrency,
                wait_factor=chosen.wait_factor,
                on_log=lambda line: print(line, flush=True),
                **variables,
            )
        if chosen.seed:
            with LOCK:
                seeding.seed(json.loads(chosen.seed.read_text()))
        for name, value in aws.client_environment().items():
            print(f"export {name}={value}", file=sys.stderr)
        if deployment:
            print(
                f"# the function takes messages from {deployment.queue_url(deployment.WORK)}",
                file=sys.stderr,
            )
            if chosen.wait_factor != 1.0:
                print(
                    f"# what messages wait between deliveries is multiplied by {chosen.wait_factor:g}",
                    file=sys.stderr,
                )
        print(
            f"# control API: {aws.endpoint}/_emulator/state; Ctrl-C stops everything",
            file=sys.stderr,
            flush=True,
        )
        with deployment or nullcontext():
            stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
