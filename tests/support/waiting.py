"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], timeout_s: float = 30.0, problem: Callable[[], str] = str) -> None:
    """Return once `condition` holds; after `timeout_s` seconds fail, with what `problem` gives."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not so within {timeout_s:g} s. {problem()}")
        time.sleep(0.02)
