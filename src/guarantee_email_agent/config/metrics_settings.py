"""Where `run` can be asked for its figures and its health."""

from __future__ import annotations

import re
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
