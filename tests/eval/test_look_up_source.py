from pathlib import Path

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.eval.look_up_source import (
    GivenFact,
    LookUpSource,
    look_up_source,
    mock_response,
    parse_given_facts,
)
from guarantee_email_agent.services.look_ups import configured_look_ups
from guarantee_email_agent.utils.errors import ConfigurationError

CONFIG = load_config(Path(__file__).parents[2] / "examples" / "orders" / "config.yaml", {})
LOOK_UPS = configured_look_ups(CONFIG)


def source(*texts: str, ask: bool = False) -> LookUpSource:
    return look_up_source(parse_given_facts(texts, LOOK_UPS), LOOK_UPS, ask=ask)


def problem(*texts: str, ask: bool = False) -> str:
    with pytest.raises(ConfigurationError) as caught:
        source(*texts, ask=ask)
    assert caught.value.code == "cli_bad_usage"
    return caught.value.message


def test_answers_of_several_look_ups_are_kept_apart() -> None:
    assert source("orders.status=shipped", "orders.total=49.90 EUR", "warranty_api.status=valid").answers == {
        "orders": {"status": "shipped", "total": "49.90 EUR"},
        "warranty_api": {"status": "valid"},
    }


def test_an_equals_sign_may_stand_in_the_value() -> None:
    (fact,) = parse_given_facts(["orders.carrier=A=B"], LOOK_UPS)
    assert fact == GivenFact("--answer orders.carrier", "orders", "carrier", "A=B")


def test_the_answer_stands_below_its_tool_in_a_scenario() -> None:
    given = source("orders.status=shipped", "warranty_api.status=valid")
    assert given.mock_responses(CONFIG) == {
        "orders": {"find_row": {"status": "shipped"}},
        "warranty_api": {"status": "valid"},
    }
    assert mock_response("orders", {"status": "shipped"}, CONFIG) == {"find_row": {"status": "shipped"}}


@pytest.mark.parametrize("status", ["not_found", "other", "SHIPPED"])
def test_every_status_that_a_service_may_give_can_be_given(status: str) -> None:
    assert source(f"orders.status={status}").answers["orders"]["status"] == status


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("orders", "--answer orders gives no answer. Write it as --answer orders.status=processing"),
        ("orders.status=", "--answer orders.status gives no answer"),
        ("ordrs.status=shipped", "there is no look-up 'ordrs' – did you mean 'orders'?"),
        ("parcels.status=x", "there is no look-up 'parcels'; there are warranty_api, orders"),
        ("orders.stat=shipped", "orders answers no 'stat' – did you mean 'status'?"),
        ("orders.status=shiped", "--answer orders.status='shiped' is no status of it – did you mean 'shipped'?"),
        ("orders.delivery_date=soon", "'soon' is no date that such a service could give. Write it as 2027-01-31"),
        ("orders.total=much", "'much' is no amount that such a service could give. Write it as 49.90 EUR"),
        ("orders.payment=maybe", "--answer orders.payment 'maybe' is none of paid, open"),
        ("orders.owner_email=me", "'me' is no address. Write it as jane@example.com"),
        ("warranty_api.coverage=valid for ever", "is no plain word. Write it as full"),
    ],
)
def test_what_no_service_could_say_is_told(text: str, message: str) -> None:
    assert message in problem("orders.status=shipped", "warranty_api.status=valid", text)


def test_a_fact_needs_a_status_beside_it() -> None:
    assert problem("orders.total=1 EUR") == "--answer orders.total needs --answer orders.status=… beside it"


def test_the_services_are_asked_or_answered_for() -> None:
    expected = "--look-up asks the configured services. Leave out it, or --answer"
    assert problem("orders.status=shipped", ask=True) == expected
