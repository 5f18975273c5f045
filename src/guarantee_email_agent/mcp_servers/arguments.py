"""A tool's arguments, checked against its input schema: flat objects, strict types, one clear line.

`jsonschema` would do it too, and takes 0.2 s to import. The keywords understood here are the ones in `_KEYWORDS`;
a schema with another one is refused when the server starts, so that nothing declared goes unchecked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_KEYWORDS = frozenset(
    {
        "type", "description", "default", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "format",
        "properties", "required", "additionalProperties",
    }
)  # fmt: skip
_NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "object": "an object",
}


class ArgumentError(Exception):
    """What is wrong with which argument. Quotes names and limits, never what a string holds."""


class ObjectSchema:
    """JSON Schema of an object whose properties are scalars, or objects of strings. Raises ValueError for any other."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
        self._required: tuple[str, ...] = tuple(schema.get("required", ()))
        for name, part in (("the input", schema), *self._properties.items()):
            unknown = part.keys() - _KEYWORDS
            if unknown or part.get("type") not in _NAMES:
                raise ValueError(f"schema of {name}: cannot check {sorted(unknown) or part.get('type')}")
        if schema["type"] != "object":
            raise ValueError("the schema of the input is not of type object")

    def check(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with defaults filled in. Raises ArgumentError."""
        for name in arguments:
            if name not in self._properties:
                known = ", ".join(self._properties) or "none"
                raise ArgumentError(f"unknown argument {name[:80]!r}; its arguments are {known}")
        for name in self._required:
            if name not in arguments:
                raise ArgumentError(f"the argument {name!r} is missing")
        checked: dict[str, Any] = {}
        for name, part in self._properties.items():
            if name in arguments:
                checked[name] = _checked(repr(name), arguments[name], part)
            elif "default" in part:
                checked[name] = part["default"]
        return checked


def _checked(name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    wanted = schema["type"]
    if not _is_a(value, wanted):
        raise ArgumentError(f"{name} must be {_NAMES[wanted]}, and is {_kind(value)}")
    if "enum" in schema and value not in schema["enum"]:
        raise ArgumentError(f"{name} must be one of {', '.join(map(str, schema['enum']))}")
    if wanted == "string":
        _check_string(name, value, schema)
    elif wanted in ("integer", "number"):
        if "minimum" in schema and value < schema["minimum"]:
            raise ArgumentError(f"{name} must be at least {schema['minimum']}, and is {value}")
        if "maximum" in schema and value > schema["maximum"]:
            raise ArgumentError(f"{name} must be at most {schema['maximum']}, and is {value}")
    elif wanted == "object":
        inner = schema.get("additionalProperties", {"type": "string"})
        return {key: _checked(f"{name}[{key[:80]!r}]", held, inner) for key, held in value.items()}
    return value


def _check_string(name: str, value: str, schema: Mapping[str, Any]) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"{name} holds a lone surrogate, which is no character") from None
    if len(value) < schema.get("minLength", 0):
        raise ArgumentError(f"{name} is too short: {len(value)} of at least {schema['minLength']} characters")
    if len(value) > schema.get("maxLength", math.inf):
        raise ArgumentError(f"{name} is too long: {len(value)} of at most {schema['maxLength']} characters")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        raise ArgumentError(f"{name} is not of the form {schema['pattern']}")


def _is_a(value: Any, wanted: str) -> bool:
    match value:
        case bool():
            return wanted == "boolean"
        case int():
            return wanted in ("integer", "number")
        case float():
            return wanted == "number" and math.isfinite(value)
        case str():
            return wanted == "string"
        case Mapping():
            return wanted == "object"
    return False


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a number" if math.isfinite(value) else "no finite number"
        case str():
            return "a string"
        case Mapping():
            return "an object"
    return "an array"
