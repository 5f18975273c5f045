"""An agent that is an HTTP service on this machine: it gets a scenario as a POST, and answers 200 when it is done."""

from __future__ import annotations

import http.client
import socket
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from guarantee_email_agent.eval.agents.agent import (
    MAX_OUTPUT_BYTES,
    AgentRun,
    AgentTask,
    Deadline,
    Watch,
    http_servers,
    parse_record,
    task_as_json,
)
from guarantee_email_agent.integrations.server_launch import is_loopback
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable

_CONNECT_S: Final = 2.0


class HttpAgent:
    """`http://127.0.0.1:PORT/path`."""

    def __init__(self, url: str) -> None:
        """Raises ConfigurationError for a URL that is none, or not of this machine."""
        self._url = url
        parts = urlsplit(url)
        try:
            self._host, self._port = parts.hostname or "", parts.port or 80
        except ValueError:
            self._host, self._port = "", 0
        self._path = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
        if not is_loopback(self._host) or not self._path.isascii() or not self._path.isprintable() or " " in self._path:
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
        deadline = Deadline(task)
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_CONNECT_S)
        try:
            connection.connect()
        except OSError as error:
            return AgentRun(f"the agent gave no answer: {_describe(error)}")
        stream = connection.sock  # which the connection forgets where the answer ends with it
        stream.settimeout(None)

        def cut_off() -> None:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)

        body = task_as_json(task, http_servers(task)).encode()
        with Watch(deadline, cut_off) as watch:
            try:
                connection.request("POST", self._path, body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                content = response.read(MAX_OUTPUT_BYTES + 1)
            except (OSError, http.client.HTTPException) as error:
                return AgentRun(watch.reason or f"the agent gave no answer: {_describe(error)}")
            finally:
                connection.close()
        if watch.reason is not None:
            return AgentRun(watch.reason)
        if len(content) > MAX_OUTPUT_BYTES:
            return AgentRun(f"the agent answered with more than {MAX_OUTPUT_BYTES // 1_000_000} MB")
        if response.status != http.HTTPStatus.OK:
            return AgentRun(f"the agent answered with status {response.status}")
        return AgentRun(record=parse_record(" ".join(content.decode("utf-8", "replace").splitlines())))


def _describe(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
