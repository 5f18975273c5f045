"""Scenarios whose language model is the real one: several at a time in one event loop, their results in order."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import islice
from math import ceil
from typing import Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.case_result import as_case, as_model_usage, as_usage
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase, InvalidScenario
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.eval.scenario_model import LiveModel, SuiteRecordings
from guarantee_email_agent.llm.api_client import MAX_WAIT_S
from guarantee_email_agent.llm.cost_limit import CostLimit
from guarantee_email_agent.llm.port import LanguageModel, ModelClient
from guarantee_email_agent.llm.provider import live_model
from guarantee_email_agent.llm.rate_limit import RECHECK_S, RateLimiter
from guarantee_email_agent.llm.usage import MeteredModel, ModelUsage, UsageMeter
from guarantee_email_agent.runlog.records import Usage
from guarantee_email_agent.runlog.views.run_report import RunStoppedError
from guarantee_email_agent.runlog.views.stored_report import describe_usage
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import LLMError
from guarantee_email_agent.utils.terminal import Progress, pluralize
from guarantee_email_agent.utils.text import cost_text, duration, printable

logger = logging.getLogger(__name__)

_GRACE_S: Final = 5.0
_TICK_S: Final = 0.5
_QUEUED_PER_JOB: Final = 16
"""Scenarios begun or waiting for each job, so that a slow one at the head does not hold up the others."""
_SHOWN_WAIT_S: Final = 1.0
_REFUSALS: Final = ("llm_rate_limited", "llm_overloaded")


class PaidRun:
    """What one run of a suite takes of a model, also for scenarios that came to no result."""

    model: str
    meter: UsageMeter
    limit: CostLimit

    def count_earlier(self, usages: Iterable[ModelUsage], paid: ModelUsage | None) -> None:
        """What an interrupted run, which goes on, had paid for. paid: in all, with what came to no result, if known."""
        for usage in usages:
            self.limit.learn(usage)
            if paid is None:
                self.meter.add(usage)
        if paid is not None:
            self.meter.add(paid)

    def cost(self) -> str:
        """One line for people."""
        return describe_usage(self.model, self.usage())

    def usage(self) -> Usage:
        return as_usage(self.meter.total)


class LiveEvaluation(PaidRun):
    """One run of a suite against the API."""

    def __init__(
        self, config: Config, record_to: SuiteRecordings | None, *, max_cost_usd: float | None = None, repeat: int = 1
    ) -> None:
        """record_to: where the exchanges are to be kept. max_cost_usd: of the run; None for no limit.

        Raises ConfigurationError where the key or the SDK is missing, and for a limit on a model whose price is not
        known.
        """
        self.model, self._record_to = config.llm.model, record_to
        clock = SystemClock()
        self._limiter = RateLimiter.of(config.llm, clock)
        self._model = live_model(config, clock, self._limiter)
        self.meter = self._metered = MeteredModel(_ModelOfRun(self._model, self._stop))
        self.limit = CostLimit(self.meter, max_cost_usd, repeat, config.llm.model)
        self._progress: Progress | None = None
        self._stopped_by_api: str | None = None
        self._is_kept = False
        self._grace_given = False
        self._begun: set[asyncio.Task[EvalResult | None]] = set()

    def _model_of(self, case: EvalTestCase) -> LiveModel:
        return LiveModel(self._metered, None if self._record_to is None else self._record_to.of_scenario(case))

    def results(
        self,
        runner: EvalRunner,
        entries: Iterable[EvalTestCase | InvalidScenario],
        planned: int,
        *,
        jobs: int,
        repeat: int,
    ) -> Generator[EvalResult, None, None]:
        """One result an entry, in their order.

        Where the caller stops or Ctrl-C comes, scenarios that have begun get a few seconds to end, since their answers
        are paid for; what came of them is given before KeyboardInterrupt. A second Ctrl-C gives them up, and so does a
        rate limit that they would have to wait for. Raises RunStoppedError where the next one could pass the cost
        limit, and where the API asks for a longer wait than a run is worth.

        planned: how many entries there are.
        """
        self._is_kept = runner.keep_traces
        numbered = enumerate(entries, 1)
        under_way: deque[asyncio.Task[EvalResult | None]] = deque()
        with asyncio.Runner() as loop:
            gate = asyncio.Semaphore(jobs)

            async def run(number: int, entry: EvalTestCase | InvalidScenario) -> EvalResult | None:
                """None where no scenario is to begin any more."""
                async with gate:
                    if self._stopped_by_api is not None or not await self.limit.may_begin():
                        return None
                    task = asyncio.current_task()
                    assert task is not None
                    self._begun.add(task)
                    logger.info("Executing %d/%d: %s", number, planned, entry.scenario_id)
                    try:
                        result = await runner.run_entry(entry, repeat, self._model_of)
                        self.limit.learn(*(as_model_usage(run.usage) for run in as_case(result).runs))
                    finally:
                        self.limit.end()
                        self._begun.discard(task)
                    self._tell(result)
                    return result

            ticker = loop.get_loop().create_task(self._tick())
            try:
                while self._stop_reason is None or under_way:
                    if self._stop_reason is None:
                        for number, entry in islice(numbered, _QUEUED_PER_JOB * jobs - len(under_way)):
                            under_way.append(loop.get_loop().create_task(run(number, entry)))
                    if not under_way:
                        return
                    loop.run(asyncio.wait([under_way[0]]))  # which does not cancel it where it is given up
                    task = under_way.popleft()
                    if task.cancelled() and self._stop_reason is not None:
                        continue  # it would have to wait for an API that the run does not wait for
                    if (result := task.result()) is not None:
                        yield result
                raise RunStoppedError(self._stop_reason)
            except KeyboardInterrupt:
                loop.run(self._let_end(under_way))
                while under_way:
                    task = under_way.popleft()
                    if not task.cancelled() and (result := task.result()) is not None:
                        yield result
                raise
            finally:
                loop.run(self._end(under_way, ticker))

    @property
    def _stop_reason(self) -> str | None:
        return self._stopped_by_api or self.limit.stop_reason

    def _stop(self, wait_s: float) -> None:
        """The API asks for a wait that is too long. What is under way may end; what is not there can be resumed."""
        then = ". Go on with --resume then" if self._is_kept else ""
        self._stopped_by_api = f"the model API asks to wait {duration(wait_s)} before the next request{then}"
        self._limiter.close()

    def show_progress(self, progress: Progress) -> None:
        """Tell there what fails, as soon as it does."""
        self._progress = progress

    def _tell(self, result: EvalResult) -> None:
        if self._progress is None:
            return
        if not result.passed:
            # Why it failed may quote the mail; the summary does so.
            names = dict.fromkeys(check.name for run in as_case(result).runs for check in run.failed_checks)
            checks = "invalid file" if result.outcome == "invalid" else ", ".join(names)
            self._progress.announce(printable(f"✗ {result.test_case.scenario_id}: {checks}"))
        self._progress.count(passed=result.passed)

    async def _tick(self) -> None:
        while self._progress is not None:
            self._progress.refresh()
            await asyncio.sleep(_TICK_S)

    def progress_detail(self) -> str:
        """For the progress line: US dollars, and what the run waits for."""
        parts = [cost_text(self.meter.cost_usd)]
        if (wait_s := self._limiter.held_back_s()) >= _SHOWN_WAIT_S:
            parts.append(f"waiting {duration(ceil(wait_s))} for the rate limit")
        return ", ".join(parts)

    async def _let_end(self, under_way: Sequence[asyncio.Task[EvalResult | None]]) -> None:
        """Begin nothing more; after the grace, give up what is still under way, and what waits for its turn at once."""
        begun = set(self._begun)
        for task in under_way:
            if task not in begun:
                task.cancel()
        self._limiter.close()
        if begun and not self._grace_given:
            _, begun = await asyncio.wait(begun, timeout=2 * RECHECK_S)
        if begun and not self._grace_given:
            self._grace_given = True
            if self._progress is not None:
                those = f"{pluralize(len(begun), 'scenario')} that had begun"
                self._progress.announce(f"Up to {_GRACE_S:g} s for {those}; Ctrl-C again gives them up")
            await asyncio.wait(begun, timeout=_GRACE_S)
        for task in begun:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    async def _end(self, under_way: Sequence[asyncio.Task[EvalResult | None]], ticker: asyncio.Task[None]) -> None:
        await self._let_end(under_way)
        ticker.cancel()
        await self._model.aclose()


class _ModelOfRun(ModelClient):
    """A LanguageModel that ends the run where its API asks for too long a wait, instead of failing scenario after
    scenario.
    """

    def __init__(self, model: LanguageModel, stop: Callable[[float], None]) -> None:
        """stop: gets the seconds that the API asks for."""
        self._model = model
        self._stop = stop

    async def create(self, **request: Any) -> Any:
        """Raises CancelledError for the call that ends the run: its scenario has not failed."""
        try:
            return await self._model.messages.create(**request)
        except LLMError as error:
            wait_s = error.retry_after_s or 0.0
            if error.code not in _REFUSALS or wait_s <= MAX_WAIT_S:
                raise
            self._stop(wait_s)
        raise asyncio.CancelledError
