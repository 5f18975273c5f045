"""How far a judge is kept from everything else on this machine: the server's step, its supervisor's, and its own.

Linux namespaces where they can be had: as root, or as a user where the system lets users have them. Then everything is
read-only but a temporary folder in memory, there is no network, no process of anybody else is visible, and all that a
judge started ends with one signal. Each judge has namespaces, file systems and terminals of its own, so that nothing of
it is left for the next. With them or without, Landlock (no changes outside the temporary folder) and seccomp (no
sockets, no namespaces of its own, no other process's limits) where the kernel has them; as root, a user id of its own;
and everywhere the resource limits. `Isolation` has which of it holds.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from guarantee_email_agent.isolation import seccomp
from guarantee_email_agent.isolation import syscalls as kernel
from guarantee_email_agent.isolation.host_view import HostView
from guarantee_email_agent.isolation.processes import (
    FIRST_JUDGE_USER,
    FIRST_JUDGE_USER_OF_FEW,
    end_children,
    kill_descendants,
)
from guarantee_email_agent.judging.judge_protocol import LINUX, MIB, Isolation, JudgeLimits
from guarantee_email_agent.judging.resource_usage import remove_tree, threads_of_user

_SINKS: Final = ("/dev/null", "/dev/full", "/dev/tty")  # not /dev/zero, which can be made into memory of no process
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the kernel's name for it
_SAFE: Final = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
_KILL_TIMEOUT_S: Final = 2.0


class NamespacesUnavailableError(Exception):
    """This machine does not let us have namespaces; the message says which step it refused."""


@dataclass(slots=True)
class JudgeEnvironment:
    """What each judge of a server is put into: by the server, then by its supervisor, last by its own process.

    network: whether judges have the host's. folder: on the host, where their temporary folders are. temp_dir: that of
    the judge that was entered for.
    """

    isolation: Isolation
    network: bool
    folder: str
    user: int | None
    view: HostView | None = None
    temp_dir: str = ""
    _own_processes: int | None = None
    _writable: tuple[str, ...] = ()
    _terminals: tuple[str, ...] = ()
    _shared_memory: bool = False
    _capabilities: tuple[int, ...] = ()
    _filters: Mapping[seccomp.Sockets, bytes | None] = field(default_factory=dict)
    _other_threads: int = 0

    def __post_init__(self) -> None:
        """What is the same for each judge is found out before there is one."""
        needed = (self.folder, sys.prefix, sys.base_prefix, sys.executable, *sys.path)
        self._shared_memory = os.path.isdir(_SHARED_MEMORY) and not any(map(_is_shared_memory, needed))
        if LINUX and self.user is not None:
            self._capabilities = _capabilities_to_read()
        if LINUX and seccomp.can_filter():
            kinds: tuple[seccomp.Sockets, ...] = ("all",) if self.network else ("none", "internet")
            self._filters = {kind: seccomp.filter_program(judge_sockets=kind) for kind in kinds}

    # The server, around each judge.

    def prepare_supervisor(self) -> None:
        """The next child is to be process 1 of a namespace of its own."""
        if self.view is not None:
            self.view.refresh()
        if self._own_processes is not None:
            kernel.enter_namespace(self._own_processes)
            kernel.unshare(kernel.CLONE_NEWPID)
            return
        if LINUX and self.user is None:
            self._other_threads = threads_of_user(os.getuid())  # which the limit of processes counts, too

    def clean_up(self) -> None:
        """Without namespaces, end what a supervisor that was killed has left, and remove the folder of its judge."""
        if self.isolation.namespaces:
            return
        self.end_processes()
        with suppress(FileNotFoundError):
            self._open_folder()
            for name in os.listdir(self.folder):
                remove_tree(os.path.join(self.folder, name))

    # The supervisor.

    def enter(
        self, limits: JudgeLimits, judge: str, sandbox_port: int | None = None, *, listen: bool = False
    ) -> socket.socket | None:
        """Have everything new for one judge. With `listen`, the socket at its own 127.0.0.1:`sandbox_port`.

        Raises OSError.
        """
        owner = f",uid={self.user},gid={self.user}" if self.user is not None else ""
        if not self.isolation.namespaces:
            if LINUX:
                kernel.adopt_orphans()
            self._make_temp_dir()
            return None
        loopback = sandbox_port is not None and not self.network
        kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | (kernel.CLONE_NEWNET if loopback else 0))
        kernel.mount("proc", "/proc", "proc", _SAFE)
        options = f"mode=0700,size={limits.temp_mb * MIB},nr_inodes={limits.temp_mb * 256}{owner}"
        folders = [self.folder]
        if self._shared_memory and not _is_shared_memory(judge):
            folders.append(_SHARED_MEMORY)
        for folder in folders:
            kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
        try:
            terminals = f"newinstance,ptmxmode=0666,max={limits.processes}"
            kernel.mount("devpts", "/dev/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, terminals)
            self._terminals = ("/dev/pts", "/dev/ptmx")
        except OSError:
            with suppress(OSError):
                kernel.mount("tmpfs", "/dev/pts", "tmpfs", _SAFE | kernel.MS_RDONLY)
        self.temp_dir, self._writable = self.folder, tuple(folders)
        return _listen_on_loopback(sandbox_port, listen) if loopback else None

    def leave(self) -> None:
        """Without namespaces, remove the temporary folder."""
        if not self.isolation.namespaces:
            with suppress(FileNotFoundError):
                self._open_folder()
                remove_tree(self.temp_dir)

    def end_processes(self) -> bool:
        """Kill all that a judge left behind; False where something of it still runs after some seconds."""
        if not self.isolation.namespaces:
            kill = kill_descendants if self.user is None else partial(_kill_processes_of, self.user)
            return end_children(_KILL_TIMEOUT_S, kill)
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # as process 1: every process but us, in one step that no fork can outrun
        give_up_at = time.monotonic() + _KILL_TIMEOUT_S
        with suppress(ChildProcessError):
            while time.monotonic() < give_up_at:
                os.waitpid(-1, 0)
            return False
        return True

    def _make_temp_dir(self) -> None:
        os.makedirs(self.folder, 0o711, exist_ok=True)  # a cleaner of /tmp may have removed it
        self._open_folder()
        self.temp_dir = os.path.join(self.folder, os.urandom(4).hex())
        os.mkdir(self.temp_dir, 0o700)
        if self.user is not None:
            os.chown(self.temp_dir, self.user, self.user)
        self._writable = (self.temp_dir,)

    def _open_folder(self) -> None:
        """A judge that is our own user may have closed it; one that is another user passes through it."""
        os.chmod(self.folder, 0o711)  # noqa: S103

    # The judge.

    def confine_judge(self, limits: JudgeLimits, timeout_s: float, *, sandbox: bool) -> None:
        """In the judge's process, as its last privileged act. Raises OSError where what must hold does not.

        sandbox: whether it may look into one.
        """
        os.setsid()
        if LINUX:
            kernel.set_dumpable(True)  # else our own entries in /proc belong to root
            with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
                file.write("1000")
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
                kernel.allow_changes_only_in(self._writable, filter(os.path.exists, (*_SINKS, *self._terminals)))
            program = self._filters.get("all" if self.network else "internet" if sandbox else "none")
            if program is not None:
                kernel.refuse_system_calls(program)

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
            # All processes of a user have their timers and waiting signals together.
            most["NPROC"] = most["SIGPENDING"] = limits.processes + self._other_threads
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


def enter_namespaces(network: bool, folder: str) -> JudgeEnvironment:
    """Go on in a child process that is process 1 of new namespaces; ours waits for it and then ends as it did.

    Raises NamespacesUnavailableError, in whichever process, where the machine does not allow it.
    """
    user = _user_for_judges()
    own_user, own_group = os.geteuid(), os.getegid()
    flags = kernel.CLONE_NEWPID | (kernel.CLONE_NEWUSER if user is None else 0)
    _require("own processes", kernel.unshare, flags)
    if user is None:
        _require("own user", kernel.map_only_user, own_user, own_group)
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        os.rmdir(folder)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    kernel.die_with_parent()
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | (0 if network else kernel.CLONE_NEWNET)
    _require("own mounts and network", kernel.unshare, flags)
    _require("private mounts", kernel.mount, "none", "/", "none", kernel.MS_REC | kernel.MS_PRIVATE)
    try:
        view = HostView.enter()
    except OSError as error:
        raise NamespacesUnavailableError(f"read-only mounts: {error.strerror or error}") from None
    _require("own /proc", kernel.mount, "proc", "/proc", "proc", _SAFE)
    isolation = Isolation(
        namespaces=True,
        network_blocked=True,
        files_protected=True,
        attributes_protected=True,
        processes_protected=True,
        processes_limited=True,
        locks_separate=not view.shared,
    )
    own_processes = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    environment = JudgeEnvironment(isolation, network, folder, user, view, _own_processes=own_processes)
    _try_out(environment)
    kernel.set_dumpable(False)
    return environment


def _try_out(environment: JudgeEnvironment) -> None:
    """A machine may allow one level of namespaces, and not the next."""
    _require("own processes for each judge", environment.prepare_supervisor)
    child = os.fork()
    if child == 0:
        _require("own mounts for each judge", environment.enter, JudgeLimits(), "/")
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        os._exit(1)  # it has said why


def without_namespaces(network: bool, folder: str, why: str) -> JudgeEnvironment:
    """What can be had without namespaces; `why` there are none."""
    user = _user_for_judges()
    if not LINUX:
        return JudgeEnvironment(Isolation(why=why), network, folder, user)
    kernel.adopt_orphans()
    kernel.set_dumpable(False)
    landlock = kernel.landlock_version()
    isolation = Isolation(
        network_blocked=seccomp.can_filter(),
        files_protected=landlock > 0,
        attributes_protected=user is not None,
        processes_protected=seccomp.can_filter() and (user is not None or landlock >= kernel.LANDLOCK_KEEPS_PROCESSES),
        processes_limited=user is not None or os.geteuid() != 0,
        why=why,
    )
    return JudgeEnvironment(isolation, network, folder, user)


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


def _listen_on_loopback(port: int | None, listen: bool) -> socket.socket | None:
    kernel.start_loopback()
    return socket.create_server(("127.0.0.1", port), backlog=128) if port is not None and listen else None


def _kill_processes_of(user: int) -> None:
    """All processes of a user that only judges have, in one step that no fork can outrun."""
    killer = os.fork()
    if killer == 0:
        try:
            os.setresuid(user, user, user)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(killer, 0)


def _require(step: str, call: Callable[..., object], *arguments: object) -> None:
    try:
        call(*arguments)
    except OSError as error:
        raise NamespacesUnavailableError(f"{step}: {error.strerror or error}") from None


def _user_for_judges() -> int | None:
    """As root: an unused user id, another one for each server, so that their processes are counted apart."""
    if not LINUX or os.geteuid() != 0 or not {kernel.CAP_SETUID, kernel.CAP_SETGID} <= kernel.capabilities():
        return None
    with open("/proc/self/uid_map", encoding="ascii") as file:
        mapped = [(int(inside), int(count)) for inside, _, count in (line.split() for line in file)]
    users = (FIRST_JUDGE_USER + os.getpid(), FIRST_JUDGE_USER_OF_FEW + os.getpid() % 20_000)
    return next((user for user in users if any(first <= user < first + count for first, count in mapped)), None)
