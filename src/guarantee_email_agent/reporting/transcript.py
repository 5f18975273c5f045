"""What happened in one case, as sections to read: mail, calls, reply, ticket, messages of a model, a judge's words.

Much of it was written by strangers: it is cut where it is too long, and what no page may show is written out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from guarantee_email_agent.reporting.reading import reading_fields
from guarantee_email_agent.reporting.report import Case
from guarantee_email_agent.utils.text import printable, visible

MAX_TEXT: Final = 20_000
"""Characters of one text that are shown."""

_MAX_ITEMS: Final = 100
_MAX_ANSWER: Final = 2_000
_SHOWN_APART: Final = frozenset(
    {
        *("response_body", "email_sent", "recipients", "reply_language", "draft_stored", "draft_recipients"),
        *("ticket_created", "ticket_fields", "note_added", "calls"),
    }
)

_APART: Final = frozenset({"output", "checks"})


class Section(NamedTuple):
    """A part of a transcript. fields: short values by name. text: None where there is none.

    role: `mail`, `call`, `reply`, `ticket` …, for its looks. note: what was left out.
    """

    role: str
    title: str
    fields: tuple[tuple[str, str], ...] = ()
    text: str | None = None
    note: str = ""


def sections(case: Case) -> Iterator[Section]:
    """In the order in which it happened: mail → reading → calls → reply → ticket → outcome → checks → judge."""
    trace = case.trace if isinstance(case.trace, Mapping) else {}
    steps = trace.get("execution_trace")
    if isinstance(case.request, Mapping):
        yield _mail(case.request)
    elif case.request is not None:
        yield _text("mail", "Task", _as_text(case.request))
    response = case.response
    yield from _reading(trace.get("read"), case.request, response)
    if isinstance(response, Mapping):
        yield from _calls(response.get("calls"), steps)
        yield from _reply(response)
        yield from _ticket(response)
        rest = {name: value for name, value in response.items() if name not in _SHOWN_APART and value not in (None, [])}
        if rest:
            yield Section("outcome", "Outcome", _fields(rest))
    elif response is not None:
        yield _text("reply", "Answer", _as_text(response))
    yield from _trace(trace, steps=None if isinstance(response, Mapping) and response.get("calls") else steps)
    if case.judgement:
        yield from _judgement(case.judgement)
    if case.output:
        yield _text("judge", "Printed by the judge", case.output, from_end=True)


def cut(text: str, max_chars: int = MAX_TEXT, *, from_end: bool = False) -> tuple[str, str]:
    """`text`, or as much of it as is shown, and a note on what is left out. from_end: keep the end of it."""
    if (more := len(text) - max_chars) <= 0:
        return text, ""
    kept = text[-max_chars:] if from_end else text[:max_chars]
    return kept, f"{more:,} characters more, left out here"


def _text(
    role: str, title: str, text: str, fields: tuple[tuple[str, str], ...] = (), *, from_end: bool = False
) -> Section:
    shown, note = cut(text, from_end=from_end)
    return Section(role, title, fields, visible(shown), note)


def _mail(mail: Mapping[str, Any]) -> Section:
    fields = {name: value for name, value in mail.items() if name != "body" and value not in (None, "", [], {})}
    return _text("mail", "Mail", _as_text(mail.get("body", "")), _fields(fields))


def _reading(read: Any, mail: Any, response: Any) -> Iterator[Section]:
    """How our own agent read the mail."""
    if isinstance(read, Mapping) and isinstance(mail, Mapping):
        fields = tuple(reading_fields(read, mail, response if isinstance(response, Mapping) else {}))
        if fields:
            yield Section("reading", "Read", fields)


def _calls(calls: Any, steps: Any) -> Iterator[Section]:
    """Each as it was traced, with its answer, else as the mocks captured it."""
    if not isinstance(calls, list | tuple) or not calls:
        return
    lines = [_step(step, _short) for step in _items(steps)] or [*map(_call, _items(calls))]
    count = len(steps) if _items(steps) else len(calls)
    if count > _MAX_ITEMS:
        lines.append(f"… and {count - _MAX_ITEMS:,} calls more")
    yield _text("call", f"Calls ({count})", "\n".join(lines))


def _step(step: Any, write_answer: Callable[[Any], str] | None = None) -> str:
    """`action_type {its arguments}`, and below it what came back; as JSON what has another form."""
    if not isinstance(step, Mapping) or not isinstance(action := step.get("action"), Mapping):
        return _as_text(step)
    arguments = {name: value for name, value in action.items() if name != "action_type"}
    done = f"{action.get('action_type')} {_as_line(arguments)}"
    feedback = step.get("feedback")
    answer = feedback.get("message") if isinstance(feedback, Mapping) else None
    return done if answer is None else f"{done}\n  → {(write_answer or _as_text)(answer)}"


def _items(values: Any) -> list[Any]:
    return list(values[:_MAX_ITEMS]) if isinstance(values, list | tuple) else []


def _call(call: Any) -> str:
    if not isinstance(call, Mapping):
        return _as_line(call)
    return f"{call.get('server')}.{call.get('tool')} {_as_line(call.get('arguments', {}))}"


def _reply(response: Mapping[str, Any]) -> Iterator[Section]:
    body = response.get("response_body")
    kind = "Draft" if response.get("draft_stored") and not response.get("email_sent") else "Reply"
    recipients = response.get("recipients") or response.get("draft_recipients") or ()
    fields = (("to", ", ".join(map(_as_line, recipients))),) if recipients else ()
    if isinstance(body, str) and body:
        yield _text("reply", kind, body, fields)
    elif "email_sent" in response:
        yield Section("reply", "Reply", text=None if response["email_sent"] else "No mail was sent.")


def _ticket(response: Mapping[str, Any]) -> Iterator[Section]:
    if response.get("ticket_created"):
        yield Section("ticket", "Ticket", _fields(response.get("ticket_fields") or {}))
    elif "ticket_created" in response:
        note = " A note was added to the conversation's." if response.get("note_added") else ""
        yield Section("ticket", "Ticket", text=f"No ticket was created.{note}")


def _trace(trace: Mapping[str, Any], *, steps: Any) -> Iterator[Section]:
    """steps: those that are not told as calls."""
    if trace.get("problem"):
        yield _text("trace", "Record", str(trace["problem"]))
    if isinstance(messages := trace.get("conversation"), list) and messages:
        yield _items_section(f"Conversation with the model ({len(messages)})", messages, _message)
    if isinstance(steps, list) and steps:
        yield _items_section(f"Steps ({len(steps)})", steps, _step)


def _items_section(title: str, items: Sequence[Any], read: Callable[[Any], str]) -> Section:
    shown = [read(item) for item in items[:_MAX_ITEMS]]
    if len(items) > _MAX_ITEMS:
        shown.append(f"… and {len(items) - _MAX_ITEMS:,} more")
    return _text("trace", title, "\n\n".join(shown))


def _message(message: Any) -> str:
    """`role: content`, and the calls that an assistant makes; as JSON what has another form."""
    if not isinstance(message, Mapping) or not isinstance(message.get("content") or "", str):
        return _as_text(message)
    name = f" ({message['name']})" if isinstance(message.get("name"), str) else ""
    lines = [f"{message.get('role')}{name}: {message.get('content') or ''}".rstrip()]
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            lines.append(f"  → {function.get('name')}({function.get('arguments', '')})")
        else:
            lines.append(_as_text(call))
    return "\n".join(lines)


def _checks(checks: Any) -> Iterator[Section]:
    """Every one, passed ones too, with what was expected and what came."""
    rows = [row for row in _items(checks) if isinstance(row, Mapping)]
    if not rows:
        return
    lines: list[str] = []
    for row in rows:
        expected, actual = row.get("expected"), row.get("actual")
        if row.get("passed"):
            lines.append(f"✓ {row.get('name')}: {_short(expected)}")
        else:
            lines.append(f"✗ {row.get('name')}: {_short(row.get('reason'))}")
            lines += [f"    expected: {_short(expected)}"] if expected is not None else []
        lines += [f"    actual: {_short(actual)}"] if actual not in (None, expected) else []
    passed_count = sum(bool(row.get("passed")) for row in rows)
    yield _text("checks", f"Checks ({passed_count} of {len(rows)} passed)", "\n".join(lines))


def _judgement(judgement: Any) -> Iterator[Section]:
    if not isinstance(judgement, Mapping):
        yield _text("judge", "Judge", _as_text(judgement))
        return
    yield from _checks(judgement.get("checks"))
    output = judgement.get("output")
    said = {name: value for name, value in judgement.items() if name not in _APART and value not in (None, "", {})}
    if said:
        yield Section("judge", "Judge", _fields(said))
    if output:
        yield _text("judge", "Printed by the judge", _as_text(output), from_end=True)


def _short(value: Any) -> str:
    text, note = cut(_as_line(value), _MAX_ANSWER)
    return f"{text} … {note}" if note else text


def _fields(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    shown = []
    for name, value in list(values.items())[:_MAX_ITEMS]:
        text, note = cut(_as_line(value), 2_000)
        shown.append((printable(str(name)), f"{text} … {note}" if note else text))
    if len(values) > _MAX_ITEMS:
        shown.append(("…", f"{len(values) - _MAX_ITEMS:,} more, left out here"))
    return tuple(shown)


def _as_line(value: Any) -> str:
    return printable(_as_text(value, indent=None))


def _as_text(value: Any, indent: int | None = 1) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
