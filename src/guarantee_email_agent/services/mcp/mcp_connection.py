"""One connection to one MCP server, from its beginning to its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from guarantee_email_agent.services.mcp.sdk_client import SdkClient, http_transport, sdk_client, stdio_transport
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch
from guarantee_email_agent.services.mcp.server_process import ServerProcess
from guarantee_email_agent.services.mcp.tools import CallFailedError, OfferedTool, ToolAnswer

logger = logging.getLogger(__name__)


class McpConnection:
    """A client, whose contexts are entered and left in one task of our own; calls may come from any task.

    `open` once, then `call` until `ended`, and `close` in any case.
    """

    def __init__(self, name: str, launch: ServerLaunch, max_answer_bytes: int, exit_grace_s: float) -> None:
        self._name = name
        self._launch = launch
        self._max_answer_bytes = max_answer_bytes
        self._exit_grace_s = exit_grace_s
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._client: SdkClient | None = None
        self._opened = False
        self._process: ServerProcess | None = None
        self.tools: Mapping[str, OfferedTool] = {}
        """As they were listed last, by name."""
        self.tools_changed = False
        """Whether the server said that they did since."""
        self.last_stderr_line = ""
        """The last line of the server's stderr, printable."""
        self.reason: BaseException | None = None
        """Why it ended, where there was an error."""

    @property
    def ended(self) -> bool:
        return self._task is None or self._stop.is_set() or self._task.done()

    @property
    def exit_code(self) -> int | None:
        """Of the server's process; negative for a signal. None for one that runs or is reached by URL."""
        return self._process.exit_code if self._process else None

    async def open(self) -> None:
        """Connect, negotiate the protocol, list the tools. Raises what stood in the way; `close` all the same."""
        opened = asyncio.Event()
        self._task = asyncio.create_task(self._run(opened), name=f"mcp {self._name}")
        self._task.add_done_callback(lambda _: opened.set())
        await opened.wait()
        if not self._opened:
            raise self.reason or EOFError("the connection was closed")

    def end(self, reason: BaseException | None = None) -> None:
        """Leave, and stop the server if we started it, without waiting for that."""
        self.reason = self.reason or reason
        self._stop.set()

    async def ended_within(self, seconds: float | None) -> bool:
        """`end`, and whether the server is gone by then. Cancelled, it still ends."""
        self.end()
        return self._task is None or bool((await asyncio.wait((self._task,), timeout=seconds))[0])

    async def close(self) -> None:
        """`end`, and return once the server is gone; one that has not answered yet is not waited for."""
        if self._task is None:
            return
        if not self._opened:
            self._task.cancel()
        # A process is stopped in steps that have limits; the SDK's end of a session over HTTP has none.
        if not await self.ended_within(None if self._process else self._exit_grace_s):
            self._task.cancel()
            await asyncio.wait((self._task,), timeout=self._exit_grace_s)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Raises CallFailedError where no answer of the tool comes, ValueError where it is not as the tool declares.

        Sets no limit to the waiting.
        """
        if self._client is None or self.ended:
            raise CallFailedError("the connection has ended", ended=True, was_sent=False)
        try:
            return await self._client.call(tool, arguments)
        except CallFailedError as failure:
            failure.ended = failure.ended or self._stop.is_set()
            raise
        except ValueError:
            if self._stop.is_set():
                raise CallFailedError("the connection has ended", ended=True) from None
            raise

    async def list_tools(self) -> None:
        """Ask for the tools anew. Raises CallFailedError."""
        if self._client is None or self.ended:
            raise CallFailedError("the connection has ended", ended=True, was_sent=False)
        self.tools_changed = False
        try:
            self.tools = await self._list_tools(self._client)
        except (CallFailedError, OSError, RuntimeError, ValueError) as error:
            self.tools_changed = True
            raise CallFailedError(str(error), ended=self.ended) from None

    @staticmethod
    async def _list_tools(client: SdkClient) -> dict[str, OfferedTool]:
        return {tool.name: tool for tool in await client.list_tools()}

    async def _run(self, opened: asyncio.Event) -> None:
        try:
            async with self._open_client() as self._client:
                self.tools = await self._list_tools(self._client)
                self._opened = True
                opened.set()
                await self._stop.wait()
        except asyncio.CancelledError:
            self.end(TimeoutError("it did not answer in time"))
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever it is, it is why there is no connection
            self.end(_root_cause(error))
        finally:
            self._stop.set()

    def _open_client(self) -> AbstractAsyncContextManager[SdkClient]:
        launch, limit = self._launch, self._max_answer_bytes
        if launch.command is None:
            return sdk_client(http_transport(launch, limit, self.end), self._on_tools_changed)
        self._process = ServerProcess(launch, limit, self._exit_grace_s, self._log_stderr, self.end)
        return sdk_client(stdio_transport(self._process), self._on_tools_changed)

    def _on_tools_changed(self) -> None:
        self.tools_changed = True

    def _log_stderr(self, line: str) -> None:
        if any(map(str.isalnum, line)):
            self.last_stderr_line = line
            logger.debug("%s: %s", self._name, line)  # it may quote a mail


def _root_cause(error: BaseException) -> BaseException:
    """Task groups wrap what happened, several levels deep."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
