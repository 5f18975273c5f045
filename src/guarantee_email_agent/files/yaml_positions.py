"""Where things stand in a YAML text: a walk over its nodes with their lines. Slow, for error messages only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]

# libyaml's parser where PyYAML was built with it: the same events, ten times as fast.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Node:
    """One value: `line` and `column` (from 1) are those of its key or list item, or of the value where it has none."""

    path: Path
    line: int
    column: int
    scalar: str | None  # as written, without quotes; None for a list, a mapping or an alias
    tag: str | None
    duplicate_of: int | None  # the line of an equal key earlier in the same mapping
    unusable_key: bool  # the key is a list or a mapping


@dataclass(slots=True)
class _Frame:
    path: Path
    is_mapping: bool
    key_mark: Any = None  # where it starts, if the collection is itself a key
    index: int = 0
    key: tuple[str, Any] | None = None
    unusable_key: bool = False
    lines: dict[str, int] = field(default_factory=dict)


def nodes(text: str) -> Iterator[Node]:
    """Every value of every document, parents first, in the order of the text; ends quietly where the text is broken."""
    stack: list[_Frame] = []
    for event in events(text):
        if isinstance(event, yaml.NodeEvent):
            yield from _enter(stack, event)
        elif isinstance(event, yaml.CollectionEndEvent):
            frame = stack.pop()
            if frame.key_mark is not None:
                stack[-1].key, stack[-1].unusable_key = ("?", frame.key_mark), True


def events(text: str) -> Iterator[Any]:
    """PyYAML's parse events; ends quietly where the text is broken. Never recurses, so depth does not matter."""
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except (yaml.YAMLError, ValueError):
        return


def _enter(stack: list[_Frame], event: Any) -> Iterator[Node]:
    scalar = event.value if isinstance(event, yaml.ScalarEvent) else None
    parent = stack[-1] if stack else None
    is_collection = isinstance(event, yaml.CollectionStartEvent)
    is_mapping = isinstance(event, yaml.MappingStartEvent)
    if parent is None or not parent.is_mapping or parent.key is not None:
        node = _node(parent, event, scalar)
        yield node
        if is_collection:
            stack.append(_Frame(node.path, is_mapping))
    elif is_collection:
        stack.append(_Frame(("?",), is_mapping, event.start_mark))
    else:
        parent.key = (scalar if scalar is not None else f"*{event.anchor}", event.start_mark)


def _node(parent: _Frame | None, event: Any, scalar: str | None) -> Node:
    path: Path = ()
    mark, duplicate_of, unusable = event.start_mark, None, False
    if parent is not None and parent.key is not None:
        key, mark = parent.key
        path = (*parent.path, key)
        unusable = parent.unusable_key
        if not unusable:
            duplicate_of = parent.lines.get(key)
            parent.lines.setdefault(key, mark.line + 1)
        parent.key, parent.unusable_key = None, False
    elif parent is not None:
        path = (*parent.path, parent.index)
        parent.index += 1
    return Node(path, mark.line + 1, mark.column + 1, scalar, getattr(event, "tag", None), duplicate_of, unusable)
