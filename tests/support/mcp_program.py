"""A server program: under the SDK's own client, for tests that are not asynchronous, or without any."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self

from anyio.from_thread import start_blocking_portal
from mcp import ClientSession, StdioServerParameters, stdio_client

from guarantee_email_agent.services.call_errors import ERROR_META_KEY

INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def run_program(module: str, *arguments: object, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """The program from start to end, with all of its output."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=60, check=False, env={"PATH": "", **env}
    )


class RawServer:
    """`python <arguments>` without any client: lines in, lines out. A context manager, which kills what still runs."""

    def __init__(self, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.request(0, "initialize", INITIALIZE)
        assert self.await_line()["id"] == 0
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def request(self, identity: int, method: str, params: dict[str, Any]) -> None:
        self.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})

    def call(self, identity: int, tool: str, **arguments: Any) -> None:
        self.request(identity, "tools/call", {"name": tool, "arguments": arguments})

    def cancel(self, identity: int) -> None:
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identity}})

    def send(self, message: object) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def await_line(self) -> Any:
        return json.loads(self._stdout.readline())

    def end(self, *, by: int | None = None) -> tuple[int, dict[int, Any], str]:
        """Exit code, results by id, and what was said on stderr; after the end of input, or a signal."""
        if by is not None:
            self.process.send_signal(by)
        else:
            assert self.process.stdin is not None
            self.process.stdin.close()
        answers = self._stdout.read()
        assert self.process.stderr is not None
        errors = self.process.stderr.read().decode()
        code = self.process.wait(30)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code, {line["id"]: line.get("result") for line in map(json.loads, answers.splitlines())}, errors

    @property
    def _stdout(self) -> Any:
        assert self.process.stdout is not None
        return self.process.stdout


class CallError(Exception):
    """A call that the server answered with an error: its code, message and the two marks."""

    def __init__(self, error: Mapping[str, Any], text: str) -> None:
        super().__init__(text)
        self.code: str = error["code"]
        self.message: str = error["message"]
        self.retryable: bool = error["retryable"]
        self.uncertain: bool = error["uncertain"]
        self.text = text


class McpProgram:
    """`python -m <module> <arguments>` and a session with it. A context manager."""

    def __init__(self, module: str, *arguments: object, env: Mapping[str, str] | None = None, stderr: Path) -> None:
        command = ["-m", module, *map(str, arguments)]
        self._parameters = StdioServerParameters(command=sys.executable, args=command, env=dict(env or {}))
        self._stderr = stderr
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._portal = stack.enter_context(start_blocking_portal())
            self._session = stack.enter_context(self._portal.wrap_async_context_manager(self._connected()))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured content of a result. Raises CallError."""
        result = self._portal.call(self._session.call_tool, tool, arguments)
        if result.is_error:
            assert result.structured_content is None  # which clients hold against the schema of an answer
            raise CallError(result.meta[ERROR_META_KEY], result.content[0].text)
        assert result.structured_content is not None
        return dict(result.structured_content)

    def start_call(self, tool: str, /, **arguments: Any) -> Any:
        """A call that goes on meanwhile; a future of the SDK's result."""
        return self._portal.start_task_soon(self._session.call_tool, tool, arguments)

    def tools(self) -> dict[str, Any]:
        """Each tool as the server declares it, by name."""
        return {tool.name: tool for tool in self._portal.call(self._session.list_tools).tools}

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[ClientSession]:
        with self._stderr.open("w") as stderr:
            async with stdio_client(self._parameters, errlog=stderr) as streams, ClientSession(*streams) as session:
                await session.initialize()
                yield session
