"""What repetitions say, how a suite did by category and by language, and what it shows. No rate without its count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from guarantee_email_agent.runlog.distinct_mails import DistinctMails
from guarantee_email_agent.runlog.records import Case
from guarantee_email_agent.runlog.selective import Selectivity
from guarantee_email_agent.runlog.statistics import Threshold, format_percentage
from guarantee_email_agent.runlog.suite_manifest import DEVELOPMENT, SuiteManifest
from guarantee_email_agent.utils.terminal import pluralize
from guarantee_email_agent.utils.text import printable

_MAX_FLAKY: Final = 20
_MAX_RUNS: Final = 3
_MAX_GROUPS: Final = 40
_NO_LANGUAGE: Final = "(not known)"


class SuiteStatistics:
    """Counts results as they come; of scenarios it keeps the names of flaky ones alone."""

    def __init__(self, *, deterministic: bool) -> None:
        """deterministic: whether the same mail always gets the same answer, as offline and in a replay."""
        self._deterministic = deterministic
        self.selectivity = Selectivity()
        self._repeat = 1
        self._runs = [0, 0]
        self._scenarios = [0, 0]
        self._taken_over: Counter[str] = Counter()
        self.must_failed: list[str] = []
        self._flaky: list[tuple[str, int, int]] = []
        self._groups: dict[str, dict[str, list[int]]] = {"category": {}, "language": {}}

    def add(self, case: Case) -> None:
        self.selectivity.add(case)
        shown, passed, count = case.shown, sum(run.passed for run in case.runs), len(case.runs)
        if shown.taken_over:
            self._taken_over[shown.taken_over] += 1
        if shown.must and not case.passed:
            self.must_failed.append(case.name)
        self._repeat = max(self._repeat, count)
        _count(self._runs, passed, count)
        _count(self._scenarios, case.passed, 1)
        if 0 < passed < count:
            self._flaky.append((case.name, passed, count))
        for kind, name in (("category", shown.category), ("language", shown.language or _NO_LANGUAGE)):
            _count(self._groups[kind].setdefault(name, [0, 0]), case.passed, 1)

    def repetition_lines(self, threshold: Threshold) -> Iterator[str]:
        """For people; none where nothing ran several times."""
        if facts := dict(self.repetition_facts(threshold)):
            passed = f"scenarios that passed every time (pass^{self._repeat}): {facts['Passed every time']}"
            yield f"Runs passed: {facts['Runs passed']}; {passed}"
            if "Flaky" in facts:
                yield f"Flaky: {facts['Flaky']}"
        yield from self.repetition_notes()

    def repetition_facts(self, threshold: Threshold) -> Iterator[tuple[str, str]]:
        """What `repetition_lines` says, by names; none where nothing ran several times."""
        if self._repeat == 1:
            return
        yield "Runs passed", _rate(self._runs, threshold)
        yield "Passed every time", _rate(self._scenarios, threshold)
        if self._flaky:
            named = self._flaky[:_MAX_FLAKY]
            shown = ", ".join(f"{printable(name)} ({passed} of {count})" for name, passed, count in named)
            more = f" and {len(self._flaky) - _MAX_FLAKY} more" if len(self._flaky) > _MAX_FLAKY else ""
            yield "Flaky", f"{len(self._flaky)}: {shown}{more}"

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
            more = f" and {len(runs) - _MAX_RUNS} more" if len(runs) > _MAX_RUNS else ""
            count = f"{self._taken_over.total()} of {pluralize(self._scenarios[1], 'scenario')}"
            yield "Taken over", f"{count}, from {', '.join(runs[:_MAX_RUNS])}{more}"

    def must_facts(self) -> Iterator[tuple[str, str]]:
        """Which scenarios failed of those that close the gate alone."""
        if names := list(map(printable, self.must_failed)):
            more = f" and {len(names) - _MAX_FLAKY} more" if len(names) > _MAX_FLAKY else ""
            yield "Must failed", f"{', '.join(names[:_MAX_FLAKY])}{more}"

    def conclusion(self, manifest: SuiteManifest = DEVELOPMENT, mails: DistinctMails | None = None) -> str:
        """What the suite shows, and what it does not, in a sentence or two. mails: of a whole run, where it was one."""
        passed, total = self._scenarios
        if not total:
            return "No scenario ran."
        counts = f"{passed} of {pluralize(total, 'scenario')} {'passes' if total == 1 else 'pass'}."
        if manifest.kind == "held_out" or (manifest.kind == "sealed" and mails is not None):
            known = self.selectivity.as_dict() if mails is not None and mails.total == total else None
            of_mails = (passed, total) if mails is None else (mails.passed, mails.total)
            return f"{counts} {manifest.conclusion(*of_mails, known, self.selectivity.harmful)}"
        if manifest.kind == "sealed":
            return f"{counts} Only a whole run of a sealed suite says how often new mail goes wrong."
        if not self.selectivity.is_of_our_agent:
            return f"{counts} If the agent was built on this suite, it says nothing of how often new mail goes wrong."
        if passed < total:
            return f"{counts} The agent was built on this suite, so this says nothing of how often new mail goes wrong."
        shown = "The agent was built on this suite, so this shows that nothing it guards has broken"
        return f"{counts} {shown}; it says nothing of how often new mail goes wrong."

    def group_lines(self, threshold: Threshold) -> Iterator[str]:
        """For people: a table by category and one by language, each where there are several."""
        for kind, groups in self._groups.items():
            if len(groups) < 2:
                continue
            width = max(map(len, groups))
            yield f"By {kind}:"
            for name, counts in sorted(groups.items())[:_MAX_GROUPS]:
                yield f"    {printable(name):{width}}  {_rate(counts, threshold)}"
            if len(groups) > _MAX_GROUPS:
                yield f"    … and {len(groups) - _MAX_GROUPS} more"

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        selective = self.selectivity.as_dict()
        return {
            "must_failed": self.must_failed,
            **({"selective": selective} if selective else {}),
            **({"taken_over": dict(self._taken_over)} if self._taken_over else {}),
            "repeat": {
                "repeat": self._repeat,
                "runs": _as_dict(self._runs),
                "every_time": _as_dict(self._scenarios),
                "flaky": [{"scenario_id": name, "passed": passed, "runs": runs} for name, passed, runs in self._flaky],
                "deterministic": self._deterministic,
            },
            "groups": {
                kind: {name: _as_dict(counts) for name, counts in sorted(groups.items())}
                for kind, groups in self._groups.items()
            },
        }


def _count(counts: list[int], passed: int, total: int) -> None:
    counts[0] += passed
    counts[1] += total


def _as_dict(counts: list[int]) -> Mapping[str, int]:
    return {"passed": counts[0], "total": counts[1]}


def _rate(counts: list[int], threshold: Threshold) -> str:
    return f"{counts[0]}/{counts[1]} ({format_percentage(counts[0], counts[1], threshold)})"
