"""Our servers under the SDK's own client, in memory or as programs, and what their failing calls raise."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client

from guarantee_email_agent.mcp_servers.server import Dispatcher, ServerTool, sdk_server
from guarantee_email_agent.services.call_errors import ERROR_META_KEY


class CallError(Exception):
    """A call that the server answered with an error: its code, message and the two marks."""

    def __init__(self, error: Mapping[str, Any], text: str) -> None:
        super().__init__(text)
        self.code: str = error["code"]
        self.message: str = error["message"]
        self.retryable: bool = error["retryable"]
        self.uncertain: bool = error["uncertain"]


def in_memory(name: str, tools: Sequence[ServerTool], **options: Any) -> Client:
    return Client(sdk_server(Dispatcher(name, tools)), **options)


def program(*arguments: object, errlog: Any = sys.stderr, **env: str) -> Client:
    """`python <arguments>`"""
    parameters = StdioServerParameters(command=sys.executable, args=[*map(str, arguments)], env=env)
    return Client(stdio_client(parameters, errlog=errlog))


async def call(client: Client, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """The structured content of a result. Raises CallError."""
    result: Any = await client.call_tool(tool, arguments)
    if result.is_error:
        assert result.structured_content is None  # which clients hold against the schema of an answer
        raise CallError(result.meta[ERROR_META_KEY], result.content[0].text)
    return dict(result.structured_content)
