"""From what YAML gives (dicts, lists, scalars) to frozen dataclasses, with every problem named at once.

A dataclass is its own schema: the annotations are the types, the defaults the defaults. Field metadata adds
`key` (another name in the file; None: not in the file at all), `doc` (one sentence for people), `check` (a callable
that takes the value and returns what is wrong with it, or None) and `schema` (more JSON schema keywords).
Supported types: str, int, float, bool, Path, Literal, tuple[T, ...], Mapping[str, T], dataclasses, `X | None`, object.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from guarantee_email_agent.files.fields import field_key, is_required
from guarantee_email_agent.files.problems import (
    KeyPath,
    Problem,
    as_yaml,
    mismatch,
    missing_key,
    non_text_key,
    not_text,
    suggestion,
    unknown_key,
    unquote_hint,
)

T = TypeVar("T")


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


# (value, path of the parent, own key, problems) -> the value in its type; anything once a problem is noted
_Reader = Callable[[Any, KeyPath, str | int, list[Problem]], Any]
_RecordReader = Callable[[object, KeyPath, list[Problem], Mapping[str, Any] | None, str | None], Any]


# One field: its key in the file, its name, the type whose values need no reader, its reader, its check.
_FieldReader = tuple[str, str, type | None, _Reader, Callable[[Any], str | None] | None]

_MAPPING: Final = "a mapping of keys to values"
_BOOLEAN_WORDS: Final = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
_RECORD_READERS: Final[dict[type, _RecordReader]] = {}


def _record_reader(cls: type) -> _RecordReader:
    """The reader of one dataclass, made once."""
    if cls not in _RECORD_READERS:
        _RECORD_READERS[cls] = _make_record_reader(cls)
    return _RECORD_READERS[cls]


def _make_record_reader(cls: type) -> _RecordReader:
    readers, required = _field_readers(cls)
    known = {reader[0]: None for reader in readers}

    def read(
        data: object, path: KeyPath, problems: list[Problem], given: Mapping[str, Any] | None, reserved: str | None
    ) -> Any:
        if type(data) is not dict:
            if data is None and not required:  # a section whose keys are all commented out
                data = {}
            else:
                problems.append(mismatch(path, _MAPPING, data))
                return None
        values: dict[str, Any] = dict(given) if given else {}
        found = 0
        before = len(problems)
        for key, name, exact, reader, check in readers:
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
                problems.append(missing_key(key, path, () if reserved is None else data))
        if found != len(data):
            others = [key for key in data if key not in known]
            problems.extend(unknown_key(key, path, known) for key in others if _is_problem(key, reserved))
        if len(problems) != before:
            return None
        try:
            return cls(**values)
        except ValueError as error:  # what a dataclass checks over several fields
            problems.append(Problem(path, "value", str(error)))
            return None

    return read


def _is_problem(key: object, reserved: str | None) -> bool:
    """Whether a document may not have a key that the dataclass does not know."""
    return reserved is None or not isinstance(key, str) or key.startswith(reserved)


def _field_readers(cls: type) -> tuple[list[_FieldReader], frozenset[str]]:
    annotations = get_type_hints(cls)
    readers: list[_FieldReader] = []
    required = set()
    for field in fields(cls):
        key = field_key(field)
        if key is not None:
            annotation = annotations[field.name]
            readers.append((key, field.name, _exact_type(annotation), _reader(annotation), field.metadata.get("check")))
            if is_required(field):
                required.add(key)
    return readers, frozenset(required)


def _exact_type(annotation: Any) -> type | None:
    """The type whose values need no reader at all."""
    return annotation if annotation in (str, int, bool) else None


def _reader(annotation: Any) -> _Reader:
    """The reader for one annotation. Raises TypeError for a type that no file can hold: a bug in the dataclass."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if annotation is object or annotation is Any:
        return _any_value
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
    exact = _exact_type(annotation)
    read_item = _reader(annotation)

    def read(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
        if type(value) is not list:
            hint = "; write [] for none, or remove the key" if value is None else ""
            problems.append(mismatch((*parent, key), "a list", value, hint))
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
            problems.append(mismatch((*parent, key), _MAPPING, value, hint))
            return None
        for name in value:
            if type(name) is not str:
                problems.append(non_text_key(name, (*parent, key)))
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
    expected = " or ".join(", ".join(as_yaml(choice) for choice in choices).rsplit(", ", 1))

    def read(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
        for choice in choices:
            if type(value) is type(choice) and value == choice:
                return value
        problems.append(mismatch((*parent, key), expected, value, suggestion(value, choices), "value"))
        return None

    return read


def _any_value(value: Any, _parent: KeyPath, _key: str | int, _problems: list[Problem]) -> Any:
    return value


def _text(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
    if type(value) is str:
        return value
    problems.append(not_text((*parent, key), value))
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
    problems.append(mismatch((*parent, key), "a whole number", value, unquote_hint(value)))
    return None


def _number(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
    if type(value) in (int, float) and isfinite(value):
        return float(value)
    problems.append(mismatch((*parent, key), "a number", value, unquote_hint(value)))
    return None


def _boolean(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
    if type(value) is bool:
        return value
    meant = _BOOLEAN_WORDS.get(value.lower()) if type(value) is str else None
    hint = f"; write {meant} without quotes" if meant else ""
    problems.append(mismatch((*parent, key), "true or false", value, hint))
    return None


_SCALARS: Final[dict[Any, _Reader]] = {str: _text, int: _integer, float: _number, bool: _boolean, Path: _path}
