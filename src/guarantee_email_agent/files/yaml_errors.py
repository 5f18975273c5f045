"""What is wrong with a YAML text, in words for its author. Loaded only when something is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import yaml

from guarantee_email_agent.files.text_file import InputFileError

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


def nodes(text: str) -> Iterator[Node]:
    """Every value of every document, parents first, in the order of the text; ends quietly where the text is broken."""
    try:
        for root in yaml.compose_all(_as_pyyaml_reads(text), Loader=_LOADER):
            yield from _walk((), root, root, set())
    except (yaml.YAMLError, ValueError, RecursionError):
        return


def _walk(
    path: Path, node: Any, place: Any, seen: set[int], duplicate_of: int | None = None, *, unusable_key: bool = False
) -> Iterator[Node]:
    """place: the node whose line is that of the value."""
    is_scalar, mark = isinstance(node, yaml.ScalarNode), place.start_mark
    scalar = node.value if is_scalar else None
    yield Node(path, mark.line + 1, mark.column + 1, scalar, node.tag, duplicate_of, unusable_key)
    if id(node) in seen:  # an alias
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _walk((*path, index), item, item, seen)
    elif isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            is_usable = isinstance(key, yaml.ScalarNode)
            name = key.value if is_usable else "?"
            earlier = lines.get(name) if is_usable else None
            lines.setdefault(name, key.start_mark.line + 1)
            yield from _walk((*path, name), value, key, seen, earlier, unusable_key=not is_usable)


def events(text: str) -> Iterator[Any]:
    """PyYAML's parse events; ends quietly where the text is broken. Never recurses, so depth does not matter."""
    try:
        yield from yaml.parse(_as_pyyaml_reads(text), Loader=_LOADER)
    except (yaml.YAMLError, ValueError):
        return


def _as_pyyaml_reads(text: str) -> str:
    """A byte order mark is a blank to ryaml, but nothing at all to PyYAML."""
    return f" {text[1:]}" if text.startswith("\ufeff") else text


_POSITION: Final = re.compile(r" at line (\d+) column (\d+)")
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_Explanation = tuple[str, int, int]


def explain(text: str, error: ValueError) -> InputFileError:
    """The error of ryaml as one sentence with line and column that says what to do."""
    raw = str(error)
    for marker, explanation in _EXPLANATIONS.items():
        if marker in raw:
            if callable(explanation):
                return _error(*explanation(text, raw))
            return _error(explanation, *_position(raw, last=marker in _POSITION_IS_LAST))
    return _error(" ".join(_POSITION.sub("", raw).split()), *_position(raw))


def refuse_huge_expansion_and_depth(text: str, limit: int) -> None:
    """Raise InputFileError where the aliases of a text repeat its scalars to more than `limit` characters, or where it
    is nested too deep.

    Counted over the parser's events, so that nothing is expanded, and nothing beyond is read, in order to find out.
    """
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = [(None, 0)]
    for event in events(text):
        kind = type(event).__name__
        if kind in ("SequenceStartEvent", "MappingStartEvent"):
            open_nodes.append((event.anchor, 1))
            if len(open_nodes) > _DEEPEST + 1:
                raise _error(_TOO_DEEP, event.start_mark.line + 1, event.start_mark.column + 1)
            continue
        if kind == "ScalarEvent":
            anchor, size = event.anchor, len(event.value) + 1
        elif kind == "AliasEvent":
            anchor, size = None, sizes.get(event.anchor, 0)
        elif kind in ("SequenceEndEvent", "MappingEndEvent"):
            anchor, size = open_nodes.pop()
        else:
            continue
        if anchor is not None:
            sizes[anchor] = size
        outer_anchor, outer_size = open_nodes[-1]
        open_nodes[-1] = (outer_anchor, outer_size + size)
        if outer_size + size > limit:
            raise _error(_TOO_MANY_ALIASES, event.start_mark.line + 1, event.start_mark.column + 1)


def refuse_merges_and_tags(text: str) -> None:
    """Raise InputFileError for `<<` keys, which YAML 1.2 does not have, and for tags such as `!secret`."""
    for node in nodes(text):
        if node.path and node.path[-1] == "<<":
            raise _error("merge keys (<<) are not supported; write the keys out", node.line, node.column)
        if node.tag is not None and node.tag.startswith("!") and node.tag != "!":
            what = f"the tag {node.tag} is not supported; write plain text, or quote a value that starts with '!'"
            raise _error(what, node.line, node.column)


def _error(what: str, line: int, column: int) -> InputFileError:
    message = f"YAML does not parse (line {line}, column {column}): {what}"
    return InputFileError(message, "document_yaml_invalid", {"line": line, "column": column})


def _position(raw: str, last: bool = False) -> tuple[int, int]:
    """The first (or last) position that ryaml names; it leaves out line 1, column 1."""
    line, column = (_POSITION.findall(raw) or [(1, 1)])[-1 if last else 0]
    return int(line), int(column)


def _duplicate(text: str, raw: str) -> _Explanation:
    for node in nodes(text):
        if node.duplicate_of is not None:
            what = f"the key {str(node.path[-1])!r} stands twice (first on line {node.duplicate_of}); keep one"
            return what, node.line, node.column
    return ("the same key stands twice in one mapping; keep one", *_position(raw))


def _collection_as_key(text: str, raw: str) -> _Explanation:
    what = "a list or a mapping is used as a key; keys are plain text (quote a value that starts with '{' or '[')"
    for node in nodes(text):
        if node.unusable_key:
            return what, node.line, node.column
    return (what, *_position(raw))


def _bad_start(text: str, raw: str) -> _Explanation:
    line, column = _position(raw)
    character = "".join(text.split("\n")[line - 1 : line])[column - 1 : column]
    if character == "\t":
        return _TAB, line, column
    return f"a value cannot start with {character or 'this sign'!r}; put it in quotes", line, column


def _character_error(pattern: re.Pattern[str], message: str, text: str, raw: str) -> _Explanation:
    found = pattern.search(text)
    if found is None:
        return (message.format("here"), *_position(raw))
    before = text[: found.start()]
    return message.format(f"U+{ord(found[0]):04X}"), before.count("\n") + 1, len(before) - before.rfind("\n")


def _wide_integer(_text: str, raw: str) -> _Explanation:
    line, column = _position(raw)
    number = re.search(r"integer `(-?\d+)`", raw)
    name, example = (f"the number {number[1]}", f': "{number[1]}"') if number else ("this number", "")
    return f"{name} is too long for a number; if it is text, quote it{example}", line, column


_TAB: Final = "a tab is used for indentation; use spaces"
_DEEPEST: Final = 128  # that ryaml reads
_TOO_DEEP: Final = f"nested more than {_DEEPEST} levels deep; flatten it"
_TOO_MANY_ALIASES: Final = "aliases (*name) repeat their values too often; write the values out"
_COLON: Final = (
    "a ': ' where no key can stand; quote the value if it holds a colon, or check the indentation and the line above"
)
# The text that ryaml's message holds, and what it means; the first that fits counts.
_EXPLANATIONS: Final[dict[str, str | Callable[[str, str], _Explanation]]] = {
    "duplicate entry": _duplicate,
    "unhashable type": _collection_as_key,
    "surrogates not allowed": partial(_character_error, _SURROGATE, "{} is half a character; remove it"),
    "control characters are not allowed": partial(
        _character_error, _FORBIDDEN, "the control character {} is not allowed; remove it"
    ),
    "repetition limit": _TOO_MANY_ALIASES,
    "recursion limit": _TOO_DEEP,
    "invalid type: integer": _wide_integer,
    "unknown anchor": "this alias has no anchor (&name) before it; quote the value if its '*' is meant as text",
    "tab character": _TAB,
    "cannot start any token": _bad_start,
    "while scanning a quoted scalar": "the quote that opens here is never closed",
    "expected ',' or ']'": "the list that opens here with '[' lacks a ',' or its ']'",
    "expected ',' or '}'": "the mapping that opens here with '{' lacks a ',' or its '}'",
    "unknown escape": 'this escape is unknown; in double quotes write "\\\\" for a backslash',
    "mapping values are not allowed": _COLON,
    "could not find expected ':'": "this line is no 'key: value' pair; check it and its indentation",
    "expected '-' indicator": "a key stands where a list item ('- ') must; check the indentation",
    "sequence entries are not allowed": "a list item ('- ') cannot stand here; put it on a line of its own",
    "expected node content": "a value is missing here, or starts with a sign that YAML uses; quote it",
    "scanning an anchor": "'&' starts an anchor (&name); quote the value if it is meant as text",
    "scanning an alias": "'*' starts an alias (*name); quote the value if it is meant as text",
    " a tag": "'!' starts a tag; quote the value if it is meant as text",
    "scanning a directive": "'%' starts a directive; quote the value if it is meant as text",
    "invalid value": "the value does not fit its tag (!!int, !!float, !!bool or !!null); remove the tag",
    "did not find expected key": "a key ('name: value') must stand here; check the indentation",
}
# Where ryaml names two positions, the last of these is where the thing begins.
_POSITION_IS_LAST: Final = frozenset(
    {"while scanning a quoted scalar", "expected ',' or ']'", "expected ',' or '}'", "could not find expected ':'"}
)
