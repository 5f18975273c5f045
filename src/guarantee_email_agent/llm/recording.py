"""Exchanges with a model, kept as files and given back to the very same request and to no other."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from guarantee_email_agent.llm.port import LanguageModel, Message, ModelClient
from guarantee_email_agent.llm.recording_file import (
    Exchange,
    RecordingName,
    read_recording,
    recording_text,
    request_kind,
)
from guarantee_email_agent.llm.request import all_parts, request_digest, wire_request
from guarantee_email_agent.utils.errors import LLMError


class RecordingClient(ModelClient):
    """A LanguageModel in front of another one; `exchanges` holds what was asked and answered, in order.

    `failed`: whether a request got no answer, so that something is missing.
    """

    def __init__(self, model: LanguageModel, *, force_tool: bool) -> None:
        """force_tool: as `llm.force_tool`, since it changes what is sent."""
        self._model = model
        self._force_tool = force_tool
        self.exchanges: list[Exchange] = []
        self.failed = False

    async def create(self, **request: Any) -> Any:
        try:
            answer = await self._model.messages.create(**request)
            self.exchanges.append(Exchange.of(wire_request(request, force_tool=self._force_tool), answer))
        except BaseException:  # a call that ran out of the mail's time is cancelled, and the scenario goes on
            self.failed = True
            raise
        return answer


class Recordings:
    """What is recorded of one scenario: a folder with a file for each exchange."""

    def __init__(self, folder: Path, scenario: str, *, force_tool: bool, remedy: str) -> None:
        """remedy: the command that records this scenario anew."""
        self._folder = folder
        self._scenario = scenario
        self._force_tool = force_tool
        self._remedy = remedy
        self._names: tuple[RecordingName, ...] | None = None

    def write(self, runs: Sequence[Sequence[Exchange]]) -> None:
        """Take the place of everything that was recorded of this scenario, once all of it is written.

        Raises LLMError (`llm_recording_impossible`, `llm_recording_unwritable`); old recordings are then as they were.
        """
        texts: dict[str, str] = {}
        for run, exchanges in enumerate(runs, 1):
            for call, exchange in enumerate(exchanges, 1):
                name = RecordingName.of(run, call, exchange)
                texts[str(name)] = recording_text(exchange, self._scenario, name)
        drafts: dict[Path, Path] = {}
        try:
            if texts:
                self._folder.mkdir(parents=True, exist_ok=True)
            for file, text in texts.items():
                draft = self._folder / f".{file}.{os.getpid()}.tmp"
                drafts[draft] = self._folder / file
                draft.write_bytes(text.encode())
            for draft, path in drafts.items():
                draft.replace(path)
            for name in self._list_names():
                if str(name) not in texts:
                    (self._folder / str(name)).unlink(missing_ok=True)
        except OSError as error:
            raise LLMError(
                f"{self._folder}: the recording cannot be written ({error.strerror}). Make room, or allow it",
                "llm_recording_unwritable",
            ) from None
        finally:
            with suppress(OSError):
                for draft in drafts:
                    draft.unlink(missing_ok=True)
                self._folder.rmdir()  # stays where something lies in it
                self._folder.parent.rmdir()

    def find_answer(self, request: Mapping[str, Any], run: int, used: set[RecordingName]) -> Message:
        """The answer recorded for just this request, of those not in `used`, to which it is added."""
        sent = all_parts(wire_request(request, force_tool=self._force_tool))
        digest = request_digest(sent)
        if self._names is None:
            self._names = self._list_names()
        found = [name for name in self._names if name.run == run and digest.startswith(name.short_digest)]
        for name in found:
            if name not in used and (exchange := self._read(name, sent)).digest == digest:
                used.add(name)
                return exchange.message()
        raise LLMError(self._explain_miss(sent, run, len(used.intersection(found))), "llm_recording_missing")

    def _read(self, name: RecordingName, sent: Mapping[str, Any] | None = None) -> Exchange:
        return read_recording(self._folder / str(name), sent)

    def _list_names(self) -> tuple[RecordingName, ...]:
        try:
            files = os.listdir(self._folder)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise LLMError(
                f"{self._folder}: the recordings cannot be read ({error.strerror})", "llm_recording_invalid"
            ) from None
        return tuple(sorted(name for file in files if (name := RecordingName.parse(file)) is not None))

    def _explain_miss(self, request: Mapping[str, Any], run: int, answered: int) -> str:
        """What is not recorded, how it differs from what is, and what to do. Raises LLMError for an invalid file."""
        from guarantee_email_agent.llm.recording_diff import recording_diff  # only for a miss

        kind, names = request_kind(request), self._names or ()
        what = f"The {kind} request of {self._scenario}, run {run}, is not recorded"
        if answered:
            return f"{what} that often: it is asked {answered + 1} times, and was {answered}. {self._remedy}"
        runs = {name.run for name in names}
        if not runs:
            return f"{what}, and nothing else of this scenario. {self._remedy}"
        if run not in runs:
            return f"{what}: {len(runs)} run{'s are' if len(runs) > 1 else ' is'}. {self._remedy}"
        candidates = [name for name in names if name.run == run and name.kind == kind]
        if not candidates:
            return f"{what}: none of this kind is. {self._remedy}"
        diffs = [(recording_diff(request, self._read(name).request), name) for name in candidates]
        parts, nearest = min(diffs, key=lambda diff: len(diff[0]))
        file = f"{self._folder.name}/{nearest}"
        return f"{what}: {' and '.join(parts)} differ{'s' if len(parts) == 1 else ''} from {file}. {self._remedy}"


class ReplayClient(ModelClient):
    """A LanguageModel that gives the recorded answers of one run of a scenario."""

    def __init__(self, recordings: Recordings, run: int) -> None:
        """run: from 1."""
        self._recordings = recordings
        self._run = run
        self._used: set[RecordingName] = set()

    async def create(self, **request: Any) -> Message:
        """Raises LLMError: `llm_recording_missing`, `llm_recording_invalid`."""
        return self._recordings.find_answer(request, self._run, self._used)
