"""From what YAML gives (dicts, lists, scalars) to frozen dataclasses, with every problem named at once.

A dataclass is its own schema: the annotations are the types, the defaults the defaults. Field metadata adds
`key` (another name in the file; None: not in the file at all), `doc` (one sentence for people), `check` (a callable
that takes the value and returns what is wrong with it, or None) and `schema` (more JSON schema keywords).
Supported types: str, int, float, bool, Path, Literal, tuple[T, ...], Mapping[str, T], dataclasses, `X | None`, object.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a document; `message` leaves out the place, which is `path` (see `dotted`)."""

    path: KeyPath
    kind: Literal["missing", "unknown", "type", "value"]
    message: str
    quote: bool = False  # a plain scalar stands where text must: quoting it is the remedy
    line: int | None = None  # from 1; filled by `in_source`


def build(
    cls: type[T], data: object, given: Mapping[str, Any] | None = None, reserved_prefix: str | None = None
) -> T | list[Problem]:
    """A `cls` from the parsed document `data`, or all problems: in the order of the fields, unknown keys last.

    given: values for fields that the file does not hold (`key` None). reserved_prefix: with it the document may have
    further keys, except for those that begin so; without it none.
    """
    problems: list[Problem] = []
    value = _record_reader(cls)(data, (), problems, given, reserved_prefix)
    return problems or value


def dotted(path: KeyPath) -> str:
    """A path as people write it: `("input", "to", 0)` is `input.to[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def in_source(problems: list[Problem], text: str) -> list[Problem]:
    """The problems with their lines in `text`, and with what to quote exactly as its author wrote it."""
    from guarantee_email_agent.files import yaml_positions  # PyYAML takes 80 ms to import; only when something is wrong

    wanted = {problem.path[:length] for problem in problems for length in range(1, len(problem.path) + 1)}
    nodes: dict[KeyPath, yaml_positions.Node] = {}
    for node in yaml_positions.nodes(text):
        if node.path in wanted:
            nodes.setdefault(node.path, node)
            if len(nodes) == len(wanted):
                break
    located = []
    for problem in problems:
        path, message = problem.path, problem.message
        if problem.quote and path in nodes and (scalar := nodes[path].scalar):
            message = _quote_it(scalar)
        while path and path not in nodes:
            path = path[:-1]
        # The root has no key of its own: a key that is missing at the top has no line.
        line = nodes[path].line if path else None
        located.append(replace(problem, message=message, line=line))
    return located


# (value, path of the parent, own key, problems) -> the value in its type; anything once a problem is noted
_Reader = Callable[[Any, KeyPath, str | int, list[Problem]], Any]
_RecordReader = Callable[[object, KeyPath, list[Problem], Mapping[str, Any] | None, str | None], Any]


# One field: its key in the file, its name, the type whose values need no reader, its reader, its check.
_Slot = tuple[str, str, type | None, _Reader, Callable[[Any], str | None] | None]

_RECORD_READERS: Final[dict[type, _RecordReader]] = {}


def field_key(field: Field[Any]) -> str | None:
    """The name of a dataclass field in the file; None where the file does not hold it."""
    key: str | None = field.metadata.get("key", field.name) if field.init else None
    return key


def is_required(field: Field[Any]) -> bool:
    """Whether the file must hold the field, since it has no default."""
    return field.default is MISSING and field.default_factory is MISSING


def default_of(field: Field[Any]) -> Any:
    """The value of a field that the file leaves out; None for a required one too."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return None if field.default is MISSING else field.default


def _record_reader(cls: type) -> _RecordReader:
    """The reader of one dataclass, made once."""
    if cls not in _RECORD_READERS:
        _RECORD_READERS[cls] = _make_record_reader(cls)
    return _RECORD_READERS[cls]


def _make_record_reader(cls: type) -> _RecordReader:
    slots, required = _slots(cls)
    known = {slot[0]: None for slot in slots}

    def read(
        data: object, path: KeyPath, problems: list[Problem], given: Mapping[str, Any] | None, reserved: str | None
    ) -> Any:
        if type(data) is not dict:
            if data is None and not required:  # a section whose keys are all commented out
                data = {}
            else:
                problems.append(Problem(path, "type", f"must be a mapping of keys to values, {_but(data)}"))
                return None
        values: dict[str, Any] = dict(given) if given else {}
        found = 0
        before = len(problems)
        for key, name, exact, reader, check in slots:
            if key in data:
                found += 1
                value = data[key]
                if type(value) is not exact:
                    noted = len(problems)
                    value = reader(value, path, key, problems)
                    if len(problems) != noted:
                        continue
                if check is not None and value is not None and (wrong := check(value)):
                    problems.append(Problem((*path, key), "value", wrong))
                values[name] = value
            elif key in required:
                problems.append(_missing(key, path, () if reserved is None else data))
        if found != len(data):
            others = [key for key in data if key not in known]
            problems.extend(_unknown(key, path, known) for key in others if _is_problem(key, reserved))
        if len(problems) != before:
            return None
        try:
            return cls(**values)
        except ValueError as error:  # what a dataclass checks over several fields
            problems.append(Problem(path, "value", str(error)))
            return None

    return read


def _slots(cls: type) -> tuple[list[_Slot], frozenset[str]]:
    annotations = get_type_hints(cls)
    slots: list[_Slot] = []
    required = set()
    for field in fields(cls):
        key = field_key(field)
        if key is not None:
            annotation = annotations[field.name]
            slots.append((key, field.name, _exact(annotation), _reader(annotation), field.metadata.get("check")))
            if is_required(field):
                required.add(key)
    return slots, frozenset(required)


def _exact(annotation: Any) -> type | None:
    """The type whose values need no reader at all."""
    return annotation if annotation in (str, int, bool) else None


def _reader(annotation: Any) -> _Reader:
    """The reader for one annotation. Raises TypeError for a type that no file can hold: a bug in the dataclass."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if annotation is object or annotation is Any:
        return _anything
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _literal(arguments)
    if origin is Union or origin is types.UnionType:
        return _union(arguments)
    if origin in (tuple, list) and arguments[1:] in ((), (...,)):
        return _items(arguments[0], origin)
    if isinstance(origin, type) and issubclass(origin, Mapping) and arguments[0] is str:
        return _mapping(arguments[1])
    if isinstance(annotation, type) and is_dataclass(annotation):
        return _record(annotation)
    raise TypeError(f"a field of type {annotation!r} cannot be read from a file")


def _record(cls: type) -> _Reader:
    read_record = _record_reader(cls)

    def read(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
        return read_record(value, (*parent, key), problems, None, None)

    return read


def _items(annotation: Any, container: type) -> _Reader:
    exact = _exact(annotation)
    read_item = _reader(annotation)

    def read(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
        if type(value) is not list:
            hint = "; write [] for none, or remove the key" if value is None else ""
            problems.append(Problem((*parent, key), "type", f"must be a list, {_but(value)}{hint}"))
            return None
        path = (*parent, key)
        return container(
            [
                item if type(item) is exact else read_item(item, path, index, problems)
                for index, item in enumerate(value)
            ]
        )

    return read


def _mapping(annotation: Any) -> _Reader:
    read_item = None if annotation in (object, Any) else _reader(annotation)

    def read(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
        if type(value) is not dict:
            hint = "; write {} for none, or remove the key" if value is None else ""
            problem = f"must be a mapping of keys to values, {_but(value)}{hint}"
            problems.append(Problem((*parent, key), "type", problem))
            return None
        for name in value:
            if type(name) is not str:
                problems.append(_key_is_no_text(name, (*parent, key)))
                return None
        if read_item is None:
            return value
        path = (*parent, key)
        return {name: read_item(item, path, name, problems) for name, item in value.items()}

    return read


def _union(members: tuple[Any, ...]) -> _Reader:
    """Picks the member by the value's own type, so that its messages stay those of one type."""
    others = [member for member in members if member is not types.NoneType]
    readers = [(_python_types(member), _reader(member)) for member in others]
    optional = len(others) < len(members)

    def read(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
        if value is None and optional:
            return None
        for accepted, reader in readers:
            if type(value) in accepted:
                return reader(value, parent, key, problems)
        return readers[0][1](value, parent, key, problems)

    return read


def _python_types(annotation: Any) -> tuple[type, ...]:
    """The types of parsed YAML values that an annotation takes."""
    origin = get_origin(annotation)
    if origin is Literal:
        return tuple({type(choice) for choice in get_args(annotation)})
    if origin in (tuple, list):
        return (list,)
    if annotation is Path:
        return (str,)
    if annotation is float:
        return (float, int)
    return (annotation,) if annotation in _SCALARS else (dict,)


def _literal(choices: tuple[Any, ...]) -> _Reader:
    shown = " or ".join(", ".join(_show(choice) for choice in choices).rsplit(", ", 1))

    def read(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
        for choice in choices:
            if type(value) is type(choice) and value == choice:
                return value
        problems.append(Problem((*parent, key), "value", f"must be {shown}, {_but(value)}{_nearest(value, choices)}"))
        return None

    return read


def _anything(value: Any, _parent: KeyPath, _key: str | int, _problems: list[Problem]) -> Any:
    return value


def _text(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
    if type(value) is str:
        return value
    path = (*parent, key)
    if type(value) in (int, float, bool):
        problems.append(Problem(path, "type", _quote_it(_show(value)), quote=True))
    else:
        problems.append(Problem(path, "type", f"must be text, {_but(value)}"))
    return None


def _path(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
    text = _text(value, parent, key, problems)
    if text == "" or (text is not None and "\0" in text):
        problems.append(Problem((*parent, key), "value", "must be a path, but is empty or holds a NUL"))
        return None
    return None if text is None else Path(text)


def _integer(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
    if type(value) is int:
        return value
    problems.append(Problem((*parent, key), "type", f"must be a whole number, {_but(value)}{_unquote(value)}"))
    return None


def _number(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
    if type(value) in (int, float) and isfinite(value):
        return float(value)
    problems.append(Problem((*parent, key), "type", f"must be a number, {_but(value)}{_unquote(value)}"))
    return None


def _boolean(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
    if type(value) is bool:
        return value
    wants = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
    meant = wants.get(value.lower()) if type(value) is str else None
    hint = f"; write {meant} without quotes" if meant else ""
    problems.append(Problem((*parent, key), "type", f"must be true or false, {_but(value)}{hint}"))
    return None


_SCALARS: Final[dict[Any, _Reader]] = {str: _text, int: _integer, float: _number, bool: _boolean, Path: _path}


def _but(value: object) -> str:
    """What stands there instead, cut to a length that fits a line."""
    if value is None:
        return "but is empty"
    if isinstance(value, dict):
        return "not a mapping"
    if isinstance(value, list):
        return "not a list"
    if isinstance(value, str):
        return f"not the text {value!r}" if len(value) <= 40 else f"not the text {value[:37]!r}…"
    return f"not {_show(value)}"


def _show(value: object) -> str:
    """A scalar as YAML has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def _quote_it(shown: str) -> str:
    kind = "the word" if shown.lower() in ("true", "false") else "the number"
    meaning = "true or false in YAML, not text" if kind == "the word" else "not text"
    return f'is {kind} {shown}, {meaning}; quote it: "{shown}"'


def _unquote(value: object) -> str:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return ""
        return "; remove the quotes"
    return ""


def _missing(key: str, path: KeyPath, others: Iterable[object]) -> Problem:
    """others: keys that are no problem by themselves, one of which may be meant."""
    near = _close_match(key, others)
    hint = f" – is it misspelled as {near!r}?" if near else ""
    return Problem((*path, key), "missing", f"is missing{hint}")


def _is_problem(key: object, reserved: str | None) -> bool:
    """Whether a document may not have a key that the dataclass does not know."""
    return reserved is None or not isinstance(key, str) or key.startswith(reserved)


def _unknown(key: object, path: KeyPath, known: Iterable[str]) -> Problem:
    if not isinstance(key, str):
        return _key_is_no_text(key, path)
    return Problem((*path, key), "unknown", f"unknown key {key!r}{_nearest(key, known, listing=True)}")


def _key_is_no_text(key: object, path: KeyPath) -> Problem:
    shown = _show(key)
    return Problem((*path, shown), "type", f'the key {shown} is not text; quote it: "{shown}"')


def _nearest(word: object, choices: Iterable[object], listing: bool = False) -> str:
    """` – did you mean …?`, or the known keys where nothing is near."""
    if near := _close_match(word, choices):
        return f" – did you mean {near!r}?"
    names = [choice for choice in choices if isinstance(choice, str)]
    return f"; known keys: {', '.join(names)}" if listing and names else ""


def _close_match(word: object, choices: Iterable[object]) -> str | None:
    from difflib import get_close_matches  # 2 ms, only when something is wrong

    names = {choice.casefold(): choice for choice in choices if isinstance(choice, str)}
    near = get_close_matches(word[:100].casefold(), names, n=1) if isinstance(word, str) else []
    return names[near[0]] if near else None
