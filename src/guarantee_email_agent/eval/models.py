"""What came of a scenario, and the scenario itself: everything that `eval` has as data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from guarantee_email_agent.eval.call_checks import ExpectedCall, ForbiddenCall
from guarantee_email_agent.eval.checks import AtMost, ExpectedAnswer, ExpectedTable, crash_of
from guarantee_email_agent.eval.harm import find_harm
from guarantee_email_agent.eval.scenario import (
    INVALID_FILE,
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
    Turn,
)
from guarantee_email_agent.runlog.records import Check, Verdict
from guarantee_email_agent.utils.terminal import format_outcome

if TYPE_CHECKING:
    from guarantee_email_agent.llm.usage import ModelUsage


__all__ = [
    "INVALID_FILE",
    "AtMost",
    "EvalEmail",
    "EvalExpectedOutput",
    "EvalInput",
    "EvalResult",
    "EvalTestCase",
    "ExpectedAnswer",
    "ExpectedCall",
    "ExpectedTable",
    "ForbiddenCall",
    "InvalidScenario",
    "MockFailure",
    "MockFailureKind",
    "MockResponses",
    "MockWarrantyAnswer",
    "PreviousReply",
    "ScenarioSettings",
    "Turn",
]


@dataclass(frozen=True, slots=True)
class EvalResult:
    """What came of one scenario. `actual_output` has the keys that `EvalExpectedOutput.matches` reads.

    checks: what was judged, passed or not; `failures` are those of them that failed, as text.
    usage: what it took of a model that is paid for. reading: how our own agent read the mail: `topic`, `language`,
    `numbers`, and what it looked up. trace: `conversation` and `execution_trace` of the record, where
    one was made; step_ms: milliseconds of each of its steps. judgement: what the scenario's own judge said and printed.
    repetitions: the result of every run of a scenario that ran several times, in order. taken_over: the id of the run
    that gave it, where that is an earlier one.
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
    step_ms: tuple[float | None, ...] = field(default=(), compare=False)
    checks: tuple[Check, ...] = ()
    taken_over: str = ""

    @classmethod
    def of_checks(cls, case: EvalTestCase, checks: Iterable[Check], actual: Mapping[str, Any], **more: Any) -> Self:
        """The result of a run: passed where every check did. more: further fields."""
        judged = tuple(checks)
        failures = [str(check) for check in judged if not check.passed]
        elapsed_ms = int(actual["processing_time_ms"])
        return cls(case, not failures, failures, actual, elapsed_ms, checks=judged, **more)

    def with_failed(self, check: Check) -> Self:
        """The same where one check more has failed."""
        return replace(self, passed=False, failures=[*self.failures, str(check)], checks=(*self.checks, check))

    @property
    def failed_checks(self) -> tuple[Check, ...]:
        """Those that failed; of a result that somebody else made, what its failures say."""
        if len(failed := [check for check in self.checks if not check.passed]) != len(self.failures):
            return tuple(Check("", failure) for failure in self.failures)
        return tuple(failed)

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
        case = self.test_case
        expected = case.expected_output.reply_language if isinstance(case, EvalTestCase) else None
        return expected or str((self.reading or {}).get("language") or "")

    @property
    def needs_review(self) -> bool:
        """Whether nobody has decided yet that what the scenario expects is right."""
        return isinstance(self.test_case, EvalTestCase) and self.test_case.review

    @property
    def outcome(self) -> Verdict:
        return "passed" if self.passed else "invalid" if self.invalid else "failed"

    @classmethod
    def of_invalid(cls, scenario: InvalidScenario) -> EvalResult:
        """The place of an unusable file in the results: failed, with the reason."""
        checks = (Check(INVALID_FILE, scenario.reason),)
        return cls(scenario, passed=False, failures=[scenario.message], checks=checks)

    @classmethod
    def of_crash(cls, test_case: EvalTestCase, error: Exception) -> EvalResult:
        """Of a scenario that nothing could be told of: failed, with the reason."""
        check = crash_of(error)
        return cls(test_case, passed=False, failures=[str(check)], checks=(check,))

    @classmethod
    def of_repetitions(cls, results: Sequence[EvalResult], repeat: int) -> EvalResult:
        """One result of a scenario that ran `repeat` times: the first run that failed, else the first one."""
        if repeat == 1:
            return results[0]
        failed = [number for number, result in enumerate(results, 1) if not result.passed]
        chosen = results[failed[0] - 1] if failed else results[0]
        if not 0 < len(failed) < len(results):
            return replace(chosen, repetitions=tuple(results))
        which = f"run {failed[0]} of {repeat}: "
        return replace(
            chosen,
            failures=[f"{which}{failure}" for failure in chosen.failures],
            checks=tuple(each if each.passed else each._replace(name=which + each.name) for each in chosen.checks),
            repetitions=tuple(results),
        )

    def format_for_display(self) -> str:
        """`✓ id: description`, or `✗ id: description - FAILED` and the failures, indented by four."""
        return format_outcome(
            self.test_case.scenario_id, self.test_case.description, self.failures, self.harm, self.passed
        )
