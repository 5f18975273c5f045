from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest

from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.integrations.bad_answers import BadAnswers
from guarantee_email_agent.integrations.call_errors import TIMEOUT, integration_error, malformed_error
from guarantee_email_agent.integrations.look_up_answer import parse_look_up_answer
from guarantee_email_agent.utils.errors import IntegrationError

pytestmark = pytest.mark.anyio
GOOD = {"status": "valid"}
BAD: tuple[object, ...] = (
    {"status": "valid", "expiration_date": ["2031-12-31"]},
    {"status": "valid", "coverage": 2},
    {"status": 1},
    {"status": None},
    {"status": "valid", "expiration_date": "x" * 1_000_000},
    [GOOD],
    None,
)


class Service:
    """One tool; `ask` gives what became of the call: the answer, or the error."""

    def __init__(self) -> None:
        self.answers = BadAnswers("warranty_api", "check_warranty")

    async def ask(self, number: str, answer: object) -> IntegrationError | None:
        async def call() -> object:
            if isinstance(answer, Exception):
                raise answer
            return answer

        try:
            await self.answers.check({"serial_number": number}, call, lambda raw: parse_look_up_answer(raw, WARRANTY))
        except IntegrationError as error:
            return error
        return None

    async def is_outage(self, number: str, answer: object) -> bool | None:
        """None for an answer that could be read."""
        error = await self.ask(number, answer)
        return None if error is None else error.details.get("outage") is True


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: str(bad)[:40])
async def test_the_same_bad_answer_to_another_request_is_an_outage(bad: object) -> None:
    service = Service()
    assert [await service.is_outage(number, bad) for number in "1121"] == [False, False, True, True]


async def test_a_good_answer_in_between_leaves_each_to_its_mail() -> None:
    service = Service()
    for number in "123":
        assert await service.is_outage(number, {"status": 1}) is False
        assert await service.is_outage("9", GOOD) is None


async def test_answers_that_are_bad_in_different_ways_are_no_outage_yet() -> None:
    service = Service()
    assert await service.is_outage("1", {"status": 1}) is False
    assert await service.is_outage("2", {"status": "valid", "coverage": 1}) is False


async def test_what_the_session_cannot_read_counts_as_well() -> None:
    service = Service()
    bad = malformed_error("warranty_api", "check_warranty", "is no JSON object")
    assert [await service.is_outage(number, bad) for number in "12"] == [False, True]


async def test_an_error_of_another_kind_is_passed_on_and_says_nothing() -> None:
    service = Service()
    down = integration_error("warranty_api", TIMEOUT, "slow")
    await service.ask("1", {"status": 1})
    assert await service.ask("2", down) is down
    assert await service.is_outage("2", {"status": 1}) is True


async def test_service_tool_and_field_are_named_once_and_no_word_of_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = Service()
    bad: Mapping[str, object] = {"status": "valid", "coverage": ["of Ms Doe"]}
    for number in "123":
        error = await service.ask(number, bad)
        assert error is not None
        assert (error.code, error.message) == (
            "warranty_api_malformed",
            "warranty_api: the answer of check_warranty has an unusable coverage. Check the server's version",
        )
    await service.ask("4", GOOD)
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.ERROR, logging.WARNING]
    assert all("warranty_api" in line and "check_warranty" in line for line in caplog.messages)
    assert "has an unusable coverage" in caplog.messages[1]
    assert caplog.messages[2].endswith("can be read again")
    assert "Doe" not in caplog.text
