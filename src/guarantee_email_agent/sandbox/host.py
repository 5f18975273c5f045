"""No sandbox at all: the same API, but commands run on this machine, as this user, in a folder that is removed.

It gives up everything: an agent reads and changes whatever this user can, reaches the network, sees this machine's
processes, and is held by no limit on memory, disk or processes as a whole. For agents that are trusted, and machines
that are thrown away.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from guarantee_email_agent.sandbox.sandbox_process import LaunchSpec
from guarantee_email_agent.sandbox.served_sandbox import ServedSandbox

_KILL_S: Final = 2.0
_PAUSE_S: Final = 0.001


class HostSandbox(ServedSandbox):
    """Commands run on the host, in a folder below the system's one for temporary files."""

    _home: str | None = None

    @property
    def limitations(self) -> tuple[str, ...]:
        return (
            "nothing is isolated: commands run on this machine with the rights of this user",
            "memory, disk and processes are not limited as a whole",
        )

    def _launch_spec(self, _: int) -> LaunchSpec:
        self._home = os.path.realpath(tempfile.mkdtemp(prefix="sandbox-"))
        config = self._inner_config(self._home, sys.executable, os.environ.get("PATH", os.defpath))
        config["environment"]["TMPDIR"] = self._home
        return LaunchSpec(None, config, sys.executable, folder=self._home)

    def _clean_up(self) -> None:
        if self._home is not None:
            _kill_processes_of(self._home)
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None


def _kill_processes_of(home: str) -> None:
    """End the processes whose home this is: those that the one that serves the API could not end, having been ended."""
    variable = f"HOME={home}".encode()
    deadline = time.monotonic() + _KILL_S
    while time.monotonic() < deadline:
        left = [name for name in os.listdir("/proc") if name.isdigit() and variable in _environment_of(name)]
        if not left:
            return
        for pid in map(int, left):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def _environment_of(pid: str) -> list[bytes]:
    with suppress(OSError):  # it has ended, or is another user's
        return Path("/proc", pid, "environ").read_bytes().split(b"\0")
    return []
