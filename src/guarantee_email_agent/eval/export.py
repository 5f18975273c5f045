"""A run's results for machines: one JSON file, or JUnit XML for a CI's test view."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.totals import Totals
from guarantee_email_agent.runs.statistics import (
    Threshold,
    lower_bound_95,
    meets_threshold,
    rounded_bound,
    rounded_percentage,
    threshold_text,
)
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.printable import printable

SCHEMA_VERSION: Final = 1


def write_json(
    path: str | Path,
    results: Sequence[EvalResult],
    *,
    run_id: str,
    started: str,
    duration_s: float,
    llm: str,
    model: str,
    threshold: Threshold,
) -> None:
    """Writes the report whose shape `report` gives; the file is complete or untouched.

    Raises ConfigurationError(code="eval_report_unwritable").
    """
    content = report(
        results, run_id=run_id, started=started, duration_s=duration_s, llm=llm, model=model, threshold=threshold
    )
    text = json.dumps(content, ensure_ascii=False, indent=1, default=str)
    # Half of a surrogate pair cannot be UTF-8; its escape, \udc80, is just how JSON writes it.
    _write_whole(path, f"{text}\n".encode(errors="backslashreplace"))


def report(
    results: Sequence[EvalResult],
    *,
    run_id: str,
    started: str,
    duration_s: float,
    llm: str,
    model: str,
    threshold: Threshold,
) -> dict[str, Any]:
    """The report as JSON holds it. started: ISO 8601. duration_s: seconds. Rates, threshold and bound: percent."""
    totals = Totals.of(results)
    passed, total = totals.passed, totals.total
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": run_id,
        "started": started,
        "duration_s": round(duration_s, 3),
        "llm": llm,
        "model": model,
        "totals": {"total": total, "passed": passed, "failed": totals.failed, "invalid": totals.invalid},
        "pass_rate": rounded_percentage(passed, total, threshold),
        "threshold": float(threshold_text(threshold)),
        "lower_bound_95": rounded_bound(lower_bound_95(passed, total), threshold),
        "gate": "passed" if meets_threshold(passed, total, threshold) else "failed",
        "results": [_record(result) for result in results],
    }


def write_junit(path: str | Path, results: Sequence[EvalResult], *, duration_s: float) -> None:
    """Writes one JUnit test suite: a failed scenario is a failure, an invalid file an error.

    Raises ConfigurationError(code="eval_report_unwritable").
    """
    import junitparser  # only for those who ask for this format

    suite = junitparser.TestSuite("evals")
    cases = []
    for result in results:
        scenario = result.test_case
        case = junitparser.TestCase(
            printable(scenario.scenario_id), printable(scenario.category), result.processing_time_ms / 1000
        )
        if not result.passed:
            outcome = junitparser.Error if result.invalid else junitparser.Failure
            first_line = result.failures[0].partition("\n")[0] if result.failures else "failed"
            verdict = outcome(printable(first_line), "invalid" if result.invalid else "failed")
            verdict.text = "\n".join(printable(line) for failure in result.failures for line in failure.split("\n"))
            case.result = [verdict]
        cases.append(case)
    suite.add_testcases(cases)
    suite.time = duration_s
    document = junitparser.JUnitXml("guarantee-email-agent eval")
    document.add_testsuite(suite)
    document.time = duration_s
    content = io.BytesIO()
    document.write(content)
    _write_whole(path, content.getvalue())


def _record(result: EvalResult) -> dict[str, Any]:
    scenario = result.test_case
    return {
        "scenario_id": scenario.scenario_id,
        "file": scenario.file,
        "description": scenario.description,
        "category": scenario.category,
        "passed": result.passed,
        "failures": list(result.failures),
        "processing_time_ms": result.processing_time_ms,
        "actual_output": dict(result.actual_output),
    }


def _write_whole(path: str | Path, content: bytes) -> None:
    """Writes a file by way of a neighbour that takes its place, so that nobody ever reads half of it."""
    target = Path(path)
    try:
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            target.write_bytes(content)  # /dev/stdout or a pipe must not be replaced by a file
            return
        target = target.resolve()  # a link stays a link
        draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            draft.write_bytes(content)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = (
            f"{printable(str(path))}: the report cannot be written ({reason}). Name a file in a folder that can be."
        )
        raise ConfigurationError(message, "eval_report_unwritable", {"path": str(path)}) from None
