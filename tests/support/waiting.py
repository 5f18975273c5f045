"""Waiting for what another process or thread does."""

import time
from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 300.0
"""Seconds for what is to come, on a machine that is busy; no test waits so long for what is not to come."""


def wait_until(
    condition: Callable[[], object], timeout_s: float = PATIENCE_S, problem: Callable[[], str] = str
) -> None:
    """Return once `condition` holds; after `timeout_s` seconds fail, with what `problem` gives."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not so within {timeout_s:g} s. {problem()}")
        time.sleep(0.02)
