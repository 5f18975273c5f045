from dataclasses import replace
from typing import Any

import pytest

from guarantee_email_agent.eval.models import EvalExpectedOutput, ExpectedCall, ForbiddenCall


def call(tool: str, **arguments: object) -> dict[str, Any]:
    return {"server": "orders", "tool": tool, "arguments": arguments}


def failures_of(made: list[dict[str, Any]], **changes: Any) -> list[str]:
    return EvalExpectedOutput(**changes).matches({"calls": made})[1]


class TestCalls:
    def test_a_call_with_more_arguments_than_expected_passes(self) -> None:
        wanted = ExpectedCall("orders", "get_order", {"id": "A"})
        assert failures_of([call("get_order", id="A", verbose=True)], calls=[wanted]) == []

    def test_a_call_that_was_not_made_shows_what_was_called_instead(self) -> None:
        wanted = ExpectedCall("orders", "get_order", {"id": "A"})
        (failure,) = failures_of([call("list_orders")], calls=[wanted])
        assert failure == (
            "calls: orders.get_order was not called\n"
            "  expected: orders.get_order(id='A')\n"
            "  actual:   orders.list_orders"
        )

    def test_a_call_with_other_arguments_shows_them(self) -> None:
        wanted = ExpectedCall("orders", "get_order", {"id": "A"})
        (failure,) = failures_of([call("list_orders"), call("get_order", id="B")], calls=[wanted])
        assert failure == (
            "calls: orders.get_order was not called with these arguments\n"
            "  expected: orders.get_order(id='A')\n"
            "  actual:   orders.get_order(id='B')"
        )

    def test_long_texts_are_shown_from_where_they_part(self) -> None:
        wanted = ExpectedCall("orders", "get_order", {"id": "A", "note": "so long that nobody reads it, " * 9 + "yes"})
        near = call("get_order", id="A", note="so long that nobody reads it, " * 9 + "no")
        (failure,) = failures_of([call("get_order", id="B"), near], calls=[wanted])
        assert failure.endswith(
            "  expected: orders.get_order(id='A', note=…so long that nobody reads it, yes')\n"
            "  actual:   orders.get_order(id='B'), orders.get_order(id='A', note=…so long that nobody reads it, no')"
        )

    def test_without_any_call(self) -> None:
        (failure,) = failures_of([], calls=[ExpectedCall("orders", "get_order")])
        assert failure.endswith("actual:   (no call)")

    @pytest.mark.parametrize(
        ("times", "made", "passes"),
        [(None, 0, False), (None, 3, True), (0, 0, True), (0, 1, False), (2, 2, True), (2, 1, False), (2, 3, False)],
    )
    def test_how_often(self, times: int | None, made: int, passes: bool) -> None:
        failures = failures_of([call("get_order")] * made, calls=[ExpectedCall("orders", "get_order", {}, times)])
        assert (failures == []) is passes

    @pytest.mark.parametrize(
        ("wanted", "made", "passes"),
        [
            ([{}, {}], [{}], False),
            ([{}, {}], [{}, {}], True),
            ([{}, {"id": "A"}], [{"id": "A"}], False),
            ([{}, {"id": "A"}], [{"id": "A"}, {"id": "B"}], True),  # the first is not to take A from the second
        ],
    )
    def test_each_entry_wants_a_call_of_its_own(
        self, wanted: list[dict[str, Any]], made: list[dict[str, Any]], passes: bool
    ) -> None:
        entries = [ExpectedCall("orders", "get_order", arguments) for arguments in wanted]
        calls = [call("get_order", **arguments) for arguments in made]
        assert (failures_of(calls, calls=entries) == []) is passes
        if wanted[0] == wanted[1]:
            often = [replace(entry, times=2) for entry in entries]
            assert (failures_of(calls * 2, calls=often) == []) is passes

    @pytest.mark.parametrize(
        ("value", "wanted", "fits", "fits_loosely"),
        [
            (12345, "12345", False, True),
            (True, "true", False, True),
            (True, 1, False, False),
            ([True], [1], False, False),
            (None, None, True, True),
            ({"ids": ["1", "2"]}, {"ids": [1, 2]}, False, True),
            ('{"ids": [1]}', {"ids": ["1"]}, False, True),
            (None, " Null", False, True),
            ("NaN", "nan", False, True),
            ("007", 7, False, False),
            (1, 1.0, True, True),
            ("Order A-1", {"contains": "order"}, False, True),
            (123, {"contains": "12"}, False, True),
            (["a", {"n": 1}], {"contains": {"n": 1}}, True, True),
            ({"a": 1, "b": 2}, {"contains": {"a": 1}}, True, True),
            ("A-12", {"matches": "^A-[0-9]+$"}, True, True),
            (12, {"matches": "^12$"}, False, True),
            (None, {"any": True}, True, True),
            (9.994, {"approx": 9.99, "tolerance": 0.01}, True, True),
            ("9.994", {"approx": 9.99, "tolerance": 0.01}, False, True),
            (True, {"approx": 1, "tolerance": 1}, False, False),
            (0.4, {"approx": 0.3, "tolerance": 0.1}, True, True),
            (10**400, {"approx": 0.3, "tolerance": 0.1}, False, False),
            ("1e999", {"approx": 0.3, "tolerance": 0.1}, False, False),
            ("select  a,b from T;", {"sql": "SELECT a, b\nFROM t"}, True, True),
            ("select 'x'", {"sql": "SELECT 'X'"}, False, True),
            ("select ab", {"sql": "select a b"}, False, False),
            ({"contains": "a"}, {"equals": {"contains": "a"}}, True, True),
            ([{"id": "A-1"}], [{"id": {"contains": "A"}}], True, True),
        ],
    )
    def test_arguments_and_matchers(self, value: object, wanted: object, fits: bool, fits_loosely: bool) -> None:
        made = [call("find", x=value)]
        assert (failures_of(made, calls=[ExpectedCall("orders", "find", {"x": wanted})]) == []) is fits
        forbidden = [ForbiddenCall("orders", "find", {"x": wanted})]
        assert (failures_of(made, never_called=forbidden) != []) is fits_loosely

    @pytest.mark.parametrize(
        ("order", "passes"), [("ab", True), ("xaxbx", True), ("ba", False), ("bab", True), ("aab", True)]
    )
    def test_the_order(self, order: str, passes: bool) -> None:
        wanted = [ExpectedCall("orders", "a"), ExpectedCall("orders", "b")]
        assert (failures_of([call(tool) for tool in order], calls=wanted, ordered=True) == []) is passes
        assert failures_of([call(tool) for tool in order], calls=wanted) == []

    def test_calls_in_another_order_are_shown(self) -> None:
        wanted = [ExpectedCall("orders", "a", {}, 2), ExpectedCall("orders", "b")]
        (failure,) = failures_of([call("a"), call("b"), call("a")], calls=wanted, ordered=True)
        assert failure == (
            "calls: made in another order\n"
            "  expected: orders.a(), 2 times, orders.b()\n"
            "  actual:   orders.a(), orders.b(), orders.a()"
        )

    def test_a_call_that_was_refused_fulfils_nothing(self) -> None:
        refused = {**call("get_order", id="A"), "refused": "orders_invalid_argument: no"}
        (failure,) = failures_of([refused], calls=[ExpectedCall("orders", "get_order", {"id": "A"})])
        assert failure == (
            "calls: orders.get_order was refused\n"
            "  expected: orders.get_order(id='A')\n"
            "  actual:   orders.get_order(id='A') (refused: orders_invalid_argument: no)"
        )
        once, never = (ExpectedCall("orders", "get_order", {}, times) for times in (1, 0))
        assert failures_of([refused, call("get_order", id="A")], calls=[once]) == []
        assert failures_of([refused], calls=[never]) != []
        order = [ExpectedCall("orders", "a"), ExpectedCall("orders", "get_order")]
        made = [refused, call("a"), call("get_order")]
        assert failures_of(made, calls=order, ordered=True) == []
        assert failures_of(made[::-1], calls=order, ordered=True) != []

    def test_many_calls_are_cut(self) -> None:
        (failure,) = failures_of([call("b")] * 5000, calls=[ExpectedCall("orders", "a")])
        assert failure.endswith("orders.b, orders.b and 4990 more")


class TestNeverCalled:
    @pytest.mark.parametrize(
        ("forbidden", "passes"),
        [
            (ForbiddenCall("orders", "cancel"), False),
            (ForbiddenCall("orders"), False),
            (ForbiddenCall("orders", "cancel", {"id": "A"}), False),
            (ForbiddenCall("orders", "cancel", {"id": "a\u200b"}), False),
            (ForbiddenCall("orders", "cancel", {"id": "B"}), True),
            (ForbiddenCall("orders", "refund"), True),
            (ForbiddenCall("mail"), True),
        ],
    )
    def test_which_calls(self, forbidden: ForbiddenCall, passes: bool) -> None:
        assert (failures_of([call("cancel", id="A")], never_called=[forbidden]) == []) is passes

    @pytest.mark.parametrize(
        ("tool", "arguments", "passes"),
        [
            ("cancel", {"id": "a"}, False),
            ("orders_cancel", {"id": "A"}, False),
            ("mcp__orders__cancel", {"id": "A"}, False),
            ("cancel", None, False),
            ("cancel", {"id": "B"}, True),
            ("reorders_cancel", {"id": "A"}, True),
        ],
    )
    def test_a_call_that_only_spans_tell_of_counts(
        self, tool: str, arguments: dict[str, object] | None, passes: bool
    ) -> None:
        forbidden = (ForbiddenCall("orders", "cancel", {"id": "A"}),)
        actual = {"calls": [], "other_calls": [{"tool": tool, "arguments": arguments}]}
        failures = EvalExpectedOutput(never_called=forbidden).matches(actual)[1]
        assert [line.partition("\n")[0] for line in failures] == (
            [] if passes else [f"never_called: orders.{tool} (in its spans) was called"]
        )

    def test_an_attempt_that_was_refused_counts(self) -> None:
        refused = {**call("cancel", id="A"), "refused": "no"}
        (failure,) = failures_of([refused], never_called=[ForbiddenCall("orders", "cancel")])
        assert failure.endswith("actual:   orders.cancel(id='A') (refused: no)")

    def test_the_call_is_shown(self) -> None:
        assert failures_of([call("cancel", id="A")], never_called=[ForbiddenCall("orders")]) == [
            "never_called: orders.cancel was called\n  expected: never orders.*()\n  actual:   orders.cancel(id='A')"
        ]
