"""How commands that work something off take the signals that end them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Let SIGTERM end a run as Ctrl-C does, so that no sandbox, server or folder is left behind.

    For commands that work something off. In another thread than the first one, which alone gets signals, it does
    nothing. May be nested: the handler that was there before comes back.
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
    former = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
