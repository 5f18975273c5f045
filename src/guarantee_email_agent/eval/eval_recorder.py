"""Keeps a run of the suite in the run store while it goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.loader import EvalLoader, position_in, stem
from guarantee_email_agent.eval.verdict_inputs import AGENT_OPTIONS, VerdictInputs, without_password
from guarantee_email_agent.runlog.proof import suite_name
from guarantee_email_agent.runlog.records import Case, CaseResult, InputSet, KeptRun, Outcome, Run, SuiteKey
from guarantee_email_agent.runlog.suite_manifest import source_in_suite
from guarantee_email_agent.runlog.suite_statistics import MailCounter
from guarantee_email_agent.runlog.views.run_recorder import RunRecorder, begin_recorder
from guarantee_email_agent.utils.distribution import __version__
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.terminal import warn_on_stderr
from guarantee_email_agent.utils.text import and_more, printable

if TYPE_CHECKING:
    from guarantee_email_agent.eval.reuse import EarlierResults

REPORT_UNWRITABLE: Final = "eval_report_unwritable"
_CHECK_S: Final = 0.25
"""How often the files are looked at that verdicts depend on, where many scenarios run in that time."""


class EvalRecorder(RunRecorder):
    """`on_result` gets results that are paid for, as soon as each is there, else `add` all of one case."""

    UNWRITABLE = REPORT_UNWRITABLE

    def __init__(
        self,
        kept: KeptRun,
        run: Run,
        folder: Path,
        inputs: VerdictInputs,
        files: Sequence[str],
        *,
        at_once: bool,
        mails: MailCounter,
        facts: Callable[[], Mapping[str, Any]],
        earlier: EarlierResults | None = None,
        hide: Callable[[CaseResult], CaseResult] | None = None,
    ) -> None:
        """folder: as `RunRecorder` has it. files: of the scenarios, in the order of the run. mails: those of the run,
        which somebody else counts. facts: as `Run` has them, asked at the end. earlier: of the run that goes on, or of
        others. hide: takes from a result what may not be kept. Raises StoreError.
        """
        goes_on = None if earlier is None else earlier.run
        kept_before = None if earlier is None else earlier.kept
        super().__init__(
            kept,
            run,
            folder,
            at_once=at_once,
            resume=None if kept_before is None or goes_on is None else (goes_on.number, kept_before),
            take_over=kept_before if goes_on is None else None,
            announced=() if hide is not None else list(map(stem, files)),
        )
        self._inputs, self._at_once, self._files = inputs, at_once, files
        self._mails, self._facts, self._hide = mails, facts, hide
        self._restored = frozenset[int]() if earlier is None else earlier.positions
        self._waiting: list[CaseResult] = []
        self._checked_at = time.monotonic()
        self._changed = False

    def on_result(self, run: CaseResult) -> None:
        """As `EvalRunner` has it; called by any thread."""
        run = run._replace(position=position_in(self._files, run.file))
        self._add((run if self._hide is None else self._hide(run),))

    def add(self, case: Case) -> None:
        if self._at_once:
            return  # it came through `on_result`
        if case.shown.position in self._restored:
            return  # it is there from before
        self._waiting += case.runs
        if time.monotonic() - self._checked_at >= _CHECK_S:
            self._pass_on()

    def _at_end(self) -> dict[str, Any]:
        self._pass_on()
        mails = self._mails.count()
        facts = {**self._facts(), "by": user_name()}
        return {"mails": mails.total, "mails_passed": mails.passed, "facts": facts}

    def finish(self, outcome: Outcome, exit_code: int, duration_s: float) -> None:
        super().finish(outcome, exit_code, duration_s)
        if self._changed:
            warn_on_stderr("Instruction, lexicon or judge files were edited during the run: its results may differ")

    def _pass_on(self) -> None:
        """The files are looked at after the results, so that none has inputs that came later."""
        self._add(self._waiting)
        self._waiting.clear()
        self._checked_at = time.monotonic()

    def _add(self, results: Sequence[CaseResult]) -> None:
        inputs = self._inputs_now()
        sources = (each.source and source_in_suite(each.source, each.file, self._inputs.suite) for each in results)
        pairs = zip(results, sources, strict=True)
        self._writer.add(*(each._replace(inputs=inputs, source=source) for each, source in pairs))

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
    resources: ExitStack,
    **of_recorder: Any,
) -> tuple[EvalRecorder | None, EarlierResults | None]:
    """Who keeps the run, as `begin_recorder` has it, and what it has already. of_recorder: as `EvalRecorder` has it.

    Where results are to be taken over it raises StoreError; ConfigurationError where none can be.
    """
    inputs = inputs_of(config, options)
    run, key = _new_run(config, inputs, len(files), options), suite_key(config, options)
    folder = config.source.parent if config.source is not None else options.directory

    def begin(kept: KeptRun, earlier: EarlierResults | None = None) -> EvalRecorder:
        return EvalRecorder(kept, run, folder, inputs, files, earlier=earlier, **of_recorder)

    if options.kept is None or not (options.resume is not None or options.changed):
        return begin_recorder(begin, options.kept, options, resources), None
    from guarantee_email_agent.eval.reuse import SuiteNow, find_earlier_results, find_unchanged

    now = SuiteNow(options.kept.file, key, files, inputs.set, loader, options.repeat)
    reasons = inputs.set.incomplete
    if options.resume is not None:
        earlier = find_earlier_results(now, options.resume)
        nothing = "Nothing to resume: no run of this suite was interrupted last. A new run begins"
        sys.stderr.write(f"{nothing if earlier is None else earlier.sentence}\n")
        if earlier is not None and earlier.kept:
            sys.stderr.write("".join(f"incomplete: {printable(reason)}\n" for reason in reasons))
    elif reasons:
        problem = "--changed takes nothing over, since what verdicts depend on is incomplete"
        raise ConfigurationError(
            f"{problem}: {printable(and_more(reasons, 1))}. Remove --changed", "eval_inputs_incomplete"
        )
    else:
        earlier = find_unchanged(now, run.id)
    return begin(options.kept, earlier=earlier), earlier


def inputs_of(config: Config, options: EvalOptions) -> VerdictInputs:
    """What the verdicts of a run with these options depend on."""
    of_agent = {name: getattr(options, name) for name in AGENT_OPTIONS}
    return VerdictInputs(config, options.directory, options.llm, options.agent, of_agent)


def _new_run(config: Config, inputs: VerdictInputs, planned: int, options: EvalOptions) -> Run:
    return Run(
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
