"""What the sandboxes without a container share: a process inside that serves the API, and the HTTP server before it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from guarantee_email_agent.sandbox.asset_files import asset_uploads
from guarantee_email_agent.sandbox.http_server import ApiServer
from guarantee_email_agent.sandbox.sandbox import Sandbox, SandboxSettings
from guarantee_email_agent.sandbox.sandbox_process import LaunchSpec, SandboxProcess
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.text import printable

USER: Final = "gem"
_REPLY_S: Final = 60.0
"""Seconds that a reply may take beyond the time that its command may."""


class ServedSandbox(Sandbox):
    """A process inside and the API in front of it. Subclasses define how that process is started."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._settings = settings
        self._server: ApiServer | None = None
        self._process: SandboxProcess | None = None
        self._state_lock = threading.Lock()
        self._limitations: tuple[str, ...] = ()

    @property
    def docker_port(self) -> int:
        if self._server is None:
            raise TaskError("the sandbox has not been started, or has ended", "sandbox_not_running")
        return self._server.port

    @property
    def limitations(self) -> tuple[str, ...]:
        return self._limitations

    def start(self) -> None:
        with self._state_lock:
            try:
                self._server = ApiServer()
                self._process = SandboxProcess(self._launch_spec(self._server.port))
                self._process.start()
                self._server.start(self._process, self._settings.limits.command_s + _REPLY_S)
                if self._settings.assets is not None:
                    self._copy_assets(self._process, self._settings.assets)
            except BaseException as error:
                self._shut_down()
                if isinstance(error, OSError):
                    raise TaskError(f"the sandbox did not start: {error}", "sandbox_start") from None
                raise

    def stop(self) -> None:
        with self._state_lock:
            self._shut_down()

    def _copy_assets(self, process: SandboxProcess, folder: Path) -> None:
        for query, content in asset_uploads(folder, "assets", self._settings.limits):
            target = f"/v1/file/upload?{urlencode(query)}"
            reply = process.request("POST", target, content, _REPLY_S)
            if reply.status != 200:
                message = str(json.loads(reply.content)["message"])[:300]
                problem = f"{query['path']} could not be put into the sandbox: {message}"
                raise TaskError(f"{folder}: {printable(problem)}", "sandbox_assets")

    def _shut_down(self) -> None:
        process, server, self._process, self._server = self._process, self._server, None, None
        if process is not None:
            process.close()
        if server is not None:
            server.close()
        self._clean_up()

    def _launch_spec(self, port: int) -> LaunchSpec:
        """How to start the process inside. port: of the API."""
        raise NotImplementedError

    def _clean_up(self) -> None:
        """Remove what is left once nothing runs any more."""

    def _inner_config(self, home: str, python: str, path: str, **changes: Any) -> dict[str, Any]:
        """The config of `inside.main.run`. changes: to that without any isolation. path: where programs are."""
        return {
            "home": home,
            "environment": _environment(home, f"{Path(python).parent}:{path}"),
            "python": python,
            "shell": shutil.which("bash", path=path) or "/bin/bash",
            "node": shutil.which("node", path=path),
            "browser": {"program": None, "own_network": False},
            "command_s": self._settings.limits.command_s,
            "time_s": self._settings.limits.time_s,
            "files_to_create": (),
            "user": None,
            "pid_namespace": False,
            "isolation": "not isolated from this machine",
            "process_limits": {},
            "guard": None,
            **changes,
        }


def _environment(home: str, path: str) -> dict[str, str]:
    """All that a program inside sees; nothing of ours, which may hold keys and passwords."""
    return {
        "PATH": path,
        "HOME": home,
        "USER": USER,
        "LOGNAME": USER,
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": "/tmp",  # noqa: S108 - inside
    }


_KILL_S: Final = 2.0
_PAUSE_S: Final = 0.001


class HostSandbox(ServedSandbox):
    """No sandbox at all: the same API, but commands run on this machine, as this user, in a folder that is removed.

    It gives up everything: an agent reads and changes whatever this user can, and is held by no limit as a whole.
    """

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
        return LaunchSpec((), config, sys.executable, folder=self._home)

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
