"""What a hostile agent tries: nothing but its own sandbox is affected, and that one still answers where it can."""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from agent_sandbox.core.api_error import ApiError
from running_sandbox import SMALL, Box, MakeBox, refused

from guarantee_email_agent.sandbox import SandboxSettings
from guarantee_email_agent.utils.errors import TaskError

pytestmark = pytest.mark.slow

HOG = "import sys, time; hog = [bytearray(b'1' * (1 << 20)) for _ in range(int(sys.argv[1]))]; time.sleep(3)"


def _alive(box: Box) -> bool:
    return box.output("echo alive").endswith("alive")


def test_nothing_of_the_host_can_be_written(box: Box, tmp_path: Path) -> None:
    for path in ("/usr/x", "/usr/bin/x", f"{tmp_path}/x", "/proc/sys/kernel/hostname", "/dev/x"):
        assert box.shell(f"echo x > {path}").exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_the_hosts_files_and_users_are_not_there(box: Box, tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text("the answer is 42")
    for path in (tmp_path / "judge.py", "/etc/shadow"):
        assert box.shell(f"cat {path}").exit_code == 1
    assert len(box.output("cat /etc/passwd").splitlines()) == 2


def test_a_link_leads_no_further_than_the_sandbox(box: Box, tmp_path: Path) -> None:
    target = tmp_path / "host.txt"
    target.write_text("untouched")
    box.output(f"ln -sf {target} /tmp/out; ln -sf /proc/1/root/etc /tmp/root")
    with pytest.raises(ApiError):
        box.read("/tmp/out")
    # What is written goes to the place of that name inside, if there is one.
    with suppress(ApiError):
        box.write("/tmp/out", "changed")
    assert target.read_text() == "untouched"


def test_an_agent_has_no_rights_and_gets_none(box: Box) -> None:
    status = box.output("cat /proc/self/status")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(fields["CapEff"], 16) == 0
    assert fields["NoNewPrivs"] == "1"
    assert "0" not in fields["Uid"].split("\t")
    assert box.shell("unshare --user true").exit_code != 0
    assert box.shell("mount -t tmpfs none /tmp").exit_code != 0


def test_devices_and_set_user_id_programs_give_nothing(box: Box) -> None:
    for command in ("mknod /tmp/disk b 8 0", "mknod /tmp/memory c 1 1", "echo x | su -c 'id -u'"):
        assert box.shell(command).exit_code != 0
    command = "cp $(which id) /tmp/id; chmod 6755 /tmp/id; /tmp/id -u; chown root /tmp/id 2>&1"
    assert box.output(command).startswith(box.output("id -u"))


def test_no_network_and_no_way_around_it(box: Box) -> None:
    assert box.output("ls /sys/class/net 2>/dev/null; tail -n +3 /proc/net/dev | cut -d: -f1").strip() == "lo"
    for family, kind in ((40, "STREAM"), (17, "DGRAM"), (38, "DGRAM")):  # AF_VSOCK, AF_PACKET, AF_ALG
        opened = box.python(f"import socket as s\ntry: s.socket({family}, s.SOCK_{kind})\nexcept OSError: print('no')")
        assert (opened.stdout, opened.stderr) == ("no", "")


def test_the_process_that_serves_it_cannot_be_touched(box: Box) -> None:
    if any("ctypes" in limitation for limitation in box.sandbox.limitations):
        pytest.skip("this Python has no ctypes, which it takes")
    box.output("kill -9 1; kill -STOP 1; kill -9 -1")
    assert box.shell("cat /proc/1/environ").exit_code == 1
    assert box.shell("echo x > /proc/1/mem").exit_code == 1
    assert box.shell("ls /proc/1/fd/").exit_code != 0
    assert _alive(box)


def test_a_fork_bomb_hits_its_limit(small_box: Box) -> None:
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    assert small_box.python(bomb, timeout=1).status == "timeout"
    assert small_box.read("/etc/passwd")
    assert _alive(small_box)


SHARED = "import mmap\nshared = mmap.mmap(-1, 4 << 30)\nfor at in range(0, 4 << 30, 4096): shared[at] = 1"


@pytest.mark.parametrize(
    ("program", "exit_code", "message"),
    [("bytearray(10 << 30)", 1, "MemoryError"), (SHARED, 137, "")],
    ids=["its own", "shared"],
)
def test_one_process_cannot_take_all_memory(small_box: Box, program: str, exit_code: int, message: str) -> None:
    result = small_box.python(program)
    assert result.exit_code == exit_code
    assert message in result.stderr
    assert _alive(small_box)


def test_many_processes_cannot_take_all_memory(small_box: Box) -> None:
    small_box.write("/tmp/hog.py", HOG)
    result = small_box.shell("for i in 1 2 3 4; do python3 /tmp/hog.py 100 & done; wait")
    assert "A process was ended: the sandbox's memory of 256 MiB was used up" in result.output
    assert _alive(small_box)


HIDDEN_MEMORY = {
    "another process made it": """
import mmap, os, time
parts = [mmap.mmap(-1, 100 << 20) for _ in range(10)]
if os.fork() == 0:
    for part in parts:
        for at in range(0, 100 << 20, 4096): part[at] = 1
        part.close()
    os._exit(0)
if os.wait()[1] == 9: os.kill(os.getpid(), 9)  # ended in time, before it hid anything
time.sleep(20)
""",
    "in segments": """
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
libc.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
segments = [libc.shmget(0, 100 << 20, 0o600) for _ in range(10)]
places = [libc.shmat(segment, None, 0) for segment in segments]
if os.fork() == 0:
    for place in places: ctypes.memset(ctypes.c_void_p(place), 1, 100 << 20)
    os._exit(0)
if os.wait()[1] == 9: os.kill(os.getpid(), 9)  # ended in time, before it hid anything
time.sleep(20)
""",
    "in the kernel's tables": """
import ctypes, time
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
size, step = 500 << 30, 2 << 20
place = libc.mmap(None, ctypes.c_size_t(size), 1, 0x4022, -1, ctypes.c_long(0))
for at in range(place, place + size, step): ctypes.c_ubyte.from_address(at).value
time.sleep(20)
""",
    "in connections": """
import socket, time
listener, kept = socket.create_server(("127.0.0.1", 0)), []
for _ in range(300):
    ends = socket.create_connection(listener.getsockname()), listener.accept()[0]
    kept.append(ends)
    for end in ends: end.setblocking(False)
    for _ in range(200):  # a buffer grows while it is read
        try: ends[0].send(b"x" * 262144)
        except BlockingIOError: pass
        try: ends[1].recv(1 << 20)
        except BlockingIOError: pass
    try:
        while True: ends[0].send(b"x" * 262144)
    except BlockingIOError: pass
time.sleep(20)
""",
    "in many sockets": """
import os, socket, time
for _ in range(9):
    if os.fork() == 0:
        kept = []
        try:
            while True: kept.append(socket.socketpair())
        except OSError: time.sleep(10)
time.sleep(10)
""",
}


@pytest.mark.parametrize("program", HIDDEN_MEMORY.values(), ids=HIDDEN_MEMORY)
def test_memory_that_shows_nowhere_counts(small_box: Box, program: str) -> None:
    result = small_box.python(program, timeout=15)
    assert (result.exit_code, result.status) == (137, "error")


WITHOUT_FIRST_THREAD = """
import ctypes, os, threading, time
def fill():
    while " Z " not in open("/proc/self/stat").read(): time.sleep(0.01)
    held = b"x" * (100 << 20)
    time.sleep(10)
for _ in range(4):
    if os.fork() == 0:
        threading.Thread(target=fill).start()
        ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_memory_of_processes_whose_first_thread_has_ended_counts(small_box: Box) -> None:
    assert small_box.python(WITHOUT_FIRST_THREAD, timeout=15).stdout == "-9"


PIPES = """
import os, time
for _ in range(36):
    if os.fork() == 0:
        try:
            kept = []
            while True:
                kept.append(os.pipe())
                os.set_blocking(kept[-1][1], False)
                try:
                    while True: os.write(kept[-1][1], b"x" * 4096)
                except BlockingIOError: pass
        except OSError:
            time.sleep(10)
        os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_pipes_count(make_box: MakeBox) -> None:
    """36 processes with 500 each, of 8 KiB once the first ones have filled the kernel's usual share."""
    box = make_box(SandboxSettings(replace(SMALL, memory_bytes=160 << 20)))
    assert box.python(PIPES, timeout=15).stdout == "-9"


BUFFERS = """
import fcntl, os, socket
queued, kept = 0, []
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    for _ in range(100):
        ends = socket.socketpair(socket.AF_UNIX, kind)
        ends[0].setblocking(False)
        ends[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
        try:
            while True: queued += ends[0].send(b"x" * 100_000)
        except OSError: kept.append(ends[1])  # the sender is closed, and what it sent stays
print(queued < 200 * 416 << 10)
try: fcntl.fcntl(os.pipe()[1], fcntl.F_SETPIPE_SZ, 1 << 20)
except PermissionError as error: print(error.strerror)
"""


def test_no_buffer_is_larger_than_usual(box: Box) -> None:
    assert box.python(BUFFERS).stdout == "True\nOperation not permitted"


OTHERS = """
import ctypes, os, resource
libc, ioprio_set = ctypes.CDLL(None), {"x86_64": 251, "aarch64": 30}[os.uname().machine]
def refused(call, *arguments):
    try: return call(*arguments) == -1
    except PermissionError: return True
print(*(
    refused(os.setpriority, os.PRIO_PROCESS, 1, 19), refused(os.setpriority, os.PRIO_PGRP, 1, 19),
    refused(os.setpriority, os.PRIO_USER, 0, 19), refused(os.sched_setaffinity, 1, {0}),
    refused(os.sched_setscheduler, 1, os.SCHED_IDLE, os.sched_param(0)),
    refused(os.sched_setparam, 1, os.sched_param(0)),
    refused(resource.prlimit, 1, resource.RLIMIT_NOFILE, (3, 3)), refused(libc.syscall, ioprio_set, 1, 1, 3 << 13),
    refused(libc.syscall, ioprio_set, 3, 0, 3 << 13),
))
os.setpriority(os.PRIO_PROCESS, 0, 5)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.setpriority(os.PRIO_PROCESS, os.getpid(), 6)
resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, (64, 64))
print("its own")
"""


def test_where_memory_runs_out_the_kernel_ends_the_agents_processes_first(box: Box) -> None:
    assert box.output("cat /proc/self/oom_score_adj") == "1000"
    assert box.output("cat /proc/1/oom_score_adj") == Path("/proc/self/oom_score_adj").read_text().strip()


def test_the_process_that_counts_memory_cannot_be_slowed(box: Box) -> None:
    result = box.python(OTHERS)
    assert (result.stdout, result.stderr) == (" ".join(["True"] * 9) + "\nits own", "")


SHARED_TABLES = """
import ctypes, os
libc = ctypes.CDLL(None)
create, setup = {"x86_64": (222, 206), "aarch64": (107, 0)}[os.uname().machine]
context, timer, timers = ctypes.c_ulong(), ctypes.c_int(), 0
while timers < 10_000 and libc.syscall(create, 1, None, ctypes.byref(timer)) == 0: timers += 1
print(timers, libc.syscall(setup, 1, ctypes.byref(context)), libc.inotify_init(), libc.inotify_init1(0))
print(libc.mq_open(b"/queue", 0o100 | 2, 0o600, None))
"""


def test_what_all_programs_have_together_is_not_used_up(small_box: Box) -> None:
    assert small_box.python(SHARED_TABLES).stdout == "40 -1 -1 -1\n-1"


SEMAPHORES = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.semget(0, 32000, 0o600), os.strerror(ctypes.get_errno()), libc.semget(0, 20, 0o600) >= 0)
"""
MEMORY_FILE = "import os\ntry:\n    os.memfd_create('x')\nexcept OSError as error:\n    print(error.strerror)"


@pytest.mark.parametrize(
    ("code", "output"),
    [(SEMAPHORES, "-1 No space left on device True"), (MEMORY_FILE, "Function not implemented")],
    ids=["in the kernel", "without a process"],
)
def test_memory_that_no_process_has_is_refused(box: Box, code: str, output: str) -> None:
    assert box.python(code).stdout == output


def test_a_full_disk_is_an_error_that_passes(small_box: Box) -> None:
    assert "No space left on device" in small_box.output("head -c 1G /dev/zero > /tmp/big")
    with refused(507):
        small_box.write("/tmp/more", "x" * 100_000)
    assert small_box.read("/etc/passwd")
    assert small_box.output("rm /tmp/big; echo x > /tmp/more && cat /tmp/more") == "x"


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_more_files_than_allowed_end_the_sandbox(small_box: Box, folder: str) -> None:
    command = f"python3 -c \"for n in range(9000): open(f'{folder}/{{n}}', 'w').close()\"; sleep 5"
    with pytest.raises(TaskError, match="the sandbox held more than 2000 files"):
        small_box.post("/v1/shell/exec", command=command)


def test_no_descriptor_of_ours_gets_inside(box: Box) -> None:
    assert box.output("ls /proc/self/fd").split() == ["0", "1", "2", "3"]  # the last is that of the folder
    program = "import os; print(os.listdir('/proc/self/fd'))"
    assert box.python(program).stdout == "['0', '1', '2', '3']"


def test_a_sandbox_runs_as_a_user_of_its_own(box: Box, make_box: MakeBox) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give it one")
    assert len({"0", box.output("id -u"), make_box().output("id -u")}) == 3
