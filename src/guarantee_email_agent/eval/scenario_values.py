"""What a value in a scenario file must look like: each check returns what is wrong with one, or None."""

from __future__ import annotations

import json
import re
from collections.abc import Sized
from datetime import date, datetime
from typing import Final

from guarantee_email_agent.files.fields import not_blank
from guarantee_email_agent.utils.addresses import parse_addresses
from guarantee_email_agent.utils.text import truncate

SCENARIO_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
DAY: Final = r"^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}($|[T ])"
TIME: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}($|[T ])"
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.(py|eml)")


def check_scenario_id(value: str) -> str | None:
    if SCENARIO_ID.fullmatch(value):
        return None
    return "must be letters, digits, '_', '-' and '.' (at most 100), such as valid_warranty_001"


def check_day(value: str) -> str | None:
    """A calendar day, as `2026-01-18`; a time may stand behind it."""
    try:
        if re.match(DAY, value):
            date(*map(int, re.split("[-T ]", value)[:3]))
            return None
    except ValueError:
        pass
    return f"must be a day such as 2026-01-18, not {truncate(value, 40)!r}"


def check_time(value: str) -> str | None:
    try:
        if re.match(TIME, value):
            datetime.fromisoformat(value)
            return None
    except ValueError:
        pass
    return f"must be a time such as 2026-01-18T10:00:00Z, not {truncate(value, 40)!r}"


def check_sender(value: str) -> str | None:
    if len(parse_addresses(value)) == 1 or value.rstrip().endswith("<>"):  # a bounce has the null sender
        return None
    return f"must be an address such as customer@example.com, not {truncate(value, 40)!r}"


def check_test_file(value: str) -> str | None:
    if (name := _FILE_NAME.fullmatch(value)) and name[1] == "py":
        return None
    return "must be the name of a Python file beside this one, such as judge.py"


def check_raw_file(value: str) -> str | None:
    if (name := _FILE_NAME.fullmatch(value)) and name[1] == "eml":
        return None
    return "must be the name of a mail beside this file, such as photo_mail.eml"


def check_filled(values: Sized) -> str | None:
    """An empty list reads as if no call may be made, and judges nothing."""
    return None if values else "is empty and judges nothing; for no call at all name the servers in never_called"


def check_task(value: object) -> str | None:
    """Any JSON but null, which is nothing to do; a text with words."""
    try:
        if value is None:
            return "must be a text or JSON, not null"
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return "must be a text or JSON"
    return not_blank(value) if isinstance(value, str) else None
