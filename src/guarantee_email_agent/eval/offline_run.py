"""Scenarios whose language model is the mock or a recording: one by one, or in chunks on an executor."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase, InvalidScenario
from guarantee_email_agent.eval.runner import EvalRunner, run_without_event_loop
from guarantee_email_agent.executors.executor import Executor, chunk_size

if TYPE_CHECKING:
    from guarantee_email_agent.eval.options import EvalOptions
    from guarantee_email_agent.eval.scenario_model import ScenarioModel, SuiteRecordings

logger = logging.getLogger(__name__)

MAX_CHUNK: Final = 200
"""Runs handed to a worker at a time: few enough to keep all workers busy and to stop soon after Ctrl-C, and enough to
make the hand-over cheap."""


class OfflineRun(NamedTuple):
    """What a worker needs to know beside the files. recordings: of a replay; None for the mock."""

    config: Config
    options: EvalOptions
    loader: EvalLoader
    keep_traces: bool
    recordings: SuiteRecordings | None

    def one_by_one(self, files: Sequence[str]) -> Generator[EvalResult, None, None]:
        """One result a file, as it is ready."""
        runner = EvalRunner(
            self.config,
            records_dir=self.options.records_dir,
            make_model=None if self.recordings is None else partial(_replayed, self.recordings),
            keep_traces=self.keep_traces,
        )
        for number, entry in enumerate(self.loader.iter_entries(files), 1):
            logger.info("Executing %d/%d: %s", number, len(files), entry.scenario_id)
            yield run_without_event_loop(runner.run_entry(entry, self.options.repeat))

    def in_chunks(
        self, executor: Executor, files: Sequence[str], map_chunks: MapChunks | None = None
    ) -> Generator[EvalResult, None, None]:
        """The same results in the same order. map_chunks: for workers that have none of our files."""
        size = chunk_size(len(files), executor.slots, MAX_CHUNK // self.options.repeat)
        chunks = (files[start : start + size] for start in range(0, len(files), size))
        # What is of this process alone stays here.
        run = self._replace(options=replace(self.options, kept=None, github=None))
        mapped = (
            executor.map_in_order(run.of_chunk, chunks) if map_chunks is None else map_chunks(run, executor, chunks)
        )
        with closing(mapped) as results:
            number = 0
            for chunk in results:
                for result in chunk:
                    number += 1
                    logger.info("Executing %d/%d: %s", number, len(files), result.test_case.scenario_id)
                    if isinstance(result.test_case, InvalidScenario):  # workers log nothing
                        logger.error("%s", result.test_case.message)
                    yield result

    def of_chunk(self, files: Sequence[str]) -> list[EvalResult]:
        return list(self.one_by_one(files))


def _replayed(recordings: SuiteRecordings, case: EvalTestCase) -> ScenarioModel:
    from guarantee_email_agent.eval.scenario_model import ReplayedModel

    return ReplayedModel(recordings.of_scenario(case))


MapChunks = Callable[[OfflineRun, Executor, Iterable[Sequence[str]]], Generator[list[EvalResult], None, None]]
