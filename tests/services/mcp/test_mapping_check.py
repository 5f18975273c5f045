from typing import Any

import pytest

from guarantee_email_agent.config.mcp_server import (
    TICKETING_TOOLS,
    WARRANTY_TOOLS,
    AnswerSource,
    ArgumentTarget,
    NotFound,
    ToolMapping,
)
from guarantee_email_agent.services.mcp.mapping_check import find_misfits
from guarantee_email_agent.services.mcp.mcp_connection import OfferedTool

INPUT = {
    "type": "object",
    "properties": {
        "serial": {"type": "string"},
        "filter": {"$ref": "#/$defs/Filter"},
        "mode": {"anyOf": [{"enum": ["exact", "like"]}, {"type": "null"}]},
        "limit": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "free": {"type": "object"},
    },
    "required": ["serial"],
    "$defs": {
        "Filter": {"type": "object", "properties": {"year": {"type": "number"}, "of": {}}, "required": ["year"]},
    },
}
OUTPUT = {
    "type": "object",
    "properties": {
        "rows": {
            "type": "array",
            "items": {"type": "object", "properties": {"state": {"type": "string"}, "ends": {"type": "object"}}},
        }
    },
}


def misfits(output: dict[str, Any] | None = OUTPUT, schema: Any = INPUT, **fields: Any) -> list[str]:
    fields.setdefault("arguments", {"serial_number": "serial"})
    fields.setdefault("result", {"status": "rows[only].state"})
    mapping = ToolMapping(tool="find_device", **fields)
    offered = {"find_device": OfferedTool("find_device", schema, output)}
    found = find_misfits({"check_warranty": mapping}, WARRANTY_TOOLS, offered)
    return [f"{'.'.join(misfit.path)}: {misfit.message}" for misfit in found]


def test_mapping_that_fits_has_no_misfit() -> None:
    constants = {"filter.year": 2026, "mode": "exact", "limit": 1, "tags[0]": "a", "free.any.thing": {"x": 1}}
    assert misfits(constants=constants, not_found=NotFound(empty="rows")) == []


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"arguments": {"serial_number": "seriel"}},
            "arguments.serial_number: find_device has no argument seriel – did",
        ),
        ({"constants": {"filter.yaer": 1}}, "constants.filter.yaer: find_device has no argument filter.yaer – did you"),
        ({"constants": {"filter.of": 1}}, "arguments: find_device needs filter.year, which nothing is passed for"),
        ({"arguments": {"serial_number": "limit"}}, "limit of find_device is integer, and not string"),
        (
            {"constants": {"mode": "fuzzy"}},
            "constants.mode: mode of find_device is none of its values; they are exact, like",
        ),
        ({"constants": {"limit": "2"}}, "constants.limit: limit of find_device is integer, and not string"),
        ({"constants": {"tags.x": 1}}, "constants.tags.x: find_device has no argument tags.x"),
        ({"result": {"status": "rows[0].stat"}}, "result.status: the answer of find_device has no rows[0].stat"),
        ({"result": {"status": "rows[0].ends"}}, "rows[0].ends in the answer of find_device is object, and not"),
        ({"not_found": NotFound(empty="records")}, "not_found.empty: the answer of find_device has no records"),
    ],
)
def test_what_does_not_fit_is_told_by_its_key(fields: dict[str, Any], told: str) -> None:
    assert any(told in each for each in misfits(**fields)), misfits(**fields)


BY_NUMBER = {"properties": {"serial": {"type": "string"}}}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {}}, key: [BY_NUMBER, {"required": ["x"]}], "$defs": {"Number": BY_NUMBER}}
        for key in ("anyOf", "oneOf", "allOf")
    ]
    + [
        {"properties": {"x": {}}, "$ref": "#/$defs/Number", "$defs": {"Number": BY_NUMBER}},
        {"properties": {"x": {}}, "patternProperties": {"^s": {"type": "string"}}},
        {"$ref": "#number", "$defs": {"Number": BY_NUMBER | {"$anchor": "number"}}},
    ],
    ids=["anyOf", "oneOf", "allOf", "$ref", "patternProperties", "$anchor"],
)
def test_argument_may_be_declared_elsewhere_than_among_the_properties(schema: dict[str, Any]) -> None:
    assert misfits(schema=schema) == []


@pytest.mark.parametrize("key", ["anyOf", "oneOf", "allOf"])
def test_list_of_what_is_needed_allows_no_further_argument(key: str) -> None:
    schema = {"properties": {"serial": {}}, key: [{"required": ["serial"]}]}
    (told,) = misfits(schema=schema, arguments={"serial_number": "seriel"})
    assert "find_device has no argument seriel" in told


def test_tool_that_is_gone_is_told_with_those_there_are() -> None:
    found = find_misfits(
        {"check_warranty": ToolMapping(tool="find_device")},
        WARRANTY_TOOLS,
        {"find_devices": OfferedTool("find_devices", {}), "\x1b[31m": OfferedTool("\x1b[31m", {})},
    )
    (misfit,) = found
    assert "'find_device'" in misfit.message
    assert "did you mean 'find_devices'?" in misfit.message
    assert "\x1b" not in misfit.message


def test_translated_values_are_held_against_the_schema() -> None:
    schema = {"properties": {"urgency": {"type": "integer", "enum": [1, 2]}}}
    mapping = ToolMapping(
        "create", {"priority": ArgumentTarget("urgency", values={"normal": 2, "high": 9, "low": "x"})}
    )
    found = find_misfits({"create_ticket": mapping}, TICKETING_TOOLS, {"create": OfferedTool("create", schema)})
    assert [misfit.message for misfit in found] == [
        "urgency of create is none of its values; they are 1, 2",
        "urgency of create is integer, and not string",
    ]


def test_fields_of_items_are_looked_for_in_the_declared_answer() -> None:
    output = {"properties": {"result": {"type": "array", "items": {"properties": {"id": {"type": "string"}}}}}}
    source = AnswerSource("result", each={"ticket_id": "id", "idempotency_key": "text"})
    mapping = ToolMapping("search", {"idempotency_key": "query"}, result={"tickets": source})
    offered = {"search": OfferedTool("search", {}, output)}
    (misfit,) = find_misfits({"find_ticket": mapping}, TICKETING_TOOLS, offered)
    assert misfit.path == ("find_ticket", "result", "tickets", "each", "idempotency_key")


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": {"serial": True}},
        {"properties": {"serial": {"$ref": "https://elsewhere.example/schema"}}},
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"properties": {"serial": {"$ref": "#/properties/serial"}}},
        {"properties": [], "required": 3},
        {"properties": {"serial": {"type": ["string", 4], "enum": "x"}}, "required": [[], {}]},
    ],
)
def test_schema_that_is_odd_or_hostile_does_no_harm(schema: dict[str, Any]) -> None:
    assert isinstance(misfits(schema=schema, output=schema), list)
