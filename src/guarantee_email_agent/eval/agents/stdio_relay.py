"""An MCP server over stdio whose answers come from `$MOCK_MCP_URL`: passes each line on as an HTTP POST.

Run by its path with -I -S, so that it starts in some 20 ms and imports the standard library only.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import threading
from urllib.parse import urlsplit

_MAX_LINE_BYTES = 8_000_000
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_VERSION_HEADER = "MCP-Protocol-Version"


class Relay:
    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address, self._path = (parts.hostname or "", parts.port), parts.path
        self._version: str | None = None
        self._writing = threading.Lock()

    def pass_on(self, line: bytes) -> None:
        """Answer one message; errors are answers, too, where the message has an id."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._write({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "the line is no JSON"}})
            return
        request_id = message.get("id") if isinstance(message, dict) else None
        headers = dict(_HEADERS)
        if self._version is not None:
            headers[_VERSION_HEADER] = self._version
        try:
            connection = http.client.HTTPConnection(*self._address)
            connection.request("POST", self._path, line, headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._fail(request_id, f"the mocks cannot be reached: {error}")
            return
        if response.status >= 400 or (request_id is not None and not content):
            self._fail(request_id, _problem_of(response.status, content))
            return
        if not content:
            return
        answer = json.loads(content)
        if isinstance(message, dict) and message.get("method") == "initialize":
            self._version = answer.get("result", {}).get("protocolVersion")
        self._write(answer)

    def _fail(self, request_id: object, message: str) -> None:
        if request_id is not None:
            self._write({"jsonrpc": "2.0", "id": request_id, "error": {"code": -32603, "message": message}})

    def _write(self, answer: object) -> None:
        line = json.dumps(answer, separators=(",", ":")).encode() + b"\n"
        with self._writing:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


def _problem_of(status: int, content: bytes) -> str:
    try:
        return str(json.loads(content)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return f"the mocks answered with status {status}"


def main() -> None:
    relay = Relay(os.environ["MOCK_MCP_URL"])
    threads: list[threading.Thread] = []
    while line := sys.stdin.buffer.readline(_MAX_LINE_BYTES + 1):
        if not line.strip():
            continue
        thread = threading.Thread(target=relay.pass_on, args=(line,), daemon=True)
        thread.start()
        # What is not a call comes in its order: a client begins by agreeing on the version.
        if b'"tools/call"' not in line:
            thread.join()
        threads = [*(other for other in threads if other.is_alive()), thread]
    for thread in threads:  # who closed its end may still read; whoever is gone is ended with its processes
        thread.join()


if __name__ == "__main__":
    main()
