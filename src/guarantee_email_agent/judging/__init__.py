"""Host-side evaluation: judge the record of a run, of our agent or of anybody else's.

from guarantee_email_agent.judging import grade

verdict = grade("tasks/six_times_seven", {"task_result": "42"})
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guarantee_email_agent.judging.grading import grade
    from guarantee_email_agent.judging.inspect_log import record_from_inspect
    from guarantee_email_agent.judging.langchain_transcript import record_from_langchain
    from guarantee_email_agent.judging.openai_transcript import record_from_openai
    from guarantee_email_agent.judging.otel_transcript import record_from_otel
    from guarantee_email_agent.judging.pydantic_ai_transcript import record_from_pydantic_ai
    from guarantee_email_agent.judging.verdict import Verdict

__all__ = [
    "Verdict",
    "grade",
    "record_from_inspect",
    "record_from_langchain",
    "record_from_openai",
    "record_from_otel",
    "record_from_pydantic_ai",
]

_MODULES = {
    "Verdict": "verdict",
    "grade": "grading",
    "record_from_inspect": "inspect_log",
    "record_from_langchain": "langchain_transcript",
    "record_from_openai": "openai_transcript",
    "record_from_otel": "otel_transcript",
    "record_from_pydantic_ai": "pydantic_ai_transcript",
}


def __getattr__(name: str) -> Any:
    # `eval` imports from this package, too, and has no time for what grading needs.
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
