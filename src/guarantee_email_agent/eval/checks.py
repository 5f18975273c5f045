"""All checks of a scenario: what was expected of the agent against what the mocks captured.

Each check yields a `FailedCheck` for every miss, and nothing where all is as expected.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from guarantee_email_agent.email.normalize import has_phrase, normalize_phrase
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.eval.tool_mocks import has_arguments
from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.reporting.terminal import pluralize
from guarantee_email_agent.utils.text import truncate

if TYPE_CHECKING:
    from guarantee_email_agent.config.settings import Mode
    from guarantee_email_agent.eval.models import ExpectedCall, ForbiddenCall
    from guarantee_email_agent.judging.verdict import Verdict

_MAX_CHARACTERS: Final = 200
_MAX_CALLS: Final = 10
_WRITES: Final = ("mail.send_reply", "mail.save_draft", "ticketing.create_ticket", "ticketing.add_note")
_WRITES_OF_MODE: Final = {"answer": _WRITES, "drafts": ("mail.save_draft",), "observe": ()}
_ABSENT: Final = object()
_EXPECTED: Final = "\n  expected: "
_ACTUAL: Final = "\n  actual:   "


class FailedCheck(NamedTuple):
    """A check that failed, and why; `str` gives the text that people read.

    expected, actual: in their written form; None where there is nothing to compare.
    """

    check: str
    reason: str
    expected: str | None = None
    actual: str | None = None

    def __str__(self) -> str:
        text = f"{self.check}: {self.reason}"
        return text if self.expected is None else f"{text}{_EXPECTED}{self.expected}{_ACTUAL}{self.actual}"

    @classmethod
    def parse(cls, text: str) -> FailedCheck:
        """The check that such a text is of."""
        first, _, values = text.partition(_EXPECTED)
        expected, has_both, actual = values.rpartition(_ACTUAL)
        check, _, reason = (first if has_both else text).partition(": ")
        return cls(check, reason, expected, actual) if has_both else cls(check, reason)


# What a scenario file expects -----------------------------------------------------------------------------------------


def check_happened(
    check: str, expected: bool, actual: Mapping[str, Any], too_little: str, too_much: str
) -> Iterator[FailedCheck]:
    """`email_sent`, `ticket_created` and `note_added`; what went wrong where too little or too much happened."""
    value = actual.get(check, _ABSENT)
    if value is not expected:
        reason = "nothing was reported" if value is _ABSENT else too_little if expected else too_much
        yield FailedCheck(check, reason, format_value(expected), format_value(value))


def check_draft(expected: bool | None, actual: Mapping[str, Any]) -> Iterator[FailedCheck]:
    """`draft_stored`, where the scenario says what it expects."""
    if expected is not None:
        yield from check_happened("draft_stored", expected, actual, "no draft was stored", "a draft was stored")


def check_note(expected: bool | None, actual: Mapping[str, Any]) -> Iterator[FailedCheck]:
    """`note_added`, where the scenario says what it expects."""
    if expected is not None:
        yield from check_happened("note_added", expected, actual, "no note was added", "a note was added")


def check_hand_over(expected: str | None, actual: Mapping[str, Any]) -> Iterator[FailedCheck]:
    """`hand_over_reason`, where the scenario names one: it must be among the reasons."""
    reasons = actual.get("hand_over_reasons", ())
    if expected is not None and expected not in reasons:
        reason = "handed over for another reason" if reasons else "it was not handed over"
        yield FailedCheck("hand_over_reason", reason, format_value(expected), format_value(", ".join(reasons)))


def check_body_contains(phrases: Sequence[str], body: object) -> Iterator[FailedCheck]:
    for phrase in phrases:
        if not isinstance(body, str) or not has_phrase(phrase, body):
            actual = format_value(" ".join(body.split()) if isinstance(body, str) else body)
            yield FailedCheck("response_body_contains", f"missing phrase {phrase!r}", format_value(phrase), actual)


def check_body_excludes(phrases: Sequence[str], body: object) -> Iterator[FailedCheck]:
    if phrases and isinstance(body, str):
        for phrase in phrases:
            if (span := find_phrase(phrase, body)) is not None:
                excerpt = format_value(_excerpt(body, span[0]))
                yield FailedCheck("response_body_excludes", f"found phrase {phrase!r}", f"no {phrase!r}", excerpt)


def check_reply_language(expected: str | None, actual: Mapping[str, Any]) -> Iterator[FailedCheck]:
    """`reply_language`, where the scenario names one. What was sent is read, not what the agent says of it."""
    language = actual.get("reply_language")
    if expected is not None and language != expected:
        reason = "no one language is clear" if language is None else "written in another language"
        yield FailedCheck("reply_language", reason, format_value(expected), format_value(language))


def check_ticket_fields(expected: Mapping[str, str], actual: object) -> Iterator[FailedCheck]:
    fields = actual if isinstance(actual, Mapping) else {}
    for name, value in expected.items():
        found = fields.get(name)
        if found is None:
            yield FailedCheck("ticket_fields", f"missing field {name!r}", format_value(value), "(no such field)")
        elif normalize_phrase(str(found)) != normalize_phrase(str(value)):
            yield FailedCheck("ticket_fields", f"wrong value of {name!r}", format_value(value), format_value(found))


def check_scenario_used(expected: str | None, actual: Mapping[str, Any]) -> Iterator[FailedCheck]:
    """An agent that used no instruction reports None, for which a scenario file says `none`. expected: None for any."""
    if expected is None:
        return
    used = actual.get("scenario_used", _ABSENT)
    if ("none" if used is None else used) != expected:
        reason = "nothing was reported" if used is _ABSENT else "another instruction was used"
        if used is None:
            reason = "no instruction was used"
        yield FailedCheck("scenario_instruction_used", reason, format_value(expected), format_value(used))


def check_calls(expected: Sequence[ExpectedCall], actual: Mapping[str, Any], *, ordered: bool) -> Iterator[FailedCheck]:
    """Each call that is expected is among those that were made, as often as the scenario says and in its order."""
    if not expected:
        return
    made = actual.get("calls", ())
    complete = True
    for call in expected:
        times = sum(_fits(call, other) for other in made)
        if times == call.times or (call.times is None and times):
            continue
        complete = False
        name = f"{call.server}.{call.tool}"
        reason = f"{name} was called {pluralize(times, 'time')}" if times else f"{name} was not called"
        if times == 0 and any((other["server"], other["tool"]) == (call.server, call.tool) for other in made):
            reason += " with these arguments"
        yield FailedCheck("calls", reason, _format_expected(call), _format_calls(made, call))
    if ordered and complete and not _in_order(expected, made):
        wanted = ", ".join(map(_format_expected, expected))
        yield FailedCheck("calls", "made in another order", wanted, _format_calls(made))


def check_never_called(forbidden: Sequence[ForbiddenCall], actual: Mapping[str, Any]) -> Iterator[FailedCheck]:
    """On the safe side: another spelling of a text, such as other capitals, makes no other call."""
    for call in forbidden:
        made = [other for other in actual.get("calls", ()) if _fits(call, other, _folded)]
        if made:
            name = f"{made[0]['server']}.{made[0]['tool']}"
            yield FailedCheck(
                "never_called", f"{name} was called", f"never {_format_expected(call)}", _format_calls(made)
            )


def _fits(wanted: ExpectedCall | ForbiddenCall, call: Mapping[str, Any], *read: Callable[[object], object]) -> bool:
    return (
        call["server"] == wanted.server
        and wanted.tool in (None, call["tool"])
        and has_arguments(call["arguments"], wanted.arguments, *read)
    )


def _folded(value: object) -> object:
    """A value with each text in it as phrases are compared."""
    if isinstance(value, str):
        return normalize_phrase(value)
    if isinstance(value, Mapping):
        return {name: _folded(item) for name, item in value.items()}
    return [_folded(item) for item in value] if isinstance(value, list | tuple) else value


def _in_order(expected: Sequence[ExpectedCall], made: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the calls stand among those that were made, one after the other; what stands between them is free."""
    rest = iter(made)
    wanted = (call for call in expected for _ in range(1 if call.times is None else call.times))
    return all(any(_fits(call, other) for other in rest) for call in wanted)


def _format_expected(call: ExpectedCall | ForbiddenCall) -> str:
    times = getattr(call, "times", None)
    often = "" if times is None else f", {pluralize(times, 'time')}"
    return f"{call.server}.{call.tool or '*'}{_format_arguments(call.arguments)}{often}"


def _format_calls(made: Sequence[Mapping[str, Any]], nearest: ExpectedCall | None = None) -> str:
    """What was called instead: the calls of the same tool with their arguments, else all by their names."""
    same = made
    if nearest is not None:
        same = [call for call in made if (call["server"], call["tool"]) == (nearest.server, nearest.tool)]
    if same:
        texts = [f"{call['server']}.{call['tool']}{_format_arguments(call['arguments'])}" for call in same]
    else:
        texts = [f"{call['server']}.{call['tool']}" for call in made]
    more = f" and {len(texts) - _MAX_CALLS} more" if len(texts) > _MAX_CALLS else ""
    return ", ".join(texts[:_MAX_CALLS]) + more if texts else "(no call)"


def _format_arguments(arguments: Mapping[str, object]) -> str:
    return f"({', '.join(f'{name}={truncate(repr(value), 60)}' for name, value in arguments.items())})"


def check_processing_time(limit_ms: int, actual_ms: object) -> Iterator[FailedCheck]:
    if not isinstance(actual_ms, (int, float)) or actual_ms > limit_ms:
        yield FailedCheck("processing_time_ms", "took too long", f"at most {limit_ms}", format_value(actual_ms))


# What holds for every scenario ----------------------------------------------------------------------------------------


def check_recipients(sender: str | None, recipients: Sequence[str]) -> Iterator[FailedCheck]:
    """`email_sent: true` means exactly one mail, to the sender of the input. sender: the bare address; None for any."""
    if len(recipients) > 1:
        yield FailedCheck("email_sent", f"{len(recipients)} mails were sent", "1", str(len(recipients)))
    yield from _check_addresses("email_sent", "a mail went to somebody else", sender, recipients)


def check_draft_recipients(sender: str | None, recipients: Sequence[str]) -> Iterator[FailedCheck]:
    """The same of `draft_stored: true`."""
    if len(recipients) > 1:
        yield FailedCheck("draft_stored", f"{len(recipients)} drafts were stored", "1", str(len(recipients)))
    yield from _check_addresses("draft_stored", "a draft is for somebody else", sender, recipients)


def _check_addresses(check: str, reason: str, sender: str | None, recipients: Sequence[str]) -> Iterator[FailedCheck]:
    for recipient in recipients:
        if sender is not None and recipient.casefold() != sender.casefold():
            yield FailedCheck(check, reason, repr(sender), repr(recipient))


def check_mode(mode: Mode | None, calls: Sequence[Mapping[str, Any]]) -> Iterator[FailedCheck]:
    """Calls by which an agent writes what it must not in the scenario's own mode. calls: each `server`, `tool`."""
    for call in calls:
        name = f"{call['server']}.{call['tool']}"
        if name in _WRITES and name not in _WRITES_OF_MODE[mode or "answer"]:
            yield FailedCheck("mode", f"{name} was called in mode {mode}")


def check_ticket_count(tickets: int) -> Iterator[FailedCheck]:
    if tickets > 1:
        yield FailedCheck("ticket_created", f"{tickets} tickets were created", "1", str(tickets))


def check_notes(ticket_id: str | None, noted: Sequence[str]) -> Iterator[FailedCheck]:
    """`note_added: true` means exactly one note, on the conversation's ticket. noted: the ticket of each note."""
    if len(noted) > 1:
        yield FailedCheck("note_added", f"{len(noted)} notes were added", "1", str(len(noted)))
    for other in noted:
        if other != ticket_id:
            yield FailedCheck("note_added", "a note went to another ticket", format_value(ticket_id), repr(other))


def check_previous_reply(scenario: str, known: Sequence[str]) -> Iterator[FailedCheck]:
    """Where no instruction has the name of `previous_reply.scenario`: the agent would not know what it asked for.

    known: the names of the instructions; `proved` is what the ledger has where an agent was stopped while it sent.
    """
    if scenario not in known and scenario != "proved":
        reason = f"no instruction is called {scenario!r}{suggestion(scenario, known)}"
        yield FailedCheck("previous_reply", reason)


def check_known_calls(unknown: Sequence[str]) -> Iterator[FailedCheck]:
    """Calls that no mock knows. unknown: what is wrong with each."""
    for problem in unknown:
        yield FailedCheck("calls", problem)


def check_agent_report(report: ProcessingResult, actual: Mapping[str, Any]) -> Iterator[FailedCheck]:
    """Where the agent's own report differs from what the mocks captured."""
    reports = {
        "email_sent": report.email_sent,
        "draft_stored": report.drafted,
        "ticket_created": report.ticket_created,
    }
    for name, reported in reports.items():
        if reported != actual[name]:
            reason = f"the agent reports another {name}"
            yield FailedCheck("agent_report", reason, str(actual[name]), str(reported))
    if report.response_body != actual["response_body"] and actual["response_body"] is not None:
        yield FailedCheck("agent_report", "the agent reports another reply than the one that was sent or stored")


def check_completed(report: ProcessingResult, others_failed: bool) -> Iterator[FailedCheck]:
    """Where the agent stopped, if that is not what the scenario expects; others_failed: whether another check failed.

    No scenario can ask for a crash or for a model that fails, so these are failures even where no reply is expected.
    """
    crashed = report.error_code == "processing_unexpected"
    if report.failed_step and (others_failed or crashed or lacks_model(report)):
        reason = f"stopped in step {report.failed_step}: {report.error_message}"
        yield FailedCheck("crash" if crashed else "agent", reason)


def lacks_model(report: ProcessingResult) -> bool:
    """Whether the agent stopped since its language model failed."""
    return (report.error_code or "").startswith("llm_")


def check_verdict(test: str, verdict: Verdict) -> Iterator[FailedCheck]:
    """The verdict of the scenario's own judge. test: the name of its file."""
    if verdict.verdict == "failed":
        yield FailedCheck("test", f"{test} says no: {verdict.feedback}")
    elif verdict.verdict == "error":
        yield FailedCheck("test", f"{test} {verdict.error}")


# How values are compared and written ----------------------------------------------------------------------------------


def format_value(value: object) -> str:
    """A value as a failure shows it: text in quotes, cut to about 200 characters."""
    if value is _ABSENT:
        return "(nothing reported)"
    if not isinstance(value, str):
        return truncate(repr(value), _MAX_CHARACTERS)
    return repr(value if len(value) <= _MAX_CHARACTERS else f"{value[:_MAX_CHARACTERS].rstrip()} …")


def find_phrase(phrase: str, body: str) -> tuple[int, int] | None:
    """Where a phrase stands in a reply, as a slice of the reply's own letters; None where it does not."""
    if not has_phrase(phrase, body):
        return None
    end = bisect_left(range(len(body)), True, key=lambda end: has_phrase(phrase, body[:end]))
    start = bisect_left(range(end + 1), True, key=lambda start: not has_phrase(phrase, body[start:end])) - 1
    return start, end


def _excerpt(body: str, at: int) -> str:
    """The part of a reply around the character at `at`, on one line and in its own letters."""
    start = max(0, at - _MAX_CHARACTERS // 2) if len(body) > _MAX_CHARACTERS else 0
    text = " ".join(body[start:].split())
    return f"… {text}" if start else text
