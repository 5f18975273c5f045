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
    read_printed,
    task_as_json,
)
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.loopback import is_loopback
from guarantee_email_agent.utils.text import printable

_CONNECT_S: Final = 2.0
_CHUNK_BYTES: Final = 65_536


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
        content, failure = bytearray(), None
        with Watch(deadline, cut_off) as watch:
            try:
                connection.request("POST", self._path, body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                while len(content) <= MAX_OUTPUT_BYTES and (chunk := response.read1(_CHUNK_BYTES)):
                    content += chunk
                if len(content) > MAX_OUTPUT_BYTES:
                    failure = f"the agent answered with more than {MAX_OUTPUT_BYTES // 1_000_000} MB"
                elif response.status != http.HTTPStatus.OK:
                    failure = f"the agent answered with status {response.status}"
            except (OSError, http.client.HTTPException) as error:
                failure = f"the agent gave no answer: {_describe(error)}"
            finally:
                connection.close()
        text, kept = read_printed(bytes(content))
        return AgentRun(watch.reason or failure, parse_record(" ".join(text.splitlines())), {"response": kept})


def _describe(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
