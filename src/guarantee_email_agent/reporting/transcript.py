"""What happened in one case, as sections to read: mail, calls, reply, ticket, messages of a model, a judge's words.

Much of it was written by strangers: it is cut where it is too long, and what no page may show is written out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from guarantee_email_agent.reporting.report import Case
from guarantee_email_agent.utils.text import printable

MAX_TEXT: Final = 20_000
"""Characters of one text that are shown."""

_MAX_ITEMS: Final = 100
_SHOWN_APART: Final = frozenset(
    {
        *("response_body", "email_sent", "recipients", "reply_language", "draft_stored", "draft_recipients"),
        *("ticket_created", "ticket_fields", "note_added", "calls"),
    }
)


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
    """In the order in which it happened: mail → calls → reply → ticket → what else is known → judge."""
    if isinstance(case.request, Mapping):
        yield _mail(case.request)
    elif case.request is not None:
        yield _text("mail", "Task", _as_text(case.request))
    response = case.response
    if isinstance(response, Mapping):
        yield from _calls(response.get("calls"))
        yield from _reply(response)
        yield from _ticket(response)
        rest = {name: value for name, value in response.items() if name not in _SHOWN_APART and value not in (None, [])}
        if rest:
            yield Section("outcome", "Outcome", _fields(rest))
    elif response is not None:
        yield _text("reply", "Answer", _as_text(response))
    yield from _trace(case.trace)
    if case.judgement:
        yield from _judgement(case.judgement)
    if case.output:
        yield _text("judge", "Printed by the judge", case.output, from_end=True)


def visible(text: str) -> str:
    """`text` with its line breaks, and with whatever else controls a terminal or a page written out."""
    return "\n".join(map(printable, text.replace("\r\n", "\n").replace("\t", "    ").split("\n")))


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


def _calls(calls: Any) -> Iterator[Section]:
    if not isinstance(calls, list | tuple) or not calls:
        return
    lines = [_call(call) for call in calls[:_MAX_ITEMS]]
    if len(calls) > _MAX_ITEMS:
        lines.append(f"… and {len(calls) - _MAX_ITEMS:,} calls more")
    yield _text("call", f"Calls ({len(calls)})", "\n".join(lines))


def _call(call: Any) -> str:
    if not isinstance(call, Mapping):
        return _as_line(call)
    return f"{call.get('server')}.{call.get('tool')} {_as_line(call.get('arguments', {}))}"


def _reply(response: Mapping[str, Any]) -> Iterator[Section]:
    body = response.get("response_body")
    kind = "Draft" if response.get("draft_stored") and not response.get("email_sent") else "Reply"
    recipients = response.get("recipients") or response.get("draft_recipients") or ()
    fields = (("to", ", ".join(map(_as_text, recipients))),) if recipients else ()
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


def _trace(trace: Any) -> Iterator[Section]:
    if not isinstance(trace, Mapping):
        return
    for name, title in (("conversation", "Conversation with the model"), ("execution_trace", "Steps")):
        if steps := trace.get(name):
            yield _text("trace", f"{title} ({len(steps)})", "\n\n".join(map(_as_text, steps[:_MAX_ITEMS])))


def _judgement(judgement: Any) -> Iterator[Section]:
    if not isinstance(judgement, Mapping):
        yield _text("judge", "Judge", _as_text(judgement))
        return
    output = judgement.get("output")
    said = {name: value for name, value in judgement.items() if name != "output" and value not in (None, "", {})}
    if said:
        yield Section("judge", "Judge", _fields(said))
    if output:
        yield _text("judge", "Printed by the judge", _as_text(output), from_end=True)


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
