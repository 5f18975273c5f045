"""Host-side evaluation: judge the record of a run, of our agent or of anybody else's.

from guarantee_email_agent.judging import grade

verdict = grade("tasks/six_times_seven", {"task_result": "42"})
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guarantee_email_agent.judging.grading import grade
    from guarantee_email_agent.judging.judge import Verdict

__all__ = ["Verdict", "grade"]


def __getattr__(name: str) -> Any:
    # `eval` imports from this package, too, and has no time for what grading needs.
    if name == "grade":
        from guarantee_email_agent.judging.grading import grade

        return grade
    if name == "Verdict":
        from guarantee_email_agent.judging.judge import Verdict

        return Verdict
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
