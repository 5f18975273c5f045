"""Lines on stdin and stdout, until the client is done and every line is written.

Nothing here blocks the event loop, whatever stdin and stdout are: not a client that reads no answers, nor one that
writes no further call.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

_CHUNK: Final = 65_536  # bytes, what a pipe holds
_CHUNKS_AHEAD: Final = 64  # read by the thread before they are worked on


class StandardStreams:
    """The process's standard streams, from now on for the protocol alone.

    What prints by mistake goes to stderr, and what reads finds the end.
    """

    def __init__(self, on_line: Callable[[bytes], None]) -> None:
        """on_line: takes each line of stdin that is not blank, without its line feed. Belongs to the running loop."""
        self._on_line = on_line
        self._input, self._output = _claim_standard_streams()
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes] = []
        self._ended = asyncio.Event()
        # Of its own: an answer must not wait for a call that waits.
        self._writing = ThreadPoolExecutor(1, thread_name_prefix="stdout")
        self._queued = 0  # lines that the thread has not written yet
        self._room = select.poll() if stat.S_ISFIFO(os.fstat(self._output).st_mode) else None
        if self._room is not None:
            self._room.register(self._output, select.POLLOUT)

    async def read(self) -> None:
        """Take lines until the end of stdin, or `end`."""
        try:
            self._loop.add_reader(self._input, self._on_readable)
            watched = True
        except OSError:  # a file, which is always readable; a daemon thread is never joined
            watched = False
            threading.Thread(target=self._read_file, daemon=True, name="stdin").start()
        await self._ended.wait()
        if watched:
            self._loop.remove_reader(self._input)

    def end(self) -> None:
        """Take no further line; to be called on the event loop."""
        self._ended.set()

    def write(self, line: bytes) -> None:
        """A line without its line feed; in order, and at once where that cannot block."""
        line += b"\n"
        # A pipe that is ready takes this many bytes without blocking (POSIX, poll and write).
        if self._queued == 0 and len(line) <= select.PIPE_BUF and self._room is not None and self._room.poll(0):
            _write_all(self._output, line)
            return
        self._queued += 1
        written = self._loop.run_in_executor(self._writing, _write_all, self._output, line)
        written.add_done_callback(self._on_written)

    async def flush(self) -> None:
        """Wait until everything is written, or the client is gone."""
        await self._loop.run_in_executor(self._writing, lambda: None)

    def _on_written(self, written: asyncio.Future[None]) -> None:
        self._queued -= 1
        written.result()

    def _on_readable(self) -> None:
        try:
            chunk = os.read(self._input, _CHUNK)
        except BlockingIOError:  # whoever made the stream may have set it so
            return
        except OSError:  # as good as the end of input
            chunk = b""
        self._take(chunk)

    def _read_file(self) -> None:
        ahead = threading.Semaphore(_CHUNKS_AHEAD)

        def take(chunk: bytes) -> None:
            ahead.release()
            self._take(chunk)

        with suppress(RuntimeError):  # the loop is closed: the server has stopped
            chunk = b"..."
            while chunk:
                try:
                    chunk = os.read(self._input, _CHUNK)
                except OSError:
                    chunk = b""
                ahead.acquire()
                self._loop.call_soon_threadsafe(take, chunk)

    def _take(self, chunk: bytes) -> None:
        """A piece of the input, empty at its end."""
        first, *rest = chunk.split(b"\n")
        self._parts.append(first)
        for part in rest:
            line, self._parts = b"".join(self._parts), [part]
            if self._ended.is_set():
                return
            if line.strip():
                self._on_line(line)
        if not chunk:
            self._ended.set()


def _claim_standard_streams() -> tuple[int, int]:
    """Copies of stdin and stdout for the protocol."""
    input_fd, output_fd = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return input_fd, output_fd


def _write_all(descriptor: int, line: bytes) -> None:
    view = memoryview(line)
    with suppress(BrokenPipeError):  # the client is gone; the end of input follows
        while view:
            view = view[os.write(descriptor, view) :]
