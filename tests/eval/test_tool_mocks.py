from collections.abc import Mapping
from typing import Any

import pytest

from guarantee_email_agent.eval.tool_mocks import (
    MALFORMED_ANSWER,
    ToolMocks,
    UnknownCallError,
    find_tool_problems,
)
from guarantee_email_agent.files.problems import dotted_path

SHIPPED = {"status": "shipped", "carrier": "DHL"}


def orders(get_order: object) -> ToolMocks:
    mocks = {"orders": {"get_order": get_order}}
    assert list(find_tool_problems(mocks)) == []
    return ToolMocks(mocks)


def answers(mocks: ToolMocks, *arguments: Mapping[str, Any]) -> list[object]:
    return [mocks.answer("orders", "get_order", given).answer for given in arguments]


class TestAnswers:
    def test_one_answer_is_given_at_every_call(self) -> None:
        assert answers(orders(SHIPPED), {"id": "A"}, {}) == [SHIPPED, SHIPPED]

    def test_answers_in_turn_and_then_no_mock_knows_the_call(self) -> None:
        mocks = orders({"answers": [SHIPPED, ["Delivered."], 5]})
        assert answers(mocks, {}, {}, {}) == [SHIPPED, ["Delivered."], 5]
        with pytest.raises(UnknownCallError, match=r"orders\.get_order was called again after its last answer \(3\)"):
            answers(mocks, {})
        assert len(mocks.unknown) == 1

    def test_the_first_entry_that_fits_the_arguments(self) -> None:
        mocks = orders([{"when": {"id": "A"}, "answer": SHIPPED}, {"when": {}, "answer": {"status": "unknown"}}])
        assert answers(mocks, {"id": "B"}, {"id": "A", "verbose": True}) == [{"status": "unknown"}, SHIPPED]

    def test_the_answers_of_an_entry_come_in_turn(self) -> None:
        mocks = orders([{"when": {"id": "A"}, "answers": ["one", "two"]}, {"when": {}, "answer": "other"}])
        assert answers(mocks, {"id": "A"}, {}, {"id": "A"}, {}) == ["one", "other", "two", "other"]
        with pytest.raises(UnknownCallError, match="after its last answer"):
            answers(mocks, {"id": "A"})

    def test_an_answer_with_a_key_of_an_entry_stands_under_answer(self) -> None:
        assert answers(orders({"answer": {"error": "none", "when": "now"}}), {}) == [{"error": "none", "when": "now"}]

    def test_faults(self) -> None:
        mocks = orders(
            {"answers": [{"error": "timeout"}, {"error": "malformed"}, {"error": "slow", "answer": SHIPPED}]}
        )
        given = [mocks.answer("orders", "get_order", {}) for _ in range(3)]
        wanted = [(None, "timeout"), (MALFORMED_ANSWER, "malformed"), (SHIPPED, "slow")]
        assert [(each.answer, each.error) for each in given] == wanted

    @pytest.mark.parametrize(("server", "tool"), [("orders", "get_orders"), ("order", "get_order")])
    def test_a_tool_that_is_not_mocked_names_the_nearest_one(self, server: str, tool: str) -> None:
        mocks = orders(SHIPPED)
        with pytest.raises(UnknownCallError, match=r"is not mocked – did you mean 'orders\.get_order'\?"):
            mocks.answer(server, tool, {})
        assert len(mocks.unknown) == 1

    def test_services_of_our_own_agent_are_no_servers_with_tools(self) -> None:
        assert ToolMocks({"warranty_api": {"status": "valid"}, "gmail": {"error": "timeout"}}).servers == {}


class TestProblems:
    @pytest.mark.parametrize(
        ("value", "place", "wrong"),
        [
            (5, "", "must be an answer (a mapping or text); any other stands under answer, not 5"),
            (None, "", "but is empty"),
            *(
                (each, "", "answers: […] is given in turn, answer: […] is one")
                for each in ([], ["a"], [{"answer": "a"}])
            ),
            ([{"when": {}, "answer": "a"}, "b"], "[1]", "has no when, unlike others"),
            ({"when": {"id": "A"}}, "", "has no answer"),
            ({"when": {}, "anser": "a"}, ".anser", "did you mean 'answer'?"),
            ({"when": "A", "answer": "a"}, ".when", "must be a mapping"),
            ({"answers": []}, ".answers", "is an empty list"),
            ({"answers": ["a", {"when": {}, "answer": "a"}]}, ".answers[1]", "has neither when nor answers"),
            ({"answers": ["a"], "is_error": True}, ".answers", "fail each on its own"),
            ({"answer": "a", "answers": ["a"]}, "", "has answer and answers; keep one"),
            ({"content": [{"type": "image", "data": "?"}]}, ".content[0]", "is no base64"),
            ({"content": [{"type": "txt", "text": "a"}]}, ".content[0].type", "did you mean 'text'?"),
            ({"content": [{"type": "audio", "data": ""}]}, ".content[0]", "has no mimeType"),
            ({"error": "timout"}, ".error", "did you mean 'timeout'?"),
            ({"error": "slow"}, "", "is slow to give an answer; write which"),
            ({"error": "timeout", "answer": "a"}, ".answer", "is never given, since the tool fails (timeout)"),
            ({"a": {"b": float("nan")}}, ".a.b", "JSON does not have"),
            ({"a": [{1: "b"}]}, ".a[0].1", "is not text"),
        ],
    )
    def test_of_a_tool(self, value: object, place: str, wrong: str) -> None:
        (problem,) = find_tool_problems({"orders": {"get_order": value}})
        assert dotted_path(problem.path) == f"orders.get_order{place}"
        assert wrong in problem.message

    @pytest.mark.parametrize(
        ("server", "tools", "wrong"),
        [
            ("mail", {"send_reply": "sent"}, "did you mean 'gmail'?"),
            ("warranty", {"check_warranty": {}}, "did you mean 'warranty_api'?"),
            ("warrenty_api", {"status": "valid"}, "did you mean 'warranty_api'?"),
            ("orders", {}, "names no tool"),
            ("the orders", {"get": "a"}, "is no name of a server"),
            ("orders", {"error": "timeout"}, "a fault stands under the tool"),
            ("orders", {"get order": "a"}, "is no name of a tool"),
        ],
    )
    def test_of_a_server(self, server: str, tools: dict[str, object], wrong: str) -> None:
        (problem,) = find_tool_problems({server: tools})
        assert problem.path[0] == server
        assert wrong in problem.message

    def test_a_server_may_have_a_name_like_that_of_a_service(self) -> None:
        assert list(find_tool_problems({"marketing": {"get_campaign": {}}, "tickets": {"create": {}}})) == []
