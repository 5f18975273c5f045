"""Fields of a dataclass that is read from a file: their keys, defaults, documentation, checks and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def setting(
    default: T, doc: str, check: Callable[[Any], str | None] | None = None, schema: Mapping[str, Any] | None = None
) -> T:
    """A field with a default. doc, check and schema: the metadata that `files.validation` describes."""
    metadata = {"doc": doc, "check": check, "schema": schema or {}}
    given: Any = default
    kept: Any = {"default_factory": given.copy} if isinstance(given, dict) else {"default": given}
    result: T = field(**kept, metadata=metadata)
    return result


def number(default: T, doc: str, minimum: float, maximum: float | None = None, *, above: bool = False) -> T:
    """A number from `minimum` (above it, if `above`) to `maximum`."""
    lower = f"above {minimum}" if above else f"at least {minimum}"
    limits = lower if maximum is None else f"{lower} and at most {maximum}"

    def check(value: float) -> str | None:
        is_low = value <= minimum if above else value < minimum
        shown = int(value) if value == int(value) else value
        return f"must be {limits}, not {shown}" if is_low or (maximum is not None and value > maximum) else None

    schema = {"exclusiveMinimum" if above else "minimum": minimum, "maximum": maximum}
    return setting(default, doc, check, {name: limit for name, limit in schema.items() if limit is not None})


def not_blank(value: str) -> str | None:
    """A check: the text holds more than white space."""
    return "must not be blank" if not value or value.isspace() else None


def distinct_texts(values: Sequence[str]) -> str | None:
    """A check: none of the texts is blank, or there twice."""
    if not all(map(str.strip, values)):
        return "holds an empty text; write it, or remove it"
    return "holds the same text twice; remove one" if len(set(values)) < len(values) else None


def field_key(field: Field[Any]) -> str | None:
    """The name of a dataclass field in the file; None where the file does not hold it."""
    key: str | None = field.metadata.get("key", field.name) if field.init else None
    return key


def is_required(field: Field[Any]) -> bool:
    """Whether the file must hold the field: it has no default."""
    return field.default is MISSING and field.default_factory is MISSING


def default_of(field: Field[Any]) -> Any:
    """The value of a field that the file leaves out; None for a required one too."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default


def none_is_default(record: Any) -> None:
    """For `__post_init__` of a frozen dataclass: who passes None in Python means the default."""
    kind: Any = type(record)
    for each in _with_default(kind):
        if getattr(record, each.name) is None:
            object.__setattr__(record, each.name, default_of(each))


@cache
def _with_default(record: type) -> tuple[Field[Any], ...]:
    return tuple(each for each in fields(record) if default_of(each) is not None)
