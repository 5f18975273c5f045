"""The daily summary: when it is written, in which time zone, and where it goes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from guarantee_email_agent.files.fields import setting

_TIME: Final = re.compile(r"([01]\d|2[0-3]):[0-5]\d")
_ADDRESS: Final = re.compile(r"[^\s@<>,]+@[^\s@<>,]+")


def _time(value: str) -> str | None:
    return None if _TIME.fullmatch(value) else f'must be a time of day in quotes, such as "07:00", not {value!r}'


def _address(value: str) -> str | None:
    return None if _ADDRESS.fullmatch(value) else f"must be a bare address such as lead@example.com, not {value!r}"


def _zone(value: str) -> str | None:
    from zoneinfo import ZoneInfo  # only where a zone is named

    try:
        ZoneInfo(value)
    except (KeyError, ValueError, OSError):
        return f"is no time zone of this machine: {value!r}. Write one such as Europe/Berlin or UTC"
    return None


@dataclass(frozen=True, slots=True)
class SummarySettings:
    """What the agent did in a day, once a day. There is none unless `to` or `file` is set."""

    at: str = setting("07:00", "When a day ends and its summary is written: hours and minutes, in quotes.", _time)
    zone: str | None = setting(
        None,
        "Time zone of `at`, and of the times that `status`, `log` and `check` show; by default the machine's.",
        _zone,
    )
    to: str | None = setting(
        None, "Address that it is mailed to; none of the agent's own. Not together with `file`.", _address
    )
    file: Path | None = setting(
        None,
        "File that it is written to; `{date}` in its name becomes the date, else each replaces the one before. "
        "Not together with `to`.",
    )

    def __post_init__(self) -> None:
        if self.to is not None and self.file is not None:
            raise ValueError("has both 'to' and 'file'; keep one of them")
