"""Tools of any MCP server, mocked: what a scenario's `mock_responses.<server>.<tool>` says, and answering by it.

A tool gives one answer at every call, `answers` in turn, or what the first entry says whose `when` fits the call's
arguments. A call after the last of the answers, one that no `when` fits, and one of a tool that is not mocked are calls
that no mock knows: the agent gets an error, and the scenario fails.
"""

from __future__ import annotations

import json
import os
import time
from base64 import b64decode
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, Self, TypeVar

from guarantee_email_agent.eval.call_checks import find_argument_problems, find_json_problems, has_arguments
from guarantee_email_agent.eval.declared_servers import (
    NO_TOOL_NAME,
    SERVER_NAME,
    TOOL_NAME,
    DeclaredServer,
    find_unknown_arguments,
)
from guarantee_email_agent.files.problems import KeyPath, Problem, mismatch, suggestion, unknown_key
from guarantee_email_agent.files.validation import build, setting
from guarantee_email_agent.runlog.suite_manifest import SERVERS_FOLDER
from guarantee_email_agent.utils.text import printable, truncate

EffectKind = Literal["reads", "inserts", "updates", "deletes"]
EFFECTS: Final[tuple[EffectKind, ...]] = ("reads", "inserts", "updates", "deletes")
ToolFailureKind = Literal["timeout", "unavailable", "malformed", "slow"]
MALFORMED_ANSWER: Final[Mapping[str, Any]] = {"unexpected": "answer"}
OWN_SERVICES: Final = ("gmail", "warranty_api", "ticketing")
"""Keys of `mock_responses` that stand for the services of our own agent, and hold no tools."""

_REPLY: Final = ("to", "subject", "body", "message_id", "in_reply_to", "references", "headers")
OWN_TOOLS: Final[Mapping[str, Mapping[str, tuple[str, ...] | None]]] = {
    "mail": {
        "list_unprocessed": ("received_since", "skip_seen", "limit"),
        "read_raw": ("id", "max_bytes"),
        "is_waiting": ("id", "skip_seen"),
        "send_reply": _REPLY,
        "find_sent": ("message_id", "wait_s"),
        "save_draft": _REPLY,
        "find_draft": ("message_id",),
        "mark": ("id", "outcome"),
        "tally": ("received_since", "skip_seen"),
        "wait_for_mail": ("timeout_s",),
        "test_connection": ("drafts",),
    },
    "warranty": {"check_warranty": ("serial_number",)},
    "ticketing": {
        "create_ticket": None,  # in process an instruction's own fields stand beside those of the tool
        "add_note": ("ticket_id", "note", "idempotency_key"),
        "find_ticket": ("idempotency_key",),
        "list_tickets": ("limit",),
    },
}
"""The servers that every scenario has, by the names under which calls are captured, with their tools and the arguments
of each, which None leaves open.
"""

NO_LOOK_UPS: Final = ("mail", "ticketing")
"""Those of them to which no number goes."""

_COMPLETING: Final = ("mail.send_reply", "mail.save_draft")
_NEEDED_IN_BLOCK: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text",),
    "image": (),
    "audio": ("data", "mime_type"),
    "resource_link": ("uri", "name"),
    "resource": ("resource",),
}
_MAX_TOOL_CHARS: Final = 100
_Answered = TypeVar("_Answered")
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, default=dict)


@dataclass(slots=True)
class ToolCall:
    """A call as a mock noted it. answer: what came back, or why nothing did; None while there is none.

    took_ms: None while it goes on. refused: whether nothing came of it since no such call can be made, such as one of a
    tool that is none.
    """

    server: str
    tool: str
    arguments: Mapping[str, Any]
    answer: str | None = None
    is_error: bool = False
    refused: bool = False
    took_ms: float | None = None
    began: float = field(default_factory=time.perf_counter, repr=False, compare=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, Exception):
            self.is_error = True
            self.answered(f"{type(error).__name__}: {error}")
        self.took_ms = 1000 * (time.perf_counter() - self.began)

    def answered(self, answer: _Answered) -> _Answered:
        """Note what came back, and hand it on."""
        self.answer = answer if isinstance(answer, str) else _ENCODER.encode(answer)
        return answer

    def as_dict(self) -> dict[str, Any]:
        call = {"server": self.server, "tool": self.tool, "arguments": dict(self.arguments)}
        return call | {"refused": self.answer} if self.refused else call

    def as_step(self) -> dict[str, Any]:
        """As the `execution_trace` of a record has it. done: whether a mail is answered by it."""
        name = f"{self.server}.{self.tool}"
        done = name in _COMPLETING and self.answer is not None and not self.is_error
        feedback: dict[str, Any] = {"done": done, "message": self.answer or ""}
        if self.answer is None:
            feedback["answered"] = False
        if self.is_error:
            feedback["error"] = True
        if self.refused:
            feedback["refused"] = True
        # No argument may stand for the name of the tool.
        return {"action": {**self.arguments, "action_type": name}, "feedback": feedback}


@dataclass(frozen=True, slots=True)
class ContentBlock:
    """A block of an answer, as MCP has it."""

    type: Literal["text", "image", "audio", "resource_link", "resource"]
    text: str | None = None
    data: str | None = field(default=None, metadata={"doc": "In base64; of a picture one pixel if left out."})
    mime_type: str | None = field(default=None, metadata={"key": "mimeType"})
    uri: str | None = None
    name: str | None = None
    title: str | None = None
    description: str | None = None
    resource: Mapping[str, str] | None = field(default=None, metadata={"doc": "Its uri, with its text or blob."})
    annotations: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        missing = [name for name in _NEEDED_IN_BLOCK[self.type] if getattr(self, name) is None]
        if missing:
            raise ValueError(f"of type {self.type} has no {missing[0].replace('mime_type', 'mimeType')}; add it")
        if self.resource is not None and not ("uri" in self.resource and self.resource.keys() & {"text", "blob"}):
            raise ValueError("holds a resource without uri, or with neither text nor blob")
        for name, data in (("data", self.data), ("resource.blob", (self.resource or {}).get("blob"))):
            try:
                b64decode(data or "", validate=True)
            except ValueError:
                raise ValueError(f"holds {name} that is no base64; a picture may go without") from None


class Effect(NamedTuple):
    """What a tool does with a table. one: whether exactly one row must fit `where`."""

    kind: EffectKind
    table: str
    where: Mapping[str, object]
    values: Mapping[str, object] | None
    one: bool


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """One entry of a mocked tool as its file has it."""

    when: Mapping[str, object] | None = setting(
        None, "Arguments that the call must have, by value or by matcher; others are free, and {} fits any call."
    )
    answer: object = setting(None, "What it answers: a mapping, text, a list, a number.")
    answers: tuple[object, ...] | None = setting(
        None, "What it answers in turn; in place of an answer may stand an entry without when."
    )
    content: tuple[ContentBlock, ...] | None = setting(
        None, "Blocks of content instead of an answer: text, pictures, resources."
    )
    is_error: bool = setting(False, "true: the answer is the tool's own error.")
    error: ToolFailureKind | None = setting(None, "Fail this way instead; slow gives the answer seconds late.")
    reads: str | None = setting(None, "The table of the world whose rows it answers.")
    inserts: str | None = setting(None, "The table that gets a row: values, or all arguments of the call.")
    updates: str | None = setting(None, "The table whose rows get values.")
    deletes: str | None = setting(None, "The table whose rows go.")
    where: Mapping[str, object] = setting({}, "Which rows, by column; $name is an argument of the call.")
    values: Mapping[str, object] | None = setting(None, "Values by column; $name is an argument of the call.")
    one: bool = setting(False, "true: exactly one row must fit, and is the answer; else the tool has an error.")

    @property
    def effect(self) -> Effect | None:
        """What it does with a table of the world."""
        named = [(kind, table) for kind in EFFECTS if (table := getattr(self, kind)) is not None]
        return Effect(*named[0], self.where, self.values, self.one) if named else None

    @property
    def in_turn(self) -> list[ToolAnswer]:
        return [_read_entry(item) for item in self.answers or ()]

    def fits(self, arguments: Mapping[str, Any]) -> bool:
        return has_arguments(arguments, self.when or {})


ENTRY_KEYS: Final = frozenset({"when", "answer", "answers", "error", "reads", "inserts", "updates", "deletes"})


class EffectError(Exception):
    """What a tool says in place of an answer, such as that there is no such row. Nothing was changed."""


class RefusedCallError(Exception):
    """A call that the declared server refuses for its arguments, which fails no scenario by itself."""


class UnknownCallError(Exception):
    """A call that no mock knows; the message is one line for whoever reads the failed scenario."""


class ToolMocks:
    """The mocked tools of one scenario; `calls` holds what was noted, `unknown` what is wrong with each call that no
    mock knows.

    Not for calls from several threads at once.
    """

    def __init__(
        self,
        mock_responses: Mapping[str, Mapping[str, object]],
        declared: Mapping[str, DeclaredServer] | None = None,
        apply: Callable[[Effect, Mapping[str, Any]], object] | None = None,
    ) -> None:
        """mock_responses: as the loader accepted it. declared: servers whose tools are known.

        apply: does what a call with these arguments does to the scenario's tables, and gives its answer.
        """
        self.declared = declared or {}
        self._apply = apply
        self.servers = read_tool_mocks(mock_responses)
        self.calls: list[ToolCall] = []
        self.unknown: list[str] = []
        self._given: dict[tuple[str, str, int], int] = {}  # how many of an entry's answers were given

    def answer(self, server: str, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """What the tool answers, and whether it fails: `timeout` and `unavailable` give no answer, `malformed` gives
        one of another shape, `slow` a right one, late.

        Raises RefusedCallError, and UnknownCallError, which `unknown` remembers.
        """
        declared = self.declared[server].by_name.get(tool) if server in self.declared else None
        if declared is not None and (refusal := declared.refusal(arguments)) is not None:
            raise RefusedCallError(f"{tool}: {refusal}")
        try:
            given = self._next(server, tool, arguments)
        except UnknownCallError as unknown:
            self.unknown.append(str(unknown))
            raise
        if given.error == "malformed":
            return replace(given, answer=MALFORMED_ANSWER)
        if self._apply is None or (effect := given.effect) is None:
            return given
        try:
            answer = self._apply(effect, arguments)
        except EffectError as error:
            return replace(given, answer=str(error), content=None, is_error=True)
        return given if (given.answer, given.content) != (None, None) else replace(given, answer=answer)

    def noting(self, server: str, tool: str, arguments: Mapping[str, Any]) -> ToolCall:
        """Note a call as it comes in; whoever answers it says what in the ToolCall. An exception is an answer, too."""
        call = ToolCall(server, truncate(tool, _MAX_TOOL_CHARS), dict(arguments))
        self.calls.append(call)
        return call

    def note_unknown_tool(self, server: str, tool: str) -> None:
        """One that one of our own servers does not have."""
        hint = suggestion(tool, OWN_TOOLS.get(server, ()))
        self.unknown.append(f"{server}.{printable(truncate(tool, 64))} is no tool{hint}")

    def _next(self, server: str, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        if (entries := self.servers.get(server, {}).get(tool)) is None:
            known = [f"{name}.{known}" for name, tools in self.servers.items() for known in tools]
            shown = f"{server}.{printable(truncate(tool, 64))}"
            raise UnknownCallError(f"{shown} is not mocked{suggestion(f'{server}.{tool}', known)}")
        number = next((number for number, entry in enumerate(entries) if entry.fits(arguments)), -1)
        if number < 0:
            raise UnknownCallError(f"{server}.{tool} has no answer for these arguments: {dict(arguments)!r:.200}")
        if entries[number].answers is None:
            return entries[number]
        answers = entries[number].in_turn
        turn = self._given.get((server, tool, number), 0)
        if turn >= len(answers):
            raise UnknownCallError(f"{server}.{tool} was called again after its last answer ({len(answers)})")
        self._given[server, tool, number] = turn + 1
        return answers[turn]


def read_tool_mocks(mock_responses: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, list[ToolAnswer]]]:
    """The entries of the mocked tools by server and name; the services of our own agent are none."""
    return {
        server: {
            tool: [_read_entry(item) for item in (value if isinstance(value, list) else [value])]
            for tool, value in tools.items()
        }
        for server, tools in mock_responses.items()
        if server not in OWN_SERVICES
    }


def _read_entry(item: object) -> ToolAnswer:
    entry = build(ToolAnswer, item) if is_entry(item) else ToolAnswer(answer=item)
    assert isinstance(entry, ToolAnswer)
    return entry


def is_entry(item: object) -> bool:
    """Whether a mapping tells of an answer, and is not the answer itself, which may well have a text `content`."""
    if not isinstance(item, dict):
        return False
    blocks = item.get("content")
    return not ENTRY_KEYS.isdisjoint(item) or (
        isinstance(blocks, list) and any(isinstance(block, dict) and "type" in block for block in blocks)
    )


_MEANT: Final = {"mail": "gmail", "warranty": "warranty_api"}
_KEYS_OF_SERVICES: Final = frozenset({"error", "status", "expiration_date", "coverage", "serial_number", "owner_email"})
_IN_TURN: Final = "answers: […] is given in turn, answer: […] is one answer that is a list"


def find_tool_problems(
    mock_responses: Mapping[str, Mapping[str, object]], declared: Container[str] = ()
) -> Iterator[Problem]:
    """What a scenario's file says wrongly of tools; paths begin below `mock_responses`.

    declared: servers whose tools stand elsewhere, so that none need be named.
    """
    for server, tools in mock_responses.items():
        if server in OWN_SERVICES:
            continue
        if (problem := _server_problem(server, tools)) is not None and (tools or server not in declared):
            yield problem
            continue
        for tool, value in tools.items():
            path = (server, tool)
            if tool == "error":
                yield Problem(path, "value", "is no tool; a fault stands under the tool that fails: {tool: {error: …}}")
            elif not TOOL_NAME.fullmatch(tool):
                yield Problem(path, "value", NO_TOOL_NAME)
            else:
                yield from _tool_problems(value, path)


def _server_problem(server: str, tools: Mapping[str, object]) -> Problem | None:
    if server in _MEANT:
        return unknown_key(server, (), [_MEANT[server]])
    if (not tools or not _KEYS_OF_SERVICES.isdisjoint(tools)) and "did you mean" in suggestion(server, OWN_SERVICES):
        return unknown_key(server, (), OWN_SERVICES)
    if not SERVER_NAME.fullmatch(server):
        return Problem((server,), "value", "is no name of a server: letters, digits, '_', '-', '.', at most 64")
    if not tools:
        return Problem(
            (server,), "value", "names no tool; write the tool's answer below its name, or remove the server"
        )
    return None


def _tool_problems(value: object, path: KeyPath) -> Iterator[Problem]:
    if not isinstance(value, list):
        yield from _item_problems(value, path)
        return
    by_arguments = [is_entry(item) and "when" in item for item in value]
    if not any(by_arguments):
        yield Problem(path, "value", f"is a list without when; write which is meant: {{{_IN_TURN}}}")
    elif not all(by_arguments):
        wrong = "has no when, unlike others of the list; give each one ({} fits any call)"
        yield Problem((*path, by_arguments.index(False)), "value", wrong)
    else:
        for index, item in enumerate(value):
            yield from _item_problems(item, (*path, index))


def _item_problems(item: object, path: KeyPath, *, in_turn: bool = False) -> Iterator[Problem]:
    """in_turn: it is one of several answers, so that it has no `when`."""
    if not is_entry(item):
        if isinstance(item, dict):
            yield from find_json_problems(item, path)
        elif not isinstance(item, str) and not in_turn:
            yield mismatch(path, "an answer (a mapping or text); any other stands under answer", item)
        return
    entry = build(ToolAnswer, item)
    if isinstance(entry, list):
        for problem in entry:
            yield Problem((*path, *problem.path), problem.kind, problem.message, problem.quote)
        return
    given = [name for name in ("answer", "answers", "content") if getattr(entry, name) is not None]
    effects = [name for name in EFFECTS if getattr(entry, name) is not None]
    if len(effects) > 1:
        yield Problem(path, "value", f"has {' and '.join(effects)}; keep one")
    elif effects and (entry.answers is not None or entry.is_error):
        other = "answers" if entry.answers is not None else "is_error"
        yield Problem((*path, other), "value", f"says nothing beside {effects[0]}; remove one")
    if entry.error not in (None, "slow"):
        given += effects
        if given:
            wrong = f"is never given, since the tool fails ({entry.error}); remove one"
            yield Problem((*path, given[0]), "value", wrong)
    elif not given and not effects:
        what = "has no answer; write one" if entry.error is None else "is slow to give an answer; write which"
        yield Problem(path, "value", f"{what} under answer: {{}} is one without content")
    elif len(given) > 1:
        yield Problem(path, "value", f"has {' and '.join(given)}; keep one")
    elif in_turn and (entry.when is not None or entry.answers is not None):
        yield Problem(path, "value", "is one of several answers in turn, so it has neither when nor answers itself")
    elif entry.answers is not None and (entry.error or entry.is_error):
        yield Problem((*path, "answers"), "value", "fail each on its own: {answers: [{answer: …, is_error: true}]}")
    elif entry.answers == ():
        yield Problem((*path, "answers"), "value", "is an empty list; write what it answers in turn")
    for index, answer in enumerate(entry.answers or ()):
        yield from _item_problems(answer, (*path, "answers", index), in_turn=True)
    yield from find_json_problems(entry.answer, (*path, "answer"))
    yield from find_argument_problems(entry.when or {}, (*path, "when"))


def find_declared_problems(
    mock_responses: Mapping[str, Mapping[str, object]], declared: Mapping[str, DeclaredServer], folders: Iterable[str]
) -> Iterator[Problem]:
    """What mocks say that their servers do not declare; paths begin below `mock_responses`.

    mock_responses: in which nothing else is wrong. folders: where a server may be declared.
    """
    files: list[str] = []
    for folder in folders:
        with suppress(OSError):
            files += os.listdir(os.path.join(folder, SERVERS_FOLDER))
    others = [stem for stem, ending in map(os.path.splitext, files) if ending == ".yaml" and stem not in mock_responses]
    for server, tools in read_tool_mocks(mock_responses).items():
        if server not in declared:
            if near := suggestion(server, others):
                yield Problem((server,), "value", f"is not declared in {SERVERS_FOLDER}/{near}")
            continue
        known = declared[server].by_name
        for name, entries in tools.items():
            if (tool := known.get(name)) is None:
                hint = suggestion(name, known) or f"; it has {', '.join(known)}"
                yield Problem((server, name), "value", f"is no tool that {SERVERS_FOLDER}/{server}.yaml declares{hint}")
                continue
            value = mock_responses[server][name]
            for index, entry in enumerate(entries):
                place = (server, name, index) if isinstance(value, list) else (server, name)
                when = (*place, "when")
                yield from find_unknown_arguments(entry.when or {}, tool.arguments, f"{server}.{name}", when)
                yield from tool.find_value_problems(entry.when or {}, when)
                for each in (entry, *entry.in_turn):
                    if each.is_error:  # which may be of any form
                        continue
                    wrong = None if each.answer is None else tool.answer_problem(each.answer)
                    if each.content is not None and tool.output_schema is not None:
                        wrong = "is content, but the server declares an output_schema; write an answer that fits it"
                    if wrong is not None:
                        yield Problem(place, "value", wrong)
