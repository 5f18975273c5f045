"""One IMAP connection with one folder selected, made anew whenever it is lost."""

from __future__ import annotations

import imaplib
import re
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from imapclient import IMAPClient, SocketTimeout, imap_utf7
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, LoginError, ProtocolError
from imapclient.imapclient import Namespace
from imapclient.response_parser import parse_response

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.mail_server import (
    CONNECT_S,
    MECHANISM,
    STEP_S,
    MailServer,
    TokenLogin,
    format_response,
    tls_context,
)

# A search may answer with every UID of the folder on one line: room for millions (imaplib's own limit: 150,000).
imaplib._MAXLINE = 20_000_000  # type: ignore[attr-defined]  # noqa: SLF001

_FRESH_S: Final = 30.0  # a connection unused for longer is tested first
_TEST_S: Final = 5.0  # and is dead if it answers nothing for this long
_LOST: Final = (IMAPClientAbortError, ProtocolError, OSError)  # the connection, in contrast to a refused command
# Of a session that outlived its access token, where the server leaves the connection open (RFC 5530 §3, Exchange).
_EXPIRED: Final = re.compile(
    r"\[EXPIRED\]|AccessTokenExpired|session invalidated|authenticated but not connected", re.IGNORECASE
)
# Of a server that is busy, or means this client to ask less: Exchange words it so, RFC 5530 §3 has the codes.
_PASSING: Final = re.compile(
    r"\[(?:UNAVAILABLE|INUSE|LIMIT)\]|throttled|Backoff Time|server unavailable|not connected", re.IGNORECASE
)
_KINDS: Final = {b"RFC822.SIZE": int, b"INTERNALDATE": datetime}  # of what is fetched; all else is bytes
_MAX_BREAKS: Final = 50
_Result = TypeVar("_Result")


class BrokenAtMailsError(IMAPClientAbortError):  # type: ignore[misc]
    """The connection broke at a FETCH, which the next connection asks for in smaller parts."""


@dataclass(slots=True)
class Breaks:
    """The mails of one folder, by UID, that its connection broke at, which outlives it.

    mails: each of these broke it alone, twice. groups: of each of these at least one mail did.
    """

    mails: set[int] = field(default_factory=set)
    groups: list[list[int]] = field(default_factory=list)
    _in_a_row: int = 0

    def parts(self, uids: Sequence[int]) -> list[list[int]]:
        """What to ask for, one after the other: in halves where the connection broke before."""
        asked = set(uids) - self.mails
        parts = [[uid for uid in uids if uid in asked.difference(*self.groups)]]
        for group in self.groups:
            left = [uid for uid in group if uid in asked]
            half = (len(left) + 1) // 2
            parts += left[:half], left[half:]
        return [part for part in parts if part]

    def passed(self, part: Sequence[int]) -> None:
        self.groups = [left for group in self.groups if (left := [uid for uid in group if uid not in part])]

    def broke(self, part: list[int]) -> bool:
        """Whether the next connection is to go on at once. False: the server is given a rest."""
        is_known = len(part) == 1 and part in self.groups
        self.passed(part)
        if is_known:
            self.mails.update(part)
        else:
            self.groups.append(part)
        self._in_a_row = (self._in_a_row + 1) % _MAX_BREAKS
        return self._in_a_row > 0


class FolderClient(IMAPClient):  # type: ignore[misc]
    """breaks: of a connection that has one folder selected, always the same."""

    breaks: Breaks | None = None

    def list_folders(
        self, directory: str = "", pattern: str = "*"
    ) -> list[tuple[tuple[bytes, ...], bytes | None, Any]]:
        """As IMAPClient's, but for a name that is no proper modified UTF-7 (RFC 3501 §5.1.3), which is None here."""
        self.folder_encode = False
        try:
            listed = super().list_folders(imap_utf7.encode(directory), imap_utf7.encode(pattern))
        finally:
            self.folder_encode = True
        return [(flags, delimiter, _decoded(name)) for flags, delimiter, name in listed]

    def namespace(self) -> Namespace:
        """As IMAPClient's, but for a server that has no personal one, or tells more of it than RFC 2342 §5 asks for."""
        personal = parse_response(self._command_and_check("namespace"))[0] or ((b"", None),)
        return Namespace(tuple((_decoded(prefix), delimiter) for prefix, delimiter, *_ in personal), None, None)

    def _raw_command_untagged(self, command: bytes, *args: Any, **options: Any) -> list[bytes]:
        """As IMAPClient's, but for the answer to a search, which may come in several parts."""
        self._imap.untagged_responses.pop("SEARCH", None)  # of a search that was refused
        data: list[bytes] = super()._raw_command_untagged(command, *args, **options)
        return [b" ".join(filter(None, data))] if command == b"SEARCH" else data


def _decoded(name: Any) -> Any:
    with suppress(UnicodeError):
        decoded = imap_utf7.decode(name)
        return decoded if imap_utf7.encode(decoded) == name or isinstance(name, str) else None  # str: digits alone
    return None


class ImapSession:
    """Runs work on a connection, one at a time.

    `prepare` is run on every new connection, for example to select a folder. `on_untagged` gets the untagged responses
    (RFC 3501 §7) that come while a connection is tested.
    """

    def __init__(
        self,
        server: MailServer,
        prepare: Callable[[FolderClient], None],
        on_untagged: Callable[[Iterable[object]], None] = lambda _: None,
    ) -> None:
        self._server = server
        self._prepare = prepare
        self._on_untagged = on_untagged
        self._lock = threading.Lock()
        self._client: FolderClient | None = None
        self._used_at = 0.0

    def run(self, work: Callable[[IMAPClient], _Result], *, repeat: bool = True) -> _Result:
        """The result of `work`. Where the connection is lost and `repeat` is true, once more on a new one.

        Not after a time limit: its seconds are gone, and the caller has a limit of its own.

        Raises ToolError: mail_unavailable, mail_timeout, mail_auth, mail_tls, and what `prepare` and `work` raise.
        """
        may_repeat = repeat
        with self._lock:
            while True:
                try:
                    result = work(self._connected())
                except Exception as error:  # noqa: BLE001 - told apart in _to_tool_error
                    is_lost = isinstance(error, _LOST) or self._has_outlived_token(error)
                    if is_lost or not (isinstance(error, ToolError) or is_passing(error)):
                        self._drop()  # after a refusal, too: its folder may be another by now
                    if is_lost:
                        if may_repeat and isinstance(error, BrokenAtMailsError):
                            continue
                        if repeat and not isinstance(error, TimeoutError):
                            repeat = False
                            continue
                    raise _to_tool_error(error, self._server) from None
                self._used_at = time.monotonic()
                return result

    def _has_outlived_token(self, error: Exception) -> bool:
        is_refusal = self._server.tokens is not None and isinstance(error, IMAPClientError)
        return is_refusal and _EXPIRED.search(str(error)) is not None

    def close(self) -> None:
        """Log out, unless the connection is in use: by a wait whose caller is gone."""
        if self._lock.acquire(blocking=False):
            try:
                if self._client is not None:
                    with suppress(OSError, IMAPClientError):
                        self._client.socket().settimeout(_TEST_S)
                        self._client.logout()
                self._drop()
            finally:
                self._lock.release()

    def _connected(self) -> FolderClient:
        if self._client is not None and time.monotonic() - self._used_at > _FRESH_S:
            # A connection that a firewall forgot would take the whole time limit to fail.
            try:
                self._client.socket().settimeout(_TEST_S)
                self._on_untagged(self._client.noop()[1])
                self._client.socket().settimeout(STEP_S)
            except (IMAPClientError, OSError):
                self._drop()
        if self._client is None:
            with ExitStack() as on_error:
                client = connect(self._server)
                on_error.callback(_shut_down, client)
                self._prepare(client)
                on_error.pop_all()
            self._client, self._used_at = client, time.monotonic()
        return self._client

    def _drop(self) -> None:
        if self._client is not None:
            _shut_down(self._client)
            self._client = None


def is_passing(error: Exception) -> bool:
    """Whether a command failed for a reason that has nothing to do with it, and that may pass, as a lost connection."""
    response = format_response(error)
    is_lost = isinstance(error, IMAPClientAbortError)
    return is_lost or _PASSING.search(response) is not None or _EXPIRED.search(response) is not None


def fetch_each(client: IMAPClient, uids: Sequence[int], items: Sequence[bytes]) -> dict[int, dict[bytes, Any]]:
    """As `IMAPClient.fetch`, where the server withholds some of the mails: of such a one the items given, if any.

    Refused, or answered with NIL or nothing, and in the folder all the same; a mail that is gone has no entry.
    """
    fetched = _fetch_halves(client, uids, items)
    parts = {
        uid: {key: part for key, part in fetched.get(uid, {}).items() if isinstance(part, _KINDS.get(key, bytes))}
        for uid in uids
    }
    if lacking := [uid for uid in uids if len(parts[uid]) < len(items)]:
        client.noop()  # makes the server look for what others removed
        present = set(client.search([b"UID", ",".join(map(str, lacking)).encode()]))
        parts = {uid: given for uid, given in parts.items() if uid in present or uid not in lacking}
    return parts


def in_pages(uids: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    """One after the other, so many that one command takes them."""
    for start in range(0, len(uids), size):
        yield uids[start : start + size]


def fetched_part(parts: Mapping[bytes, Any], name: bytes) -> bytes | None:
    """Of what was fetched of a mail, the part whose name begins so; None where another session moved the mail."""
    return next((part for key, part in parts.items() if key.startswith(name)), None)


def _fetch_halves(client: IMAPClient, uids: Sequence[int], items: Sequence[bytes]) -> dict[int, dict[bytes, Any]]:
    """A server may refuse a whole set for one of its mails, so that each half is asked for by itself."""
    breaks = getattr(client, "breaks", None)
    try:
        if breaks is None:
            return dict(client.fetch(uids, items))
        fetched: dict[int, dict[bytes, Any]] = {}
        for part in breaks.parts(uids):
            try:
                fetched |= client.fetch(part, items)
            except TimeoutError:
                raise
            except _LOST as error:
                raise BrokenAtMailsError(str(error)) if breaks.broke(part) else error from None
            breaks.passed(part)
        return fetched
    except IMAPClientError as error:
        if is_passing(error):
            raise
        middle = len(uids) // 2
        return {
            uid: given
            for half in (uids[:middle], uids[middle:])
            if middle
            for uid, given in _fetch_halves(client, half, items).items()
        }


def connect(server: MailServer) -> FolderClient:
    """A connection that is logged in. Raises ToolError."""
    return server.with_token(lambda token: _connect(server, token))


def _connect(server: MailServer, token: str | None) -> FolderClient:
    timeouts = SocketTimeout(CONNECT_S, STEP_S)
    try:
        with ExitStack() as on_error:
            context = None if server.security == "none" else tls_context(server.ca_file)
            use_tls = server.security == "tls"
            client = FolderClient(server.host, server.port, ssl=use_tls, ssl_context=context, timeout=timeouts)
            on_error.callback(_shut_down, client)
            client.normalise_times = False  # dates keep their zone
            if server.security == "starttls":
                if not client.has_capability("STARTTLS"):
                    raise server.starttls_missing()
                client.starttls(context)
            if token is not None:
                _log_in_with_token(client, server, token)
            elif client.has_capability("AUTH=PLAIN"):
                client.plain_login(*server.credentials("utf-8"))  # where LOGIN takes ASCII only
            else:
                client.login(*server.credentials("ascii"))
            on_error.pop_all()
            return client
    except Exception as error:  # noqa: BLE001 - told apart in _to_tool_error
        raise _to_tool_error(error, server) from None


def _log_in_with_token(client: IMAPClient, server: MailServer, token: str) -> None:
    methods = [item.decode("ascii", "replace").upper() for item in client.capabilities()]
    offered = [name.removeprefix("AUTH=") for name in methods if name.startswith("AUTH=")]
    login = TokenLogin(server, token, offered)
    try:
        client.sasl_login(MECHANISM, login.answer)
    except LoginError as error:
        said = login.describe(error)
        if isinstance(error.__context__, IMAPClientAbortError):
            raise server.connection_error(error.__context__) from None
        if "[UNAVAILABLE]" in said:
            raise server.unavailable(f"refused the login for now: {said}") from None
        raise server.token_refused(said) from None


def _to_tool_error(error: Exception, server: MailServer) -> Exception:
    """The error as one for the caller; an error of ours stays what it is."""
    response = format_response(error)
    match error:
        case LoginError() if isinstance(error.__context__, IMAPClientAbortError):  # the library tells them not apart
            return server.connection_error(error.__context__)
        case LoginError() if not _PASSING.search(response):
            return server.login_refused(response)
        case IMAPClientAbortError() | ProtocolError() | OSError():
            return server.connection_error(error)
        case IMAPClientError() if "[OVERQUOTA]" in response:
            return ToolError("mail_disk_full", f"the {server.name} has no room left: {response}", retryable=True)
        case IMAPClientError():
            return server.unavailable(f"refused a command: {response}")
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    if str(frame.f_globals["__name__"]).startswith(
        "imap"
    ):  # the library fails at an answer that is not as it has to be
        return server.unavailable("answers in a way that cannot be read")
    return error


def _shut_down(client: IMAPClient) -> None:
    with suppress(OSError, IMAPClientError):
        client.shutdown()
