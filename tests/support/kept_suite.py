"""A folder of scenarios whose evaluations are kept in a run store beside it."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from scenario_folder import BUILT_IN, ScenarioFolder
from stored_runs import results_of

from guarantee_email_agent.eval.execution import OfflineRun
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.runlog.records import CaseResult, KeptRun
from guarantee_email_agent.runlog.run_reader import RunStore


class KeptSuite(ScenarioFolder):
    """The same, with what was kept of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, BUILT_IN)
        self.file = folder.parent / "runs.db"
        self._number = 0

    def run(self, **options: Any) -> int:
        return self.run_and_print(**options)[0]

    def run_and_print(self, **options: Any) -> tuple[int, str]:
        self._number += 1
        kept = KeptRun(self.file, None, lambda: "2026-01-18T10:00:01Z")
        values = {"kept": kept, "run_id": f"run-{self._number}", "started": "2026-01-18T10:00:00Z", **options}
        return self.evaluate(**values)

    def results(self, name: str = "last") -> list[CaseResult]:
        with RunStore(self.file) as store:
            return results_of(store, store.find_run(name))

    def run_until(self, count: int, **options: Any) -> int:
        """A run that Ctrl-C stops after so many scenarios."""
        return self.interrupt_and_print(count, **options)[0]

    def interrupt_and_print(
        self, count: int, error: type[BaseException] = KeyboardInterrupt, **options: Any
    ) -> tuple[int, str]:
        """The same, with what it printed."""
        whole = OfflineRun.one_by_one

        def stopped(run: OfflineRun, entries: Iterable[Any], total: int) -> Iterator[EvalResult]:
            yield from islice(whole(run, entries, total), count)
            raise error

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(OfflineRun, "one_by_one", stopped)
            return self.run_and_print(**options)


def executed(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message.rpartition(" ")[2] for message in caplog.messages if message.startswith("Executing eval: ")]
