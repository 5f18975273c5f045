"""`eval --llm` as its users meet it: real processes, and a server on loopback in place of the API."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from command_line import TIMEOUT_S, environment
from live_desk import EVAL, KEY, LiveDesk
from messages_server import INTERPRETED, Reply, answer, error_reply, tool_call
from waiting import wait_until

pytestmark = pytest.mark.slow

BUILT_IN = "Using the built-in config and instructions; 'guarantee-email-agent init' copies them here to edit\n"
BUILT_IN_INSTRUCTIONS = BUILT_IN.replace("config and ", "")
GRACE = "Up to 5 s for 1 scenario that had begun; Ctrl-C again gives them up\n"


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_suite_is_recorded_and_replayed_without_key_network_sdk_or_event_loop(desk: LiveDesk, provider: str) -> None:
    pytest.importorskip(provider, reason=f"{provider} is not installed: uv sync --group ci")
    (desk.folder / "config.yaml").write_text(f"llm: {{provider: {provider}}}\n")
    recorded = desk.run("--llm", "record", "--jobs", "2")

    assert (recorded.returncode, recorded.stderr) == (0, BUILT_IN_INSTRUCTIONS)
    assert "Pass rate: 3/3 (100%)" in recorded.stdout
    assert len(desk.recorded()) == 6
    assert KEY not in recorded.stdout + "".join(path.read_text(encoding="utf-8") for path in desk.recorded())

    asked = len(desk.server.requests)
    program = (
        "import sys; from guarantee_email_agent.cli import run; code = run(sys.argv[1:]);"
        "heavy = {'anthropic', 'asyncio', 'httpx2', 'mcp', 'openai', 'sqlalchemy'};"
        "print(sorted(heavy.intersection(sys.modules)));"
        "sys.exit(code)"
    )
    replayed = desk.run("eval", "--llm", "replay", key=None, command=[sys.executable, "-c", program])

    assert (replayed.returncode, replayed.stderr) == (0, BUILT_IN_INSTRUCTIONS)
    *lines, loaded = replayed.stdout.splitlines()
    assert loaded == "[]"
    expected = [line for line in recorded.stdout.splitlines()[:-1] if not line.startswith("Duration")]
    assert [line for line in lines if not line.startswith("Duration")] == expected
    assert len(desk.server.requests) == asked


@pytest.mark.parametrize("mode", ["live", "record"])
def test_without_a_key_nothing_runs_and_nothing_is_made(desk: LiveDesk, mode: str) -> None:
    done = desk.run("--llm", mode, key=None)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("guarantee-email-agent: ANTHROPIC_API_KEY is not set. Set it in the environment")
    assert not desk.recordings.exists()


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"ANTHROPIC_BASE_URL": "http://user:canary/word@h"}, "ANTHROPIC_BASE_URL is no address of a server. Set it"),
        (
            {"SSL_CERT_FILE": "/canary"},
            "The environment lets nobody connect. Correct SSL_CERT_FILE, SSL_CERT_DIR, or remove",
        ),
    ],
)
def test_an_environment_without_a_way_out_is_one_line_that_names_the_variable(
    desk: LiveDesk, variables: dict[str, str], says: str
) -> None:
    done = desk.run("--llm", "live", **variables)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"guarantee-email-agent: {says}")
    assert "canary" not in line


def test_an_interrupted_recording_keeps_the_scenarios_that_are_complete(desk: LiveDesk) -> None:
    desk.server.replies = [
        INTERPRETED,
        INTERPRETED,
        INTERPRETED,
        Reply(b"", hangs=True),
    ]  # the second scenario's choice
    process = desk.start("--llm", "record")
    wait_until(lambda: len(desk.server.requests) == 4)
    process.send_signal(signal.SIGINT)
    assert _next_line(process) == GRACE
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=TIMEOUT_S)

    assert (process.returncode, errors) == (130, BUILT_IN)
    assert "Interrupted: 1 of 3 scenarios ran, the gate is not decided" in printed
    names = [path.relative_to(desk.recordings).as_posix().rpartition("-")[0] for path in desk.recorded()]
    assert names == ["missing_info_001/run01-01-triage", "missing_info_001/run01-02-choice"]

    replayed = desk.run("--llm", "replay", "--only", "missing_*", key=None)
    assert replayed.returncode == 0


def test_what_is_answered_within_the_grace_is_kept_and_not_paid_for_again(desk: LiveDesk) -> None:
    let_go = threading.Event()
    body = answer(tool_call("choose_sentences", {"ids": []})).body
    desk.server.replies = [INTERPRETED, INTERPRETED, INTERPRETED, Reply(body, held_until=let_go), INTERPRETED]
    process = desk.start("--llm", "live")
    wait_until(lambda: len(desk.server.requests) == 4)
    process.send_signal(signal.SIGTERM)
    assert _next_line(process) == GRACE
    let_go.set()
    printed, _ = process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 130
    assert "Interrupted: 2 of 3 scenarios ran, the gate is not decided" in printed
    assert "claude-sonnet-4-6: 4 answers" in printed

    resumed = desk.run("--llm", "live", "--resume")
    assert len(desk.server.requests) == 6
    assert "claude-sonnet-4-6: 6 answers" in resumed.stdout


def test_a_run_that_was_stopped_for_its_cost_goes_on_with_a_higher_limit(desk: LiveDesk) -> None:
    stopped = desk.run("--llm", "live", "--max-cost", "0.0003")
    assert stopped.returncode == 4
    assert "Stopped: 1 of 3 scenarios ran, the gate is not decided: " in stopped.stdout

    done = desk.run("--llm", "live", "--resume", "--max-cost", "1")
    assert done.returncode == 0
    assert "Pass rate: 3/3 (100%)" in done.stdout
    assert len(desk.server.requests) == 6


def test_stderr_that_closes_ends_no_run(desk: LiveDesk) -> None:
    desk.server.replies = [error_reply(400)]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        process = subprocess.run(
            [*EVAL, "--llm", "live", "--no-store"],
            cwd=desk.folder,
            env=environment(**desk.environment()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=closed,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert process.returncode == 4
    assert b"Pass rate: 0/3" in process.stdout


def _next_line(process: subprocess.Popen[str]) -> str:
    return process.stderr.readline()


def test_a_dead_api_is_a_failed_suite_that_says_why(desk: LiveDesk) -> None:
    desk.server.stop()
    done = desk.run("--llm", "live")
    assert done.returncode == 4
    # Each of the three says it, and the summary once more what they share.
    assert done.stdout.count("    agent: stopped in step triage: The model API cannot be reached") == 3
    assert done.stdout.count("Check the network and ANTHROPIC_BASE_URL") == 4
