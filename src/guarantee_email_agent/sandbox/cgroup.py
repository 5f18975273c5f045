"""A cgroup (version 2) of a sandbox's own, where one is ours to have: the kernel then counts all that its processes
take, sockets and its own tables included.

Ours to have means: as root, below the root of the hierarchy; or below our own cgroup where that was delegated to us, as
`systemd-run --user --scope --property Delegate=yes` does, and nobody else's processes are in it. A cgroup that hands
its controllers on may hold no process itself, so those that we share a delegated one with, our parents and children,
move with us to a leaf. Rules: Documentation/admin-guide/cgroup-v2.rst of Linux, and systemd.io/CGROUP_DELEGATION.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import select
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from guarantee_email_agent.isolation.processes import descendants, list_mounts, list_processes
from guarantee_email_agent.sandbox.sandbox import SandboxLimits

_FOLDER: Final = "guarantee-email-agent"
_LEAF: Final = f"{_FOLDER}.solve"
_PREFIX: Final = "sandbox-"
_CONTROLLERS: Final = frozenset({"memory", "pids"})
_REMEDY: Final = "where systemd is, systemd-run --user --scope --property Delegate=yes gives one"
_OWN_BYTES: Final = 64 << 20
"""For the process that serves the sandbox, which its limits do not count."""
_OWN_PROCESSES: Final = 16
_TRIES: Final = 5
_END_S: Final = 3.0

_moving = threading.Lock()


class CgroupUnavailableError(Exception):
    """Why no cgroup is ours to have, in a few words."""


class Cgroup:
    """One that exists until `remove`, or until the next one is made after we have ended.

    A lock on its folder, which the kernel takes off with our process, says that it is in use.
    """

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, parent: Path, values: Mapping[str, int]) -> Cgroup:
        """values: file of the cgroup → what is written to it. Raises OSError."""
        for tries_left in reversed(range(_TRIES)):
            path = parent / f"{_PREFIX}{secrets.token_hex(6)}"
            lock = None
            try:
                path.mkdir()
                # Until it has the lock, somebody who removes what is left over may take it for that.
                lock = _lock(path)
                for name, value in values.items():
                    (path / name).write_text(str(value))
                return cls(path, lock)
            except OSError:
                if lock is not None:
                    os.close(lock)
                with suppress(OSError):
                    path.rmdir()
                if not tries_left:
                    raise
        raise AssertionError

    def add(self, pid: int) -> None:
        """Have a process in it, and all that it starts from now on. Raises OSError."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def remove(self) -> None:
        """End all that is in it, and remove it; whatever cannot be removed is left to the next one."""
        with suppress(OSError):
            _end_processes(self.path)
            self.path.rmdir()
        self.release()

    def release(self) -> None:
        """Leave it to whoever removes what is left over."""
        os.close(self._lock)


def create_cgroup(limits: SandboxLimits, hierarchy: tuple[Path, Path] | None = None) -> Cgroup:
    """For all processes of a sandbox. Raises CgroupUnavailableError.

    hierarchy: where it is mounted, and our own cgroup in it; found out by default. Memory is that of the processes and
    of the disk, which is memory too. Where there is too much the kernel ends one process at a time and not all of them
    (`memory.oom.group` stays off), so that a sandbox may live on.
    """
    values = {
        "memory.max": limits.memory_bytes + limits.disk_bytes * 5 // 4 + _OWN_BYTES,
        "pids.max": limits.processes + _OWN_PROCESSES,
    }
    try:
        with _moving:
            parent = _parent(*(hierarchy or _own_cgroup()))
            remove_unused(parent)
            cgroup = Cgroup.create(parent, values)
        with suppress(FileNotFoundError, PermissionError):  # a kernel without swap
            (cgroup.path / "memory.swap.max").write_text("0")
        return cgroup
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        raise CgroupUnavailableError(f"{place}{error.strerror or error}") from None


def remove_unused(parent: Path) -> None:
    """Those below `parent` whose maker has ended."""
    for path in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            Cgroup(path, _lock(path)).remove()


def _lock(path: Path) -> int:
    """Raises OSError where another process has it."""
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


def _end_processes(path: Path) -> None:
    """Raises OSError."""
    with (path / "cgroup.events").open("rb", buffering=0) as events:
        poll = select.poll()
        poll.register(events, select.POLLPRI)
        try:
            (path / "cgroup.kill").write_text("1")
        except FileNotFoundError:  # before Linux 5.14
            for pid in (path / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
        while b"populated 1" in os.pread(events.fileno(), 4096, 0):
            if not poll.poll(_END_S * 1000):
                return


def _own_cgroup() -> tuple[Path, Path]:
    """Where the hierarchy is mounted, and our own cgroup in it. Raises OSError, CgroupUnavailableError."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    own = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    for mount in list_mounts().values():
        if own is not None and mount.kind == "cgroup2" and f"{own}/".startswith(f"{mount.root.rstrip('/')}/"):
            return Path(mount.point), Path(mount.point, os.path.relpath(own, mount.root))
    raise CgroupUnavailableError("this machine has no cgroups of version 2")


def _parent(root: Path, own: Path) -> Path:
    """The cgroup below which sandboxes have theirs. Raises OSError, CgroupUnavailableError."""
    if os.geteuid() == 0 and not (root / "cgroup.type").exists():  # only the real root has none
        parent = root / _FOLDER
        _require_controllers(root)
        parent.mkdir(exist_ok=True)
        _hand_on_controllers(root)
        _hand_on_controllers(parent)
        return parent
    parent = own.parent if own.name == _LEAF else own
    _require_controllers(parent)
    if not all(os.access(path, os.W_OK, effective_ids=True) for path in (parent, parent / "cgroup.subtree_control")):
        raise CgroupUnavailableError(f"our cgroup is not delegated to us; {_REMEDY}")
    if not _words(parent / "cgroup.subtree_control") >= _CONTROLLERS:
        _move_to_leaf(parent)
        _hand_on_controllers(parent)
    return parent


def _require_controllers(parent: Path) -> None:
    if missing := _CONTROLLERS - _words(parent / "cgroup.controllers"):
        raise CgroupUnavailableError(f"no controller for {' and '.join(sorted(missing))} in cgroups of version 2")


def _hand_on_controllers(parent: Path) -> None:
    if not _words(parent / "cgroup.subtree_control") >= _CONTROLLERS:
        (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(_CONTROLLERS)))


def _move_to_leaf(parent: Path) -> None:
    """All processes of a cgroup, where they are ours."""
    leaf = parent / _LEAF
    for _ in range(_TRIES):  # they may have started others meanwhile
        pids = [int(pid) for pid in _words(parent / "cgroup.procs")]
        if not pids:
            return
        if not set(pids) <= _family():
            raise CgroupUnavailableError(f"other processes share our cgroup; {_REMEDY}")
        leaf.mkdir(exist_ok=True)
        for pid in pids:
            with suppress(ProcessLookupError):
                (leaf / "cgroup.procs").write_text(str(pid))


def _family() -> set[int]:
    """We, our parents and our descendants."""
    parents = {pid: int(fields[1]) for pid, fields, _ in list_processes()}
    family = {pid for pid, _ in descendants()}
    above: int | None = os.getpid()
    while above:
        family.add(above)
        above = parents.get(above)
    return family


def _words(path: Path) -> set[str]:
    return set(path.read_text().split())
