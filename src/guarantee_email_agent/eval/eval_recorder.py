"""Keeps a run of the suite in the run store while it goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.case_result import as_case_result
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.loader import EvalLoader, position_in
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.verdict_inputs import AGENT_OPTIONS, VerdictInputs, without_password
from guarantee_email_agent.runlog.database import StoreError, temporary_store
from guarantee_email_agent.runlog.proof import suite_name
from guarantee_email_agent.runlog.records import Case, CaseResult, InputSet, KeptRun, NewRun, Outcome, SuiteKey
from guarantee_email_agent.runlog.run_writer import RunEnd, RunWriter
from guarantee_email_agent.runlog.suite_statistics import MailCounter
from guarantee_email_agent.runlog.views.run_report import RunOptions
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError
from guarantee_email_agent.utils.git_state import GitQuestion
from guarantee_email_agent.utils.terminal import warn_on_stderr
from guarantee_email_agent.utils.text import and_more, printable
from guarantee_email_agent.utils.version import __version__

if TYPE_CHECKING:
    from guarantee_email_agent.eval.resume import EarlierResults
    from guarantee_email_agent.eval.sealed import BlindCases

REPORT_UNWRITABLE: Final = "eval_report_unwritable"
_CHECK_S: Final = 0.25
"""How often the files are looked at that verdicts depend on, where many scenarios run in that time."""


class EvalRecorder:
    """One run: `on_result` for results that are paid for, as soon as each is there, else `add` for all of one case."""

    def __init__(
        self,
        kept: KeptRun,
        run: NewRun,
        inputs: VerdictInputs,
        files: Sequence[str],
        git: GitQuestion,
        *,
        at_once: bool,
        earlier: EarlierResults | None = None,
        mails: MailCounter | None = None,
        facts: Callable[[], Mapping[str, Any]] = dict,
        is_temporary: bool = False,
        blind: BlindCases | None = None,
    ) -> None:
        """files: of the scenarios, in the order of the run. blind: of a sealed suite. earlier: of the run that goes on,
        or of others. mails: those of the run, which somebody else counts. facts: of `RunEnd`, asked at the end.
        is_temporary: whether the file goes with the command. Raises StoreError.
        """
        self.is_temporary = is_temporary
        self._blind = blind
        self._facts = facts
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
            announced=() if blind is not None else [Path(file).stem for file in files],
        )
        self._is_restored = None if earlier is None else earlier.is_whole
        self._waiting: list[CaseResult] = []
        self._checked_at = time.monotonic()
        self._changed = False

    def on_result(self, repetition: int, result: EvalResult) -> None:
        """As `EvalRunner` has it; called by any thread."""
        position = position_in(self._files, result.test_case.file)
        run = as_case_result(result, position, repetition)
        shown = run if self._blind is None else self._blind.result(run)
        self._writer.add(shown._replace(inputs=self._inputs_now()))

    def add(self, case: Case) -> None:
        if self._at_once:
            return  # it came through `on_result`
        position = case.shown.position
        if self._is_restored is not None and self._is_restored[position - 1]:
            return  # it is there from before
        self._waiting += case.runs
        if time.monotonic() - self._checked_at >= _CHECK_S:
            self._pass_on()

    def finish(self, outcome: Outcome, exit_code: int, duration_s: float) -> None:
        self._pass_on()
        mails = None if self._mails is None else self._mails.count()
        counts = None if mails is None else (mails.total, mails.passed)
        git = self._git.answer()
        facts = {**self._facts(), "by": user_name()}
        self._writer.finish(RunEnd(outcome, exit_code, self._kept.now(), duration_s, git, counts, facts))
        if self._changed:
            warn_on_stderr("Instruction, lexicon or judge files were edited during the run: its results may differ")

    def write_reports(self, options: RunOptions, ran: int) -> None:
        from guarantee_email_agent.runlog.views.stored_report import write_stored_reports  # every form of report

        with ExitStack() as resources:
            write_stored_reports(*self._writer.readable(resources), options, REPORT_UNWRITABLE, ran)

    def _pass_on(self) -> None:
        """The files are looked at after the results, so that none has inputs that came later."""
        inputs = self._inputs_now()
        self._writer.add(*(result._replace(inputs=inputs) for result in self._waiting))
        self._waiting.clear()
        self._checked_at = time.monotonic()

    def _inputs_now(self) -> InputSet | None:
        self._changed = self._changed or not self._inputs.unchanged()
        return None if self._changed else self._inputs.set


def user_name() -> str:
    """Who runs this, as their system knows them; empty where it does not."""
    import getpass  # start-up: once a run is over

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this user id
        return ""


def begin_log(
    config: Config,
    options: EvalOptions,
    files: Sequence[str],
    loader: EvalLoader,
    mails: MailCounter,
    facts: Callable[[], Mapping[str, Any]],
    resources: ExitStack,
    *,
    at_once: bool,
    blind: BlindCases | None = None,
) -> tuple[EvalRecorder | None, EarlierResults | None]:
    """Who keeps the run, and what it has already; neither where nobody would read it.

    Where it is not to be kept, or the store cannot be used, it is kept in a temporary file for its reports: no gate
    rests on it, so that a warning says so. Only where results are to be taken over does it raise StoreError;
    ConfigurationError where none can be.
    """
    git = GitQuestion(config.source.parent if config.source is not None else options.directory)
    inputs = inputs_of(config, options)
    run = _new_run(config, inputs, len(files), options)
    key = suite_key(config, options)
    earlier = None
    begin = partial(
        EvalRecorder,
        run=run,
        inputs=inputs,
        files=files,
        git=git,
        at_once=at_once,
        mails=mails,
        facts=facts,
        blind=blind,
    )
    if options.kept is None:
        return begin(temporary_store(resources), is_temporary=True), None
    try:
        if options.resume is not None or options.changed:
            from guarantee_email_agent.eval.resume import SuiteNow, find_earlier_results, find_unchanged

            now = SuiteNow(options.kept.file, key, files, inputs.set, loader, options.repeat)
            reasons = inputs.set.incomplete
            if options.resume is not None:
                earlier = find_earlier_results(now, options.resume)
                nothing = "Nothing to resume: no run of this suite was interrupted last. A new run begins"
                sys.stderr.write(f"{nothing if earlier is None else earlier.sentence}\n")
                if earlier is not None and earlier.kept_ids:
                    sys.stderr.write("".join(f"incomplete: {printable(reason)}\n" for reason in reasons))
            elif reasons:
                problem = "--changed takes nothing over, since what verdicts depend on is incomplete"
                shown = printable(and_more(reasons, 1))
                raise ConfigurationError(f"{problem}: {shown}. Remove --changed", "eval_inputs_incomplete")
            else:
                earlier = find_unchanged(now, run.id)
        return begin(options.kept, earlier=earlier), earlier
    except AgentError as error:
        if options.resume is not None or options.changed or not isinstance(error, StoreError):
            git.answer()
            raise
        warn_on_stderr(f"This run is not kept: {error.message}")
        return (begin(temporary_store(resources), is_temporary=True) if options.wants_reports else None), None


def inputs_of(config: Config, options: EvalOptions) -> VerdictInputs:
    """What the verdicts of a run with these options depend on."""
    of_agent = {name: getattr(options, name) for name in AGENT_OPTIONS}
    return VerdictInputs(config, options.directory, options.llm, options.agent, of_agent)


def _new_run(config: Config, inputs: VerdictInputs, planned: int, options: EvalOptions) -> NewRun:
    return NewRun(
        id=options.run_id,
        command="eval",
        suite=suite_name(options.directory, config),
        started=options.started,
        planned=planned,
        package_version=__version__,
        selection=options.only,
        agent=without_password(options.agent or ""),
        llm=options.llm,
        model=inputs.model,
        parameters=inputs.parameters,
        options={name: getattr(options, name) for name in ("jobs", *AGENT_OPTIONS)},
        repeat=options.repeat,
        threshold=options.threshold,
        require_proof=options.require_proof,
    )


def suite_key(config: Config, options: EvalOptions) -> SuiteKey:
    """What runs have in common that can be compared with one of these options."""
    suite, agent = suite_name(options.directory, config), without_password(options.agent or "")
    return SuiteKey("eval", suite, options.only, agent, options.llm)
