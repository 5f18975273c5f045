"""One stored result with everything that happened: for people, and for machines.

What stands in mails, replies and judgements was written by others: it reaches the terminal without control characters
and cut to a length that can be read. The JSON form has all of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final, NamedTuple

from guarantee_email_agent.reporting.reading import reading_fields
from guarantee_email_agent.reporting.terminal import Terminal, pluralize
from guarantee_email_agent.reporting.transcript import answer_of, said_by_agent
from guarantee_email_agent.store.records import Check
from guarantee_email_agent.store.run_reader import RunStore
from guarantee_email_agent.store.stored_records import StoredResult, StoredRun, Transcript
from guarantee_email_agent.utils.text import printable, truncate

SCHEMA_VERSION: Final = 1
_MAX_TEXT: Final = 20_000
_MAX_VALUE: Final = 500
_MAX_ARGUMENT: Final = 160
_MAX_MESSAGES: Final = 50
_INDENT: Final = "    "


class _Section(NamedTuple):
    title: str
    lines: list[str]


ReadRecord = Callable[[Transcript], Transcript]
"""Adds what stands in a record beside the store, as `kept_record.with_record` does."""


def print_result(
    store: RunStore, run: StoredRun, results: Sequence[StoredResult], terminal: Terminal, read_record: ReadRecord
) -> None:
    """Every repetition of one case; one that is just like the one before is said to be."""
    before: tuple[object, ...] | None = None
    for result in results:
        transcript, checks = read_record(store.transcript(result)), store.checks(result)
        _print_title(result, terminal)
        same = (transcript, result.verdict)
        if same == before:
            terminal.line(f"{_INDENT}the same as the one before")
            continue
        before = same
        for section in _sections(result, transcript, checks, terminal):
            if section.lines:
                terminal.line(f"{section.title}:")
                for line in section.lines:
                    terminal.line(f"{_INDENT}{line}".rstrip())
    if len(results) > 1:
        passed = sum(each.verdict == "passed" for each in results)
        terminal.line(f"{passed} of {pluralize(len(results), 'run')} passed")
    if results[0].repetition == 1 and run.outcome is None:
        terminal.line("The run is not at its end")
    terminal.flush()


def json_result(store: RunStore, result: StoredResult, read_record: ReadRecord) -> dict[str, Any]:
    """One repetition as JSON holds it; durations in milliseconds."""
    transcript = read_record(store.transcript(result))
    source = transcript.source
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": result.run_id,
        "name": result.name,
        "category": result.category,
        "language": result.language,
        "description": result.description,
        "repetition": result.repetition,
        "verdict": result.verdict,
        "duration_ms": result.duration_ms,
        "step_ms": None if result.step_ms is None else list(result.step_ms),
        "usage": result.usage._asdict(),
        "failed_checks": [each._asdict() for each in store.checks(result)],
        "source": None if source is None else source.decode(errors="replace"),
        "request": transcript.request,
        "response": transcript.response,
        "trace": transcript.trace,
        "judgement": transcript.judgement,
    }


def _print_title(result: StoredResult, terminal: Terminal) -> None:
    sign = "✓" if result.verdict == "passed" else "✗"
    described = f": {printable(truncate(result.description, 200))}" if result.description else ""
    number = f" (run {result.repetition})" if result.repetition > 1 else ""
    verdict = "" if result.verdict == "passed" else f" - {result.verdict.upper()}"
    terminal.outcome(f"{sign} {printable(result.name)}{number}{described}{verdict}")


def _sections(
    result: StoredResult, transcript: Transcript, checks: Sequence[Check], terminal: Terminal
) -> Iterator[_Section]:
    mail, response, trace = (_mapping(part) for part in (transcript.request, transcript.response, transcript.trace))
    judgement = _mapping(transcript.judgement)
    yield _Section("Record", list(_record_lines(trace)))
    yield _Section("Task", list(_plain_lines(transcript.request)))
    yield _Section("Mail", list(_mail_lines(mail)))
    reading = reading_fields(_mapping(trace.get("read")), mail, response)
    yield _Section("Read", [f"{name}: {value}" for name, value in reading])
    yield _Section("Model", list(_conversation_lines(trace.get("conversation"))))
    yield _Section("Calls", list(_call_lines(trace.get("execution_trace"), response, result.step_ms)))
    for title, text in said_by_agent(trace):
        yield _Section(title, [printable(line) for line in text.rstrip().split("\n")])
    yield _Section("Answer", list(_plain_lines(transcript.response)))
    yield _Section("Reply", list(_reply_lines(response)))
    yield _Section("Ticket", [_named(name, value) for name, value in _mapping(response.get("ticket_fields")).items()])
    yield _Section("Stopped", list(_stop_lines(response)))
    yield _Section("Checks", list(_check_lines(judgement.get("checks"), checks, terminal)))
    yield _Section("Judge", list(_judge_lines(judgement)))
    yield _Section("Took", [_cost_line(result)])


def _record_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    """Where the record of a task lies, or why it is not shown."""
    if "problem" in trace:
        yield printable(str(trace["problem"]))
    elif "file" in (record := _mapping(trace.get("record"))):
        number = f", {record['number']}" if record.get("number") else ""
        yield printable(f"{record['file']}{number}")


def _plain_lines(part: object) -> Iterator[str]:
    """A task's instruction or an agent's answer, which may be anything; a mail and what came of it are mappings."""
    if part is not None and not isinstance(part, Mapping):
        yield from _text_lines(part if isinstance(part, str) else json.dumps(part, ensure_ascii=False, default=str))


def _mail_lines(mail: Mapping[str, Any]) -> Iterator[str]:
    for name in ("from", "to", "received", "subject"):
        if name in mail:
            yield _named(name, mail[name])
    yield from (_named(name, value) for name, value in _mapping(mail.get("headers")).items())
    if mail.get("attachments"):
        yield _named("attachments, by name only", mail["attachments"])
    if mail.get("body"):
        yield ""
        yield from _text_lines(mail["body"])


def _conversation_lines(conversation: object) -> Iterator[str]:
    """What was said to a model, and what it answered; not kept of the interpreter."""
    messages = conversation if isinstance(conversation, list) else []
    for message in messages[:_MAX_MESSAGES]:
        message = _mapping(message)
        yield _named(str(message.get("role", "?")), message.get("content") or "")
        for call in message.get("tool_calls") or ():
            function = _mapping(_mapping(call).get("function"))
            yield f"    {printable(str(function.get('name')))}({_value(function.get('arguments', ''))})"
    if len(messages) > _MAX_MESSAGES:
        yield f"… and {len(messages) - _MAX_MESSAGES} more"


def _call_lines(trace: object, response: Mapping[str, Any], step_ms: Sequence[float] | None) -> Iterator[str]:
    """The calls with their answers as they were traced, and what each took, else those that the mocks captured."""
    steps = [_mapping(step) for step in trace] if isinstance(trace, list) else []
    for step, took_ms in zip(steps[:_MAX_MESSAGES], chain(step_ms or (), repeat(None)), strict=False):
        action = dict(_mapping(step.get("action")))
        name = printable(str(action.pop("action_type", "?")))
        took = "" if took_ms is None else f" {_milliseconds(took_ms)}"
        yield f"{name}({', '.join(f'{printable(key)}={_value(value)}' for key, value in action.items())}){took}"
        if (answer := answer_of(step)) is not None:
            yield f"  → {_value(answer)}"
    if not steps:
        for call in map(_mapping, (response.get("calls") or ())[:_MAX_MESSAGES]):
            arguments = _mapping(call.get("arguments"))
            shown = ", ".join(f"{printable(key)}={_value(value)}" for key, value in arguments.items())
            yield f"{printable(str(call.get('server')))}.{printable(str(call.get('tool')))}({shown})"
    if (count := max(len(steps), 0 if steps else len(response.get("calls") or ()))) > _MAX_MESSAGES:
        yield f"… and {count - _MAX_MESSAGES} more; --json has all"


def _milliseconds(duration_ms: float) -> str:
    if duration_ms < 1:  # as of a mock
        return f"{duration_ms:.2f} ms"
    return f"{duration_ms:.1f} ms" if duration_ms < 10 else f"{duration_ms:,.0f} ms"


def _reply_lines(response: Mapping[str, Any]) -> Iterator[str]:
    if "response_body" not in response:
        return
    if response["response_body"] is None:
        yield "none"
        return
    to = [*(response.get("recipients") or ()), *(response.get("draft_recipients") or ())]
    yield _named("draft to" if response.get("draft_stored") else "to", to)
    yield _named("subject", response.get("response_subject") or "")
    yield ""
    yield from _text_lines(response["response_body"])


def _stop_lines(response: Mapping[str, Any]) -> Iterator[str]:
    if response.get("failed_step") or response.get("error"):
        step = f"in step {response['failed_step']}: " if response.get("failed_step") else ""
        yield f"{printable(step)}{_value(response.get('error') or '', quoted=False)}"


def _check_lines(listed: object, failed: Sequence[Check], terminal: Terminal) -> Iterator[str]:
    """Every check, passed ones too; of a run that kept no list, those that failed."""
    rows: list[Mapping[str, Any]]
    if isinstance(listed, list):
        rows = [_mapping(each) for each in listed]
    else:
        rows = [{**each._asdict(), "passed": False} for each in failed]
    for row in rows:
        name = printable(str(row.get("name")))
        if row.get("passed"):
            yield terminal.green(f"✓ {name}: {_short(row.get('expected'))}")
        else:
            yield terminal.red(f"✗ {name}: {_short(row.get('reason'))}")
        if not row.get("passed") and row.get("expected") is not None:
            yield f"    expected: {_short(row['expected'])}"
        if row.get("actual") not in (None, row.get("expected")):
            yield f"    actual:   {_short(row['actual'])}"


def _judge_lines(judgement: Mapping[str, Any]) -> Iterator[str]:
    """What a test.py said and printed."""
    if "verdict" not in judgement:
        return
    yield _named("verdict", judgement["verdict"])
    for name in ("feedback", "error", "output"):
        if judgement.get(name):
            lines = list(_text_lines(judgement[name]))
            yield f"{name}: {lines[0]}"
            yield from (f"  {line}" for line in lines[1:])
    for name, value in _mapping(judgement.get("details")).items():
        yield _named(name, value)


def _cost_line(result: StoredResult) -> str:
    usage = result.usage
    line = f"{result.duration_ms:.0f} ms"
    if not usage.calls:
        return line
    sent = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    price = "cost not known" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    answers = f"{pluralize(usage.calls, 'answer')} of the model after {usage.latency_ms} ms"
    return f"{line}; {answers}, {sent:,} tokens sent, {usage.output_tokens:,} received, {price}"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _named(name: str, value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return f"{printable(name)}: {printable(truncate(text, _MAX_VALUE))}"


def _value(value: object, *, quoted: bool = True) -> str:
    if isinstance(value, str):
        text = printable(truncate(" ".join(value[:_MAX_VALUE].split()), _MAX_ARGUMENT))
        return f"'{text}'" if quoted and not value.startswith(("{", "[")) else text
    return printable(truncate(json.dumps(value, ensure_ascii=False, default=str), _MAX_ARGUMENT))


def _short(value: object) -> str:
    return printable(truncate(str(value), _MAX_VALUE))


def _text_lines(text: object) -> Iterator[str]:
    whole = str(text)
    yield from (printable(line) for line in whole[:_MAX_TEXT].rstrip().split("\n"))
    if len(whole) > _MAX_TEXT:
        yield f"… and {len(whole) - _MAX_TEXT:,} more characters; --json has all"
