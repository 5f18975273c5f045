"""The whole of `eval`: find the scenarios, run them one after another or on several cores, report, gate."""

from __future__ import annotations

import io
import logging
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.case_result import as_case
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.offline_run import OfflineRun
from guarantee_email_agent.eval.options import REPORT_UNWRITABLE, EvalOptions, suite_key
from guarantee_email_agent.eval.reporter import EvalReporter
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.eval.scenario_files import ScenarioFiles
from guarantee_email_agent.eval.scenario_validation import KnownNames
from guarantee_email_agent.instructions.file_checks import instruction_warnings
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.reporting.distinct_mails import MailCounter
from guarantee_email_agent.reporting.progress import Progress
from guarantee_email_agent.reporting.run_report import run_and_report
from guarantee_email_agent.reporting.terminal import TextStream, pluralize, warn_on_stderr
from guarantee_email_agent.store.records import Case
from guarantee_email_agent.utils.errors import (
    EXIT_EVALUATION,
    EXIT_INTERRUPTED,
    EXIT_SUCCESS,
    AgentError,
    ConfigurationError,
)
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.eval.agents.evaluation import AgentEvaluation
    from guarantee_email_agent.eval.eval_recorder import EvalRecorder
    from guarantee_email_agent.eval.live import LiveEvaluation
    from guarantee_email_agent.eval.resume import EarlierResults
    from guarantee_email_agent.eval.scenario_model import SuiteRecordings
    from guarantee_email_agent.executors.executor import Executor

logger = logging.getLogger(__name__)

_OFFLINE_QUIET_S = 5.0
_NOT_WITH_CURVE = ("agent", "resume", "changed", "baseline", "no_regressions", "last_failed", "fail_fast")
_Results = Generator[EvalResult, None, None]
_Cases = Generator[Case, None, None]


def evaluate(
    options: EvalOptions, config: Config, stream: TextStream, on_result: Callable[[EvalResult], None] | None = None
) -> int:
    """Run the suite and print its outcome to `stream`; the exit code. on_result: gets each result, in order.

    Raises EvalError for a suite folder that cannot be read, InstructionError for bad instruction files, and
    ConfigurationError for a report or a recording that cannot be written, for a suite of which nothing is recorded, for
    a model whose key is missing, and for a cluster that cannot be used.
    """
    with ExitStack() as resources:
        return _evaluate(options, config, stream, resources, on_result)


def _evaluate(
    options: EvalOptions,
    config: Config,
    stream: TextStream,
    resources: ExitStack,
    on_result: Callable[[EvalResult], None] | None,
) -> int:
    logger.info("Running in eval mode - using mocks")
    logger.info("Using mocked integrations for eval")
    began = time.perf_counter()
    if options.caution_curve:
        config, options = _without_caution(config, options)
    if options.changed:
        _refuse_with_changed(options)
    outside = _agent_evaluation(config, options)
    if instructions := _checked_instructions(config, outside):
        for part, sentence in instruction_warnings(instructions, config.instructions.scenarios_dir):
            logger.warning("%s: %s", part, sentence)
    loader = _loader(instructions)
    if options.report_files:
        from guarantee_email_agent.reporting.report_files import check_report_paths

        check_report_paths(options.report_files, REPORT_UNWRITABLE)
    if options.records_dir is not None:
        from guarantee_email_agent.reporting.report_files import make_folder

        make_folder(options.records_dir, "--records", "eval_records_unwritable")
        if options.report_files:
            from guarantee_email_agent.judging.record import refuse_misplaced_reports

            refuse_misplaced_reports(options.report_files.values(), folder=options.records_dir)
    files = _scenario_files(options)
    baseline = None
    if options.baseline is not None or options.no_regressions or options.last_failed:
        from guarantee_email_agent.eval.baseline import baseline_of, select_last_failed

        key = suite_key(config, options)
        baseline = baseline_of(options, key, files)
        chosen, only = select_last_failed(options, key, files)
        files, options = ScenarioFiles.of(chosen), replace(options, only=only)
    logger.info("Discovered %d eval test cases", len(files))
    cluster = _cluster(options, resources)
    live = _live_evaluation(config, options)
    mails = MailCounter()

    def facts() -> dict[str, Any]:
        """Of the run, for its reports."""
        found: dict[str, Any] = {"fail_fast": True} if options.fail_fast else {}
        if live is not None:
            found["usage"] = live.usage()._asdict()
        if baseline is not None:
            found |= {"baseline": baseline.run.id, "regressions": baseline.regressions()}
            found["no_regressions"] = options.no_regressions
        return found

    at_once = (outside or live) is not None
    recorder, earlier = _recorder(config, options, files, loader, mails, facts, resources, at_once=at_once)
    if earlier is not None and earlier.run is not None:
        options = replace(options, run_id=earlier.run.id, started=earlier.run.started)
        if live is not None:
            live.count_earlier(earlier.usages())
    if baseline is not None and (recorder is None or recorder.is_temporary):
        raise ConfigurationError("--baseline needs the run store, which cannot be used", "eval_run_not_kept")
    progress = _progress(len(files), live)
    if earlier is not None:
        progress.skip(len(earlier.whole))
    unseen = io.StringIO() if options.caution_curve else None
    reporter = EvalReporter(
        unseen or stream,
        threshold=options.threshold,
        cost=None if live is None else live.cost,
        require_proof=options.require_proof,
        quiet=options.quiet,
        fail_fast=options.fail_fast,
        deterministic=options.is_deterministic,
        baseline=baseline,
        no_regressions=options.no_regressions,
        mails=mails,
    )
    title = f"Running evaluation suite... ({pluralize(len(files), 'scenario')})"
    todo = files if earlier is None else _not_in(files, earlier)
    begun = None if earlier is None else earlier.begun
    results = _results(config, todo, options, outside or live, cluster, loader, recorder, begun)
    cases = _cases(results, files, on_result)
    if earlier is not None:
        cases = _merged(earlier, cases)
    if options.fail_fast:
        cases = _until_failure(cases)

    code = run_and_report(
        title,
        cases,
        len(files),
        reporter,
        options,
        progress=progress,
        began=began,
        recorder=recorder,
    )
    if baseline is not None:
        baseline.print_comparison(options.run_id, stream)
    if unseen is not None:
        if code == EXIT_INTERRUPTED or reporter.stop_reason is not None:
            stream.write(unseen.getvalue())
        else:
            stream.write("".join(f"{line}\n" for line in reporter.caution_curve()))
            code = EXIT_SUCCESS
        stream.flush()
    return code


def _without_caution(config: Config, options: EvalOptions) -> tuple[Config, EvalOptions]:
    """For a curve: its run is no verdict on the agent as it is configured, so that nobody keeps it.

    Raises ConfigurationError for options that make no sense with it.
    """
    for name in _NOT_WITH_CURVE:
        if getattr(options, name) not in (None, False):
            problem = "--caution-curve is of a whole run of our own agent, which nothing is compared with. "
            raise ConfigurationError(f"{problem}Remove --{name.replace('_', '-')}", "cli_bad_usage")
    return replace(config, agent=replace(config.agent, caution=0)), replace(options, kept=None, quiet=True)


def run_again(config: Config, options: EvalOptions, files: Sequence[str]) -> _Results:
    """The results of these files of the suite, in their order, as `evaluate` has them; nothing is printed or kept.

    Raises InstructionError for bad instruction files.
    """
    outside = _agent_evaluation(config, options)
    loader = _loader(_checked_instructions(config, outside))
    yield from _results(config, files, replace(options, kept=None), outside, None, loader)


def keep_results(
    config: Config, options: EvalOptions, results: Sequence[EvalResult], duration_s: float, resources: ExitStack
) -> EvalRecorder:
    """Who has kept a whole run of these results in a temporary store, for its reports. Raises StoreError."""
    files = ScenarioFiles.of(result.test_case.file or "" for result in results)
    mails, reporter = MailCounter(), EvalReporter(io.StringIO(), threshold=options.threshold)
    recorder, _ = _recorder(config, options, files, EvalLoader(), mails, dict, resources, at_once=False)
    assert recorder is not None
    for position, result in enumerate(results, 1):
        case = as_case(result, position)
        mails.add(case)
        reporter.add(case)
        recorder.add(case)
    code = EXIT_SUCCESS if reporter.gate() == "passed" else EXIT_EVALUATION
    recorder.finish(reporter.gate(), code, duration_s)
    return recorder


def _checked_instructions(config: Config, outside: AgentEvaluation | None) -> Instructions | None:
    """Of our own agent; None for one that is not ours. Raises InstructionError."""
    return EvalRunner(config).check_instructions() if outside is None or outside.is_own else None


def _loader(instructions: Instructions | None) -> EvalLoader:
    """instructions: None for an agent that is not ours."""
    return EvalLoader(any_agent=True) if instructions is None else EvalLoader(known=KnownNames.of(instructions))


def _cases(results: _Results, files: ScenarioFiles, on_result: Callable[[EvalResult], None] | None) -> _Cases:
    """The results as runs are kept and shown by. on_result: gets each."""
    with closing(results):
        for result in results:
            if on_result is not None:
                on_result(result)
            yield as_case(result, files.position(result.test_case.file or ""))


def _until_failure(cases: _Cases) -> _Cases:
    """The cases up to the first that did not pass."""
    with closing(cases):
        for case in cases:
            yield case
            if not case.passed:
                return


def _progress(planned: int, live: LiveEvaluation | None) -> Progress:
    """On stderr; offline only for runs of many thousand scenarios, since others are over at once."""
    if live is None:
        return Progress(sys.stderr, planned, "run", quiet_s=_OFFLINE_QUIET_S)
    progress = Progress(sys.stderr, planned, "run", detail=live.progress_detail)
    live.show_progress(progress)
    return progress


def _recorder(
    config: Config,
    options: EvalOptions,
    files: ScenarioFiles,
    loader: EvalLoader,
    mails: MailCounter,
    facts: Callable[[], Mapping[str, Any]],
    resources: ExitStack,
    *,
    at_once: bool,
) -> tuple[EvalRecorder | None, EarlierResults | None]:
    """Who keeps the run, and what it has already; neither where nobody reads it.

    Where it is not to be kept, or the store cannot be used, it is kept in a temporary file for its reports: no gate
    rests on it, so that a warning says so. Only where results are to be taken over does it raise StoreError;
    ConfigurationError where none can be.
    """
    if options.kept is None and options.resume is not None:
        raise ConfigurationError("--resume needs the run store. Remove --no-store", "cli_bad_usage")
    if options.kept is None and not options.wants_reports:
        return None, None
    from guarantee_email_agent.eval.eval_recorder import EvalRecorder, new_run
    from guarantee_email_agent.eval.verdict_inputs import VerdictInputs
    from guarantee_email_agent.store.database import StoreError
    from guarantee_email_agent.store.temporary import temporary_store
    from guarantee_email_agent.utils.git_state import GitQuestion

    git = GitQuestion(config.source.parent if config.source is not None else options.directory)
    values = {name: getattr(options, name) for name in options.__dataclass_fields__}
    inputs = VerdictInputs(config, options.directory, options.llm, options.agent, values)
    run = new_run(config, inputs, len(files), values)
    key = suite_key(config, options)
    earlier = None
    begin = partial(
        EvalRecorder, run=run, inputs=inputs, files=files, git=git, at_once=at_once, mails=mails, facts=facts
    )
    if options.kept is None:
        return begin(temporary_store(resources), is_temporary=True), None
    try:
        if options.resume is not None:
            from guarantee_email_agent.eval.resume import find_earlier_results

            earlier = find_earlier_results(
                options.kept.file, options.resume, key, files, inputs.set, loader, options.repeat
            )
            nothing = "Nothing to resume: no run of this suite was interrupted last. A new run begins"
            sys.stderr.write(f"{nothing if earlier is None else earlier.sentence}\n")
            if earlier is not None and earlier.kept_ids:
                sys.stderr.write("".join(f"incomplete: {printable(reason)}\n" for reason in inputs.set.incomplete))
        elif options.changed:
            from guarantee_email_agent.eval.resume import find_unchanged

            if reasons := inputs.set.incomplete:
                more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
                problem = (
                    f"--changed takes nothing over, since what verdicts depend on is incomplete: {reasons[0]}{more}"
                )
                raise ConfigurationError(f"{printable(problem)}. Remove --changed", "eval_inputs_incomplete")
            earlier = find_unchanged(options.kept.file, run.id, key, files, inputs.set, loader, options.repeat)
        return begin(options.kept, earlier=earlier), earlier
    except AgentError as error:
        if options.resume is not None or options.changed or not isinstance(error, StoreError):
            git.answer()
            raise
        warn_on_stderr(f"This run is not kept: {error.message}")
        return (begin(temporary_store(resources), is_temporary=True) if options.wants_reports else None), None


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


def _not_in(files: ScenarioFiles, earlier: EarlierResults) -> ScenarioFiles:
    return ScenarioFiles.of(file for file, is_whole in zip(files, earlier.is_whole, strict=True) if not is_whole)


def _merged(earlier: EarlierResults, cases: _Cases) -> _Cases:
    """Earlier cases and new ones, in the order of the files."""
    known = iter(earlier.whole)
    with closing(cases):
        for is_whole in earlier.is_whole:
            yield next(known) if is_whole else next(cases)


def _scenario_files(options: EvalOptions) -> ScenarioFiles:
    files = EvalLoader().packed_files(options.directory)
    if not options.only:
        return files
    from guarantee_email_agent.eval.selection import select_scenarios

    return ScenarioFiles.of(select_scenarios(files, options.only, options.directory))


def _agent_evaluation(config: Config, options: EvalOptions) -> AgentEvaluation | None:
    """The run of an agent from outside; None for our own in this process. Raises ConfigurationError for none such."""
    if options.agent is None:
        return None
    if options.llm != "offline":
        problem = "--llm is for our own agent in this process, and --agent for others. Remove one"
        raise ConfigurationError(problem, "cli_bad_usage")
    if options.max_cost_usd is not None:
        problem = "--max-cost is for our own agent in this process: what --agent costs is not known here. Remove one"
        raise ConfigurationError(problem, "cli_bad_usage")
    from guarantee_email_agent.eval.agents.evaluation import AgentEvaluation, AgentOptions  # mcp, and a web server

    return AgentEvaluation(config, AgentOptions(options.agent, options.agent_mcp, options.agent_timeout))


def _live_evaluation(config: Config, options: EvalOptions) -> LiveEvaluation | None:
    """The run against the API; None offline and in a replay. Raises where something is missing, before it begins."""
    if options.llm == "offline":
        return None
    if options.llm == "replay":
        _recordings(config, options).check_recorded()
        return None
    from guarantee_email_agent.eval.live import LiveEvaluation  # an event loop, and the SDK

    logger.info("The language model is %s (%s)", config.llm.model, options.llm)
    return LiveEvaluation(
        config,
        _recordings(config, options) if options.llm == "record" else None,
        max_cost_usd=options.max_cost_usd,
        repeat=options.repeat,
    )


def _recordings(config: Config, options: EvalOptions) -> SuiteRecordings:
    import shlex  # not offline

    from guarantee_email_agent.eval.scenario_model import SuiteRecordings

    command = ["eval", "--llm", "record"]
    if config.source is not None and config.source != Path.cwd() / "config.yaml":
        command += ["--config", str(config.source)]
    if options.directory != config.eval.test_suite_path:
        command += ["--eval-dir", str(options.directory)]
    if options.repeat > 1:
        command += ["--repeat", str(options.repeat)]
    text = printable(shlex.join(command))
    return SuiteRecordings(options.directory, force_tool=config.llm.force_tool, command=text)


def _cluster(options: EvalOptions, resources: ExitStack) -> Executor | None:
    """None where the run stays on this machine. Raises ConfigurationError for a cluster that cannot be used."""
    if options.executor == "local":
        return None
    if options.agent is not None or options.llm in ("live", "record"):
        # One process keeps the limits of the API and the cost; and an agent is a program of this machine.
        what = "--agent" if options.agent is not None else f"--llm {options.llm}"
        problem = f"{what} runs on this machine, with --jobs. Remove --executor {options.executor}"
        raise ConfigurationError(problem, "cli_bad_usage")
    from guarantee_email_agent.executors.ray_executor import connected

    return resources.enter_context(connected(options.executor, options.jobs))


def _results(
    config: Config,
    files: Sequence[str],
    options: EvalOptions,
    other: AgentEvaluation | LiveEvaluation | None,
    cluster: Executor | None,
    loader: EvalLoader,
    recorder: EvalRecorder | None = None,
    begun: Mapping[str, Sequence[EvalResult]] | None = None,
) -> _Results:
    if other is not None:
        return other.results(
            loader.iter_entries(files),
            len(files),
            jobs=options.jobs,
            repeat=options.repeat,
            records_dir=options.records_dir,
            on_result=None if recorder is None else recorder.on_result,
            earlier=begun,
        )
    recordings = _recordings(config, options) if options.llm == "replay" else None
    run = OfflineRun(config, options, loader, keep_traces=recorder is not None, recordings=recordings)
    if cluster is not None:
        return run.in_chunks(cluster, files, remotely=True)
    if (jobs := min(options.jobs, len(files))) > 1:
        from guarantee_email_agent.executors.executor import LocalProcesses

        return run.in_chunks(LocalProcesses(jobs), files)
    return run.one_by_one(files)
