"""A command that runs, what it prints, and what ends it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from .captured_output import CapturedOutput
from .event_loop import Loop, Timer
from .process_starter import Starter, exit_code, kill_group

_CHUNK: Final = 1 << 16
_WAITING_INPUT: Final = 1 << 20


class Command:
    """One process with its output.

    Ended once the process has; what it left running in the background may still print into the same output. outputs:
    which of our streams its descriptors 1, 2 … go to. on_output, on_end: called when something changed.
    """

    def __init__(
        self,
        loop: Loop,
        starter: Starter,
        argv: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        outputs: Mapping[int, CapturedOutput],
        *,
        extra: Mapping[int, int] | None = None,
        stdin: bool = False,
    ) -> None:
        self._loop = loop
        self.last_change = loop.now()
        self.exit_code: int | None = None
        self.killed_for: str | None = None
        self.on_change: list[Callable[[], None]] = []
        self._input = b""
        self._input_descriptor: int | None = None
        theirs: dict[int, int] = dict(extra or {})
        pipes: dict[int, tuple[int, CapturedOutput]] = {}
        opened: list[int] = []
        by_output: dict[int, int] = {}
        try:
            if stdin:
                theirs[0], self._input_descriptor = os.pipe2(os.O_CLOEXEC)
                os.set_blocking(self._input_descriptor, False)
            else:
                theirs[0] = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
            opened.append(theirs[0])
            for descriptor, output in outputs.items():
                if id(output) not in by_output:
                    ours, by_output[id(output)] = os.pipe2(os.O_CLOEXEC)
                    os.set_blocking(ours, False)
                    pipes[ours] = (descriptor, output)
                    opened.append(by_output[id(output)])
                theirs[descriptor] = by_output[id(output)]
            self.pid = starter.start(argv, environment, folder, theirs)
        except BaseException:
            for descriptor in (*pipes, *(() if self._input_descriptor is None else (self._input_descriptor,))):
                os.close(descriptor)
            raise
        finally:
            for descriptor in opened:
                os.close(descriptor)
        self._pipes = {ours: output for ours, (_, output) in pipes.items()}
        for ours in self._pipes:
            loop.watch(ours, self._read)
        loop.on_end(self.pid, self._ended)

    @property
    def running(self) -> bool:
        return self.exit_code is None

    def write(self, data: bytes) -> bool:
        """Give it input. False where it takes none, or has not taken what it got before."""
        if self._input_descriptor is None or not self.running or len(self._input) + len(data) > _WAITING_INPUT:
            return False
        self._input += data
        self._feed(self._input_descriptor)
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

    def changed(self) -> None:
        for action in tuple(self.on_change):
            action()

    def _read(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            self._pipes[descriptor].add(chunk)
            self.last_change = self._loop.now()
        else:
            self._close_pipe(descriptor)

    def _feed(self, descriptor: int) -> None:
        try:
            self._input = self._input[os.write(descriptor, self._input) :]
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.EINTR:
                self._close_input()
                return
        if self._input and not self._loop.watched(descriptor):
            self._loop.watch(descriptor, self._feed, write=True)
        elif not self._input:
            self._loop.unwatch(descriptor)

    def _ended(self, status: int) -> None:
        self.exit_code = exit_code(status)
        # What it printed last is in the pipes; others that still hold them may go on printing.
        for descriptor in tuple(self._pipes):
            for _ in range(256):
                before = self._pipes[descriptor].total if descriptor in self._pipes else None
                if before is None:
                    break
                self._read(descriptor)
                if descriptor not in self._pipes or self._pipes[descriptor].total == before:
                    break
        self._close_input()
        self.changed()

    def _close_pipe(self, descriptor: int) -> None:
        if self._pipes.pop(descriptor, None) is not None:
            self._loop.unwatch(descriptor)
            os.close(descriptor)

    def _close_input(self) -> None:
        if self._input_descriptor is not None:
            self._loop.unwatch(self._input_descriptor)
            os.close(self._input_descriptor)
            self._input_descriptor = None


class Wait:
    """Calls `done(reason)` once: when a command has completed, went silent, or a deadline passed.

    Seconds; None for no such limit. Reasons: `completed`, `running`, `no_change_timeout`, `hard_timeout`; the last one
    ends the command.
    """

    def __init__(
        self,
        loop: Loop,
        command: Command,
        done: Callable[[str], None],
        *,
        timeout_s: float | None = None,
        silent_s: float | None = None,
        hard_s: float | None = None,
    ) -> None:
        self._loop = loop
        self._command = command
        self._done = done
        self._silent_s = silent_s
        self._timers: list[Timer] = []
        self._over = False
        if not command.running:
            self._finish("completed")
            return
        command.on_change.append(self._check)
        if timeout_s is not None:
            self._timers.append(loop.after(timeout_s, lambda: self._finish("running")))
        if hard_s is not None:
            self._timers.append(loop.after(hard_s, self._end_it))
        if silent_s is not None:
            self._timers.append(loop.after(silent_s, self._check_silence))

    def _check(self) -> None:
        if not self._command.running:
            self._finish("hard_timeout" if self._command.killed_for == "hard_timeout" else "completed")

    def _end_it(self) -> None:
        # It has to be gone before we say so, with its last output.
        self._command.kill("hard_timeout")

    def _check_silence(self) -> None:
        if self._over or self._silent_s is None:
            return
        left = self._command.last_change + self._silent_s - self._loop.now()
        if left > 0:
            self._timers.append(self._loop.after(left, self._check_silence))
        else:
            self._finish("no_change_timeout")

    def _finish(self, reason: str) -> None:
        if self._over:
            return
        self._over = True
        for timer in self._timers:
            timer.cancel()
        if self._check in self._command.on_change:
            self._command.on_change.remove(self._check)
        self._done(reason)
