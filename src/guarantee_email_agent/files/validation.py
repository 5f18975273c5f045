"""From what YAML gives (dicts, lists, scalars) to frozen dataclasses, with every problem named at once.

A dataclass is its own schema: the annotations are the types, the defaults the defaults. Field metadata adds
`key` (another name in the file; None: not in the file at all), `doc` (one sentence for people), `check` (a callable
that takes the value and returns what is wrong with it, or None, or raises ProblemsError) and `schema` (more JSON schema
keywords).
Supported types: str, int, float, bool, Path, Literal, tuple[T, ...], Mapping[str, T], dataclasses, `X | None`, object.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass, replace
from functools import cache
from itertools import repeat
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from guarantee_email_agent.files.problems import (
    KeyPath,
    Problem,
    ProblemsError,
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


def setting(
    default: T, doc: str, check: Callable[[Any], str | None] | None = None, schema: Mapping[str, Any] | None = None
) -> T:
    """A field with a default. doc, check and schema: the metadata that is described above."""
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
        return f"must be {limits}, not {value:.15g}" if is_low or (maximum is not None and value > maximum) else None

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


def matching(pattern: str, wanted: str) -> Callable[[str], str | None]:
    """A check: the whole text fits a regular expression. wanted: what it must be, in words."""
    return lambda value: None if re.fullmatch(pattern, value) else f"must be {wanted}, not {value!r}"


def all_matching(pattern: str, wanted: str) -> Callable[[Iterable[str]], str | None]:
    """The same of each of several texts."""

    def check(values: Iterable[str]) -> str | None:
        wrong = next((value for value in values if not re.fullmatch(pattern, value)), None)
        return None if wrong is None else f"must list {wanted}, not {wrong!r}"

    return check


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
    with_default = _with_default(kind)
    if None in map(getattr, repeat(record), with_default):
        for name, each in with_default.items():
            if getattr(record, name) is None:
                object.__setattr__(record, name, default_of(each))


@cache
def _with_default(record: type) -> dict[str, Field[Any]]:
    return {each.name: each for each in fields(record) if default_of(each) is not None}


def build(
    cls: type[T], data: object, given: Mapping[str, Any] | None = None, reserved_prefix: str | None = None
) -> T | list[Problem]:
    """A `cls` from the parsed document `data`, or all problems: in the order of the fields, unknown keys last.

    given: values for fields that the file does not hold (`key` None). reserved_prefix: with it the document may have
    further keys, except for those that begin so; without it none.
    """
    problems: list[Problem] = []
    record: type = cls
    value = _record_reader(record)(data, (), problems, given, reserved_prefix)
    return problems or value


# (value, path of the parent, own key, problems) -> the value in its type; anything once a problem is noted
_Reader = Callable[[Any, KeyPath, str | int, list[Problem]], Any]
_RecordReader = Callable[[object, KeyPath, list[Problem], Mapping[str, Any] | None, str | None], Any]

_MAPPING: Final = "a mapping of keys to values"
_BOOLEAN_WORDS: Final = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}


class _FieldReader(NamedTuple):
    name: str
    exact: type | None  # the type whose values need no reader
    read: _Reader
    check: Callable[[Any], str | None] | None
    required: bool


@cache
def _record_reader(cls: type) -> _RecordReader:
    annotations = get_type_hints(cls)
    readers: dict[str, _FieldReader] = {}  # by the key in the file
    for each in fields(cls):
        if (key := field_key(each)) is not None:
            annotation, check = annotations[each.name], each.metadata.get("check")
            exact, reader = _exact_type(annotation), _reader(annotation)
            readers[key] = _FieldReader(each.name, exact, reader, check, is_required(each))
    needed = frozenset(key for key, reader in readers.items() if reader.required)

    def read(
        data: object, path: KeyPath, problems: list[Problem], given: Mapping[str, Any] | None, reserved: str | None
    ) -> Any:
        if data is None and not needed:  # a section whose keys are all commented out
            data = {}
        if type(data) is not dict:
            problems.append(mismatch(path, _MAPPING, data))
            return None
        values: dict[str, Any] = dict(given) if given else {}
        before = len(problems)
        for key in filter(needed.union(data).__contains__, readers):  # in the order of the fields
            if key not in data:
                problems.append(missing_key(key, path, () if reserved is None else data))
                continue
            name, exact, reader, check, required = readers[key]
            value = data[key]
            if type(value) is not exact:
                noted = len(problems)
                value = reader(value, path, key, problems)
                if len(problems) != noted:
                    continue
            if check is not None and (value is not None or required):
                try:
                    wrong = check(value)
                except ProblemsError as error:
                    problems += _moved(error, (*path, key))
                else:
                    if wrong:
                        problems.append(Problem((*path, key), "value", wrong))
            values[name] = value
        if not data.keys() <= readers.keys():
            others = [key for key in data if key not in readers]
            problems.extend(unknown_key(key, path, readers) for key in others if _is_problem(key, reserved))
        if len(problems) != before:
            return None
        try:
            return cls(**values)
        except ProblemsError as error:
            problems += _moved(error, path)
            return None
        except ValueError as error:  # what a dataclass checks over several fields
            problems.append(Problem(path, "value", str(error)))
            return None

    return read


def _moved(error: ProblemsError, path: KeyPath) -> list[Problem]:
    return [replace(problem, path=(*path, *problem.path)) for problem in error.problems]


def _is_problem(key: object, reserved: str | None) -> bool:
    """Whether a document may not have a key that the dataclass does not know."""
    return reserved is None or not isinstance(key, str) or key.startswith(reserved)


def _exact_type(annotation: Any) -> type | None:
    return annotation if annotation in (str, int, bool) else None


def _reader(annotation: Any) -> _Reader:
    """The reader for one annotation. Raises TypeError for a type that no file can hold: a bug in the dataclass."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if annotation in (object, Any):
        return lambda value, _parent, _key, _problems: value
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
    return lambda value, parent, key, problems: read_record(value, (*parent, key), problems, None, None)


def _items(annotation: Any, container: type) -> _Reader:
    exact, read_item = _exact_type(annotation), _reader(annotation)

    def read(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
        if type(value) is not list:
            hint = "; write [] for none, or remove the key" if value is None else ""
            problems.append(mismatch((*parent, key), "a list", value, hint))
            return None
        path = (*parent, key)
        items = [
            item if type(item) is exact else read_item(item, path, index, problems) for index, item in enumerate(value)
        ]
        return container(items)

    return read


def _mapping(annotation: Any) -> _Reader:
    exact, read_item = _exact_type(annotation), _reader(annotation)

    def read(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
        if type(value) is not dict:
            hint = "; write {} for none, or remove the key" if value is None else ""
            problems.append(mismatch((*parent, key), _MAPPING, value, hint))
            return None
        for name in value:
            if type(name) is not str:
                problems.append(non_text_key(name, (*parent, key)))
                return None
        path = (*parent, key)
        return {
            name: item if type(item) is exact else read_item(item, path, name, problems) for name, item in value.items()
        }

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


def _scalar(
    fits: Callable[[Any], bool],
    expected: str,
    hint: Callable[[object], str],
    convert: Callable[[Any], Any] = lambda value: value,
) -> _Reader:
    def read(value: Any, parent: KeyPath, key: str | int, problems: list[Problem]) -> Any:
        if fits(value):
            return convert(value)
        problems.append(mismatch((*parent, key), expected, value, hint(value)))
        return None

    return read


def _boolean_hint(value: object) -> str:
    meant = _BOOLEAN_WORDS.get(value.lower()) if isinstance(value, str) else None
    return f"; write {meant} without quotes" if meant else ""


_SCALARS: Final[dict[Any, _Reader]] = {
    str: _text,
    Path: _path,
    int: _scalar(lambda value: type(value) is int, "a whole number", unquote_hint),
    float: _scalar(lambda value: type(value) in (int, float) and isfinite(value), "a number", unquote_hint, float),
    bool: _scalar(lambda value: type(value) is bool, "true or false", _boolean_hint),
}
