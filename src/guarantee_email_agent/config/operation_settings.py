"""What whoever operates the agent sets: metrics and health, and where runs are kept."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from guarantee_email_agent.files.validation import number, setting

_PLACE: Final = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<v4>[0-9.]+)):(?P<port>[0-9]{1,5})")


def _place(value: str) -> tuple[str, int] | None:
    from ipaddress import ip_address  # 5 ms that a command without this setting saves

    if (match := _PLACE.fullmatch(value)) is None or not 1 <= int(match["port"]) <= 65_535:
        return None
    address = match["v6"] or match["v4"]
    try:
        ip_address(address)
    except ValueError:
        return None
    return address, int(match["port"])


def _check_place(value: str) -> str | None:
    if _place(value) is not None:
        return None
    return f'must be an IP address of this machine and a port such as 127.0.0.1:9464 or "[::1]:9464", not {value!r}'


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Where `run` can be asked for its figures (`/metrics`) and its health (`/healthz`, `/readyz`)."""

    listen: str | None = setting(
        None,
        "Where a running agent tells its metrics and its health: `127.0.0.1:9464` for this machine alone, "
        "`0.0.0.0:9464` in a container; `null`: nowhere.",
        _check_place,
    )

    @property
    def place(self) -> tuple[str, int] | None:
        """An IP address and a port; None where there is nobody to ask."""
        return None if self.listen is None else _place(self.listen)


_FILE_NAME: Final = "runs.db"


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """What `eval`, `grade` and `solve` did, for `--resume` and for comparisons."""

    file: Path | None = setting(
        None,
        "The SQLite file of the runs, made where it is missing; by default `runs.db` beside the configuration file, "
        "and without one in `$XDG_STATE_HOME/guarantee-email-agent`.",
    )
    keep_runs: int | None = number(
        1000,
        "Runs that are kept; older ones go, but for the newest of each suite that passed. `null`: none goes.",
        1,
        1_000_000,
    )

    def file_for(self, source: Path | None) -> Path:
        """source: the configuration file; None where there is none, so that the working directory is no project of
        ours and nothing may be left there.
        """
        if self.file is not None:
            return self.file
        if source is not None:
            return source.parent / _FILE_NAME
        state = os.environ.get("XDG_STATE_HOME", "")
        if not os.path.isabs(state):  # the XDG base directory specification: others are to be ignored
            state = os.path.join(os.path.expanduser("~"), ".local", "state")
        return Path(state, "guarantee-email-agent", _FILE_NAME)
