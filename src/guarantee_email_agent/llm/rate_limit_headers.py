"""What a model API says of its rate limits in the headers of its answers: how much it allows, and when to ask again."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final, Literal, NamedTuple

LimitKind = Literal["requests", "tokens", "input-tokens", "output-tokens"]
LIMIT_KINDS: Final[tuple[LimitKind, ...]] = ("requests", "tokens", "input-tokens", "output-tokens")

_COUNT: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_SECONDS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_YEAR_S: Final = 365 * 86_400.0


class ReportedLimit(NamedTuple):
    """One of the API's limits. per_minute: above 0. remaining: what was left of it; None where that is not told."""

    kind: LimitKind
    per_minute: int
    remaining: int | None


def reported_limits(headers: Mapping[str, str]) -> Iterator[ReportedLimit]:
    """Those that `anthropic-ratelimit-*` name. A header that is no count says nothing."""
    for kind in LIMIT_KINDS:
        if limit := _count(headers.get(f"anthropic-ratelimit-{kind}-limit")):
            yield ReportedLimit(kind, limit, reported_remaining(headers, kind))


def reported_remaining(headers: Mapping[str, str], kind: LimitKind) -> int | None:
    """What is left of a limit; None where that is not told."""
    return _count(headers.get(f"anthropic-ratelimit-{kind}-remaining"))


def retry_after_s(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (seconds or a date, RFC 9110 §10.2.3).

    Above 0 and at most a year; None where neither says so. A date is held against the answer's own `date`, so that the
    two clocks may differ, and only without one against `now`, in seconds since 1970.
    """
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if _SECONDS.fullmatch(text):
            wait_s = float(text) * factor
        elif factor == 1.0 and (until := _seconds_since_1970(text)) is not None:
            answered = _seconds_since_1970(headers.get("date", ""))
            wait_s = until - (now() if answered is None else answered)
        else:
            continue
        if wait_s > 0:
            return min(wait_s, _YEAR_S)
    return None


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and _COUNT.fullmatch(text.strip()) else None


def _seconds_since_1970(text: str) -> float | None:
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
