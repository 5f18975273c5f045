"""An MCP server made of tools: declare them, and `serve` does the rest over stdin and stdout.

    tools = [
        Tool(
            name="find_ticket",
            description="The ticket with this idempotency key, if there is one.",
            input_schema={
                "type": "object",
                "properties": {"idempotency_key": {"type": "string", "minLength": 1}},
                "required": ["idempotency_key"],
            },
            output_schema={"type": "object", "properties": {"ticket_id": {"type": ["string", "null"]}}},
            call=find_ticket,  # async (arguments) -> mapping
            read_only=True,
        )
    ]
    return serve("ticketing", tools)

What every server does alike:

- Arguments are checked against the input schema before `call` sees them: strict types, no unknown arguments, defaults
  filled in (see `arguments.py` for the keywords of JSON Schema that may be used).
- `ToolError` is how a tool says no. The caller gets a result with `isError`, the text `<code>: <message>` and the same
  as structured content `{"error": {"code", "message", "retryable", "uncertain"}}`. Codes of `serve` itself, with the
  server's name in front: `_invalid_argument`, `_unknown_tool`, `_stopping`, and `_internal` for an error of ours.
- A call once begun is finished, even where the client cancels it: what it does to the world must not stop half-way.
  A mere wait is given up, and a call that still waits for a thread (`in_thread`) is not begun.
- End of input and SIGTERM: nothing new is begun, calls in work are finished and answered, exit code 0. SIGINT: at once.
- Only the protocol goes to stdout. Diagnostics go to stderr, one line each, without anything a customer wrote.

`call` runs on the event loop: what blocks belongs into `in_thread`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from guarantee_email_agent import __version__
from guarantee_email_agent.mcp_servers.arguments import ArgumentError, ObjectSchema
from guarantee_email_agent.mcp_servers.tool_error import ToolError
from guarantee_email_agent.utils.imports import gc_paused
from guarantee_email_agent.utils.printable import printable

if TYPE_CHECKING:
    from mcp_types import CallToolResult

MAX_TEXT_CHARS = 65_536  # of the text beside structured content; for a mail of megabytes it would only double the size
CALLS_AT_ONCE = 16  # in threads

_Result = TypeVar("_Result")
_given_up: ContextVar[threading.Event] = ContextVar("given_up")  # by its client, of one call


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `read_only`: it changes nothing. `interruptible`: a mere wait, given up when the server stops."""

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    call: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
    read_only: bool = False
    interruptible: bool = False


def serve(name: str, tools: Sequence[Tool], instructions: str | None = None) -> int:
    """Serve `tools` on stdin and stdout until the input ends or SIGTERM; returns the exit code.

    `name` is the server's name in the protocol and the first part of its error codes. Raises ValueError where a schema
    uses a keyword that is not checked.
    """
    # Until the event loop takes over: a server that is still loading has nothing to finish.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    _forbid_core_files()
    desk = _Desk(name, tools)
    asyncio.run(_serve(desk, instructions))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # everything is finished
    return 0


async def in_thread(work: Callable[..., _Result], *arguments: object) -> _Result:
    """The result of `work` in a thread. It is not begun where the client gave the call up before a thread was free."""
    given_up = _given_up.get(None)

    def begin() -> _Result:
        if given_up is not None and given_up.is_set():
            raise ToolError("given_up", "nobody waits for this call any more")
        return work(*arguments)

    return await asyncio.get_running_loop().run_in_executor(None, begin)


def diagnose(text: str) -> None:
    """One line on stderr. Never with text from a customer."""
    print(printable(text), file=sys.stderr, flush=True)  # noqa: T201


class _Desk:
    """Takes the calls: finds the tool, checks the arguments, answers with a result or an error."""

    def __init__(self, name: str, tools: Sequence[Tool]) -> None:
        self.name = name
        self.tools = {tool.name: tool for tool in tools}
        self._schemas = {tool.name: ObjectSchema(tool.input_schema) for tool in tools}
        self._running: dict[asyncio.Task[Mapping[str, Any]], Tool] = {}
        self._stopping = False

    async def answer(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        from mcp_types import CallToolResult, TextContent

        try:
            content: Mapping[str, Any] = await self._call(tool_name, arguments)
            text, failed = _as_text(content), False
        except ToolError as error:
            message = printable(error.message)
            content = {
                "error": {
                    "code": error.code,
                    "message": message,
                    "retryable": error.retryable,
                    "uncertain": error.uncertain,
                }
            }
            text, failed = f"{error.code}: {message}", True
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=dict(content), is_error=failed
        )

    async def _call(self, tool_name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        tool = self.tools.get(tool_name)
        if tool is None:
            known = ", ".join(self.tools)
            raise ToolError(f"{self.name}_unknown_tool", f"there is no tool {tool_name!r}; there are {known}")
        try:
            checked = self._schemas[tool_name].check(arguments)
        except ArgumentError as error:
            raise ToolError(f"{self.name}_invalid_argument", f"{tool_name}: {error}") from None
        stopping = ToolError(f"{self.name}_stopping", "the server is stopping", retryable=True)
        if self._stopping and tool.interruptible:
            raise stopping
        given_up = threading.Event()
        _given_up.set(given_up)
        task = asyncio.ensure_future(tool.call(checked))
        self._running[task] = tool
        task.add_done_callback(self._forget)
        try:
            # Shielded: the client's cancellation ends its waiting, and not what is being done.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise stopping from None
            given_up.set()
            if tool.interruptible:
                task.cancel()
            raise
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - reported in _forget, and the other calls go on
            raise ToolError(
                f"{self.name}_internal",
                f"{tool_name} failed on an error of the server itself: {type(error).__name__} at {_place(error)}",
                uncertain=not tool.read_only,
            ) from None

    def _forget(self, task: asyncio.Task[Mapping[str, Any]]) -> None:
        tool = self._running.pop(task)
        # Also that of a call given up: asyncio would tell of it with its text, which may quote the mail.
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ToolError):
            diagnose(f"{self.name}: {tool.name}: unexpected {type(error).__name__} at {_place(error)}")

    def stop(self) -> None:
        """Give up what only waits; everything else is finished."""
        self._stopping = True
        for task, tool in list(self._running.items()):
            if tool.interruptible:
                task.cancel()

    async def finish(self) -> None:
        """Wait for calls whose client stopped waiting for them."""
        while self._running:
            await asyncio.wait(self._running)


async def _serve(desk: _Desk, instructions: str | None) -> None:
    import logging

    with gc_paused():
        import mcp_types as types
        from mcp.server.lowlevel import Server

        from guarantee_email_agent.mcp_servers.stdio import StandardStreams
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # its tracebacks may quote mails; errors are reported here

    listed = types.ListToolsResult(
        tools=[
            types.Tool(
                name=tool.name,
                description=tool.description,
                input_schema={"additionalProperties": False, **tool.input_schema},
                output_schema=dict(tool.output_schema) if tool.output_schema else None,
                annotations=types.ToolAnnotations(read_only_hint=tool.read_only),
            )
            for tool in desk.tools.values()
        ]
    )

    async def on_list_tools(_: object, __: object) -> types.ListToolsResult:
        return listed

    async def on_call_tool(_: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await desk.answer(params.name, params.arguments or {})

    server: Server[Any] = Server(
        desk.name,
        version=__version__,
        instructions=instructions,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )
    streams = StandardStreams(on_end=desk.stop)
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="call"))
    loop.add_signal_handler(signal.SIGTERM, streams.end)
    async with streams.open() as (read_stream, write_stream):
        await server.run(read_stream, write_stream, server.create_initialization_options())
    await desk.finish()


def _as_text(content: Mapping[str, Any]) -> str:
    """For clients that read text only; of a whole mail it would be one copy too many."""
    import json

    if sum(len(value) for value in content.values() if isinstance(value, str)) <= MAX_TEXT_CHARS:
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        if len(text) <= MAX_TEXT_CHARS:
            return text
    return f"over {MAX_TEXT_CHARS} characters of JSON: see the structured content"


def _place(error: BaseException) -> str:
    """`module.py:line` where it was raised: enough to find an error of ours, without its text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "an unknown place"
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"


def _forbid_core_files() -> None:
    """A core file would hold mails and passwords."""
    try:
        import resource
    except ImportError:  # Windows has none
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
