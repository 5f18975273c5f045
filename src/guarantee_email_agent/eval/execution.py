"""How scenarios run: who answers, and where. One way for the command line, for `--watch` and for Python."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self, cast

from guarantee_email_agent.config.settings import Config, Secrets
from guarantee_email_agent.eval.loader import MAX_SCENARIO_BYTES, EvalLoader
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase, InvalidScenario
from guarantee_email_agent.eval.runner import EvalRunner, OnResult, run_without_event_loop
from guarantee_email_agent.eval.scenario_validation import KnownNames
from guarantee_email_agent.files.text_file import InputFileError, read_bytes
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.runlog.records import CaseResult
from guarantee_email_agent.runlog.views.report import RunOptions
from guarantee_email_agent.utils.distribution import require_extra
from guarantee_email_agent.utils.errors import ConfigurationError, EvalError
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.eval.agents.agent import AgentUnderTest
    from guarantee_email_agent.eval.agents.command_agent import McpTransport
    from guarantee_email_agent.eval.agents.evaluation import AgentEvaluation
    from guarantee_email_agent.eval.agents.model_gateway import ModelGateway
    from guarantee_email_agent.eval.live import LiveEvaluation
    from guarantee_email_agent.eval.scenario_model import LlmMode, SuiteRecordings
    from guarantee_email_agent.executors.executor import Executor
    from guarantee_email_agent.runlog.records import KeptRun


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions(RunOptions):
    """What the command line decides.

    threshold: percent. require_proof: as `decide_gate` has it. only: what `select_scenarios`
    takes; empty for all. repeat: runs of each scenario. records_dir: a
    folder for the record of every run. run_id, started: what a JSON report calls this run, and when it began (ISO
    8601). llm: who answers as the language model. agent: who is judged in place of our own agent in this process, as
    `agents.evaluation.find_agent` reads it; agent_mcp: how it reaches the mocks; agent_timeout: seconds for a scenario.
    max_cost_usd: what the run may take of the API, in US dollars; None for no limit.
    kept: where the run is kept; None for nowhere. resume: the run that goes on, empty for the last interrupted one.
    changed: run only what is not as it was at its last verdict, and take the other verdicts over.
    baseline: the run that it is held against; no_regressions: whether the gate is passed only where nothing is worse.
    last_failed: only what failed when it ran last. fail_fast: end at the first failure. quiet: say nothing of what
    passed but its count. verbose: name what passed in a large suite, too. caution_curve: print what each
    caution comes to, in place of results and gate. open: show the cases of a sealed suite, which counts.
    """

    threshold: float
    require_proof: bool = False
    only: tuple[str, ...] = ()
    repeat: int = 1
    records_dir: Path | None = None
    run_id: str = ""
    started: str = ""
    llm: LlmMode = "offline"
    agent: str | None = None
    agent_mcp: McpTransport = "http"
    agent_timeout: float = 60.0
    max_cost_usd: float | None = None
    kept: KeptRun | None = None
    resume: str | None = None
    changed: bool = False
    baseline: str | None = None
    no_regressions: bool = False
    last_failed: bool = False
    fail_fast: bool = False
    quiet: bool = False
    verbose: bool = False
    caution_curve: bool = False
    open: bool = False


logger = logging.getLogger(__name__)

MAX_CHUNK: Final = 200
"""Runs handed to a worker at a time: few enough to keep all workers busy and to stop soon after Ctrl-C, and enough to
make the hand-over cheap."""

Entry = EvalTestCase | InvalidScenario


class OfflineRun(NamedTuple):
    """What a worker needs to know beside the files. recordings: of a replay; None for the mock."""

    config: Config
    options: EvalOptions
    loader: EvalLoader
    keep_traces: bool
    recordings: SuiteRecordings | None

    def one_by_one(
        self, entries: Iterable[EvalTestCase | InvalidScenario], count: int
    ) -> Generator[EvalResult, None, None]:
        """One result an entry, as it is ready. count: of the entries."""
        runner = EvalRunner(self.config, records_dir=self.options.records_dir, keep_traces=self.keep_traces)
        make_model = None if self.recordings is None else self.recordings.replayed
        for number, entry in enumerate(entries, 1):
            logger.info("Executing %d/%d: %s", number, count, entry.scenario_id)
            yield run_without_event_loop(runner.run_entry(entry, self.options.repeat, make_model))

    def in_chunks(
        self, executor: Executor, files: Sequence[str], *, remotely: bool = False
    ) -> Generator[EvalResult, None, None]:
        """The same results in the same order. remotely: by workers that have none of our files."""
        # Every worker is to be busy until near the end.
        size = max(1, min(MAX_CHUNK // self.options.repeat, len(files) // (executor.slots * 4)))
        chunks = (files[start : start + size] for start in range(0, len(files), size))
        # What is of this process alone stays here.
        run = self._replace(options=replace(self.options, kept=None, github=None))
        with closing(
            run.of_remote_chunks(executor, chunks) if remotely else executor.map_in_order(run.of_chunk, chunks)
        ) as results:
            number = 0
            for chunk in results:
                for result in chunk:
                    number += 1
                    logger.info("Executing %d/%d: %s", number, len(files), result.test_case.scenario_id)
                    if isinstance(result.test_case, InvalidScenario):  # workers log nothing
                        logger.error("%s", result.test_case.message)
                    yield result

    def of_chunk(self, files: Sequence[str]) -> list[EvalResult]:
        return list(self.one_by_one(self.loader.iter_entries(files), len(files)))

    def of_remote_chunks(
        self, executor: Executor, chunks: Iterable[Sequence[str]]
    ) -> Generator[list[EvalResult], None, None]:
        """The results of each chunk, whose records are written here."""
        from guarantee_email_agent.executors.executor import LocalPath
        from guarantee_email_agent.executors.remote_work import map_remotely
        from guarantee_email_agent.judging.record import write_files

        main, scenarios = self.config.instructions.main, self.config.instructions.scenarios_dir
        shared = [main, scenarios, main.parent / "lexicon", *_beside_scenarios(self.options.directory)]
        # A worker has no use for a secret.
        run = self._replace(config=replace(self.config, secrets=Secrets()))
        paths = ([LocalPath(file) for file in files] for files in chunks)
        for results, records in map_remotely(executor, run.of_remote_chunk, paths, self._files_of, shared):
            if self.options.records_dir is not None:
                write_files(self.options.records_dir, records)
            yield results

    def of_remote_chunk(self, files: Sequence[str], records_dir: Path) -> list[EvalResult]:
        folder = None if self.options.records_dir is None else records_dir
        return self._replace(options=replace(self.options, records_dir=folder)).of_chunk(files)

    def _files_of(self, files: Sequence[str]) -> Iterator[str | Path]:
        """The scenarios, with what they alone name: recordings and raw mails."""
        for file in map(Path, files):
            yield file
            if self.recordings is not None:
                yield self.recordings.folder / file.stem
            with suppress(InputFileError, EvalError):  # the worker says so, too
                if b"raw_file" in read_bytes(file, MAX_SCENARIO_BYTES):
                    yield file.parent / (self.loader.load_eval_test_case(file).input.email.raw_file or file.name)


def _beside_scenarios(suite: Path) -> Iterator[Path]:
    """What judges may read: all in the suite's folder but scenarios, raw mails, and what is hidden."""
    for path in suite.iterdir():
        if path.name[0] != "." and path.suffix.lower() not in (".yaml", ".yml", ".eml"):
            yield path


@dataclass(frozen=True, slots=True)
class Execution:
    """What a run of scenarios needs beside them.

    outside: an agent that is reached from outside; None for our own in this process. live: the model of either, where
    somebody sees it. cluster: where the run goes to other machines. instructions: of our own agent, None for another
    one.
    """

    config: Config
    options: EvalOptions
    loader: EvalLoader
    outside: AgentEvaluation | None = None
    live: LiveEvaluation | ModelGateway | None = None
    recordings: SuiteRecordings | None = None
    cluster: Executor | None = None
    instructions: Instructions | None = None

    @classmethod
    def of(
        cls,
        config: Config,
        options: EvalOptions,
        resources: ExitStack | None = None,
        *,
        agent: AgentUnderTest | None = None,
        stopping: threading.Event | None = None,
    ) -> Self:
        """resources: closed when the run is over, for what goes to a cluster. agent: in place of the options' one.
        stopping: once set, nothing more begins.

        Raises InstructionError for bad instruction files, and ConfigurationError for an agent, a model, recordings or a
        cluster that cannot be used.
        """
        is_foreign = (agent or options.agent) is not None
        recordings = _recordings(config, options, agent) if options.llm in ("record", "replay") else None
        if recordings is not None and options.llm == "replay":
            recordings.check_recorded()
        elif recordings is not None:
            recordings.check_writable()
        outside = _agent_evaluation(config, options, agent, stopping, recordings) if is_foreign else None
        instructions = EvalRunner(config).check_instructions() if outside is None else None
        loader = EvalLoader(any_agent=True) if instructions is None else EvalLoader(known=KnownNames.of(instructions))
        cluster = None if resources is None else _cluster(options, resources)
        live: LiveEvaluation | ModelGateway | None = None
        if outside is not None:
            is_free = options.llm == "replay" or (options.llm == "offline" and options.max_cost_usd is None)
            live = None if is_free else outside.models
        elif options.llm in ("live", "record"):
            from guarantee_email_agent.eval.live import LiveEvaluation  # an event loop, and the SDK

            logger.info("The language model is %s (%s)", config.llm.model, options.llm)
            live = LiveEvaluation(config, recordings, max_cost_usd=options.max_cost_usd, repeat=options.repeat)
        return cls(config, options, loader, outside, live, recordings, cluster, instructions)

    @property
    def is_paid_or_slow(self) -> bool:
        """Whether each result is to be kept as soon as it is there."""
        return (self.outside or self.live) is not None

    def results(
        self,
        scenarios: Sequence[str] | Sequence[Entry],
        *,
        on_result: OnResult | None = None,
        earlier: Mapping[str, Sequence[CaseResult]] | None = None,
    ) -> Generator[EvalResult, None, None]:
        """One for each, in order. scenarios: their files, or what was loaded of such.

        on_result, earlier: as `EvalRunner` has them, of an agent outside or a live model. With `on_result` each result
        has its trace.
        """
        options, count, keep_traces = self.options, len(scenarios), on_result is not None
        named = isinstance(next(iter(scenarios), ""), str)
        files = cast("Sequence[str]", scenarios) if named else None
        entries = cast("Iterable[Entry]", scenarios) if files is None else self.loader.iter_entries(files)
        if (other := self.outside or cast("LiveEvaluation | None", self.live)) is not None:
            runner = EvalRunner(self.config, options.records_dir, on_result, keep_traces, earlier)
            return other.results(runner, entries, count, jobs=options.jobs, repeat=options.repeat)
        replayed = self.recordings if options.llm == "replay" else None
        run = OfflineRun(self.config, options, self.loader, keep_traces, replayed)
        if files is not None and self.cluster is not None:
            return run.in_chunks(self.cluster, files, remotely=True)
        if files is not None and (jobs := min(options.jobs, count)) > 1:
            from guarantee_email_agent.executors.executor import LocalProcesses

            return run.in_chunks(LocalProcesses(jobs), files)
        return run.one_by_one(entries, count)


def _agent_evaluation(
    config: Config,
    options: EvalOptions,
    agent: AgentUnderTest | None,
    stopping: threading.Event | None,
    recordings: SuiteRecordings | None,
) -> AgentEvaluation:
    """The run of an agent from outside, which may reach its model through us.

    Raises ConfigurationError for none such.
    """
    require_extra("mcp", "--agent", "mcp", "pydantic")
    from guarantee_email_agent.eval.agents.evaluation import AgentEvaluation, find_agent  # mcp, and a web server
    from guarantee_email_agent.eval.agents.model_gateway import ModelGateway

    models = ModelGateway(config, recordings, options.llm, max_cost_usd=options.max_cost_usd, repeat=options.repeat)
    found = find_agent(agent or options.agent or "", options.agent_mcp)
    return AgentEvaluation(found, options.agent_timeout, models, stopping)


def _recordings(config: Config, options: EvalOptions, agent: AgentUnderTest | None) -> SuiteRecordings:
    """agent: a function, which no command line reaches."""
    import shlex  # not offline

    from guarantee_email_agent.eval.scenario_model import SuiteRecordings

    if agent is not None:
        return SuiteRecordings(options.directory, command="evaluate(…, llm='record')", is_foreign=True, only="")
    command = ["eval", "--llm", "record"]
    if config.source is not None and config.source != Path.cwd() / "config.yaml":
        command += ["--config", str(config.source)]
    if options.directory != config.eval.test_suite_path:
        command += ["--eval-dir", str(options.directory)]
    if options.agent is not None:
        command += ["--agent", options.agent]
    if options.repeat > 1:
        command += ["--repeat", str(options.repeat)]
    text = printable(shlex.join(command))
    return SuiteRecordings(options.directory, command=text, is_foreign=options.agent is not None)


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
