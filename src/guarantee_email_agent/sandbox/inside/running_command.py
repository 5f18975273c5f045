"""A command that runs, what it prints, and what ends it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from .captured_output import CapturedOutput
from .event_loop import Timer, Writer, read_available
from .process_starter import ProcessStarter, kill_group

_MAX_INPUT: Final = 1 << 20
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
    ) -> None:
        self._loop = starter.loop
        self.last_output = time.monotonic()
        self.exit_code: int | None = None
        self.killed_for: str | None = None
        self.on_exit: list[Callable[[], None]] = []
        self._input: Writer | None = None
        self._pipes: dict[int, CapturedOutput] = {}
        theirs: dict[int, int] = {}
        try:
            if stdin:
                theirs[0], ours = os.pipe2(os.O_CLOEXEC)
                self._input = Writer(self._loop, ours, self._close_input)
            else:
                theirs[0] = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
            for output, descriptors in outputs.items():
                ours, write_end = os.pipe2(os.O_CLOEXEC)
                theirs |= dict.fromkeys(descriptors, write_end)
                os.set_blocking(ours, False)
                self._pipes[ours] = output
            self.pid = starter.start(argv, folder, {**(extra or {}), **theirs})
        except BaseException:
            for ours in tuple(self._pipes):
                self._close_pipe(ours)
            self._close_input()
            raise
        finally:
            for descriptor in set(theirs.values()):
                os.close(descriptor)
        for ours in self._pipes:
            self._loop.watch(ours, self._read)
        self._loop.on_exit(self.pid, self._handle_exit)

    @property
    def running(self) -> bool:
        return self.exit_code is None

    def write(self, data: bytes) -> bool:
        """Give it input. False where it takes none, or has not taken what it got before."""
        if self._input is None or not self.running or self._input.pending_bytes + len(data) > _MAX_INPUT:
            return False
        self._input.write(data)
        return True

    def kill(self, reason: str) -> None:
        """End it with all that it started in the foreground."""
        if self.running:
            self.killed_for = self.killed_for or reason
        kill_group(self.pid)

    def close(self) -> None:
        """Kill it and forget its output."""
        self.kill("closed")
        for descriptor in tuple(self._pipes):
            self._close_pipe(descriptor)
        self._close_input()

    def _read(self, descriptor: int) -> None:
        chunk = read_available(descriptor)
        if chunk:
            self._pipes[descriptor].add(chunk)
            self.last_output = time.monotonic()
        elif chunk is not None:
            self._close_pipe(descriptor)

    def _handle_exit(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        self.exit_code = code if code >= 0 else 128 - code  # as a shell counts
        # What it printed last is in the pipes; others that still hold them may go on printing.
        for descriptor, output in tuple(self._pipes.items()):
            for _ in range(_DRAIN_READS):
                before = output.total
                self._read(descriptor)
                if output.total == before:
                    break
        self._close_input()
        for action in tuple(self.on_exit):
            action()

    def _close_pipe(self, descriptor: int) -> None:
        del self._pipes[descriptor]
        self._loop.unwatch(descriptor)
        os.close(descriptor)

    def _close_input(self) -> None:
        if self._input is not None:
            self._input.close()
            self._input = None


class CommandWait:
    """Calls `done(reason)` once: when a command has completed, went silent, or a deadline passed.

    Seconds; None for no such limit. Reasons: `completed`, `running`, `no_change_timeout`, `hard_timeout`; the last one
    ends the command.
    """

    def __init__(
        self,
        starter: ProcessStarter,
        command: RunningCommand,
        done: Callable[[str], None],
        *,
        timeout_s: float | None = None,
        silence_s: float | None = None,
        hard_timeout_s: float | None = None,
    ) -> None:
        self._loop = starter.loop
        self._command = command
        self._done = done
        self._timers: list[Timer] = []
        self._over = False
        if not command.running:
            self._finish("completed")
            return
        command.on_exit.append(self._handle_exit)
        if timeout_s is not None:
            self._timers.append(self._loop.after(timeout_s, lambda: self._finish("running")))
        if hard_timeout_s is not None:
            # It has to be gone before the wait ends, with its last output.
            self._timers.append(self._loop.after(hard_timeout_s, lambda: command.kill("hard_timeout")))
        if silence_s is not None:
            self._check_silence(silence_s)

    def _handle_exit(self) -> None:
        self._finish("hard_timeout" if self._command.killed_for == "hard_timeout" else "completed")

    def _check_silence(self, silence_s: float) -> None:
        left = self._command.last_output + silence_s - time.monotonic()
        if left <= 0:
            self._finish("no_change_timeout")
        elif not self._over:
            self._timers.append(self._loop.after(left, lambda: self._check_silence(silence_s)))

    def _finish(self, reason: str) -> None:
        if self._over:
            return
        self._over = True
        for timer in self._timers:
            timer.cancel()
        if self._handle_exit in self._command.on_exit:
            self._command.on_exit.remove(self._handle_exit)
        self._done(reason)
