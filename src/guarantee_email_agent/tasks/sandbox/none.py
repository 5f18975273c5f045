"""No sandbox at all: the same API, but commands run on this machine, as this user, in a folder that is removed.

It gives up everything: an agent reads and changes whatever this user can, reaches the network, sees this machine's
processes, and is held by no limit on memory, disk or processes as a whole. For agents that are trusted, and machines
that are thrown away.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from guarantee_email_agent.tasks.sandbox.embedded import ServedSandbox, environment
from guarantee_email_agent.tasks.sandbox.worker import Start

GIVEN_UP = (
    "nothing is isolated: commands run on this machine with the rights of this user",
    "memory, disk and processes are not limited as a whole",
)


class HostSandbox(ServedSandbox):
    """Commands run on the host, in a folder below the system's one for temporary files."""

    _home: str | None = None

    @property
    def gaps(self) -> tuple[str, ...]:
        return GIVEN_UP

    def _how(self, _: int) -> Start:
        import sys

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
            "own_network": False,
            "command_s": self._settings.limits.command_s,
            "time_s": self._settings.limits.time_s,
        }
        return Start(None, config, python, folder=self._home)

    def _clean_up(self) -> None:
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None
