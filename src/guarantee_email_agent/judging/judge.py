"""Let a `test.py` on the host judge the record of a run, in a process of its own.

    verdict = judge(Path("tasks/greeting/test.py"), {"task_result": "Hello"})

`JudgePool` does the same for many at a time, and says what isolation this machine gives.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from guarantee_email_agent.judging.judge_limits import Isolation, JudgeLimits
from guarantee_email_agent.judging.judge_pool import DEFAULT_LIMITS, DEFAULT_TIMEOUT_S, JudgePool
from guarantee_email_agent.judging.verdict import Verdict

__all__ = ["DEFAULT_LIMITS", "DEFAULT_TIMEOUT_S", "Isolation", "JudgeLimits", "JudgePool", "Verdict", "judge"]

_pools: dict[int, JudgePool] = {}
_pools_lock = threading.Lock()


def judge(
    path: Path,
    record: Mapping[str, Any],
    timeout_s: float = DEFAULT_TIMEOUT_S,
    *,
    limits: JudgeLimits = DEFAULT_LIMITS,
    network: bool = False,
) -> Verdict:
    """Call `test(record)` of the Python file at `path`; never raises for what the judge does.

    timeout_s: seconds, after which everything that the judge started is killed. The pool behind it is started with the
    first call, grows with the threads that call at the same time, and ends with this process.
    """
    return _pool().judge(path, record, timeout_s, limits=limits, network=network)


def _pool() -> JudgePool:
    with _pools_lock:
        # A process that was forked from ours must not share our servers.
        pool = _pools.get(os.getpid())
        if pool is None:
            pool = _pools[os.getpid()] = JudgePool()
            atexit.register(pool.close)
        return pool
