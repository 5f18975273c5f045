"""What a process in the view sees of the host, and what the host notices of it."""

import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest

if sys.platform != "linux":
    pytest.skip("only Linux has such a view", allow_module_level=True)

# Enters the view, says how that went, and then evaluates each line that it gets.
PROGRAM = """if True:
    import fcntl, os, sys
    from guarantee_email_agent.isolation import host_view
    from guarantee_email_agent.isolation import syscalls as kernel

    def private_mounts():
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount("none", "/", "none", kernel.MS_REC | kernel.MS_PRIVATE)

    def evaluate(line):
        try:
            return repr(eval(line))
        except Exception as error:
            return repr(type(error).__name__)

    new_user, before = sys.argv[1:]
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        private_mounts()
        exec(before)
    if new_user:
        kernel.unshare(kernel.CLONE_NEWUSER)
        open("/proc/self/setgroups", "w").write("deny")
        open("/proc/self/gid_map", "w").write(f"{group} {group} 1")
        open("/proc/self/uid_map", "w").write(f"{user} {user} 1")
        private_mounts()
    view = host_view.HostView.enter()
    print(repr(str(view)), flush=True)
    for line in sys.stdin:
        print(evaluate(line), flush=True)
"""


class Process:
    """A process in the view of the host."""

    def __init__(self, *, new_user: bool, before: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "yes" * new_user, before],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.view = self._answer()

    def __call__(self, expression: str) -> Any:
        self._process.stdin.write(expression + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        line = self._process.stdout.readline()
        if not line:
            said = self._process.communicate()[1].splitlines()[-1]
            if "Operation not permitted" in said:
                pytest.skip(f"this machine lets us have no namespaces: {said}")
            raise AssertionError(said)
        return eval(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


Enter = Callable[..., Process]


@pytest.fixture(params=["as root", "in a user namespace"])
def enter(request: pytest.FixtureRequest) -> Iterator[Enter]:
    if request.param == "as root" and os.geteuid() != 0:
        pytest.skip("only root needs no user namespace")
    new_user = request.param != "as root"
    with ExitStack() as processes:
        yield lambda before="": processes.enter_context(Process(new_user=new_user, before=before))


@pytest.fixture
def file() -> Iterator[Path]:
    # Not below `tmp_path`: with the folders of hundreds of tests beside it, a folder is not taken apart.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as top:
        folder = Path(top, "f:o,l\\der", "inner")  # characters with a meaning in the options of a mount
        folder.mkdir(parents=True)
        (folder / "file").write_text("content")
        yield folder / "file"


def test_what_can_be_read_is_the_same(enter: Enter, file: Path) -> None:
    inside = enter()
    assert inside(f"open({str(file)!r}).read()") == "content"
    assert inside(f"sorted(os.listdir({str(file.parent.parent)!r}))") == ["inner"]
    assert set(inside("os.listdir('/')")) - {"proc", "sys", "dev"} <= set(os.listdir("/"))
    assert inside(f"os.stat({sys.executable!r}).st_size") == os.stat(sys.executable).st_size


def test_a_pipe_keeps_what_is_in_it(enter: Enter, file: Path) -> None:
    name = str(file.with_name("pipe"))
    os.mkfifo(name)
    pipe = os.open(name, os.O_RDWR)
    try:
        os.write(pipe, b"for us")
        assert enter()(f"os.read(os.open({name!r}, os.O_RDONLY | os.O_NONBLOCK), 100)") == b""
        assert os.read(pipe, 100) == b"for us"
    finally:
        os.close(pipe)


def test_reading_leaves_no_mark(enter: Enter, file: Path) -> None:
    os.utime(file, ns=(1, 1))
    assert enter()(f"open({str(file)!r}).read()") == "content"
    assert file.stat().st_atime_ns == 1


def test_nothing_can_be_written(enter: Enter, file: Path) -> None:
    inside = enter()
    for path in (str(file), str(file.with_name("new")), "/new", "/tmp/new", "/dev/new", "/dev/shm/new", "/run/new"):
        assert inside(f"open({path!r}, 'a')") == "OSError"
    assert inside(f"os.utime({str(file)!r})") == "OSError"
    assert inside(f"os.chmod({str(file)!r}, 0)") == "OSError"


def test_what_is_seen_gives_nobody_another_user_and_opens_no_device(enter: Enter, file: Path) -> None:
    inside = enter()
    wanted = os.ST_RDONLY | os.ST_NOSUID
    for _ in range(2):
        assert inside("os.statvfs('/').f_flag") & wanted == wanted
        assert inside(f"os.statvfs({str(file)!r}).f_flag") & (wanted | os.ST_NODEV) == wanted | os.ST_NODEV
        inside("view.refresh()")


def test_the_devices_are_the_harmless_ones(enter: Enter) -> None:
    inside = enter()
    assert set(inside("os.listdir('/dev')")) <= {
        *("null", "zero", "full", "random", "urandom", "tty"),
        *("fd", "stdin", "stdout", "stderr", "ptmx", "pts", "shm"),
    }
    assert inside("os.listdir('/dev/pts')") == []
    assert inside("open('/dev/null', 'w').write('x')") == 1
    assert len(inside("open('/dev/urandom', 'rb').read(9)")) == 9


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount something beforehand")


@needs_root
def test_mounts_below_a_folder(enter: Enter, file: Path) -> None:
    folder = file.parent
    (folder / "mounted").mkdir()
    (folder / "beside").mkdir()
    (folder / "beside" / "file").write_text("beside")
    (folder / "link").symlink_to("beside/file")
    before = (
        f"kernel.mount('tmpfs', {str(folder / 'mounted')!r}, 'tmpfs', 0)\n"
        f"open({str(folder / 'mounted' / 'file')!r}, 'w').write('mounted')\n"
    )
    inside = enter(before)
    assert "shared=[]" in inside.view
    for name, content in (
        ("file", "content"),
        ("beside/file", "beside"),
        ("link", "beside"),
        ("mounted/file", "mounted"),
    ):
        assert inside(f"open({str(folder / name)!r}).read()") == content
        assert inside(f"open({str(folder / name)!r}, 'a')") == "OSError"
    with (folder / "beside" / "file").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        lock = f"fcntl.flock(os.open({str(folder / 'link')!r}, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        assert inside(lock) is None


@needs_root
def test_a_file_system_that_does_not_answer_is_left_alone(enter: Enter, file: Path) -> None:
    if not os.path.exists("/dev/fuse"):
        pytest.skip("this machine has no /dev/fuse, by which a file system can be one that does not answer")
    silent = str(file.with_name("silent"))
    os.mkdir(silent)
    before = (
        "fuse = os.open('/dev/fuse', os.O_RDWR)\n"
        "options = f'fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other'\n"
        f"kernel.mount('none', {silent!r}, 'fuse', 0, options)\n"
    )
    inside = enter(before)
    assert f"shared={[silent]!r}" in inside.view
    assert inside("view.refresh()") is None
    assert inside(f"open({str(file)!r}).read()") == "content"


def test_every_overlay_is_mounted_read_only_and_stays_so(enter: Enter, file: Path) -> None:
    """Each by itself: without layers to write to the kernel refuses changes too, until somebody gives it some."""
    inside = enter()
    mounted = "[line.split()[5] for line in open('/proc/self/mountinfo') if ' - overlay ' in line]"
    for options in (inside(mounted), (inside("view.refresh()"), inside(mounted))[1]):
        assert options
        assert [each for each in options if "ro" not in each.split(",")] == []
    assert inside(f"open({str(file)!r}, 'a')") == "OSError"
