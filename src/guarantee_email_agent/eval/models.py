"""What came of a scenario, and the scenario itself: everything that `eval` has as data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from guarantee_email_agent.eval.checks import (
    ExpectedCall,
    ForbiddenCall,
)
from guarantee_email_agent.eval.harm import find_harm
from guarantee_email_agent.eval.scenario import (
    EvalEmail,
    EvalExpectedOutput,
    EvalInput,
    EvalTestCase,
    InvalidScenario,
    MockFailure,
    MockFailureKind,
    MockResponses,
    MockWarrantyAnswer,
    PreviousReply,
    ScenarioSettings,
)
from guarantee_email_agent.reporting.totals import Outcome
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.llm.usage import ModelUsage


__all__ = [
    "EvalEmail",
    "EvalExpectedOutput",
    "EvalInput",
    "EvalResult",
    "EvalTestCase",
    "ExpectedCall",
    "ForbiddenCall",
    "InvalidScenario",
    "MockFailure",
    "MockFailureKind",
    "MockResponses",
    "MockWarrantyAnswer",
    "PreviousReply",
    "ScenarioSettings",
]


@dataclass(frozen=True, slots=True)
class EvalResult:
    """What came of one scenario. `actual_output` has the keys that `EvalExpectedOutput.matches` reads.

    usage: what it took of a model that is paid for. reading: how our own agent read the mail: `topic`, `language`,
    `numbers`, and what it looked up. trace: `conversation` and `execution_trace` of the record, where
    one was made; step_ms: milliseconds of each of its steps. judgement: what the scenario's own judge said and printed.
    repetitions: the result of every run of a scenario that ran several times, in order.
    """

    test_case: EvalTestCase | InvalidScenario
    passed: bool
    failures: Sequence[str] = ()
    actual_output: Mapping[str, Any] = field(default_factory=dict)
    processing_time_ms: int = 0
    usage: ModelUsage | None = None
    reading: Mapping[str, Any] | None = None
    trace: Mapping[str, Any] | None = None
    judgement: Mapping[str, Any] | None = None
    repetitions: tuple[EvalResult, ...] = ()
    step_ms: tuple[float, ...] = field(default=(), compare=False)

    @property
    def invalid(self) -> bool:
        """Whether there was no scenario to run, since its file cannot be used."""
        return isinstance(self.test_case, InvalidScenario)

    @property
    def harm(self) -> tuple[str, ...]:
        """What in it would have harmed somebody, by `find_harm`, of every repetition that failed."""
        runs = self.repetitions or (self,)
        failed = (run for run in runs if not run.passed)
        return tuple(
            dict.fromkeys(
                reason
                for run in failed
                if isinstance(run.test_case, EvalTestCase)
                for reason in find_harm(run.test_case, run.actual_output, of_our_agent=run.reading is not None)
            )
        )

    @property
    def name(self) -> str:
        """Of the scenario's file, without its ending: two files may claim one id, but not one name."""
        file = self.test_case.file
        return os.path.splitext(os.path.basename(file))[0] if file else self.test_case.scenario_id

    @property
    def language(self) -> str:
        """Of the reply that is expected, else of the mail as our agent read it; empty where neither is known."""
        expected = (
            None if isinstance(self.test_case, InvalidScenario) else self.test_case.expected_output.reply_language
        )
        return expected or str((self.reading or {}).get("language") or "")

    @property
    def needs_review(self) -> bool:
        """Whether nobody has decided yet that what the scenario expects is right."""
        return isinstance(self.test_case, EvalTestCase) and self.test_case.review

    @property
    def outcome(self) -> Outcome:
        return "passed" if self.passed else "invalid" if self.invalid else "failed"

    @classmethod
    def of_invalid(cls, scenario: InvalidScenario) -> EvalResult:
        """The place of an unusable file in the results: failed, with the reason."""
        return cls(scenario, passed=False, failures=[scenario.message])

    @classmethod
    def of_repetitions(cls, results: Sequence[EvalResult], repeat: int) -> EvalResult:
        """One result of a scenario that ran `repeat` times: the first run that failed, else the first one."""
        if repeat == 1:
            return results[0]
        failed = [number for number, result in enumerate(results, 1) if not result.passed]
        chosen = results[failed[0] - 1] if failed else results[0]
        failures = chosen.failures
        if 0 < len(failed) < len(results):
            failures = [f"run {failed[0]} of {repeat}: {failure}" for failure in failures]
        return replace(chosen, failures=failures, repetitions=tuple(results))

    def format_for_display(self) -> str:
        """`✓ id: description`, or `✗ id: description - FAILED` and the failures, indented by four."""
        description = " ".join(self.test_case.description.split())  # a folded YAML text ends with a line break
        title = f"{printable(self.test_case.scenario_id)}: {printable(description)}"
        if self.passed:
            return f"✓ {title}"
        texts = [*self.failures, *([f"harmful: {'; '.join(self.harm)}"] if self.harm else [])]
        lines = [f"    {printable(line)}" for text in texts for line in text.split("\n")]
        return "\n".join([f"✗ {title} - FAILED", *lines])
