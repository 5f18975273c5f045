"""A suite's evaluation from Python: scenarios in, results out. Nothing is printed or kept, and no signal is touched."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack, get_args

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.case_result import as_case
from guarantee_email_agent.eval.execution import Entry, EvalOptions, Execution
from guarantee_email_agent.eval.loader import EvalLoader, select_scenarios
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase, InvalidScenario
from guarantee_email_agent.eval.reporter import SMALL_SUITE, EvalReporter
from guarantee_email_agent.eval.scenario_model import LlmMode
from guarantee_email_agent.eval.suite import refuse_sealed
from guarantee_email_agent.runlog.suite_manifest import DEVELOPMENT, SuiteManifest, read_manifest
from guarantee_email_agent.runlog.suite_statistics import GateOutcome, SuiteStatistics, Totals
from guarantee_email_agent.runlog.views.run_report import RunStoppedError
from guarantee_email_agent.utils.distribution import require_extra
from guarantee_email_agent.utils.errors import ConfigurationError, EvalError

if TYPE_CHECKING:
    from guarantee_email_agent.eval.agents.command_agent import McpTransport

logging.getLogger("guarantee_email_agent").addHandler(logging.NullHandler())  # Python would print what nobody handles

_ASKING: Final = ("live", "record")
_CTRL_C_S: Final = 0.2
_CANCEL_S: Final = 1.0  # that what agents leave in their loop may take to end


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came of a suite. It is true where the gate is passed.

    results: one for each scenario, in order. threshold: percent that the pass rate has to reach. require_proof: as
    `--require-proof` has it. duration_s: wall time in seconds. manifest: of a whole suite. stopped: why scenarios
    are missing of those `planned`, such as the cost limit; None where all ran.
    """

    results: tuple[EvalResult, ...]
    threshold: float
    require_proof: bool = False
    duration_s: float = 0.0
    manifest: SuiteManifest = DEVELOPMENT
    stopped: str | None = None
    planned: int | None = None

    @property
    def totals(self) -> Totals:
        return Totals.of(result.outcome for result in self.results)

    @property
    def failed(self) -> tuple[EvalResult, ...]:
        """What did not pass, invalid files among it."""
        return tuple(result for result in self.results if not result.passed)

    @property
    def pass_rate(self) -> float:
        """Percent, not rounded; 0.0 where there is no scenario. The gate compares exact fractions."""
        totals = self.totals
        return 100 * totals.passed / totals.total if totals.total else 0.0

    @property
    def passed(self) -> bool:
        return self.gate == "passed"

    @property
    def gate(self) -> GateOutcome:
        """`inconclusive` also where the run was stopped before its end."""
        return "inconclusive" if self.stopped is not None else self._reporter(io.StringIO()).gate()

    def __bool__(self) -> bool:
        return self.passed

    def format_for_display(self) -> str:
        """The lines that `eval` prints."""
        stream = io.StringIO()
        self._reporter(stream).finish(self.duration_s, self.planned)
        return stream.getvalue()

    def _reporter(self, stream: io.StringIO) -> EvalReporter:
        reporter = EvalReporter(
            stream,
            color=False,
            ascii_only=False,
            options=EvalOptions(directory=Path(), threshold=self.threshold, require_proof=self.require_proof),
            statistics=SuiteStatistics(deterministic=False, manifest=self.manifest),
            lists_passed=len(self.results) <= SMALL_SUITE,
        )
        reporter.stop_reason = self.stopped
        for result in self.results:
            reporter.add(as_case(result))
        return reporter


class EvaluateOptions(TypedDict, total=False):
    """What `evaluate` and `evaluate_async` take by name; each may be left out.

    agent: who is judged in place of ours: a function, `async` or not, that gets what any agent does, or what `--agent`
    takes. llm: who answers as the language model, `offline` by default, as `--llm` has it. max_cost_usd: as
    `--max-cost`. config: a file or what is loaded; None as for `eval`. only: as `--only`, of a folder. threshold:
    percent; None for the configured one. require_proof: as `--require-proof`. repeat: runs of each scenario, all of
    which have to pass. jobs: scenarios at a time, of an agent that is not ours or a live model. agent_mcp,
    agent_timeout_s: how such an agent reaches its servers, and the seconds that it has for a scenario.
    """

    agent: str | Callable[[dict[str, Any]], object] | None
    llm: LlmMode
    max_cost_usd: float | None
    config: Config | str | Path | None
    only: Sequence[str]
    threshold: float | None
    require_proof: bool
    repeat: int
    jobs: int
    agent_mcp: McpTransport
    agent_timeout_s: float


def evaluate(scenarios: str | Path | Iterable[Entry] | None = None, **options: Unpack[EvaluateOptions]) -> Evaluation:
    """Run a suite and judge it as `eval` does.

    scenarios: a folder, a file, or scenarios; None for the folder of the configuration. options: `EvaluateOptions`.

    Where an event loop runs it is blocked meanwhile: there, `await evaluate_async(…)`.

    Raises ConfigurationError, InstructionError and EvalError (no such folder, nothing selected) before a scenario runs,
    and ValueError for a number that makes no sense. What a scenario or an agent does is a result, never an exception.
    """
    suite = _suite(scenarios, **options)
    stopping = threading.Event()
    if suite.agent is None and suite.options.llm not in _ASKING:
        return suite.run(stopping, None)
    started: Future[Future[Evaluation]] = Future()

    async def serve(pool: ThreadPoolExecutor) -> None:
        started.set_result(running := pool.submit(suite.run, stopping, asyncio.get_running_loop()))
        await asyncio.gather(asyncio.wrap_future(running), return_exceptions=True)

    with ThreadPoolExecutor(1) as pool:  # its thread gets no signals
        # Left behind where an agent ends by no cancellation.
        agents = threading.Thread(target=asyncio.run, args=(serve(pool),), daemon=True)
        agents.start()
        running = started.result()
        try:
            while not wait([running], _CTRL_C_S).done:
                pass
        except BaseException:
            stopping.set()
            raise
        agents.join(_CANCEL_S)
        return running.result()


async def evaluate_async(
    scenarios: str | Path | Iterable[Entry] | None = None, **options: Unpack[EvaluateOptions]
) -> Evaluation:
    """As `evaluate`, while the event loop goes on. An `async` agent runs in it; once cancelled, nothing more begins."""
    return await _run(_suite(scenarios, **options), threading.Event())


@dataclass(frozen=True, slots=True)
class _Suite:
    """What `evaluate` was asked for, checked. scenarios: these, or their files; None for all that the options name."""

    config: Config
    options: EvalOptions
    scenarios: tuple[Entry, ...] | list[str] | None
    agent: str | Callable[[dict[str, Any]], object] | None

    def run(self, stopping: threading.Event, loop: asyncio.AbstractEventLoop | None) -> Evaluation:
        """loop: in which an `async` agent runs. stopping: once set nothing more begins."""
        began = time.perf_counter()
        results, stopped = [], None
        execution = self._execution(stopping, loop)
        scenarios = self._scenarios(execution.loader)
        try:
            with closing(execution.results(scenarios)) as coming:
                for result in coming:
                    results.append(result)
                    if stopping.is_set():
                        break
        except RunStoppedError as stop:
            stopped = str(stop)
        options = self.options
        is_whole = self.scenarios is None and not options.only
        manifest = read_manifest(options.directory) if is_whole else DEVELOPMENT
        duration_s = time.perf_counter() - began
        return Evaluation(
            tuple(results),
            options.threshold,
            options.require_proof,
            duration_s,
            manifest,
            stopped,
            None if stopped is None else len(scenarios),
        )

    def _execution(self, stopping: threading.Event, loop: asyncio.AbstractEventLoop | None) -> Execution:
        if self.agent is None or isinstance(self.agent, str):
            return Execution.of(self.config, self.options, stopping=stopping)
        require_extra("mcp", "an agent of your own", "mcp", "pydantic")
        from guarantee_email_agent.eval.agents.callable_agent import CallableAgent  # mcp, and a web server

        assert loop is not None
        return Execution.of(self.config, self.options, agent=CallableAgent(self.agent, loop), stopping=stopping)

    def _scenarios(self, loader: EvalLoader) -> Sequence[str] | Sequence[Entry]:
        if self.scenarios is not None:
            return self.scenarios
        folder = self.options.directory
        return select_scenarios(loader.scenario_files(folder), self.options.only, folder)


async def _run(suite: _Suite, stopping: threading.Event) -> Evaluation:
    loop = asyncio.get_running_loop()
    running = loop.run_in_executor(None, suite.run, stopping, loop)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stopping.set()
        await asyncio.wait([running])
        raise


def _suite(
    scenarios: str | Path | Iterable[Entry] | None,
    *,
    agent: str | Callable[[dict[str, Any]], object] | None = None,
    llm: LlmMode = "offline",
    max_cost_usd: float | None = None,
    config: Config | str | Path | None = None,
    only: Sequence[str] = (),
    threshold: float | None = None,
    require_proof: bool = False,
    repeat: int = 1,
    jobs: int = 1,
    agent_mcp: McpTransport = "http",
    agent_timeout_s: float = 60.0,
) -> _Suite:
    judged: object = agent
    if judged is not None and not isinstance(judged, str) and not callable(judged):
        problem = f"an agent of type {type(judged).__name__} cannot be called. Pass a function, or what --agent takes"
        raise ConfigurationError(problem, "eval_bad_agent")
    for name, chosen, known in (("llm", llm, get_args(LlmMode)), ("agent_mcp", agent_mcp, ("http", "stdio"))):
        if chosen not in known:
            raise ValueError(f"{name} is {chosen!r}. Pass one of {', '.join(known)}")
    if max_cost_usd is not None and llm not in _ASKING and (agent is None or llm == "replay"):
        raise ValueError("max_cost_usd limits what an API takes. Pass llm='live' or 'record', too")
    numbers: dict[str, object] = {"repeat": repeat, "jobs": jobs, "agent_timeout_s": agent_timeout_s}
    for name, number in (numbers | ({} if max_cost_usd is None else {"max_cost_usd": max_cost_usd})).items():
        kind, word = (Integral, "whole number") if name in ("repeat", "jobs") else (Real, "number")
        if not isinstance(number, kind) or not float(number) > 0:
            raise ValueError(f"{name} is {number!r}. Pass a {word} above 0")
    loaded = config if isinstance(config, Config) else load_config(None if config is None else Path(config))
    percent = loaded.eval.pass_threshold if threshold is None else threshold
    if isinstance(percent, str | bool) or not 1 < percent <= 100:
        raise ValueError(f"threshold is {percent!r}. Pass a percentage above 1, such as 99 or 99.5")
    given = loaded.eval.test_suite_path if scenarios is None else scenarios
    found: tuple[Entry, ...] | list[str] | None = None
    if isinstance(given, str | os.PathLike):
        if given == "":  # which would be the folder that this runs in
            raise EvalError("scenarios is ''. Pass a folder or a file, or leave it out", "eval_file_not_found")
        directory = Path(given)
        if directory.is_file():
            directory, found = directory.parent, [os.fspath(given)]
        refuse_sealed(directory)
    else:
        directory, found = loaded.eval.test_suite_path, _checked(given)
        if llm in ("record", "replay"):
            problem = f"llm={llm!r} needs a folder or a file of scenarios: recordings stand beside it"
            raise ConfigurationError(problem, "eval_recordings_not_found")
    if only and found is not None:
        raise ValueError("only picks files of a folder. Pass one of these, or leave only out")
    options = EvalOptions(
        directory=directory,
        threshold=percent,
        require_proof=require_proof,
        only=(only,) if isinstance(only, str) else tuple(only),
        repeat=repeat,
        # Of our own agent offline one after another: no process is started behind a caller's back.
        jobs=1 if agent is None and llm not in _ASKING else jobs,
        llm=llm,
        max_cost_usd=max_cost_usd,
        agent=agent if isinstance(agent, str) else None,
        agent_mcp=agent_mcp,
        agent_timeout=agent_timeout_s,
    )
    return _Suite(loaded, options, found, agent)


def _checked(scenarios: Iterable[Entry]) -> tuple[Entry, ...]:
    """An `EvalSuite` gives its invalid files, too."""
    entries = tuple(getattr(scenarios, "entries", scenarios))
    for entry in entries:
        given: object = entry
        if not isinstance(given, EvalTestCase | InvalidScenario):
            problem = f"a value of type {type(given).__name__} is no scenario. Pass a folder, or what EvalLoader loads"
            raise EvalError(problem, "eval_wrong_type")
        if isinstance(entry, EvalTestCase) and entry.test is not None and entry.file is None:
            problem = f"{entry.scenario_id}: test names a file beside the scenario's, which has none. Set file, too"
            raise EvalError(problem, "eval_test_not_found")
    return entries
