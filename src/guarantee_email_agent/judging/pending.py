"""Verdicts that are still to be given: found and read here, judged here or elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypedDict

from guarantee_email_agent.config.task_allowance import TaskAllowance
from guarantee_email_agent.judging.grading import grade_task, validate_task
from guarantee_email_agent.judging.record import Record
from guarantee_email_agent.judging.record_files import RecordPlace
from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.judging.verdict import Graded, Verdict


class Terms(TypedDict):
    """What holds for every judge."""

    timeout_s: float | None
    allowed: TaskAllowance


class ToJudge(NamedTuple):
    """A record with its task; without a record it is the judge itself that is looked at."""

    task: Task
    record: Record | None

    def verdict(self, terms: Terms) -> Verdict:
        if self.record is None:
            return validate_task(self.task, **terms)
        return grade_task(self.task, self.record, **terms)


@dataclass(frozen=True, slots=True)
class Pending:
    """find: reads what is to be judged, or says why that cannot be. index, of, place: as `Graded` has them."""

    task_name: str
    find: Callable[[], Verdict | ToJudge]
    index: int = 1
    of: int = 1
    place: RecordPlace | None = None

    def judge(self, terms: Terms) -> Graded:
        found = self.find()
        return self.graded(found if isinstance(found, Verdict) else found.verdict(terms))

    def graded(self, verdict: Verdict) -> Graded:
        return Graded(self.task_name, verdict, self.index, self.of, self.place)
