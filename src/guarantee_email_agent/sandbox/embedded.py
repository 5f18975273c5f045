"""The embedded sandbox: AIO Sandbox's HTTP API, served over bubblewrap. It needs no container engine and no image."""

from __future__ import annotations

import math
import os
import shutil
import threading
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.isolation.seccomp import filter_program
from guarantee_email_agent.sandbox.bubblewrap import HOME, USER, Place, command_line, find_bubblewrap, interpreter
from guarantee_email_agent.sandbox.http_server import ApiServer
from guarantee_email_agent.sandbox.peer_user import FIRST_USER
from guarantee_email_agent.sandbox.sandbox import SandboxLimits, SandboxSettings
from guarantee_email_agent.sandbox.sandbox_process import Start, Worker
from guarantee_email_agent.utils.errors import TaskError

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATH: Final = "/usr/local/bin:/usr/bin:/bin"
ANSWER_S: Final = 60.0
"""Seconds that a reply may take beyond the time that its command may."""


class ServedSandbox:
    """A process inside and the API in front of it; what the process is, the kinds of sandbox say."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._settings = settings
        self._server: ApiServer | None = None
        self._worker: Worker | None = None
        self._state = threading.Lock()
        self._limitations: tuple[str, ...] = ()

    @property
    def base_url(self) -> str:
        return f"http://localhost:{self.docker_port}"

    @property
    def docker_port(self) -> int:
        if self._server is None:
            raise TaskError("the sandbox has not been started, or has ended", "sandbox_not_running")
        return self._server.port

    @property
    def limitations(self) -> tuple[str, ...]:
        return self._limitations

    def start(self) -> None:
        with self._state:
            if self._server is not None:
                return
            try:
                self._serve()
                if self._settings.assets is not None and self._worker is not None:
                    _put(self._worker, self._settings.assets, "assets")
            except OSError as error:
                self._end()
                raise TaskError(f"the sandbox did not start: {error}", "sandbox_start") from None
            except BaseException:
                self._end()
                raise

    def stop(self) -> None:
        with self._state:
            self._end()

    def _serve(self) -> None:
        self._server = ApiServer()
        self._worker = Worker(self._how(self._server.port))
        self._worker.start()
        self._server.start(self._worker, self._settings.limits.command_s + ANSWER_S)

    def _end(self) -> None:
        worker, server, self._worker, self._server = self._worker, self._server, None, None
        if worker is not None:
            worker.close()
        if server is not None:
            server.close()
        self._clean_up()

    def _how(self, port: int) -> Start:
        """How to start the process inside. port: of the API."""
        raise NotImplementedError

    def _clean_up(self) -> None:
        """Remove what is left once nothing runs any more."""


class EmbeddedSandbox(ServedSandbox):
    """In namespaces of its own: files, processes, users, and the network unless it is asked for."""

    def _how(self, port: int) -> Start:
        settings, limits = self._settings, self._settings.limits
        program = find_bubblewrap()
        user = FIRST_USER + port if os.geteuid() == 0 else None
        python, shared = interpreter()
        browser, beside = _browser()
        shared = (*shared, *beside)
        blocked = filter_program()
        self._limitations = _limitations(
            as_root=user is not None, filtered=blocked is not None, network=settings.network
        )
        filter_fd = None if blocked is None else _readable(blocked)

        def wrapper(status_fd: int) -> list[str]:
            place = Place(program, limits.disk_bytes, settings.network, user, shared, filter_fd, status_fd)
            return command_line(place, ())

        number = 1000 if user is None else user
        made = (
            ("/etc/passwd", f"root:x:0:0::/:/bin/false\n{USER}:x:{number}:{number}::{HOME}:/bin/bash\n"),
            ("/etc/group", f"root:x:0:\n{USER}:x:{number}:\n"),
            ("/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"),
            ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
        )
        config = {
            "home": HOME,
            "made_files": made,
            "user": user,
            "first": True,
            "environment": environment(HOME, str(Path(python).parent)),
            "python": python,
            "shell": shutil.which("bash", path=PATH) or "/bin/bash",
            "node": shutil.which("node", path=PATH),
            "browser": browser,
            "isolation": "with network access" if settings.network else "without network access",
            "process_limits": process_limits(limits),
            "watched_memory": limits.memory_bytes,
            "files": limits.files,
            "file_systems": ("/", "/dev/shm"),  # noqa: S108 - inside
            "own_network": not settings.network,
            "command_s": limits.command_s,
            "time_s": limits.time_s,
        }
        return Start(wrapper, config, python, pass_fds=() if filter_fd is None else (filter_fd,))


def environment(home: str, python_folder: str, path: str = PATH) -> dict[str, str]:
    """All that a program inside sees; nothing of ours, which may hold keys and passwords."""
    return {
        "PATH": f"{python_folder}:{path}",
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


def process_limits(limits: SandboxLimits) -> dict[str, Any]:
    return {
        "memory": limits.memory_bytes,
        "file": limits.disk_bytes,
        "processes": limits.processes,
        "open_files": limits.open_files,
        "cpu_s": math.ceil(limits.time_s),
    }


def _browser() -> tuple[str | None, tuple[str, ...]]:
    """The browser of this machine, and the folders outside /usr that it needs."""
    for name in BROWSERS:
        if (found := shutil.which(name)) is not None:
            real = Path(found).resolve()
            # /usr/bin/chromium may be a script that reads the machine's settings; what it starts is the browser.
            behind = Path("/usr/lib/chromium/chromium")
            program = behind if name.startswith("chromium") and behind.is_file() else real
            outside = not program.is_relative_to("/usr")
            return str(program), (str(program.parent),) if outside else ()
    return None, ()


def _limitations(*, as_root: bool, filtered: bool, network: bool) -> tuple[str, ...]:
    limitations = []
    if not filtered:
        limitations.append(f"no filter for system calls on this processor ({os.uname().machine})")
    if as_root:
        return tuple(limitations)
    if network:
        limitations.append("an agent with the network reaches the APIs of this user's sandboxes, its own among them")
    try:
        import _ctypes  # noqa: F401 - only whether it is there
    except ImportError:
        limitations.append("an agent can look into the process that serves its files, since this Python has no ctypes")
    return tuple(limitations)


def _readable(content: bytes) -> int:
    """A descriptor to read `content` from."""
    ours, theirs = os.pipe()
    os.write(theirs, content)
    os.close(theirs)
    return ours


def _put(worker: Worker, folder: Path, name: str) -> None:
    """Copy a folder of the host into the sandbox's home. Links are copied as links, so none leads to the host's files.

    Raises TaskError.
    """
    from urllib.parse import urlencode

    for top, folders, files in os.walk(folder):
        for entry in (*folders, *files):
            path = Path(top, entry)
            query = {"path": f"{name}/{path.relative_to(folder)}"}
            try:
                if path.is_symlink():
                    query["link"], content = os.readlink(path), b""
                elif path.is_file():
                    query["mode"], content = f"{path.stat().st_mode & 0o777:o}", path.read_bytes()
                else:
                    query["folder"], content = "1", b""
            except OSError as error:
                raise TaskError(f"{path}: cannot be read ({error.strerror})", "sandbox_assets") from None
            target = f"/v1/file/upload?{urlencode(query)}"
            status, _, answer = worker.request("POST", target, "application/octet-stream", content, ANSWER_S)
            if status != 200:
                raise TaskError(f"{path} could not be put into the sandbox: {answer.decode()[:300]}", "sandbox_assets")
