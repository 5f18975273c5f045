"""One IMAP connection with one folder selected, made anew whenever it is lost."""

from __future__ import annotations

import imaplib
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final, TypeVar

from imapclient import IMAPClient, SocketTimeout
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, LoginError, ProtocolError

from guarantee_email_agent.mcp_servers.mail.connection import (
    CONNECT_S,
    STEP_S,
    Server,
    check_login,
    explain_connection,
    tls_context,
    told,
)
from guarantee_email_agent.mcp_servers.tool_error import ToolError

# A search may answer with every UID of the folder on one line: room for millions (imaplib's own limit: 150,000).
imaplib._MAXLINE = 20_000_000  # type: ignore[attr-defined]  # noqa: SLF001

_FRESH_S: Final = 30.0  # a connection unused for longer is tried first
_TRIAL_S: Final = 5.0  # and is dead if it says nothing for this long
_Result = TypeVar("_Result")


class ImapSession:
    """Runs work on a connection, one at a time.

    `prepare` is run on every new connection, for example to select. `hear` gets what the server tells unasked while a
    connection is tried.
    """

    def __init__(
        self,
        server: Server,
        prepare: Callable[[IMAPClient], None],
        hear: Callable[[Iterable[object]], None] = lambda _: None,
    ) -> None:
        self._server = server
        self._prepare = prepare
        self._hear = hear
        self._lock = threading.Lock()
        self._client: IMAPClient | None = None
        self._used_at = 0.0

    def run(self, work: Callable[[IMAPClient], _Result], *, repeat: bool = True) -> _Result:
        """The result of `work`. Where the connection is lost and `repeat` is true, once more on a new one.

        Not after a time limit: its seconds are gone, and the caller has a limit of its own.

        Raises ToolError: mail_unavailable, mail_timeout, mail_auth, mail_tls, and what `prepare` and `work` raise.
        """
        with self._lock:
            for again in (repeat, False):
                try:
                    client = self._connected()
                    result = work(client)
                except Exception as error:  # noqa: BLE001 - told apart in _explain
                    explained = _explain(error, self._server)
                    if _is_lost(error):
                        self._drop()
                        if again and not isinstance(error, TimeoutError):
                            continue
                    raise explained from None
                self._used_at = time.monotonic()
                return result
            raise AssertionError("unreachable")

    def close(self) -> None:
        """Log out, unless the connection is in use: by a wait that nobody waits for any more."""
        if self._lock.acquire(blocking=False):
            try:
                if self._client is not None:
                    with suppress(OSError, IMAPClientError):
                        self._client.socket().settimeout(_TRIAL_S)
                        self._client.logout()
                self._drop()
            finally:
                self._lock.release()

    def _connected(self) -> IMAPClient:
        if self._client is not None and time.monotonic() - self._used_at > _FRESH_S:
            # A connection that a firewall forgot would take the whole time limit to fail.
            try:
                self._client.socket().settimeout(_TRIAL_S)
                self._hear(self._client.noop()[1])
                self._client.socket().settimeout(STEP_S)
            except (IMAPClientError, OSError):
                self._drop()
        if self._client is None:
            client = connect(self._server)
            try:
                self._prepare(client)
            except BaseException:
                _shut(client)
                raise
            self._client = client
            self._used_at = time.monotonic()
        return self._client

    def _drop(self) -> None:
        if self._client is not None:
            _shut(self._client)
            self._client = None


def connect(server: Server) -> IMAPClient:
    """A connection that is logged in. Raises ToolError."""
    client: IMAPClient | None = None
    try:
        context = None if server.security == "none" else tls_context(server.ca_file)
        client = IMAPClient(
            server.host,
            server.port,
            ssl=server.security == "tls",
            ssl_context=context,
            timeout=SocketTimeout(CONNECT_S, STEP_S),
        )
        if server.security == "starttls":
            if not client.has_capability("STARTTLS"):
                text = f"the {server.name} offers no STARTTLS. Use --imap-security tls and the port for it"
                raise ToolError("mail_tls", text)
            client.starttls(context)
        _login(client, server)
    except Exception as error:  # noqa: BLE001 - told apart in _explain
        if client is not None:
            _shut(client)
        raise _explain(error, server) from None
    return client


def _login(client: IMAPClient, server: Server) -> None:
    user, password = server.user or "", server.password or ""
    plain = client.has_capability("AUTH=PLAIN")
    check_login(server, "utf-8" if plain else "ascii")
    if plain:
        client.plain_login(user, password)  # as UTF-8, where LOGIN takes ASCII only
    else:
        client.login(user, password)


def _is_lost(error: Exception) -> bool:
    """Whether the connection cannot be used any more, in contrast to a command that the server refused."""
    return isinstance(error, IMAPClientAbortError | ProtocolError | OSError)


def _explain(error: Exception, server: Server) -> Exception:
    """The error as one for the caller; an error of ours stays what it is."""
    match error:
        case LoginError() if "[UNAVAILABLE]" not in str(error):
            text = (
                f"the {server.name} refused the login of {server.user}: {told(error)}. Check the user and IMAP_PASSWORD"
            )
            return ToolError("mail_auth", text)
        case OSError():
            return explain_connection(error, server)
        case IMAPClientAbortError() | ProtocolError():
            text = f"the connection to the {server.name} broke: {told(error)}"
            return ToolError("mail_unavailable", text, retryable=True)
        case IMAPClientError():
            said = told(error)
            if "[OVERQUOTA]" in said:
                return ToolError("mail_disk_full", f"the {server.name} has no room left: {said}", retryable=True)
            return ToolError("mail_unavailable", f"the {server.name} refused a command: {said}", retryable=True)
    return error


def _shut(client: IMAPClient) -> None:
    with suppress(OSError, IMAPClientError):
        client.shutdown()
