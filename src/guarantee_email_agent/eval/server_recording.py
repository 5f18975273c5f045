"""The tools of a real MCP server as `servers/NAME.yaml` of a suite, how they differ from that file by now, and what
passes between the server and an agent, kept as a scenario's mocks.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcp_types import CallToolResult, TextContent, Tool

from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.agents.agent import SECRET_NAME, without_secrets
from guarantee_email_agent.eval.call_checks import has_arguments, has_matcher
from guarantee_email_agent.eval.capture.anonymizer import Anonymizer, what_was_replaced
from guarantee_email_agent.eval.capture.names import find_names
from guarantee_email_agent.eval.capture.scenario_file import file_text, next_id
from guarantee_email_agent.eval.declared_servers import SERVER_NAME, DeclaredServer, load_declared_server
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.tool_mocks import OWN_SERVICES, OWN_TOOLS
from guarantee_email_agent.files.problems import dotted_path
from guarantee_email_agent.files.text_file import write_new_file
from guarantee_email_agent.files.validation import build
from guarantee_email_agent.files.yaml import dump
from guarantee_email_agent.mcp_servers.server import Dispatcher, serve_calls, text_result
from guarantee_email_agent.runlog.suite_manifest import SERVERS_FOLDER
from guarantee_email_agent.services.mcp.mcp_connection import ToolAnswer
from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch, configured_launch
from guarantee_email_agent.utils.errors import (
    EXIT_EVALUATION,
    EXIT_SUCCESS,
    ConfigurationError,
    EvalError,
    IntegrationError,
    MCPConnectionError,
    ProcessingError,
)
from guarantee_email_agent.utils.terminal import Terminal, pluralize
from guarantee_email_agent.utils.text import printable, truncate

START_S: Final = 60.0  # a program may be fetched before it is run
_MAX_CHANGES: Final = 50
_MAX_SHOWN: Final = 100
_ABSENT: Final = object()


def server_launch(target: Sequence[str], variables: Sequence[str], environ: Mapping[str, str]) -> ServerLaunch:
    """target: a URL, or a command with its arguments. variables: names of what it gets of `environ`, as `env` of a
    configured server.

    Raises ConfigurationError.
    """
    if missing := next((name for name in variables if name not in environ), None):
        raise ConfigurationError(f"--env {printable(missing)} is not set. Set it, or leave it out", "cli_bad_usage")
    is_url = len(target) == 1 and re.match(r"https?:", target[0], re.IGNORECASE) is not None
    place: dict[str, Any] = {"url": target[0]} if is_url else {"command": target[0], "args": list(target[1:])}
    server = build(McpServer, {**place, "env": list(variables)})
    if not isinstance(server, McpServer):
        wrong = f"{dotted_path(server[0].path)} {server[0].message}"
        raise ConfigurationError(f"The server's {printable(truncate(wrong, 300))}", "cli_bad_usage")
    return configured_launch("the server", server, environ, environ)


def import_server(suite: Path, name: str, launch: ServerLaunch, terminal: Terminal) -> int:
    """Write the file; the exit code. Raises ConfigurationError, and MCPConnectionError where the server has no tools
    that could be mocked.
    """
    path = declaration_path(suite, name)
    offered = _list_tools(name, launch)
    names = [tool["name"] for tool in offered["tools"]]
    if not write_declaration(path, offered):
        remedy = f"'mock check {name} …' says what differs; remove the file to import it anew"
        raise ConfigurationError(f"{path} is there already. {remedy}", "mock_exists")
    terminal.line(f"Wrote {path}: {pluralize(len(names), 'tool')} ({', '.join(names)})")
    return EXIT_SUCCESS


def write_declaration(path: Path, offered: Mapping[str, Any]) -> bool:
    """Write `servers/NAME.yaml`, unless it is there already. Raises as `import_server` does."""
    server = build(DeclaredServer, dict(offered))
    if not isinstance(server, DeclaredServer):
        place, tools = server[0].path, offered["tools"]
        tool = tools[place[1]]["name"] if place[1:] else "the server"
        wrong = f"{path.stem}: {_shown(f'{tool}: {dotted_path(place[2:])} {server[0].message}', 300)}"
        raise MCPConnectionError(f"{wrong}. No mock could hold calls against it", "mock_bad_tool")
    return write_file(path, dump(offered))


def write_file(path: Path, text: str) -> bool:
    """Write a new file, and its folder; False where it is there already. Raises ConfigurationError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_new_file(path, text.encode())
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be written ({error.strerror})", "mock_unwritable") from None


def check_server(suite: Path, name: str, launch: ServerLaunch, terminal: Terminal) -> int:
    """Print how the server's tools differ from the file; the exit code. Raises as `import_server` does."""
    path = declaration_path(suite, name)
    if not path.exists():
        raise ConfigurationError(f"{path} does not exist. 'mock import {name} …' writes it", "mock_not_found")
    try:
        declared = load_declared_server(str(path))
    except ValueError as error:
        raise ConfigurationError(f"{error}. Correct it, or remove it and import it anew", "mock_invalid") from None
    here = {tool.name: _tool(tool) for tool in declared.tools}
    there = {tool["name"]: tool for tool in _list_tools(name, launch)["tools"]}
    changes = list(_changes(here, there))
    if not changes:
        terminal.line(f"{path} is as the server: {pluralize(len(here), 'tool')}")
        return EXIT_SUCCESS
    terminal.line(f"{path} is not as the server:")
    for change in changes[:_MAX_CHANGES]:
        terminal.line(f"  {change}")
    if len(changes) > _MAX_CHANGES:
        terminal.line(f"  and {len(changes) - _MAX_CHANGES} more")
    return EXIT_EVALUATION


def declaration_path(suite: Path, name: str) -> Path:
    """Raises ConfigurationError for a name that no server can have, and a folder that is none."""
    if name in (*OWN_SERVICES, *OWN_TOOLS):
        raise ConfigurationError(f"{name} is a server of ours, whose tools are known. Name another", "cli_bad_usage")
    if not SERVER_NAME.fullmatch(name):
        wrong = f"{printable(truncate(name, 60))!r} is no name of a server: letters, digits, '_', '-', '.', at most 64"
        raise ConfigurationError(wrong, "cli_bad_usage")
    if not suite.is_dir():
        raise ConfigurationError(f"{suite} is no folder of scenarios. Name one with --eval-dir", "cli_bad_usage")
    return suite / SERVERS_FOLDER / f"{name}.yaml"


def _list_tools(name: str, launch: ServerLaunch) -> dict[str, Any]:
    """As the file has them. Raises MCPConnectionError."""

    async def ask() -> dict[str, Any]:
        session = McpSession(name, launch, start_timeout_s=START_S)
        try:
            return await listed_tools(session)
        finally:
            await session.close()

    return asyncio.run(ask())


async def listed_tools(session: McpSession) -> dict[str, Any]:
    """As the file has them. Raises MCPConnectionError."""
    tools = [_tool(tool) for tool in (await session.list_tools()).values()]
    if not tools:
        wrong = f"{session.name}: the server offers no tool, so there is nothing to mock"
        raise MCPConnectionError(wrong, "mock_bad_tool")
    return {"tools": tools}


def _tool(tool: Any) -> dict[str, Any]:
    """tool: an OfferedTool or a DeclaredTool."""
    told = {key: getattr(tool, key) for key in ("name", "description", "input_schema", "output_schema")}
    return {key: value for key, value in told.items() if value or (key == "output_schema" and value is not None)}


def _changes(here: object, there: object, place: str = "") -> Iterator[str]:
    """What stands in the file, and what the server has instead. The order of a list of plain values says nothing."""
    if isinstance(here, Mapping) and isinstance(there, Mapping):
        for key in sorted(here.keys() | there.keys(), key=str):
            below = f"{place}.{key}" if place else str(key)
            yield from _changes(here.get(key, _ABSENT), there.get(key, _ABSENT), below)
    elif here is _ABSENT:
        yield f"{place} is new: {_shown(_as_json(there))}"
    elif there is _ABSENT:
        yield f"{place} is gone"
    elif _as_json(here) != _as_json(there):
        yield f"{place} is {_shown(_as_json(there))}, here {_shown(_as_json(here))}"


def _as_json(value: object) -> str:
    if isinstance(value, list) and not any(isinstance(item, list | Mapping) for item in value):
        value = sorted(value, key=json.dumps)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _shown(text: str, most: int = _MAX_SHOWN) -> str:
    return printable(truncate(text, most))


_CALL_S: Final = 3600.0  # the agent has a deadline of its own
_LEAST_NUMBER: Final = 1000
_YEARS: Final = range(1900, 2100)
_IDENTIFIER: Final = re.compile(r"(?!.*\d{4})[a-z_][\w-]*")
_PERSON: Final = re.compile(
    r"(name|customer|owner|contact|person|attendee|author|user|recipient|sender|assignee|guest)s?$", re.IGNORECASE
)
_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_SECRET: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|\beyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?"  # RFC 7519
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    r"|(?i:(?<=bearer )|(?<=basic )|(?<=password=)|(?<=passwd=)|(?<=secret=)|(?<=token=)|(?<=key=))[^\s\"',;&]{6,}"
    rf"|(?<![\w/.-])(?!{_UUID})(?=[\w+=~-]*\d)(?=[\w+=~-]*[A-Za-z])[\w+=~-]{{20,}}(?![\w/.@])",
    re.ASCII | re.DOTALL,
)
"""What is one wherever it stands: keys of many lines, tokens with their points, passwords of a URL or a form."""

_NOTHING_EXPECTED: Final = {"never_called": [{"server": "mail"}]}
_NO_DATA: Final = {"data": "", "blob": ""}


def record_server(folder: Path, name: str, launch: ServerLaunch, today: str, terminal: Terminal) -> int:
    """Serve the server's tools on stdin and stdout until the agent is done, then write a scenario; the exit code.

    terminal: must not be stdout. Raises MCPConnectionError where there is no such server, ConfigurationError where
    nothing can be written, ProcessingError where no call came.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be made ({error.strerror})", "mock_unwritable") from None
    declaration = declaration_path(folder, name)

    async def record() -> None:
        session = McpSession(name, launch, start_timeout_s=START_S)
        try:
            recorder = _Recorder(session, await listed_tools(session))
            try:
                await serve_calls(recorder)
            finally:  # before the server ends, which may take longer than the agent waits for us; at Ctrl-C, too
                _write(folder, declaration, recorder, today, terminal)
        finally:
            await session.close()

    asyncio.run(record())
    return EXIT_SUCCESS


class _Recorder(Dispatcher):
    """Passes each call on. `calls`: tool, arguments, and the answer as a mock's entry: a time-out until it comes."""

    def __init__(self, session: McpSession, offered: Mapping[str, Any]) -> None:
        super().__init__(session.name, ())
        self._session = session
        self.offered = offered
        self.calls: list[tuple[str, Mapping[str, Any], dict[str, Any]]] = []

    def declarations(self) -> list[Tool]:
        return [Tool.model_validate({"description": None, **tool}, by_name=True) for tool in self.offered["tools"]]

    async def dispatch(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        entry: dict[str, Any] = {"error": "timeout"}
        self.calls.append((tool_name, arguments, entry))
        try:
            answer = await self._session.answer(tool_name, arguments, _CALL_S)
        except IntegrationError as error:
            if error.said:
                del entry["error"]
                entry |= {"answer": error.said, "is_error": True}
            elif not error.code.endswith("_timeout"):
                entry["error"] = "unavailable"
            result = text_result(error.said or error.message)
            result.is_error = True
            return result
        del entry["error"]
        entry |= _entry(answer)
        content = list(answer.content)
        return CallToolResult(content=content, structured_content=answer.structured, is_error=answer.failed)


def _entry(answer: ToolAnswer) -> dict[str, Any]:
    """As a scenario has it. Of pictures and files the kind alone: what they show, nobody can make anonymous."""
    failed = {"is_error": True} if answer.failed else {}
    if len(answer.content) > 1 or not all(isinstance(block, TextContent) for block in answer.content):
        blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in answer.content]
        return {"content": [_without_data(block) for block in blocks], **failed}
    return {"answer": answer.text if answer.structured is None else answer.structured, **failed}


def _without_data(block: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: _NO_DATA.get(key, value) for key, value in block.items() if key not in ("_meta", "icons", "size")}
    if block["type"] == "image":
        plain.pop("data", None)
    if isinstance(resource := plain.get("resource"), Mapping):
        plain["resource"] = {key: _NO_DATA.get(key, value) for key, value in resource.items() if key != "_meta"}
    return plain


def _write(folder: Path, declaration: Path, recorder: _Recorder, today: str, terminal: Terminal) -> None:
    tools = {tool["name"] for tool in recorder.offered["tools"]}
    calls = [call for call in recorder.calls if call[0] in tools]
    if not calls:
        raise ProcessingError(f"{recorder.name}: no call was made, so there is nothing to keep", "mock_no_calls")
    declared = frozenset(re.findall(r'"([^"\\]+)":', json.dumps(recorder.offered)))
    redaction = _Redaction([part for _, arguments, entry in calls for part in (arguments, entry)], declared)
    server = recorder.name
    seen: dict[tuple[str, str], tuple[dict[str, Any], list[dict[str, Any]]]] = {}
    for tool, arguments, entry in calls:
        given, said = redaction.of(arguments), redaction.of(entry)
        _, entries = seen.setdefault((tool, json.dumps(given, sort_keys=True)), (given, []))
        entries.append(said)
    # The first entry that fits answers, and other arguments are free: so those that ask for more come first.
    by_tool: dict[str, list[dict[str, Any]]] = {}
    for (tool, _), (given, entries) in sorted(seen.items(), key=lambda item: -len(item[1][0])):
        answered = entries[0] if entries.count(entries[0]) == len(entries) else {"answers": entries}
        by_tool.setdefault(tool, []).append({"when": _literal(given), **answered})
    made = [
        (tool, given, len(all_)) for (tool, _), (given, all_) in seen.items() if any("error" not in e for e in all_)
    ]
    scenario_id = next_id(folder, re.sub(r"[^a-z0-9]+", "-", server.lower()).strip("-"))
    path = folder / f"{scenario_id}.yaml"
    data = {
        "scenario_id": scenario_id,
        "description": f"Recorded calls of {server}. Say here what it guards",
        "category": scenario_id.rpartition("_")[0].replace("_", "-"),
        "created": today,
        "review": True,
        "input": {"task": "Say here what the agent was asked to do", "mock_responses": {server: by_tool}},
        "expected_output": {"calls": list(_expected_calls(server, made))} if made else _NOTHING_EXPECTED,
    }
    try:
        write_declaration(declaration, recorder.offered)
    except MCPConnectionError as error:
        terminal.line(f"Note: {error.message}")
    if not write_file(path, file_text(data, None)):
        raise ConfigurationError(f"{path} is there already, and stays. Record once more", "mock_exists")
    terminal.outcome(f"✓ wrote {path}: {pluralize(len(calls), 'call')} of {pluralize(len(by_tool), 'tool')}")
    terminal.line(what_was_replaced(redaction.counts))
    try:
        EvalLoader(any_agent=True).load_eval_test_case(path)
    except EvalError as error:
        terminal.outcome(f"✗ it cannot run as it stands: {error.message}. Correct it by hand")
    terminal.line("Say what the agent was asked, look at what the file holds and expects, then remove 'review: true'.")
    terminal.flush()


def _expected_calls(server: str, made: Sequence[tuple[str, Mapping[str, Any], int]]) -> Iterator[dict[str, Any]]:
    """Each as often as it was made; one with further arguments fits, too."""
    for tool, given, _ in made:
        wanted = _literal(given)
        times = sum(often for other, all_given, often in made if other == tool and has_arguments(all_given, wanted))
        yield {"server": server, "tool": tool, "arguments": wanted, "times": times}


def _literal(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as they were, also those that look like a matcher."""
    return {name: {"equals": value} if has_matcher(value) else value for name, value in arguments.items()}


class _Redaction:
    """What replaces personal data and secrets, the same thing by the same everywhere."""

    def __init__(self, recorded: Sequence[object], declared: Collection[str]) -> None:
        """declared: names in the schemas of the tools, which stay."""
        self._declared = declared
        leaves = [leaf for each in recorded for leaf in _leaves("", each)]
        texts = [text for _, text in leaves]
        lines = [
            f"{'name' if _PERSON.search(key) else key.replace('_', ' ')}: {part.strip()}"
            for key, text in leaves
            for part in (re.split(r"[,;|\n]", text) if _PERSON.search(key) else (text,))
        ]
        mail = {"subject": "", "body": "\n".join(lines), "from": "nobody@example.com", "received": ""}
        salt = hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).digest()
        self._anonymizer = Anonymizer(salt, texts, find_names(parse_email(mail), ()))
        self._secrets: dict[str, str] = {}

    @property
    def counts(self) -> dict[str, int]:
        return {**self._anonymizer.counts, **({"secret": len(self._secrets)} if self._secrets else {})}

    def of(self, value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {
                name if name in self._declared or _IDENTIFIER.fullmatch(name) else self._text(name): self.of(item, name)
                for name, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.of(item, key) for item in value]
        if isinstance(value, str):
            if key and SECRET_NAME.search(key) and value:
                return self._secret(value)
            parsed = _parsed(value)
            if parsed is None:
                return self._text(value)
            return json.dumps(self.of(parsed), ensure_ascii=False, indent=2 if "\n" in value else None)
        if isinstance(value, int | float) and _is_number(value):
            return type(value)(self._anonymizer.replace(str(abs(int(value))))) * (1 if value > 0 else -1)
        return value

    def _text(self, text: str) -> str:
        parts = re.split(r"(\[secret \d+\])", _SECRET.sub(lambda match: self._secret(match[0]), without_secrets(text)))
        return "".join(part if at % 2 else self._anonymizer.replace(part) for at, part in enumerate(parts))

    def _secret(self, value: str) -> str:
        return self._secrets.setdefault(value, f"[secret {len(self._secrets) + 1}]")


def _leaves(key: str, value: object) -> Iterator[tuple[str, str]]:
    """Each text and number that may be replaced, with the key that it stands under."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if not _IDENTIFIER.fullmatch(name):
                yield "", name
            yield from _leaves(name, item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(key, item)
    elif isinstance(value, str):
        parsed = _parsed(value)
        yield from [(key, value)] if parsed is None else _leaves(key, parsed)
    elif isinstance(value, int | float) and _is_number(value):
        yield key, str(abs(int(value)))


def _is_number(value: float) -> bool:
    """Such as no true or false, no fraction and no NaN is."""
    return abs(value) >= _LEAST_NUMBER and value % 1 == 0 and value not in _YEARS


def _parsed(text: str) -> Any:
    """The list or mapping that a text holds as JSON; None for any other text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
