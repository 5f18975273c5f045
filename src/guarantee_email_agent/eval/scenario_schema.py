"""The JSON schema of scenario files, which editors complete and check them by.

`python -m guarantee_email_agent.eval.scenario_schema` prints it; with a path it writes that file.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from guarantee_email_agent.eval.models import EvalTestCase, MockResponses
from guarantee_email_agent.eval.tool_mocks import ENTRY_KEYS, ToolAnswer
from guarantee_email_agent.files.validation import default_of, field_key, is_required

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_SCALARS: Final[dict[Any, str]] = {
    str: "string",
    Path: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    types.NoneType: "null",
}


def json_schema(cls: type, title: str | None = None) -> dict[str, Any]:
    """The schema of files that `validation.build(cls, …)` reads; the same input gives the same dict, in the same order.

    title: what an editor calls such a file; the class's name if None.
    """
    return {"$schema": _DIALECT, "title": title or cls.__name__, **_record(cls)}


def _record(cls: type) -> dict[str, Any]:
    annotations = get_type_hints(cls)
    by_key = {key: field for field in fields(cls) if (key := field_key(field)) is not None}
    required = [key for key, field in by_key.items() if is_required(field)]
    schema: dict[str, Any] = {}
    if cls.__doc__ and not cls.__doc__.startswith(f"{cls.__name__}("):  # dataclass makes one up where there is none
        schema["description"] = " ".join(cls.__doc__.split("\n\n")[0].split())
    schema["type"] = "object" if required else ["object", "null"]  # an empty section stands for all its defaults
    schema["properties"] = {key: _property(field, annotations[field.name]) for key, field in by_key.items()}
    return schema | ({"required": required} if required else {}) | {"additionalProperties": False}


def _property(field: Field[Any], annotation: Any) -> dict[str, Any]:
    schema = _type(annotation)
    if doc := field.metadata.get("doc"):
        schema = {"description": doc, **{name: value for name, value in schema.items() if name != "description"}}
    default = default_of(field)
    if default is not None and not is_dataclass(default):
        schema["default"] = _plain(default)
    return {**schema, **field.metadata.get("schema", {})}


def _type(annotation: Any) -> dict[str, Any]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is Union or origin is types.UnionType:
        return _union([_type(member) for member in arguments])
    if origin in (tuple, list):
        return {"type": "array", "items": _type(arguments[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _type(arguments[1]) or True}
    if isinstance(annotation, type) and is_dataclass(annotation):
        return _record(annotation)
    return {}


def _union(members: list[dict[str, Any]]) -> dict[str, Any]:
    """`{"type": [a, b]}` where that says it all, which editors show better than `anyOf`."""
    if all(set(member) == {"type"} for member in members):
        return {"type": [member["type"] for member in members]}
    if len(members) == 2 and members[1] == {"type": "null"}:
        member = members[0]
        if "enum" in member:
            return {"enum": [*member["enum"], None]}
        if isinstance(member.get("type"), str):
            return {**member, "type": [member["type"], "null"]}
        if "null" in member.get("type", ()):
            return member
    return {"anyOf": members}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def scenario_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 for a scenario file in one YAML document.

    A schema sees one document at a time, and editors ask it about the first one only. So a file of two documents, which
    loads as well, is told in an editor that the second half is missing.
    """
    schema = json_schema(EvalTestCase, "Scenario of guarantee-email-agent")
    email_and_mocks = schema["properties"]["input"]["properties"]
    email_and_mocks["mock_responses"] |= _mock_schema()
    schema["properties"]["input"] |= {"type": "object", "anyOf": [{"required": ["email"]}, {"required": ["task"]}]}
    schema["properties"]["expected_output"]["type"] = "object"
    required = ["email_sent", "ticket_created", "scenario_instruction_used"]  # as for our own agent
    said = {name: {"not": {"type": "null"}} for name in required}
    schema["if"] = {"properties": {"input": {"required": ["email"]}}}
    schema["then"] = {"properties": {"expected_output": {"required": required, "properties": said}}}
    return schema


def schema_text() -> str:
    """The schema as its file holds it."""
    return json.dumps(scenario_schema(), indent=2, ensure_ascii=False) + "\n"


def _mock_schema() -> dict[str, Any]:
    whole = json_schema(MockResponses)
    services = whole["properties"]
    for service in services.values():
        service.pop("default", None)
        service["type"] = "object"
    del services["warranty_api"]["additionalProperties"]  # facts may have any further keys
    del services["warranty_api"]["properties"]["status"]["default"]
    return {"properties": services, "additionalProperties": _tools_schema()}


def _tools_schema() -> dict[str, Any]:
    """Of an MCP server that is not ours: its tools, each with an answer, or entries that say when and what."""
    entry = {
        key: value for key, value in json_schema(ToolAnswer).items() if key in ("properties", "additionalProperties")
    }
    blocks = {"type": "array", "contains": {"type": "object", "required": ["type"]}}
    keys: list[dict[str, Any]] = [{"required": [key]} for key in sorted(ENTRY_KEYS)]
    is_entry = {"anyOf": [*keys, {"required": ["content"], "properties": {"content": blocks}}]}
    by_arguments = {"type": "array", "items": {"type": "object", "required": ["when"], **entry}, "minItems": 1}
    return {
        "description": "Another MCP server: its tools by name, each with its answer.",
        "type": "object",  # empty for one that is declared
        "additionalProperties": {
            "anyOf": [{"type": ["object", "string"]}, by_arguments],
            "if": {"type": "object", **is_entry},
            "then": entry,
        },
    }


if __name__ == "__main__":
    if sys.argv[1:]:
        Path(sys.argv[1]).write_text(schema_text(), encoding="utf-8")
    else:
        sys.stdout.write(schema_text())
