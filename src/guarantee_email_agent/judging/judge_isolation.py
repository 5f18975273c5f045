"""How far a judge is kept from everything else on this machine: two steps, the server's once and each judge's own.

Linux namespaces where they can be had: as root, or as a user where the system lets users have them. Then everything is
read-only but a temporary folder in memory, there is no network, no other process is visible, and all that a judge
started ends with one signal. With them or without, Landlock (no changes outside the temporary folder) and seccomp (no
sockets, no namespaces of its own) where the kernel has them; as root, a user id of its own; and everywhere the resource
limits. `Isolation` has which of it holds.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from guarantee_email_agent.judging.judge_protocol import LINUX, MIB, Isolation, JudgeLimits
from guarantee_email_agent.judging.resource_usage import remove_tree, threads_of_user

if LINUX:
    from guarantee_email_agent.isolation import seccomp
    from guarantee_email_agent.isolation import syscalls as kernel

_SINKS = ("/dev/null", "/dev/full", "/dev/tty")  # not /dev/zero, which can be made into memory of no process
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the kernel's name for it


class NamespacesUnavailableError(Exception):
    """This machine does not let us have namespaces; the message says which step it refused."""


@dataclass(slots=True)
class JudgeEnvironment:
    """What the server puts each judge into that it forks.

    temp_dir: the only folder that judges write to. terminals: where they open ones of their own.
    """

    isolation: Isolation
    network: bool
    temp_dir: str
    user: int | None
    terminals: tuple[str, ...] = ()
    _temp_folders: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    _shared_memory: tuple[str, ...] = ()
    _capabilities: tuple[int, ...] = ()
    _filters: tuple[bytes, ...] = ()
    _counted_at: float = 0.0
    _other_threads: int = 0

    def __post_init__(self) -> None:
        """What is the same for each judge is found out before there is one."""
        needed = (self.temp_dir, sys.prefix, sys.base_prefix, sys.executable, *sys.path)
        if os.path.isdir(_SHARED_MEMORY) and not any(map(_is_shared_memory, needed)):
            self._shared_memory = (_SHARED_MEMORY,)
        if LINUX and self.user is not None:
            self._capabilities = _capabilities_to_read()
        if LINUX and seccomp.can_filter():
            self._filters = seccomp.judge_filters(network=self.network)

    def prepare_temp_dir(self, limits: JudgeLimits, judge: str) -> None:
        """Have the temporary folder new: this judge's size, and nothing of an earlier one, not even permissions."""
        if not self.isolation.namespaces:
            if not self._temp_folders or not os.path.isdir(self.temp_dir):  # a cleaner of /tmp may have removed it
                os.makedirs(self.temp_dir, 0o700, exist_ok=True)
                if self.user is not None:
                    os.chown(self.temp_dir, self.user, self.user)
                self._temp_folders = {self.temp_dir: ("", _fingerprint(self.temp_dir))}
            return
        owner = f",uid={self.user},gid={self.user}" if self.user is not None else ""
        options = f"mode=0700,size={limits.temp_mb * MIB},nr_inodes={limits.temp_mb * 256}{owner}"
        folders = (self.temp_dir,) if _is_shared_memory(judge) else (self.temp_dir, *self._shared_memory)
        if self._temp_folders == {folder: (options, _fingerprint(folder)) for folder in folders}:
            return  # untouched
        for folder in reversed(self._temp_folders):
            kernel.unmount(folder)
        self._temp_folders = {}
        for folder in folders:
            kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
            self._temp_folders[folder] = (options, _fingerprint(folder))

    def clear_temp_dir(self) -> None:
        """Without namespaces, undo what a judge did to its folder, within the time of that judge."""
        if not self.isolation.namespaces and self._temp_folders != {self.temp_dir: ("", _fingerprint(self.temp_dir))}:
            self.remove_temp_dir()

    def remove_temp_dir(self) -> None:
        if not self.isolation.namespaces:
            with suppress(FileNotFoundError):
                remove_tree(self.temp_dir)
            self._temp_folders = {}

    def confine_judge(self, limits: JudgeLimits, timeout_s: float) -> None:
        """In the judge's process, as its last privileged act. Raises OSError where what must hold does not."""
        os.setsid()
        if LINUX:
            kernel.set_dumpable(True)  # else our own entries in /proc belong to root
            with suppress(OSError):
                _write_file("/proc/self/oom_score_adj", "1000")
            if self.isolation.namespaces and not self._filters:
                kernel.unshare(kernel.CLONE_NEWIPC)
        self._limit(limits, timeout_s)
        if (user := self.user) is not None:
            kernel.keep_capabilities_over_setuid()
            os.fchown(1, user, user)  # else /dev/stdout is another user's pipe
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        if LINUX:
            kernel.set_capabilities(self._capabilities)
            kernel.no_new_privileges()
            kernel.set_dumpable(True)
            kernel.die_with_parent()
            if kernel.landlock_version():
                # With namespaces, too: in a read-only file system one can still write to pipes and terminals.
                kernel.allow_changes_only_in(self._temp_folders, filter(os.path.exists, (*_SINKS, *self.terminals)))
            kernel.refuse_system_calls(self._filters)

    def _limit(self, limits: JudgeLimits, timeout_s: float) -> None:
        cpu_s = limits.cpu_s or timeout_s * (os.cpu_count() or 1) + 1
        most = {
            # Reserved address space is no memory: threads and libraries reserve far more than they use.
            "AS": 4 * limits.memory_mb * MIB,
            "DATA": limits.memory_mb * MIB,
            "FSIZE": limits.file_mb * MIB,
            "NOFILE": limits.open_files,
            "CPU": int(-(-cpu_s // 1)),
            "CORE": 0,
        }
        if LINUX:
            most["NPROC"] = limits.processes + self._processes_of_others()
        for name, value in most.items():
            number = getattr(resource, f"RLIMIT_{name}")
            allowed = resource.getrlimit(number)[1]
            if allowed == resource.RLIM_INFINITY:
                allowed = sys.maxsize
            # One second more for the hard limit: at the soft one the process ends with a signal that tells the cause.
            soft, hard = min(value, allowed), min(value + (name == "CPU"), allowed)
            try:
                resource.setrlimit(number, (soft, hard))
            except (OSError, ValueError):
                if LINUX:
                    raise

    def _processes_of_others(self) -> int:
        """Where the limit counts all processes of our user, those that are there already."""
        if self.isolation.namespaces or self.user is not None:
            return 0
        now = time.monotonic()
        if not self._counted_at or now - self._counted_at > 5:
            self._counted_at, self._other_threads = now, threads_of_user(os.getuid())
        return self._other_threads


def enter_namespaces(network: bool, temp_dir: str) -> JudgeEnvironment:
    """Go on in a child process that is process 1 of new namespaces; ours waits for it and then ends as it did.

    Raises NamespacesUnavailableError, in whichever of the two, where the machine does not allow it.
    """
    user = _user_for_judges()
    own_user, own_group = os.geteuid(), os.getegid()
    flags = kernel.CLONE_NEWPID | (kernel.CLONE_NEWUSER if user is None else 0)
    _require("new processes", kernel.unshare, flags)
    if user is None:
        _require("setgroups", _write_file, "/proc/self/setgroups", "deny")
        _require("gid_map", _write_file, "/proc/self/gid_map", f"{own_group} {own_group} 1")
        _require("uid_map", _write_file, "/proc/self/uid_map", f"{own_user} {own_user} 1")
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        os.rmdir(temp_dir)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    kernel.die_with_parent()
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | (0 if network else kernel.CLONE_NEWNET)
    _require("own mounts and network", kernel.unshare, flags)
    _require("private mounts", kernel.mount, "none", "/", "none", kernel.MS_REC | kernel.MS_PRIVATE)
    _require("read-only mounts", kernel.make_all_mounts_read_only)
    safe = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    _require("own /proc", kernel.mount, "proc", "/proc", "proc", safe)
    own_terminals: tuple[str, ...] = ()
    with suppress(OSError):
        kernel.mount("devpts", "/dev/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, "newinstance,ptmxmode=0666")
        own_terminals = ("/dev/pts", "/dev/ptmx")
    isolation = Isolation(
        namespaces=True, network_blocked=True, files_protected=True, processes_protected=True, processes_limited=True
    )
    return JudgeEnvironment(isolation, network, temp_dir, user, own_terminals)


def without_namespaces(network: bool, temp_dir: str, why: str) -> JudgeEnvironment:
    """What can be had without namespaces; `why` there are none."""
    user = _user_for_judges()
    if not LINUX:
        return JudgeEnvironment(Isolation(why=why), network, temp_dir, user)
    kernel.adopt_orphans()
    kernel.set_dumpable(False)
    landlock = kernel.landlock_version()
    isolation = Isolation(
        network_blocked=seccomp.can_filter(),
        files_protected=landlock > 0,
        processes_protected=user is not None or landlock >= kernel.LANDLOCK_KEEPS_PROCESSES,
        processes_limited=user is not None or os.geteuid() != 0,
        why=why,
    )
    return JudgeEnvironment(isolation, network, temp_dir, user)


def _capabilities_to_read() -> tuple[int, ...]:
    """The capabilities for it: as root, the judge's files and Python itself may be readable for root alone."""
    has = kernel.capabilities()
    if kernel.CAP_DAC_READ_SEARCH in has:
        return (kernel.CAP_DAC_READ_SEARCH,)
    # A container's root may lack it. The other one is for writing, too, which Landlock then forbids.
    landlock_holds = kernel.landlock_version() >= kernel.LANDLOCK_KEEPS_FILES_FROM_ALL
    return (kernel.CAP_DAC_OVERRIDE,) if kernel.CAP_DAC_OVERRIDE in has and landlock_holds else ()


def _is_shared_memory(path: str) -> bool:
    """Whether a file would be out of sight behind a new folder of shared memory."""
    return os.path.realpath(path).startswith(f"{_SHARED_MEMORY}/")


def _fingerprint(folder: str) -> tuple[int, ...]:
    """What changes where a folder is so much as listed."""
    now = os.stat(folder)
    times = (now.st_atime_ns, now.st_mtime_ns, now.st_ctime_ns)
    attributes = os.listxattr(folder) if LINUX else ()
    return (now.st_dev, now.st_mode, now.st_nlink, now.st_size, *times, len(attributes))


def _require(step: str, call: Callable[..., object], *arguments: object) -> None:
    try:
        call(*arguments)
    except OSError as error:
        raise NamespacesUnavailableError(f"{step}: {error.strerror or error}") from None


def _write_file(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _user_for_judges() -> int | None:
    """As root: an unused user id, another one for each server, so that their processes are counted apart."""
    if not LINUX or os.geteuid() != 0 or not {kernel.CAP_SETUID, kernel.CAP_SETGID} <= kernel.capabilities():
        return None
    with open("/proc/self/uid_map", encoding="ascii") as file:
        mapped = [(int(inside), int(count)) for inside, _, count in (line.split() for line in file)]
    users = (2_000_000_000 + os.getpid(), 60_000 - os.getpid() % 20_000)
    return next((user for user in users if any(first <= user < first + count for first, count in mapped)), None)
