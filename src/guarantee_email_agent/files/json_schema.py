"""JSON Schema 2020-12 of a dataclass, from the same annotations and metadata that `files.validation` reads files by."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

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
