"""All checks of a scenario: what was expected of the agent against what the mocks captured.

Each yields a `Check` for every point that the scenario names, passed or not; what holds for every scenario yields one
only where it fails.
"""

from __future__ import annotations

import json
import re
import traceback
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.eval.call_checks import check_pattern, has_arguments
from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.files.validation import not_blank, number, setting
from guarantee_email_agent.instructions.template import TICKET_PLACEHOLDER
from guarantee_email_agent.runlog.records import Check
from guarantee_email_agent.utils.field_path import (
    MISSING,
    FieldPathError,
    json_or_missing,
    parse_field_path,
    value_at,
)
from guarantee_email_agent.utils.safe_regex import may_search
from guarantee_email_agent.utils.text import has_phrase, normalize_phrase, truncate

if TYPE_CHECKING:
    from guarantee_email_agent.config.settings import Mode
    from guarantee_email_agent.judging.verdict import Verdict
    from guarantee_email_agent.llm.usage import ModelUsage

_MAX_CHARACTERS: Final = 200
_AROUND: Final = 30
_WRITES: Final = ("mail.send_reply", "mail.save_draft", "ticketing.create_ticket", "ticketing.add_note")
_WRITES_OF_MODE: Final = {"answer": _WRITES, "drafts": ("mail.save_draft",), "observe": ()}
_HAPPENED: Final = {
    "email_sent": ("no mail was sent", "a mail was sent"),
    "ticket_created": ("no ticket was created", "a ticket was created"),
    "draft_stored": ("no draft was stored", "a draft was stored"),
    "note_added": ("no note was added", "a note was added"),
}
_RECEIVED: Final = {
    "email_sent": ("mails were sent", "a mail went to somebody else"),
    "draft_stored": ("drafts were stored", "a draft is for somebody else"),
}
_ABSENT: Final = object()


def check_phrases(values: Sequence[str]) -> str | None:
    """What is wrong with phrases of a file."""
    if any(value[:1] in ("“", "„", "«") and value[-1] in "”“»" for value in values):
        return "holds a phrase in typographic quotes, which would be part of it; write straight ones"
    return "holds an empty phrase; write the words, or remove it" if any(map(_is_unseen, values)) else None


def _is_unseen(phrase: str) -> bool:
    """Whether nothing of a phrase would be compared, so that every text has it."""
    if phrase.isascii() and phrase.isprintable():
        return not_blank(phrase) is not None
    return not normalize_phrase(phrase).strip()


def check_paths(values: Mapping[str, object]) -> str | None:
    """What is wrong with paths of a file."""
    for path in values:
        try:
            parse_field_path(path)
        except FieldPathError as error:
            return str(error)
    return None


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """What must hold for the agent's answer, the `task_result` of its record."""

    contains: tuple[str, ...] = setting((), "Phrases that it must hold, compared as those of a reply.", check_phrases)
    excludes: tuple[str, ...] = setting((), "Phrases that it must not hold.", check_phrases)
    equals: object = setting(None, "All of it: a text, without white space around it, or JSON.")
    json: Mapping[str, object] = setting(
        {}, 'Values in it by their paths, such as slots[0].start: "10:00".', check_paths
    )
    matches: str | None = setting(None, "A regular expression of Python's that is found in it.", check_pattern)


@dataclass(frozen=True, slots=True)
class ExpectedTable:
    """What must hold for a table of `input.world` once the agent is done."""

    has: tuple[Mapping[str, object], ...] = setting(
        (), "Rows that it must have, each entry one of its own; columns that are not named are free."
    )
    lacks: tuple[Mapping[str, object], ...] = setting((), "Rows that it must not have.")
    rows: int | None = number(None, "How many rows it must have.", minimum=0)


@dataclass(frozen=True, slots=True)
class AtMost:
    """What one run of a scenario may take. What is not known of it is over any limit."""

    calls: int | None = number(None, "Calls of tools, with those that were refused.", minimum=0)
    seconds: float | None = number(None, "Time of the agent, in seconds.", minimum=0, above=True)
    tokens: int | None = number(None, "Tokens of the language model, sent and received.", minimum=0)
    usd: float | None = number(None, "US dollars for the language model.", minimum=0)

    def limits(self) -> dict[str, float]:
        """Those that are set, by name."""
        return {name: limit for name in self.__slots__ if (limit := getattr(self, name)) is not None}


def run_checks(*checks: Iterator[Check]) -> list[Check]:
    """What they yield. A check that crashes has failed, and stops no other. checks: generators, not yet begun."""
    done: list[Check] = []
    for check in checks:
        try:
            done.extend(check)
        except Exception as error:  # noqa: BLE001 - whatever it makes of what a mock or a script gave it
            done.append(crash_of(error, getattr(check, "__name__", "a check")))
    return done


def crash_of(error: Exception, name: str | None = None) -> Check:
    """A crash as a failed check. name: of the function to blame; by default the one that raised."""
    frames = list(traceback.walk_tb(error.__traceback__))
    raised = name or (frames[-1][0].f_code.co_qualname if frames else "the scenario")
    reason = truncate(" ".join(str(error).split()), _MAX_CHARACTERS)
    return Check("crash", f"{raised} raised {type(error).__name__}{reason and f': {reason}'}")


# What a scenario file expects -----------------------------------------------------------------------------------------


def check_happened(check: str, expected: bool | None, actual: Mapping[str, Any]) -> Iterator[Check]:
    """`email_sent`, `ticket_created`, `draft_stored` and `note_added`. expected: None where that is not judged."""
    if expected is not None:
        value = actual.get(check, _ABSENT)
        too_little, too_much = _HAPPENED[check]
        reason = "nothing was reported" if value is _ABSENT else too_little if expected else too_much
        yield _compared(check, value is expected, reason, format_value(expected), format_value(value))


def check_hand_over(expected: str | None, actual: Mapping[str, Any]) -> Iterator[Check]:
    """`hand_over_reason`, where the scenario names one: it must be among the reasons."""
    if expected is not None:
        reasons = actual.get("hand_over_reasons", ())
        reason = "handed over for another reason" if reasons else "it was not handed over"
        found = format_value(", ".join(reasons))
        yield _compared("hand_over_reason", expected in reasons, reason, format_value(expected), found)


def check_body_contains(phrases: Sequence[str], body: object) -> Iterator[Check]:
    shown = " ".join(body.split()) if phrases and isinstance(body, str) else body
    for phrase in phrases:
        wanted = format_value(phrase)
        if isinstance(body, str) and has_phrase(phrase, body):
            found = _surroundings(str(shown), normalize_phrase(body).strip(), phrase)
            yield Check("response_body_contains", "", wanted, found, passed=True, phrase=phrase)
        else:
            reason = f"missing phrase {phrase!r}"
            yield Check("response_body_contains", reason, wanted, format_value(shown), phrase=phrase)


def check_body_excludes(phrases: Sequence[str], body: object) -> Iterator[Check]:
    for phrase in phrases:
        span = find_phrase(phrase, body) if isinstance(body, str) else None
        found = "it is not in the reply" if span is None else format_value(_excerpt(str(body), span[0]))
        reason = f"found phrase {phrase!r}"
        yield _compared("response_body_excludes", span is None, reason, f"no {phrase!r}", found, phrase)


def check_reply_language(expected: str | None, actual: Mapping[str, Any]) -> Iterator[Check]:
    """`reply_language`, where the scenario names one. What was sent is read, not what the agent says of it."""
    if expected is not None:
        language = actual.get("reply_language")
        reason = "no one language is clear" if language is None else "written in another language"
        yield _compared("reply_language", language == expected, reason, format_value(expected), format_value(language))


def check_reply_sentences(expected: Sequence[str], actual: Mapping[str, Any]) -> Iterator[Check]:
    """An agent that is not ours has no sentences with ids, so that nobody knows whether it said them."""
    said: Sequence[str] | None = actual.get("reply_sentences")
    if said is None and expected:
        reason = "only sentences of our own agent have ids; expect the words, with response_body_contains"
        yield Check("reply_sentences", reason, ", ".join(expected), "not known")
    for sentence in expected if said is not None else ():
        found = ", ".join(said or ()) or "(none)"
        yield _compared("reply_sentences", sentence in (said or ()), f"missing sentence {sentence!r}", sentence, found)


def check_ticket_fields(expected: Mapping[str, str], actual: object) -> Iterator[Check]:
    fields = actual if isinstance(actual, Mapping) else {}
    for name, value in expected.items():
        found, wanted = fields.get(name), format_value(value)
        if found is None:
            yield Check("ticket_fields", f"missing field {name!r}", wanted, "(no such field)")
        elif normalize_phrase(str(found)) != normalize_phrase(str(value)):
            yield Check("ticket_fields", f"wrong value of {name!r}", wanted, format_value(found))
        else:
            yield Check("ticket_fields", "", f"{name}: {wanted}", f"{name}: {format_value(found)}", passed=True)


def check_scenario_used(expected: str | None, actual: Mapping[str, Any]) -> Iterator[Check]:
    """An agent that used no instruction reports None, for which a scenario file says `none`. expected: None for any."""
    if expected is None:
        return
    used = actual.get("scenario_used", _ABSENT)
    reason = "nothing was reported" if used is _ABSENT else "another instruction was used"
    if used is None:
        reason = "no instruction was used"
    matches = ("none" if used is None else used) == expected
    yield _compared("scenario_instruction_used", matches, reason, format_value(expected), format_value(used))


def check_answer(expected: ExpectedAnswer | None, actual: Mapping[str, Any]) -> Iterator[Check]:
    """`answer`, where the scenario has it. An agent that gave none fulfils nothing, no exclusion either."""
    if expected is None:
        return
    given = actual.get("answer")
    text = given if isinstance(given, str) else "" if given is None else json.dumps(given, ensure_ascii=False)
    content = json_or_missing(text)
    found = "(no answer)" if given is None else format_value(text)

    def point(name: str, passed: bool, reason: str, wanted: str, actual: str = found) -> Check:
        is_given = given is not None
        return _compared(
            f"answer.{name}",
            passed and is_given,
            reason if is_given else 'the agent gave none: its last line, response or return value has no "task_result"',
            wanted,
            actual if is_given else found,
        )

    for phrase in expected.contains:
        yield point("contains", has_phrase(phrase, text), f"missing phrase {phrase!r}", format_value(phrase))
    for phrase in expected.excludes:
        yield point("excludes", not has_phrase(phrase, text), f"found phrase {phrase!r}", f"no {phrase!r}")
    if (whole := expected.equals) is not None:
        is_text = isinstance(whole, str) and isinstance(given, str)
        same = text.strip() == str(whole).strip() if is_text else _is_same_json(content, whole)
        yield point("equals", same, "another answer", format_value(whole))
    for path, wanted in expected.json.items():
        value = value_at(content, parse_field_path(path))
        there = "nothing is there" if value is MISSING else "another value is there"
        shown = "(nothing)" if value is MISSING else f"{path}: {format_value(value)}"
        wanted_text = f"{path}: {format_value(wanted)}"
        yield point("json", _is_same_json(value, wanted), f"{path}: {there}", wanted_text, shown)
    if expected.matches is not None:
        is_known = may_search(expected.matches, len(text))
        is_found = is_known and re.search(expected.matches, text) is not None
        why = "the pattern is not found" if is_known else "the answer is too long to look for this pattern; simplify it"
        yield point("matches", is_found, why, format_value(expected.matches))


def _is_same_json(value: object, wanted: object) -> bool:
    return value is not MISSING and has_arguments({"": value}, {"": wanted})


def check_at_most(at_most: AtMost, actual: Mapping[str, Any], used: ModelUsage | None) -> Iterator[Check]:
    """used: of the language model; None where that is not known."""
    taken = {
        "calls": len(actual["calls"]) + len(actual.get("other_calls", ())),
        "seconds": actual["processing_time_ms"] / 1000,
        "tokens": None if used is None or used.tokens.uncounted else used.tokens.total,
        "usd": None if used is None else used.cost_usd,
    }
    for name, limit in at_most.limits().items():
        amount = taken[name]
        passed = amount is not None and amount <= limit
        reason = "what it took is not known" if amount is None else "it took more"
        # No time in a check that passed, so that equal results have equal checks.
        found = "not known" if amount is None else "less" if passed and name == "seconds" else f"{amount:.10g}"
        yield _compared(f"at_most.{name}", passed, reason, f"at most {limit}", found)


def check_processing_time(limit_ms: int, actual_ms: object) -> Iterator[Check]:
    """Only a time that was too long: it has a place of its own, and without it equal results have equal checks."""
    if not isinstance(actual_ms, (int, float)) or actual_ms > limit_ms:
        yield Check("processing_time_ms", "took too long", f"at most {limit_ms}", format_value(actual_ms))


def reported_output(report: ProcessingResult) -> dict[str, Any]:
    """What our agent says came of a mail, as `EvalResult.actual_output` has it."""
    return {
        "email_sent": report.email_sent,
        "draft_stored": report.drafted,
        "response_body": report.response_body,
        "reply_language": report.reply_language,
        "ticket_created": report.ticket_created,
        "ticket_fields": report.ticket_fields,
        "processing_time_ms": report.processing_time_ms,
        **unobservable_output(report, report.response_body),
    }


def unobservable_output(report: ProcessingResult | None, body: str | None) -> dict[str, Any]:
    """What no mock can capture, so that our agent's word for it counts. report: None for an agent that is not ours.

    body: of the reply that was captured, in which each sentence has to stand.
    """
    measured: dict[str, Any] = {} if report is None or report.doubt is None else {"doubt": report.doubt}
    if report is not None:
        measured["asks_back"] = report.asks_back
        measured["reply_sentences"] = [
            sentence
            for sentence, words in report.reply_sentences.items()
            if body is not None and (words in body or all(map(body.__contains__, words.split(TICKET_PLACEHOLDER))))
        ]
    return {
        "scenario_used": report.scenario_used if report else None,
        "failed_step": report.failed_step if report else None,
        "error": report.error_message if report else None,
        "hand_over_reasons": list(report.hand_over_reasons) if report else [],
        **measured,
    }


# What holds for every scenario ----------------------------------------------------------------------------------------


def check_recipients(check: str, sender: str | None, recipients: Sequence[str]) -> Iterator[Check]:
    """`email_sent: true` means exactly one mail, to the sender of the input, and `draft_stored: true` one such draft.

    sender: the bare address; None for any.
    """
    many, reason = _RECEIVED[check]
    yield from check_single(check, many, len(recipients))
    for recipient in recipients:
        if sender is not None and recipient.casefold() != sender.casefold():
            yield Check(check, reason, repr(sender), repr(recipient))


def check_single(check: str, many: str, count: int) -> Iterator[Check]:
    if count > 1:
        yield Check(check, f"{count} {many}", "1", str(count))


def check_mode(mode: Mode | None, calls: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """Calls by which an agent writes what it must not in the scenario's own mode. calls: each `server`, `tool`."""
    for call in calls:
        name = f"{call['server']}.{call['tool']}"
        if name in _WRITES and name not in _WRITES_OF_MODE[mode or "answer"]:
            yield Check("mode", f"{name} was called in mode {mode}")


def check_notes(ticket_id: str | None, noted: Sequence[str]) -> Iterator[Check]:
    """`note_added: true` means exactly one note, on the conversation's ticket. noted: the ticket of each note."""
    yield from check_single("note_added", "notes were added", len(noted))
    for other in noted:
        if other != ticket_id:
            yield Check("note_added", "a note went to another ticket", format_value(ticket_id), repr(other))


def check_previous_reply(scenario: str, known: Sequence[str]) -> Iterator[Check]:
    """Where no instruction has the name of `previous_reply.scenario`: the agent would not know what it asked for.

    known: the names of the instructions; `proved` is what the ledger has where an agent was stopped while it sent.
    """
    if scenario not in known and scenario != "proved":
        reason = f"no instruction is called {scenario!r}{suggestion(scenario, known)}"
        yield Check("previous_reply", reason)


def check_agent_report(report: ProcessingResult, actual: Mapping[str, Any]) -> Iterator[Check]:
    """Where the agent's own report differs from what the mocks captured."""
    reports = {"email_sent": report.email_sent, "draft_stored": report.drafted, "ticket_created": report.ticket_created}
    for name, reported in reports.items():
        if reported != actual[name]:
            yield Check("agent_report", f"the agent reports another {name}", str(actual[name]), str(reported))
    if report.response_body != actual["response_body"] and actual["response_body"] is not None:
        yield Check("agent_report", "the agent reports another reply than the one that was sent or stored")


def check_completed(report: ProcessingResult, others_failed: bool) -> Iterator[Check]:
    """Where the agent stopped, if that is not what the scenario expects; others_failed: whether another check failed.

    No scenario can ask for a crash or for a model that fails, so these are failures even where no reply is expected.
    """
    crashed = report.error_code == "processing_unexpected"
    if report.failed_step and (others_failed or crashed or lacks_model(report)):
        reason = f"stopped in step {report.failed_step}: {report.error_message}"
        yield Check("crash" if crashed else "agent", reason)


def lacks_model(report: ProcessingResult) -> bool:
    """Whether the agent stopped since its language model failed."""
    return (report.error_code or "").startswith("llm_")


def check_verdict(test: str, verdict: Verdict) -> Iterator[Check]:
    """The verdict of the scenario's own judge. test: the name of its file."""
    if verdict.verdict == "failed":
        yield Check("test", f"{test} says no: {verdict.feedback}")
    elif verdict.verdict == "error":
        yield Check("test", f"{test} {verdict.error}")


# How values are compared and written ----------------------------------------------------------------------------------


def format_value(value: object) -> str:
    """A value as a failure shows it: text in quotes, cut to about 200 characters."""
    if isinstance(value, str):
        return repr(value if len(value) <= _MAX_CHARACTERS else f"{value[:_MAX_CHARACTERS].rstrip()} …")
    return "(nothing reported)" if value is _ABSENT else truncate(repr(value), _MAX_CHARACTERS)


def find_phrase(phrase: str, body: str) -> tuple[int, int] | None:
    """Where a phrase stands in a reply, as a slice of the reply's own letters; None where it does not."""
    if not has_phrase(phrase, body):
        return None
    end = bisect_left(range(len(body)), True, key=lambda end: has_phrase(phrase, body[:end]))
    start = bisect_left(range(end + 1), True, key=lambda start: not has_phrase(phrase, body[start:end])) - 1
    return start, end


def _compared(name: str, passed: bool, reason: str, expected: str, actual: str, phrase: str | None = None) -> Check:
    """reason: why it failed, if it did."""
    return Check(name, "" if passed else reason, expected, actual, passed, phrase)


def _surroundings(text: str, folded: str, phrase: str) -> str:
    """A phrase that a reply holds with a few words around it. text, folded: the reply on one line, and to compare."""
    wanted = normalize_phrase(phrase).strip()
    if len(text) != len(folded):  # folding makes ss of ß
        text = folded
    if (at := folded.find(wanted)) < 0:  # one that asks for marks of emphasis
        return truncate(text, _MAX_CHARACTERS)
    start, end = max(0, at - _AROUND), at + len(wanted) + _AROUND
    return f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"


def _excerpt(body: str, at: int) -> str:
    """The part of a reply around the character at `at`, on one line and in its own letters."""
    start = max(0, at - _MAX_CHARACTERS // 2) if len(body) > _MAX_CHARACTERS else 0
    text = " ".join(body[start:].split())
    return f"… {text}" if start else text
