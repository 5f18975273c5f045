"""What the operator allows tasks, by options and in words."""

from collections.abc import Mapping

import pytest

from guarantee_email_agent.config.task_allowance import NOTHING_MORE, TaskAllowance, with_options
from guarantee_email_agent.utils.errors import ConfigurationError


def test_what_no_option_names_stays_as_it_is() -> None:
    allowed = with_options(["network", "memory_mb=4096", "time_s=1.5"])
    assert allowed == TaskAllowance(network=True, memory_mb=4096, time_s=1.5)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("memroy_mb=1", "--allow memroy_mb=1: there is no 'memroy_mb' to allow – did you mean 'memory_mb'?"),
        ("zzz", "there is no 'zzz' to allow; known keys: network, compose_host, memory_mb"),
        ("", "there is no '' to allow"),
        ("memory_mb", "a number is missing, such as memory_mb=2048"),
        ("memory_mb=", "memory_mb must be a whole number"),
        ("memory_mb=8g", "memory_mb must be a whole number"),
        ("memory_mb=1.5", "memory_mb must be a whole number"),
        ("memory_mb=0", "memory_mb must be at least 1 and at most 10000000, not 0"),
        ("judge_timeout_s=nan", "judge_timeout_s must be a number"),
        ("judge_timeout_s=1e9", "judge_timeout_s must be above 0 and at most 86400"),
        ("network=yes", "network must be true or false"),
        ("network=1", "network must be true or false"),
        ("a\nb=1", "there is no 'a"),
    ],
)
def test_an_option_that_says_nothing_is_told_in_a_line(option: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as problem:
        with_options([option])
    assert said in problem.value.message
    assert "\n" not in problem.value.message


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"memory_mb": 2048, "network": False, "judge_timeout_s": 0.5}, None),
        ({"memory_mb": 8192}, "memory_mb asks for 8192, and 2048 is allowed. Pass --allow memory_mb=8192"),
        ({"time_s": 7200.5}, "time_s asks for 7200.5, and 7200 is allowed. Pass --allow time_s=7201"),
        ({"files": 3_000_000}, "files asks for 3000000, and 200000 is allowed. Pass --allow files=3000000"),
        ({"network": True}, "network is true, which is not allowed. Pass --allow network"),
    ],
)
def test_what_is_asked_for_beyond_is_told_with_the_option(asked: Mapping[str, bool | float], said: str | None) -> None:
    assert NOTHING_MORE.excess(asked, "sandbox.") == (None if said is None else f"sandbox.{said}")


def test_the_options_it_names_are_enough() -> None:
    asked = {"network": True, "time_s": 7200.5, "memory_mb": 1_234_567, "judge_timeout_s": 86_399.5}
    reason = NOTHING_MORE.excess(asked)
    options = reason.partition("Pass --allow ")[2].split(" --allow ")
    assert with_options(options).excess(asked) is None
