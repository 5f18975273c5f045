"""What a judge is kept from that neither a read-only file system nor its own user id keeps it from."""

import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from guarantee_email_agent.judging.judge import JudgePool
from guarantee_email_agent.judging.verdict import Verdict

if sys.platform == "linux":
    from guarantee_email_agent.isolation import seccomp
    from guarantee_email_agent.isolation import syscalls as kernel
else:
    pytest.skip("only Linux has this isolation", allow_module_level=True)

OK = 'return {"passed": True, "feedback": "fine"}'
LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)"

Ask = Callable[..., Verdict]

in_each_way = pytest.mark.parametrize(
    "pool",
    ["forked", "fresh", "without-namespaces", "plain-user", "plain-user-without-namespaces"],
    indirect=True,
    scope="module",
)
needs_landlock = pytest.mark.skipif(not kernel.landlock_version(), reason="this kernel has no Landlock")
needs_seccomp = pytest.mark.skipif(not seccomp.can_filter(), reason="no filter is known for this processor")


class TestWhatListens:
    """A read-only file system does not hold back who writes to a pipe, a terminal or a socket."""

    @pytest.fixture
    def listener(self, folder: Path) -> Iterator[socket.socket]:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "socket"))
            (folder / "socket").chmod(0o666)
            listener.listen()
            listener.setblocking(False)
            yield listener

    @needs_seccomp
    @pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_DGRAM"])
    def test_on_a_unix_socket(self, ask: Ask, listener: socket.socket, folder: Path, kind: str) -> None:
        connect = f"socket.socket(socket.AF_UNIX, socket.{kind}).connect(result['socket'])"
        error = ask(connect, OK, head="import socket", record={"socket": str(folder / "socket")}).error
        assert "a judge has no network unless its task asks for more" in str(error)
        with pytest.raises(BlockingIOError):
            listener.accept()

    @needs_landlock
    def test_on_a_named_pipe(self, ask: Ask, folder: Path) -> None:
        os.mkfifo(folder / "pipe")
        (folder / "pipe").chmod(0o666)
        reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        try:
            write = "os.write(os.open(result['pipe'], os.O_WRONLY | os.O_NONBLOCK), b'from a judge')"
            assert "Permission denied" in str(ask(write, OK, head="import os", record={"pipe": f"{folder}/pipe"}).error)
            assert os.read(reader, 100) == b""
        finally:
            os.close(reader)

    @needs_landlock
    def test_on_a_terminal(self, ask: Ask) -> None:
        ours, theirs = os.openpty()
        try:
            name = os.ttyname(theirs)
            os.chmod(name, 0o666)
            write = "open(result['terminal'], 'wb', 0).write(b'all passed')"
            error = str(ask(write, OK, record={"terminal": name}).error)
            assert "Permission denied" in error or "No such file" in error
            os.set_blocking(ours, False)
            with pytest.raises(BlockingIOError):
                os.read(ours, 100)
        finally:
            os.close(ours)
            os.close(theirs)

    def test_a_pair_of_sockets_is_no_network(self, ask: Ask) -> None:
        talk = "a, b = socket.socketpair(); a.send(b'hello'); assert b.recv(9) == b'hello'"
        assert ask(talk, "asyncio.run(asyncio.sleep(0))", OK, head="import asyncio, socket").verdict == "passed"


class TestTheKernel:
    @needs_seccomp
    def test_every_way_out_is_refused(self, ask: Ask) -> None:
        calls = (
            "libc.unshare(0x10000000)",  # a user namespace, in which one is root
            "libc.unshare(0x10000000 | 0x20000)",
            "libc.syscall(56 if os.uname().machine == 'x86_64' else 220, 0x10000000 | 17, 0, 0, 0, 0)",  # clone
            "libc.mount(b'tmpfs', os.environ['TMPDIR'].encode(), b'tmpfs', 0, b'')",
            "libc.mount(b'none', b'/', b'none', 32, b'')",  # writable again
            "libc.umount2(b'/proc', 2)",
            "libc.setns(os.open('/proc/self/ns/net', os.O_RDONLY), 0)",
            "libc.ptrace(16, os.getppid(), 0, 0)",
        )
        tries = (f"found.append(({call}, os.strerror(ctypes.get_errno())))" for call in calls)
        verdict = ask(
            "found = []", *tries, 'return {"passed": True, "feedback": "", "details": {"": found}}', head=LIBC
        )
        assert verdict.details[""] == [[-1, "Operation not permitted"]] * len(calls)

    @in_each_way
    def test_no_way_back_to_root(self, ask: Ask) -> None:
        verdict = ask(
            "for become in (os.setuid, os.setgid, os.seteuid):",
            "    try: become(0); raise SystemError",
            "    except OSError: pass",
            'return {"passed": 0 not in (os.getuid(), os.getgid()), "feedback": ""}',
            head="import os",
        )
        assert verdict.verdict == "passed"

    def test_limits_that_stay(self, ask: Ask) -> None:
        raise_them = (
            "for name in ('AS', 'DATA', 'FSIZE', 'NOFILE', 'NPROC', 'CPU'):",
            "    number = getattr(resource, 'RLIMIT_' + name)",
            "    try: resource.setrlimit(number, (resource.RLIM_INFINITY,) * 2); raise SystemError(name)",
            "    except (ValueError, OSError): pass",
        )
        assert ask(*raise_them, OK, head="import resource").verdict == "passed"

    @needs_seccomp
    def test_what_all_programs_have_together_is_not_used_up(self, ask: Ask) -> None:
        take = (
            "context, timer, timers = ctypes.c_ulong(), ctypes.c_int(), 0",
            "create = {'x86_64': 222, 'aarch64': 107}[os.uname().machine]",
            "while timers < 10_000 and libc.syscall(create, 1, None, ctypes.byref(timer)) == 0: timers += 1",
            "setup = {'x86_64': 206, 'aarch64': 0}[os.uname().machine]",
            "found = [libc.syscall(setup, 1, ctypes.byref(context)), libc.inotify_init(), libc.inotify_init1(0)]",
            'return {"passed": found == [-1] * 3 and 0 < timers < 10_000, "feedback": str((found, timers))}',
        )
        verdict = ask(*take, head=LIBC)
        assert verdict.verdict == "passed", verdict.feedback


@pytest.mark.parametrize("pool", ["forked", "plain-user"], indirect=True)
class TestItsNamespaces:
    """The filter of system calls forbids most of it once more, so it is looked at and not tried."""

    @pytest.fixture(autouse=True)
    def _needs_namespaces(self, pool: JudgePool) -> None:
        if not pool.isolation().namespaces:
            pytest.skip("needs namespaces, which this system does not let its users have")

    def test_there_is_no_network_in_its_own(self, ask: Ask) -> None:
        look = (
            "lines = open('/proc/net/dev').read().splitlines()[2:]",
            "names = {line.partition(':')[0].strip() for line in lines}",
            'return {"passed": names <= {"lo"}, "feedback": str(names)}',
        )
        verdict = ask(*look)
        assert verdict.verdict == "passed", verdict

    def test_every_file_system_but_memory_is_read_only(self, ask: Ask) -> None:
        look = (
            "mounts = [line.split() for line in open('/proc/self/mountinfo')]",
            "kinds = [(words[4], words[5].split(','), words[words.index('-') + 1]) for words in mounts]",
            "open_ = [(place, kind) for place, options, kind in kinds if 'ro' not in options]",
            "disks = [each for each in open_ if each[1] not in ('tmpfs', 'proc', 'devpts', 'mqueue')]",
            'return {"passed": not disks, "feedback": str(disks)}',
        )
        verdict = ask(*look)
        assert verdict.verdict == "passed", verdict


class TestFromOneJudgeToTheNext:
    """Every trace of a judge is gone before the next one: neither can it spoil anything, nor be told anything."""

    @in_each_way
    @pytest.mark.parametrize(
        ("leave", "find"),
        [
            ("os.setxattr(place, 'user.left', b'x')", "'user.left' in os.listxattr(place)"),
            ("os.mkdir(place + '/left')", "'left' in os.listdir(place)"),
            ("os.utime(place, (7, 7)); os.chmod(place, 0o711)", "7 == stat.st_mtime or stat.st_mode & 0o777 == 0o711"),
        ],
    )
    def test_nothing_is_left_in_a_folder(self, ask: Ask, leave: str, find: str) -> None:
        head = "import os\nPLACES = (os.environ['TMPDIR'], '/dev/shm', '/run', '/proc')"
        loop = "for place in PLACES:\n    stat = os.stat(place)\n"
        assert ask(f"{loop}    try: {leave}\n    except OSError: pass", OK, head=head).verdict == "passed"
        assert ask(f"{loop}    assert not ({find}), place", OK, head=head).error is None

    @in_each_way
    @needs_seccomp
    def test_nothing_is_left_in_the_kernel(self, ask: Ask) -> None:
        # add_key to the user's own ring of keys (-4), and shared memory of System V.
        leave = (
            "libc.syscall(248 if os.uname().machine == 'x86_64' else 217, b'user', b'left', b'x', 1, -4)",
            "libc.shmget(4711, 4096, 0o1666)",
            "libc.semget(4711, 1, 0o1666)",
            "libc.msgget(4711, 0o1666)",
            "libc.mq_open(b'/left', 0o100 | 2, 0o600, None)",
        )
        assert ask(*leave, OK, head=LIBC).verdict == "passed"
        look = (
            "find_key = 250 if os.uname().machine == 'x86_64' else 219",
            "found = [libc.syscall(find_key, 10, -4, b'user', b'left', 0)]",
            "found += [libc.shmget(4711, 0, 0), libc.semget(4711, 0, 0), libc.msgget(4711, 0)]",
            "found += [libc.mq_open(b'/left', 2)]",
            'return {"passed": found == [-1] * 5, "feedback": str(found)}',
        )
        verdict = ask(*look, head=LIBC)
        assert verdict.verdict == "passed", verdict.feedback
