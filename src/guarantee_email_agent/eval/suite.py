"""The whole of `eval`: prepare, run, report.

A sealed suite runs whole, and only totals are shown of it, unless it is opened: then it counts as seen.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import random
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.case_result import as_case, as_model_usage, at_position
from guarantee_email_agent.eval.execution import EvalOptions, Execution
from guarantee_email_agent.eval.loader import select_scenarios
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.reporter import SMALL_SUITE, EvalReporter
from guarantee_email_agent.instructions.file_checks import instruction_warnings
from guarantee_email_agent.instructions.lexicon import lexicon_folder
from guarantee_email_agent.runlog.records import Case, CaseResult, Usage
from guarantee_email_agent.runlog.suite_manifest import SuiteManifest, keep_opening, read_manifest, suites_around
from guarantee_email_agent.runlog.suite_statistics import SuiteStatistics, handling_of
from guarantee_email_agent.runlog.views.run_report import run_and_report
from guarantee_email_agent.utils.errors import EXIT_EVALUATION, EXIT_INTERRUPTED, EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.terminal import Progress, Terminal, TextStream, pluralize
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.eval.baseline import Baseline
    from guarantee_email_agent.eval.eval_recorder import EvalRecorder
    from guarantee_email_agent.eval.reuse import EarlierResults

logger = logging.getLogger(__name__)

_OFFLINE_QUIET_S = 5.0
_NOT_WITH_CURVE = ("agent", "resume", "changed", "baseline", "no_regressions", "last_failed", "fail_fast")
_Cases = Generator[Case, None, None]
_OnResult = Callable[[EvalResult], None]


def evaluate(options: EvalOptions, config: Config, stream: TextStream, on_result: _OnResult | None = None) -> int:
    """Run the suite and print its outcome to `stream`; the exit code. on_result: gets each result, in order.

    Raises EvalError for a suite folder that cannot be read, InstructionError for bad instruction files, and
    ConfigurationError for a report or a recording that cannot be written, for a suite of which nothing is recorded, for
    a model whose key is missing, and for a cluster that cannot be used.
    """
    logger.info("Running in eval mode - using mocks")
    logger.info("Using mocked integrations for eval")
    began = time.perf_counter()
    with ExitStack() as resources:
        suite = _prepare(options, config, resources)
        # Of a curve the run is no verdict on the agent as it is configured.
        shown = io.StringIO() if options.caution_curve else stream
        reporter = suite.reporter(shown)
        title = f"Running evaluation suite... ({pluralize(len(suite.files), 'scenario')})"
        code = run_and_report(
            title,
            suite.cases(on_result),
            len(suite.files),
            reporter,
            suite.options,
            progress=suite.progress(),
            began=began,
            recorder=suite.recorder,
        )
        if suite.baseline is not None:
            suite.baseline.print_comparison(suite.options.run_id, stream)
        if isinstance(shown, io.StringIO) and options.caution_curve:
            is_whole = code != EXIT_INTERRUPTED and reporter.stop_reason is None
            stream.write("".join(f"{line}\n" for line in reporter.caution_curve()) if is_whole else shown.getvalue())
            stream.flush()
            return EXIT_SUCCESS if is_whole else code
        if suite.manifest.opened == 1 and options.open and reporter.totals.total == len(suite.files):
            keep_opening(options.directory, suite.statistics.mails.count())
        if code == EXIT_EVALUATION and suite.blind is None:
            from guarantee_email_agent.eval.baseline import print_next_steps  # only for runs that fail

            print_next_steps(config, suite.options, Terminal(stream))
        return code


@dataclass(slots=True)
class _Suite:
    """A suite that is ready to run. earlier: what an earlier run has already.

    blind: takes from the cases of a sealed suite what may not be shown.
    """

    options: EvalOptions
    execution: Execution
    files: Sequence[str]
    manifest: SuiteManifest
    statistics: SuiteStatistics
    baseline: Baseline | None = None
    recorder: EvalRecorder | None = None
    earlier: EarlierResults | None = None
    blind: BlindCases | None = None

    def reporter(self, stream: TextStream) -> EvalReporter:
        options, live = self.options, self.execution.live
        return EvalReporter(
            stream,
            options=options,
            statistics=self.statistics,
            lists_passed=self.blind is None and (options.verbose or len(self.files) <= SMALL_SUITE),
            lists_failed=self.blind is None,
            cost=None if live is None else live.cost,
            baseline=self.baseline,
        )

    def progress(self) -> Progress:
        """On stderr; offline only for runs of many thousand scenarios, since others are over at once."""
        live, planned = self.execution.live, len(self.files)
        if live is None:
            progress = Progress(sys.stderr, planned, "run", quiet_s=_OFFLINE_QUIET_S)
        else:
            progress = Progress(sys.stderr, planned, "run", detail=live.progress_detail)
            live.show_progress(progress)
        progress.skip(len(self._known))
        return progress

    def cases(self, on_result: _OnResult | None) -> _Cases:
        """Each as it is ready, in the order of the files; once a failure is the last, what is known alone."""
        cases = self._new_cases(on_result)
        known, stops = iter(()) if self.earlier is None else self.earlier.cases(), False
        with closing(cases):
            for position in range(1, len(self.files) + 1):
                if stops and position not in self._known:
                    continue
                case = next(known) if position in self._known else next(cases, None)
                if case is None:  # it was stopped
                    return
                yield case
                stops = stops or (self.options.fail_fast and not case.passed)

    @property
    def _known(self) -> frozenset[int]:
        """The positions of scenarios that need not run again."""
        return frozenset() if self.earlier is None else self.earlier.positions

    def _new_cases(self, on_result: _OnResult | None) -> _Cases:
        earlier, recorder = self.earlier, self.recorder
        known = self._known
        positions = {file: position for position, file in enumerate(self.files, 1) if position not in known}
        results = self.execution.results(
            list(positions),
            on_result=None if recorder is None else recorder.on_result,
            earlier=None if earlier is None else earlier.begun,
        )
        with closing(results):
            for result in results:
                if on_result is not None:
                    on_result(result)
                case = at_position(result.case or as_case(result), positions.get(result.test_case.file or "", 0))
                yield case if self.blind is None else self.blind.case(case)

    def facts(self) -> dict[str, Any]:
        """Of the run, for its reports."""
        found = self.manifest.as_facts() | ({"fail_fast": True} if self.options.fail_fast else {})
        found |= {"opened": self.manifest.opened} if self.options.open else {}
        if self.statistics.must_failed:
            found["must_failed"] = self.statistics.must_failed
        if self.execution.live is not None:
            found["usage"] = self.execution.live.usage()._asdict()
        if self.baseline is not None:
            found |= {"baseline": self.baseline.run.id, "regressions": self.baseline.regressions()}
            found["no_regressions"] = self.options.no_regressions
        return found


def _prepare(options: EvalOptions, config: Config, resources: ExitStack) -> _Suite:
    """All that can be refused is refused here."""
    options, manifest = sealed_options(options, config)
    if options.caution_curve:
        _refuse_with_curve(options)
        config = replace(config, agent=replace(config.agent, caution=0))
        options = replace(options, kept=None, github=None, quiet=True)
    if options.changed:
        _refuse_with_changed(options)
    if options.kept is None and options.resume is not None:
        raise ConfigurationError("--resume needs the run store. Remove --no-store", "cli_bad_usage")
    execution = Execution.of(config, options, resources)
    if execution.instructions is not None:
        folders = config.instructions.scenarios_dir, lexicon_folder(config.instructions.main)
        for part, sentence in instruction_warnings(execution.instructions, *folders):
            logger.warning("%s: %s", part, sentence)
    _check_report_places(options)
    folder, baseline = options.directory, None
    files: Sequence[str] = select_scenarios(execution.loader.scenario_files(folder), options.only, folder)
    if options.baseline is not None or options.no_regressions or options.last_failed:
        from guarantee_email_agent.eval.baseline import baseline_of, select_last_failed
        from guarantee_email_agent.eval.eval_recorder import suite_key

        key = suite_key(config, options)
        baseline = baseline_of(options, key, files)
        files, only = select_last_failed(options, key, files)
        if baseline is not None and options.no_regressions:
            baseline.refuse_nothing_in_common(files)
        options = replace(options, only=only)
    logger.info("Discovered %d eval test cases", len(files))
    deterministic = options.agent is None and options.llm in ("offline", "replay")
    statistics = SuiteStatistics(deterministic=deterministic, manifest=manifest, is_whole=not options.only)
    suite = _Suite(options, execution, files, manifest, statistics, baseline)
    if manifest.kind == "sealed" and not options.open:
        suite.blind = BlindCases(len(files))
    if options.kept is not None or options.wants_reports:
        from guarantee_email_agent.eval.eval_recorder import begin_log

        suite.recorder, suite.earlier = begin_log(
            config,
            options,
            files,
            execution.loader,
            resources,
            mails=statistics.mails,
            facts=suite.facts,
            at_once=execution.is_paid_or_slow,
            hide=None if suite.blind is None else suite.blind.result,
        )
    if suite.earlier is not None and (resumed := suite.earlier.run) is not None:
        suite.options = replace(options, run_id=resumed.id, started=resumed.started)
        if execution.live is not None:
            told = resumed.facts.get("usage")
            paid = None if told is None else as_model_usage(Usage(**told))
            execution.live.count_earlier(suite.earlier.usages(), paid)
    is_kept = suite.recorder is not None and suite.recorder.kept is options.kept
    if baseline is not None and not is_kept:
        raise ConfigurationError("--baseline needs the run store, which cannot be used", "eval_run_not_kept")
    if options.open:
        if not is_kept:
            raise ConfigurationError("--open is kept in the run store. Remove --no-store", "eval_run_not_kept")
        keep_opening(options.directory)
    return suite


def _check_report_places(options: EvalOptions) -> None:
    if options.report_files:
        from guarantee_email_agent.eval.eval_recorder import REPORT_UNWRITABLE
        from guarantee_email_agent.files.report_files import check_report_paths

        check_report_paths(options.report_files, REPORT_UNWRITABLE)
    if options.records_dir is not None:
        from guarantee_email_agent.files.report_files import make_folder

        make_folder(options.records_dir, "--records", "eval_records_unwritable")
        if options.report_files:
            from guarantee_email_agent.judging.record import refuse_misplaced_reports

            refuse_misplaced_reports(options.report_files.values(), folder=options.records_dir)


def _refuse_with_curve(options: EvalOptions) -> None:
    """For a curve, whose run is no verdict on the agent as it is configured, so that nobody keeps it."""
    named = [f"--{name.replace('_', '-')}" for name in _NOT_WITH_CURVE if getattr(options, name) not in (None, False)]
    for option in (*named, *options.report_files):  # a report would have the gate of an agent without caution
        problem = "--caution-curve is of a whole run of our own agent, which nothing is compared with, nor reported. "
        raise ConfigurationError(f"{problem}Remove {option}", "cli_bad_usage")


def _refuse_with_changed(options: EvalOptions) -> None:
    problem = None
    if options.kept is None:
        problem = "--changed needs the run store. Remove --no-store"
    elif options.llm in ("live", "record"):
        problem = f"--changed takes over what cannot have changed; a live model can. Remove --llm {options.llm}"
    elif options.resume is not None:
        problem = "--changed begins a new run, and --resume goes on with one. Remove one"
    elif options.last_failed:
        problem = "--changed and --last-failed choose different scenarios. Remove one"
    elif options.records_dir is not None:
        problem = "--records has the record of every run, and --changed runs only a part. Remove one"
    if problem is not None:
        raise ConfigurationError(problem, "cli_bad_usage")


def run_again(config: Config, options: EvalOptions, files: Sequence[str]) -> Generator[EvalResult, None, None]:
    """The results of these files of the suite, in their order, as `evaluate` has them; nothing is printed or kept.

    The execution must not outlive its results: a Ctrl-C that comes while its agent's folder is removed is lost.

    Raises InstructionError for bad instruction files.
    """
    execution = Execution.of(config, replace(options, kept=None))
    execution.loader.scenario_files(options.directory)  # which ids stand twice, and where servers may be declared
    results = execution.results(files)
    del execution
    yield from results


_OF_PARTS: Final = (
    *("only", "baseline", "no_regressions", "last_failed", "fail_fast", "changed", "resume", "records_dir"),
    *("caution_curve", "verbose"),
)


def sealed_options(options: EvalOptions, config: Config) -> tuple[EvalOptions, SuiteManifest]:
    """What a suite's manifest makes of the options, and that manifest, with an opening that is to come.

    Raises ConfigurationError for what would show or leave out cases of a sealed suite, for a part of one, for one that
    is yet to be sealed, and for a threshold that was not sealed.
    """
    if (around := _sealed_around(options.directory)) is not None:
        raise _refused(around, "is sealed, or drawn to be, and runs whole. Name that folder")
    manifest, folder = read_manifest(options.directory), options.directory
    if manifest.is_closed and manifest.kind != "sealed":
        raise _refused(folder, "was drawn to be sealed. 'seal' it before anybody sees a result")
    if manifest.kind != "sealed":
        if options.open:
            raise _refused(folder, "is not sealed, or was opened as often as announced. Leave --open out")
        return options, manifest
    for name in _OF_PARTS:
        if getattr(options, name) not in (None, False, ()):
            option = "records" if name == "records_dir" else name.replace("_", "-")
            raise _refused(folder, f"is sealed, runs whole, and shows totals alone. Remove --{option}")
    if (threshold := manifest.threshold) is not None:
        if options.threshold not in (config.eval.pass_threshold, threshold):
            raise _refused(folder, f"was sealed with a threshold of {threshold:g} %. Leave --threshold out")
        proof = options.require_proof or manifest.rule == "proof"
        options = replace(options, threshold=threshold, require_proof=proof)
    return options, replace(manifest, opened=manifest.opened + 1) if options.open else manifest


def refuse_sealed(folder: Path) -> None:
    """Raises ConfigurationError where a folder or a file is, or is in, a sealed suite: only `eval` keeps it closed."""
    if (sealed := _sealed_around(folder / "_")) is not None:
        raise _refused(sealed, "is sealed, or drawn to be, and shows totals alone. Run it with `eval` alone")


class BlindCases:
    """Takes from results all that says which mail each is of, and what came of it, but what totals are counted from."""

    def __init__(self, count: int) -> None:
        """count: of the cases."""
        self._places = list(range(1, count + 1))
        random.SystemRandom().shuffle(self._places)
        self._key = os.urandom(16)

    def case(self, case: Case) -> Case:
        return Case(tuple(map(self.result, case.runs)))

    def result(self, run: CaseResult) -> CaseResult:
        place = self._places[run.position - 1]
        actual = run.response if isinstance(run.response, dict) else {}
        mail = None if run.mail is None else hashlib.blake2b(run.mail, digest_size=16, key=self._key).digest()
        return CaseResult(
            name=f"mail_{place:03d}",
            position=place,
            verdict=run.verdict,
            repetition=run.repetition,
            usage=run.usage,
            harm=("not shown",) if run.harm else run.harm,
            must=run.must,
            response={"email_sent": bool(actual.get("email_sent")), "handling": handling_of(actual)},
            trace=None if run.reading is None else {"read": {}},
            mail=mail,
        )


def _sealed_around(folder: Path) -> Path | None:
    """The sealed suite that a folder lies in; None for none, and for one itself."""
    return next((place for place, manifest in suites_around(folder) if manifest.is_closed), None)


def _refused(folder: Path, problem: str) -> ConfigurationError:
    return ConfigurationError(f"{printable(str(folder))} {problem}", "eval_suite_sealed")
