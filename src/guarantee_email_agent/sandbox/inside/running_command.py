"""A command that runs, what it prints, and what ends it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from guarantee_email_agent.isolation.processes import kill_group

from .process_starter import ProcessStarter

KEPT_BYTES: Final = 1 << 20
"""Of what a command prints, this much of the beginning and as much of the end is kept."""
SHOWN_CHARACTERS: Final = 30_000
"""How much of it a reply shows, unless all of it is asked for."""


class CapturedOutput:
    """The beginning and the end of a stream that may be endless."""

    __slots__ = ("_end", "_start", "total")

    def __init__(self) -> None:
        self._start = bytearray()
        self._end = bytearray()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = KEPT_BYTES - len(self._start)
        if room > 0:
            self._start += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._end += chunk
            if len(self._end) > 2 * KEPT_BYTES:
                del self._end[:-KEPT_BYTES]

    def whole(self) -> bytes | None:
        """All of it; None where something was left out."""
        data = bytes(self._start + self._end)
        return data if len(data) == self.total else None

    def text(self, *, shortened: bool = True) -> str:
        """Without line ends at the end, as a terminal's content has none."""
        end = self._end[-KEPT_BYTES:]
        lost = self.total - len(self._start) - len(end)
        if lost:
            text = f"{_decoded(self._start)}\n[… {lost} bytes left out …]\n{_decoded(end)}"
        else:
            text = _decoded(self._start + end)
        text = text.rstrip("\n")
        return shorten(text) if shortened else text


def shorten(text: str, limit: int = SHOWN_CHARACTERS) -> str:
    """The beginning and the end of a text that is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def _decoded(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


_MAX_INPUT: Final = 1 << 20
_CHUNK: Final = 1 << 18
_DRAIN_READS: Final = 256


class RunningCommand:
    """One process with its output.

    Ended once the process has; what it left running in the background may still print into the same output. outputs:
    each with the descriptors that go to it. extra: further descriptors, its number → ours. on_exit: called once it has
    ended.
    """

    def __init__(
        self,
        starter: ProcessStarter,
        argv: Sequence[str],
        folder: str,
        outputs: Mapping[CapturedOutput, Sequence[int]],
        *,
        extra: Mapping[int, int] | None = None,
        stdin: bool = False,
        on_exit: Callable[[], None] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._on_exit = on_exit
        self.last_output = self._loop.time()
        self.exit_code: int | None = None
        self.killed_for: str | None = None
        self._input: int | None = None
        self._unsent = bytearray()
        self._pipes: dict[int, CapturedOutput] = {}
        theirs: dict[int, int] = {}
        try:
            if stdin:
                theirs[0], self._input = os.pipe2(os.O_CLOEXEC)
                os.set_blocking(self._input, False)
            elif 0 not in (extra or {}):
                theirs[0] = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
            for output, descriptors in outputs.items():
                ours, write_end = os.pipe2(os.O_CLOEXEC)
                theirs |= dict.fromkeys(descriptors, write_end)
                os.set_blocking(ours, False)
                self._pipes[ours] = output
                self._loop.add_reader(ours, self._read, ours)
            self.pid = starter.start(argv, folder, {**(extra or {}), **theirs}, self._handle_exit)
        except BaseException:
            self._close_descriptors()
            raise
        finally:
            for descriptor in set(theirs.values()):
                os.close(descriptor)

    @property
    def running(self) -> bool:
        return self.exit_code is None

    async def wait(
        self, *, timeout_s: float | None = None, silence_s: float | None = None, hard_timeout_s: float | None = None
    ) -> str:
        """Until it has completed, went silent, or a deadline passed; the last one ends it.

        Seconds; None for no such limit. Gives `completed`, `running`, `no_change_timeout` or `hard_timeout`.
        """
        began = self._loop.time()
        # It has to be gone before the wait ends, with its last output.
        hard = None if hard_timeout_s is None else self._loop.call_later(hard_timeout_s, self.kill, "hard_timeout")
        try:
            while self.running:
                ends = [] if timeout_s is None else [(began + timeout_s, "running")]
                ends += [] if silence_s is None else [(self.last_output + silence_s, "no_change_timeout")]
                end, reason = min(ends, default=(None, ""))
                if end is not None and end <= self._loop.time():
                    return reason
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(end):
                        await self._ended.wait()
        finally:
            if hard is not None:
                hard.cancel()
        return "hard_timeout" if self.killed_for == "hard_timeout" else "completed"

    def write(self, data: bytes) -> bool:
        """Give it input. False where it takes none, or has not taken what it got before."""
        if self._input is None or not self.running or len(self._unsent) + len(data) > _MAX_INPUT:
            return False
        self._unsent += data
        self._loop.add_writer(self._input, self._send)
        return True

    def kill(self, reason: str) -> None:
        """End it with all that it started in the foreground."""
        if self.running:
            self.killed_for = self.killed_for or reason
        kill_group(self.pid)

    def close(self) -> None:
        """Kill it and forget its output."""
        self.kill("closed")
        self._close_descriptors()

    def _read(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            self._pipes[descriptor].add(chunk)
            self.last_output = self._loop.time()
        else:
            self._close_pipe(descriptor)

    def _send(self) -> None:
        assert self._input is not None
        try:
            del self._unsent[: os.write(self._input, self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._close_input()
            return
        if not self._unsent:
            self._loop.remove_writer(self._input)

    def _handle_exit(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        self.exit_code = code if code >= 0 else 128 - code  # as a shell counts
        # What it printed until now; others that hold its pipes may go on printing.
        for descriptor, output in tuple(self._pipes.items()):
            for _ in range(_DRAIN_READS):
                before = output.total
                self._read(descriptor)
                if output.total == before:
                    break
        self._close_input()
        if self._on_exit is not None:
            self._on_exit()
        self._ended.set()

    def _close_descriptors(self) -> None:
        for descriptor in tuple(self._pipes):
            self._close_pipe(descriptor)
        self._close_input()

    def _close_pipe(self, descriptor: int) -> None:
        del self._pipes[descriptor]
        self._loop.remove_reader(descriptor)
        os.close(descriptor)

    def _close_input(self) -> None:
        if self._input is not None:
            self._loop.remove_writer(self._input)
            os.close(self._input)
            self._input = None
