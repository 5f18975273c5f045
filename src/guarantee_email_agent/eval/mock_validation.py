"""What is wrong with the mocked tools of a scenario's file."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from guarantee_email_agent.eval.call_checks import find_argument_problems, find_json_problems
from guarantee_email_agent.eval.declared_servers import (
    NO_TOOL_NAME,
    SERVER_NAME,
    TOOL_NAME,
    DeclaredServer,
    find_unknown_arguments,
)
from guarantee_email_agent.eval.tool_mocks import EFFECTS, OWN_SERVICES, ToolAnswer, is_entry, read_tool_mocks
from guarantee_email_agent.files.problems import KeyPath, Problem, mismatch, suggestion, unknown_key
from guarantee_email_agent.files.validation import build
from guarantee_email_agent.runlog.suite_manifest import SERVERS_FOLDER

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
