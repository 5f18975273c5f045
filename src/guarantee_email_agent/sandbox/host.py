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

from guarantee_email_agent.sandbox.embedded import ServedSandbox, environment
from guarantee_email_agent.sandbox.sandbox_process import Start

GIVEN_UP = (
    "nothing is isolated: commands run on this machine with the rights of this user",
    "memory, disk and processes are not limited as a whole",
)


_PATIENCE_S: Final = 2.0
_PAUSE_S: Final = 0.001


class HostSandbox(ServedSandbox):
    """Commands run on the host, in a folder below the system's one for temporary files."""

    _home: str | None = None

    @property
    def limitations(self) -> tuple[str, ...]:
        return GIVEN_UP

    def _how(self, _: int) -> Start:
        self._home = os.path.realpath(tempfile.mkdtemp(prefix="sandbox-"))
        python = sys.executable
        seen = environment(self._home, str(Path(python).parent), os.environ.get("PATH", os.defpath))
        config = {
            "home": self._home,
            "made_files": (),
            "user": None,
            "first": False,
            "environment": seen | {"TMPDIR": self._home},
            "python": python,
            "shell": shutil.which("bash") or "/bin/bash",
            "node": shutil.which("node"),
            "browser": None,
            "isolation": "not isolated from this machine",
            "process_limits": dict.fromkeys(("memory", "file", "processes", "open_files", "cpu_s")),
            "watched_memory": None,
            "files": 0,
            "file_systems": (),
            "own_network": False,
            "command_s": self._settings.limits.command_s,
            "time_s": self._settings.limits.time_s,
        }
        return Start(None, config, python, folder=self._home)

    def _clean_up(self) -> None:
        if self._home is not None:
            _end_all_of(self._home)
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None


def _end_all_of(home: str) -> None:
    """End the processes whose home this is: those that the one that serves the API could not end, having been ended."""
    mark = f"HOME={home}".encode()
    give_up_at = time.monotonic() + _PATIENCE_S
    while time.monotonic() < give_up_at:
        left = [int(name) for name in os.listdir("/proc") if name.isdigit() and mark in _environment_of(name)]
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def _environment_of(pid: str) -> list[bytes]:
    try:
        return Path("/proc", pid, "environ").read_bytes().split(b"\0")
    except OSError:
        return []  # it has ended, or is another user's
