"""Exchanges with a model, kept as files and given back to the very same request and to no other.

A file is evidence, so it is never edited by hand: what it holds is checked against the digests that it names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass
from itertools import zip_longest
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from guarantee_email_agent.files.text_file import InputFileError, read_text
from guarantee_email_agent.files.yaml import dump, load_documents
from guarantee_email_agent.llm.port import (
    LanguageModel,
    Message,
    ModelClient,
    OtherBlock,
    TextBlock,
    TokenUsage,
    ToolUseBlock,
    all_parts,
    canonical_json,
    digest,
    request_digest,
)
from guarantee_email_agent.llm.prompts import CHOICE_TOOL, TRIAGE_TOOL
from guarantee_email_agent.llm.usage import has_list_price, usage_of
from guarantee_email_agent.utils.errors import LLMError
from guarantee_email_agent.utils.text import printable

FORMAT: Final = 1
MAX_RECORDING_BYTES: Final = 64_000_000

_HEADER: Final = "# Recorded by 'eval --llm record'. Not to be edited: a recording that was changed is refused.\n"
_KEYS: Final = frozenset({"request", "answer", "request_sha256", "answer_sha256"})
_NAME: Final = re.compile(r"run(\d{2,})-(\d{2,})-([a-z0-9_]+)-([0-9a-f]{12})\.yaml")
_KINDS: Final = {TRIAGE_TOOL: "triage", CHOICE_TOOL: "choice"}
# What a server leaves out of a block is None in the SDK's.
_MISSING: Final = {"text": None, "id": None, "name": None, "input": None}
_NOT_IN_A_NAME: Final = re.compile(r"[^a-z0-9_]+")


@dataclass(frozen=True, slots=True, order=True)
class RecordingName:
    """The parts of a file's name.

    run, call: from 1. kind: `triage`, `choice`. short_digest: the request's begins so.
    """

    run: int
    call: int
    kind: str
    short_digest: str

    def __str__(self) -> str:
        return f"run{self.run:02}-{self.call:02}-{self.kind}-{self.short_digest}.yaml"

    @classmethod
    def of(cls, run: int, call: int, exchange: Exchange) -> RecordingName:
        return cls(run, call, request_kind(exchange.request), exchange.digest[:12])

    @classmethod
    def parse(cls, name: str) -> RecordingName | None:
        """None for a file that is no recording."""
        match = _NAME.fullmatch(name)
        return cls(int(match[1]), int(match[2]), match[3], match[4]) if match else None


@dataclass(frozen=True, slots=True)
class Exchange:
    """request: as sent, with each of `request.PARTS`. answer: `model`, `stop_reason`, `content`, `usage`."""

    request: Mapping[str, Any]
    digest: str
    answer: Mapping[str, Any]

    @classmethod
    def of(cls, request: Mapping[str, Any], answer: Any) -> Exchange:
        """What was asked and answered, free of the SDK's types. Raises LLMError for what no file could hold."""
        plain: dict[str, Any] = {
            "model": answer.model,
            "stop_reason": answer.stop_reason,
            "usage": asdict(usage_of(answer)),
        }
        if not has_list_price(answer):
            plain["service_tier"] = "dearer"  # or a speed, a place, a cache: a replay has no price for it either
        try:
            plain["content"] = [{"type": block.type, **_plain(block)} for block in answer.content]
            if (details := getattr(answer, "stop_details", None)) is not None:
                plain["stop_details"] = _plain(details)
        except (ValueError, RecursionError):  # the SDK reads what is nested more deeply than it writes
            raise _not_recordable(request_kind(request)) from None
        return cls(all_parts(request), request_digest(request), plain)

    def message(self) -> Message:
        """The answer as the port has it."""
        details = self.answer.get("stop_details")
        return Message(
            "msg_recorded",
            self.answer["model"],
            tuple(map(_block, self.answer["content"])),
            self.answer["stop_reason"],
            TokenUsage(**self.answer["usage"]),
            stop_details=SimpleNamespace(**details) if isinstance(details, Mapping) else details,
            service_tier=self.answer.get("service_tier"),
        )


def request_kind(request: Mapping[str, Any]) -> str:
    """`triage` or `choice`, or the name of the tool that the model is to use; the last word of a path."""
    if "path" in request:
        return _NOT_IN_A_NAME.sub("_", str(request["path"]).partition("?")[0].rpartition("/")[2].lower()) or "request"
    tools, choice = request.get("tools"), request.get("tool_choice")
    named = choice if isinstance(choice, Mapping) and "name" in choice else tools[0] if tools else None
    name = str(named.get("name", "")) if isinstance(named, Mapping) else ""
    return _KINDS.get(name) or _NOT_IN_A_NAME.sub("_", name.lower()) or "request"


def recording_text(exchange: Exchange, scenario: str, name: RecordingName) -> str:
    """The file's content. Raises LLMError for what no file could give back."""
    content = {
        "format": FORMAT,
        "scenario": scenario,
        "run": name.run,
        "call": name.call,
        "request_sha256": exchange.digest,
        "answer_sha256": digest(exchange.answer),
        "answer": exchange.answer,
        "request": exchange.request,
    }
    try:
        text = _HEADER + dump(content)
        restored = load_documents(text)
        text.encode()
    except (InputFileError, TypeError, ValueError, RecursionError):
        restored = []
    if canonical_json(restored) != canonical_json([content]):
        raise _not_recordable(name.kind)
    return text


def read_recording(path: Path, sent: Mapping[str, Any] | None = None) -> Exchange:
    """The exchange in a file. sent: a request that the file may hold; its digest is not computed again.

    Raises LLMError(code="llm_recording_invalid"), naming the file, where it is not what was recorded.
    """
    try:
        documents = load_documents(read_text(path, MAX_RECORDING_BYTES))
    except InputFileError as error:
        raise _invalid(path, error.message) from None
    content = documents[0] if len(documents) == 1 else None
    if not isinstance(content, dict) or not content.keys() >= _KEYS:
        raise _invalid(path, "it was cut off, or is no recording")
    if content.get("format") != FORMAT:
        raise _invalid(path, f"it has format {content.get('format')!r}, and this version reads {FORMAT}")
    request, answer = content["request"], content["answer"]
    run, call, scenario = content.get("run"), content.get("call"), content.get("scenario")
    if (
        not isinstance(request, dict)
        or not isinstance(answer, dict)
        or not (isinstance(run, int) and isinstance(call, int))
        or (request != sent and request_digest(request) != content["request_sha256"])
        or digest(answer) != content["answer_sha256"]
    ):
        raise _invalid(path, "it was changed or cut off after it was recorded")
    exchange = Exchange(request, content["request_sha256"], answer)
    name = RecordingName.of(run, call, exchange)
    if (scenario, str(name)) != (path.parent.name, path.name):
        raise _invalid(path, f"it was renamed or copied, and was recorded as {scenario}/{name}")
    return exchange


def _not_recordable(kind: str) -> LLMError:
    return LLMError(
        f"The {kind} answer holds what no recording can hold. Use --llm live for it", "llm_recording_impossible"
    )


def _invalid(path: Path, problem: str) -> LLMError:
    file = printable(f"{path.parent.name}/{path.name}")
    return LLMError(f"The recording {file} cannot be used: {problem}. Record anew", "llm_recording_invalid")


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):  # the SDK's own
        return value.model_dump(mode="json", exclude_unset=True, warnings=False)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value


def _block(block: Mapping[str, Any]) -> TextBlock | ToolUseBlock | OtherBlock:
    fields: dict[str, Any] = {**_MISSING, **block}
    if fields["type"] == "text":
        return TextBlock(fields["text"])
    if fields["type"] == "tool_use":
        return ToolUseBlock(fields["id"], fields["name"], fields["input"])
    return OtherBlock(fields["type"], block)


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

    def write(self, runs: Sequence[Sequence[Exchange]]) -> str | None:
        """Take the place of everything that was recorded of this scenario, once all of it is written.

        What went wrong, if anything did; old recordings are then as they were.
        """
        texts: dict[str, str] = {}
        drafts: dict[Path, Path] = {}
        try:
            for run, exchanges in enumerate(runs, 1):
                for call, exchange in enumerate(exchanges, 1):
                    name = RecordingName.of(run, call, exchange)
                    texts[str(name)] = recording_text(exchange, self._scenario, name)
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
        except LLMError as error:
            return error.message
        except OSError as error:
            return f"{self._folder}: the recording cannot be written ({error.strerror}). Make room, or allow it"
        finally:
            with suppress(OSError):
                for draft in drafts:
                    draft.unlink(missing_ok=True)
                self._folder.rmdir()  # stays where something lies in it
                self._folder.parent.rmdir()
        return None

    def find(self, sent: Mapping[str, Any], run: int, used: set[RecordingName]) -> Exchange:
        """What was recorded for just this request, of those not in `used`, to which it is added."""
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
        candidates = [name for name in names if name.run == run and name.kind == kind]
        if not candidates:
            return f"{what}, nor is any other of this kind. {self._remedy}"
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
        return self._recordings.find(all_parts(request), self._run, self._used).message()


_MAX_EXCERPT: Final = 60
_CONTEXT: Final = 20
_PLACES: Final = {
    "model": "llm.model",
    "max_tokens": "llm.max_tokens",
    "temperature": "the temperature",
    "system[0].text": "the main instruction",
    "system[1].text": "the scenario's instruction",
    "messages[0].content": "the mail and its facts",
}


def recording_diff(request: Mapping[str, Any], recorded: Mapping[str, Any]) -> list[str]:
    """Where each part differs first, such as `the main instruction (now 'Be brief.', recorded 'Be short.')`."""
    found = (
        _first_difference(request.get(part), recorded.get(part), part)
        for part in dict.fromkeys((*request, *recorded))
        if request.get(part) != recorded.get(part)
    )
    return [
        f"{_PLACES.get(place, place)} (now {_excerpt(now, then)}, recorded {_excerpt(then, now)})"
        for place, now, then in found
    ]


def _first_difference(now: object, then: object, place: str) -> tuple[str, object, object]:
    if isinstance(now, Mapping) and isinstance(then, Mapping):
        pairs = [(f".{key}", now.get(key), then.get(key)) for key in dict.fromkeys((*then, *now))]
    elif isinstance(now, list) and isinstance(then, list):
        pairs = [(f"[{index}]", *pair) for index, pair in enumerate(zip_longest(now, then))]
    else:
        return place, now, then
    key, one, other = next(pair for pair in pairs if pair[1] != pair[2])
    return _first_difference(one, other, place + key)


def _excerpt(value: object, other: object) -> str:
    """A text from a little before the place where it differs from the other one."""
    if not isinstance(value, str):
        return "nothing" if value is None else repr(value)[:_MAX_EXCERPT]
    other = other if isinstance(other, str) else ""
    same = (number for number, (one, another) in enumerate(zip(value, other, strict=False)) if one != another)
    start = max(0, next(same, min(len(value), len(other))) - _CONTEXT)
    text = value[start : start + _MAX_EXCERPT]
    return repr(f"{'… ' if start else ''}{text}{' …' if start + _MAX_EXCERPT < len(value) else ''}")
