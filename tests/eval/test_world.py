"""Tables that mocked tools read and change, what must hold of them at the end, and what a file says wrongly of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from guarantee_email_agent.eval.checks import ExpectedTable
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalExpectedOutput
from guarantee_email_agent.eval.tool_mocks import ToolMocks
from guarantee_email_agent.eval.world import World
from guarantee_email_agent.utils.errors import EvalError

ORDERS = [{"id": "A-1", "status": "open", "total": 5}, {"id": "A-2", "status": "open", "total": 7}]
SHOP: dict[str, Any] = {
    "find": {"reads": "orders", "where": {"id": "$id", "status": "$status"}},
    "get": {"reads": "orders", "where": {"id": "$id"}, "one": True},
    "cancel": {
        "updates": "orders",
        "where": {"id": "$id"},
        "values": {"status": "cancelled", "by": "$by"},
        "one": True,
    },
    "close_all": {"updates": "orders", "values": {"status": "closed"}, "answer": "done"},
    "forget": {"deletes": "orders", "where": {"id": "$id"}},
    "place": {"inserts": "orders", "values": {"id": "A-9", "status": "open", "item": "$item", "cost": "$$5"}},
    "log": {"inserts": "notes"},
}


def shop() -> tuple[ToolMocks, World]:
    world = World({"orders": ORDERS, "notes": []})
    return ToolMocks({"shop": SHOP}, apply=world.apply), world


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("find", {"id": "A-2"}, [ORDERS[1]]),
        ("find", {}, ORDERS),
        ("find", {"id": {"any": True}}, []),  # what an agent sends is no matcher
        ("get", {"id": "A-1"}, ORDERS[0]),
        ("cancel", {"id": "A-1", "by": "me"}, {"id": "A-1", "status": "cancelled", "total": 5, "by": "me"}),
        ("cancel", {"id": "A-1"}, {"id": "A-1", "status": "cancelled", "total": 5}),
        ("close_all", {}, "done"),
        ("forget", {"id": "A-2"}, [ORDERS[1]]),
        ("place", {"item": "cup"}, {"id": "A-9", "status": "open", "item": "cup", "cost": "$5"}),
        ("log", {"text": "hello"}, {"text": "hello"}),
    ],
)
def test_a_tool_answers_the_rows_that_it_read_or_changed(tool: str, arguments: Any, answer: object) -> None:
    given = shop()[0].answer("shop", tool, arguments)
    assert (given.answer, given.is_error) == (answer, False)


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("get", {"id": "A-3"}, "no row of orders fits"),
        ("get", {}, "2 rows of orders fit"),
        ("cancel", {"id": "A-3"}, "no row of orders fits"),
        ("cancel", {}, "the argument id is missing"),  # and not every order is cancelled
        ("forget", {}, "the argument id is missing"),
    ],
)
def test_what_fits_no_row_is_the_tools_own_error_and_changes_nothing(tool: str, arguments: Any, error: str) -> None:
    mocks, world = shop()
    given = mocks.answer("shop", tool, arguments)
    assert (given.answer, given.is_error, mocks.unknown) == (error, True, [])
    assert world.as_dict()["changes"] == []


def failed(calls: Sequence[tuple[str, Mapping[str, Any]]], **expected: Any) -> list[str]:
    mocks, world = shop()
    for tool, arguments in calls:
        mocks.answer("shop", tool, arguments)
    checks = EvalExpectedOutput(**expected).checks({"world": world.as_dict()})
    return [f"{check.name}: {check.reason}" for check in checks if not check.passed]


def orders(**said: Any) -> dict[str, Any]:
    return {"orders": ExpectedTable(**said)}


CANCELLED = {"id": "A-1", "status": "cancelled"}
CANCEL = ("cancel", {"id": "A-1"})
PLACE = ("place", {"item": "cup"})


@pytest.mark.parametrize(
    ("calls", "state", "failures"),
    [
        ([CANCEL], orders(has=(CANCELLED,), rows=2), []),
        ([], orders(has=(CANCELLED,)), ["state: orders has no such row"]),
        ([PLACE], orders(has=({"item": "cup"}, {"item": "cup"})), ["state: orders has no such row"]),
        ([PLACE], orders(rows=2), ["state: orders has 3 rows"]),
        ([CANCEL], orders(lacks=({"status": "cancelled"},)), ["state: orders has such a row"]),
        ([("forget", {"id": "A-1"})], orders(lacks=({"id": "A-1"},), rows=1), []),
        ([], orders(has=({"total": {"approx": 5.1, "tolerance": 0.2}},)), []),
    ],
)
def test_the_end_counts_and_not_the_way(calls: Any, state: Any, failures: list[str]) -> None:
    assert failed(calls, state=state) == failures


@pytest.mark.parametrize(
    ("calls", "state", "others"),
    [
        ([], {}, 0),
        ([CANCEL], orders(has=(CANCELLED,)), 0),
        ([CANCEL], {}, 1),
        ([("cancel", {"id": "A-1", "by": "me"})], orders(has=(CANCELLED,)), 1),  # a column that nobody named
        ([CANCEL, ("cancel", {"id": "A-2"})], orders(has=(CANCELLED,)), 1),
        ([PLACE], orders(has=({"item": "cup"},)), 0),
        ([PLACE, PLACE], orders(has=({"item": "cup"},)), 1),  # placed twice
        ([("forget", {"id": "A-2"})], orders(lacks=({"id": "A-2"},)), 0),
        ([("forget", {"id": "A-2"})], {}, 1),
        ([("log", {"text": "x"})], orders(rows=2), 1),
    ],
)
def test_nothing_else_may_have_changed(calls: Any, state: Any, others: int) -> None:
    found = failed(calls, state=state, nothing_else_changed=True)
    assert found == ([f"nothing_else_changed: {others} other change"] if others else [])


def test_a_run_without_tables_fulfils_nothing() -> None:
    checks = EvalExpectedOutput(state=orders(lacks=(CANCELLED,)), nothing_else_changed=True).checks({})
    assert [check.reason for check in checks if not check.passed] == ["nothing was reported"]


def scenario(**changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "scenario_id": "shop_1",
        "description": "An order is cancelled",
        "category": "shop",
        "created": "2026-11-27",
        "input": {"task": "Cancel A-1", "world": {"orders": ORDERS, "notes": []}, "mock_responses": {"shop": SHOP}},
        "expected_output": {"state": {"orders": {"has": [CANCELLED]}}, "nothing_else_changed": True},
    }
    for path, value in changes.items():
        *sections, key = path.split("__")
        place = data
        for section in sections:
            place[section] = dict(place[section])
            place = place[section]
        place[key] = value
    return data


TOOL = "input__mock_responses__shop__get"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({TOOL: {"reads": "order"}}, "shop.get.reads 'order' is no table of input.world – did you mean 'orders'?"),
        ({TOOL: {"reads": "orders", "where": {"idd": 1}}}, "get.where.idd is no column of orders – did you mean 'id'?"),
        ({TOOL: {"reads": "orders", "inserts": "orders"}}, "has reads and inserts; keep one"),
        ({TOOL: {"updates": "orders"}}, "updates changes nothing; write values"),
        ({TOOL: {"deletes": "orders", "values": {"id": 1}}}, "values says nothing beside deletes; remove it"),
        ({TOOL: {"inserts": "orders", "one": True}}, "one says nothing beside inserts"),
        ({TOOL: {"reads": "orders", "error": "timeout"}}, "reads is never given, since the tool fails (timeout)"),
        ({TOOL: {"reads": "orders", "is_error": True}}, "is_error says nothing beside reads; remove one"),
        ({TOOL: {"reads": 5}}, "reads is the number 5, not text"),
        ({"input__world": {}, "input__mock_responses": {}}, "needs input.world, whose tables might change"),
        ({"input__world__orders": 5}, "input.world.orders must be a list"),
        ({"expected_output__state": {"order": {"rows": 1}}}, "'order' is no table of input.world – did you mean"),
        ({"expected_output__state": {"orders": {}}}, "expects nothing; name has, lacks or rows, or remove it"),
        ({"expected_output__state": {"orders": {"has": [{"id": {"approx": 1}}]}}}, "has[0].id must be approx and"),
        ({"expected_output__state": {"orders": {"lacks": [{"staus": "open"}]}}}, "staus is no column of orders – did"),
        ({"input__task": None}, "Missing field: input.email"),
        ({"turns": [{"says": None}]}, "turns[0].says must be a text or JSON, not null"),
    ],
)
def test_a_world_that_says_something_wrong_is_one_line(changes: Any, problem: str) -> None:
    with pytest.raises(EvalError) as caught:
        EvalLoader(any_agent=True).validate_test_case(scenario(**changes), "shop_1.yaml")
    assert problem in str(caught.value)


def test_a_column_that_only_a_tool_fills_is_known() -> None:
    tools = SHOP | {"by": {"reads": "orders", "where": {"by": "$by"}}, "notes": {"reads": "notes", "where": {"id": 1}}}
    state = {"orders": {"lacks": [{"cost": "$6"}]}, "notes": {"lacks": [{"text": "no"}]}}
    given = scenario(input__mock_responses={"shop": tools}, expected_output__state=state)
    EvalLoader(any_agent=True).validate_test_case(given, "shop_1.yaml")


def test_our_own_agent_has_no_tables() -> None:
    with pytest.raises(EvalError, match=r"input\.world is for an agent that --agent names"):
        EvalLoader().validate_test_case(scenario(), "shop_1.yaml")
