"""In which of its parts one request differs from another, in words for the person who changed something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from guarantee_email_agent.llm.prompts import element_in

_SHOWN_CHARACTERS: Final = 60
_SHOWN_BEFORE: Final = 20
_INSTRUCTIONS: Final = ("the main instruction", "the scenario's instruction")
_SETTINGS: Final = {"model": "llm.model", "max_tokens": "llm.max_tokens", "temperature": "llm.temperature"}
_ELEMENTS: Final = {
    "mail": "the mail",
    "facts": "the facts",
    "objections-to-your-last-draft": "the objections to the last draft",
    "objections-to-your-last-answer": "the objection to the last answer",
}


def differences(request: Mapping[str, Any], recorded: Mapping[str, Any]) -> list[str]:
    """Every part that differs, such as `the main instruction (now 'Be brief.', recorded 'Be short.')`."""
    return [*_settings(request, recorded), *_instructions(request, recorded), *_content(request, recorded)]


def _settings(request: Mapping[str, Any], recorded: Mapping[str, Any]) -> Iterator[str]:
    for part, setting in _SETTINGS.items():
        if (now := request.get(part)) != (then := recorded.get(part)):
            yield f"{setting} (now {_shown(now)}, recorded {_shown(then)})"
    if request.get("tool_choice") != recorded.get("tool_choice"):
        yield "llm.force_tool"
    if request.get("tools") != recorded.get("tools"):
        yield "the tools"


def _instructions(request: Mapping[str, Any], recorded: Mapping[str, Any]) -> Iterator[str]:
    now, then = _texts(request.get("system")), _texts(recorded.get("system"))
    for number in range(max(len(now), len(then))):
        name = _INSTRUCTIONS[number] if number < len(_INSTRUCTIONS) else f"instruction {number + 1}"
        text = now[number] if number < len(now) else ""
        old = then[number] if number < len(then) else ""
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
    lines, old = ([line.strip() for line in text.splitlines() if line.strip()] for text in (now, then))
    for number in range(max(len(lines), len(old))):
        line = lines[number] if number < len(lines) else None
        before = old[number] if number < len(old) else None
        if line != before:
            start = _start(line or "", before or "")
            return f"now {_shown(line, start)}, recorded {_shown(before, start)}"
    return "white space or empty lines"


def _start(line: str, other: str) -> int:
    """Where to begin to show two lines, so that a person sees what differs."""
    pairs = enumerate(zip(line, other, strict=False))
    alike = next((number for number, (one, another) in pairs if one != another), min(len(line), len(other)))
    return max(0, alike - _SHOWN_BEFORE) if alike > _SHOWN_CHARACTERS // 2 else 0


def _shown(value: object, start: int = 0) -> str:
    if value is None:
        return "nothing"
    if not isinstance(value, str):
        return str(value)
    text = value[start:].strip()
    if len(text) > _SHOWN_CHARACTERS:
        text = f"{text[:_SHOWN_CHARACTERS].rstrip()} …"
    return repr(f"… {text}" if start else text)
