"""A live run whose API refuses requests for now, as its users meet it: waiting, Ctrl-C, an end that can be resumed."""

import json
import os
import pty
import signal
import threading
from typing import Any

import pytest
from command_line import TIMEOUT_S, read_terminal
from live_desk import LiveDesk
from messages_server import INTERPRETED, MessagesServer, Reply, error_reply
from waiting import wait_until

pytestmark = pytest.mark.slow

LONG = error_reply(429, retry_after="290")
"""Nearly as long as a call waits at all, and far longer than a test does."""


class Screen:
    """Starts the program with a terminal as its stderr; `text` is what it showed there."""

    def __init__(self, desk: LiveDesk, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        with os.fdopen(theirs, "wb") as stderr:
            self.process = desk.start("--llm", "live", *arguments, stderr=stderr, TERM="xterm")
        self.text = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for piece in read_terminal(self._ours):
            self.text += piece

    def interrupt(self) -> tuple[int, str]:
        """Exit code and output."""
        self.process.send_signal(signal.SIGINT)
        printed, _ = self.process.communicate(timeout=TIMEOUT_S)
        self._reader.join()
        return self.process.returncode, printed


def report_of(desk: LiveDesk) -> dict[str, Any]:
    return json.loads((desk.folder / "report.json").read_bytes())


@pytest.mark.parametrize("options", [(), ("--fail-fast",), ("--jobs", "3"), ("--jobs", "3", "--fail-fast")])
def test_ctrl_c_ends_a_pause_at_once_with_what_came_until_then(desk: LiveDesk, options: tuple[str, ...]) -> None:
    desk.server.replies = [INTERPRETED, INTERPRETED, LONG]
    screen = Screen(desk, "--json", "report.json", *options)
    wait_until(lambda: "for the rate limit" in screen.text)
    assert ", waiting 5 min for the rate limit" in screen.text

    code, printed = screen.interrupt()

    assert code == 130
    report = report_of(desk)
    ran = 0 if "3" in options else 1  # three at a time have had an answer each, or two
    assert (report["interrupted"], report["totals"]["total"], report["totals"]["passed"]) == (True, ran, ran)
    assert f"Interrupted: {ran} of 3 scenarios ran" in printed
    assert "Up to 5 s" not in screen.text


def test_a_failure_ends_a_fail_fast_run_though_others_wait(desk: LiveDesk) -> None:
    choose(desk.server, {"SN12345": LONG}, otherwise=error_reply(400))  # what asks for no warranty comes first
    done = desk.run("--llm", "live", "--jobs", "3", "--fail-fast", "--only", "missing_info_001", "valid_warranty_001")
    assert done.returncode == 4
    assert "✗ Failed: 1" in done.stdout


def test_ctrl_c_in_the_grace_of_a_fail_fast_run_is_told_by_the_exit_code(desk: LiveDesk) -> None:
    choose(desk.server, {"SN12345": Reply(b"", hangs=True)}, otherwise=error_reply(400))
    screen = Screen(desk, "--jobs", "3", "--fail-fast", "--json", "report.json", "--only", "missing_*", "*_001")
    wait_until(lambda: "Up to 5 s for 1 scenario" in screen.text)
    assert screen.interrupt()[0] == 130
    assert (report_of(desk)["interrupted"], report_of(desk)["totals"]["failed"]) == (True, 1)


def test_a_run_goes_on_after_a_pause(desk: LiveDesk) -> None:
    desk.server.replies = [
        error_reply(429, retry_after="1"),
        INTERPRETED,
        error_reply(529, retry_after="1"),
        INTERPRETED,
    ]
    done = desk.run("--llm", "live", "--jobs", "3", "--json", "report.json")
    assert done.returncode == 0
    assert "Pass rate: 3/3 (100%)" in done.stdout
    assert "claude-sonnet-4-6: 6 answers" in done.stdout
    assert report_of(desk)["tokens"]["input"] == 6 * 12  # a refusal costs nothing


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_a_wait_of_an_hour_ends_the_run_which_can_be_resumed(desk: LiveDesk, jobs: str) -> None:
    desk.server.replies = [INTERPRETED, INTERPRETED, error_reply(429, "Too many", retry_after="3600")]
    stopped = desk.run("--llm", "live", "--jobs", jobs, "--json", "report.json")

    assert stopped.returncode == 4
    ran = 1 if jobs == "1" else 0  # of three at a time none has both of its answers
    assert (
        f"Stopped: {ran} of 3 scenarios ran, the gate is not decided: the model API asks to wait 60 min before the "
        "next request. Go on with --resume then\n" in stopped.stdout
    )
    report = report_of(desk)
    assert (report["interrupted"], report["totals"]["passed"], report["totals"]["failed"]) == (True, ran, 0)

    desk.server.requests.clear()
    desk.server.replies = [INTERPRETED]
    resumed = desk.run("--llm", "live", "--resume")
    assert resumed.returncode == 0
    assert f"{ran} results are taken over" in resumed.stderr
    assert len(desk.server.requests) == 6 - 2 * ran
    assert f"claude-sonnet-4-6: {8 - 2 * ran} answers" in resumed.stdout  # two were paid for no result


def test_without_a_store_nobody_is_told_to_resume(desk: LiveDesk) -> None:
    desk.server.replies = [error_reply(529, retry_after="3600")]
    done = desk.run("--llm", "live", "--no-store")
    assert done.returncode == 4
    assert "asks to wait 60 min before the next request\n" in done.stdout


def test_a_configured_limit_holds_over_all_scenarios(desk: LiveDesk) -> None:
    (desk.folder / "config.yaml").write_text("llm: {requests_per_minute: 4}\n")
    screen = Screen(desk, "--jobs", "3", "--json", "report.json")
    wait_until(lambda: ", waiting 1" in screen.text)  # up to 15 s for the fifth
    assert len(desk.server.requests) == 4
    assert screen.interrupt()[0] == 130


def test_replaying_waits_for_no_limit(desk: LiveDesk) -> None:
    assert desk.run("--llm", "record").returncode == 0
    (desk.folder / "config.yaml").write_text("llm: {requests_per_minute: 0.01}\n")
    replayed = desk.run("--llm", "replay", key=None)
    assert replayed.returncode == 0
    assert "Pass rate: 3/3 (100%)" in replayed.stdout


def test_a_limit_that_is_none_is_refused(desk: LiveDesk) -> None:
    (desk.folder / "config.yaml").write_text("llm:\n  requests_per_minute: 0\n")
    done = desk.run("--llm", "live")
    assert done.returncode == 2
    assert "config.yaml:2: llm.requests_per_minute: must be above 0" in done.stderr


def choose(server: MessagesServer, replies: dict[str, Reply], otherwise: Reply) -> None:
    """Replies by a word of the request."""
    take = server.take

    def chosen(request: dict[str, Any], headers: Any) -> Reply:
        words = json.dumps(request["messages"])
        server.replies = [next((reply for word, reply in replies.items() if word in words), otherwise)]
        return take(request, headers)

    server.take = chosen
