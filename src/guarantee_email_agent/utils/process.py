"""How this process behaves: the signals that end it, no core files, and imports without garbage collection."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable


@contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a run as Ctrl-C does, so that nothing is left behind, and no token is lost.

    For commands that work something off. SIGHUP stays ignored where it is, as by `nohup`. In another thread than the
    first one, which alone gets signals, it does nothing. May be nested: the handlers that were there before come back.
    """

    def end(_number: int, _frame: object) -> None:
        if callable(signal.getsignal(signal.SIGINT)):
            # An event loop that runs has a handler of its own, and ends a request as it should be ended.
            signal.raise_signal(signal.SIGINT)
        else:  # ignored, as for a job in the background
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # no other one may
        yield
        return
    taken = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        taken.append(signal.SIGHUP)
    with signals_handled(taken, end):
        yield


@contextmanager
def signals_handled(numbers: Iterable[int], handler: Callable[[int, Any], object]) -> Iterator[None]:
    """Until the block ends, when the handlers that were there before come back. For the first thread alone."""
    former = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in former.items():
            signal.signal(number, earlier)


def forbid_core_files() -> None:
    """Of this process, and of those that it starts."""
    import resource  # few commands need it

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextmanager
def gc_paused() -> Iterator[None]:
    """For imports, whose many objects all stay: collecting garbage among them takes a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def parse_program(text: str, option: str) -> tuple[str, ...]:
    """The program and its arguments, split as a shell does it; no shell is used.

    option: what the message calls it. Raises ConfigurationError for an empty text, one whose quotes do not close, and
    where there is no such program, or not the one that its first line names.
    """
    import shlex  # start-up: few commands start a program

    try:
        parts = tuple(shlex.split(text))
    except ValueError as error:
        raise ConfigurationError(f"{option}: {error}. Close the quotes", "cli_bad_command") from None
    if not parts:
        raise ConfigurationError(f"{option} is empty. Name the program that does the work", "cli_bad_command")
    if (found := shutil.which(parts[0])) is None:
        problem = f"{option}: there is no program {printable(parts[0])!r:.200} to run. Correct its name or its path"
        raise ConfigurationError(problem, "cli_bad_command")
    with suppress(OSError), open(found, "rb") as file:
        if (wrong := _interpreter_problem(file.readline(256))) is not None:
            raise ConfigurationError(f"{option}: {printable(found)}: {wrong}", "cli_bad_command")
    return parts


def _interpreter_problem(line: bytes) -> str | None:
    """line: the first one of a program."""
    if not line.startswith(b"#!"):
        remedy = "Begin it with one, such as #!/usr/bin/env python3"
        return None if b"\0" in line else f"its first line names no program that runs it. {remedy}"
    # The system, too, leaves a carriage return where it is, and splits no arguments.
    named, _, argument = line[2:].replace(b"\t", b" ").strip(b" \n").partition(b" ")
    known = os.access(named, os.X_OK)
    if known and os.path.basename(named) == b"env" and (argument := argument.strip(b" ")):
        words = argument.removeprefix(b"-S").split() if argument.startswith(b"-S") else [argument]
        named = next((word for word in words if b"=" not in word and word[:1] != b"-"), b"env")
        known = shutil.which(os.fsdecode(named)) is not None
    shown = named.decode(errors="replace")
    return None if known else f"there is no program {shown!r:.200}, which its first line names. Correct it"
