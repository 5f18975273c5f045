"""A thin client of the sandbox's HTTP API, for our own tools. Any other client of AIO Sandbox does as well."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from guarantee_email_agent.utils.errors import TaskError

_MAX_REPLY_BYTES: Final = 128 << 20


class SandboxClient:
    """Asks the sandbox at `base_url`. Each request has a connection of its own, so that threads may share a client."""

    def __init__(self, base_url: str) -> None:
        """base_url: such as `http://localhost:8080`."""
        self.base_url = base_url
        self._address = urlsplit(base_url).netloc

    def call(self, method: str, path: str, payload: Mapping[str, Any] | None = None, *, timeout_s: float) -> Any:
        """The `data` of the reply. payload: JSON of a POST, query of a GET. timeout_s: seconds, the whole call.

        Raises TaskError with a code of `sandbox_refused` (and the sandbox's own words), `sandbox_timeout`,
        `sandbox_reply` or `sandbox_unreachable`.
        """
        status, content = self._send(method, path, payload, timeout_s)
        reply = _parse_reply(content)
        if reply is None:
            problem = f"the sandbox answered {status} with something that is no JSON object"
            raise TaskError(f"{path}: {problem}", "sandbox_reply")
        if status >= 400 or reply.get("success") is False:
            raise _refusal(reply, status)
        return reply.get("data")

    def download(self, path: str, payload: Mapping[str, Any] | None = None, *, timeout_s: float) -> bytes:
        """The bytes that a GET gives. Raises TaskError as `call` does."""
        status, content = self._send("GET", path, payload, timeout_s)
        # A refusal comes as JSON even where bytes were asked for.
        if status >= 400:
            raise _refusal(_parse_reply(content) or {}, status)
        return content

    def _send(self, method: str, path: str, payload: Mapping[str, Any] | None, timeout_s: float) -> tuple[int, bytes]:
        target, body, headers = path, None, {}
        if method == "GET":
            query = {
                key: str(value).lower() if isinstance(value, bool) else value
                for key, value in (payload or {}).items()
                if value is not None
            }
            target += f"?{urlencode(query)}" if query else ""
        else:
            body, headers = json.dumps(dict(payload or {})).encode(), {"Content-Type": "application/json"}
        connection = http.client.HTTPConnection(self._address, timeout=max(timeout_s, 0.001))
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            content = response.read(_MAX_REPLY_BYTES + 1)
        except TimeoutError:
            raise TaskError(f"{path}: the sandbox gave no answer within {timeout_s:g} s", "sandbox_timeout") from None
        except (OSError, http.client.HTTPException) as error:
            raise TaskError(
                f"{path}: the sandbox at {self.base_url} cannot be reached: {str(error) or type(error).__name__}",
                "sandbox_unreachable",
            ) from None
        finally:
            connection.close()
        if len(content) > _MAX_REPLY_BYTES:
            problem = f"the sandbox answered with more than {_MAX_REPLY_BYTES >> 20} MiB"
            raise TaskError(f"{path}: {problem}", "sandbox_reply")
        return response.status, content


def _parse_reply(content: bytes) -> dict[str, Any] | None:
    try:
        reply = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) else None


def _refusal(reply: Mapping[str, Any], status: int) -> TaskError:
    message = str(reply.get("message") or reply.get("detail") or f"the sandbox answered {status}")
    return TaskError(message[:300], "sandbox_refused", {"status": status, "data": reply.get("data")})
