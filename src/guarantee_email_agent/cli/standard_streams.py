"""Standard streams that are closed (`>&-`), on a full disk, or a pipe whose reader has exited."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from guarantee_email_agent.utils.errors import AgentError


def open_closed_streams() -> None:
    """Python leaves None where a standard stream was closed; what is written there is to go to the null device."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


class BrokenPipeSafeStream:
    """stdout that ignores EPIPE (`eval | head -1`): the run goes on, and its exit code stays right."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.encoding = stream.encoding

    def reader_has_left(self) -> bool:
        """Whether it is a pipe or a terminal at whose other end nobody is any more."""
        if not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self._stream.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))

    def isatty(self) -> bool:
        return self._stream.isatty()

    def write(self, text: str) -> int:
        with _stdout_errors():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with _stdout_errors():
            self._stream.flush()


@contextmanager
def _stdout_errors() -> Iterator[None]:
    """Ignores a broken pipe; any other failure, such as a full disk, loses results and is an AgentError."""
    try:
        yield
    except BrokenPipeError:
        pass
    except OSError as error:
        raise AgentError(
            f"cannot write to stdout ({error.strerror}). Free some space, or redirect it", "cli_stdout_unwritable"
        ) from None


def flush_stdout() -> None:
    """Write what is still in the buffer. Raises AgentError where it cannot be written."""
    try:
        with _stdout_errors():
            sys.stdout.flush()
    finally:
        # The interpreter flushes once more at its end; what is still in the buffer then goes nowhere.
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
