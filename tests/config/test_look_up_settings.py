"""What a look-up's configuration may say; anything else is one line."""

from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.look_up_settings import all_labels
from guarantee_email_agent.utils.errors import ConfigurationError

GOOD = """
look_ups:
  orders:
    topics: [order-status]
    number: order_number
    pattern: "[A-Z]{2}-?[0-9]{5}"
    labels: {en: [order, order number], de: [bestellung, order]}
    table: orders.csv
    statuses: [shipped, in transit]
    facts: {due: date, payment: [paid, open]}
    required: [due]
"""


def load(tmp_path: Path, text: str = GOOD) -> Any:
    file = tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8")
    return load_config(file, {"ORDERS_TOKEN": "secret"}, tmp_path)


def test_a_table_starts_at_the_files_folder(tmp_path: Path) -> None:
    orders = load(tmp_path).look_ups["orders"]
    assert orders.table == tmp_path / "orders.csv"
    assert orders.facts == {"due": "date", "payment": ("paid", "open")}
    assert all_labels(orders.labels) == ("order", "order number", "bestellung")


def test_a_server_of_ones_own_gets_its_variables(tmp_path: Path) -> None:
    text = GOOD.replace("table: orders.csv", "server: {command: orders, env: [ORDERS_TOKEN]}\n    tool: find_order")
    config = load(tmp_path, text)
    assert config.secrets.mcp_environment == {"ORDERS_TOKEN": "secret"}
    assert "secret" not in repr(config)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("  orders:", "  warranty_api:", "look_ups: 'warranty_api' cannot be the name of a look-up"),
        ("[order-status]", "[]", "look_ups.orders.topics: names no topic"),
        ("[order-status]", "[warranty]", "look_ups.orders.topics: names 'warranty', which the built-in look-up"),
        ("number: order_number", "number: serial_number", "'serial_number' is the name of something built in"),
        ("number: order_number", "number: Order No", "must be lower-case letters, digits and underscores"),
        ("[A-Z]{2}-?[0-9]{5}", "([0-9]+)+", "look_ups.orders.pattern: can match more than 100 characters"),
        ("[A-Z]{2}-?[0-9]{5}", "[0-9]{0,5}", "look_ups.orders.pattern: matches nothing at all"),
        ("[A-Z]{2}-?[0-9]{5}", "[0-9", "look_ups.orders.pattern: does not compile"),
        ("{en: [order, order number], de: [bestellung, order]}", "[]", "look_ups.orders.labels: names no phrase"),
        ("[order, order number]", "['#']", "look_ups.orders.labels: holds a phrase without a word"),
        ("[shipped, in transit]", "[shipped, not_found]", "need not list 'not_found'"),
        ("[shipped, in transit]", "['see http://x']", "must list short plain words"),
        (
            "due: date",
            "due: dat",
            "look_ups.orders.facts.due: must be 'date', 'amount' or 'name', not the text 'dat' – did",
        ),
        ("due: date", "status: date", "look_ups.orders.facts: 'status' is the name of something built in"),
        ("due: date", "due: []", "look_ups.orders.facts: due lists no word"),
        ("[paid, open]", "[paid, Unknown]", "payment lists 'Unknown', by which a condition asks whether there is a"),
        *(
            (
                'pattern: "[A-Z]{2}-?[0-9]{5}"',
                f"formats: [{{pattern: '{each}', example: '{each}'}}]",
                "no mail can give",
            )
            for each in ("AB 123", "AB#123", "ÄB-123", "ABCDEF")
        ),
        ("due: date", "order_number: date", "has a fact called order_number, like its number"),
        ("required: [due]", "required: [dew]", "requires 'dew', which is none of its facts – did you mean 'due'?"),
        (
            "table: orders.csv",
            "tabel: orders.csv",
            "look_ups.orders.tabel: unknown key 'tabel' – did you mean 'table'?",
        ),
        ("table: orders.csv", "tool: find_order", "has neither a table nor a server with a command or a url"),
        ("table: orders.csv", "server: {command: x}", "has a server but no tool"),
        ("table: orders.csv", "table: x.csv\n    tool: t", "has a table, whose tool is known"),
        ("table: orders.csv", "table: x.csv\n    owner_key: Mail", "has a table, whose columns are read in lower case"),
        ("table: orders.csv", "table: x.csv\n    server: {url: 'http://x/'}", "has both table and server"),
        ("table: orders.csv", "server: {command: x}\n    tool: t\n    key: k", "has a key, which is a table's"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(old: str, new: str, problem: str, tmp_path: Path) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, GOOD.replace(old, new))
    assert caught.value.exit_code == 2
    assert caught.value.message.startswith("config.yaml:")
    assert problem in caught.value.message


@pytest.mark.parametrize(
    ("topic", "number", "problem"),
    [
        ("order-status", "parcel_number", "both orders and parcels serve the topic 'order-status'"),
        ("parcel", "order_number", "both orders and parcels call their number 'order_number'"),
    ],
)
def test_two_look_ups_share_neither_topic_nor_number(topic: str, number: str, problem: str, tmp_path: Path) -> None:
    second = GOOD.partition("look_ups:")[2].replace("orders:", "parcels:").replace("order-status", topic)
    with pytest.raises(ConfigurationError, match=problem):
        load(tmp_path, GOOD + second.replace("number: order_number", f"number: {number}").lstrip("\n"))
