"""The tools of a real MCP server as `servers/NAME.yaml` of a suite, and how they differ from that file by now."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.eval.declared_servers import SERVER_NAME, DeclaredServer, load_declared_server
from guarantee_email_agent.eval.tool_mocks import OWN_SERVICES, OWN_TOOLS
from guarantee_email_agent.files.problems import dotted_path
from guarantee_email_agent.files.text_file import write_new_file
from guarantee_email_agent.files.validation import build
from guarantee_email_agent.files.yaml import dump
from guarantee_email_agent.runlog.suite_manifest import SERVERS_FOLDER
from guarantee_email_agent.services.mcp.mcp_session import McpSession
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch, configured_launch
from guarantee_email_agent.utils.errors import EXIT_EVALUATION, EXIT_SUCCESS, ConfigurationError, MCPConnectionError
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
