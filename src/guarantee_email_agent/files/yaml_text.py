"""Plain data as YAML that people can read and compare: every text of several lines stands in lines of its own.

Only what JSON knows can be written. Every text is quoted or a block, so no reader takes one for anything else, and
`load_documents` gives back the very same data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_STEP: Final = "  "
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS_WITH_A_MEANING: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
# Control characters, and what some reader takes for a line break or a mark at the beginning of a file.
_NOT_IN_A_BLOCK: Final = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\u2028\u2029\ufeff\ufffe\uffff]|[\ud800-\udfff]")


def to_yaml(data: Mapping[str, Any]) -> str:
    """One document, with a line break at its end. Raises TypeError for what JSON does not know."""
    return "\n".join(_mapping(data, "")) + "\n"


def _mapping(data: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in data.items():
        if not isinstance(key, str):
            raise TypeError(f"the key {key!r} is no text")
        plain = _PLAIN_KEY.fullmatch(key) and key.lower() not in _WORDS_WITH_A_MEANING
        yield from _entry(f"{indent}{key if plain else _quoted(key)}:", value, indent)


def _sequence(items: Sequence[Any], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Mapping) and item:
            lines = _mapping(item, indent + _STEP)
            yield f"{indent}- {next(lines).lstrip(' ')}"
            yield from lines
        else:
            yield from _entry(f"{indent}-", item, indent)


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    """`head` and its value: behind it, or indented below."""
    if isinstance(value, Mapping) and value:
        yield head
        yield from _mapping(value, indent + _STEP)
    elif isinstance(value, list | tuple) and value:
        yield head
        yield from _sequence(value, indent + _STEP)
    elif isinstance(value, str) and "\n" in value.strip("\n") and not _NOT_IN_A_BLOCK.search(value):
        yield f"{head} |2{_chomping(value)}"
        for line in value.removesuffix("\n").split("\n"):
            yield f"{indent}{_STEP}{line}" if line else ""
    else:
        yield f"{head} {_scalar(value)}"


def _chomping(text: str) -> str:
    if not text.endswith("\n"):
        return "-"
    return "+" if text.endswith("\n\n") else ""


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, Mapping | list | tuple):
        return "{}" if isinstance(value, Mapping) else "[]"
    raise TypeError(f"{type(value).__name__} is nothing that JSON knows")


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return _NOT_IN_A_BLOCK.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)
