"""Handing a mail to an SMTP server, so that afterwards it is known whether the server has it.

Each step of the transaction is taken by itself, because what an error means depends on the step: before the final dot
nothing has been sent (RFC 5321 §4.1.1.4), after it a lost connection leaves it uncertain.
"""

from __future__ import annotations

import base64
import re
import smtplib
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.mail_server import (
    CONNECT_S,
    MECHANISM,
    MailServer,
    TokenLogin,
    format_response,
    tls_context,
)

SEND_S: Final = 25.0  # of one whole call; the agent's own limit for mail is 30 s
_QUIT_S: Final = 3.0
_CLOSING: Final = 421  # to any command, and about the server, not about that command (RFC 5321 §3.8)
_TOO_LARGE: Final = 552  # RFC 1870 §6
_CHALLENGE: Final = 334  # RFC 4954 §4
_LOGGED_IN: Final = 235
_COMMAND_CHARS: Final = 510  # and CRLF (RFC 5321 §4.5.3.1.4)
_LOG_IN_FIRST: Final = 530  # or begin TLS first (RFC 4954 §6, RFC 3207 §4)
_MESSAGE_STATUS: Final = re.compile(rb"5\.(2\.3|3\.4|6\.)")  # too long, too big, its content (RFC 3463 §3)
# Its system, its directory server, its load (RFC 3463 §3); others of 4.4 tell of the recipient's server.
_SERVER_STATUS: Final = re.compile(rb"4\.(3\.|4\.[35]\b)")
_LINE_START_DOT: Final = re.compile(rb"^\.", re.MULTILINE)


def send_mail(server: MailServer, sender: str, recipients: Sequence[str], message: bytes) -> None:
    """One transaction for all recipients, on a connection of its own: all or none.

    `message` is ASCII, has CRLF line ends and ends with one.

    Raises ToolError: mail_rejected (for good), mail_recipient_deferred (the recipient, for now),
    mail_deferred (the mail, for now), mail_unavailable and mail_timeout (retryable), mail_auth, mail_tls;
    `uncertain` where the server may have taken the mail.
    """
    deadline = time.monotonic() + SEND_S
    connection = _connect(server, deadline)
    try:
        _transact(connection, server, sender, recipients, message, deadline)
    except ToolError:
        connection.close()  # in which state it is now is not worth finding out
        raise
    _quit(connection)


def try_login(server: MailServer) -> None:
    """Connect and log in. Raises ToolError."""
    _quit(_connect(server, time.monotonic() + SEND_S))


def _connect(server: MailServer, deadline: float) -> smtplib.SMTP:
    """Logged in."""
    return server.with_token(lambda token: _connect_with(server, token, deadline))


def _connect_with(server: MailServer, token: str | None, deadline: float) -> smtplib.SMTP:
    timeout = min(CONNECT_S, max(deadline - time.monotonic(), 0.1))
    # Without a name, the library would ask the DNS for this machine's.
    options: dict[str, Any] = {"timeout": timeout, "local_hostname": "localhost"}
    try:
        with ExitStack() as on_error:
            connection = (
                smtplib.SMTP_SSL(server.host, server.port, context=tls_context(server.ca_file), **options)
                if server.security == "tls"
                else smtplib.SMTP(server.host, server.port, **options)
            )
            on_error.callback(connection.close)
            # The final dot goes out by itself; without this it would wait 40 ms for the answer to what went before.
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # type: ignore[union-attr]
            _greet(connection, server)
            if server.security == "starttls":
                if not connection.has_extn("starttls"):
                    raise server.starttls_missing()
                connection.starttls(context=tls_context(server.ca_file))
                _greet(connection, server)
            if token is not None:
                _log_in_with_token(connection, server, token)
            elif server.user is not None:
                _log_in(connection, server)
            on_error.pop_all()
            return connection
    except (OSError, smtplib.SMTPException, ValueError) as error:
        raise _to_tool_error(error, server) from None


def _greet(connection: smtplib.SMTP, server: MailServer) -> None:
    """By this machine's address, as mail programs do (RFC 5321 §4.1.3)."""
    address: str = connection.sock.getsockname()[0]  # type: ignore[union-attr]
    name = f"[IPv6:{address}]" if ":" in address else f"[{address}]"
    if connection.ehlo(name)[0] != 250:
        _check(connection.helo(name), 250, server, "HELO")


def _transact(
    connection: smtplib.SMTP,
    server: MailServer,
    sender: str,
    recipients: Sequence[str],
    message: bytes,
    deadline: float,
) -> None:
    dot_sent = False
    try:
        response = _command(connection, deadline, "MAIL", f"FROM:<{sender}>")
        about_message = response[0] == _TOO_LARGE or _MESSAGE_STATUS.match(response[1])
        _check(response, 250, server, "the sender", ours=not about_message)
        for recipient in recipients:
            response = _command(connection, deadline, "RCPT", f"TO:<{recipient}>")
            if response[0] // 100 == 2:
                continue
            # Not one without the other: the copy to ourselves is the proof of the customer's.
            with suppress(OSError, smtplib.SMTPException):
                connection.rset()
            ours = recipient == sender
            deferred = "" if ours else "mail_recipient_deferred"
            _check(response, 250, server, f"a recipient at {recipient.rpartition('@')[2]}", deferred, ours=ours)
        _check(_command(connection, deadline, "DATA"), 354, server, "the mail")
        _set_timeout(connection, deadline)
        connection.sock.sendall(_LINE_START_DOT.sub(b"..", message))  # type: ignore[union-attr]
        dot_sent = True
        connection.sock.sendall(b".\r\n")  # type: ignore[union-attr]
        _set_timeout(connection, deadline)
        response = connection.getreply()
        if response[0] // 100 not in (2, 4, 5):  # rubbish, or cut off: it may have been a yes
            raise smtplib.SMTPException(f"it answered neither yes nor no: {response[0]} {format_response(response[1])}")
        _check(response, 250, server, "the mail", "mail_deferred")
    except (OSError, smtplib.SMTPException) as error:
        failure = _to_tool_error(error, server)
        if dot_sent:
            reason = f"{failure.message}; the mail was handed over, and whether it was taken is not known"
            raise ToolError(failure.code, reason, retryable=False, uncertain=True) from None
        raise failure from None


def _log_in(connection: smtplib.SMTP, server: MailServer) -> None:
    methods = connection.esmtp_features.get("auth", "").upper().split()
    if not methods:
        text = f"the {server.name} offers no login here. Use TLS (mailbox.smtp.security), or none: mailbox.smtp.user ''"
        raise ToolError("mail_auth", text)
    if "PLAIN" not in methods:
        connection.login(*server.credentials("ascii"))
        return
    initial = "\0".join(("", *server.credentials("utf-8")))  # RFC 4616; the library's takes ASCII only
    code, response = connection.docmd("AUTH", f"PLAIN {base64.b64encode(initial.encode()).decode()}")
    if code != _LOGGED_IN:
        raise smtplib.SMTPAuthenticationError(code, response)


def _log_in_with_token(connection: smtplib.SMTP, server: MailServer, token: str) -> None:
    login = TokenLogin(server, token, connection.esmtp_features.get("auth", "").split())
    first = base64.b64encode(login.first).decode()
    command = f"AUTH {MECHANISM} {first}"
    if len(command) <= _COMMAND_CHARS:
        code, response = connection.docmd(command)
    else:  # RFC 4954 §4: too long for a command, not for a response
        code, response = connection.docmd(f"AUTH {MECHANISM}")
        if code == _CHALLENGE:
            code, response = connection.docmd(first)
    while code == _CHALLENGE:
        answer = login.acknowledge(base64.b64decode(response))
        code, response = connection.docmd(base64.b64encode(answer).decode())
    if code == _LOGGED_IN:
        return
    said = f"{code} {login.describe(response)}"
    if 400 <= code < 500:
        raise server.unavailable(f"refused the login of {server.user} for now: {said}")
    raise server.token_refused(said)


def _command(connection: smtplib.SMTP, deadline: float, command: str, argument: str = "") -> tuple[int, bytes]:
    _set_timeout(connection, deadline)
    return connection.docmd(command, argument)


def _set_timeout(connection: smtplib.SMTP, deadline: float) -> None:
    if connection.sock is None:
        raise smtplib.SMTPServerDisconnected("the connection is closed")
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    connection.sock.settimeout(left)


def _check(
    response: tuple[int, bytes], expected: int, server: MailServer, what: str, deferred: str = "", *, ours: bool = False
) -> None:
    """Raise ToolError unless the response begins with the expected digit, which decides (RFC 5321 §4.2.1).

    deferred: the code where a refusal for now is of this mail or address alone, and the server itself is well. ours: a
    refusal for good is not about the one mail, but of our own address, or the day's limit.
    """
    code, text = response
    if code // 100 == expected // 100:
        return
    if deferred and 400 <= code < 500 and code != _CLOSING and not _SERVER_STATUS.match(text):
        raise ToolError(deferred, f"the {server.name} does not take {what} for now: {code} {format_response(text)}")
    permanent = 500 <= code < 600 and code != _LOG_IN_FIRST
    whose = ", which is ourselves" if permanent and ours else ""
    refused = f"refused {what}{whose}: {code} {format_response(text)}"
    if code == _LOG_IN_FIRST:
        raise ToolError("mail_auth", f"the {server.name} {refused}")
    if permanent and not ours:
        raise ToolError("mail_rejected", f"the {server.name} {refused}")
    raise server.unavailable(refused)


def _to_tool_error(error: Exception, server: MailServer) -> ToolError:
    match error:
        case smtplib.SMTPAuthenticationError():
            response = f"{error.smtp_code} {format_response(error.smtp_error)}"
            if 400 <= error.smtp_code < 500:
                return server.unavailable(f"refused the login of {server.user}: {response}")
            return server.login_refused(response)
        case smtplib.SMTPNotSupportedError():
            reason = format_response(error)
            return ToolError("mail_auth", f"the {server.name} offers no way to log in that we know: {reason}")
        case smtplib.SMTPConnectError() | smtplib.SMTPHeloError():
            return server.unavailable(f"wants no connection: {error.smtp_code} {format_response(error.smtp_error)}")
        case smtplib.SMTPServerDisconnected() if isinstance(error.__context__, OSError):
            return server.connection_error(error.__context__)
        case smtplib.SMTPException():
            return server.unavailable(f"failed: {format_response(error)}")
        case OSError():
            return server.connection_error(error)
    return server.unavailable("answers in a way that cannot be read")


def _quit(connection: smtplib.SMTP) -> None:
    with suppress(OSError, smtplib.SMTPException):
        _set_timeout(connection, time.monotonic() + _QUIT_S)
        connection.quit()
    connection.close()
