"""What the cases of a suite come to, counted as they come: totals, gate, repetitions, groups, causes, distinct mails.

No rate without its count.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from guarantee_email_agent.runlog.records import Case, GroupCounts, Verdict
from guarantee_email_agent.runlog.statistics import (
    format_percentage,
    mean_interval,
    meets_threshold,
    threshold_fraction,
    threshold_text,
)
from guarantee_email_agent.runlog.suite_manifest import DEVELOPMENT, DistinctMails, SuiteManifest
from guarantee_email_agent.utils.terminal import pluralize
from guarantee_email_agent.utils.text import and_more, printable

Handling = Literal["answered", "to_a_person", "asked_back", "not_answered", "stopped"]

_ASKING: Final = ("missing-info", "graceful-degradation")
"""In runs that did not keep `asks_back`."""
_LEFT: Final[Mapping[Handling, str]] = {
    "to_a_person": "to a person",
    "asked_back": "asked back",
    "not_answered": "not answered",
    "stopped": "stopped at a fault",
}
_THRESHOLDS: Final = range(0, 101, 10)


class _Mail(NamedTuple):
    """What became of a mail. doubt: None where nobody measured it, so that no caution hands it over."""

    handling: Handling
    is_sent: bool
    is_right: bool
    is_harmful: bool
    doubt: int | None


class Selectivity:
    """Counts cases as they come. `harmful`: how many did harm, of any agent; None where it is not known of each.

    The rest is of our own agent alone: of others nobody knows why they answer.
    """

    def __init__(self) -> None:
        self.harmful: int | None = 0
        self._mails: Counter[_Mail] = Counter()

    def add(self, case: Case) -> None:
        is_harmful = bool(case.harm)
        if self.harmful is not None:
            self.harmful = None if any(run.harm is None for run in case.runs) else self.harmful + is_harmful
        shown = case.shown
        if shown.reading is not None:
            actual = shown.response or {}
            sent = bool(actual.get("email_sent"))
            self._mails[_Mail(handling_of(actual), sent, case.passed, is_harmful, actual.get("doubt"))] += 1

    def lines(self) -> Iterator[str]:
        """For people: short lines."""
        facts = dict(self.facts())
        if (answered := facts.pop("Answered", None)) is not None:
            yield f"Answered: {answered}"
        harmful = facts.pop("Harmful", None)
        if facts:
            yield "; ".join(f"{name}: {count}" for name, count in facts.items()).capitalize()
        if harmful is not None:
            yield f"Harmful: {harmful}"

    def facts(self) -> Iterator[tuple[str, str]]:
        """The same by names; what did not happen is left out."""
        counts = self.as_dict()
        if counts:
            right = f", {counts['right']} of them rightly" if counts["answered"] else ""
            yield "Answered", f"{counts['answered']} of {pluralize(counts['mails'], 'mail')}{right}"
            yield from (
                (name.capitalize(), str(counts[handling])) for handling, name in _LEFT.items() if counts[handling]
            )
        if self.harmful != 0:
            yield "Harmful", "not known" if self.harmful is None else str(self.harmful)

    def as_dict(self) -> dict[str, int]:
        """For machines; empty where the agent is not ours."""
        if not self._mails:
            return {}
        handled: Counter[Handling] = Counter()
        for mail, count in self._mails.items():
            handled[mail.handling] += count
        right = sum(count for mail, count in self._mails.items() if mail.handling == "answered" and mail.is_right)
        counts = {"mails": handled.total(), "answered": handled["answered"], "right": right}
        return counts | {str(handling): handled[handling] for handling in _LEFT}

    def curve_lines(self) -> Iterator[str]:
        """A table of what each caution comes to, by a run at none: at `c`, a doubt above `100 - c` is for a person."""
        total = self._mails.total()
        yield f"{'Caution':8}{'Answered':22}{'Right':22}Harmful answers"
        for caution in _THRESHOLDS:
            kept = {mail: count for mail, count in self._mails.items() if (mail.doubt or 0) <= 100 - caution}
            answered = sum(count for mail, count in kept.items() if mail.handling == "answered")
            right = sum(count for mail, count in kept.items() if mail.handling == "answered" and mail.is_right)
            harmful = sum(count for mail, count in kept.items() if mail.is_sent and mail.is_harmful)
            yield f"{caution:<8}{_share(answered, total):22}{_share(right, answered):22}{harmful}"
        if all(mail.doubt is None for mail in self._mails):
            yield "No doubt was measured, so that every caution comes to the same."


def handling_of(actual: Mapping[str, Any]) -> Handling:
    """By what the mocks captured, then by what the agent says. A draft is for a person to send."""
    if handling := actual.get("handling"):  # all that is kept of a sealed suite's mail
        known: Handling = handling
        return known
    if actual.get("email_sent"):
        asks = actual.get("asks_back", actual.get("scenario_used") in _ASKING)
        return "asked_back" if asks else "answered"
    if actual.get("hand_over_reasons") or actual.get("draft_stored"):
        return "to_a_person"
    return "stopped" if actual.get("failed_step") else "not_answered"


def _share(count: int, total: int) -> str:
    return f"{count} of {total}" + (f" ({format_percentage(count, total, 100)})" if total else "")


GateOutcome = Literal["passed", "failed", "inconclusive"]
"""inconclusive: the rate is reached, and only a proof that was asked for is missing."""


@dataclass(slots=True)
class Totals:
    """Counts of verdicts; `failed` includes `invalid`."""

    passed: int = 0
    failed: int = 0
    error: int = 0
    invalid: int = 0

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Totals:
        totals = cls()
        for verdict in verdicts:
            totals.add(verdict)
        return totals

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.error

    def add(self, verdict: Verdict) -> None:
        if verdict == "passed":
            self.passed += 1
        elif verdict == "error":
            self.error += 1
        else:
            self.failed += 1
            self.invalid += verdict == "invalid"


class GateDecision(NamedTuple):
    """why: in a few words, such as `<99% threshold`."""

    gate: GateOutcome
    why: str

    @property
    def passes(self) -> bool:
        return self.gate == "passed"


FINGERPRINT_BYTES: Final = 16
_MAX_FLAKY: Final = 20
_MAX_RUNS: Final = 3
_MAX_GROUPS: Final = 40
_NO_LANGUAGE: Final = "(not known)"
_MANY: Final = 3
_MAX_NAMES: Final = 8
_MAX_CAUSES: Final = 1_000
_ALPHA: Final = 0.05


class SuiteStatistics:
    """Of scenarios it keeps the names of flaky ones alone."""

    def __init__(self, *, deterministic: bool, manifest: SuiteManifest = DEVELOPMENT, is_whole: bool = True) -> None:
        """deterministic: whether the same mail always gets the same answer, as offline and in a replay.

        manifest: of the suite; is_whole: whether all of it was asked for, without which nothing is proven.
        """
        self._deterministic, self._manifest, self._is_whole = deterministic, manifest, is_whole
        self.totals, self.groups, self.mails = Totals(), GroupCounter(), MailCounter()
        self.selectivity, self.rubric = Selectivity(), RubricCounter()
        self.needing_review = 0
        self._repeat = 1
        self._runs = [0, 0]
        self._taken_over: Counter[str] = Counter()
        self.must_failed: list[str] = []
        self._flaky: list[tuple[str, int, int]] = []

    def emptied(self) -> SuiteStatistics:
        """New ones of the same suite."""
        return SuiteStatistics(deterministic=self._deterministic, manifest=self._manifest, is_whole=self._is_whole)

    def add(self, case: Case) -> None:
        self.totals.add(case.verdict)
        self.groups.add(case)
        self.mails.add(case)
        self.selectivity.add(case)
        self.rubric.add(case)
        shown, passed, count = case.shown, case.passed_runs, len(case.runs)
        self.needing_review += shown.needs_review
        if shown.taken_over:
            self._taken_over[shown.taken_over] += 1
        if shown.must and not case.passed:
            self.must_failed.append(case.name)
        self._repeat = max(self._repeat, count)
        self._runs = [self._runs[0] + passed, self._runs[1] + count]
        if 0 < passed < count:
            self._flaky.append((case.name, passed, count))

    def proven(self, planned: int | None = None) -> float | None:
        """The rate that is proven, as `SuiteManifest.lower_bound` has it. planned: as `decide_gate` has it."""
        mails = self._whole_mails(planned)
        return None if mails is None else self._manifest.lower_bound(mails.passed, mails.total)

    def decide_gate(
        self,
        threshold: float,
        *,
        require_proof: bool,
        fail_fast: bool = False,
        planned: int | None = None,
        regressions: Sequence[str] = (),
    ) -> GateDecision:
        """Whether the pass rate reaches `threshold` percent, and where a proof is required, whether it is proven to.

        fail_fast: whether the first failure fails the run, whatever the rate. planned: how many scenarios a whole run
        has; as many as there are if None. regressions: what is worse than in the baseline and must not be.
        """
        totals, wanted, proven = self.totals, threshold_text(threshold), self.proven(planned)
        failed_at_once = fail_fast and totals.passed < totals.total
        if failed_at_once and planned is not None and totals.total < planned:
            ran = f"{totals.total} of {pluralize(planned, 'scenario')} ran"
            return GateDecision("failed", f"stopped at the first failure, {ran}")
        below = [] if meets_threshold(totals.passed, totals.total, threshold) else [f"<{wanted}% threshold"]
        if self.must_failed:
            below.append(f"{pluralize(len(self.must_failed), 'scenario')} that must pass failed")
        if below:
            return GateDecision("failed", "; ".join(below))
        if regressions:
            return GateDecision("failed", f"{pluralize(len(regressions), 'regression')} since the baseline")
        if failed_at_once:
            return GateDecision("failed", "stopped at a failure")
        if require_proof and (proven is None or proven < threshold_fraction(threshold) * 100):
            return GateDecision("inconclusive", self._manifest.why_unproven(proven))
        return GateDecision("passed", f"≥{wanted}% threshold")

    def _whole_mails(self, planned: int | None) -> DistinctMails | None:
        """Those of a whole run, where it was one."""
        is_whole = self._is_whole and (planned is None or self.totals.total >= planned)
        return self.mails.count() if is_whole else None

    def repetition_lines(self, threshold: float) -> Iterator[str]:
        """For people; none where nothing ran several times."""
        if facts := dict(self.repetition_facts(threshold)):
            passed = f"scenarios that passed every time (pass^{self._repeat}): {facts['Passed every time']}"
            yield f"Runs passed: {facts['Runs passed']}; {passed}"
            if "Flaky" in facts:
                yield f"Flaky: {facts['Flaky']}"
        yield from self.repetition_notes()

    def repetition_facts(self, threshold: float) -> Iterator[tuple[str, str]]:
        """What `repetition_lines` says, by names; none where nothing ran several times."""
        if self._repeat == 1:
            return
        yield "Runs passed", _rate(self._runs[0], self._runs[1], threshold)
        yield "Passed every time", _rate(self.totals.passed, self.totals.total, threshold)
        if self._flaky:
            named = [f"{printable(name)} ({passed} of {count})" for name, passed, count in self._flaky]
            yield "Flaky", f"{len(named)}: {and_more(named, _MAX_FLAKY)}"

    def repetition_notes(self) -> Iterator[str]:
        """What repeats do not show, in sentences; none where nothing ran several times."""
        if self._repeat == 1:
            return
        yield "Repeats are no independent scenarios: the pass rate counts each once."
        if self._deterministic:
            yield "Without a live model the same mail gets the same answer: these repeats say nothing of reliability."

    def taken_over_facts(self) -> Iterator[tuple[str, str]]:
        """How many scenarios did not run, since an earlier run had their results; none where all ran."""
        if self._taken_over:
            runs = [printable(run) for run, _ in self._taken_over.most_common()]
            count = f"{self._taken_over.total()} of {pluralize(self.totals.total, 'scenario')}"
            yield "Taken over", f"{count}, from {and_more(runs, _MAX_RUNS)}"

    def must_facts(self) -> Iterator[tuple[str, str]]:
        """Which scenarios failed of those that close the gate alone."""
        if self.must_failed:
            yield "Must failed", and_more(list(map(printable, self.must_failed)), _MAX_FLAKY)

    def conclusion(self, planned: int | None = None) -> str:
        """What the suite shows, and what it does not, in a sentence or two. planned: as `decide_gate` has it."""
        passed, total, manifest = self.totals.passed, self.totals.total, self._manifest
        if not total:
            return "No scenario ran."
        counts = f"{passed} of {pluralize(total, 'scenario')} {'passes' if total == 1 else 'pass'}."
        mails = self._whole_mails(planned)
        if manifest.kind == "held_out" or (manifest.kind == "sealed" and mails is not None):
            known = self.selectivity.as_dict()  # without what crashed
            known = known if mails is not None and mails.total == total == known.get("mails") else {}
            of_mails = (passed, total) if mails is None else (mails.passed, mails.total)
            return f"{counts} {manifest.conclusion(*of_mails, known, self.selectivity.harmful)}"
        if manifest.kind == "sealed":
            return f"{counts} Only a whole run of a sealed suite says how often new mail goes wrong."
        if not self.selectivity.as_dict():
            return f"{counts} If the agent was built on this suite, it says nothing of new cases."
        if passed < total:
            return f"{counts} The agent was built on this suite, so this says nothing of how often new mail goes wrong."
        shown = "The agent was built on this suite, so this shows that nothing it guards has broken"
        return f"{counts} {shown}; it says nothing of how often new mail goes wrong."

    def group_lines(self, threshold: float) -> Iterator[str]:
        """For people: a table by category and one by language, each where there are several."""
        for kind, groups in self._by_kind().items():
            if len(groups) < 2:
                continue
            width = max(map(len, groups))
            yield f"By {kind}:"
            for name, counts in list(groups.items())[:_MAX_GROUPS]:
                yield f"    {printable(name):{width}}  {_rate(*counts, threshold)}"
            if len(groups) > _MAX_GROUPS:
                yield f"    … and {len(groups) - _MAX_GROUPS} more"

    def _by_kind(self) -> dict[str, dict[str, tuple[int, int]]]:
        """How many passed of how many, by category and by language, in the order of their names."""
        found: dict[str, dict[str, tuple[int, int]]] = {"category": {}, "language": {}}
        for group in self.groups.rows():
            for kind, name in (("category", group.category), ("language", group.language or _NO_LANGUAGE)):
                passed, total = found[kind].get(name, (0, 0))
                found[kind][name] = passed + group.passed, total + group.total
        return {kind: dict(sorted(groups.items())) for kind, groups in found.items()}

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        selective = self.selectivity.as_dict()
        return {
            "must_failed": self.must_failed,
            **({"selective": selective} if selective else {}),
            **({"rubric": rubric} if (rubric := self.rubric.as_dict()) else {}),
            **({"taken_over": dict(self._taken_over)} if self._taken_over else {}),
            "repeat": {
                "repeat": self._repeat,
                "runs": _as_dict(*self._runs),
                "every_time": _as_dict(self.totals.passed, self.totals.total),
                "flaky": [{"scenario_id": name, "passed": passed, "runs": runs} for name, passed, runs in self._flaky],
                "deterministic": self._deterministic,
            },
            "groups": {
                kind: {name: _as_dict(*counts) for name, counts in groups.items()}
                for kind, groups in self._by_kind().items()
            },
        }


def _as_dict(passed: int, total: int) -> Mapping[str, int]:
    return {"passed": passed, "total": total}


def _rate(passed: int, total: int, threshold: float) -> str:
    return f"{passed}/{total} ({format_percentage(passed, total, threshold)})"


class GroupCounter:
    """Counts cases by category and language as they come."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], list[int]] = {}

    def add(self, case: Case) -> None:
        count = self._counts.setdefault((case.shown.category, case.shown.language), [0, 0])
        count[0] += case.passed
        count[1] += 1

    def rows(self) -> list[GroupCounts]:
        """In the order of their names."""
        return [GroupCounts(*key, *self._counts[key]) for key in sorted(self._counts)]


class ScoreCounter:
    """Averages the scores of judges, as cases come: of each task once, since its records are not independent."""

    def __init__(self) -> None:
        self._scores: dict[str, list[float]] = {}
        self._records: dict[str, int] = {}

    def add(self, case: Case) -> None:
        known = self._scores.setdefault(case.shown.name, [])
        known += (math.nan if run.score is None else run.score for run in case.runs)
        self._records[case.shown.name] = case.shown.of

    def as_dict(self) -> dict[str, Any] | None:
        """The mean with its 95 % interval, of `scored` of `total` tasks; None where nothing has a score."""
        whole = (scores for name, scores in self._scores.items() if len(scores) >= self._records[name])
        known = [score for scores in whole if not math.isnan(score := math.fsum(scores) / len(scores))]
        if not known:
            return None
        low, high = mean_interval(mean := math.fsum(known) / len(known), len(known), _ALPHA)
        rounded = {name: round(each, 4) for name, each in (("mean", mean), ("low", low), ("high", high))}
        return {**rounded, "scored": len(known), "total": len(self._scores)}

    def facts(self) -> Iterator[tuple[str, str]]:
        """For people; none where nothing has a score."""
        if (found := self.as_dict()) is not None:
            yield "Mean score", describe_score(found)


def describe_score(score: Mapping[str, Any]) -> str:
    """As `ScoreCounter.as_dict` has it, for people."""
    interval = f"95% interval {score['low']:.2f} to {score['high']:.2f}"
    return f"{score['mean']:.2f} ({interval}), of {score['scored']} of {pluralize(score['total'], 'task')}"


class RubricCounter:
    """Counts the answers to rubrics, as cases come."""

    def __init__(self) -> None:
        self._answers: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()

    def add(self, case: Case) -> None:
        for row in (row for run in case.runs for row in run.rubric):
            self._answers[row["answer"]] += 1
            self._answers["gates"] += row["gates"]
            self._reasons[row["reason"] if row["answer"] == "unknown" else ""] += 1

    def as_dict(self) -> dict[str, int]:
        """How many answers are of each kind, and how many gate; empty where nothing was to be asked."""
        counts = {name: self._answers[name] for name in ("pass", "fail", "unknown", "gates")}
        return counts if any(counts.values()) else {}

    def facts(self) -> Iterator[tuple[str, str]]:
        """For people; none where nothing was to be asked."""
        if counts := self.as_dict():
            gating = counts.pop("gates") or "none"
            why = next(iter(self._reasons)) if len(self._reasons) == 1 else ""
            said = ", ".join(f"{count} {name}" for name, count in counts.items())
            yield "Rubric", f"{said}; gating: {gating}{why and f'. {why[0].upper()}{why[1:]}'}"


class SharedCauses:
    """Counts the causes of cases that did not pass, as these come."""

    def __init__(self, *, summary: bool = False) -> None:
        """summary: keep no more than `lines` shows, so that memory does not grow with the run."""
        self._summary = summary
        self._cases: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, case: Case) -> bool:
        """Whether each of the case's causes was seen twice before, so that its details would say nothing new."""
        causes = dict.fromkeys(check.summary.partition("\n")[0] for check in case.failed_checks)
        is_new = False
        for cause in causes:
            count = self._counts.get(cause, 0)
            is_new = is_new or count < _MANY - 1
            if not count and self._summary and len(self._counts) >= _MAX_CAUSES:
                continue
            self._counts[cause] = count + 1
            if not self._summary or count < _MAX_NAMES:
                self._cases.setdefault(cause, []).append(case.name)
        return bool(causes) and not is_new

    def counts(self) -> list[tuple[str, Sequence[str]]]:
        """Causes with the names of their cases, the most frequent first."""
        return sorted(self._cases.items(), key=lambda item: -self._counts[item[0]])

    def lines(self) -> Iterator[str]:
        """For people: every cause that many scenarios share, with their names."""
        for cause, names in self.counts():
            if (count := self._counts[cause]) >= _MANY:
                yield f"Same cause in {count} scenarios: {cause}"
                yield f"    {and_more(names, _MAX_NAMES, count)}"


class MailCounter:
    """Counts distinct mails as cases come."""

    def __init__(self) -> None:
        self._passed: dict[bytes, bool] = {}
        self.told: DistinctMails | None = None  # by a run whose cases, as those of a sealed suite, do not tell it

    def add(self, case: Case) -> None:
        """A case whose mail nobody has looked at, such as a file that cannot be used, is a copy of none."""
        mail = case.shown.mail
        if mail is None:
            of_none = repr((case.shown.position, case.shown.file)).encode(errors="backslashreplace")
            mail = hashlib.blake2b(of_none, digest_size=FINGERPRINT_BYTES).digest()
        self._passed[mail] = case.passed and self._passed.get(mail, True)

    def count(self) -> DistinctMails:
        return self.told or DistinctMails(len(self._passed), sum(self._passed.values()))
