"""What happened in one case, as sections to read: mail, calls, reply, ticket, messages of a model, a judge's words.

Much of it was written by strangers: it is cut where it is too long, and what no page may show is written out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final, NamedTuple

from guarantee_email_agent.runlog.records import CaseResult, Check
from guarantee_email_agent.runlog.views.report import relative_to
from guarantee_email_agent.utils.terminal import pluralize
from guarantee_email_agent.utils.text import head_and_tail, printable, visible

MAX_TEXT: Final = 20_000
"""Characters of one text that are shown."""

_MAX_SAID: Final = 2 * MAX_TEXT  # what was printed has both its ends already
_MAX_ITEMS: Final = 100
_MAX_VALUE: Final = 2_000
_SHOWN_APART: Final = frozenset(
    {
        *("response_body", "response_subject", "email_sent", "recipients", "reply_language", "draft_stored"),
        *("draft_recipients", "ticket_created", "tickets", "ticket_fields", "note_added"),
        *("calls", "other_calls", "answer", "turns"),
    }
)

_SAID_BY_AGENT: Final[Mapping[str, str]] = {
    "task_result": "Answer of the agent",
    "response": "Response of the service",
    "stdout": "Printed on stdout",
    "stderr": "Printed on stderr",
}


class Call(NamedTuple):
    """A call of a service, or an action of an agent. answer, duration_ms: None where they are not known."""

    name: str
    arguments: tuple[tuple[str, str], ...] = ()
    answer: str | None = None
    duration_ms: float | None = None


class Section(NamedTuple):
    """A part of a transcript. fields: short values by name. text: None where there is none.

    role: `mail`, `call`, `reply`, `ticket` …, for its looks. note: what was left out. calls, checks: where it has such.
    """

    role: str
    title: str
    fields: tuple[tuple[str, str], ...] = ()
    text: str | None = None
    note: str = ""
    calls: tuple[Call, ...] = ()
    checks: tuple[Check, ...] = ()


def sections(result: CaseResult) -> Iterator[Section]:
    """In the order in which it happened: mail → reading → model → calls → reply → ticket → outcome → checks → judge."""
    request, response = result.request, result.response
    trace = result.trace if isinstance(result.trace, Mapping) else {}
    yield from _record(trace)
    if isinstance(request, Mapping):
        yield _mail(request)
    elif request is not None:
        yield _text("mail", "Task", _as_text(request))
    yield from _reading(trace.get("read"), request, response)
    if isinstance(messages := trace.get("conversation"), list) and messages:
        yield _conversation(messages)
    yield from _calls(trace.get("execution_trace"), response, result.step_ms)
    for name, title in _SAID_BY_AGENT.items():
        if isinstance(said := trace.get(name), str) and said.strip():
            yield Section("trace", title, text=visible(head_and_tail(said, _MAX_SAID)))
    if isinstance(response, Mapping):
        is_mail = isinstance(request, Mapping)  # of a task alone, what was not sent is nothing to tell
        yield from _reply(response, is_mail)
        yield from _ticket(response, is_mail)
        yield from _turns(response.get("turns"), is_mail)
        rest = {name: value for name, value in response.items() if name not in _SHOWN_APART and value not in (None, [])}
        if rest:
            yield Section("outcome", "Outcome", _fields(rest))
    elif response is not None:
        yield _text("reply", "Answer", _as_text(response))
    yield from _judgement(result.judgement, result.checks)


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


def _record(trace: Mapping[str, Any]) -> Iterator[Section]:
    """Where the record of a task lies, or why it is not shown."""
    record = trace.get("record")
    if trace.get("problem"):
        yield _text("trace", "Record", str(trace["problem"]))
    elif isinstance(record, Mapping) and "file" in record:
        number = f", {record['number']}" if record.get("number") else ""
        yield _text("trace", "Record", f"{relative_to(str(record['file']))}{number}")


def _mail(mail: Mapping[str, Any]) -> Section:
    fields = {name: value for name, value in mail.items() if name != "body" and value not in (None, "", [], {})}
    return _text("mail", "Mail", _as_text(mail.get("body", "")), _fields(_unfolded(fields, "headers")))


def _reading(read: Any, mail: Any, response: Any) -> Iterator[Section]:
    """How our own agent read the mail."""
    if isinstance(read, Mapping) and isinstance(mail, Mapping):
        fields = tuple(_reading_fields(read, mail, response if isinstance(response, Mapping) else {}))
        if fields:
            yield Section("reading", "Read", fields)


def _reading_fields(
    read: Mapping[str, Any], mail: Mapping[str, Any], response: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Language, topic, numbers with the line that each stands in, look-up, and the scenario with why it was chosen."""
    for name in ("language", "topic"):
        if name in read:
            yield name, _short(read[name])
    if "numbers" in read:
        kind = str(read.get("number_kind", "number")).replace("_", " ")
        for number in read["numbers"]:
            yield kind, _evidence(str(number), mail)
        if not read["numbers"]:
            yield kind, "none"
    if "look_up" in read:
        asked = f" of {printable(str(read['number']))}" if "number" in read else ""
        yield "look-up", f"{printable(str(read['look_up']))}{asked} → {printable(str(read.get('status', 'no answer')))}"
    if "skip_reason" in read:
        yield "not answered", _short(read["skip_reason"])
    if response.get("hand_over_reasons"):
        yield "for a person", _short(response["hand_over_reasons"])
    if response.get("scenario_used"):
        yield "scenario", f"{printable(str(response['scenario_used']))}{_why(read, response)}"


def _why(read: Mapping[str, Any], response: Mapping[str, Any]) -> str:
    """What the trigger of a scenario has to go by."""
    if "skip_reason" in read:
        return ", for mail that must not be answered"
    if response.get("hand_over_reasons"):
        return ", for mail that a person is to see"
    parts = [f"topic {read['topic']}"] if "topic" in read else []
    if "numbers" in read:
        parts.append(pluralize(len(read["numbers"]), str(read.get("number_kind", "number")).replace("_", " ")))
    if "status" in read:
        parts.append(f"status {read['status']}")
    return f", by {printable(', '.join(parts))}" if parts else ""


def _evidence(number: str, mail: Mapping[str, Any]) -> str:
    """A number with the line of the mail that it stands in."""
    for name in ("body", "subject"):
        for line in str(mail.get(name) or "").splitlines():
            if number.casefold() in line.casefold():
                at = line.casefold().index(number.casefold())
                start = max(0, at - 60)
                excerpt = line[start : at + len(number) + 60].strip()
                return f"{printable(number)}, in {printable(excerpt)!r}"
    return printable(number)


def _conversation(messages: Sequence[Any]) -> Section:
    shown = [_message(message) for message in messages[:_MAX_ITEMS]]
    if len(messages) > _MAX_ITEMS:
        shown.append(f"… and {len(messages) - _MAX_ITEMS:,} more")
    return _text("trace", f"Conversation with the model ({len(messages)})", "\n\n".join(shown))


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


def _calls(steps: Any, response: Any, step_ms: Sequence[float | None]) -> Iterator[Section]:
    """As they were traced, with their answers, else as the mocks captured them."""
    made = steps
    if not isinstance(steps, list) or not steps:
        made = response.get("calls") if isinstance(response, Mapping) else None
    if isinstance(made, list | tuple) and made:
        times = chain(step_ms, repeat(None)) if made is steps else repeat(None)
        calls = tuple(_call(each, took_ms) for each, took_ms in zip(made[:_MAX_ITEMS], times, strict=False))
        note = f"{len(made) - _MAX_ITEMS:,} more, left out here" if len(made) > _MAX_ITEMS else ""
        yield Section("call", f"Calls ({len(made)})", note=note, calls=calls)


def _call(step: Any, took_ms: float | None) -> Call:
    """A step of a trace, or a call that the mocks captured; as JSON what has another form."""
    if not isinstance(step, Mapping):
        return Call(_short(step))
    action = step.get("action", {})
    if "server" in step:
        arguments = step.get("arguments")
        name = f"{step['server']}.{step.get('tool')}"
    elif isinstance(action, Mapping):
        arguments = {name: value for name, value in action.items() if name != "action_type"}
        name = str(action.get("action_type", "?"))
    else:
        return Call(_short(step))
    feedback = step.get("feedback")
    name = f"in its spans: {name}" if isinstance(feedback, Mapping) and feedback.get("traced") is True else name
    answer = _answer(feedback)
    shown = _fields(arguments) if isinstance(arguments, Mapping) else ()
    took = step.get("duration_ms", took_ms)
    duration_ms = took if isinstance(took, int | float) else None
    return Call(printable(name), shown, None if answer is None else _short(answer), duration_ms)


def _answer(feedback: Any) -> Any:
    """What came back of a step; None where nothing is known of it."""
    if not isinstance(feedback, Mapping):
        return None
    if feedback.get("answered") is False:
        return "(no answer)"
    return f"refused: {feedback.get('message')}" if feedback.get("refused") is True else feedback.get("message")


def _reply(response: Mapping[str, Any], is_mail: bool) -> Iterator[Section]:
    body = response.get("response_body")
    kind = "Draft" if response.get("draft_stored") and not response.get("email_sent") else "Reply"
    recipients = response.get("recipients") or response.get("draft_recipients") or ()
    fields: tuple[tuple[str, str], ...] = (("to", ", ".join(map(_as_line, recipients))),) if recipients else ()
    if response.get("response_subject"):
        fields += (("subject", _as_line(response["response_subject"])),)
    if isinstance(body, str) and body:
        yield _text("reply", kind, body, fields)
    elif "email_sent" in response and (is_mail or response["email_sent"]):
        yield Section("reply", "Reply", text=None if response["email_sent"] else "No mail was sent.")


def _ticket(response: Mapping[str, Any], is_mail: bool) -> Iterator[Section]:
    if response.get("ticket_created") or response.get("ticket_fields"):
        yield Section("ticket", "Ticket", _fields(response.get("ticket_fields") or {}))
    elif "ticket_created" in response and (is_mail or response.get("note_added")):
        note = " A note was added to the conversation's." if response.get("note_added") else ""
        yield Section("ticket", "Ticket", text=f"No ticket was created.{note}")


def _turns(turns: Any, is_mail: bool) -> Iterator[Section]:
    """What was said after the first answer, and what came of it."""
    told = turns if isinstance(turns, list) else ()
    for number, turn in enumerate((each for each in told[:_MAX_ITEMS] if isinstance(each, Mapping)), 1):
        if number > 1:
            yield _text("mail", f"Turn {number}", _as_text(turn.get("says")))
        if is_mail and isinstance(output := turn.get("output"), Mapping):
            yield from _reply(output, is_mail)
            yield from _ticket(output, is_mail)
        elif not is_mail:
            answer = turn.get("answer")
            yield _text("reply", f"Answer in turn {number}", "(no answer)" if answer is None else _as_text(answer))


def _judgement(judgement: Mapping[str, Any] | None, judged: Sequence[Check]) -> Iterator[Section]:
    if named := [check for check in judged if check.name]:  # of a task the verdict is the only one
        passed_count = sum(check.passed for check in named)
        checks = tuple(map(_shown, named[:_MAX_ITEMS]))
        yield Section("checks", f"Checks ({passed_count} of {len(named)} passed)", checks=checks)
    said = dict(judgement or {})
    printed, rubric = said.pop("output", None), said.pop("rubric", ())
    said = {name: value for name, value in said.items() if value not in (None, "", {})}
    if said:
        yield Section("judge", "Judge", _fields(_unfolded(said, "details")))
    if rubric:
        answers = {}
        for row in rubric:
            who = f"{row['model'] or 'nobody answered'}, {'gates' if row['gates'] else 'does not gate'}"
            answers[row["question"]] = f"{rubric_said(row)} ({who})"
        yield Section("judge", "Rubric", _fields(answers))
    if printed:
        yield _text("judge", "Printed by the judge", _as_text(printed), from_end=True)


def rubric_said(row: Mapping[str, Any]) -> str:
    """An answer to a question of a rubric, as `judging.rubric` has it, for people."""
    return ": ".join(filter(None, (row["answer"], row["reason"], row["quote"] and f"“{row['quote']}”")))


def _shown(check: Check) -> Check:
    expected, actual = (None if value is None else _short(value) for value in (check.expected, check.actual))
    return Check(printable(str(check.name)), _short(check.reason), expected, actual, bool(check.passed))


def _short(value: Any) -> str:
    text, note = cut(_as_text(value, indent=None), _MAX_VALUE)
    return f"{visible(text)} … {note}" if note else visible(text)


def _fields(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    shown = [(printable(str(name)), _short(value)) for name, value in list(values.items())[:_MAX_ITEMS]]
    if len(values) > _MAX_ITEMS:
        shown.append(("…", f"{len(values) - _MAX_ITEMS:,} more, left out here"))
    return tuple(shown)


def _unfolded(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The values, and in place of the mapping of that name what it has."""
    inner = values.get(name)
    if not isinstance(inner, Mapping):
        return dict(values)
    return {key: value for key, value in values.items() if key != name} | {str(k): inner[k] for k in inner}


def _as_line(value: Any) -> str:
    return printable(_as_text(value, indent=None))


def _as_text(value: Any, indent: int | None = 1) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False, indent=indent, default=str)
