"""Handing a mail to an SMTP server, so that afterwards it is known whether the server has it.

Each step of the transaction is taken by itself, because what an error means depends on the step: before the final dot
nothing has been sent (RFC 5321 §4.1.1.4), after it a lost connection leaves the mail's fate open.
"""

from __future__ import annotations

import base64
import re
import smtplib
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from guarantee_email_agent.mcp_servers.mail.connection import (
    CONNECT_S,
    Server,
    check_login,
    explain_connection,
    tls_context,
    told,
)
from guarantee_email_agent.mcp_servers.tool_error import ToolError

SEND_S: Final = 25.0  # of one whole call; the agent's own limit for mail is 30 s
_TRIAL_S: Final = 3.0  # for a kept connection to show that it is alive
_KEPT_S: Final = 20.0  # an unused connection is kept; servers close it after minutes
_CLOSING: Final = 421  # said to any command, and of the server, not of what it was asked (RFC 5321 §3.8)
_TOO_LARGE: Final = 552  # RFC 1870 §6
_LOG_IN_FIRST: Final = 530  # or begin TLS first (RFC 4954 §6, RFC 3207 §4)
_OF_THIS_MAIL: Final = re.compile(rb"5\.(2\.3|3\.4|6\.)")  # too long, too big, its content (RFC 3463 §3)
# Its system, its directory server, its load (RFC 3463 §3); others of 4.4 tell of the recipient's server.
_SERVERS_OWN_TROUBLE: Final = re.compile(rb"4\.(3\.|4\.[35]\b)")
_LINE_START_DOT: Final = re.compile(rb"^\.", re.MULTILINE)


class SmtpSender:
    """Sends over connections that are kept for a while; as many at once as there are callers."""

    def __init__(self, server: Server, ehlo_name: str | None = None) -> None:
        """ehlo_name: what this machine calls itself; by default its address, as mail programs do (RFC 5321 §4.1.3)."""
        self._server = server
        self._ehlo_name = ehlo_name
        self._kept: list[tuple[smtplib.SMTP, float]] = []
        self._lock = threading.Lock()

    def send(self, sender: str, recipients: Sequence[str], message: bytes) -> None:
        """One transaction for all recipients: all or none. `message` has CRLF line ends and ends with one.

        Raises ToolError: mail_rejected (for good), mail_recipient_deferred (the recipient alone, for now),
        mail_unavailable and mail_timeout (retryable), mail_auth, mail_tls;
        `uncertain` where the server may have taken the mail.
        """
        deadline = time.monotonic() + SEND_S
        connection = self._taken(deadline)
        try:
            self._transact(connection, sender, recipients, message, deadline)
        except ToolError:
            connection.close()  # in which state it is now is not worth finding out
            raise
        with self._lock:
            self._kept.append((connection, time.monotonic()))

    def test(self) -> None:
        """Connect and log in. Raises ToolError."""
        _quit(self._connected(time.monotonic() + SEND_S))

    def close(self) -> None:
        with self._lock:
            kept, self._kept = self._kept, []
        for connection, _ in kept:
            _quit(connection)

    def _taken(self, deadline: float) -> smtplib.SMTP:
        self._close_outdated()
        while True:
            with self._lock:
                if not self._kept:
                    break
                connection, _ = self._kept.pop()
            with suppress(OSError, smtplib.SMTPException):
                _limit(connection, min(deadline, time.monotonic() + _TRIAL_S))
                if connection.noop()[0] == 250:
                    return connection
            connection.close()
        return self._connected(deadline)

    def _close_outdated(self) -> None:
        before = time.monotonic() - _KEPT_S
        with self._lock:
            outdated = [connection for connection, used_at in self._kept if used_at <= before]
            self._kept = [kept for kept in self._kept if kept[1] > before]
        for connection in outdated:
            connection.close()

    def _connected(self, deadline: float) -> smtplib.SMTP:
        server = self._server
        connection: smtplib.SMTP | None = None
        try:
            connect_s = min(CONNECT_S, max(deadline - time.monotonic(), 0.1))
            # Named here because the library would ask the DNS for this machine's name.
            if server.security == "tls":
                context = tls_context(server.ca_file)
                connection = smtplib.SMTP_SSL(
                    server.host, server.port, timeout=connect_s, context=context, local_hostname="localhost"
                )
            else:
                connection = smtplib.SMTP(server.host, server.port, timeout=connect_s, local_hostname="localhost")
            # The final dot goes out by itself; without this it would wait 40 ms for the answer to what went before.
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # type: ignore[union-attr]
            self._greet(connection)
            if server.security == "starttls":
                if not connection.has_extn("starttls"):
                    text = f"the {server.name} offers no STARTTLS. Use --smtp-security tls and the port for it"
                    raise ToolError("mail_tls", text)
                connection.starttls(context=tls_context(server.ca_file))
                self._greet(connection)
            if server.user is not None:
                _log_in(connection, server)
        except Exception as error:
            if connection is not None:
                connection.close()
            if isinstance(error, OSError | smtplib.SMTPException):
                raise _explain(error, server) from None
            raise
        return connection

    def _greet(self, connection: smtplib.SMTP) -> None:
        name = self._ehlo_name
        if name is None:
            address: str = connection.sock.getsockname()[0]  # type: ignore[union-attr]
            name = f"[IPv6:{address}]" if ":" in address else f"[{address}]"
        if connection.ehlo(name)[0] != 250:
            _expect(connection.helo(name), 250, self._server, "HELO")

    def _transact(
        self, connection: smtplib.SMTP, sender: str, recipients: Sequence[str], message: bytes, deadline: float
    ) -> None:
        server = self._server
        options = _mail_options(connection, message, server)
        dot_sent = False
        try:
            _limit(connection, deadline)
            reply = connection.docmd("MAIL", f"FROM:<{sender}>{options}")
            of_this_mail = reply[0] == _TOO_LARGE or _OF_THIS_MAIL.match(reply[1])
            (_expect if of_this_mail else _expect_for_us)(reply, 250, server, "the sender")
            for recipient in recipients:
                _limit(connection, deadline)
                reply = connection.docmd("RCPT", f"TO:<{recipient}>")
                if reply[0] not in (250, 251):
                    # Not one without the other: the copy to ourselves is the proof of the customer's.
                    with suppress(OSError, smtplib.SMTPException):
                        connection.rset()
                    what = f"a recipient at {recipient.rpartition('@')[2]}"
                    if recipient == sender:
                        _expect_for_us(reply, 250, server, what)
                    if 400 <= reply[0] < 500 and not _SERVERS_OWN_TROUBLE.match(reply[1]) and reply[0] != _CLOSING:
                        # Of this address alone, such as a domain that does not exist: the server itself is well.
                        text = f"the {server.name} does not take {what} for now: {reply[0]} {told(reply[1])}"
                        raise ToolError("mail_recipient_deferred", text)
                    _expect(reply, 250, server, what)
            _limit(connection, deadline)
            _expect(connection.docmd("DATA"), 354, server, "the mail")
            _limit(connection, deadline)
            connection.sock.sendall(_LINE_START_DOT.sub(b"..", message))  # type: ignore[union-attr]
            dot_sent = True
            connection.sock.sendall(b".\r\n")  # type: ignore[union-attr]
            _limit(connection, deadline)
            _expect(connection.getreply(), 250, server, "the mail")
        except (OSError, smtplib.SMTPException) as error:
            explained = _explain(error, server)
            if dot_sent:
                text = f"{explained.message}; the mail was handed over, and whether it was taken is not known"
                raise ToolError(explained.code, text, retryable=False, uncertain=True) from None
            raise explained from None


def _mail_options(connection: smtplib.SMTP, message: bytes, server: Server) -> str:
    options = [""]
    if connection.has_extn("size"):  # RFC 1870
        limit = connection.esmtp_features["size"].strip()
        if limit.isdecimal() and 0 < int(limit) < len(message):
            text = f"the {server.name} takes mails of at most {limit} bytes, and this one has {len(message)}"
            raise ToolError("mail_rejected", text)
        options.append(f"SIZE={len(message)}")
    if not message.isascii():
        if not connection.has_extn("smtputf8"):  # RFC 6531
            text = f"the {server.name} cannot send to an address with letters beyond ASCII"
            raise ToolError("mail_rejected", text)
        options += ["SMTPUTF8", "BODY=8BITMIME"]
        connection.command_encoding = "utf-8"
    return " ".join(options)


def _log_in(connection: smtplib.SMTP, server: Server) -> None:
    user, password = server.user or "", server.password or ""
    methods = connection.esmtp_features.get("auth", "").upper().split()
    if not methods:
        text = f"the {server.name} offers no login here. Use TLS (--smtp-security), or leave --smtp-user out"
        raise ToolError("mail_auth", text)
    plain = "PLAIN" in methods
    check_login(server, "utf-8" if plain else "ascii")
    if plain:  # as UTF-8 (RFC 4616); the library's takes ASCII only
        initial = base64.b64encode(f"\0{user}\0{password}".encode()).decode()
        code, said = connection.docmd("AUTH", f"PLAIN {initial}")
        if code != 235:
            raise smtplib.SMTPAuthenticationError(code, said)
    else:
        connection.login(user, password)


def _limit(connection: smtplib.SMTP, deadline: float) -> None:
    if connection.sock is None:
        raise smtplib.SMTPServerDisconnected("the connection is closed")
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    connection.sock.settimeout(left)


def _expect_for_us(reply: tuple[int, bytes], wanted: int, server: Server, what: str) -> None:
    """As `_expect`, for what is not about the one mail: a refusal of our own address, or the day's limit."""
    code, said = reply
    if 500 <= code < 600 and code != _LOG_IN_FIRST:
        text = f"the {server.name} refused {what}, which is ourselves: {code} {told(said)}"
        raise ToolError("mail_unavailable", text, retryable=True)
    _expect(reply, wanted, server, what)


def _expect(reply: tuple[int, bytes], wanted: int, server: Server, what: str) -> None:
    """Raise ToolError unless the reply's code is the wanted one, or a recipient's 251 (RFC 5321 §4.2.3)."""
    code, said = reply
    if code in (wanted, 251 if wanted == 250 else wanted):
        return
    text = f"the {server.name} refused {what}: {code} {told(said)}"
    if 500 <= code < 600 and code != _LOG_IN_FIRST:
        raise ToolError("mail_rejected", text)
    if code == _LOG_IN_FIRST:
        raise ToolError("mail_auth", text)
    raise ToolError("mail_unavailable", text, retryable=True)


def _explain(error: Exception, server: Server) -> ToolError:
    match error:
        case smtplib.SMTPAuthenticationError():
            text = f"the {server.name} refused the login of {server.user}: {error.smtp_code} {told(error.smtp_error)}"
            if 400 <= error.smtp_code < 500:
                return ToolError("mail_unavailable", text, retryable=True)
            return ToolError("mail_auth", f"{text}. Check the user and SMTP_PASSWORD")
        case smtplib.SMTPNotSupportedError():
            return ToolError("mail_auth", f"the {server.name} offers no way to log in that we know: {told(error)}")
        case smtplib.SMTPConnectError() | smtplib.SMTPHeloError():
            said = f"{error.smtp_code} {told(error.smtp_error)}"
            return ToolError("mail_unavailable", f"the {server.name} wants no connection: {said}", retryable=True)
        case smtplib.SMTPServerDisconnected() if isinstance(error.__context__, OSError):
            return explain_connection(error.__context__, server)
        case smtplib.SMTPException():
            return ToolError("mail_unavailable", f"the {server.name} failed: {told(error)}", retryable=True)
    return explain_connection(error, server)


def _quit(connection: smtplib.SMTP) -> None:
    with suppress(OSError, smtplib.SMTPException):
        _limit(connection, time.monotonic() + _TRIAL_S)
        connection.quit()
    connection.close()
