"""Servers that a suite declares: `servers/NAME.yaml` beside the scenarios has their tools, as the real ones list them.

A call that a schema does not allow is refused, and what a scenario says of a declared tool is checked on loading.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.eval.call_checks import has_matcher
from guarantee_email_agent.files.problems import (
    KeyPath,
    Problem,
    dotted_path,
    join_problems,
    listed,
    locate_problems,
)
from guarantee_email_agent.files.text_file import InputFileError, read_text
from guarantee_email_agent.files.validation import build
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.runlog.suite_manifest import SERVERS_FOLDER
from guarantee_email_agent.utils.distribution import require_extra
from guarantee_email_agent.utils.text import printable, truncate

if TYPE_CHECKING:
    from jsonschema.exceptions import SchemaError, ValidationError
    from jsonschema.protocols import Validator
    from referencing import Specification

SERVER_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,127}")
NO_TOOL_NAME: Final = "is no name of a tool: letters, digits, '_', '-', '.', '/', at most 128"
MAX_BYTES: Final = 1 << 22
_MAX_PROBLEMS: Final = 5
_MAX_SHOWN: Final = 200
_COMPOSED: Final = ("$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "unevaluatedProperties")


def check_schema(schema: Mapping[str, Any]) -> str | None:
    """What is wrong with a tool's schema; None if nothing is. One that refers to what is elsewhere is refused."""
    from jsonschema.exceptions import SchemaError

    if schema.get("type") != "object":
        return "must have type: object"
    if (dialect := schema.get("$schema")) is not None and _specification(dialect) is None:
        return f"is of a dialect that is not known here, {_shown(repr(dialect))}"
    try:
        validator = _validator(schema)
        validator.check_schema(schema, format_checker=validator.FORMAT_CHECKER)
    except SchemaError as error:
        return f"is no JSON schema: {_described(error)}"
    except RecursionError:
        return "is nested too deep"
    return next((f"refers to {_shown(ref)}, which is not in it" for ref in _broken_references(schema)), None)


def _validator(schema: Mapping[str, Any]) -> Validator:
    """One that fetches nothing."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    validator: Validator = validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())
    return validator


def _specification(dialect: object) -> Specification[Any] | None:
    """Of a `$schema`; None for one that is not known."""
    from referencing.jsonschema import UnknownDialect, specification_with

    try:
        return specification_with(dialect) if isinstance(dialect, str) else None
    except UnknownDialect:
        return None


def _broken_references(schema: Mapping[str, Any]) -> Iterator[str]:
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    whole = (_specification(schema.get("$schema")) or DRAFT202012).create_resource(schema)
    waiting = [(whole, Registry[Any]().resolver_with_root(whole))]
    while waiting:
        part, resolver = waiting.pop()
        for key in ("$ref", "$dynamicRef"):
            if isinstance(part.contents, Mapping) and (ref := part.contents.get(key)) is not None:
                try:
                    resolver.lookup(ref)
                except Unresolvable:
                    yield ref
        waiting += [(each, resolver.in_subresource(each)) for each in part.subresources()]


@dataclass(frozen=True)
class DeclaredTool:
    """A tool as the server lists it."""

    name: str = field(metadata={"check": lambda value: None if TOOL_NAME.fullmatch(value) else NO_TOOL_NAME})
    input_schema: Mapping[str, object] = field(metadata={"check": check_schema})
    description: str = ""
    output_schema: Mapping[str, object] | None = field(default=None, metadata={"check": check_schema})

    @cached_property
    def arguments(self) -> tuple[str, ...] | None:
        """Their names; None where it may take others."""
        properties, further = self.input_schema.get("properties"), self.input_schema.get("additionalProperties")
        if further or not self.input_schema.keys().isdisjoint(_COMPOSED) or (properties is None and further is None):
            return None
        return tuple(properties) if isinstance(properties, Mapping) else ()

    def refusal(self, arguments: Mapping[str, Any]) -> str | None:
        """Why a call with these arguments is refused; None if it is not."""
        return _mismatch(self.input_schema, arguments)

    def find_value_problems(self, arguments: Mapping[str, object], path: KeyPath) -> Iterator[Problem]:
        """Values that no call could have. What a matcher fits is not known here."""
        for name, value in arguments.items():
            wrong = None if has_matcher(value) else _mismatch(self.input_schema, {name: value}, "properties")
            if wrong is not None:
                yield Problem((*path, name), "value", f"is no value of it by the server's schema ({wrong})")

    def answer_problem(self, answer: object) -> str | None:
        """Why the server could not answer so; None if it could."""
        if self.output_schema is None:
            return None
        wrong = _mismatch(self.output_schema, answer if isinstance(answer, str | Mapping) else {"result": answer})
        return f"is no answer of it by the server's output_schema ({wrong})" if wrong else None


def _mismatch(schema: Mapping[str, object], value: object, keyword: str | None = None) -> str | None:
    """keyword: the only one at the top of the schema that counts; None for all."""
    try:
        errors = [
            each
            for each in _validator(schema).iter_errors(value)
            if keyword in (None, *[*each.absolute_schema_path][:1])
        ]
    except (RecursionError, OverflowError):
        return "it is nested too deep, or holds a number too large to be checked"
    errors.sort(key=lambda error: error.json_path)
    return "; ".join(map(_described, errors[:_MAX_PROBLEMS])) or None


def _described(error: SchemaError | ValidationError) -> str:
    place = error.json_path.removeprefix("$").removeprefix(".")
    return _shown(f"{place}: {error.message}" if place else error.message)


def _shown(text: str) -> str:
    return printable(truncate(text, _MAX_SHOWN))


@dataclass(frozen=True)
class DeclaredServer:
    """The file `servers/NAME.yaml`."""

    tools: tuple[DeclaredTool, ...]

    def __post_init__(self) -> None:
        names = [tool.name for tool in self.tools]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"declares the tool {twice!r} twice; keep one")

    @cached_property
    def by_name(self) -> dict[str, DeclaredTool]:
        return {tool.name: tool for tool in self.tools}


def load_declared_server(path: str) -> DeclaredServer:
    """Raises ValueError with all problems in one line, and ConfigurationError where the extra mcp is missing."""
    name = f"{SERVERS_FOLDER}/{os.path.basename(path)}"
    require_extra("mcp", name, "jsonschema")
    try:
        found = _read_server(read_text(path, MAX_BYTES))
    except InputFileError as error:
        raise ValueError(f"{name}: {error.message}") from None
    if isinstance(found, str):
        raise ValueError(f"{name}: {found}")
    return found


@lru_cache(maxsize=64)  # all scenarios of a suite share them, and a schema takes a millisecond to check
def _read_server(text: str) -> DeclaredServer | str:
    documents = load_documents(text)
    problems = build(DeclaredServer, documents[0] if len(documents) == 1 else documents or None)
    if isinstance(problems, DeclaredServer):
        return problems
    located = locate_problems(problems[:_MAX_PROBLEMS], text)
    return join_problems(
        f"{dotted_path(each.path) or 'the file'}{f' (line {each.line})' if each.line else ''} {each.message}"
        for each in located
    )


def load_declared_servers(folders: Sequence[str], names: Iterable[str]) -> dict[str, DeclaredServer]:
    """Those that a scenario mocks. folders: where each may be declared, the nearest first.

    Raises as `load_declared_server` does.
    """
    declared: dict[str, DeclaredServer] = {}
    for name in names:
        endings = (".yaml", ".yml", ".yaml.txt")
        paths = (os.path.join(folder, SERVERS_FOLDER, name + ending) for folder in folders for ending in endings)
        if SERVER_NAME.fullmatch(name) and (path := next(filter(os.path.lexists, paths), None)):
            if not path.endswith(".yaml"):
                raise ValueError(f"{SERVERS_FOLDER}/{os.path.basename(path)} would not be read; call it {name}.yaml")
            declared[name] = load_declared_server(path)
    return declared


def find_unknown_arguments(
    arguments: Iterable[str], known: Sequence[str] | None, tool: str, path: KeyPath
) -> Iterator[Problem]:
    """known: None where the tool may take others."""
    for name in arguments:
        if known is not None and name not in known:
            yield Problem((*path, name), "value", f"is no argument of {tool}{listed(name, known)}")
