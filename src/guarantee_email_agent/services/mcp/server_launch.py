"""What it takes to reach an MCP server of somebody else: a URL, or a program, run as a child process."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from asyncio.subprocess import PIPE, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.utils.distribution import require_extra
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable, truncate

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

MAX_TARGET_CHARS: Final = 200

# What programs need in order to run at all; none of it is a secret.
_COMMON_VARIABLES: Final = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServerLaunch:
    """One server, reached by a command over stdio, or by a URL over streamable HTTP.

    setting: the configuration key that it comes from, such as `mailbox.server`. environment: all that the program gets.
    headers: of every HTTP request.
    """

    setting: str
    command: str | None = None
    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def other_remedy(self) -> str:
        """What else may be done about a wrong server: for each of the three services there is a built-in one."""
        mapped = "" if self.setting.startswith("mailbox.") else f", map its own under {self.setting}.tools"
        built_in = ", or remove the setting to use the built-in one"
        return mapped + (built_in if self.setting.startswith(("mcp.", "mailbox.")) else "")

    def __str__(self) -> str:
        target = str(self.url) if self.command is None else shlex.join((self.command, *self.args))
        return truncate(target, MAX_TARGET_CHARS)


def common_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of `environ` that every server gets: search path, home, language, time zone, temporary folder."""
    return {name: environ[name] for name in _COMMON_VARIABLES if name in environ}


def configured_launch(
    setting: str, server: McpServer, given: Mapping[str, str], environ: Mapping[str, str]
) -> ServerLaunch:
    """given: the variables that `env` may name, with their values. environ: where PATH, HOME and the like come from.

    Raises ConfigurationError for a variable that is not set.
    """
    require_extra("mcp", setting, "mcp")
    if missing := [name for name in server.env if name not in given]:
        raise ConfigurationError(
            f"{setting}.env names {missing[0]}, which is not set. Set it in the environment or in .env, or remove it "
            "from the list",
            "config_missing_secret",
        )
    secrets = {name: given[name] for name in server.env}
    if server.url is None:
        return ServerLaunch(setting, server.command, server.args, {**common_environment(environ), **secrets})
    if len(secrets) > 1:
        raise ConfigurationError(
            f"{setting}.env names {len(secrets)} variables, but a server with a URL gets one, as its Authorization "
            "header. Keep that one",
            "config_invalid_value",
        )
    # A bare token is a bearer token (RFC 6750 §2.1); a value that begins with a scheme stays as it is.
    tokens = map(str.strip, secrets.values())
    headers = [("Authorization", token if " " in token else f"Bearer {token}") for token in tokens]
    return ServerLaunch(setting, url=server.url, headers=dict(headers))


EXIT_GRACE_S: Final = 5.0
MAX_STDERR_CHARS: Final = 300
_CHUNK: Final = 65_536
_POLL_S: Final = 0.01
_DRAIN_S: Final = 1.0


class AnswerTooLargeError(Exception):
    """The server wrote a message beyond the limit; where on stdio the next would begin is unknown."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"wrote a message of more than {max_bytes} bytes")


class StdioServer:
    """One server from its start to its end, with its stdin and stdout as a transport of the SDK: messages, one a line.

    Unlike the SDK's own it sets a limit to a line, takes a long one in linear time (34 MB, a mail of 25 MB as base64,
    in 0.2 s of CPU instead of 6 s), gives a server time to finish, and keeps its stderr. Its stdin is a `WriteStream`.

    `on_stderr` gets each line of its stderr, printable and cut. `on_end` is called, with the error if there is one,
    when it or its stdout has ended: no call can succeed any more. exit_grace_s: seconds to finish after its input
    ended, and again after SIGTERM.
    """

    def __init__(
        self,
        launch: ServerLaunch,
        max_line_bytes: int,
        exit_grace_s: float,
        on_stderr: Callable[[str], None],
        on_end: Callable[[AnswerTooLargeError | None], None],
    ) -> None:
        self._launch = launch
        self._max_line_bytes = max_line_bytes
        self._exit_grace_s = exit_grace_s
        self._on_stderr = on_stderr
        self._on_end = on_end
        self._too_large: AnswerTooLargeError | None = None
        self.exit_code: int | None = None
        """Negative for a signal; None while it runs."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[TransportStreams]:
        """The SDK's `Transport`: start the process, and stop it and everything that it started.

        Raises OSError where the program cannot be started, ValueError for an argument with a NUL.
        """
        import anyio
        from mcp.shared.message import SessionMessage

        loop = asyncio.get_running_loop()
        # In a session of its own: Ctrl-C in the agent's terminal must not reach it before the agent is done with it.
        self._process, streams = await loop.subprocess_exec(
            lambda: _ServerProtocol(self._max_line_bytes, loop, self._end),
            self._launch.command,
            *self._launch.args,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(self._launch.environment),
            start_new_session=True,
        )
        assert streams.stdin
        assert streams.stdout
        assert streams.stderr
        self._stdin = streams.stdin
        self._to_client, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._reading = [
            asyncio.create_task(self._read_messages(streams.stdout), name="mcp stdout"),
            asyncio.create_task(self._read_stderr(streams.stderr), name="mcp stderr"),
        ]
        try:
            yield incoming, self
        finally:
            incoming.close()
            self._to_client.close()
            await self._leave()

    async def send(self, item: SessionMessage, /) -> None:
        """A message is written whole or not at all, also where its sender is cancelled."""
        import anyio
        import mcp_types as types

        if self._stdin.is_closing():
            raise anyio.ClosedResourceError
        self._stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        # For requests alone: the cancellation of one that a stuck server does not read must not be stuck, too.
        if isinstance(item.message, types.JSONRPCRequest):
            try:
                await self._stdin.drain()
            except OSError:
                raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        self._stdin.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _end(self) -> None:
        self._to_client.close()
        self._on_end(self._too_large)

    async def _leave(self) -> None:
        try:
            await self._stop()
        except BaseException:  # interrupted: no time left for a graceful stop
            self._signal(signal.SIGKILL)
            raise
        finally:
            self.exit_code = self._process.get_returncode()
            self._process.close()
            for task in self._reading:
                task.cancel()
            await asyncio.gather(*self._reading, return_exceptions=True)

    async def _stop(self) -> None:
        """MCP 2025-11-25, lifecycle, shutdown: close its input, wait, terminate, kill."""
        self._stdin.close()
        if self._too_large or not await self._exited(self._exit_grace_s):
            self._signal(signal.SIGTERM)
            if not await self._exited(self._exit_grace_s):
                self._signal(signal.SIGKILL)
                await self._exited(self._exit_grace_s)
        # A pipe that is still open is held by something that the server started, and that nobody else would stop.
        for number in (signal.SIGTERM, signal.SIGKILL):
            _, open_pipes = await asyncio.wait(self._reading, timeout=_DRAIN_S)
            if open_pipes:
                self._signal(number)

    async def _exited(self, within_s: float) -> bool:
        """Polled: waiting for a process also waits for its pipes, which its children may hold."""
        for _ in range(round(within_s / _POLL_S)):
            if self._process.get_returncode() is not None:
                return True
            await asyncio.sleep(_POLL_S)
        return False

    def _signal(self, number: signal.Signals) -> None:
        """To the whole group, whose number is the first process's own for as long as one of the group lives."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.get_pid(), number)

    async def _read_messages(self, stdout: asyncio.StreamReader) -> None:
        try:
            while line := await stdout.readuntil(b"\n"):
                await self._receive(line)
        except asyncio.LimitOverrunError:
            self._too_large = AnswerTooLargeError(self._max_line_bytes)
        except (asyncio.IncompleteReadError, OSError):
            pass  # the end (half a message is none), or the pipe broke
        finally:
            self._end()
        # What it still writes has to go somewhere, or it could not finish.
        with suppress(OSError):
            while await stdout.read(_CHUNK):
                pass

    async def _receive(self, line: bytes) -> None:
        import anyio
        import mcp_types as types
        from mcp.shared.message import SessionMessage

        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._on_stderr(f"(on stdout, and no MCP message) {_printable_line(line)}")
            return
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the reader is gone
            await self._to_client.send(SessionMessage(message))

    async def _read_stderr(self, stderr: asyncio.StreamReader) -> None:
        rest = b""
        while chunk := await stderr.read(_CHUNK):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._on_stderr(_printable_line(line))
            rest = rest[:_CHUNK]
        self._on_stderr(_printable_line(rest))


class _ServerProtocol(SubprocessStreamProtocol):
    """Its exit counts even where something that it started holds its pipes open; its last output may still come."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop, on_end: Callable[[], None]) -> None:
        super().__init__(limit, loop)
        self._on_end = on_end

    def process_exited(self) -> None:
        super().process_exited()
        asyncio.get_running_loop().call_later(_DRAIN_S, self._on_end)


def _printable_line(line: bytes) -> str:
    return truncate(printable(line[: 4 * MAX_STDERR_CHARS].decode("utf-8", "replace").strip()), MAX_STDERR_CHARS)
