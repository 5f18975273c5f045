"""One exchange with a model as a file that people can read: what was asked, and what was answered.

A file is evidence, so it is never edited by hand: what it holds is checked against the digests that it names.
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
from guarantee_email_agent.llm.port import (
    Message,
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
from guarantee_email_agent.llm.usage import usage_of
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
