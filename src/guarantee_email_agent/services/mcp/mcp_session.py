"""A service behind an MCP server for as long as the agent runs: started anew when it dies, each call with a deadline.

It never repeats a call by itself: that is `call_with_retry`'s, which knows whether a call may be repeated.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final

from guarantee_email_agent.services.call_errors import (
    INVALID_ARGUMENT,
    NOT_STARTED,
    TIMEOUT,
    ErrorKind,
    MalformedAnswerError,
    classify_message,
    classify_protocol_error,
    declared_error,
    integration_error,
    service_error,
    without_arguments,
)
from guarantee_email_agent.services.mcp.mcp_connection import (
    CallFailedError,
    McpConnection,
    OfferedTool,
    ToolAnswer,
    load_sdk,
)
from guarantee_email_agent.services.mcp.server_launch import EXIT_GRACE_S, AnswerTooLargeError, ServerLaunch
from guarantee_email_agent.utils.errors import IntegrationError, MCPConnectionError
from guarantee_email_agent.utils.text import printable

logger = logging.getLogger(__name__)

START_TIMEOUT_S: Final = 20.0
MAX_MISSED_DEADLINES: Final = 2
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024  # a mail of 25 MB is 34 MB as base64
MAX_LOGGED_CHARS: Final = 1000
RELIST_TIMEOUT_S: Final = 5.0
EXIT_WAIT_S: Final = 1.0  # that a call waits to learn why its server died

_DIED: Final = ErrorKind("unavailable", retryable=True, uncertain=True, outage=True)
_NOT_RUNNING: Final = ErrorKind("unavailable", retryable=True, outage=True)


class McpSession:
    """One service. `name` begins its error codes: `mail`, `warranty_api`, `ticketing`.

    Belongs to one event loop; any number of its tasks may call at once. A server whose connection ended is started anew
    by the next call; the circuit of the service keeps that from being often. A server that let deadlines pass without a
    sign of life is stopped first, so that no two ever work at a time.
    """

    def __init__(
        self,
        name: str,
        launch: ServerLaunch,
        *,
        start_timeout_s: float = START_TIMEOUT_S,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
        exit_grace_s: float = EXIT_GRACE_S,
    ) -> None:
        """start_timeout_s: seconds until the server has listed its tools. exit_grace_s: see StdioServer."""
        self.name = name
        self.launch = launch
        self._start_timeout_s = start_timeout_s
        self._max_answer_bytes = max_answer_bytes
        self._exit_grace_s = exit_grace_s
        self._connection: McpConnection | None = None
        self._starting: asyncio.Task[McpConnection] | None = None
        self._closed = False
        self._missed_deadlines = 0
        self._told_changes = ""
        self._required: dict[str, frozenset[str]] = {}
        self._verified: Mapping[str, OfferedTool] = {}  # the list that was last found to hold what we need

    @property
    def tools(self) -> frozenset[str]:
        """The names of the tools that the server offers; none before it was started."""
        return frozenset(self._connection.tools) if self._connection else frozenset()

    async def list_tools(self) -> Mapping[str, OfferedTool]:
        """By name, as the server listed them when it was started last; it is started, unless it runs.

        Raises MCPConnectionError: what was run, its last line, what to do.
        """
        return (await self._connected()).tools

    def name_of(self, tool: str) -> str:
        """What the server calls one of our tools."""
        return tool

    async def require(self, calls: Mapping[str, frozenset[str]]) -> None:
        """Start it. Raises MCPConnectionError where the server lacks one of these tools, or one of their arguments."""
        offered = (await self._connected()).tools
        if lacking := _lacking(calls, offered):
            raise MCPConnectionError(
                f"{self.name}: the server does not offer {', '.join(lacking)}; it offers "
                f"{', '.join(sorted(offered)) or 'nothing'}. Set {self.launch.setting} to a server with these tools"
                f"{self.launch.other_remedy} (docs/mcp-servers.md)",
                f"{self.name}_tools_missing",
            )
        self._required = {**self._required, **calls}

    async def offers(self, tool: str, arguments: AbstractSet[str], timeout_s: float) -> bool:
        """Whether the server has this tool, and it takes these arguments; it is started where it does not run.

        timeout_s: seconds for the start. Raises IntegrationError, as `call` does.
        """
        try:
            async with asyncio.timeout(timeout_s):
                offered = (await self._connected()).tools.get(tool)
        except TimeoutError:
            raise self._timeout_error(None, tool, timeout_s) from None
        except MCPConnectionError as error:
            raise IntegrationError.of(error) from None
        return offered is not None and (offered.parameters is None or arguments <= offered.parameters)

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """The tool's structured content, else its text read as JSON.

        timeout_s: seconds for everything, a new start of the server included.
        Raises IntegrationError: `{name}_timeout`, `{name}_unavailable`, `{name}_malformed`, or as the service declares.
        """
        answer = await self.answer(tool, arguments, timeout_s)
        if answer.failed:
            raise self._tool_error(answer, tool, arguments)
        content = answer.structured
        if content is None:
            with suppress(ValueError, RecursionError):
                content = json.loads(answer.text)
        if not isinstance(content, dict):
            self.log_response(tool, answer.text)
            raise MalformedAnswerError(self.name, tool, "is no JSON object")
        return content

    async def close(self) -> None:
        """Stop the server: its input ends, it may finish what it does for some seconds. No call after that."""
        self._closed = True
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.wait((self._starting,))
        if self._connection is not None:
            await self._connection.close()

    async def answer(
        self, tool: str, arguments: Mapping[str, Any], timeout_s: float, given: Mapping[str, Any] | None = None
    ) -> ToolAnswer:
        """As the tool gives it, its own errors too. Raises as `call`, where none comes.

        given: the arguments as they were before a mapping, whose words an error may repeat.
        """
        connection: McpConnection | None = None
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self._connected()
                await self._verify(connection)
                answer = await connection.call(tool, arguments)
                if answer.failed:
                    await self._verify(connection, called=True)
        except TimeoutError:
            raise self._timeout_error(connection, tool, timeout_s) from None
        except MCPConnectionError as error:  # which is for the start of the agent
            raise IntegrationError.of(error) from None
        except CallFailedError as failure:
            assert connection is not None
            problem = await self._call_error(connection, failure, tool, arguments if given is None else given)
            if not failure.ended and failure.was_sent:
                await self._verify(connection, called=True)
            raise problem from None
        except ValueError as error:
            self.log_response(tool, str(error))
            raise MalformedAnswerError(self.name, tool, "is not as the tool declares it") from None
        self._missed_deadlines = 0
        return answer

    async def _verify(self, connection: McpConnection, *, called: bool = False) -> None:
        """Raises IntegrationError, an outage, where the server no longer offers what it did, and we need.

        Looked at again when it is started anew, says that its tools changed, or refuses a call.

        called: whether it was, and failed, which may be since the tools changed.
        """
        if self._told_changes or called or connection.tools_changed:
            await self._list_tools(connection)
        if connection.tools is self._verified:
            return
        if changed := self._describe_changes(connection.tools):
            if changed != self._told_changes:
                self._told_changes = changed
                logger.error("%s: %s. Mails wait until that is mended", self.name, changed)
            message = f"{self.name}: {changed}"
            raise IntegrationError(message, f"{self.name}_tools_changed", uncertain=called, outage=True)
        self._verified, self._told_changes = connection.tools, ""

    async def _list_tools(self, connection: McpConnection) -> None:
        """Anew; where there is no answer they stay as they were."""
        with suppress(CallFailedError, TimeoutError):
            async with asyncio.timeout(RELIST_TIMEOUT_S):
                await connection.list_tools()

    def _describe_changes(self, offered: Mapping[str, OfferedTool]) -> str:
        """What of the tools that we need is no longer there; empty where nothing is."""
        lacking = _lacking(self._required, offered)
        return f"the server was changed: it offers {', '.join(lacking)} no more" if lacking else ""

    def _tool_error(self, answer: ToolAnswer, tool: str, arguments: Mapping[str, Any]) -> IntegrationError:
        if error := declared_error(self.name, answer.declared):
            return error
        self.log_response(tool, answer.text)
        return service_error(self.name, tool, classify_message(without_arguments(answer.text, arguments)))

    async def _call_error(
        self, connection: McpConnection, failure: CallFailedError, tool: str, arguments: Mapping[str, Any]
    ) -> IntegrationError:
        if not failure.ended:
            if not failure.was_sent:
                return self._error(INVALID_ARGUMENT, f"{tool}: {failure.message}, so the server was not asked")
            self._missed_deadlines = 0
            self.log_response(tool, failure.message)
            said = without_arguments(failure.message, arguments)
            kind = classify_protocol_error(failure.code, failure.http_status, said)
            error = service_error(self.name, tool, kind)
            error.said = failure.message if failure.code and not failure.http_status else ""
            return error
        await connection.ended_within(EXIT_WAIT_S)
        if isinstance(connection.reason, AnswerTooLargeError):
            return MalformedAnswerError(self.name, tool, "is too large", f"{tool}: the server {connection.reason}")
        kind = _DIED if failure.was_sent else _NOT_RUNNING
        return self._error(kind, f"{tool}: {self._describe_end(connection)}")

    def _timeout_error(self, connection: McpConnection | None, tool: str, timeout_s: float) -> IntegrationError:
        if connection is None:
            return self._error(NOT_STARTED, f"{tool}: the server did not start within {timeout_s:g} s")
        self._missed_deadlines += 1
        if self._missed_deadlines >= MAX_MISSED_DEADLINES and not connection.ended:
            logger.warning("%s: the server gives no answer; it is stopped and started anew", self.name)
            connection.end()
        return self._error(TIMEOUT, f"{tool}: no answer within {timeout_s:g} s")

    async def _connected(self) -> McpConnection:
        """The connection, opened anew where it ended: once for all calls, even if the one that began is cancelled."""
        if self._closed:
            raise self._error(_NOT_RUNNING, "the session is closed")
        if self._connection is not None and not self._connection.ended:
            return self._connection
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._open(self._connection), name=f"mcp {self.name} start")
            # asyncio complains of an exception that nobody retrieves: the call that asked for this may be cancelled.
            self._starting.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._starting)

    async def _open(self, old: McpConnection | None) -> McpConnection:
        if old is not None:
            await old.close()
            logger.warning("%s: %s. It is started anew", self.name, self._describe_end(old))
        self._missed_deadlines = 0
        load_sdk()
        connection = McpConnection(self.name, self.launch, self._max_answer_bytes, self._exit_grace_s)
        try:
            async with asyncio.timeout(self._start_timeout_s):
                await connection.open()
        except BaseException as error:
            await connection.close()
            if isinstance(error, asyncio.CancelledError):
                raise
            raise self._start_error(connection, error) from None
        self._connection = connection
        return connection

    def _describe_end(self, connection: McpConnection) -> str:
        code = connection.exit_code
        end = "the connection to the server ended" if code is None else f"the server ended ({_describe_exit(code)})"
        if not connection.last_stderr_line:  # which may quote the mail that it died of
            return end
        return f"{end}; it said last: a line that is in the log at level DEBUG"

    def _start_error(self, connection: McpConnection, error: BaseException) -> MCPConnectionError:
        launch, last_line = self.launch, connection.last_stderr_line
        quoted = f'. It said last: "{last_line}"' if last_line else ""
        message = (
            f"{self.name}: {self._describe_start_failure(connection, error)}{quoted}. Correct {launch.setting}, "
            f"or what it needs; {'asked' if launch.command is None else 'run'}: {launch}"
        )
        return MCPConnectionError(message, f"{self.name}_unavailable", retryable=True, outage=True)

    def _describe_start_failure(self, connection: McpConnection, error: BaseException) -> str:
        match error:
            case FileNotFoundError():
                return f"there is no program {self.launch.command}"
            case TimeoutError():
                return f"the server did not answer within {self._start_timeout_s:g} s"
            case OSError() if self.launch.command is not None:
                return f"the server cannot be started ({error.strerror or error})"
        if connection.exit_code:
            return f"the server ended at once ({_describe_exit(connection.exit_code)})"
        return f"no MCP server answers ({printable(str(error)[:MAX_LOGGED_CHARS]) or type(error).__name__})"

    def _error(self, kind: ErrorKind, message: str) -> IntegrationError:
        return integration_error(self.name, kind, message)

    def log_response(self, tool: str, text: str) -> None:
        """At DEBUG only, since it may quote a customer."""
        logger.debug("%s: %s answered: %s", self.name, tool, printable(text[:MAX_LOGGED_CHARS]))


def _lacking(calls: Mapping[str, AbstractSet[str]], offered: Mapping[str, OfferedTool]) -> list[str]:
    """The tools that are not offered; where all are, the arguments that they do not take."""
    return [tool for tool in calls if tool not in offered] or [
        f"{tool}({argument})"
        for tool, arguments in calls.items()
        if (known := offered[tool].parameters) is not None
        for argument in sorted(arguments - known)
    ]


def _describe_exit(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
