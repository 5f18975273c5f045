import threading

import pytest

from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.solving.run_limits import Deadline, RunLimits
from guarantee_email_agent.utils.clock import SkippingClock
from guarantee_email_agent.utils.parallel import Interruption


@pytest.mark.parametrize(
    ("limits", "tokens", "cost_usd", "code"),
    [
        (RunLimits(), TokenUsage(output_tokens=10**9), 10**6, None),
        (RunLimits(), TokenUsage(output_tokens=10**9), None, None),
        (RunLimits(), TokenUsage(uncounted=1), None, None),
        (RunLimits(max_tokens=100), TokenUsage(output_tokens=100), 0.0, None),
        (RunLimits(max_tokens=100), TokenUsage(output_tokens=101), 0.0, "max_tokens"),
        (RunLimits(max_tokens=100), TokenUsage(uncounted=1), None, "max_tokens"),
        (RunLimits(max_cost_usd=1), TokenUsage(), 1.0, None),
        (RunLimits(max_cost_usd=1), TokenUsage(), 1.01, "max_cost"),
        (RunLimits(max_cost_usd=1), TokenUsage(), None, "max_cost"),
        (RunLimits(max_cost_usd=1), TokenUsage(uncounted=1), None, "max_cost"),
    ],
)
def test_limit_is_reached_where_more_was_used(
    limits: RunLimits, tokens: TokenUsage, cost_usd: float | None, code: str | None
) -> None:
    reason = limits.exceeded_by(tokens, cost_usd)
    assert (reason and reason.code) == code
    assert reason is None or not reason.retryable


def test_time_runs_down_to_nothing_and_not_below() -> None:
    clock = SkippingClock()
    deadline = Deadline(60, clock, Interruption())
    assert 59 < deadline.remaining_s() <= 60
    clock._skipped += 100
    assert (deadline.remaining_s(), deadline.is_over()) == (0, True)


def test_interruption_waits_for_work_but_for_no_part_that_nobody_awaits() -> None:
    interruption = Interruption()
    in_part, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        with interruption.awaited():
            with interruption.not_awaited():
                in_part.set()
                go_on.wait(30)
            done.set()

    thread = threading.Thread(target=work)
    with interruption.awaited():
        thread.start()
        in_part.wait(30)
    interruption.wait(30)
    assert not done.is_set()
    go_on.set()
    thread.join()
    interruption.wait(30)
    assert done.is_set()
