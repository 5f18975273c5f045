"""Scenarios whose language model is the mock or a recording: one by one, or in chunks on an executor."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from guarantee_email_agent.config.settings import Config, Secrets
from guarantee_email_agent.eval.loader import MAX_SCENARIO_BYTES, EvalLoader
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase, InvalidScenario
from guarantee_email_agent.eval.runner import EvalRunner, run_without_event_loop
from guarantee_email_agent.files.text_file import InputFileError, read_bytes
from guarantee_email_agent.utils.errors import EvalError

if TYPE_CHECKING:
    from guarantee_email_agent.eval.options import EvalOptions
    from guarantee_email_agent.eval.scenario_model import ScenarioModel, SuiteRecordings
    from guarantee_email_agent.executors.executor import Executor

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

    def one_by_one(
        self, entries: Iterable[EvalTestCase | InvalidScenario], count: int
    ) -> Generator[EvalResult, None, None]:
        """One result an entry, as it is ready. count: of the entries."""
        runner = EvalRunner(
            self.config,
            records_dir=self.options.records_dir,
            make_model=None if self.recordings is None else partial(_replayed, self.recordings),
            keep_traces=self.keep_traces,
        )
        for number, entry in enumerate(entries, 1):
            logger.info("Executing %d/%d: %s", number, count, entry.scenario_id)
            yield run_without_event_loop(runner.run_entry(entry, self.options.repeat))

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


def _replayed(recordings: SuiteRecordings, case: EvalTestCase) -> ScenarioModel:
    from guarantee_email_agent.eval.scenario_model import ReplayedModel

    return ReplayedModel(recordings.of_scenario(case))
