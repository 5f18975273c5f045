"""The embedded sandbox: AIO Sandbox's HTTP API, served over bubblewrap. It needs no container engine and no image."""

from __future__ import annotations

import math
import os
import shutil
from functools import partial
from pathlib import Path
from typing import Final

from guarantee_email_agent.isolation.seccomp import filter_program
from guarantee_email_agent.sandbox.bubblewrap import HOME, bubblewrap_command, find_bubblewrap, find_python
from guarantee_email_agent.sandbox.http_server import FIRST_USER
from guarantee_email_agent.sandbox.sandbox_process import LaunchSpec
from guarantee_email_agent.sandbox.served_sandbox import USER, ServedSandbox

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


class EmbeddedSandbox(ServedSandbox):
    """In namespaces of its own: files, processes, users, and the network unless it is asked for."""

    def _launch_spec(self, port: int) -> LaunchSpec:
        settings, limits = self._settings, self._settings.limits
        program = find_bubblewrap()
        user = FIRST_USER + port if os.geteuid() == 0 else None
        python, python_folders = find_python()
        browser, browser_folders = _find_browser()
        blocked = filter_program()
        self._limitations = _find_limitations(user is not None, blocked is not None, settings.network)
        filter_fd = None if blocked is None else _pipe_with(blocked)
        wrapper = partial(
            bubblewrap_command,
            program=program,
            disk_bytes=limits.disk_bytes,
            network=settings.network,
            user=user,
            shared=(*python_folders, *browser_folders),
            filter_fd=filter_fd,
        )
        number = 1000 if user is None else user
        config = self._inner_config(
            HOME,
            python,
            _PATH,
            browser=browser,
            files_to_create=(
                ("/etc/passwd", f"root:x:0:0::/:/bin/false\n{USER}:x:{number}:{number}::{HOME}:/bin/bash\n"),
                ("/etc/group", f"root:x:0:\n{USER}:x:{number}:\n"),
                ("/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"),
                ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
            ),
            user=user,
            pid_namespace=True,
            own_network=not settings.network,
            isolation="with network access" if settings.network else "without network access",
            process_limits={
                "memory": limits.memory_bytes,
                "file": limits.disk_bytes,
                "processes": limits.processes,
                "open_files": limits.open_files,
                "cpu_s": math.ceil(limits.time_s),
            },
            guard={
                "memory": limits.memory_bytes,
                "files": limits.files,
                "file_systems": ("/", "/dev/shm"),  # noqa: S108 - inside
                "own_network": not settings.network,
            },
        )
        return LaunchSpec(wrapper, config, python, pass_fds=() if filter_fd is None else (filter_fd,))


def _find_browser() -> tuple[str | None, tuple[str, ...]]:
    """The browser of this machine, and the folders outside /usr that it needs."""
    for name in BROWSERS:
        if (found := shutil.which(name)) is not None:
            # /usr/bin/chromium may be a script that reads the machine's settings; what it starts is the browser.
            started = Path("/usr/lib/chromium/chromium")
            program = started if name.startswith("chromium") and started.is_file() else Path(found).resolve()
            return str(program), () if program.is_relative_to("/usr") else (str(program.parent),)
    return None, ()


def _find_limitations(as_root: bool, filtered: bool, network: bool) -> tuple[str, ...]:
    found = []
    if not filtered:
        found.append(f"no filter for system calls on this processor ({os.uname().machine})")
    if as_root:
        return tuple(found)
    if network:
        found.append("an agent with the network reaches the APIs of this user's sandboxes, its own among them")
    try:
        import _ctypes  # noqa: F401 - only whether it is there
    except ImportError:
        found.append("an agent can look into the process that serves its files, since this Python has no ctypes")
    return tuple(found)


def _pipe_with(content: bytes) -> int:
    read_end, write_end = os.pipe()
    os.write(write_end, content)
    os.close(write_end)
    return read_end
