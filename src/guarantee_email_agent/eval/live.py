"""Scenarios whose language model is the real one: several at a time in one event loop, their results in order."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase, InvalidScenario
from guarantee_email_agent.eval.runner import EvalRunner, OnResult
from guarantee_email_agent.eval.scenario_model import LiveModel, RecordedModel, ScenarioModelFactory, SuiteRecordings
from guarantee_email_agent.llm.provider import live_model
from guarantee_email_agent.llm.usage import MeteredModel
from guarantee_email_agent.reporting.terminal import pluralize
from guarantee_email_agent.utils.clock import SystemClock

logger = logging.getLogger(__name__)

_QUEUED_PER_JOB: Final = 16
"""Scenarios begun or waiting for each job, so that a slow one at the head does not hold up the others."""


class LiveEvaluation:
    """One run of a suite against the API; `meter` counts what it costs."""

    def __init__(self, config: Config, record_to: SuiteRecordings | None) -> None:
        """record_to: where the exchanges are to be kept.

        Raises ConfigurationError where the key or the SDK is missing, or where nothing could be recorded.
        """
        self._config = config
        self._model = live_model(config, SystemClock())
        self.meter = MeteredModel(self._model)
        self._make_model: ScenarioModelFactory
        if record_to is None:
            self._make_model = lambda _: LiveModel(self.meter)
        else:
            record_to.check_writable()
            self._make_model = lambda case: RecordedModel(self.meter, record_to.of_scenario(case), record_to.force_tool)

    def results(
        self,
        entries: Iterable[EvalTestCase | InvalidScenario],
        planned: int,
        *,
        jobs: int,
        repeat: int,
        records_dir: Path | None,
        on_result: OnResult | None = None,
        earlier: Mapping[str, Sequence[EvalResult]] | None = None,
    ) -> Generator[EvalResult, None, None]:
        """One result an entry, in their order. Where the caller stops, what is under way is given up.

        planned: how many entries there are. on_result, earlier: as `EvalRunner` has them.
        """
        runner = EvalRunner(
            self._config,
            records_dir=records_dir,
            make_model=self._make_model,
            on_result=on_result,
            keep_traces=on_result is not None,
            earlier=earlier,
        )
        numbered = enumerate(entries, 1)
        under_way: deque[asyncio.Task[EvalResult]] = deque()
        with asyncio.Runner() as loop:
            gate = asyncio.Semaphore(jobs)

            async def run(number: int, entry: EvalTestCase | InvalidScenario) -> EvalResult:
                async with gate:
                    logger.info("Executing %d/%d: %s", number, planned, entry.scenario_id)
                    return await runner.run_entry(entry, repeat)

            try:
                while True:
                    for number, entry in islice(numbered, _QUEUED_PER_JOB * jobs - len(under_way)):
                        under_way.append(loop.get_loop().create_task(run(number, entry)))
                    if not under_way:
                        return
                    yield loop.run(_result(under_way.popleft()))
            finally:
                loop.run(self._end(under_way))

    def count_earlier(self, results: Iterable[EvalResult]) -> None:
        """What an interrupted run, which goes on, had paid for."""
        for result in results:
            if result.usage is not None:
                self.meter.add(result.usage)

    def cost(self) -> str:
        """One line for people: what the run took of the API."""
        usage, dollars = self.meter.usage, self.meter.cost_usd
        tokens = f"{usage.total - usage.output_tokens:,} tokens sent, {usage.output_tokens:,} received"
        price = "cost not known" if dollars is None else f"${dollars:.4f}"
        return f"{self._config.llm.model}: {pluralize(self.meter.calls, 'answer')}, {tokens}, {price}"

    async def _end(self, under_way: Sequence[asyncio.Task[EvalResult]]) -> None:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self._model.aclose()


async def _result(task: asyncio.Task[EvalResult]) -> EvalResult:
    return await task
