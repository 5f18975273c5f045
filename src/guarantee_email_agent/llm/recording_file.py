"""One exchange with a model as a file that people can read: what was asked, and what was answered.

A file is evidence, so it is never edited by hand: what it holds is checked against the sums that it names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from guarantee_email_agent.files.text_file import InputFileError, read_text
from guarantee_email_agent.files.yaml import dump, load_documents
from guarantee_email_agent.llm.port import Message, OtherBlock, TextBlock, TokenUsage, ToolUseBlock
from guarantee_email_agent.llm.prompts import DRAFT_TOOL, TRIAGE_TOOL
from guarantee_email_agent.llm.request import PARTS, canonical, canonical_json, digest
from guarantee_email_agent.llm.usage import usage_of
from guarantee_email_agent.utils.errors import LLMError
from guarantee_email_agent.utils.printable import printable

FORMAT: Final = 1
MAX_RECORDING_BYTES: Final = 64_000_000

_HEADER: Final = "# Recorded by 'eval --llm record'. Not to be edited: a recording that was changed is refused.\n"
_KEYS: Final = frozenset({"request", "answer", "request_sha256", "answer_sha256"})
_SHORT: Final = 12
_NAME: Final = re.compile(r"run(\d{2,})-(\d{2,})-([a-z0-9_]+)-([0-9a-f]{12})\.yaml")
_REQUESTS: Final = {TRIAGE_TOOL: "triage", DRAFT_TOOL: "draft"}
# What a server leaves out of a block is None in the SDK's.
_NOT_GIVEN: Final = {"text": None, "id": None, "name": None, "input": None}
_NOT_IN_A_NAME: Final = re.compile(r"[^a-z0-9_]+")


@dataclass(frozen=True, slots=True, order=True)
class RecordingName:
    """What a file's name says. run, call: from 1. kind: `triage`, `draft`. short: how the request's sum begins."""

    run: int
    call: int
    kind: str
    short: str

    def __str__(self) -> str:
        return f"run{self.run:02}-{self.call:02}-{self.kind}-{self.short}.yaml"

    @classmethod
    def of(cls, run: int, call: int, request: Mapping[str, Any], key: str) -> RecordingName:
        return cls(run, call, kind_of(request), key[:_SHORT])

    @classmethod
    def read(cls, name: str) -> RecordingName | None:
        """None for a file that is no recording."""
        match = _NAME.fullmatch(name)
        return cls(int(match[1]), int(match[2]), match[3], match[4]) if match else None

    def is_for(self, run: int, key: str) -> bool:
        return self.run == run and key.startswith(self.short)


@dataclass(frozen=True, slots=True)
class Exchange:
    """request: as sent, with each of `request.PARTS`. answer: `model`, `stop_reason`, `content`, `usage`."""

    request: Mapping[str, Any]
    answer: Mapping[str, Any]

    @property
    def key(self) -> str:
        return digest(canonical(self.request))


def kind_of(request: Mapping[str, Any]) -> str:
    """`triage` or `draft`, or the name of the tool that the model is to use."""
    tools = request.get("tools")
    name = str(tools[0].get("name", "")) if tools and isinstance(tools[0], Mapping) else ""
    return _REQUESTS.get(name) or _NOT_IN_A_NAME.sub("_", name.lower()) or "request"


def exchange_of(request: Mapping[str, Any], answer: Any) -> Exchange:
    """What was asked and what came, free of the SDK's types. Raises LLMError for what no file could hold."""
    plain: dict[str, Any] = {
        "model": answer.model,
        "stop_reason": answer.stop_reason,
        "usage": asdict(usage_of(answer)),
    }
    try:
        plain["content"] = [{"type": block.type, **_plain(block)} for block in answer.content]
        if (details := getattr(answer, "stop_details", None)) is not None:
            plain["stop_details"] = _plain(details)
    except (ValueError, RecursionError):  # the SDK reads what is nested more deeply than it writes
        raise _impossible(kind_of(request)) from None
    return Exchange(whole(request), plain)


def whole(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request with each of its parts, None where it has none."""
    return {part: request.get(part) for part in PARTS}


def message_of(answer: Mapping[str, Any]) -> Message:
    """The answer as the port has it."""
    details = answer.get("stop_details")
    return Message(
        "msg_recorded",
        answer["model"],
        tuple(map(_block, answer["content"])),
        answer["stop_reason"],
        TokenUsage(**answer["usage"]),
        stop_details=SimpleNamespace(**details) if isinstance(details, Mapping) else details,
    )


def as_text(exchange: Exchange, scenario: str, name: RecordingName) -> str:
    """The file's content. Raises LLMError for what no file could give back."""

    content = {
        "format": FORMAT,
        "scenario": scenario,
        "run": name.run,
        "call": name.call,
        "request_sha256": exchange.key,
        "answer_sha256": digest(canonical_json(exchange.answer)),
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
        raise _impossible(name.kind)
    return text


def read_exchange(path: Path) -> Exchange:
    """The exchange in a file.

    Raises LLMError(code="llm_recording_invalid"), naming the file, where it is not what was recorded.
    """
    content = _read(path)
    request = content["request"]
    if not isinstance(request, dict) or digest(canonical(request)) != content["request_sha256"]:
        raise _changed(path)
    _check_name(path, content)
    return Exchange(request, _answer(path, content))


def read_answer(path: Path, request: Mapping[str, Any], key: str) -> Mapping[str, Any] | None:
    """The answer in a file, if it is to this request; None if it is to another one.

    request: as `Exchange.request`; key: its sum. Raises LLMError as `read_exchange` does.
    """
    content = _read(path)
    if content["request_sha256"] != key:
        return None
    if content["request"] != request:  # the same sum, so somebody edited what it was made of
        raise _changed(path)
    _check_name(path, content)
    return _answer(path, content)


def _read(path: Path) -> dict[str, Any]:
    try:
        documents = load_documents(read_text(path, MAX_RECORDING_BYTES))
    except InputFileError as error:
        raise _invalid(path, error.message) from None
    content = documents[0] if len(documents) == 1 else None
    if not isinstance(content, dict) or not content.keys() >= _KEYS:
        raise _invalid(path, "it was cut off, or is no recording")
    if content.get("format") != FORMAT:
        raise _invalid(path, f"it has format {content.get('format')!r}, and this version reads {FORMAT}")
    return content


def _answer(path: Path, content: Mapping[str, Any]) -> Mapping[str, Any]:
    answer = content["answer"]
    if not isinstance(answer, dict) or digest(canonical_json(answer)) != content["answer_sha256"]:
        raise _changed(path)
    return answer


def _check_name(path: Path, content: Mapping[str, Any]) -> None:
    """Raises LLMError where the file was recorded under another name. Its request is known to be unchanged."""
    run, call, scenario = content.get("run"), content.get("call"), content.get("scenario")
    if not (isinstance(run, int) and isinstance(call, int)):
        raise _changed(path)
    name = RecordingName.of(run, call, content["request"], content["request_sha256"])
    if (scenario, str(name)) != (path.parent.name, path.name):
        raise _invalid(path, f"it was renamed or copied, and was recorded as {scenario}/{name}")


def _impossible(kind: str) -> LLMError:
    return LLMError(
        f"The {kind} answer holds what no recording can hold. Use --llm live for it", "llm_recording_impossible"
    )


def _changed(path: Path) -> LLMError:
    return _invalid(path, "it was changed or cut off after it was recorded")


def _invalid(path: Path, problem: str) -> LLMError:
    shown = printable(f"{path.parent.name}/{path.name}")
    return LLMError(f"The recording {shown} cannot be used: {problem}. Record anew", "llm_recording_invalid")


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):  # the SDK's own
        return value.model_dump(mode="json", exclude_unset=True, warnings=False)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value


def _block(block: Mapping[str, Any]) -> TextBlock | ToolUseBlock | OtherBlock:
    given: dict[str, Any] = {**_NOT_GIVEN, **block}
    if given["type"] == "text":
        return TextBlock(given["text"])
    if given["type"] == "tool_use":
        return ToolUseBlock(given["id"], given["name"], given["input"])
    return OtherBlock(given["type"], block)
