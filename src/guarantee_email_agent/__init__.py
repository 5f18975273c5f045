"""An agent that answers warranty mail, and the evaluation that proves it.

from guarantee_email_agent import evaluate, grade

evaluation = evaluate("evals/scenarios")
verdict = grade("tasks/warranty_days", "733")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guarantee_email_agent.eval.evaluation import Evaluation, evaluate, evaluate_async
    from guarantee_email_agent.eval.models import EvalResult, EvalTestCase
    from guarantee_email_agent.judging.grading import grade
    from guarantee_email_agent.judging.verdict import Verdict
    from guarantee_email_agent.utils.distribution import __version__

__all__ = ["EvalResult", "EvalTestCase", "Evaluation", "Verdict", "__version__", "evaluate", "evaluate_async", "grade"]

_MODULES = {
    "EvalResult": "eval.models",
    "EvalTestCase": "eval.models",
    "Evaluation": "eval.evaluation",
    "Verdict": "judging.verdict",
    "__version__": "utils.distribution",
    "evaluate": "eval.evaluation",
    "evaluate_async": "eval.evaluation",
    "grade": "judging.grading",
}


def __getattr__(name: str) -> Any:
    # Every command and every judge loads this package; few need what it offers to other programs.
    if name in _MODULES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
