"""How the checks run: what can't run here is said loudly, and fails where CI=true."""

import os

import pytest

missing = []


@pytest.fixture(scope="session")
def needs():
    """Called when something that a check needs is not there: never a silent skip."""

    def give_up(what):
        missing.append(what)
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI must run this, and it needs {what}")
        pytest.skip(f"needs {what}")

    return give_up


def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    skipped, passed = len(stats.get("skipped", [])), len(stats.get("passed", []))
    failed = len(stats.get("failed", [])) + len(stats.get("error", []))
    for what in dict.fromkeys(missing):
        terminalreporter.write_line(f"NOT RUN here, needs {what}")
    if skipped:
        terminalreporter.write_line(f"{skipped} checks were SKIPPED")
    terminalreporter.write_line(f"{passed} passed, {failed} failed")
