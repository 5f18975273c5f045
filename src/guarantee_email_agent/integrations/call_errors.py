"""What a failed call means: its code, whether another try can heal it, whether it may have had its effect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from guarantee_email_agent.utils.errors import IntegrationError
from guarantee_email_agent.utils.printable import printable

MAX_MESSAGE_CHARS: Final = 400

_CODE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_OUTAGES: Final = (
    "_unavailable",
    "_auth",
    "_tls",
    "_rate_limited",
    "_disk_full",
    "_folder_missing",
    "_unsupported",
    "_stopping",
)
_SEE_LOG: Final = "Its own words are in the log at level DEBUG"


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """One kind of failure. `type` ends the error's code; the rest is as in `IntegrationError.details`."""

    type: str
    says: str
    retryable: bool = False
    uncertain: bool = False
    outage: bool = False


RATE_LIMITED: Final = ErrorKind("rate_limited", "is asked too often", retryable=True, outage=True)
AUTH: Final = ErrorKind("auth", "refuses our credentials. Check or renew them", outage=True)
TIMEOUT: Final = ErrorKind("timeout", "reports a time-out", retryable=True, uncertain=True)
UNAVAILABLE: Final = ErrorKind("unavailable", "reports that what it needs is out of reach", True, True, True)
INVALID_ARGUMENT: Final = ErrorKind("invalid_argument", "does not take the call as we make it. Check its version")
FAILED: Final = ErrorKind("failed", "reports an error", uncertain=True)

# In this order: "401: rate limit exceeded" tells of the limit.
_WORDS: Final = tuple(
    (re.compile("|".join(words), re.IGNORECASE), kind)
    for words, kind in (
        ((r"rate.?limit", r"too many", r"quota", r"throttl", r"\b429\b"), RATE_LIMITED),
        (
            (
                r"unauthori[sz]ed",
                r"unauthenticated",
                r"authentication ",
                r"forbidden",
                r"(permission|access) denied",
                r"log ?in required",
                r"api key",
                r"invalid[ _](grant|token|credentials?)",
                r"(token|credentials?) (has |have |is )?(been )?(expired|revoked)",
                r"insufficient.{0,20}(scope|permission)",
                r"\b40[13]\b",
            ),
            AUTH,
        ),
        ((r"timed?.?out", r"deadline", r"\b(408|504)\b"), TIMEOUT),
        (
            (
                r"unavailable",
                r"temporar",
                r"try again",
                r"overloaded",
                r"bad gateway",
                r"socket hang up",
                r"network",
                r"connection.{0,20}(refused|reset|closed|lost|aborted|failed)",
                r"broken pipe",
                r"unreachable",
                r"getaddrinfo",
                r"name resolution",
                r"\b(ECONN[A-Z]+|ENOTFOUND|EAI_AGAIN|EPIPE|EHOSTUNREACH|ENETUNREACH)\b",
                r"\b50[023]\b",
            ),
            UNAVAILABLE,
        ),
    )
)

# JSON-RPC: method not found, invalid parameters.
_NOT_AS_CALLED: Final = (-32601, -32602)


def kind_by_words(words: str) -> ErrorKind:
    """The kind of failure that a service's own words tell of; FAILED where they tell of none that we know."""
    return next((kind for pattern, kind in _WORDS if pattern.search(words)), FAILED)


def kind_by_protocol(code: int, http_status: int, words: str) -> ErrorKind:
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
    return INVALID_ARGUMENT if code in _NOT_AS_CALLED else kind_by_words(words)


def error_of_kind(name: str, tool: str, kind: ErrorKind) -> IntegrationError:
    """name: of the service, as error codes begin."""
    end = f". {_SEE_LOG}" if kind in (FAILED, INVALID_ARGUMENT, UNAVAILABLE) else ""
    return integration_error(name, kind, f"{name}: {tool}: the service {kind.says}{end}")


def integration_error(name: str, kind: ErrorKind, message: str) -> IntegrationError:
    details = {"retryable": kind.retryable, "uncertain": kind.uncertain, "outage": kind.outage}
    return IntegrationError(message, f"{name}_{kind.type}", details)


def declared_error(name: str, structured: Any) -> IntegrationError | None:
    """The error that a server declares as `{"error": {"code", "message", "retryable", "uncertain", "outage"}}`.

    All our servers do; one of the user's own may. `message` is shown and logged, so it must not quote a customer.
    Without `outage`, the code tells: what is unavailable, refuses us or has no more room is down for every call.
    """
    error = structured.get("error") if isinstance(structured, Mapping) else None
    if not isinstance(error, Mapping):
        return None
    code, message = error.get("code"), error.get("message")
    if not isinstance(code, str) or not isinstance(message, str) or not _CODE.fullmatch(code):
        return None
    code = code if code.startswith(f"{name}_") else f"{name}_{code}"
    outage = error.get("outage", code.endswith(_OUTAGES))
    details = {
        "retryable": error.get("retryable") is True,
        "uncertain": error.get("uncertain") is True,
        "outage": outage is True,
    }
    return IntegrationError(printable(message)[:MAX_MESSAGE_CHARS], code, details)
