"""A run of the suite as the data of a report: its cases with what happened, what came of the whole, and the files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from guarantee_email_agent.eval.export import json_results, json_rows, json_summary
from guarantee_email_agent.eval.failure_details import SharedCauses, describe_nearest, nearest_sentences
from guarantee_email_agent.eval.gate import decide_gate
from guarantee_email_agent.eval.mocks import build_raw_email
from guarantee_email_agent.eval.models import INVALID_FILE, EvalResult, EvalTestCase
from guarantee_email_agent.eval.options import EvalOptions
from guarantee_email_agent.eval.suite_statistics import SuiteStatistics
from guarantee_email_agent.eval.verdict_inputs import without_password
from guarantee_email_agent.llm.port import NO_TOKENS, OFFLINE_MODEL
from guarantee_email_agent.reporting.kept_results import Results, mapped
from guarantee_email_agent.reporting.report import Case, PastRun, Report, Run, relative_to
from guarantee_email_agent.reporting.report_formats import write_report_files
from guarantee_email_agent.reporting.statistics import Threshold, format_percentage, threshold_text
from guarantee_email_agent.reporting.totals import Totals
from guarantee_email_agent.store.records import Check
from guarantee_email_agent.utils.version import __version__

if TYPE_CHECKING:
    from guarantee_email_agent.config.settings import Config
    from guarantee_email_agent.eval.baseline import Baseline
    from guarantee_email_agent.llm.usage import MeteredModel

_LINE = re.compile(r"\(line (\d+)\)|, line (\d+)|:(\d+):")

_MAX_CHANGES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFacts:
    """What is known of a run beside its results. threshold: percent. planned: scenarios. cost: as the summary says it.

    history: earlier runs of the same suite with this one, the oldest first. deterministic, fail_fast: as `EvalReporter`
    takes them. baseline: the id of the run that it is held against; regressions: what is worse than there;
    no_regressions: whether the gate rests on them; comparison: with it, as `json_comparison` has it.
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
    deterministic: bool = False
    fail_fast: bool = False
    baseline: str = ""
    regressions: Sequence[str] = ()
    no_regressions: bool = False
    comparison: Mapping[str, Any] | None = None


def suite_report(results: Results[EvalResult], facts: SuiteFacts) -> Report:
    """The report of these results."""
    statistics = SuiteStatistics(deterministic=facts.deterministic)
    totals, causes = Totals(), SharedCauses()
    for result in results:
        totals.add(result.outcome)
        statistics.add(result)
        if not result.passed:
            causes.add(result)
    decision = decide_gate(
        totals,
        facts.threshold,
        require_proof=facts.require_proof,
        fail_fast=facts.fail_fast,
        planned=facts.planned,
        regressions=facts.regressions if facts.no_regressions else (),
    )
    return Report(
        command="eval",
        noun="scenario",
        suite=facts.suite,
        run_id=facts.run_id,
        started=facts.started,
        duration_s=facts.duration_s,
        gate="undecided" if facts.interrupted else decision.gate,
        verdict="Eval interrupted" if facts.interrupted else f"Eval {decision.gate} ({decision.why})",
        totals=totals,
        planned=facts.planned,
        cases=mapped(results, _case),
        rate=format_percentage(totals.passed, totals.total, facts.threshold),
        threshold=threshold_text(facts.threshold),
        notes=[*statistics.repetition_notes(), *([] if facts.interrupted else [statistics.conclusion()])],
        facts=[(name, value) for name, value in _known(facts, statistics) if value],
        causes=causes.counts(),
        history=facts.history,
    )


def _known(facts: SuiteFacts, statistics: SuiteStatistics) -> list[tuple[str, str]]:
    return [
        ("Agent", facts.agent or ""),
        ("Language model", f"{facts.llm} ({facts.model})" if facts.agent is None else ""),
        ("Cost", facts.cost),
        *statistics.selectivity.facts(),
        *statistics.taken_over_facts(),
        ("Only", " ".join(facts.only)),
        ("Runs of each", str(facts.repeat) if facts.repeat > 1 else ""),
        *statistics.repetition_facts(facts.threshold),
        ("Baseline", facts.baseline),
        *_changes(facts.comparison or {}),
        ("Regressions", ", ".join(facts.regressions)),
        ("Version", __version__),
    ]


def _changes(comparison: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is not as it was in the baseline: files and settings by name, and how many replies."""
    files = [f"{each['kind']} {each['name']} ({each['change']})" for each in comparison.get("changed_contents", ())]
    settings = [each["name"].replace("_", " ") for each in comparison.get("changed_settings", ())]
    changed = [*files, *settings]
    more = f" and {len(changed) - _MAX_CHANGES} more" if len(changed) > _MAX_CHANGES else ""
    yield "Changed since", f"{', '.join(changed[:_MAX_CHANGES])}{more}"
    replies = [each["name"] for each in comparison.get("changed_replies", ())]
    more = f" and {len(replies) - _MAX_CHANGES} more" if len(replies) > _MAX_CHANGES else ""
    yield "Other replies", f"{len(replies)}: {', '.join(replies[:_MAX_CHANGES])}{more}" if replies else ""


def _case(result: EvalResult) -> Case:
    scenario = result.test_case
    known = scenario if isinstance(scenario, EvalTestCase) else None
    return Case(
        name=scenario.scenario_id,
        outcome=result.outcome,
        runs=tuple(map(_run, result.repetitions or (result,))),
        failed_checks=result.failed_checks,
        harmful=result.harm,
        taken_over=result.taken_over,
        hints="" if result.passed else "\n".join(map(describe_nearest, nearest_sentences(result))),
        group=scenario.category,
        language=result.language,
        description=" ".join(scenario.description.split()),
        file=relative_to(scenario.file) if scenario.file else "",
        locate=partial(_line_of, known.text if known else None),
        request=build_raw_email(known) if known else None,
        response={name: value for name, value in result.actual_output.items() if name != "processing_time_ms"} or None,
        trace=_trace(result),
        judgement={**(result.judgement or {}), "checks": [each.as_dict() for each in result.checks]} if known else None,
    )


def _trace(result: EvalResult) -> dict[str, Any] | None:
    if not (result.reading or result.trace):
        return None
    trace = {"read": result.reading, **(result.trace or {})}
    if result.reading is None and result.step_ms:  # of an agent that is not ours; the times of our mocks mean nothing
        steps = zip(trace["execution_trace"], result.step_ms, strict=False)
        trace["execution_trace"] = [
            {**step, "duration_ms": None if took is None else round(took, 1)} for step, took in steps
        ]
    return trace


def _run(result: EvalResult) -> Run:
    usage = result.usage
    tokens, cost_usd = (0, 0.0) if usage is None else (usage.tokens.total, usage.cost_usd)
    return Run(result.outcome, result.processing_time_ms, result.failed_checks, tokens, cost_usd)


def _line_of(text: str | None, failed: Check) -> int:
    """The line of a scenario file that says what was expected, or that cannot be read; the first where none does."""
    if failed.name == INVALID_FILE and (named := _LINE.search(failed.reason)):
        return int(next(filter(None, named.groups())))
    key = re.compile(rf"\s*[\"']?{re.escape(failed.name.rpartition(': ')[2])}[\"']?\s*:")
    lines = (text or "").splitlines()
    return next((number for number, line in enumerate(lines, 1) if key.match(line)), 1)


def write_suite_reports(
    config: Config,
    options: EvalOptions,
    results: Results[EvalResult],
    duration_s: float,
    planned: int,
    *,
    interrupted: bool,
    meter: MeteredModel | None,
    cost: str,
    baseline: Baseline | None,
    error_code: str,
) -> None:
    """Every report that the options name. meter: what a live model took; None for none. cost: the same in words.

    Raises ConfigurationError with `error_code` for a file that cannot be written.
    """
    model = OFFLINE_MODEL if options.llm == "offline" else config.llm.model
    regressions = () if baseline is None else baseline.regressions()
    comparison = None if baseline is None else baseline.json_comparison(options.run_id)
    facts = SuiteFacts(
        suite=os.path.relpath(options.directory),
        run_id=options.run_id,
        started=options.started,
        duration_s=duration_s,
        threshold=options.threshold,
        planned=planned,
        llm=options.llm,
        model=model,
        require_proof=options.require_proof,
        interrupted=interrupted,
        only=options.only,
        repeat=options.repeat,
        agent=None if options.agent is None else without_password(options.agent),
        cost=cost,
        history=_past_runs(options),
        deterministic=options.is_deterministic,
        fail_fast=options.fail_fast,
        baseline="" if baseline is None else baseline.run.id,
        regressions=regressions,
        no_regressions=options.no_regressions,
        comparison=comparison,
    )

    def summary() -> Mapping[str, Any]:
        return json_summary(
            results,
            run_id=options.run_id,
            started=options.started,
            duration_s=duration_s,
            agent=options.agent,
            llm=options.llm,
            model=model,
            threshold=options.threshold,
            require_proof=options.require_proof,
            tokens=NO_TOKENS if meter is None else meter.usage,
            cost_usd=0.0 if meter is None else meter.cost_usd,
            interrupted=interrupted,
            fail_fast=options.fail_fast,
            planned=planned,
            regressions=regressions if options.no_regressions else (),
            comparison=comparison,
        )

    write_report_files(
        options,
        error_code,
        suite_report(results, facts),
        summary,
        lambda: json_results(results),
        lambda: json_rows(results),
    )


def _past_runs(options: EvalOptions) -> Sequence[PastRun]:
    if options.kept is None:
        return ()
    from guarantee_email_agent.store.run_reader import past_runs

    return past_runs(options.kept.file, options.run_id)
