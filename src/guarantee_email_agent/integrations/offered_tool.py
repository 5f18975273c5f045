"""A tool as its server declares it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from mcp_types import Tool


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """name, and the JSON schemas of its arguments and of its answer. read_only: whether it says that it only reads."""

    name: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    read_only: bool = False

    @classmethod
    def of(cls, tool: Tool) -> Self:
        read_only = tool.annotations is not None and tool.annotations.read_only_hint is True
        return cls(tool.name, tool.input_schema, tool.output_schema, read_only)

    @property
    def parameters(self) -> frozenset[str] | None:
        """The names of its arguments; None where it takes any."""
        properties = self.input_schema.get("properties")
        return frozenset(properties) if isinstance(properties, Mapping) else None

    @property
    def answer_types(self) -> dict[str, frozenset[str]]:
        """Of the fields with a plain `type`; what is put together of other schemas is known by the answers alone."""
        properties = (self.output_schema or {}).get("properties")
        found: dict[str, frozenset[str]] = {}
        for name, schema in properties.items() if isinstance(properties, Mapping) else ():
            match schema:
                case {"type": str(one)}:
                    found[name] = frozenset({one})
                case {"type": [*several]}:
                    found[name] = frozenset(map(str, several))
        return found
