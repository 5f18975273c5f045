"""A run as one HTML page that needs nothing else: no network, no other file, and no script to be read."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from guarantee_email_agent.runlog.records import Case, CaseResult, Run
from guarantee_email_agent.runlog.statistics import format_percentage
from guarantee_email_agent.runlog.suite_statistics import Handling, SharedCauses, handling_of
from guarantee_email_agent.runlog.views.report import SIGNS, WORDS, Report, relative_to
from guarantee_email_agent.runlog.views.transcript import Section, cut, sections
from guarantee_email_agent.utils.text import printable, time_taken, visible

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_DETAILS_BYTES: Final = 10 << 20
"""Beyond it cases are shown without their transcript, so that browsers and mail programs take the page."""
MAX_CASES_BYTES: Final = 18 << 20
"""Beyond it cases are left out. Failed ones come first."""

_LANGUAGE_TAG: Final = re.compile("[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_MAX_OPEN: Final = 20
_MAX_CAUSES: Final = 20
_MAX_CASES_OF_CAUSE: Final = 20
_MAX_UNFOLDED: Final = 2_000
"""Characters of a text that are shown at once, so that a long mail does not hide what was done with it."""
WIDTH: Final = 1000
HEIGHT: Final = 200
_STEP: Final = 10


@dataclass(slots=True)
class _RenderedCases:
    """failed, passed: markup. anchors: the number of each case of the page by its name.

    without_details, left_out: how many cases of the run.
    """

    failed: list[str]
    passed: list[str]
    anchors: dict[str, int]
    without_details: int = 0
    left_out: int = 0


def as_html(report: Report) -> bytes:
    """The page in UTF-8. Where a run is too large for one page, it says what it leaves out."""
    environment = template_environment()
    style, script = (template_source(environment, name) for name in ("report.css", "filter.js"))
    cases = _render_cases(environment, report)
    page = environment.get_template("report.html.jinja").render(
        report=report,
        chart=HistoryChart.of(report.history, float(report.threshold) if report.threshold else None),
        groups=report.groups,
        causes=[
            (cause, names[:_MAX_CASES_OF_CAUSE], len(names))
            for cause, names in report.causes[:_MAX_CAUSES]
            if len(names) > 1
        ],
        cases=cases,
        style=style,
        script=script,
        policy=content_security_policy(style, script),
    )
    return page.encode(errors="backslashreplace")


@cache  # to compile them takes a third of a second
def template_environment(*packages: str) -> Environment:
    """The templates of every page of ours, and those of further packages. Whatever is put into them is escaped."""
    from jinja2 import (
        ChoiceLoader,
        Environment,
        PackageLoader,
        StrictUndefined,
    )  # only for those who ask for this format
    from markupsafe import Markup

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(each) for each in ("guarantee_email_agent.runlog.views", *packages)]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {"printable": _one_line, "visible": _lines, "fold": _fold, "asset": Markup}
    environment.filters |= {"relative": relative_to, "duration": time_taken, "moment": _moment}
    environment.tests |= {"language_tag": lambda text: _LANGUAGE_TAG.fullmatch(text) is not None}
    environment.globals |= {"words": WORDS, "signs": SIGNS, "sections": _sections_of}
    return environment


def content_security_policy(style: str, script: str) -> str:
    """Nothing is fetched, nothing runs but these two texts, and nothing is sent anywhere."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _render_cases(environment: Environment, report: Report) -> _RenderedCases:
    macros = environment.get_template("case.html.jinja").module
    whole: Callable[..., str] = getattr(macros, "case")  # noqa: B009 - a macro, of which types know nothing
    title: Callable[..., str] = getattr(macros, "title")  # noqa: B009
    done = _RenderedCases([], [], {})
    size, has_room, causes = 0, True, SharedCauses()
    for number, case in enumerate(report.failed_first(), 1):
        markup = ""
        if has_room:
            # What fails for causes that stand open already is folded.
            is_open = not case.passed and not causes.add(case) and number <= _MAX_OPEN
            markup = whole(case, number, is_open=is_open)
            has_room = size + _size(markup) <= MAX_DETAILS_BYTES
        if not has_room:
            markup = title(case, number)
            if size + _size(markup) > MAX_CASES_BYTES:
                done.left_out = report.totals.total - number + 1
                break
            done.without_details += 1
        size += _size(markup)
        done.anchors[case.name] = number
        (done.passed if case.passed else done.failed).append(markup)
    return done


def template_source(environment: Environment, name: str) -> str:
    """The text of a style or script as it will stand between its tags, so that its digest is that of the page's."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _size(markup: str) -> int:
    return len(markup) if markup.isascii() else len(markup.encode(errors="backslashreplace"))


def _sections_of(case: Case) -> Iterator[Section]:
    # What a mock took means nothing, and an agent that is not ours is worth timing.
    return sections(case.shown if case.shown.reading is None else case.shown._replace(step_ms=()))


def _moment(iso: str) -> str:
    """2026-01-18T10:00:00Z → 2026-01-18 10:00:00 UTC."""
    return iso.replace("T", " ").replace("Z", " UTC")


def _one_line(text: str) -> str:
    return printable(cut(" ".join(text.split()), 2_000)[0])


def _lines(text: str) -> str:
    shown, note = cut(text)
    return f"{visible(shown)}\n[{note}]" if note else visible(shown)


def _fold(text: str) -> tuple[str, str]:
    """What is shown of a text at once, whole lines or words where it has some, and the rest."""
    if len(text) <= _MAX_UNFOLDED * 5 // 4:
        return text, ""
    head = text[:_MAX_UNFOLDED]
    at = next((at for sign in "\n " if (at := head.rfind(sign)) > _MAX_UNFOLDED // 2), _MAX_UNFOLDED - 1) + 1
    return text[:at].rstrip("\n"), text[at:]


class Point(NamedTuple):
    """A run. rate: percent. x, y: in the drawing."""

    run: Run
    rate: float
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class HistoryChart:
    """What a template draws. line: path data. floor: the percentage at the lower edge; the upper is 100."""

    points: tuple[Point, ...]
    line: str
    threshold_y: float | None
    floor: int

    @classmethod
    def of(cls, history: Sequence[Run], threshold: float | None) -> HistoryChart | None:
        """history: the oldest first. threshold: percent. None where there is nothing to compare."""
        runs = [run for run in history if run.total]
        if len(runs) < 2:
            return None
        rates = [100 * run.passed / run.total for run in runs]
        lowest = min(rates if threshold is None else [*rates, threshold])
        floor = max(0, min(90, math.floor(lowest / _STEP) * _STEP))

        def y(percent: float) -> float:
            return round(HEIGHT * (100 - max(percent, floor)) / (100 - floor), 1)

        points = []
        for index, (run, rate) in enumerate(zip(runs, rates, strict=True)):
            points.append(Point(run, rate, round(WIDTH * (index + 0.5) / len(runs), 1), y(rate)))
        return cls(
            tuple(points),
            f"M{'L'.join(f'{point.x} {point.y}' for point in points)}",
            None if threshold is None else y(threshold),
            floor,
        )

    @property
    def text(self) -> str:
        """The drawing in words."""
        first, last = self.points[0], self.points[-1]
        rates = [point.rate for point in self.points]
        return (
            f"Pass rates of {len(self.points)} runs, from {_percent(first.rate)} on {first.run.started[:10]} to "
            f"{_percent(last.rate)} on {last.run.started[:10]}; lowest {_percent(min(rates))}, "
            f"highest {_percent(max(rates))}."
        )


def _percent(rate: float) -> str:
    """Rounded down, so that only 100 % reads as such."""
    return f"{math.floor(rate * 10) / 10:g} %"


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
        has_texts = isinstance(case.shown.request, Mapping) and isinstance(actual.get("response_body"), str)
        if case.shown.language in wanted and handling_of(actual) == "answered" and has_texts:
            kind = str(actual.get("scenario_used"))
            counts[kind] += 1
            found.setdefault(kind, case.shown)
    return [found[kind] for kind, _ in counts.most_common(_SAMPLES)]


def _cut(reply: str) -> str:
    """So that three replies fit on a printed page."""
    shown = "\n".join(reply[:_MAX_CHARS].split("\n")[:_MAX_LINES])
    return shown if len(shown) == len(reply) else f"{shown.rstrip()} …"


def _share(count: int, total: int) -> str:
    return f"{count:,} of {total:,}" + (f" ({format_percentage(count, total, 100)})" if total else "")
