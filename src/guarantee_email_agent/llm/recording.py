"""Exchanges with a model, kept as files and given back to the very same request and to no other."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.llm.port import LanguageModel, Message, ModelClient, all_parts, request_digest
from guarantee_email_agent.llm.prompts import element_in
from guarantee_email_agent.llm.recording_file import (
    Exchange,
    RecordingName,
    read_recording,
    recording_text,
    request_kind,
)
from guarantee_email_agent.utils.errors import LLMError


class RecordingClient(ModelClient):
    """A LanguageModel in front of another one; `exchanges` holds what was asked and answered, in order.

    `failed`: whether a request got no answer, so that something is missing.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.exchanges: list[Exchange] = []
        self.failed = False

    async def create(self, **request: Any) -> Any:
        try:
            answer = await self._model.messages.create(**request)
            self.exchanges.append(Exchange.of(request, answer))
        except BaseException:  # a call that ran out of the mail's time is cancelled, and the scenario goes on
            self.failed = True
            raise
        return answer


class Recordings:
    """What is recorded of one scenario: a folder with a file for each exchange."""

    def __init__(self, folder: Path, scenario: str, *, remedy: str) -> None:
        """remedy: the command that records this scenario anew."""
        self._folder = folder
        self._scenario = scenario
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
        return self.find(all_parts(request), run, used).message()

    def find(self, sent: Mapping[str, Any], run: int, used: set[RecordingName]) -> Exchange:
        """As `find_answer`, of a request that is recorded as it stands."""
        digest = request_digest(sent)
        if self._names is None:
            self._names = self._list_names()
        found = [name for name in self._names if name.run == run and digest.startswith(name.short_digest)]
        for name in found:
            if name not in used and (exchange := self._read(name, sent)).digest == digest:
                used.add(name)
                return exchange
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


_MAX_EXCERPT: Final = 60
_CONTEXT: Final = 20
_INSTRUCTION_NAMES: Final = ("the main instruction", "the scenario's instruction")
_SETTINGS: Final = {"model": "llm.model", "max_tokens": "llm.max_tokens", "temperature": "the temperature"}
_ELEMENTS: Final = {
    "mail": "the mail",
    "facts": "the facts",
    "sentences": "the sentences to choose from",
    "objections-to-your-last-answer": "the objection to the last answer",
}


def recording_diff(request: Mapping[str, Any], recorded: Mapping[str, Any]) -> list[str]:
    """Every part that differs, such as `the main instruction (now 'Be brief.', recorded 'Be short.')`."""
    if "path" in request:  # whatever it holds is the agent's own
        return [_first_place(request, recorded)]
    return [*_settings(request, recorded), *_instructions(request, recorded), *_content(request, recorded)]


def _first_place(now: object, then: object, place: str = "") -> str:
    if isinstance(now, Mapping) and isinstance(then, Mapping):
        pairs = [(f".{key}", now.get(key), then.get(key)) for key in (*then, *(now.keys() - then.keys()))]
    elif isinstance(now, list) and isinstance(then, list):
        pairs = [(f"[{index}]", *pair) for index, pair in enumerate(zip_longest(now, then))]
    else:
        return place.removeprefix(".")
    changed = ((key, one, other) for key, one, other in pairs if one != other)
    key, one, other = next(changed, ("", None, None))
    return _first_place(one, other, place + key)


def _settings(request: Mapping[str, Any], recorded: Mapping[str, Any]) -> Iterator[str]:
    for part, setting in _SETTINGS.items():
        if (now := request.get(part)) != (then := recorded.get(part)):
            yield f"{setting} (now {_excerpt(now)}, recorded {_excerpt(then)})"
    if request.get("tool_choice") != recorded.get("tool_choice"):
        yield "whether the tool is forced"
    if request.get("tools") != recorded.get("tools"):
        yield "the tools"


def _instructions(request: Mapping[str, Any], recorded: Mapping[str, Any]) -> Iterator[str]:
    now, then = _texts(request.get("system")), _texts(recorded.get("system"))
    for number, (text, old) in enumerate(zip_longest(now, then, fillvalue=""), 1):
        name = _INSTRUCTION_NAMES[number - 1] if number <= len(_INSTRUCTION_NAMES) else f"instruction {number}"
        if text != old:
            yield f"{name} ({_first_difference(text, old)})"
    if now == then and request.get("system") != recorded.get("system"):
        yield "how the instructions are marked for the prompt cache"


def _content(request: Mapping[str, Any], recorded: Mapping[str, Any]) -> Iterator[str]:
    now, then = request.get("messages"), recorded.get("messages")
    if now == then:
        return
    one, other = _user_text(now), _user_text(then)
    found = [name for element, name in _ELEMENTS.items() if _element(one, element) != _element(other, element)]
    yield from found or ["how the mail is put into the message"]


def _texts(system: object) -> list[str]:
    blocks = system if isinstance(system, Sequence) and not isinstance(system, str) else []
    return [str(block.get("text", "")) for block in blocks if isinstance(block, Mapping)]


def _user_text(messages: object) -> str:
    if not isinstance(messages, Sequence) or not messages or not isinstance(messages[-1], Mapping):
        return ""
    content = messages[-1].get("content")
    return content if isinstance(content, str) else ""


def _element(text: str, name: str) -> object:
    try:
        return element_in(text, name)
    except ValueError:
        return text


def _first_difference(now: str, then: str) -> str:
    lines, old_lines = ([line.strip() for line in text.splitlines() if line.strip()] for text in (now, then))
    for line, old in zip_longest(lines, old_lines):
        if line != old:
            start = _excerpt_start(line or "", old or "")
            return f"now {_excerpt(line, start)}, recorded {_excerpt(old, start)}"
    return "white space or empty lines"


def _excerpt_start(line: str, other: str) -> int:
    """Where the excerpts of two lines start, so that a person sees what differs."""
    pairs = enumerate(zip(line, other, strict=False))
    common = next((number for number, (one, another) in pairs if one != another), min(len(line), len(other)))
    return max(0, common - _CONTEXT) if common > _MAX_EXCERPT // 2 else 0


def _excerpt(value: object, start: int = 0) -> str:
    if value is None:
        return "nothing"
    if not isinstance(value, str):
        return str(value)
    text = value[start:].strip()
    if len(text) > _MAX_EXCERPT:
        text = f"{text[:_MAX_EXCERPT].rstrip()} …"
    return repr(f"… {text}" if start else text)
