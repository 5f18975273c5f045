"""A run of the suite as the data of a report: its cases with what happened in each, and what came of the whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from guarantee_email_agent import __version__
from guarantee_email_agent.eval.checks import FailedCheck
from guarantee_email_agent.eval.distinct_mails import DistinctMails
from guarantee_email_agent.eval.failure_details import SharedCauses, describe_nearest, nearest_sentences
from guarantee_email_agent.eval.mocks import build_raw_email
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase
from guarantee_email_agent.eval.reporter import describe_confidence, gate_conclusion
from guarantee_email_agent.reporting.report import Case, Miss, PastRun, Report, Run, relative_to
from guarantee_email_agent.reporting.statistics import (
    Threshold,
    format_percentage,
    lower_bound_95,
    rounded_bound,
    threshold_text,
)
from guarantee_email_agent.reporting.totals import Totals

_LINE = re.compile(r"\(line (\d+)\)|, line (\d+)|:(\d+):")


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFacts:
    """What is known of a run beside its results. threshold: percent. planned: scenarios. cost: as the summary says it.

    history: earlier runs of the same suite with this one, the oldest first.
    """

    suite: str
    run_id: str
    started: str
    duration_s: float
    threshold: Threshold
    planned: int
    llm: str
    model: str
    require_proof: bool = False
    interrupted: bool = False
    only: Sequence[str] = ()
    repeat: int = 1
    agent: str | None = None
    cost: str = ""
    history: Sequence[PastRun] = ()


def suite_report(results: Sequence[EvalResult], facts: SuiteFacts) -> Report:
    """The report of these results."""
    totals = Totals.of(result.outcome for result in results)
    mails = DistinctMails.of(results)
    passes, why = gate_conclusion(totals, mails, facts.threshold, require_proof=facts.require_proof)
    verdict = "interrupted" if facts.interrupted else f"{'passed' if passes else 'failed'} ({why})"
    causes = SharedCauses()
    for result in results:
        if not result.passed:
            causes.add(result)
    return Report(
        command="eval",
        noun="scenario",
        suite=facts.suite,
        run_id=facts.run_id,
        started=facts.started,
        duration_s=facts.duration_s,
        gate="undecided" if facts.interrupted else "passed" if passes else "failed",
        verdict=f"Eval {verdict}",
        totals=totals,
        planned=facts.planned,
        cases=[_case(result) for result in results],
        rate=format_percentage(totals.passed, totals.total, facts.threshold),
        threshold=threshold_text(facts.threshold),
        bound=f"{rounded_bound(lower_bound_95(mails.passed, mails.total), facts.threshold)}%",
        proven=describe_confidence(mails.passed, mails.total, facts.threshold),
        facts=[(name, value) for name, value in _known(facts) if value],
        causes=causes.counts(),
        history=facts.history,
    )


def _known(facts: SuiteFacts) -> list[tuple[str, str]]:
    return [
        ("Agent", facts.agent or ""),
        ("Language model", f"{facts.llm} ({facts.model})" if facts.agent is None else ""),
        ("Cost", facts.cost),
        ("Only", " ".join(facts.only)),
        ("Runs of each", str(facts.repeat) if facts.repeat > 1 else ""),
        ("Version", __version__),
    ]


def _case(result: EvalResult) -> Case:
    scenario = result.test_case
    known = scenario if isinstance(scenario, EvalTestCase) else None
    return Case(
        name=scenario.scenario_id,
        outcome=result.outcome,
        runs=tuple(map(_run, result.repetitions or (result,))),
        misses=_misses(result),
        hints="" if result.passed else "\n".join(map(describe_nearest, nearest_sentences(result))),
        group=scenario.category,
        language=(known.expected_output.reply_language or "") if known else "",
        description=" ".join(scenario.description.split()),
        file=relative_to(scenario.file) if scenario.file else "",
        locate=partial(_line_of, known.text if known else None),
        request=build_raw_email(known) if known else None,
        response={name: value for name, value in result.actual_output.items() if name != "processing_time_ms"} or None,
        trace=result.trace,
        judgement=result.judgement,
    )


def _run(result: EvalResult) -> Run:
    usage = result.usage
    tokens, cost_usd = (0, 0.0) if usage is None else (usage.tokens.total, usage.cost_usd)
    return Run(result.outcome, result.processing_time_ms, _misses(result), tokens, cost_usd)


def _misses(result: EvalResult) -> tuple[Miss, ...]:
    if result.invalid:
        return tuple(Miss("", failure) for failure in result.failures)
    return tuple(Miss(*FailedCheck.parse(failure)) for failure in result.failures)


def _line_of(text: str | None, miss: Miss) -> int:
    """The line of a scenario file that says what was expected, or that cannot be read; the first where none does."""
    if (named := _LINE.search(miss.reason)) and not miss.check:
        return int(next(filter(None, named.groups())))
    key = re.compile(rf"\s*[\"']?{re.escape(miss.check.rpartition(': ')[2])}[\"']?\s*:")
    lines = (text or "").splitlines()
    return next((number for number, line in enumerate(lines, 1) if key.match(line)), 1)
