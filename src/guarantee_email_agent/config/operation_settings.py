"""What whoever operates the agent sets: metrics and health, and where runs are kept."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from guarantee_email_agent.files.fields import number, setting

MAX_SOCKET_PATH_BYTES: Final = 107
"""unix(7): `sun_path` has 108 bytes, the last of which is 0."""

_HOST_NAME: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(\.(?!-)[a-z0-9-]{1,63})*", re.IGNORECASE | re.ASCII)


def _ip_address(value: str) -> str | None:
    from ipaddress import ip_address  # 5 ms that a command without this setting saves

    try:
        ip_address(value)
    except ValueError:
        return f"must be an IP address of this machine such as 127.0.0.1, ::1 or 0.0.0.0, not {value!r}"
    return None


def _host_names(names: tuple[str, ...]) -> str | None:
    wrong = next((name for name in names if not _HOST_NAME.fullmatch(name)), None)
    return None if wrong is None else f"must list names of this machine without a port, such as agent, not {wrong!r}"


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Where `run` can be asked for its figures (`/metrics`) and its health (`/healthz`, `/readyz`)."""

    port: int | None = number(
        None, "TCP port on which a running agent tells its metrics and its health; `null`: none.", 1, 65_535
    )
    address: str = setting(
        "127.0.0.1",
        "Where it listens: this machine alone, unless you name another address, such as `0.0.0.0` in a container.",
        _ip_address,
    )
    host_names: tuple[str, ...] = setting(
        (), "Names by which the port may be asked, besides `localhost` and IP addresses.", _host_names
    )
    socket: Path | None = setting(
        None, "Unix socket that tells the same, to the agent's own user and root only; `null`: none."
    )

    @property
    def enabled(self) -> bool:
        """Whether there is anything to ask."""
        return self.port is not None or self.socket is not None


FILE_NAME: Final = "runs.db"
_PROGRAM: Final = "guarantee-email-agent"


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


def run_store_file(settings: StoreSettings, source: Path | None, environ: Mapping[str, str] | None = None) -> Path:
    """The file of the run store. source: the configuration file; None where there is none, so that the working
    directory is no project of ours and nothing may be left there.
    """
    if settings.file is not None:
        return settings.file
    if source is not None:
        return source.parent / FILE_NAME
    environ = os.environ if environ is None else environ
    state = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # the XDG base directory specification: others are to be ignored
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(state, _PROGRAM, FILE_NAME)
