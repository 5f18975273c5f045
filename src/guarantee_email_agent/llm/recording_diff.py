"""In which of its parts one request differs from another, in words for the person who changed something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from guarantee_email_agent.llm.prompts import element_in

_MAX_EXCERPT: Final = 60
_CONTEXT: Final = 20
_INSTRUCTION_NAMES: Final = ("the main instruction", "the scenario's instruction")
_SETTINGS: Final = {"model": "llm.model", "max_tokens": "llm.max_tokens", "temperature": "llm.temperature"}
_ELEMENTS: Final = {
    "mail": "the mail",
    "facts": "the facts",
    "sentences": "the sentences to choose from",
    "objections-to-your-last-answer": "the objection to the last answer",
}


def recording_diff(request: Mapping[str, Any], recorded: Mapping[str, Any]) -> list[str]:
    """Every part that differs, such as `the main instruction (now 'Be brief.', recorded 'Be short.')`."""
    return [*_settings(request, recorded), *_instructions(request, recorded), *_content(request, recorded)]


def _settings(request: Mapping[str, Any], recorded: Mapping[str, Any]) -> Iterator[str]:
    for part, setting in _SETTINGS.items():
        if (now := request.get(part)) != (then := recorded.get(part)):
            yield f"{setting} (now {_excerpt(now)}, recorded {_excerpt(then)})"
    if request.get("tool_choice") != recorded.get("tool_choice"):
        yield "llm.force_tool"
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
