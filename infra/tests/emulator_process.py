"""The repository's own AWS emulator (tests/emulator) as a process: `emulator_process.py` prints its endpoint and
serves until standard input closes. Run by tests/emulator/python, which has what the emulator needs."""

import sys

from emulator.server import Emulator

if __name__ == "__main__":
    with Emulator() as aws:
        print(aws.endpoint, flush=True)
        sys.stdin.read()
