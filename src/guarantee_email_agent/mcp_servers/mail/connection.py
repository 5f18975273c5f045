"""Where a server is and how to talk to it safely; shared by IMAP and SMTP."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, Literal

from guarantee_email_agent.mcp_servers.tool_error import ToolError

CONNECT_S: Final = 10.0
STEP_S: Final = 20.0  # of waiting for the next bytes of an answer
_MAX_TOLD: Final = 200  # characters of what a server said

Security = Literal["tls", "starttls", "none"]


@dataclass(frozen=True, slots=True)
class Server:
    """kind: `IMAP` or `SMTP`, for messages. security: TLS from the first byte, after STARTTLS, or none (loopback)."""

    kind: str
    host: str
    port: int
    security: Security
    user: str | None
    password: str | None = field(repr=False)
    ca_file: Path | None = None

    @property
    def name(self) -> str:
        return f"{self.kind} server {self.host}:{self.port}"

    @property
    def option(self) -> str:
        """The first part of this server's options on the command line."""
        return f"--{self.kind.lower()}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its very name: where a password may travel without TLS."""
    import ipaddress

    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@cache
def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Verifies the certificate and the host's name. Raises OSError for a file that holds no certificate."""
    return ssl.create_default_context(cafile=ca_file)


def check_login(server: Server, encoding: Literal["utf-8", "ascii"]) -> None:
    """Raises ToolError where user and password cannot be sent. encoding: ascii where the server lacks PLAIN."""
    try:
        f"{server.user}{server.password}".encode(encoding)
    except UnicodeEncodeError:
        text = f"the {server.name} offers no way to log in with the characters of this user or password"
        raise ToolError("mail_auth", f"{text}. Set a password of ASCII characters") from None


def explain_connection(error: Exception, server: Server) -> ToolError:
    """Why no connection came about, or why it broke, and what to do."""
    import socket

    name = server.name
    match error:
        case ssl.SSLCertVerificationError():
            reason = error.verify_message or "it cannot be verified"
            text = (
                f"the certificate of the {name} was refused: {reason}. Have it renewed, or name its CA with --ca-file"
            )
            return ToolError("mail_tls", text)
        case ssl.SSLError() if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
            text = f"the {name} speaks no TLS on this port. Change the port or {server.option}-security"
            return ToolError("mail_tls", text)
        case socket.gaierror():
            text = f"there is no host of that name for the {name}. Check {server.option}-host, and the network"
            return ToolError("mail_unavailable", text, retryable=True)
        case TimeoutError():
            return ToolError("mail_timeout", f"the {name} did not answer in time", retryable=True)
        case ConnectionRefusedError():
            text = f"the {name} refuses connections. Check {server.option}-port, and whether it runs"
            return ToolError("mail_unavailable", text, retryable=True)
    return ToolError("mail_unavailable", f"the connection to the {name} broke: {told(error)}", retryable=True)


def told(said: object) -> str:
    """What a server said, short, on one line, and without the full stop of a sentence."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= _MAX_TOLD else f"{text[:_MAX_TOLD]}…"
