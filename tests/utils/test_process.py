import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.process import parse_program, signals_as_ctrl_c


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """As they were."""
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("ctrl_c", [signal.default_int_handler, signal.SIG_IGN])
def test_signals_end_as_ctrl_c_does(ctrl_c: signal.Handlers, number: signal.Signals) -> None:
    """Also where Ctrl-C itself is ignored, as for a job in the background."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever started the tests with nohup
    signal.signal(signal.SIGINT, ctrl_c)
    with pytest.raises(KeyboardInterrupt), signals_as_ctrl_c():
        signal.raise_signal(number)


def test_who_started_it_with_nohup_may_hang_up() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signals_as_ctrl_c():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_handler_of_an_event_loop_gets_it() -> None:
    got: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: got.append(number))
    with signals_as_ctrl_c():
        signal.raise_signal(signal.SIGTERM)
    assert got == [signal.SIGINT]


def test_neither_the_process_nor_what_it_starts_leaves_a_core_file() -> None:
    child = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))"
    program = (
        "import subprocess, sys; from guarantee_email_agent.utils.process import forbid_core_files\n"
        f"forbid_core_files(); subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "(0, 0)\n"


def test_command_is_split_as_a_shell_does_it() -> None:
    assert parse_program("sh 'b c' {instruction}", "--command") == ("sh", "b c", "{instruction}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("a 'b", "Close the quotes"),
        ("nonesuch-program {instruction}", "there is no program 'nonesuch-program'"),
        ("/etc", "there is no program"),
        ("#! /nope/python\r\n", r"\./program: there is no program '/nope/python\\r', which its first line names"),
        ("#!/usr/bin/env nope\n", r"\./program: there is no program 'nope', which its first line names"),
        ("#!/usr/bin/env sh -u\n", r"\./program: there is no program 'sh -u', which its first line names"),
        ("#!/usr/bin/env -S A=1 nope -u\n", r"\./program: there is no program 'nope', which its first line names"),
        ("print('Hi')\n", r"\./program: its first line names no program that runs it\. Begin it with one, such as #!"),
    ],
)
def test_unusable_command_is_a_usage_error(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = Path("program")
    program.write_bytes(b"#!/usr/bin/env -S A=1 sh -u\n")
    program.chmod(0o755)
    assert parse_program("./program", "--command") == ("./program",)
    if text.endswith("\n"):
        text = str(program.write_bytes(text.encode()) and "./program")
    with pytest.raises(ConfigurationError, match=f"--command.*{message}"):
        parse_program(text, "--command")
