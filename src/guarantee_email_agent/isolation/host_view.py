"""A read-only view of the host in which locks and named pipes are its own.

On a file that one may only read one can still hold a lock that others wait for, and from a pipe take what is in it.
Seen through overlayfs each file is another one with the same content, so neither is shared; nor are leases, watches,
times of access, and the sockets behind their files. So an overlay lies over each folder of the host. In a user's own
namespace the kernel lays none over a folder with mount points below it: there its subfolders get one each, and the
files beside them stay the host's.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from guarantee_email_agent.isolation import syscalls as kernel
from guarantee_email_agent.isolation.processes import Mount, list_mounts

_SAFE: Final = kernel.MS_NOSUID | kernel.MS_NODEV
_KERNEL_FOLDERS: Final = ("/proc", "/sys", "/dev")
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the kernel's name for it
_EMPTY: Final = "/dev/pts"
_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_MOST_PARTS: Final = 300
"""Subfolders with an overlay each in one folder: every new mount namespace copies them."""
_IN_MEMORY: Final = frozenset({"tmpfs", "ramfs", "overlay", "proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2"})
_ANSWER_TIMEOUT_S: Final = 2.0


@dataclass(slots=True)
class HostView:
    """What `HostView.enter()` made.

    covered: folders seen through an overlay. parted: folders whose subfolders are. shared: folders that are seen as
    they are, because the kernel lays no overlay over their file system, because that does not answer, or because they
    have too many subfolders.
    """

    covered: list[str] = field(default_factory=list)
    parted: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    _silent: frozenset[str] = frozenset()

    @classmethod
    def enter(cls) -> HostView:
        """Cover the host, for this process, which is alone in a mount namespace with private mounts.

        Everything is read-only then, /dev has but its harmless devices, and /dev/pts is empty. Raises OSError where the
        kernel does not allow even that; where it allows no overlays, `shared` says so.
        """
        kernel.protect_mounts("/", kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID)
        mounts = list_mounts()
        view = cls(_silent=_silent_ones(mounts))
        view._make_devices()
        view._part("/", sorted(mounts))
        return view

    def refresh(self) -> None:
        """Show what was added, replaced or removed on the host since: an overlay remembers names that it has met."""
        for folder in list(self.covered):
            try:
                kernel.mount("none", folder, "none", kernel.MS_REMOUNT | kernel.MS_RDONLY | _SAFE)
            except OSError:  # the host has removed it
                self.covered.remove(folder)
        for folder in self.parted:
            with suppress(OSError):
                own = os.stat(folder).st_dev
                for part in _folders_in(folder):
                    if part not in self._silent and os.lstat(part).st_dev == own:
                        self._cover(part)

    def _make_devices(self) -> None:
        """Bound, since only the machine's own root makes new ones."""
        shown = [name for name in (*_DEVICES, "shm") if os.path.exists(f"/dev/{name}")]
        opened = {name: os.open(f"/dev/{name}", os.O_PATH | os.O_CLOEXEC) for name in shown}
        try:
            options = "mode=0755,size=64k,nr_inodes=64"
            kernel.mount("tmpfs", "/dev", "tmpfs", kernel.MS_NOSUID | kernel.MS_NOEXEC, options)
            os.mkdir(_EMPTY)
            for name, leads_to in _DEVICE_LINKS.items():
                os.symlink(leads_to, f"/dev/{name}")
            for name, descriptor in opened.items():
                if name == "shm":
                    os.mkdir(_SHARED_MEMORY)
                else:
                    os.close(os.open(f"/dev/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC))
                kernel.mount(f"/proc/self/fd/{descriptor}", f"/dev/{name}", "none", kernel.MS_BIND | kernel.MS_REC)
            if "shm" in opened:
                self._show(_SHARED_MEMORY, [])
            kernel.protect_mounts("/dev", kernel.MOUNT_ATTR_RDONLY)
        finally:
            for descriptor in opened.values():
                os.close(descriptor)

    def _show(self, path: str, mounts: list[str]) -> None:
        """Lay an overlay over a folder of the host, and over what is mounted below it."""
        if path in self._silent:
            self.shared.append(path)
            return
        inside = _topmost(mounts, path)
        if not self._silent.isdisjoint(inside):  # not even opened
            self._part(path, mounts)
            return
        opened = [(point, os.open(point, os.O_PATH | os.O_CLOEXEC)) for point in inside if os.access(point, os.F_OK)]
        try:
            if self._cover(path):
                for point, descriptor in opened:
                    with suppress(OSError):
                        source = f"/proc/self/fd/{descriptor}"
                        kernel.mount(source, point, "none", kernel.MS_BIND | kernel.MS_REC)
                        self._show(point, mounts)
            elif inside:
                self._part(path, mounts)
            else:
                self.shared.append(path)
        finally:
            for _, descriptor in opened:
                os.close(descriptor)

    def _part(self, path: str, mounts: list[str]) -> None:
        try:
            parts = _folders_in(path)
        except OSError:
            if os.access(path, os.X_OK):  # else nothing of it is to be had
                self.shared.append(path)
            return
        if len(parts) > _MOST_PARTS:
            self.shared.append(path)
            return
        self.parted.append(path)
        for part in parts:
            if part not in _KERNEL_FOLDERS:
                with suppress(OSError):  # it is gone, or not for us
                    self._show(part, mounts)

    def _cover(self, path: str) -> bool:
        """False where the kernel does not lay an overlay over it."""
        # By its descriptor: a path may have a comma or a colon.
        folder = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            layers = f"lowerdir=/proc/self/fd/{folder}:{_EMPTY}"
            kernel.mount("overlay", path, "overlay", _SAFE | kernel.MS_RDONLY, layers)
        except OSError:
            return False
        finally:
            os.close(folder)
        self.covered.append(path)
        return True


def _folders_in(path: str) -> list[str]:
    """Without those behind links."""
    with os.scandir(path) as entries:
        return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))


def _topmost(mounts: list[str], path: str) -> list[str]:
    """The mount points below a folder, without those below another one."""
    found: list[str] = []
    for point in mounts:
        if point.startswith(f"{path}/") and not (found and point.startswith(f"{found[-1]}/")):
            found.append(point)
    return found


def _silent_ones(mounts: Mapping[str, Mount]) -> frozenset[str]:
    """The mount points whose file system, behind a network or a process, does not answer: to ask it is to wait."""
    with open("/proc/filesystems", encoding="ascii") as file:
        on_disks = {line.strip() for line in file if not line.startswith("nodev")}
    asking = {}
    for point, _, _, kind in mounts.values():
        if kind in _IN_MEMORY or kind in on_disks or f"/{point.split('/')[1]}" in _KERNEL_FOLDERS:
            continue
        child = os.fork()
        if child == 0:
            with suppress(OSError):
                os.stat(point)
                os.statvfs(point)
            os._exit(0)
        asking[child] = point
    give_up_at = time.monotonic() + _ANSWER_TIMEOUT_S
    while asking and time.monotonic() < give_up_at:
        for child in list(asking):
            if os.waitpid(child, os.WNOHANG)[0]:
                del asking[child]
        time.sleep(0.001)
    for child in asking:
        os.kill(child, signal.SIGKILL)  # not waited for: it may ask on
    return frozenset(asking.values())
