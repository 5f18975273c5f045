"""Chunks of a suite for workers on other machines: the files go there, results and records come back."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from guarantee_email_agent.config.settings import Config, Secrets
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.offline_run import OfflineRun
from guarantee_email_agent.executors.executor import Executor
from guarantee_email_agent.executors.file_bundle import FileBundle, Unpacked, unpacked
from guarantee_email_agent.judging.record import write_content
from guarantee_email_agent.store.records import Check
from guarantee_email_agent.utils.errors import EvalError

_NAMES_A_RAW_MAIL: Final = re.compile(rb"\braw_file\b")
_RAW_MAIL: Final = ".eml"


class Chunk(NamedTuple):
    """files: of scenarios, as the run names them; paths: the same, absolute. bundle: copies of them, and of what they
    alone name.
    """

    files: tuple[str, ...]
    paths: tuple[str, ...]
    bundle: FileBundle


class ChunkOutcome(NamedTuple):
    """records: of `--records`, by the names of their files."""

    results: list[EvalResult]
    records: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class ShippedRun:
    """The work on a chunk. shared: copies of what every scenario may need: instructions, lexicon, judges."""

    run: OfflineRun
    shared: FileBundle

    def __call__(self, chunk: Chunk) -> ChunkOutcome:
        with unpacked(self.shared, chunk.bundle) as copies, TemporaryDirectory(prefix="records-") as folder:
            records, wanted = Path(folder), self.run.options.records_dir is not None
            run = self.run._replace(
                config=_with_copies(self.run.config, copies),
                options=replace(self.run.options, records_dir=records if wanted else None),
                recordings=None if self.run.recordings is None else self.run.recordings.at(copies.path),
            )
            results = run.of_chunk([str(copies.path(path)) for path in chunk.paths])
            return ChunkOutcome(
                [_as_here(result, file, copies) for result, file in zip(results, chunk.files, strict=True)],
                {path.name: path.read_bytes() for path in records.iterdir()},
            )


def map_shipped(
    run: OfflineRun, executor: Executor, chunks: Iterable[Sequence[str]]
) -> Generator[list[EvalResult], None, None]:
    """The results of each chunk; the records are written here. Raises ConfigurationError for what cannot be sent."""
    main, scenarios = run.config.instructions.main, run.config.instructions.scenarios_dir
    shared = FileBundle.of([main, scenarios, main.parent / "lexicon", *_beside_scenarios(run.options.directory)])
    settings = replace(run.config.instructions, main=main.absolute(), scenarios_dir=scenarios.absolute())
    # A worker has no use for a secret.
    config = replace(run.config, secrets=Secrets(), instructions=settings)
    work = ShippedRun(run._replace(config=config), shared)
    for outcome in executor.map_in_order(work, (_chunk(run, tuple(files)) for files in chunks)):
        for name, content in outcome.records.items():
            assert run.options.records_dir is not None
            write_content(run.options.records_dir / name, content)
        yield outcome.results


def _beside_scenarios(suite: Path) -> Iterator[str]:
    """What judges may read: all in the suite's folder but scenarios, raw mails, and what is hidden."""
    with os.scandir(suite) as found:
        for entry in found:
            if entry.name[0] != "." and not entry.name.lower().endswith((".yaml", ".yml", _RAW_MAIL)):
                yield entry.path


def _chunk(run: OfflineRun, files: tuple[str, ...]) -> Chunk:
    named = list(files)
    if run.recordings is not None:
        named += [str(run.recordings.folder / Path(file).stem) for file in files]
    bundle = FileBundle.of(named)
    if raw_mails := list(_raw_mails(run, bundle)):
        bundle = FileBundle.of([*named, *raw_mails])
    return Chunk(files, tuple(map(os.path.abspath, files)), bundle)


def _raw_mails(run: OfflineRun, bundle: FileBundle) -> Iterator[str]:
    for file in bundle.files:
        if _NAMES_A_RAW_MAIL.search(file.content):
            try:
                case = run.loader.load_eval_test_case(file.path)
            except EvalError:  # the worker says so, too
                continue
            if (name := case.input.email.raw_file) is not None:
                yield os.path.join(os.path.dirname(file.path), name)


def _with_copies(config: Config, copies: Unpacked) -> Config:
    settings = config.instructions
    main, scenarios = copies.path(settings.main), copies.path(settings.scenarios_dir)
    return replace(config, instructions=replace(settings, main=main, scenarios_dir=scenarios))


def _as_here(result: EvalResult, file: str, copies: Unpacked) -> EvalResult:
    """The result with the paths of this run's files."""
    return replace(
        result,
        test_case=replace(result.test_case, file=file),
        failures=copies.with_original_paths(result.failures),
        checks=tuple(Check(*copies.with_original_paths(check)) for check in result.checks),
        judgement=copies.with_original_paths(result.judgement),
        repetitions=tuple(_as_here(each, file, copies) for each in result.repetitions),
    )
