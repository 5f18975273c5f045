"""What a failed call means: its code, whether another try can heal it, whether it may have had its effect.

`ToolError` is one of a service in this process; the rest tells what a server of somebody else says.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from guarantee_email_agent.utils.errors import IntegrationError
from guarantee_email_agent.utils.sqlite_errors import SqliteErrorKind, sqlite_error_kind
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    import sqlite3

MAX_MESSAGE_CHARS: Final = 400

_OUTAGES: Final = (
    "_unavailable", "_auth", "_tls", "_rate_limited", "_disk_full", "_folder_missing", "_unsupported"
)  # fmt: skip

# What is wrong and what to do, and whether another try can heal it.
_SQLITE: Final[dict[SqliteErrorKind, tuple[str, bool]]] = {
    "locked": ("another program keeps it locked", True),
    "disk_full": ("the disk is full. Make room", False),
    "read_only": ("it is read-only. Give the server the right to write it and its folder", False),
    "denied": ("access is denied. Give the server the right to use it", False),
    "cannot_open": ("it cannot be opened. Check that it and its folder exist and may be used", False),
    "not_a_database": ("it is no SQLite database. Name another file", False),
    "corrupt": ("it is damaged. Restore it from a backup", False),
    "io_error": ("reading or writing failed. Check the disk", True),
}


def is_outage(code: str) -> bool:
    """Whether a service is down for every call by this error code: it is unavailable, refuses us, has no more room."""
    return code.endswith(_OUTAGES)


class ToolError(IntegrationError):
    """A call that failed, in words for the caller."""

    def __init__(self, code: str, message: str, retryable: bool = False, uncertain: bool = False) -> None:
        text = printable(message)[:MAX_MESSAGE_CHARS]
        super().__init__(text, code, retryable=retryable, uncertain=uncertain, outage=is_outage(code))


def sqlite_tool_error(server: str, file: Path, error: sqlite3.Error, *, uncertain: bool = False) -> ToolError:
    """server: as its error codes begin. uncertain: whether a change may have been kept all the same."""
    text, retryable = _describe_sqlite_error(error)
    kind = "disk_full" if sqlite_error_kind(error) == "disk_full" else "unavailable"
    return ToolError(f"{server}_{kind}", f"{file.name}: {text}", retryable, uncertain)


def format_sqlite_error(file: Path, error: sqlite3.Error) -> str:
    """One line for a person: what is wrong with the file, and what to do."""
    return f"{file}: {_describe_sqlite_error(error)[0]}"


def _describe_sqlite_error(error: sqlite3.Error) -> tuple[str, bool]:
    """SQLite's own text where we know no better, since it quotes no values."""
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    return _SQLITE.get(sqlite_error_kind(error), (f"{name}: {error}", False))


MAX_QUOTED_CHARS: Final = 1000
"""Of an argument that is looked for in what a service says."""

ERROR_META_KEY: Final = "guarantee-email-agent/error"
"""In the `_meta` of a tool's result: the error that our servers declare."""

_CODE: Final = r"[a-z][a-z0-9_]{0,63}"
_WORD_GAP: Final = r"[\W_]{0,3}"
_CALL_MISMATCH: Final = (-32601, -32602)  # JSON-RPC: method not found, invalid parameters


class ErrorKind(NamedTuple):
    """One kind of failure. `type` ends the error's code; the rest is as of an IntegrationError."""

    type: str
    description: str = ""
    retryable: bool = False
    uncertain: bool = False
    outage: bool = False


RATE_LIMITED: Final = ErrorKind("rate_limited", "is asked too often", retryable=True, outage=True)
AUTH: Final = ErrorKind("auth", "refuses our credentials. Check or renew them", outage=True)
TIMEOUT: Final = ErrorKind("timeout", "reports a time-out", retryable=True, uncertain=True)
UNAVAILABLE: Final = ErrorKind("unavailable", "reports that what it needs is out of reach", True, True, True)
INVALID_ARGUMENT: Final = ErrorKind("invalid_argument", "does not take the call as we make it. Check its version")
FAILED: Final = ErrorKind("failed", "reports an error", uncertain=True)
MALFORMED_SUFFIX: Final = "_malformed"
NOT_STARTED: Final = ErrorKind("timeout", retryable=True, outage=True)

# In this order: "401: rate limit exceeded" is about the limit.
_PATTERNS: Final = {
    RATE_LIMITED: r"rate.?limit|too many|quota|throttl|\b429\b",
    AUTH: (
        r"unauthori[sz]ed|unauthenticated|authentication |forbidden|(permission|access) denied|log ?in required"
        r"|api key|invalid[ _](grant|token|credentials?)"
        r"|(token|credentials?) (has |have |is )?(been )?(expired|revoked)"
        r"|insufficient.{0,20}(scope|permission)|\b40[13]\b"
    ),
    TIMEOUT: r"timed?.?out|deadline|\b(408|504)\b",
    UNAVAILABLE: (
        r"unavailable|temporar|try again|overloaded|bad gateway|socket hang up|network|broken pipe|unreachable"
        r"|connection.{0,20}(refused|reset|closed|lost|aborted|failed)|getaddrinfo|name resolution"
        r"|\b(ECONN[A-Z]+|ENOTFOUND|EAI_AGAIN|EPIPE|EHOSTUNREACH|ENETUNREACH)\b|\b50[023]\b"
    ),
}


def classify_message(message: str) -> ErrorKind:
    """The kind of failure by a service's own description of it; FAILED where that fits none that we know."""
    found = (kind for kind, pattern in _PATTERNS.items() if re.search(pattern, message, re.IGNORECASE))
    return next(found, FAILED)


def without_arguments(text: str, arguments: Mapping[str, Any]) -> str:
    """What a service says, less what it repeats of the request: a customer's words describe no failure.

    "Device SN-429-77 not found" is not about a rate limit. Punctuation and spaces may have changed on the way. Words
    that describe no failure by themselves stay, such as a warranty's `expired`: a service says them of its own, too.
    """
    texts = (each for each in _texts(arguments) if re.search(r"\d", each) or classify_message(each) is not FAILED)
    quoted = set(map(_quoted_form, texts))
    pattern = "|".join(sorted(filter(None, quoted), key=len, reverse=True))
    return re.sub(rf"(?<![^\W_])(?:{pattern})(?![^\W_])", "…", text, flags=re.IGNORECASE) if pattern else text


def _quoted_form(value: str) -> str:
    """A pattern. A number may have been written without its leading zeros."""
    if value.isascii() and value.isdigit():
        return f"0*{value.lstrip('0') or '0'}"
    return _WORD_GAP.join(re.findall(r"[^\W_]+", value))


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str() if len(value) <= MAX_QUOTED_CHARS:
            yield value
        case Mapping():
            for item in value.values():
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)


def classify_protocol_error(code: int, http_status: int, message: str) -> ErrorKind:
    """code: of JSON-RPC. http_status: 0 where there was none."""
    match http_status:
        case 401 | 403 | 407:
            return AUTH
        case 408 | 504:
            return TIMEOUT
        case 429:
            return RATE_LIMITED
        case status if status >= 500:
            return UNAVAILABLE
    return INVALID_ARGUMENT if code in _CALL_MISMATCH else classify_message(message)


def service_error(name: str, tool: str, kind: ErrorKind) -> IntegrationError:
    """The error that a service reported. Its own message may quote a customer, so that is in the log at most."""
    hint = ". Its own message is in the log at level DEBUG" if kind in (FAILED, INVALID_ARGUMENT, UNAVAILABLE) else ""
    return integration_error(name, kind, f"{tool}: the service {kind.description}{hint}")


class MalformedAnswerError(IntegrationError):
    """An answer cannot be read. problem: of the tool's answer, as a verb phrase."""

    def __init__(self, name: str, tool: str, problem: str, message: str = "") -> None:
        message = message or f"the answer of {tool} {problem}. Correct the record, or check the server's version"
        super().__init__(f"{name}: {message}", f"{name}{MALFORMED_SUFFIX}", uncertain=True)
        self.tool, self.problem = tool, problem


def integration_error(name: str, kind: ErrorKind, message: str) -> IntegrationError:
    """name: of the service, as error codes begin."""
    return IntegrationError(
        f"{name}: {message}",
        f"{name}_{kind.type}",
        retryable=kind.retryable,
        uncertain=kind.uncertain,
        outage=kind.outage,
    )


def declared_error(name: str, declared: Any) -> IntegrationError | None:
    """The error that a server declares as `{"error": {"code", "message", "retryable", "uncertain", "outage"}}`.

    All our servers do, in `_meta`; one of the user's own may, there or as structured content. `message`
    is shown and logged, so it must not quote a customer.
    Without `outage`, the code decides: what is unavailable, refuses us or has no more room is down for every call.
    """
    match declared:
        case {"error": {"code": str(code), "message": str(message), **flags}} if re.fullmatch(_CODE, code):
            code = code if code.startswith(f"{name}_") else f"{name}_{code}"
            return IntegrationError(
                printable(message)[:MAX_MESSAGE_CHARS],
                code,
                retryable=flags.get("retryable") is True,
                uncertain=flags.get("uncertain") is True,
                outage=flags.get("outage", is_outage(code)) is True,
            )
    return None


@contextmanager
def forbid_repeat() -> Iterator[None]:
    """For a call that does harm a second time: its IntegrationError is not `retryable` if it is `uncertain`."""
    try:
        yield
    except IntegrationError as error:
        if error.uncertain:
            error.retryable = False
        raise


logger = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")


async def readable(
    name: str, tool: str, call: Callable[[], Awaitable[_Answer]], read: Callable[[_Answer], object]
) -> _Answer:
    """The answer of `call`, once `read` can read it. name: of the service, as its error codes begin.

    Raises what `call` raises; for a bad answer `{name}_malformed`, with service, tool and field in its message. Another
    tool that is asked first, such as a search, may give one, too.
    """
    try:
        answer = await call()
        read(answer)
    except IntegrationError as error:
        if not error.code.endswith(MALFORMED_SUFFIX):
            raise
        known = error if isinstance(error, MalformedAnswerError) else None
        bad = MalformedAnswerError(
            name, (known and known.tool) or tool, known.problem if known else "is not as expected"
        )
        logger.warning("%s", bad.message)
        raise bad from None
    return answer
