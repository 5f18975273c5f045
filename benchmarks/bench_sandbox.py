"""What the embedded sandbox costs: starting and ending one, and each kind of request to it.

    uv run python benchmarks/bench_sandbox.py [--runs 50]

All in milliseconds, after the imports and one run to warm up; the address is on loopback.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable
from time import perf_counter

from guarantee_email_agent.sandbox import SandboxSettings
from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.sandbox.embedded import EmbeddedSandbox
from guarantee_email_agent.utils.errors import TaskError

REQUESTS = {
    "context": ("GET", "/v1/sandbox", None),
    "file write (1 kB)": ("POST", "/v1/file/write", {"file": "/tmp/x", "content": "x" * 1000}),
    "file read (1 kB)": ("POST", "/v1/file/read", {"file": "/tmp/x"}),
    "file write (10 MB)": ("POST", "/v1/file/write", {"file": "/tmp/big", "content": "x" * 10_000_000}),
    "file read (10 MB)": ("POST", "/v1/file/read", {"file": "/tmp/big"}),
    "find files": ("POST", "/v1/file/find", {"path": "/tmp", "glob": "*"}),
    "shell: true": ("POST", "/v1/shell/exec", {"command": "true"}),
    "shell: 100 MB of output": ("POST", "/v1/shell/exec", {"command": "head -c 100M /dev/zero"}),
    "code: python": ("POST", "/v1/code/execute", {"language": "python", "code": "print(1)"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50, help="how often each is done (default: %(default)s)")
    runs = parser.parse_args().runs
    starts, ends, firsts = [], [], []
    for run in range(runs + 1):
        began = perf_counter()
        sandbox = EmbeddedSandbox(SandboxSettings())
        sandbox.start()
        started = perf_counter()
        SandboxClient(sandbox.base_url).call("GET", "/v1/sandbox", timeout_s=10)
        answered = perf_counter()
        sandbox.stop()
        if run:
            starts.append(started - began)
            firsts.append(answered - began)
            ends.append(perf_counter() - answered)
    print(f"{'':28}{'median':>9}{'95 %':>9}{'best':>9}{'worst':>9}")
    _show("start", starts)
    _show("start to the first answer", firsts)
    _show("end", ends)
    sandbox = EmbeddedSandbox(SandboxSettings())
    sandbox.start()
    try:
        client = SandboxClient(sandbox.base_url)
        for name, (method, path, payload) in REQUESTS.items():
            _show(name, _times(lambda m=method, p=path, d=payload: client.call(m, p, d, timeout_s=60), runs))  # type: ignore[misc]
        try:
            began = perf_counter()
            client.call("GET", "/v1/browser/info", timeout_s=60)
        except TaskError as error:
            print(f"browser: {error.message}")
        else:
            _show("browser: start", [perf_counter() - began])
            _show("browser: screenshot", _times(lambda: client.download("/v1/browser/screenshot", timeout_s=60), runs))
    finally:
        sandbox.stop()


def _times(action: Callable[[], object], runs: int) -> list[float]:
    action()
    times = []
    for _ in range(runs):
        began = perf_counter()
        action()
        times.append(perf_counter() - began)
    return times


def _show(name: str, seconds: list[float]) -> None:
    late = sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1]
    figures = (statistics.median(seconds), late, min(seconds), max(seconds))
    print(f"{name:28}" + "".join(f"{1000 * figure:9.1f}" for figure in figures))


if __name__ == "__main__":
    main()
