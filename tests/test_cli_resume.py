"""`eval --resume` after a kill, as its users meet it: what was answered and paid for is not asked for again."""

import json
import re
import signal
import subprocess
import sys
from math import ceil

import pytest
from command_line import TIMEOUT_S
from live_desk import SCENARIOS, LiveDesk
from messages_server import INTERPRETED, Reply, error_reply
from waiting import wait_until

HANGS = Reply(b"", hangs=True)
AGENT = """\
import json, sys, time
from pathlib import Path

folder = Path({folder!r})
message_id = json.loads(sys.stdin.readline())["email"]["message_id"]
with (folder / "started").open("a") as started:
    started.write(message_id + "\\n")
if (folder / "hang").exists() and message_id == "eval-valid_warranty_001":
    (folder / "hangs").touch()
    time.sleep(60)
"""


def kill(process: subprocess.Popen[str]) -> str:
    """What it had written to stderr."""
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == -signal.SIGKILL
    return errors


def taken_over(errors: str) -> int:
    found = re.search(r"^Resuming \S+: (\d+) results are taken over$", errors, re.MULTILINE)
    assert found is not None, errors
    return int(found[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "repeat", "jobs", "answers"),
    [("live", 1, 1, (3, 2)), ("live", 4, 1, (3, 6, 5)), ("live", 4, 3, (6, 1)), ("record", 1, 1, (3, 1))],
)
def test_a_live_run_that_is_killed_again_and_again_pays_for_no_result_twice(
    desk: LiveDesk, mode: str, repeat: int, jobs: int, answers: tuple[int, ...]
) -> None:
    options = ["--llm", mode, "--repeat", f"{repeat}", "--jobs", f"{jobs}", "--json", "report.json", "--resume"]
    least = most = 0
    for number in answers:
        desk.server.requests.clear()
        desk.server.replies = [*[INTERPRETED] * number, HANGS]
        process = desk.start(*options)
        wait_until(lambda: len(desk.server.requests) == number + jobs)  # noqa: B023 - called at once
        errors = kill(process)
        if most:
            assert least <= taken_over(errors) <= most
        # A result takes two answers, and each job was in the middle of one.
        least, most = least + ceil((number - jobs) / 2), most + number // 2

    desk.server.requests.clear()
    desk.server.replies = [INTERPRETED]
    done = desk.run(*options)

    assert done.returncode == 0
    kept, total = taken_over(done.stderr), len(SCENARIOS) * repeat
    assert least <= kept <= most
    assert len(desk.server.requests) == 2 * (total - kept)
    assert f"claude-sonnet-4-6: {2 * total} answers" in done.stdout
    report = json.loads((desk.folder / "report.json").read_bytes())
    assert (report["totals"]["passed"], report["interrupted"]) == (len(SCENARIOS), False)
    if mode == "record":
        replayed = desk.run("--llm", "replay", key=None)
        assert "Pass rate: 3/3 (100%)" in replayed.stdout


@pytest.mark.slow
def test_what_was_paid_before_a_kill_counts_under_the_cost_limit(desk: LiveDesk) -> None:
    desk.server.replies = [*[INTERPRETED] * 3, HANGS]
    process = desk.start("--llm", "live")
    wait_until(lambda: len(desk.server.requests) == 4)
    kill(process)
    desk.server.replies = [INTERPRETED]
    stopped = desk.run("--llm", "live", "--resume", "--max-cost", "0.0003")  # one and a half scenarios
    assert stopped.returncode == 4
    assert "Stopped: 1 of 3 scenarios ran" in stopped.stdout
    assert len(desk.server.requests) == 4


@pytest.mark.slow
def test_what_was_paid_for_no_result_before_a_stop_counts_when_it_goes_on(desk: LiveDesk) -> None:
    desk.server.replies = [*[INTERPRETED] * 3, error_reply(429, retry_after="3600")]
    stopped = desk.run("--llm", "live")
    assert "Stopped: 1 of 3 scenarios ran" in stopped.stdout
    assert "claude-sonnet-4-6: 3 answers" in stopped.stdout
    desk.server.replies = [INTERPRETED]
    assert "claude-sonnet-4-6: 7 answers" in desk.run("--llm", "live", "--resume").stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="agents as programs need Linux")
def test_an_agent_that_is_a_program_is_not_started_again_for_what_it_has_done(desk: LiveDesk) -> None:
    (desk.folder / "agent.py").write_text(AGENT.format(folder=str(desk.folder)), encoding="utf-8")
    (desk.folder / "hang").touch()
    options = ["--agent", f"command:{sys.executable} {desk.folder}/agent.py", "--json", "report.json", "--resume"]
    process = desk.start(*options)
    wait_until((desk.folder / "hangs").exists)
    kill(process)
    (desk.folder / "hang").unlink()

    done = desk.run(*options)

    assert taken_over(done.stderr) == 1
    first, second, third = (f"eval-{name}" for name in SCENARIOS)
    assert (desk.folder / "started").read_text().split() == [first, second, second, third]
    report = json.loads((desk.folder / "report.json").read_bytes())
    assert [result["scenario_id"] for result in report["results"]] == list(SCENARIOS)
    assert report["interrupted"] is False
