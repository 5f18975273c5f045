"""An agent that is an HTTP service on this machine: it gets a scenario as a POST, and answers 200 when it is done."""

from __future__ import annotations

import asyncio
import socket
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from httpx2 import AsyncClient, HTTPError, Timeout

from guarantee_email_agent.eval.agents.agent import (
    MAX_OUTPUT_BYTES,
    AgentRun,
    AgentTask,
    Deadline,
    http_servers,
    parse_record,
    read_printed,
    task_as_json,
)
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.loopback import is_loopback
from guarantee_email_agent.utils.text import printable

_CONNECT_S: Final = 2.0
_POLL_S: Final = 0.05


class HttpAgent:
    """`http://127.0.0.1:PORT/path`."""

    def __init__(self, url: str) -> None:
        """Raises ConfigurationError for a URL that is none, or not of this machine."""
        self._url = url
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port or 80
        except ValueError:
            self._host, self._port = "", 0
        if not is_loopback(self._host) or not url.isascii() or not url.isprintable() or " " in url:
            problem = (
                f"--agent {printable(url)} is no URL of this machine, and the mocks can be reached from nowhere else. "
                "Write http://127.0.0.1:PORT/path"
            )
            raise ConfigurationError(problem, "eval_bad_agent")

    def check(self) -> None:
        try:
            socket.create_connection((self._host, self._port), _CONNECT_S).close()
        except OSError as error:
            problem = f"--agent {self._url}: nothing answers there ({error.strerror or error}). Start the agent first"
            raise ConfigurationError(problem, "eval_bad_agent") from None

    def run(self, task: AgentTask) -> AgentRun:
        """A redirection is not followed: it could lead anywhere."""
        deadline, content = Deadline(task), bytearray()
        body = task_as_json(task, http_servers(task)).encode()
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}  # what is packed may be any size

        async def ask() -> str | None:
            async with (
                AsyncClient(timeout=Timeout(None, connect=_CONNECT_S), trust_env=False) as client,
                client.stream("POST", self._url, content=body, headers=headers) as response,
            ):
                async for chunk in response.aiter_raw():
                    content.extend(chunk)
                    if len(content) > MAX_OUTPUT_BYTES:
                        return f"the agent answered with more than {MAX_OUTPUT_BYTES // 1_000_000} MB"
            status = response.status_code
            return None if status == HTTPStatus.OK else f"the agent answered with status {status}"

        async def failure() -> str | None:
            asking = asyncio.ensure_future(ask())
            while not (await asyncio.wait([asking], timeout=min(_POLL_S, deadline.left_s())))[0]:
                if (reason := deadline.reason_to_stop()) is not None:
                    asking.cancel()
                    await asyncio.wait([asking])
                    return reason
            try:
                return asking.result()
            except HTTPError as error:
                return f"the agent gave no answer: {str(error) or type(error).__name__}"

        failed = asyncio.run(failure())
        text, kept = read_printed(bytes(content))
        return AgentRun(failed, parse_record(text.replace("\n", " ")), {"response": kept})
