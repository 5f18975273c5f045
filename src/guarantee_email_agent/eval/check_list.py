"""Every check of one result, passed ones too, as they are kept: what was expected, and what came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from guarantee_email_agent.email.normalize import normalize_phrase
from guarantee_email_agent.eval.checks import (
    FailedCheck,
    check_body_contains,
    check_body_excludes,
    check_calls,
    check_draft,
    check_hand_over,
    check_happened,
    check_never_called,
    check_note,
    check_reply_language,
    check_scenario_used,
    check_ticket_fields,
    format_value,
)
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase

_AROUND: Final = 30


class _Check(NamedTuple):
    """What a scenario expects in one point, and the misses of it."""

    name: str
    expected: str
    actual: str | None
    misses: Iterator[FailedCheck]


def list_checks(case: EvalTestCase, result: EvalResult) -> list[dict[str, Any]]:
    """Each `name`, `passed`, `expected`, `actual`, and `reason` where it failed, in the order of the scenario file.

    The time that a result took is not among them, unless it was too long: it has its own place, and without it equal
    results have equal checks.
    """
    failed = [FailedCheck.parse(failure) for failure in result.failures]
    rows: list[dict[str, Any]] = []
    for check in _expected(case, result.actual_output):
        misses = list(check.misses)
        if not misses:
            rows.append(_row(check.name, passed=True, expected=check.expected, actual=check.actual))
        for miss in misses:  # one that is no failure was not judged, as of an agent that is not ours
            if miss in failed:
                failed.remove(miss)
                rows.append(_failed_row(miss))
    rows += map(_failed_row, failed)
    return rows


def _failed_row(check: FailedCheck) -> dict[str, Any]:
    return _row(check.check, passed=False, expected=check.expected, actual=check.actual) | {"reason": check.reason}


def _row(name: str, *, passed: bool, expected: str | None, actual: str | None) -> dict[str, Any]:
    return {"name": name, "passed": passed, "expected": expected, "actual": actual}


def _expected(case: EvalTestCase, actual: Mapping[str, Any]) -> Iterator[_Check]:
    wanted, body = case.expected_output, actual.get("response_body")
    yield _happened("email_sent", wanted.email_sent, actual, "no mail was sent", "a mail was sent")
    reply = " ".join(body.split()) if isinstance(body, str) else ""
    folded = normalize_phrase(reply)
    for phrase in wanted.response_body_contains:
        excerpt = _excerpt(reply, folded, phrase)
        misses = check_body_contains((phrase,), body)
        yield _Check("response_body_contains", format_value(phrase), excerpt, misses)
    for phrase in wanted.response_body_excludes:
        misses = check_body_excludes((phrase,), body)
        yield _Check("response_body_excludes", f"no {phrase!r}", "it is not in the reply", misses)
    if wanted.reply_language is not None:
        yield _compared("reply_language", wanted.reply_language, actual, check_reply_language)
    yield _happened("ticket_created", wanted.ticket_created, actual, "no ticket was created", "a ticket was created")
    fields = actual.get("ticket_fields") or {}
    for name, value in wanted.ticket_fields.items():
        found = f"{name}: {format_value(fields.get(name))}"
        misses = check_ticket_fields({name: value}, fields)
        yield _Check("ticket_fields", f"{name}: {format_value(value)}", found, misses)
    if wanted.draft_stored is not None:
        misses = check_draft(wanted.draft_stored, actual)
        yield _Check("draft_stored", str(wanted.draft_stored), str(actual.get("draft_stored")), misses)
    if wanted.note_added is not None:
        misses = check_note(wanted.note_added, actual)
        yield _Check("note_added", str(wanted.note_added), str(actual.get("note_added")), misses)
    if wanted.hand_over_reason is not None:
        reasons = ", ".join(actual.get("hand_over_reasons", ()))
        misses = check_hand_over(wanted.hand_over_reason, actual)
        yield _Check("hand_over_reason", format_value(wanted.hand_over_reason), format_value(reasons), misses)
    if wanted.scenario_instruction_used is not None:
        used = wanted.scenario_instruction_used
        misses = check_scenario_used(used, actual)
        yield _Check("scenario_instruction_used", format_value(used), format_value(actual.get("scenario_used")), misses)
    yield from _calls(case, actual)


def _happened(name: str, wanted: bool, actual: Mapping[str, Any], too_little: str, too_much: str) -> _Check:
    misses = check_happened(name, wanted, actual, too_little, too_much)
    return _Check(name, str(wanted), str(actual.get(name)), misses)


def _compared(name: str, wanted: str, actual: Mapping[str, Any], check: Any) -> _Check:
    return _Check(name, format_value(wanted), format_value(actual.get(name)), check(wanted, actual))


def _calls(case: EvalTestCase, actual: Mapping[str, Any]) -> Iterator[_Check]:
    wanted = case.expected_output
    for call in wanted.calls:
        misses = check_calls((call,), actual, ordered=False)
        yield _Check("calls", _call_text(call.server, call.tool, call.arguments), "it was called", misses)
    if wanted.ordered and len(wanted.calls) > 1:
        misses = (miss for miss in check_calls(wanted.calls, actual, ordered=True) if "order" in miss.reason)
        yield _Check("calls", "in this order", "in this order", misses)
    for forbidden in wanted.never_called:
        misses = check_never_called((forbidden,), actual)
        name = _call_text(forbidden.server, forbidden.tool or "*", forbidden.arguments)
        yield _Check("never_called", f"never {name}", "it was not called", misses)


def _call_text(server: str, tool: str, arguments: Mapping[str, object]) -> str:
    return f"{server}.{tool}" + (f" with {format_value(dict(arguments))}" if arguments else "")


def _excerpt(reply: str, folded: str, phrase: str) -> str | None:
    """The phrase as it stands in the reply, with a few words around it; None where it does not."""
    at = folded.find(normalize_phrase(phrase).strip())
    if at < 0:
        return None
    text: Sequence[str] = reply if len(reply) == len(folded) else folded  # folding makes ss of ß
    start, end = max(0, at - _AROUND), at + len(phrase) + _AROUND
    return f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"
