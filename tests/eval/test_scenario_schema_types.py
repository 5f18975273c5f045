from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from guarantee_email_agent.eval.scenario_schema import json_schema


@dataclass(frozen=True, slots=True)
class Part:
    """One part.

    More about it.
    """

    size: float = field(default=1.5, metadata={"doc": "Size in metres.", "schema": {"exclusiveMinimum": 0}})


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing that
    people edit."""

    name: str = field(metadata={"key": "called", "doc": "What people call it."})
    kind: Literal["a", "b"]
    mode: Literal["x"] | None = None
    nick: str | None = None
    words: tuple[str, ...] = ("one",)
    extra: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    part: Part = field(default_factory=Part, metadata={"doc": "The part."})
    other: Part | None = None
    where: Path = Path("here")
    file: str | None = field(default=None, metadata={"key": None})


def properties() -> dict[str, Any]:
    return json_schema(Thing)["properties"]


def test_top() -> None:
    schema = json_schema(Thing, "A thing's file")
    assert list(schema) == [
        "$schema", "title", "description", "type", "properties", "required", "additionalProperties"
    ]  # fmt: skip
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert (schema["title"], schema["description"]) == ("A thing's file", "A thing that people edit.")
    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert schema["required"] == ["called", "kind"]


def test_types() -> None:
    found = properties()
    assert found["called"] == {"description": "What people call it.", "type": "string"}
    assert found["kind"] == {"enum": ["a", "b"]}
    assert found["mode"] == {"enum": ["x", None]}
    assert found["nick"] == {"type": ["string", "null"]}
    assert found["words"] == {"type": "array", "items": {"type": "string"}, "default": ["one"]}
    assert found["extra"] == {"type": "object", "additionalProperties": True, "default": {}}
    assert found["where"] == {"type": "string", "default": "here"}
    assert found["headers"]["additionalProperties"] == {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
    }


def test_section_whose_fields_all_have_defaults_may_be_empty() -> None:
    assert properties()["part"] == {
        "description": "The part.",
        "type": ["object", "null"],
        "properties": {
            "size": {"description": "Size in metres.", "type": "number", "default": 1.5, "exclusiveMinimum": 0}
        },
        "additionalProperties": False,
    }
    assert properties()["other"]["description"] == "One part."
