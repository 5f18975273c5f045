"""Keeps a run of the suite in the run store while it goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.distinct_mails import MailCounter, mail_fingerprint
from guarantee_email_agent.eval.mocks import build_raw_email
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase
from guarantee_email_agent.eval.scenario_files import ScenarioFiles
from guarantee_email_agent.eval.verdict_inputs import AGENT_OPTIONS, VerdictInputs, stored_source, without_password
from guarantee_email_agent.reporting.run_report import RunOutcome
from guarantee_email_agent.reporting.terminal import warn_on_stderr
from guarantee_email_agent.store.records import NO_USAGE, InputSet, KeptRun, NewResult, NewRun, Usage
from guarantee_email_agent.store.run_writer import RunEnd, RunWriter
from guarantee_email_agent.utils.git_state import GitQuestion
from guarantee_email_agent.utils.version import __version__

if TYPE_CHECKING:
    from guarantee_email_agent.eval.resume import EarlierResults

_CHECK_S: Final = 0.25
"""How often the files are looked at that verdicts depend on, where many scenarios run in that time."""


class EvalRecorder:
    """One run: `on_result` for results that are paid for, as soon as each is there, else `add` for all of one case."""

    def __init__(
        self,
        kept: KeptRun,
        run: NewRun,
        inputs: VerdictInputs,
        files: ScenarioFiles,
        git: GitQuestion,
        *,
        at_once: bool,
        earlier: EarlierResults | None = None,
        mails: MailCounter | None = None,
    ) -> None:
        """files: of the scenarios, in the order of the run. earlier: of the run that goes on, or of others. mails:
        those of the run, which somebody else counts. Raises StoreError.
        """
        self._mails = mails
        self._kept, self._inputs, self._at_once = kept, inputs, at_once
        self._files = files
        self._git: GitQuestion = git
        goes_on = None if earlier is None else earlier.run
        kept_before = None if earlier is None else zip(earlier.kept_positions, earlier.kept_ids, strict=True)
        self._writer = RunWriter(
            kept.file,
            run,
            warn_on_stderr,
            at_once=at_once,
            resume=None if kept_before is None or goes_on is None else (goes_on.number, kept_before),
            take_over=kept_before if goes_on is None else None,
            keep_runs=kept.keep_runs,
        )
        self._is_new = goes_on is None
        self._is_restored = None if earlier is None else earlier.is_whole
        self._waiting: list[tuple[int, EvalResult]] = []
        self._checked_at = time.monotonic()
        self._changed = False

    def on_result(self, repetition: int, result: EvalResult) -> None:
        """As `EvalRunner` has it; called by any thread."""
        self._writer.add(self._stored(repetition, result, self._inputs_now()))

    def add(self, result: EvalResult) -> None:
        if self._at_once:
            return  # it came through `on_result`
        if self._is_new and result.taken_over:
            return
        if self._is_restored is not None and self._is_restored[self._files.position(result.test_case.file or "") - 1]:
            return  # it is there from before
        self._waiting += enumerate(result.repetitions or (result,), 1)
        if time.monotonic() - self._checked_at >= _CHECK_S:
            self._pass_on()

    def finish(self, outcome: RunOutcome, exit_code: int, duration_s: float) -> None:
        self._pass_on()
        mails = None if self._mails is None else self._mails.count()
        counts = None if mails is None else (mails.total, mails.passed)
        self._writer.finish(RunEnd(outcome, exit_code, self._kept.now(), duration_s, self._git.answer(), counts))
        if self._changed:
            warn_on_stderr("Instruction, lexicon or judge files were edited during the run: its results may differ")

    def _pass_on(self) -> None:
        """The files are looked at after the results, so that none has inputs that came later."""
        inputs = self._inputs_now()
        self._writer.add(*(self._stored(repetition, result, inputs) for repetition, result in self._waiting))
        self._waiting.clear()
        self._checked_at = time.monotonic()

    def _inputs_now(self) -> InputSet | None:
        self._changed = self._changed or not self._inputs.unchanged()
        return None if self._changed else self._inputs.set

    def _stored(self, repetition: int, result: EvalResult, inputs: InputSet | None) -> NewResult:
        case = result.test_case
        is_scenario = isinstance(case, EvalTestCase)
        judgement = dict(result.judgement or {})
        if is_scenario:
            judgement["checks"] = [check.as_dict() for check in result.checks]
        return NewResult(
            name=result.name,
            position=self._files.position(case.file or ""),
            repetition=repetition,
            verdict="invalid" if result.invalid else "passed" if result.passed else "failed",
            category=case.category,
            language=result.language,
            description=" ".join(case.description.split()),
            duration_ms=result.processing_time_ms,
            usage=_usage(result),
            inputs=inputs,
            checks=result.failed_checks,
            source=stored_source(case) if isinstance(case, EvalTestCase) else None,
            request=build_raw_email(case) if isinstance(case, EvalTestCase) else None,
            # The time has its column; without it equal outputs are kept once.
            response={name: value for name, value in result.actual_output.items() if name != "processing_time_ms"},
            trace={"read": result.reading, **(result.trace or {})} if is_scenario else None,
            judgement=judgement or None,
            step_ms=result.step_ms,
            mail=mail_fingerprint(result) if is_scenario else None,
        )


def new_run(
    config: Config,
    inputs: VerdictInputs,
    planned: int,
    options: Mapping[str, Any],
) -> NewRun:
    """A run of `eval`. options: the fields of `EvalOptions`."""
    return NewRun(
        id=options["run_id"],
        command="eval",
        suite=suite_name(options["directory"], config),
        started=options["started"],
        planned=planned,
        package_version=__version__,
        selection=options["only"],
        agent=without_password(options["agent"] or ""),
        llm=options["llm"],
        model=inputs.model,
        parameters=inputs.parameters,
        options={name: options[name] for name in ("jobs", *AGENT_OPTIONS)},
        repeat=options["repeat"],
        threshold=options["threshold"],
        require_proof=options["require_proof"],
    )


def suite_name(directory: Path, config: Config) -> str:
    """The folder as every machine names it: relative to the project, or as that which comes with the package."""
    from guarantee_email_agent.config.built_in_files import built_in_path

    folder = directory.absolute()
    if config.source is not None and folder.is_relative_to(config.source.parent):
        return folder.relative_to(config.source.parent).as_posix()
    return "built-in" if folder == built_in_path("evals/scenarios") else folder.as_posix()


def _usage(result: EvalResult) -> Usage:
    if (usage := result.usage) is None:
        return NO_USAGE
    tokens = {f"{name}_tokens": count for name, count in usage.tokens.as_dict().items()}
    return Usage(calls=usage.calls, **tokens, cost_usd=usage.cost_usd, latency_ms=usage.latency_ms)
