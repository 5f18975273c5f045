"""`eval` as its users meet it: real processes, real pipes, a real terminal."""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import (
    LIST_MODULES,
    MODULE,
    NEVER_OFFLINE,
    TIMEOUT_S,
    Run,
    WriteSuite,
    environment,
    modules_of,
    read_terminal,
)

ROOT = Path(__file__).parents[1]


NO_NETWORK = """
import os, sys

def refuse(event, arguments):
    if event.startswith("socket.") and event not in ("socket.__new__", "socket.gethostname"):
        print("reached for the network:", event, file=sys.stderr)
        os._exit(99)

sys.addaudithook(refuse)
"""


@pytest.mark.slow
def test_the_shipped_suite_passes_from_an_empty_folder_without_network_or_client_library(run: Run) -> None:
    done = run("eval", program=[sys.executable, "-c", NO_NETWORK + LIST_MODULES])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "🎉 Eval passed! (≥99% threshold)" in done.stdout
    for name in ("valid-warranty", "invalid-warranty", "missing-info", "graceful-degradation", "out-of-scope"):
        assert f"    {name} " in done.stdout
    assert "    no-reply " in done.stdout
    assert set(done.stderr.splitlines()[-1].split()) & NEVER_OFFLINE == set()


def test_a_bad_configuration_is_told_with_every_line_and_ends_in_2(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("eval:\n  pass_threshold: much\nlogging:\n  levle: INFO\n", encoding="utf-8")
    done = run("eval")
    assert (done.returncode, done.stdout) == (2, "")
    first, second = done.stderr.splitlines()
    assert first.startswith("guarantee-email-agent: config.yaml:2: eval.pass_threshold")
    assert second.startswith("guarantee-email-agent: config.yaml:4: logging.levle")


@pytest.mark.parametrize("how", ["option", "variable"])
def test_a_configuration_can_be_named(how: str, run: Run, tmp_path: Path, suite: WriteSuite) -> None:
    suite(1, failed=1)
    config = tmp_path / "other.yaml"
    config.write_text("eval: {test_suite_path: scenarios, pass_threshold: 50}\n", encoding="utf-8")
    done = run("eval", "--config", config) if how == "option" else run("eval", env={"CONFIG_PATH": str(config)})
    assert done.returncode == 0
    assert "(≥50% threshold)" in done.stdout


def test_a_bad_instruction_file_is_told_with_file_and_line_and_ends_in_2(run: Run, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "instructions", tmp_path / "instructions")
    (tmp_path / "instructions" / "main.md").write_text("no frontmatter\n", encoding="utf-8")
    done = run("eval")
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"guarantee-email-agent: \S*main\.md:1: has no frontmatter\..*\n", done.stderr)


@pytest.mark.parametrize("mode", ["live", "record", "replay"])
def test_a_model_that_cannot_answer_ends_in_2_before_anything_runs(mode: str, run: Run) -> None:
    done = run("eval", "--llm", mode)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_without_verbose_a_good_run_says_on_stderr_only_which_files_are_the_built_in_ones(
    run: Run, suite: WriteSuite
) -> None:
    assert run("eval", "--eval-dir", suite(2)).stderr == (
        "Using the built-in config and instructions; 'guarantee-email-agent init' copies them here to edit\n"
    )


def test_an_invalid_file_is_told_on_stderr(run: Run, suite: WriteSuite) -> None:
    folder = suite(1)
    (folder / "valid_warranty_002.yaml").write_text("input: {}\n", encoding="utf-8")
    done = run("eval", "--eval-dir", folder)
    assert "ERROR Invalid eval file: valid_warranty_002.yaml - Missing field: scenario_id" in done.stderr


def log_lines(exit_code: int) -> list[str]:
    """What scripts look for in the log of a suite of two, in order."""
    return [
        "INFO Running in eval mode - using mocks",
        "INFO Using mocked integrations for eval",
        "INFO Discovered 2 eval test cases",
        "INFO Executing 1/2: valid_warranty_00001",
        "INFO Executing eval: valid_warranty_00001",
        "INFO Executing 2/2: valid_warranty_00002",
        "INFO Executing eval: valid_warranty_00002",
        r"INFO Eval suite completed in \d+\.\ds",
        f"INFO Exiting with code {exit_code}",
    ]


def assert_in_order(patterns: list[str], text: str) -> None:
    position = 0
    for pattern in patterns:
        match = re.compile(rf"^.* {pattern}$", re.MULTILINE).search(text, position)
        assert match, f"{pattern!r} is missing, or not where it belongs, in:\n{text}"
        position = match.end()


def test_verbose_shows_the_log_lines_on_stderr(run: Run, suite: WriteSuite) -> None:
    assert_in_order(log_lines(4), run("eval", "--eval-dir", suite(1, failed=1), "--verbose").stderr)


def test_a_log_file_always_has_the_log_lines(run: Run, suite: WriteSuite, tmp_path: Path) -> None:
    folder = suite(2)
    (tmp_path / "config.yaml").write_text("logging: {file: agent.log}\n", encoding="utf-8")
    done = run("eval", "--eval-dir", folder)
    assert "INFO" not in done.stderr
    assert_in_order(log_lines(0), (tmp_path / "agent.log").read_text(encoding="utf-8"))


def on_a_terminal(arguments: Sequence[str | Path], folder: Path, **env: str) -> str:
    """What the program writes to a terminal that is its stdout."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*MODULE, *map(str, arguments)],
        cwd=folder,
        env=environment(**env),
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    ) as child:
        os.close(theirs)
        written = "".join(read_terminal(ours))
        child.wait(TIMEOUT_S)
    return written.replace("\r\n", "\n")


def test_a_terminal_gets_colours(tmp_path: Path, suite: WriteSuite) -> None:
    written = on_a_terminal(["eval", "--eval-dir", suite(1, failed=1)], tmp_path, TERM="xterm")
    assert "\x1b[32m✓ valid_warranty_00001" in written
    assert "\x1b[31m✗ valid_warranty_00002" in written


def test_an_encoding_without_the_signs_gets_ascii(run: Run, suite: WriteSuite) -> None:
    done = run("eval", "--eval-dir", suite(1, failed=1), env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stdout.isascii()) == (4, True)
    assert "[PASS] valid_warranty_00001" in done.stdout
    assert "[FAIL] Eval failed (<99% threshold)" in done.stdout


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1", "TERM": "xterm"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colours_gets_none(setting: dict[str, str], tmp_path: Path, suite: WriteSuite) -> None:
    written = on_a_terminal(["eval", "--eval-dir", suite(1)], tmp_path, **setting)
    assert "✓ valid_warranty_00001" in written
    assert "\x1b" not in written


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_with_a_partial_summary(jobs: str, suite: WriteSuite, tmp_path: Path) -> None:
    folder = suite(300)
    with (
        (tmp_path / "errors").open("w+") as log,
        subprocess.Popen(
            [*MODULE, "eval", "--eval-dir", str(folder), "--repeat", "200", "--jobs", jobs, "--verbose"],
            cwd=tmp_path,
            env=environment(PYTHONUNBUFFERED="1"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            encoding="utf-8",
            start_new_session=True,
        ) as child,
    ):
        first_lines = [child.stdout.readline() for _ in range(3)]
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does, to every process of the group
        printed = "".join(first_lines) + child.stdout.read()
        code = child.wait(TIMEOUT_S)

    assert code == 130
    assert "Traceback" not in printed + (tmp_path / "errors").read_text(encoding="utf-8")
    match = re.search(r"^Interrupted: (\d+) of 300 scenarios ran, the gate is not decided$", printed, re.MULTILINE)
    assert match
    assert 2 <= int(match[1]) < 300
    assert "Eval passed" not in printed


NOT_FOR_A_PLAIN_SUITE = {
    "asyncio",
    "email.parser",
    "email.message",
    "html.parser",
    "subprocess",
    "concurrent.futures",
    "junitparser",
    "jinja2",
    "csv",
    "xml.etree.ElementTree",
    "tempfile",
    "ssl",
    "socket",
}


def test_a_plain_suite_runs_without_what_it_does_not_need(run: Run, suite: WriteSuite) -> None:
    loaded = modules_of(run, "eval", "--eval-dir", suite(3))
    assert loaded & (NEVER_OFFLINE | NOT_FOR_A_PLAIN_SUITE) == set()
