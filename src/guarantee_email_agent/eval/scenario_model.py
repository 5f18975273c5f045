"""Who answers as the language model of a scenario, where it is not the mock: the API, or what it once said."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Literal, Protocol

from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.llm.port import LanguageModel
from guarantee_email_agent.llm.recording import RecordingClient, Recordings, ReplayClient
from guarantee_email_agent.llm.usage import MeteredModel, ModelUsage
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable

LlmMode = Literal["offline", "live", "record", "replay"]


class ScenarioModel(Protocol):
    """The model of one scenario, in all of its runs."""

    def begin(self, run: int) -> LanguageModel:
        """The model of one run. run: from 1, one after the other."""

    def usage(self) -> ModelUsage | None:
        """What the run that was begun last took; None where nothing is paid for."""

    def finish(self) -> str | None:
        """Called once after the last run; what went wrong with the model, if no result says so yet."""


ScenarioModelFactory = Callable[[EvalTestCase], ScenarioModel]


class LiveModel:
    """The API, with every exchange kept where `recordings` are wanted."""

    def __init__(self, model: LanguageModel, recordings: Recordings | None = None) -> None:
        self._model, self._recordings = model, recordings
        self._meter = MeteredModel(model)
        self._runs: list[RecordingClient] = []

    def begin(self, _run: int) -> LanguageModel:
        self._meter = MeteredModel(self._model)
        if self._recordings is None:
            return self._meter
        self._runs.append(RecordingClient(self._meter))
        return self._runs[-1]

    def usage(self) -> ModelUsage:
        return self._meter.total

    def finish(self) -> str | None:
        """Where the API failed the scenario has failed, too, and what was recorded before stays."""
        if self._recordings is None or any(run.failed for run in self._runs):
            return None
        return self._recordings.write([run.exchanges for run in self._runs])


class ReplayedModel:
    """What was recorded of a scenario; opens no connection and never waits."""

    def __init__(self, recordings: Recordings) -> None:
        self._recordings = recordings

    def begin(self, run: int) -> LanguageModel:
        return ReplayClient(self._recordings, run)

    def usage(self) -> None:
        """A recording costs nothing."""

    def finish(self) -> None:
        """An unused recording does no harm; the next recording of the scenario removes it."""


def recordings_folder(suite: Path, *, is_foreign: bool = False) -> Path:
    """Where the recordings of a suite are, each scenario's in a folder of its own."""
    return Path(os.path.abspath(suite)).parent / ("agent-recordings" if is_foreign else "recordings")


class SuiteRecordings:
    """The recordings of a suite: a folder for each scenario in `recordings`, beside the suite's folder."""

    def __init__(self, suite: Path, *, command: str, is_foreign: bool = False, only: str = " --only {}") -> None:
        """command: what records the whole suite, as an error tells it to the user; with `only` a scenario of it.
        is_foreign: whether the agent is not ours.
        """
        self.folder = recordings_folder(suite, is_foreign=is_foreign)
        self._command, self._only = command, only

    def of_scenario(self, test_case: EvalTestCase) -> Recordings:
        name = Path(test_case.file or test_case.scenario_id).stem
        return Recordings(
            self.folder / test_case.scenario_id,
            test_case.scenario_id,
            remedy=f"Record it anew: {self._command}{self._only.format(printable(quote(name)))}",
        )

    def replayed(self, test_case: EvalTestCase) -> ReplayedModel:
        return ReplayedModel(self.of_scenario(test_case))

    def check_writable(self) -> None:
        """Raises ConfigurationError, before anything is asked of the API, where nothing could be recorded."""
        place = self.folder if os.path.lexists(self.folder) else self.folder.parent
        if place.is_dir() and os.access(place, os.W_OK):
            return
        why = "permission denied" if place.is_dir() else "it is no folder"
        raise ConfigurationError(
            f"{printable(str(self.folder))}: the folder for recordings cannot be written to ({why}). "
            "Name a suite in another place with --eval-dir",
            "eval_recordings_unwritable",
        )

    def check_recorded(self) -> None:
        """Raises ConfigurationError where nothing is recorded of any scenario."""
        if next(self.folder.glob("*/run*.yaml"), None) is not None:
            return
        exists = os.path.lexists(self.folder)
        what = "does not exist" if not exists else "holds no recording" if self.folder.is_dir() else "is no folder"
        raise ConfigurationError(
            f"{printable(str(self.folder))} {what}: nothing is recorded of this suite. "
            f"Record it first: {self._command}",
            "eval_recordings_not_found",
        )
