"""Which cases fail for one and the same cause: the first line of a failed check, its name and reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from guarantee_email_agent.runlog.records import Case

_MANY: Final = 3
_MAX_NAMES: Final = 8
_MAX_CAUSES: Final = 1_000


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
                more = f" and {count - _MAX_NAMES} more" if count > _MAX_NAMES else ""
                yield f"    {', '.join(names[:_MAX_NAMES])}{more}"
