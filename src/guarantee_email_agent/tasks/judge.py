"""Let a `test.py` on the host judge the record of a run, in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

DEFAULT_TIMEOUT_S = 60.0
MAX_OUTPUT_CHARACTERS = 20_000
MAX_VERDICT_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's word. `error` says why there is none; an error never counts as a pass."""

    verdict: Literal["passed", "failed", "error"]
    feedback: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    output: str = ""


def judge(path: Path, record: Mapping[str, Any], timeout_s: float = DEFAULT_TIMEOUT_S) -> Verdict:
    """Call `test(record)` of the Python file at `path`; never raises for what the judge does.

    The judge gets a fresh interpreter without our environment's secrets, the folder of its file on `sys.path`, and a
    copy of the record. After `timeout_s` seconds its whole process group is killed.
    """
    import os
    import signal
    import subprocess
    import sys
    import tempfile

    if not path.is_file():
        return Verdict("error", error=f"there is no judge {path.name}. Write it beside the scenario")
    with tempfile.TemporaryFile() as record_file, tempfile.TemporaryFile() as verdict_file:
        with tempfile.TemporaryFile() as output_file:
            record_file.write(_as_json(record))
            record_file.seek(0)
            descriptors = (record_file.fileno(), verdict_file.fileno())
            child = subprocess.Popen(
                [sys.executable, "-I", "-B", _child(), str(path.resolve()), *map(str, descriptors)],
                stdin=subprocess.DEVNULL,
                stdout=output_file,
                stderr=subprocess.STDOUT,
                pass_fds=descriptors,
                cwd=path.parent,
                env={name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ},
                start_new_session=True,
            )
            try:
                child.wait(timeout_s)
                error = None
            except subprocess.TimeoutExpired:
                error = f"gave no verdict within {timeout_s:g} s"
            finally:
                # Whatever it started goes with it.
                with _ignoring_gone_process():
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            output_file.seek(0)
            output = output_file.read(MAX_OUTPUT_CHARACTERS).decode("utf-8", "replace")
        verdict_file.seek(0)
        answer = verdict_file.read(MAX_VERDICT_BYTES + 1)
    return _verdict(answer, error, child.returncode, output)


def _child() -> str:
    return str(Path(__file__).with_name("judge_process.py"))


def _ignoring_gone_process() -> Any:
    from contextlib import suppress

    return suppress(ProcessLookupError, PermissionError)


def _as_json(record: Mapping[str, Any]) -> bytes:
    import json

    return json.dumps(record, default=str).encode()


def _verdict(answer: bytes, error: str | None, code: int, output: str) -> Verdict:
    import json

    if error is None and len(answer) > MAX_VERDICT_BYTES:
        error = f"returned more than {MAX_VERDICT_BYTES // 1_000_000} MB"
    if error is None:
        try:
            received = json.loads(answer)
        except ValueError:
            error = f"ended with exit code {code} and without a verdict"
        else:
            error = received.get("error")
    if error is not None:
        return Verdict("error", error=error, output=output)
    returned = received["returned"]
    return Verdict(
        "passed" if returned["passed"] else "failed", returned["feedback"], returned.get("details", {}), None, output
    )
