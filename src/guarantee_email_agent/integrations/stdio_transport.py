"""A server process as the SDK's transport, for the servers of others."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Self

from guarantee_email_agent.integrations.server_process import AnswerTooLargeError, ServerProcess
from guarantee_email_agent.integrations.tool_client import NO_JSON

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage


@asynccontextmanager
async def stdio_transport(process: ServerProcess) -> AsyncIterator[TransportStreams]:
    """The SDK's `Transport`. Raises OSError and ValueError as the process does."""
    import anyio
    import mcp_types as types
    from mcp.shared.message import SessionMessage

    incoming_send, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)

    async def receive(line: bytes) -> bool:
        message: types.JSONRPCMessage
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if (answered := _answered_id(line)) is None:
                return False
            # Without an answer its call would wait until its deadline, as if the server were silent.
            error = types.ErrorData(code=types.PARSE_ERROR, message=NO_JSON)
            message = types.JSONRPCError(jsonrpc="2.0", id=answered, error=error)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the reader is gone
            await incoming_send.send(SessionMessage(message))
        return True

    def on_end(_: AnswerTooLargeError | None) -> None:
        incoming_send.close()

    async with process.running(receive, on_end):
        try:
            yield incoming, _ServerStdin(process)
        finally:
            incoming.close()


def _answered_id(line: bytes) -> int | None:
    """The request that a line answers which is no valid message, for instance for half a character in a text.

    Ours have a number. Other JSON with an `id`, such as a line of a log, answers nothing.
    """
    with suppress(ValueError, RecursionError):
        match json.loads(line):
            case {"jsonrpc": "2.0", "id": int(answered), "result": _} | {
                "jsonrpc": "2.0",
                "id": int(answered),
                "error": _,
            } if not isinstance(answered, bool):
                return answered
    return None


class _ServerStdin:
    """The server's stdin as the SDK's `WriteStream`.

    A message is written whole or not at all, also where its sender is cancelled.
    """

    def __init__(self, process: ServerProcess) -> None:
        self._process = process

    async def send(self, item: SessionMessage, /) -> None:
        import anyio
        import mcp_types as types

        if self._process.is_closing:
            raise anyio.ClosedResourceError
        self._process.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        if isinstance(item.message, types.JSONRPCRequest):
            try:
                await self._process.drain()
            except OSError:
                raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        self._process.close_stdin()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
