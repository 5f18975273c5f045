"""From the configuration of a look-up to its description."""

from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.config.look_up_settings import LookUpSettings
from guarantee_email_agent.config.mcp_server import McpServer, ToolMapping
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.instructions.look_up import WARRANTY, Fact, LookUp, NumberFormat
from guarantee_email_agent.services.look_ups import configured_look_ups, tool_of
from guarantee_email_agent.utils.errors import ConfigurationError

ORDERS = LookUpSettings(
    topics=("order",),
    number="order_number",
    pattern="[0-9]{6}",
    labels={"en": ("order",), "de": ("bestellung",)},
    table=Path("orders.csv"),
    facts={"due": "date", "payment": ("paid",)},
    required=("due",),
)


def test_a_configured_one_is_described_in_the_same_terms_as_the_built_in_one() -> None:
    built_in, orders = configured_look_ups(Config(look_ups={"orders": ORDERS}))
    assert configured_look_ups(Config()) == (built_in,) == (WARRANTY,)
    assert orders == LookUp(
        name="orders",
        topics=("order",),
        number="order_number",
        status="status",
        statuses=("found",),
        facts=(Fact("due", "date", required=True), Fact("payment", "word", ("paid",))),
        format=NumberFormat(
            "order_number", "The order number that the customer gives.", ("[0-9]{6}",), ("order", "bestellung")
        ),
    )


def test_a_label_that_matches_far_too_much_is_refused() -> None:
    settings = LookUpSettings(("order",), "order_number", ("a*",), "[0-9]{6}", table=Path("x.csv"))
    with pytest.raises(ConfigurationError, match=r"look_ups.orders.labels: phrase 'a\*' has a '\*' after fewer"):
        configured_look_ups(Config(look_ups={"orders": settings}))


@pytest.mark.parametrize(
    "asked", [{"tool": "get_order"}, {"tools": {"look_up": ToolMapping("get_order", {"order_number": "id"})}}]
)
def test_a_server_of_ones_own_is_asked_by_its_own_names(asked: dict[str, Any]) -> None:
    server = McpServer(command="x", tools=asked.pop("tools", {}))
    settings = LookUpSettings(("order",), "order_number", ("order",), "[0-9]{6}", server=server, **asked)
    assert tool_of(ORDERS) == ("find_row", "number")
    assert tool_of(settings) == ("get_order", "order_number")
