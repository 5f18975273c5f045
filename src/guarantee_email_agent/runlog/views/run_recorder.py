"""Keeps a run while it goes on, and writes its reports once it is over: what `eval`, `grade` and `solve` share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from guarantee_email_agent.runlog.database import StoreError, temporary_store
from guarantee_email_agent.runlog.records import Case, CaseResult, KeptRun, Outcome, Run
from guarantee_email_agent.runlog.run_writer import RunWriter
from guarantee_email_agent.runlog.views.report import RunOptions
from guarantee_email_agent.utils.git_state import GitQuestion
from guarantee_email_agent.utils.terminal import warn_on_stderr


class RunRecorder(ABC):
    """Keeps the cases of a run while it goes on. What fails in it is told on stderr, and ends no run."""

    UNWRITABLE: ClassVar[str]
    """The code of the error that a report cannot be written."""

    def __init__(self, kept: KeptRun, run: Run, folder: Path, **writing: Any) -> None:
        """folder: whose revision in Git is asked for. writing: as `RunWriter` has it. Raises StoreError."""
        self.kept, self._run = kept, run
        self._writer = RunWriter(kept.file, run, warn_on_stderr, keep_runs=kept.keep_runs, **writing)
        self._git = GitQuestion(folder)

    @abstractmethod
    def add(self, case: Case) -> None:
        """Keep one case, now or with others."""

    @abstractmethod
    def _at_end(self) -> dict[str, Any]:
        """What is known of the run now alone, as `Run` has it."""

    def finish(self, outcome: Outcome, exit_code: int, duration_s: float) -> None:
        """Called once, after the last case. duration_s: seconds."""
        known = self._at_end()
        revision, dirty = self._git.answer() or (None, None)
        end = self._run._replace(outcome=outcome, exit_code=exit_code, duration_s=duration_s, ended=self.kept.now())
        self._writer.finish(end._replace(git_revision=revision, git_dirty=dirty, **known))

    def write_reports(self, options: RunOptions, ran: int) -> None:
        """Of what was kept, once it is finished. ran: how many cases there were."""
        from guarantee_email_agent.runlog.views.stored_report import write_stored_reports  # every form of report

        with ExitStack() as resources:
            readable = self._writer.readable(resources)
            write_stored_reports(*readable, options, self.UNWRITABLE, ran, self._read_record)

    def _read_record(self, result: CaseResult) -> CaseResult:
        """The result with what stands in a record beside the store."""
        return result


Recorder = TypeVar("Recorder", bound=RunRecorder)


def begin_recorder(
    begin: Callable[[KeptRun], Recorder], kept: KeptRun | None, wanted: RunOptions, resources: ExitStack
) -> Recorder | None:
    """None where nobody reads the run.

    Where it is not to be kept, or the store cannot be used, which no gate rests on, it is kept in a temporary file for
    the reports that are wanted. Raises ConfigurationError where there can be none.
    """
    if kept is not None:
        try:
            return begin(kept)
        except StoreError as error:
            warn_on_stderr(f"This run is not kept: {error.message}")
    return begin(temporary_store(resources)) if wanted.wants_reports else None
