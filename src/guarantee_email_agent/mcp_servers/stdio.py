"""The servers as programs on stdin and stdout: their command lines, and the SDK's server over `Dispatcher`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NoReturn, cast

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult

from guarantee_email_agent.mcp_servers.dispatcher import Dispatcher, ServerTool
from guarantee_email_agent.utils.logging import ROOT, LineFormatter
from guarantee_email_agent.utils.process import forbid_core_files
from guarantee_email_agent.utils.text import printable
from guarantee_email_agent.utils.version import __version__

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
    while line := await lines.get():
        yield line
