"""The drain script under a real systemd: what it answers, and what becomes of the jobs."""

import http.server
import json
import re
import threading
import time

import pytest

import machine as machines


@pytest.fixture(scope="module")
def machine(needs):
    try:
        booted = machines.Machine()
    except machines.Impossible as problem:
        needs(f"systemd in namespaces: {problem}")
    yield booted
    booted.stop()


@pytest.fixture
def unit(machine, request):
    """Makes this test's own unit; a second one by another name."""
    base = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    return lambda suffix="", **settings: machines.Unit(machine, base + suffix, **settings)


def test_idle_manager_stops_at_once(unit):
    manager = unit().start()
    began = time.monotonic()
    answer, facts = manager.drain()
    assert answer == "stopped" and facts["result"] == "success"
    assert time.monotonic() - began < 5
    assert manager.happened() == ["started", "finished"]


@pytest.mark.parametrize("shell", ["dash", "bash", "bash --posix"])
def test_jobs_of_three_lengths_all_finish(unit, shell):
    manager = unit(jobs="0.5 2 3.5").start()
    assert manager.drain(shell=shell)[0] == "stopped"
    assert manager.happened() == ["started", "finished"]


def test_busy_past_the_wait_and_stopped_at_the_second_look(unit):
    manager = unit(jobs="4").start()
    answer, facts = manager.drain(wait=1)
    assert answer == "busy" and facts["active"] == "deactivating"
    assert manager.drain(wait=20)[0] == "stopped"
    assert manager.happened() == ["started", "finished"]


def test_it_waits_no_longer_than_asked(unit):
    manager = unit(jobs="30").start()
    began = time.monotonic()
    assert manager.drain(wait=2)[0] == "busy"
    assert 1 < time.monotonic() - began < 5


@pytest.mark.parametrize("code", ["0", "1", "by-signal"])
def test_sigterm_during_the_drain_is_no_graceful_stop(unit, code):
    manager = unit(jobs="30", ABORT_CODE=code).start()
    drain = manager.drain_begin()
    manager.until(lambda: manager.shown("ActiveState") == ["deactivating"])
    manager.machine.run("systemctl", "kill", "--signal=TERM", "--kill-who=main", manager.name)
    answer, facts = manager.drain_end(drain)
    assert answer == "aborted", facts
    assert "finished" not in manager.happened()


def test_sigkill_during_the_drain_is_no_graceful_stop(unit):
    manager = unit(jobs="30").start()
    drain = manager.drain_begin()
    manager.until(lambda: manager.shown("ActiveState") == ["deactivating"])
    manager.machine.run("systemctl", "kill", "--signal=KILL", manager.name)
    assert manager.drain_end(drain)[0] == "aborted"


def test_stopped_before_by_itself_still_counts_as_stopped(unit):
    manager = unit().start()
    assert manager.drain()[0] == "stopped"
    assert manager.drain()[0] == "stopped"


def test_stopped_before_by_sigterm_counts_as_aborted(unit):
    manager = unit(jobs="30").start()
    manager.machine.run("systemctl", "stop", manager.name)
    assert manager.happened() == ["started", "aborted"]
    assert manager.drain()[0] == "aborted"


def test_being_stopped_already_by_another_hand(unit):
    manager = unit(
        jobs="3", service="KillSignal=SIGQUIT\nKillMode=mixed\nTimeoutStopSec=0\nRestart=always"
    ).start()
    manager.machine.run("systemctl", "--no-block", "stop", manager.name)
    manager.until(lambda: manager.shown("ActiveState") == ["deactivating"])
    assert manager.drain(wait=1)[0] == "busy"
    assert manager.drain()[0] == "stopped"
    assert manager.happened() == ["started", "finished"]


def test_unit_that_is_not_enabled_keeps_its_result(unit):
    manager = unit(enabled=False, jobs="30", ABORT_CODE="by-signal").start()
    drain = manager.drain_begin()
    manager.until(lambda: manager.shown("ActiveState") == ["deactivating"])
    manager.machine.run("systemctl", "kill", "--signal=TERM", "--kill-who=main", manager.name)
    assert manager.drain_end(drain)[0] == "aborted"


def test_no_such_unit(unit):
    manager = unit()
    manager.name = "nobody-installed-it.service"
    assert manager.drain()[0] == "nothing-to-drain"


def test_unit_that_never_ran(unit):
    assert unit().drain()[0] == "nothing-to-drain"


def test_unit_that_cannot_start_again_and_again(unit):
    manager = unit(service="ExecStart=/bin/false\nRestart=always\nRestartSec=2")
    manager.machine.run("systemctl", "start", manager.name)
    manager.until(lambda: manager.shown("SubState") == ["auto-restart"])
    assert manager.drain()[0] == "aborted"
    time.sleep(3)
    assert manager.shown("ActiveState")[0] in ("inactive", "failed")


def test_unit_that_failed_for_good(unit):
    manager = unit(service="ExecStart=/bin/false\nRestart=no")
    manager.machine.run("systemctl", "start", manager.name)
    manager.until(lambda: manager.shown("ActiveState") == ["failed"])
    assert manager.drain()[0] == "aborted"


def test_it_is_not_restarted(unit):
    manager = unit(service="Restart=always\nRestartSec=100ms").start()
    assert manager.drain()[0] == "stopped"
    time.sleep(1.5)
    assert manager.shown("ActiveState", "NRestarts") == ["inactive", "0"]
    assert manager.happened() == ["started", "finished"]


def test_second_copy_while_the_first_waits(unit):
    manager = unit(jobs="4").start()
    first = manager.drain_begin()
    manager.until(lambda: manager.shown("ActiveState") == ["deactivating"])
    answer, facts = manager.drain()
    assert (answer, facts["reason"]) == ("busy", "another-copy-is-at-work")
    assert manager.drain_end(first)[0] == "stopped"


def test_a_copy_killed_half_way_leaves_the_drain_going(unit):
    manager = unit(jobs="5").start()
    first = manager.drain_begin()
    manager.until(lambda: manager.shown("ActiveState") == ["deactivating"])
    first.kill()
    manager.machine.run("pkill", "-KILL", "-f", "drain[.]sh")
    first.communicate()
    time.sleep(1.2)  # its last `sleep 1` still holds the lock
    assert manager.drain()[0] == "stopped"
    assert manager.happened() == ["started", "finished"]


def test_a_cancelled_command_still_answers(unit):
    manager = unit(jobs="30").start()
    drain = manager.drain_begin()
    manager.until(lambda: manager.shown("ActiveState") == ["deactivating"])
    manager.machine.run("pkill", "-TERM", "-f", "drain[.]sh")
    answer, facts = manager.drain_end(drain)
    assert (answer, facts["reason"]) == ("unknown", "script-ended-early")


def test_a_stop_command_of_the_units_own_is_not_run(unit):
    manager = unit(
        jobs="2", service="ExecStop=/bin/sh -c 'kill -TERM $MAINPID'\nTimeoutStopSec=1"
    ).start()
    assert manager.drain()[0] == "stopped"
    assert manager.happened() == ["started", "finished"]


def test_no_stop_is_begun_that_could_not_be_made_graceful(unit):
    manager = unit(jobs="30").start()
    manager.machine.write(
        f"/etc/systemd/system/{manager.name}.d/zzzz-hard.conf", "[Service]\nKillSignal=SIGTERM\n"
    )
    answer, facts = manager.drain()
    assert (answer, facts["reason"]) == ("unknown", "stop-is-not-graceful")
    assert manager.shown("ActiveState") == ["active"]


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("exit 0", "stopped"),
        ("exit 69", "nothing-to-drain"),
        ("exit 70", "aborted"),
        ("exit 75", "busy"),
        ("sleep 9", "busy"),
        ("exit 3", "unknown"),
    ],
)
def test_another_kind_of_manager_by_its_own_command(unit, command, answer):
    manager = unit(jobs="30").start()
    assert manager.drain(wait=1, STOP_COMMAND=f"echo noise; {command}")[0] == answer
    assert manager.shown("ActiveState") == ["active"]


class GitLab(http.server.ThreadingHTTPServer):
    """GitLab's side: one runner token that several managers share, by system id."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), GitLabRequest)
        self.managers = {("glrt-shared", "s_old"), ("glrt-shared", "s_new")}
        self.tokens = {"glrt-shared", "classic-token"}
        self.requests = []
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_port}"


class GitLabRequest(http.server.BaseHTTPRequestHandler):
    def do_DELETE(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((self.path, body))
        if (
            self.path == "/api/v4/runners"
        ):  # the request of the race: it takes the token from everybody
            self.server.tokens.discard(body["token"])
        elif self.path == "/api/v4/runners/managers":
            self.server.managers.discard((body["token"], body["system_id"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def gitlab():
    server = GitLab()
    yield server
    server.shutdown()
    server.server_close()


def write_config(manager, gitlab, token):
    folder = f"/run/config-{manager.name}"
    manager.machine.write(f"{folder}/.runner_system_id", "s_old\n")
    sections = "".join(
        f'[[runners]]\n  name = "a"\n  url = "{gitlab.url}/"\n  token = "{one}"\n  [runners.docker]\n    token = "glrt-not-this"\n'
        for one in token
    )
    manager.machine.write(f"{folder}/config.toml", f"concurrent = 4\n{sections}")
    return f"{folder}/config.toml"


def test_unregistering_is_off_by_default(unit, gitlab):
    manager = unit().start()
    assert (
        manager.drain(RUNNER_CONFIG=write_config(manager, gitlab, ["glrt-shared"]))[0] == "stopped"
    )
    assert gitlab.requests == []


def test_a_terminating_manager_cannot_take_its_successors_token(unit, gitlab):
    manager = unit(jobs="1").start()
    config = write_config(manager, gitlab, ["glrt-shared"])
    answer, facts = manager.drain(UNREGISTER="true", RUNNER_CONFIG=config)
    assert (answer, facts["unregistered"]) == ("stopped", "1")
    assert gitlab.requests == [
        ("/api/v4/runners/managers", {"token": "glrt-shared", "system_id": "s_old"})
    ]
    assert gitlab.managers == {("glrt-shared", "s_new")} and "glrt-shared" in gitlab.tokens


def test_tokens_of_other_kinds_are_never_sent(unit, gitlab):
    manager = unit().start()
    config = write_config(
        manager, gitlab, ["classic-token", "glrtr-abc", "GR1348941abc", "glrt-", 'glrt-x\\"y']
    )
    answer, facts = manager.drain(UNREGISTER="true", RUNNER_CONFIG=config)
    assert (answer, facts["unregistered"]) == ("stopped", "0")
    assert gitlab.requests == []


def test_nothing_is_unregistered_while_jobs_run_or_after_they_were_cut(unit, gitlab):
    manager = unit(jobs="30").start()
    config = write_config(manager, gitlab, ["glrt-shared"])
    assert manager.drain(wait=1, UNREGISTER="true", RUNNER_CONFIG=config)[0] == "busy"
    manager.machine.run("systemctl", "kill", "--signal=KILL", manager.name)
    manager.until(lambda: manager.shown("ActiveState") == ["failed"])
    assert manager.drain(UNREGISTER="true", RUNNER_CONFIG=config)[0] == "aborted"
    assert gitlab.requests == []


def test_a_gitlab_that_does_not_answer_holds_nothing_up(unit, gitlab):
    manager = unit().start()
    config = write_config(manager, gitlab, ["glrt-shared"])
    gitlab.shutdown()
    gitlab.server_close()
    answer, facts = manager.drain(UNREGISTER="true", RUNNER_CONFIG=config)
    assert (answer, facts["unregistered"]) == ("stopped", "0")


def test_only_what_systemd_219_knows():
    text = machines.SCRIPT.read_text()
    code = "\n".join(
        line for line in text.replace("\\\n", " ").splitlines() if not line.lstrip().startswith("#")
    )
    used = [call for call in re.findall(r"(?:systemctl|journalctl)\b[^|)\n]*", code)]
    assert len(used) >= 6
    options = {option for call in used for option in re.findall(r"(?<=\s)-{1,2}[a-z][a-z-]*", call)}
    assert options <= {
        "-p",
        "--no-block",
        "--quiet",
        "--no-pager",
        "--boot",
        "--output",
        "-q",
        "-i",
        "-e",
    }


def test_the_answer_waits_until_the_address_is_given_back(unit):
    """The unit of infra/instance, with scripts that only take their time."""
    manager = unit(jobs="1").start()
    lines = (
        (machines.HERE.parent / "instance" / "lifecycle-reaper-address.service")
        .read_text()
        .splitlines()
    )
    text = "\n".join(
        line for line in lines if not line.startswith(("After=", "Wants=", "EnvironmentFile="))
    )
    text = text.replace("gitlab-runner.service", manager.name).replace(
        "[Unit]", "[Unit]\nDefaultDependencies=no"
    )
    record = f"/run/address-{manager.name}"
    text = text.replace(
        "/usr/local/lib/lifecycle-reaper/address claim", f"/bin/sh -c 'echo claimed >>{record}'"
    )
    text = text.replace(
        "/usr/local/lib/lifecycle-reaper/address release",
        f"/bin/sh -c 'cat {manager.record} >>{record}; sleep 3; echo given-back >>{record}'",
    )
    manager.machine.write("/etc/systemd/system/lifecycle-reaper-address.service", text)
    manager.machine.run("systemctl", "daemon-reload")
    manager.machine.run("systemctl", "start", "lifecycle-reaper-address")
    assert manager.drain(wait=2)[0] == "busy"
    assert manager.drain()[0] == "stopped"
    # released only after the last job, and before the answer
    assert manager.machine.run("cat", record).stdout.split("\n")[:-1] == [
        "claimed",
        "started",
        "finished",
        "given-back",
    ]
