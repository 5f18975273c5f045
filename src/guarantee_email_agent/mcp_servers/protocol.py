"""The server's side of the Model Context Protocol for tools, message by message, over any stream of lines.

Both forms of the protocol are spoken, and a client's first request decides which: the one that begins with
`initialize` (2024-11-05 to 2025-11-25), and the one in which every request says in its `_meta` what it takes for
granted (2026-07-28). It stands in for the SDK's server, which takes half a second and 30 MB to load.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from pydantic_core import from_json, to_json

from guarantee_email_agent.mcp_servers.messages import ToolDeclaration, ToolResult
from guarantee_email_agent.utils.version import __version__

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ENVELOPE_VERSIONS: Final = ("2026-07-28",)

PARSE_ERROR: Final = -32700  # JSON-RPC 2.0 §5.1
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
UNSUPPORTED_VERSION: Final = -32022  # MCP 2026-07-28

_META: Final = "io.modelcontextprotocol/"
_VERSION_KEY: Final = f"{_META}protocolVersion"
_CLIENT_KEY: Final = f"{_META}clientInfo"
_CAPABILITIES_KEY: Final = f"{_META}clientCapabilities"
_CAPABILITIES: Final = {"tools": {"listChanged": False}}
_UNCACHED: Final = {"ttlMs": 0, "cacheScope": "private"}

_Id: TypeAlias = str | int


class ServedTools(Protocol):
    """The tools of one server. Its methods are called on the server's event loop."""

    def declarations(self) -> Sequence[ToolDeclaration]:
        """The tools as clients see them."""

    async def dispatch(self, tool_name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """The answer to a call; a failure is a result with `is_error`. Cancelled, it need not answer."""


@dataclass(eq=False)
class _RefusedError(Exception):
    """A request that gets an error and no result."""

    code: int
    message: str
    data: Any = None


class ServerSession:
    """One client, from its first message on. send: takes each line of an answer, without its line feed.

    Belongs to one event loop. Calls of tools are worked on side by side, everything else at once.
    """

    def __init__(
        self, name: str, tools: ServedTools, send: Callable[[bytes], None], instructions: str | None = None
    ) -> None:
        self._info = {"name": name, "version": __version__}
        self._about = {"capabilities": _CAPABILITIES, **({"instructions": instructions} if instructions else {})}
        self._tools = tools
        self._send = send
        self._listed = [tool.to_json() for tool in tools.declarations()]
        self._calls: dict[_Id, asyncio.Task[None]] = {}
        self._has_envelopes: bool | None = None  # until the first request
        self._initialized = False

    def receive(self, line: bytes) -> None:
        """One message of the client."""
        try:
            message = from_json(line)
        except ValueError:  # half a character in a text, too, which nothing could be answered with
            self._refuse(_readable_id(line), _no_message())
            return
        if not _is_message(message):
            found = message.get("id") if isinstance(message, dict) else None
            self._refuse(found if _is_id(found) else None, _no_message())
        elif "method" in message:
            params = message.get("params") or {}
            if "id" in message:
                self._on_request(message["id"], message["method"], params)
            elif message["method"] == "notifications/cancelled":
                self._cancel(params.get("requestId"))

    async def finish(self) -> None:
        """Wait until every call is answered, or was given up by the client."""
        while self._calls:
            await asyncio.wait(self._calls.values())

    def _on_request(self, request_id: _Id, method: str, params: Mapping[str, Any]) -> None:
        try:
            if self._has_envelopes is None:
                self._has_envelopes = method != "initialize" and _VERSION_KEY in _meta(params)
            check = self._check_envelope if self._has_envelopes else self._check_handshake
            check(method, params)
            if method == "tools/call":
                self._call(request_id, params)
                return
            result = self._result(method, params)
        except _RefusedError as error:
            self._refuse(request_id, error)
        else:
            self._answer(request_id, result)

    def _check_handshake(self, method: str, params: Mapping[str, Any]) -> None:
        if method != "initialize" and _VERSION_KEY in _meta(params):
            text = "this connection began with initialize; requests with an envelope of 2026-07-28 do not belong on it"
            raise _RefusedError(INVALID_REQUEST, text)
        if method not in ("initialize", "ping", "tools/list", "tools/call"):
            raise _RefusedError(METHOD_NOT_FOUND, "Method not found", method)
        if method in ("tools/list", "tools/call") and not self._initialized:
            raise _RefusedError(INVALID_PARAMS, "initialize comes first")

    def _check_envelope(self, method: str, params: Mapping[str, Any]) -> None:
        supported = list(ENVELOPE_VERSIONS)
        if method == "initialize":
            asked = {"requested": version} if isinstance(version := params.get("protocolVersion"), str) else {}
            text = "this connection speaks 2026-07-28, which knows no initialize"
            raise _RefusedError(UNSUPPORTED_VERSION, text, {"supported": supported, **asked})
        meta = _meta(params)
        if missing := [key for key in (_VERSION_KEY, _CAPABILITIES_KEY) if key not in meta]:
            raise _RefusedError(INVALID_PARAMS, f"params._meta lacks {' and '.join(missing)}")
        version, client = meta[_VERSION_KEY], meta.get(_CLIENT_KEY)
        if not isinstance(version, str) or not isinstance(meta[_CAPABILITIES_KEY], dict):
            raise _RefusedError(INVALID_PARAMS, "params._meta: the version is a string, the capabilities an object")
        if version not in ENVELOPE_VERSIONS:
            data = {"supported": supported, "requested": version}
            raise _RefusedError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        if client is not None and not _is_implementation(client):
            raise _RefusedError(INVALID_PARAMS, f"params._meta: {_CLIENT_KEY} is an object with name and version")
        if method not in ("server/discover", "tools/list", "tools/call"):
            raise _RefusedError(METHOD_NOT_FOUND, "Method not found", method)

    def _result(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            return self._initialize(params)
        if method == "tools/list":
            if params.get("cursor") is not None:  # there is one page, so that we never gave one out
                raise _RefusedError(INVALID_PARAMS, "unknown cursor: all tools are on the first page")
            return {"tools": self._listed, **(_UNCACHED if self._has_envelopes else {})}
        if method == "server/discover":
            return {"supportedVersions": list(ENVELOPE_VERSIONS), **self._about, **_UNCACHED}
        return {}  # ping

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        match params:
            case {"protocolVersion": str(asked), "capabilities": dict(), "clientInfo": client} if _is_implementation(
                client
            ):
                version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
            case _:
                raise _RefusedError(INVALID_PARAMS, "initialize takes protocolVersion, capabilities and clientInfo")
        self._initialized = True
        return {"protocolVersion": version, "serverInfo": self._info, **self._about}

    def _call(self, request_id: _Id, params: Mapping[str, Any]) -> None:
        tool, arguments = params.get("name"), params.get("arguments")
        if not isinstance(tool, str) or not isinstance(arguments, dict | None):
            raise _RefusedError(INVALID_PARAMS, "tools/call takes a name and an object of arguments")
        if request_id in self._calls:
            raise _RefusedError(INVALID_REQUEST, "a call with this id is still in work")
        call = asyncio.create_task(self._dispatch(request_id, tool, arguments or {}))
        self._calls[request_id] = call
        call.add_done_callback(lambda _: self._calls.pop(request_id))

    async def _dispatch(self, request_id: _Id, tool: str, arguments: Mapping[str, Any]) -> None:
        try:
            self._answer(request_id, (await self._tools.dispatch(tool, arguments)).to_json())
        except asyncio.CancelledError:  # by its client, who waits for no answer
            return
        except Exception as error:  # noqa: BLE001 - an error of ours, without its text, which may quote the mail
            self._refuse(request_id, _RefusedError(INTERNAL_ERROR, f"the server failed: {type(error).__name__}"))

    def _cancel(self, request_id: object) -> None:
        if isinstance(request_id, str | int) and (call := self._calls.get(request_id)) is not None:
            call.cancel()

    def _answer(self, request_id: _Id, result: dict[str, Any]) -> None:
        if self._has_envelopes:
            meta = {**result.get("_meta", {}), f"{_META}serverInfo": self._info}
            result = {**result, "_meta": meta, "resultType": "complete"}
        try:
            line = to_json({"jsonrpc": "2.0", "id": request_id, "result": result})
        except ValueError:  # half a character (a lone surrogate), which JSON in UTF-8 cannot hold
            self._refuse(request_id, _RefusedError(INTERNAL_ERROR, "the answer cannot be written as JSON"))
        else:
            self._send(line)

    def _refuse(self, request_id: _Id | None, error: _RefusedError) -> None:
        data = {} if error.data is None else {"data": error.data}
        refusal = {"code": error.code, "message": error.message, **data}
        self._send(to_json({"jsonrpc": "2.0", "id": request_id, "error": refusal}))


def _is_message(message: object) -> bool:
    """JSON-RPC 2.0 as MCP has it: ids are strings or integers, params an object; there are no batches."""
    match message:
        case {"jsonrpc": "2.0", "method": str(), **rest}:
            return _is_id(rest.get("id", "")) and isinstance(rest.get("params"), dict | None)
        case {"jsonrpc": "2.0", "id": _, "result": dict()} | {"jsonrpc": "2.0", "error": dict()}:
            return True  # an answer, though nothing was asked
    return False


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _is_implementation(value: object) -> bool:
    match value:
        case {"name": str(), "version": str()}:
            return True
    return False


def _meta(params: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _no_message() -> _RefusedError:
    return _RefusedError(PARSE_ERROR, "the line is no JSON-RPC message in valid JSON")


def _readable_id(line: bytes) -> _Id | None:
    """The id of a line that is no valid JSON as a whole: without an answer its sender would wait until its deadline."""
    import json

    with suppress(ValueError, RecursionError):
        match json.loads(line):
            case {"id": int() | str() as found} if _is_id(found) and str(found).isprintable():
                return found
    return None
