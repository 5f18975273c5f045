"""One MCP server: how it is reached, and which of its tools stand for which of ours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from guarantee_email_agent.files.problems import (
    KeyPath,
    Problem,
    ProblemsError,
    missing_key,
    suggestion,
    unknown_key,
)
from guarantee_email_agent.files.validation import not_blank, setting
from guarantee_email_agent.utils.field_path import FieldPathError, parse_field_path, put_at
from guarantee_email_agent.utils.text import word_key

AnswerForm = Literal["text", "text_or_number", "list"]


@dataclass(frozen=True, slots=True)
class OwnTool:
    """One tool as we call it.

    arguments: what we pass, by name, with its type in JSON. needed: those that must reach the other server; another
    may be written off with null. answer: the fields that we read. required: those that an answer has to hold. items:
    the fields of each item of an answer that is a list. echoed: an argument that the answer may repeat, so that it can
    be seen to be about it. reads: a call changes nothing, so that a sample may be tried. further: we pass arguments of
    other names, too. joins: several arguments may go into one text. values: the words that a field may be, where it may
    not be any.
    """

    arguments: Mapping[str, str]
    needed: frozenset[str]
    answer: Mapping[str, AnswerForm] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    items: Mapping[str, AnswerForm] = field(default_factory=dict)
    echoed: str | None = None
    reads: bool = False
    further: bool = False
    joins: bool = False
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def look_up_tool(number: str, facts: Mapping[str, AnswerForm], statuses: tuple[str, ...]) -> OwnTool:
    """The tool of a look-up. number: what it is called. statuses: that the answer may hold, and then has to."""
    return OwnTool(
        arguments={number: "string"},
        needed=frozenset({number}),
        answer={"status": "text", **facts, "owner_email": "text", number: "text"},
        required=frozenset({"status"} if statuses else ()),
        echoed=number,
        reads=True,
        values={"status": (*(statuses or ("found",)), "not_found", "other")},
    )


WARRANTY_TOOLS: Final = {
    "check_warranty": look_up_tool(
        "serial_number", {"expiration_date": "text", "coverage": "text"}, ("valid", "expired")
    )
}

_TICKET: Final = ("serial_number", "warranty_status", "customer_email", "priority", "category")
TICKETING_TOOLS: Final = {
    "create_ticket": OwnTool(
        arguments={**dict.fromkeys((*_TICKET, "idempotency_key"), "string"), "details": "object"},
        needed=frozenset(),
        answer={"ticket_id": "text"},
        required=frozenset({"ticket_id"}),
        further=True,
        joins=True,
    ),
    "find_ticket": OwnTool(
        arguments={"idempotency_key": "string"},
        needed=frozenset({"idempotency_key"}),
        answer={"tickets": "list"},
        required=frozenset({"tickets"}),
        items={"ticket_id": "text", "idempotency_key": "text"},
        reads=True,
    ),
    "add_note": OwnTool(
        arguments={"ticket_id": "string", "note": "string", "idempotency_key": "string"},
        needed=frozenset({"ticket_id", "note"}),
        joins=True,
    ),
}

LOOK_UP_TOOL: Final = "look_up"


Form = Literal["number", "text"]
"""How a value of ours is written: digits as a number, a number as digits."""

_SECRET: Final = re.compile(r"api_?key|passw|secret|credential|token|^auth", re.IGNORECASE)
MIN_PHRASE_CHARS: Final = 5


def field_path(value: str) -> str | None:
    """What is wrong with a path; None if it is one."""
    try:
        parse_field_path(value)
    except FieldPathError as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True)
class ArgumentTarget:
    """Where an argument of ours goes, and how it is written there."""

    to: str | tuple[str, ...] = field(metadata={"doc": "Path of their argument, or several."})
    values: Mapping[str, object] = setting({}, "Our values, each with what the server calls it.")
    form: Form | None = field(
        default=None,
        metadata={"key": "as", "doc": "`number` for digits, `text` for a number."},
    )

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.to,) if isinstance(self.to, str) else self.to


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """Where a field of an answer is found, and how its values are to be read."""

    path: str = field(metadata={"key": "from", "doc": "Path in the answer."})
    values: Mapping[str, str] = setting({}, "Their values, each with what it means to the agent.")
    each: Mapping[str, str] = setting({}, "For a list: our fields, each with its path in an item.")


@dataclass(frozen=True, slots=True)
class NotFound:
    """How the server says that there is no such thing. Either is enough."""

    empty: str | None = setting(None, "Path of what is empty then: a list, an object, a text or null.")
    text: str | None = setting(None, "Words of the text that it answers then, as an error or not.")


@dataclass(frozen=True, slots=True)
class ToolMapping:
    """One tool of another server that stands for one of ours."""

    tool: str = field(metadata={"doc": "What the server calls its tool.", "check": not_blank})
    arguments: Mapping[str, str | tuple[str, ...] | ArgumentTarget | None] = setting(
        {}, "Our arguments, each with the path of theirs; `null` leaves one out."
    )
    constants: Mapping[str, object] = setting({}, "Paths of further arguments, each with its value.")
    result: Mapping[str, str | AnswerSource] = setting({}, "Our fields, each with its path in their answer.")
    not_found: NotFound | None = setting(None, "How the server says that there is no such thing.")
    sample: Mapping[str, str] = setting(
        {}, "Arguments of a call that `check` may make, for a tool that does not say that it only reads."
    )
    may_duplicate: bool = setting(False, "Whether a second ticket, or note, is put up with after a crash.")

    @property
    def targets(self) -> dict[str, ArgumentTarget]:
        """Our arguments that reach the server."""
        return {
            name: target if isinstance(target, ArgumentTarget) else ArgumentTarget(target)
            for name, target in self.arguments.items()
            if target is not None
        }

    @property
    def sources(self) -> dict[str, AnswerSource]:
        return {
            name: source if isinstance(source, AnswerSource) else AnswerSource(source)
            for name, source in self.result.items()
        }

    @property
    def joined_paths(self) -> frozenset[str]:
        """Paths that several of our arguments go to, so that they become the lines of a text."""
        counts = Counter(path for target in self.targets.values() for path in dict.fromkeys(target.paths))
        return frozenset(path for path, count in counts.items() if count > 1)


def check_mappings(
    mappings: Mapping[str, ToolMapping], own_tools: Mapping[str, OwnTool], needed: str | None = None
) -> None:
    """Raises ProblemsError with all that is wrong, each with its path from `tools` on. needed: what must be mapped."""
    problems: list[Problem] = []
    if needed is not None and needed not in mappings:
        problems.append(Problem(("tools", needed), "missing", "is missing; map it onto one of the server's tools"))
    for name, mapping in mappings.items():
        own = own_tools.get(name)
        if own is None:
            problems.append(unknown_key(name, ("tools",), own_tools))
            continue
        path = ("tools", name)
        problems += _argument_problems(mapping, own, path)
        problems += _answer_problems(mapping, own, path)
        problems += _sample_problems(mapping, own, path)
        if mapping.may_duplicate and "idempotency_key" not in own.arguments:
            problems.append(Problem((*path, "may_duplicate"), "value", "has no meaning for this tool; remove it"))
    problems += _repetition_problems(mappings)
    if problems:
        raise ProblemsError(problems)


def _argument_problems(mapping: ToolMapping, own: OwnTool, path: KeyPath) -> Iterator[Problem]:
    place = (*path, "arguments")
    for name in own.arguments:
        if name not in mapping.arguments and not (own.further and name == "details"):
            remedy = "" if name in own.needed else ", or write null to leave it out"
            message = f"is missing; say which argument of {mapping.tool} takes it{remedy}"
            yield Problem((*place, name), "missing", message)
        elif name in own.needed and mapping.arguments[name] is None:
            message = f"cannot be left out; say which argument of {mapping.tool} takes it"
            yield Problem((*place, name), "value", message)
    if not own.further:
        yield from (unknown_key(name, place, own.arguments) for name in mapping.arguments if name not in own.arguments)
    yield from _path_problems(mapping, own, place)
    for name, value in mapping.constants.items():
        where = (*path, "constants", name)
        if _SECRET.search(name.rpartition(".")[2]):
            yield Problem(
                where, "value", "looks like a secret, which comes from the environment; name its variable in env"
            )
        elif value is None:
            yield Problem(where, "value", "is empty; write a value, or remove the key")


def _path_problems(mapping: ToolMapping, own: OwnTool, place: KeyPath) -> Iterator[Problem]:
    """Paths that are none, and those that stand in each other's way."""
    skeleton: dict[str, Any] = {}
    joined = mapping.joined_paths
    placed: set[str] = set()
    listed = [
        *(((*place, name), path) for name, target in mapping.targets.items() for path in target.paths),
        *(((*place[:-1], "constants", path), path) for path in mapping.constants),
    ]
    for where, path in listed:
        if path in joined and not own.joins:
            yield Problem(where, "value", f"goes to {path}, as another does; give it one of its own")
            continue
        if path in joined and path in placed and path not in mapping.constants:
            continue
        placed.add(path)
        try:
            put_at(skeleton, parse_field_path(path), None)
        except FieldPathError as error:
            yield Problem(where, "value", str(error) if "must" in str(error) else f"goes to {path}, which {error}")
    for name, target in mapping.targets.items():
        if not target.paths:
            yield Problem((*place, name), "value", "goes nowhere; name an argument, or write null")


def _answer_problems(mapping: ToolMapping, own: OwnTool, path: KeyPath) -> Iterator[Problem]:
    place = (*path, "result")
    for name in own.answer:
        if name in own.required and name not in mapping.result:
            yield Problem((*place, name), "missing", f"is missing; say where the answer of {mapping.tool} has it")
    for name, source in mapping.sources.items():
        if name not in own.answer:
            yield unknown_key(name, place, own.answer)
            continue
        if wrong := field_path(source.path):
            key = (name,) if isinstance(mapping.result[name], str) else (name, "from")
            yield Problem((*place, *key), "value", wrong)
        if own.answer[name] == "list":
            yield from _item_problems(source, own, (*place, name))
        elif source.each:
            yield Problem((*place, name, "each"), "value", "is for a list; remove it")
        if allowed := own.values.get(name):
            for theirs, ours in source.values.items():
                if word_key(ours) not in map(word_key, allowed):
                    message = f"{ours!r} is no {name} that the agent knows{suggestion(ours, allowed)}"
                    yield Problem((*place, name, "values", theirs), "value", message)
    if (not_found := mapping.not_found) is None:
        return
    where = (*path, "not_found")
    if not_found.empty is None and not_found.text is None:
        yield Problem(where, "value", "says nothing; name what is empty, or the words of the text")
    if not_found.empty is not None and (wrong := field_path(not_found.empty)):
        yield Problem((*where, "empty"), "value", wrong)
    if not_found.text is not None and len(not_found.text.strip()) < MIN_PHRASE_CHARS:
        message = f"may stand in other answers, too; write at least {MIN_PHRASE_CHARS} characters"
        yield Problem((*where, "text"), "value", message)


def _item_problems(source: AnswerSource, own: OwnTool, place: KeyPath) -> Iterator[Problem]:
    for name in own.items:
        if name not in source.each:
            yield Problem((*place, "each", name), "missing", "is missing; say where an item has it")
    for name, item_path in source.each.items():
        if name not in own.items:
            yield unknown_key(name, (*place, "each"), own.items)
        elif wrong := field_path(item_path):
            yield Problem((*place, "each", name), "value", wrong)


def _sample_problems(mapping: ToolMapping, own: OwnTool, path: KeyPath) -> Iterator[Problem]:
    if mapping.sample and not own.reads:
        yield Problem((*path, "sample"), "value", "would have an effect, so no sample is called; remove it")
        return
    for name in mapping.sample:
        if name not in own.arguments:
            yield Problem((*path, "sample", name), "unknown", f"is no argument{suggestion(name, own.arguments)}")
    if mapping.sample:
        yield from (
            missing_key(name, (*path, "sample"), ()) for name in sorted(own.needed) if name not in mapping.sample
        )


def _repetition_problems(mappings: Mapping[str, ToolMapping]) -> Iterator[Problem]:
    """A call whose answer was lost is made again: what then keeps it from opening a second ticket?"""
    for name in ("create_ticket", "add_note"):
        mapping = mappings.get(name)
        if mapping is None or mapping.may_duplicate:
            continue
        key = mapping.targets.get("idempotency_key")
        searched = name == "create_ticket" and "find_ticket" in mappings
        if key is None and searched:
            message = "is left out, but find_ticket searches for it; put it into a text of the ticket"
            yield Problem(("tools", name, "arguments", "idempotency_key"), "value", message)
        elif key is None or (not searched and mapping.joined_paths.issuperset(key.paths)):
            remedy = "map find_ticket, by which the ticket is found again, or " if name == "create_ticket" else ""
            message = (
                "has nothing that keeps a call whose answer was lost from being made twice. Pass idempotency_key in an "
                f"argument of its own if the server gives the same answer to the same key; else {remedy}set "
                "may_duplicate: true"
            )
            yield Problem(("tools", name), "value", message)


_VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_URL: Final = re.compile(r"https?://[^\s/@]+(/\S*)?", re.IGNORECASE)


def _server_url(value: str) -> str | None:
    if "@" in value.partition("://")[2].partition("/")[0]:
        return "holds a user name or password; pass it as an environment variable that `env` names"
    return None if _URL.fullmatch(value) else f"must be a URL such as https://mcp.example.com/warranty, not {value!r}"


def _variable_names(names: tuple[str, ...]) -> str | None:
    for position, name in enumerate(names, 1):
        if not _VARIABLE_NAME.fullmatch(name):  # the text may be a secret, so it is not shown
            return f"must list names of environment variables, without values; item {position} is no name"
    return None


@dataclass(frozen=True, slots=True)
class McpServer:
    """One MCP server: a command that starts it, or the URL where it runs. Neither: the one that comes with us."""

    command: str | None = setting(None, "Program that starts the server, spoken to over stdio.", not_blank)
    args: tuple[str, ...] = setting((), "Arguments of the command.")
    url: str | None = setting(None, "Where a running server is reached (streamable HTTP).", _server_url)
    env: tuple[str, ...] = setting(
        (), "Names of the environment variables that the server gets; it gets no others.", _variable_names
    )
    tools: Mapping[str, ToolMapping] = setting(
        {}, "The server's tools, each under the name of ours that it stands for."
    )

    def __post_init__(self) -> None:
        if self.command is not None and self.url is not None:
            raise ValueError("has both command and url; keep the one that you use")
        if self.command is None and self.args:
            raise ValueError(
                "has args but no command; add the command, or remove the section to use the built-in server"
            )

        if self.built_in and self.tools:
            raise ValueError("has tools but no command or url; the built-in server needs no mapping")

    @property
    def built_in(self) -> bool:
        """Whether the server that comes with this package is used."""
        return self.command is None and self.url is None
