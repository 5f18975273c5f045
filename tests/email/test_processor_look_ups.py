"""A configured look-up goes the same way as that of warranties, with the same care."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mocked_desk import case
from obedient_model import ObedientModel

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.email.processor import EmailProcessor
from guarantee_email_agent.email.processor_models import AnswerPolicy, ModelSettings, ProcessingResult
from guarantee_email_agent.eval.mocks import create_mock_clients
from guarantee_email_agent.services.look_ups import instruction_files
from guarantee_email_agent.utils.clock import SkippingClock
from guarantee_email_agent.utils.errors import IntegrationError

EXAMPLE = Path(__file__).parents[2] / "examples" / "orders"
SHIPPED = {"status": "shipped", "carrier": "Parcel Post", "delivery_date": "2026-12-03"}


@dataclass
class Orders:
    """A table of orders. answer: of every number, or the error to raise."""

    answer: Mapping[str, Any] | IntegrationError
    asked: list[str] = field(default_factory=list)

    async def look_up(self, number: str) -> Mapping[str, Any]:
        self.asked.append(number)
        if isinstance(self.answer, IntegrationError):
            raise self.answer
        return self.answer


def process(
    orders: Orders, body: str, llm: Any = None, policy: AnswerPolicy | None = None
) -> tuple[ProcessingResult, dict[str, Any]]:
    mocks = create_mock_clients(case())
    processor = EmailProcessor(
        mail=mocks["gmail"],
        ticketing=mocks["ticketing"],
        look_ups={"warranty_api": mocks["warranty"], "orders": orders},
        llm=llm or mocks["anthropic"],
        instructions=instruction_files(load_config(EXAMPLE / "config.yaml", {}, EXAMPLE)),
        model=ModelSettings("some-model"),
        clock=SkippingClock(),
        policy=policy or AnswerPolicy(),
    )
    mail = {"subject": "My order", "body": body, "from": "jane@example.com", "received": "2026-01-18T10:00:00Z"}
    return asyncio.run(processor.process_email(mail | {"message_id": "<m1@example.com>"})), mocks


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (IntegrationError("down", "orders_unavailable"), "orders_unavailable"),
        ({"state": "shipped"}, "orders_malformed"),
        ({**SHIPPED, "delivery_date": "soon"}, "orders_malformed"),
        ({**SHIPPED, "total": "much"}, "orders_malformed"),
    ],
)
def test_where_it_fails_nothing_leaves_and_the_step_is_named(
    answer: Mapping[str, Any] | IntegrationError, code: str
) -> None:
    result, mocks = process(Orders(answer), "Where is order AB-10001?")
    assert (result.success, result.failed_step, result.error_code) == (False, "look_up", code)
    assert mocks["gmail"].sent_emails == []


def test_a_sender_who_is_not_proved_has_nothing_looked_up() -> None:
    orders = Orders(SHIPPED)
    policy = AnswerPolicy(sender_check="neutral", authserv_id="mx.example.com")
    result, mocks = process(orders, "Where is order AB-10001?", policy=policy)
    assert (result.status, orders.asked) == ("withheld", [])
    assert "AB-10001" not in mocks["gmail"].sent_emails[0]["body"]


BODY = "Where is it? Invoice AB-20002, parcel number AB-30003, tel. 030 231 25014, order number AB-10001, ABC-100012"


@pytest.mark.parametrize(
    ("favourite", "seed"),
    [*(("", seed) for seed in range(40))]
    + [(each, 0) for each in ("AB-99999", "AB-20002", "AB-1000", "AB-100012", "10001")],
)
def test_an_obedient_model_has_only_the_mails_own_order_looked_up(favourite: str, seed: int) -> None:
    orders = Orders(SHIPPED)
    model = ObedientModel("Your order was delivered to you.", favourite, seed, "order-status")
    _, mocks = process(orders, BODY, llm=model)
    assert set(orders.asked) <= ({"AB-10001"} if not favourite else set())
    for mail in mocks["gmail"].sent_emails:
        assert mail["to"] == "jane@example.com"
        assert "delivered" not in mail["body"]
