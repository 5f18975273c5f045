"""An MCP server made of tools, as a program on stdin and stdout: declare them, and `serve` does the rest.

    class FoundTicket(ToolOutput):
        ticket_id: str | None

    async def find_ticket(idempotency_key: Annotated[str, Field(min_length=1)]) -> FoundTicket:
        '''The ticket with this idempotency key, if there is one.'''
        return FoundTicket(ticket_id=await in_thread(store.find, idempotency_key))

    return serve("ticketing", [ServerTool(find_ticket, read_only=True)])

What every server does alike:

- Arguments are validated before the handler sees them: strict types, no unknown arguments, defaults filled in.
- `ToolError` is how a handler fails. The caller gets a result with `isError`, the text `<code>: <message>` and the same
  as data, `{"code", "message", "retryable", "uncertain"}`, in the result's `_meta` under ERROR_META_KEY: structured
  content has to be as the tool declares it, also in an error, and clients check that. `Dispatcher` itself has the
  codes `_invalid_argument`, `_unknown_tool`, and `_internal` for an error of ours, after its name.

Handlers run on the event loop: what blocks belongs into `in_thread`, where it is finished once it is begun, even if the
client cancels the call or is gone: what a call does to the world must not stop half-way.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast, get_type_hints

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_json

from guarantee_email_agent.services.blocking import error_place
from guarantee_email_agent.services.call_errors import ERROR_META_KEY, ToolError
from guarantee_email_agent.utils.distribution import __version__
from guarantee_email_agent.utils.logging import ROOT, LineFormatter
from guarantee_email_agent.utils.process import forbid_core_files
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MAX_TEXT_CHARS: Final = 65_536  # of the text beside structured content; for a mail of megabytes it would only double it
MAX_THREADS: Final = 16
_limiter: Final[RunVar[CapacityLimiter | None]] = RunVar("limiter")  # not anyio's own: the SDK writes answers by that

logger = logging.getLogger(__name__)

_MAX_PROBLEMS = 5  # of one call's arguments that are reported
_MAX_NAME_CHARS = 80
_SETTLE_S: Final = 0.1

_Result = TypeVar("_Result")


class ToolArguments(BaseModel):
    """A tool's arguments; as it is, for a tool without any. An error never quotes what a customer wrote."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


class ToolOutput(BaseModel):
    """A tool's structured content, without the fields that were not set; as it is, for a tool that has none."""

    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True)
class ServerTool:
    """A tool made from its handler: its name, its docstring as the description, what it takes and the model it returns.

    What it takes: parameters by their names, or one of ToolArguments with all of them.

    `read_only`: it changes nothing. `idempotent`: a second call with the same arguments changes nothing more.
    """

    handler: Callable[..., Awaitable[ToolOutput]]
    read_only: bool = False
    idempotent: bool = False

    @property
    def name(self) -> str:
        return self.handler.__name__

    @cached_property
    def models(self) -> tuple[type[ToolArguments], type[ToolOutput]]:
        hints = get_type_hints(self.handler, include_extras=True)
        output = hints.pop("return")
        if self.takes_model:
            return *hints.values(), output
        given = inspect.signature(self.handler).parameters
        fields: dict[str, Any] = {
            name: (hint, ... if given[name].default is inspect.Parameter.empty else given[name].default)
            for name, hint in hints.items()
        }
        return create_model(self.name, __base__=ToolArguments, **fields), output

    @cached_property
    def takes_model(self) -> bool:
        kinds = [kind for name, kind in get_type_hints(self.handler).items() if name != "return"]
        return len(kinds) == 1 and isinstance(kinds[0], type) and issubclass(kinds[0], ToolArguments)

    def call(self, checked: ToolArguments) -> Awaitable[ToolOutput]:
        return self.handler(checked) if self.takes_model else self.handler(**dict(checked))

    def declaration(self) -> Tool:
        arguments, output = map(_schema, self.models)
        return Tool(
            name=self.name,
            title=self.name.replace("_", " ").capitalize(),
            description=" ".join((inspect.getdoc(self.handler) or "").split()),
            input_schema=arguments,
            output_schema=output,
            annotations=ToolAnnotations(
                read_only_hint=self.read_only,
                destructive_hint=False,  # no tool of ours takes anything away
                idempotent_hint=self.read_only or self.idempotent,
            ),
        )


def text_result(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)])


def structured_result(content: Mapping[str, Any]) -> CallToolResult:
    """An answer as structured content, and as JSON text for clients that read text only.

    Raises ValueError where JSON cannot hold it: half a character, as of a file name that is no UTF-8.
    """
    text = to_json(content).decode()
    if len(text) > MAX_TEXT_CHARS:
        text = f"over {MAX_TEXT_CHARS} characters of JSON: see the structured content"
    return CallToolResult(content=[TextContent(text=text)], structured_content=dict(content))


def error_result(error: ToolError) -> CallToolResult:
    message = printable(error.message)
    data = {"code": error.code, "message": message, "retryable": error.retryable, "uncertain": error.uncertain}
    text = TextContent(text=f"{error.code}: {message}")
    return CallToolResult(content=[text], is_error=True, _meta={ERROR_META_KEY: data})


async def in_thread(work: Callable[..., _Result], *arguments: object) -> _Result:
    """The result of `work` in a thread. It is not begun where the client cancelled before a thread was free."""
    if (limiter := _limiter.get(None)) is None:
        _limiter.set(limiter := CapacityLimiter(MAX_THREADS))
    return await to_thread.run_sync(work, *arguments, limiter=limiter)


class Dispatcher:
    """Takes the calls: finds the tool, validates the arguments, answers with a result or an error."""

    def __init__(self, name: str, tools: Sequence[ServerTool], reword: Callable[[str], str] = str) -> None:
        """reword: takes the message of each error, for a service that names settings of the agent."""
        self.name = name
        self._reword = reword
        self.tools = {tool.name: tool for tool in tools}
        self._calls: set[asyncio.Task[Any]] = set()

    def declarations(self) -> list[Tool]:
        """The tools as clients see them."""
        return [tool.declaration() for tool in self.tools.values()]

    async def dispatch(self, tool_name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """The answer to a call; a failure is a result with `is_error`."""
        call = asyncio.current_task()
        assert call is not None
        self._calls.add(call)
        try:
            content = await self._call(tool_name, arguments)
            return structured_result(content.model_dump(exclude_unset=True))
        except ToolError as error:
            error.message = self._reword(error.message)
            return error_result(error)
        except ValueError:
            return error_result(
                ToolError(f"{self.name}_internal", f"{tool_name}: the answer cannot be written as JSON")
            )
        finally:
            self._calls.discard(call)

    async def _call(self, tool_name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        tool = self.tools.get(tool_name)
        if tool is None:
            text = f"there is no tool {tool_name!r}; there are {', '.join(self.tools)}"
            raise ToolError(f"{self.name}_unknown_tool", text)
        model, _ = tool.models
        try:
            checked = model.model_validate(arguments)
        except ValidationError as error:
            raise ToolError(f"{self.name}_invalid_argument", f"{tool_name}: {format_problems(error, model)}") from None
        try:
            return await tool.call(checked)
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - without its text, which may quote the mail
            place = f"{type(error).__name__} at {error_place(error)}"
            logger.error("%s: %s: unexpected %s", self.name, tool_name, place)
            raise ToolError(
                f"{self.name}_internal",
                f"{tool_name} failed on an error of the server itself: {place}",
                uncertain=not tool.read_only,
            ) from None

    async def drain(self) -> None:
        """Wait for calls whose client stopped waiting for them."""
        while self._calls:
            await asyncio.wait(self._calls)


def format_problems(error: ValidationError, model: type[ToolArguments]) -> str:
    """What is wrong with which argument, on one line. Quotes names and limits, never a value."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(_format_problem(problem, model) for problem in problems[:_MAX_PROBLEMS])


def _format_problem(problem: ErrorDetails, model: type[ToolArguments]) -> str:
    name, *keys = (repr(str(part)[:_MAX_NAME_CHARS]) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"unknown argument {name}; its arguments are {', '.join(model.model_fields) or 'none'}"
    if problem["type"] == "missing":
        return f"the argument {name} is missing"
    return f"{name}{''.join(f'[{key}]' for key in keys)}: {problem['msg']}"


class _UntitledJsonSchema(GenerateJsonSchema):
    """Without titles, which only repeat names, and without our docstrings."""

    def field_title_should_be_set(self, _: Any) -> bool:
        return False

    def model_schema(self, schema: Any) -> dict[str, Any]:
        titled = super().model_schema(schema)
        return {key: value for key, value in titled.items() if key not in ("title", "description")}


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(schema_generator=_UntitledJsonSchema)


_EPILOG: Final = """\
The program speaks the Model Context Protocol on stdin and stdout; diagnostics go to stderr. It ends with exit code 0
when its input ends or on SIGTERM, once what it has begun is done. Exit code 2: something on the command line is wrong,
or what it names is."""


class CommandLine(argparse.ArgumentParser):
    """An argument parser that has no usage text in its error messages."""

    def __init__(self, server: str, description: str) -> None:
        prog = f"guarantee-email-agent mcp-server {server}"
        super().__init__(prog, description=description, epilog=_EPILOG, allow_abbrev=False)
        handler = logging.StreamHandler()
        handler.setFormatter(LineFormatter("%(message)s"))
        handler.addFilter(lambda record: record.name != f"{ROOT}.cli")  # what a command logs of every command
        logger = logging.getLogger(ROOT)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)

    def error(self, message: str) -> NoReturn:
        exit_with_error(f"{message}; see --help")


def exit_with_error(message: str) -> NoReturn:
    """One line on stderr, and exit code 2."""
    print(printable(message), file=sys.stderr, flush=True)  # noqa: T201
    sys.exit(2)


def serve(
    name: str, tools: Sequence[ServerTool], instructions: str | None = None, *, reword: Callable[[str], str] = str
) -> int:
    """Serve `tools` on stdin and stdout until the input ends or SIGTERM; returns the exit code.

    Then nothing new is begun, and what was begun in a thread is finished. SIGINT ends it at once. `name` is the
    server's name in the protocol and the first part of its error codes. reword: takes the message of each error.
    """
    _exit_on_signals()  # until the event loop takes over
    asyncio.run(serve_calls(Dispatcher(name, tools, reword), instructions))
    _exit_on_signals()
    return 0


def _exit_on_signals() -> None:
    """End at once on SIGTERM and SIGINT, while there are no calls to finish: before serving, and after it."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def sdk_server(dispatcher: Dispatcher, instructions: str | None = None) -> Server[Any]:
    async def list_tools(*_: object) -> ListToolsResult:
        return ListToolsResult(tools=dispatcher.declarations())

    async def call_tool(_: object, params: CallToolRequestParams) -> CallToolResult:
        return await dispatcher.dispatch(params.name, params.arguments or {})

    return Server(
        dispatcher.name,
        version=__version__,
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve_calls(dispatcher: Dispatcher, instructions: str | None = None) -> None:
    """As `serve`, in the event loop of the caller."""
    forbid_core_files()  # one would hold mails and passwords
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)  # what it says of a message may quote a mail
    loop = asyncio.get_running_loop()
    lines = asyncio.Queue[bytes]()
    _read_stdin(loop, lines)
    loop.add_signal_handler(signal.SIGTERM, lines.put_nowait, b"")
    server = sdk_server(dispatcher, instructions)
    try:
        async with stdio_server(cast("Any", _until_empty(lines))) as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    except* BrokenPipeError:  # the client is gone
        pass


def _read_stdin(loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes]) -> None:
    """Put the lines of stdin into `lines`, and at its end an empty one. Who else reads stdin finds it empty.

    In a daemon thread, unlike in the SDK, since SIGTERM has to end a server whose client says nothing.
    """
    stdin = os.fdopen(os.dup(0), "rb", 65_536, closefd=False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def read() -> None:
        with suppress(RuntimeError):  # the loop is closed: the server has ended
            with suppress(OSError):  # as good as the end
                for line in stdin:
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, daemon=True, name="stdin").start()


async def _until_empty(lines: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
    """The end is told once what was begun in a thread is done: with it the SDK drops what has no answer yet."""
    while line := await lines.get():
        yield line
    await asyncio.sleep(_SETTLE_S)  # what came last is begun
    while (limiter := _limiter.get(None)) is not None and limiter.borrowed_tokens:
        await asyncio.sleep(_SETTLE_S)
    await asyncio.sleep(_SETTLE_S)  # and answered
