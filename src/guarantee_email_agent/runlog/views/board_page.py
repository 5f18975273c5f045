"""A run on two printed pages for those who decide: what the agent does with mail, how rightly, on what that rests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from guarantee_email_agent.runlog.records import CaseResult
from guarantee_email_agent.runlog.statistics import format_percentage
from guarantee_email_agent.runlog.suite_statistics import Handling, handling_of
from guarantee_email_agent.runlog.views.html_report import (
    content_security_policy,
    template_environment,
    template_source,
)
from guarantee_email_agent.runlog.views.report import Report

_WORDS: Final[Mapping[Handling, str]] = {
    "answered": "Answers on its own",
    "asked_back": "Asks for what is missing, or says that an answer follows",
    "to_a_person": "Hands over to a person",
    "not_answered": "Refuses to answer: sent by machines, or asked for by nobody",
    "stopped": "Stops at a fault of a service, and leaves the mail where it is",
}
_SAMPLES: Final = 3
_MAX_KINDS: Final = 8
_MAX_CHARS: Final = 800
_MAX_LINES: Final = 24


def board_policy() -> str:
    """The page's own, for whoever serves it."""
    return content_security_policy(template_source(template_environment(), "report.css"), "")


def as_board(report: Report) -> bytes:
    """Of a run of `eval`. It shows approved replies to mails of the suite, and no other mail."""
    environment = template_environment()
    # Of an agent that is not ours nobody knows why it answers.
    counts: Mapping[str, int] = report.summary.get("selective", {})
    text = environment.get_template("board.html.jinja").render(
        report=report,
        harmful=report.summary["totals"]["harmful"],
        bound=report.summary["lower_bound_95"],
        counts=counts,
        coverage=_share(counts["answered"], counts["mails"]) if counts else "",
        risk=_share(counts["answered"] - counts["right"], counts["answered"]) if counts else "",
        handled=list(_handled(report)) if counts else [],
        samples=[(each, _cut(each.response["response_body"])) for each in _samples(report) if each.response],
        style=template_source(environment, "report.css"),
        policy=board_policy(),
    )
    return text.encode(errors="backslashreplace")


def _handled(report: Report) -> Iterator[tuple[str, int, str]]:
    """What is done with mails, with how many, and of which kinds."""
    kinds: dict[Handling, Counter[str]] = {handling: Counter() for handling in _WORDS}
    for case in report.cases:
        if case.shown.reading is not None:
            actual = case.shown.response or {}
            handling = handling_of(actual)
            reasons = actual.get("hand_over_reasons") or ["a draft"]
            kinds[handling][reasons[0] if handling == "to_a_person" else actual.get("scenario_used") or ""] += 1
    for handling, words in _WORDS.items():
        found = kinds[handling]
        named = [f"{kind.replace('-', ' ')} {count}" for kind, count in found.most_common(_MAX_KINDS) if kind]
        more = ["…"] if len(found) > _MAX_KINDS else []
        yield words, found.total(), ", ".join([*named, *more]) if handling in ("answered", "to_a_person") else ""


def _samples(report: Report) -> list[CaseResult]:
    """Replies that passed every check, to mails of the commonest kinds, in the language of most of the suite."""
    languages: Counter[str] = Counter()
    for group in report.groups:
        languages[group.language] += group.total
    wanted = [language for language, _ in languages.most_common(1)]
    found: dict[str, CaseResult] = {}
    counts: Counter[str] = Counter()
    for case in report.cases_that(passed=True):
        actual = case.shown.response or {}
        if case.shown.language in wanted and handling_of(actual) == "answered" and _is_text(case.shown, actual):
            kind = str(actual.get("scenario_used"))
            counts[kind] += 1
            found.setdefault(kind, case.shown)
    return [found[kind] for kind, _ in counts.most_common(_SAMPLES)]


def _cut(reply: str) -> str:
    """So that three replies fit on a printed page."""
    shown = "\n".join(reply[:_MAX_CHARS].split("\n")[:_MAX_LINES])
    return shown if len(shown) == len(reply) else f"{shown.rstrip()} …"


def _is_text(result: CaseResult, actual: Mapping[str, Any]) -> bool:
    return isinstance(result.request, Mapping) and isinstance(actual.get("response_body"), str)


def _share(count: int, total: int) -> str:
    return f"{count:,} of {total:,}" + (f" ({format_percentage(count, total, 100)})" if total else "")
