"""Servers that a suite declares: what a scenario says of them is checked, and the mocks refuse what they would."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.mocks import MockLookUpClient
from guarantee_email_agent.eval.served_mocks import ServedMocks
from guarantee_email_agent.eval.tool_mocks import ToolMocks
from guarantee_email_agent.eval.verdict_inputs import input_files
from guarantee_email_agent.utils.errors import EvalError, IntegrationError

ADD = {
    "name": "add_event",
    "description": "Puts an event into the calendar.",
    "input_schema": {
        "type": "object",
        "properties": {"title": {"type": "string"}, "day": {"$ref": "#/$defs/day"}, "minutes": {"type": "integer"}},
        "required": ["title", "day"],
        "$defs": {"day": {"type": "string", "pattern": "^[0-9]{4}-"}},
    },
    "output_schema": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
}
LIST = {"name": "list_events", "input_schema": {"type": "object"}}


@pytest.fixture
def declare(tmp_path: Path) -> Any:
    def write(*tools: dict[str, Any], text: str | None = None) -> Path:
        (tmp_path / "servers").mkdir(exist_ok=True)
        file = tmp_path / "servers" / "calendar.yaml"
        file.write_text(json.dumps({"tools": tools}) if text is None else text)
        return tmp_path

    return write


def scenario(mocks: object, **expected: object) -> dict[str, object]:
    return {
        "scenario_id": "calendar_001",
        "description": "d",
        "category": "calendar",
        "created": "2026-11-01",
        "input": {
            "email": {"subject": "s", "body": "b", "from": "kim@example.com", "received": "2026-11-01T10:00:00Z"},
            "mock_responses": mocks,
        },
        "expected_output": {"email_sent": False, "ticket_created": False, **expected},
    }


def load(folder: Path, mocks: object, **expected: object) -> Any:
    return EvalLoader(any_agent=True).validate_test_case(scenario(mocks, **expected), folder / "calendar_001.yaml")


def call_of(**arguments: object) -> list[dict[str, object]]:
    return [{"server": "calendar", "tool": "add_event", "arguments": arguments}]


@pytest.mark.parametrize(
    ("mocks", "expected", "says"),
    [
        (
            {"calendar": {"add_evnt": {}}},
            {},
            "is no tool that servers/calendar.yaml declares – did you mean 'add_event'?",
        ),
        ({"calender": {"add_event": {}}}, {}, "is not declared in servers/ – did you mean 'calendar'?"),
        ({"calendar": {"add_event": [{"when": {"titel": "a"}, "error": "timeout"}]}}, {}, "[0].when.titel is no"),
        ({"calendar": {"add_event": {"when": {"minutes": "5"}, "error": "timeout"}}}, {}, "'5' is not of type 'int"),
        ({"calendar": {"add_event": {"id": "A"}}}, {}, "no answer of it by the server's output_schema (id: 'A' is not"),
        ({"calendar": {"add_event": {"answers": [{"id": 1}, "text"]}}}, {}, "'text' is not of type 'object'"),
        ({"calendar": {"add_event": {"content": [{"type": "image"}]}}}, {}, "is content, but the server declares"),
        ({"calendar": {}}, {"calls": call_of(titel="a")}, "did you mean 'title'?"),
        ({"calendar": {}}, {"never_called": call_of(day="monday")}, "'monday' does not match"),
        ({"calendar": {}}, {"calls": [{"server": "calendar", "tool": "add"}]}, "'add' is no tool of calendar"),
        (
            {"calendar": {}},
            {"never_called": [{"server": "calendar", "arguments": {"titel": "a"}}]},
            "titel is no argument",
        ),
    ],
)
def test_what_a_scenario_says_of_a_declared_server(declare: Any, mocks: object, expected: Any, says: str) -> None:
    with pytest.raises(EvalError) as caught:
        load(declare(ADD), mocks, **expected)
    assert says in caught.value.message


def test_what_fits_is_accepted(declare: Any) -> None:
    folder = declare(ADD, LIST)
    mocks = {
        "calendar": {
            "add_event": [
                {"when": {"day": {"contains": "2026"}, "minutes": 5}, "answer": {"id": 1}},
                {"when": {}, "answer": "No room", "is_error": True},
            ]
        }
    }
    never = [{"server": "calendar", "tool": "list_events", "arguments": {"limit": 1}}]
    case = load(folder, mocks, calls=call_of(title={"any": True}), never_called=never)
    assert list(case.servers["calendar"].by_name) == ["add_event", "list_events"]
    kinds = {kind: name for (kind, name), _ in input_files(load_config(cwd=folder, environ={}), folder, "command:x")}
    assert kinds["server"] == "servers/calendar.yaml"


def test_the_nearest_folder_of_the_suite_declares_a_server(declare: Any, tmp_path: Path) -> None:
    declare(ADD)
    below = tmp_path / "suite" / "below"
    below.mkdir(parents=True)
    loader = EvalLoader(any_agent=True)

    def tools(suite: Path) -> list[str]:
        loader.scenario_files(f"{suite}/")
        servers = loader.validate_test_case(
            scenario({"calendar": {"list_events": {}}}), below / "calendar_001.yaml"
        ).servers
        return [tool.name for server in servers.values() for tool in server.tools]

    for suite in tmp_path, tmp_path / "suite", below:  # a part is judged as the whole
        with pytest.raises(EvalError, match="did you mean 'add_event'"):
            tools(suite)
        files = dict(input_files(load_config(cwd=below, environ={}), suite, "command:x"))
        assert str(tmp_path / "servers" / "calendar.yaml") in files.values()
    (tmp_path / "suite" / "_manifest.yml").touch()
    assert tools(tmp_path / "suite") == tools(below) == []
    (tmp_path / "servers").rename(tmp_path / "suite" / "servers")
    declare(LIST)
    with pytest.raises(EvalError, match="did you mean 'add_event'"):
        tools(tmp_path)
    (tmp_path / "servers").rename(below / "servers")
    assert tools(tmp_path) == tools(below) == ["list_events"]
    (below / "servers" / "calendar.yaml").rename(below / "servers" / "calendar.yml")
    with pytest.raises(EvalError, match=r"calendar\.yml would not be read; call it calendar\.yaml"):
        tools(below)


@pytest.mark.parametrize(
    ("tool", "says"),
    [
        ({"name": "a b", "input_schema": {"type": "object"}}, "tools[0].name (line 1) is no name of a tool"),
        ({"name": "a"}, "tools[0].input_schema (line 1) is missing"),
        ({"name": "a", "input_schema": {}}, "must have type: object"),
        ({"name": "a", "input_schema": {"type": "object", "properties": {"b": {"type": "text"}}}}, "is no JSON schema"),
        ({"name": "a", "input_schema": {"type": "object", "properties": {"b": {"pattern": "("}}}}, "is no JSON schema"),
        (
            {"name": "a", "input_schema": {"type": "object", "$ref": "https://x.example/s"}},
            "refers to https://x.example/s",
        ),
        ({"name": "a", "input_schema": {"type": "object", "$ref": "#/$defs/b"}}, "refers to #/$defs/b"),
        ({"name": "a", "input_schema": {"type": "object", "$dynamicRef": "#b"}}, "refers to #b"),
        ({"name": "a", "input_schema": {"type": "object", "$schema": "https://x.example/d"}}, "dialect that is not"),
        ({"name": "a", "input_schema": {"type": "object", "$schema": 7}}, "dialect that is not"),
        (LIST, "declares the tool 'list_events' twice"),
    ],
)
def test_a_file_that_declares_no_server(declare: Any, tool: dict[str, Any], says: str) -> None:
    with pytest.raises(EvalError) as caught:
        load(declare(tool, *([LIST] if tool is LIST else [])), {"calendar": {}})
    assert caught.value.code == "eval_server_invalid"
    assert says in caught.value.message
    with pytest.raises(EvalError, match=r"servers/calendar\.yaml: .*line 2"):
        load(declare(text="tools: ["), {"calendar": {}})


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [({"$ref": "#"}, {}), ({"properties": {"day": {"type": "number", "multipleOf": 0.01}}}, {"day": 10**400})],
)
def test_a_call_that_a_schema_cannot_be_applied_to_is_refused(declare: Any, schema: Any, arguments: Any) -> None:
    case = load(declare({"name": "again", "input_schema": {"type": "object", **schema}}), {"calendar": {"again": {}}})
    assert "nested too deep" in str(case.servers["calendar"].by_name["again"].refusal(arguments))


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"until": {"type": "string"}, "day": {"$ref": "#/properties/until"}}},
        {
            "$id": "https://x.example/s",
            "$defs": {"day": {"type": "string"}},
            "properties": {"day": {"$ref": "s#/$defs/day"}},
        },
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"d": {"$id": "#d", "type": "string"}}}
        | {"properties": {"day": {"$ref": "#d"}, "as": {"const": {"$ref": "no reference"}}}},
    ],
)
def test_schemas_refer_to_their_own_parts(declare: Any, schema: Any) -> None:
    folder = declare({"name": "add_event", "input_schema": {"type": "object", **schema}})
    load(folder, {"calendar": {}}, calls=call_of(day="5"))
    with pytest.raises(EvalError, match="5 is not of type 'string'"):
        load(folder, {"calendar": {}}, calls=call_of(day=5))


def test_a_value_is_judged_without_what_depends_on_others(declare: Any) -> None:
    when = {"if": {"properties": {"title": {"const": "a"}}}, "then": {"properties": {"day": {"type": "integer"}}}}
    folder = declare({"name": "add_event", "input_schema": {"type": "object", "required": ["title"], **when}})
    load(folder, {"calendar": {}}, calls=call_of(day="5"))


def test_the_mock_has_all_tools_and_refuses_what_the_schema_does(declare: Any) -> None:
    case = load(declare(ADD, LIST), {"calendar": {"add_event": {"id": 1}}})
    mocks = ServedMocks(case)
    assert [tool.name for tool in mocks.servers["calendar"].declarations()] == ["add_event", "list_events"]

    def call(tool: str, **arguments: object) -> str:
        result = asyncio.run(mocks.servers["calendar"].dispatch(tool, arguments))
        return " ".join(part.text for part in result.content)

    assert "add_event: 'day' is a required property" in call("add_event", title="a")
    assert "does not match" in call("add_event", title="a", day="monday")
    assert mocks.tools.unknown == []
    assert call("add_event", title="a", day="2026-01-01") == '{"id":1}'
    assert [each.refused for each in mocks.tools.calls] == [True, True, False]
    assert "calendar.list_events is not mocked" in call("list_events")
    assert len(mocks.tools.unknown) == 1

    look_up = MockLookUpClient("calendar", "add_event", "title", ToolMocks(case.input.mock_responses, case.servers))
    with pytest.raises(IntegrationError) as caught:
        asyncio.run(look_up.look_up("a"))
    assert caught.value.code == "calendar_invalid_argument"
