"""What a judge returns, many of them at once, and what becomes of one whose caller is gone."""

import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

from guarantee_email_agent.isolation.processes import judge_users
from guarantee_email_agent.judging.judge import JudgePool, judge
from guarantee_email_agent.judging.judge_protocol import Isolation
from guarantee_email_agent.judging.verdict import Verdict


def judge_source(folder: Path, source: str) -> Verdict:
    """The verdict of a judge with this source."""
    file = folder / "test.py"
    file.write_text(source, encoding="utf-8")
    return judge(file, {}, 20)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ({"passed": True, "feedback": "yes", "details": {"score": 0.5}}, ("passed", "yes", {"score": 0.5})),
        ({"passed": False, "feedback": "no"}, ("failed", "no", {})),
        ({"passed": True, "feedback": "yes", "details": None}, ("passed", "yes", {})),
        ({"passed": True, "feedback": 'ä\0\u2028\U0001f389\n"'}, ("passed", 'ä\0\u2028\U0001f389\n"', {})),
    ],
    ids=["passed", "failed", "no-details", "odd-text"],
)
def test_what_a_judge_returns_is_its_verdict(tmp_path: Path, returned: dict[str, Any], expected: object) -> None:
    verdict = judge_source(tmp_path, f"def test(result): return {returned!r}\n")
    assert (verdict.verdict, verdict.feedback, verdict.details) == expected
    assert verdict.error is None
    assert verdict.duration_ms > 0


def test_helpers_of_one_judge_are_not_those_of_another(tmp_path: Path) -> None:
    source = "import helper\ndef test(result): return {'passed': True, 'feedback': helper.WORD}\n"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper.py").write_text(f"WORD = {name!r}\n", encoding="utf-8")
    assert [judge_source(tmp_path / name, source).feedback for name in ("one", "two", "one")] == ["one", "two", "one"]


def test_a_judge_does_not_see_our_modules(tmp_path: Path) -> None:
    source = (
        "import sys\n"
        "def test(result):\n"
        "    seen = [name for name in sys.modules if name.partition('.')[0] in ('pytest', 'guarantee_email_agent')]\n"
        "    return {'passed': not seen, 'feedback': str(seen)}\n"
    )
    verdict = judge_source(tmp_path, source)
    assert (verdict.verdict, verdict.feedback) == ("passed", "[]")


ECHO = "def test(result):\n    return {'passed': True, 'feedback': str(result['n'])}\n"

each_isolation = pytest.mark.parametrize("namespaces", [True, False])


def write_judge(folder: Path, source: str) -> Path:
    file = folder / "test.py"
    file.write_text(source, encoding="utf-8")
    return file


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    return write_judge(tmp_path, ECHO)


@contextmanager
def judging_process(file: Path, namespaces: bool) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has the judge at work, killed at the end."""
    program = (
        "from pathlib import Path\nfrom guarantee_email_agent.judging.judge import JudgePool\n"
        f"JudgePool(namespaces={namespaces}).judge(Path({str(file)!r}), {{}})\n"
    )
    caller = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    try:
        yield caller
    finally:
        caller.kill()
        caller.wait()


@pytest.fixture
def token() -> str:
    return f"98765.{uuid.uuid4().int % 10**9}"


def test_every_thread_gets_its_own_verdict(echo: Path) -> None:
    with JudgePool() as pool, ThreadPoolExecutor(6) as threads:
        for ask in (pool.judge, judge):
            feedback = list(threads.map(lambda n, ask=ask: ask(echo, {"n": n}).feedback, range(40)))
            assert feedback == [str(n) for n in range(40)]


@each_isolation
@pytest.mark.parametrize("is_killed", [True, False])
def test_a_server_that_was_killed_or_lost_its_folder_is_replaced(echo: Path, namespaces: bool, is_killed: bool) -> None:
    with JudgePool(namespaces=namespaces) as pool:
        assert pool.judge(echo, {"n": 1}).verdict == "passed"
        [server] = pool._idle[False]
        if is_killed:
            server._process.kill()
            server._process.wait()
        else:
            os.rmdir(server._folder or "")
        assert pool.judge(echo, {"n": 2}).feedback == "2"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount something")
def test_what_is_mounted_later_is_seen(tmp_path: Path, echo: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom guarantee_email_agent.isolation import syscalls as kernel\n"
        "from guarantee_email_agent.judging.judge import JudgePool\n"
        "kernel.unshare(kernel.CLONE_NEWNS)\n"
        "kernel.mount('none', '/', 'none', kernel.MS_REC | kernel.MS_PRIVATE)\n"
        "echo, folder = map(Path, sys.argv[1:])\n"
        "with JudgePool() as pool:\n"
        "    print(pool.judge(echo, {'n': 1}).feedback)\n"
        "    kernel.mount('none', str(folder), 'tmpfs', 0)\n"
        "    (folder / 'test.py').write_text(echo.read_text())\n"
        "    print(pool.judge(folder / 'test.py', {'n': 2}).feedback)\n"
    )
    folder = tmp_path / "mounted"
    folder.mkdir()
    said = subprocess.run([sys.executable, "-c", program, echo, folder], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["1", "2"]


@each_isolation
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_where_the_caller_is_killed_or_interrupted_nothing_is_left(
    tmp_path: Path,
    token: str,
    is_running: Callable[[str], bool],
    namespaces: bool,
    by: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    daemon = f"subprocess.Popen(['sleep', '{token}'], start_new_session=True)"
    leave = "open(os.environ['TMPDIR'] + '/left', 'w')"
    file = write_judge(tmp_path, f"import os, subprocess, time\n{daemon}\n{leave}\ntime.sleep(600)\n")
    with judging_process(file, namespaces) as caller:
        wait_until(lambda: is_running(f"sleep {token}"))
        caller.send_signal(by)
        assert caller.wait(20) == -by
    wait_until(lambda: not is_running(f"sleep {token}"))
    wait_until(lambda: not list(temporary.iterdir()))


@each_isolation
def test_a_server_that_is_killed_at_work_leaves_nothing(
    tmp_path: Path, echo: Path, token: str, is_running: Callable[[str], bool], namespaces: bool
) -> None:
    (tmp_path / "slow").mkdir()
    file = write_judge(tmp_path / "slow", f"import os\nos.execvp('sleep', ['sleep', '{token}'])\n")
    with JudgePool(namespaces=namespaces) as pool, ThreadPoolExecutor(1) as thread:
        assert pool.judge(echo, {"n": 1}).verdict == "passed"
        [server] = pool._idle[False]
        judging = thread.submit(pool.judge, file, {}, 3)
        wait_until(lambda: is_running(f"sleep {token}"))
        server._process.kill()
        assert judging.result().verdict == "error"
        wait_until(lambda: not is_running(f"sleep {token}"))
        assert pool.judge(echo, {"n": 2}).feedback == "2"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has judges run as another user")
@pytest.mark.parametrize(
    ("namespaces", "network", "known"), [(True, True, True), (False, False, True), (True, False, False)]
)
def test_users_of_judges_with_this_network_are_known(
    tmp_path: Path, namespaces: bool, network: bool, known: bool
) -> None:
    tell = "import os\ndef test(result): return {'passed': True, 'feedback': str(os.getuid())}\n"
    with JudgePool(namespaces=namespaces) as pool:
        if namespaces and not pool.isolation().namespaces:
            pytest.skip(f"this machine has no namespaces for judges: {pool.isolation().why}")
        user = int(pool.judge(write_judge(tmp_path, tell), {}, network=network).feedback)
        assert (user in judge_users) == known
    assert user not in judge_users


def test_where_there_are_no_files_in_memory(echo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    assert judge(echo, {"n": 1}).feedback == "1"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists open files in /proc")
def test_hundreds_of_judges_leave_no_file_open(echo: Path) -> None:
    with JudgePool() as pool, socket.create_server(("127.0.0.1", 0)) as sandbox:
        port = sandbox.getsockname()[1]
        assert pool.judge(echo, {"n": 1}, sandbox_port=port).feedback == "1"
        before = len(os.listdir("/proc/self/fd"))
        for n in range(200):
            assert pool.judge(echo, {"n": n}, sandbox_port=port if n % 4 == 0 else None).feedback == str(n)
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_caller_that_ignores_the_end_of_its_children(echo: Path) -> None:
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom guarantee_email_agent.judging.judge import judge\n"
        f"sys.exit(judge(Path({str(echo)!r}), {{'n': 1}}).feedback)\n"
    )
    ignoring = (
        "import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    command = [sys.executable, "-c", ignoring, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == "1\n"


def test_in_a_container_whose_root_may_do_less(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir(mode=0o700)
    file = write_judge(tmp_path / "own", "import decimal\n" + ECHO)
    file.chmod(0o600)
    # What Docker leaves out: CAP_SYS_ADMIN for namespaces, and CAP_DAC_READ_SEARCH.
    program = (
        "import ctypes\nfrom pathlib import Path\nfrom guarantee_email_agent.judging.judge import JudgePool\n"
        "for capability in (2, 21): ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)\n"
        f"print(JudgePool().judge(Path({str(file)!r}), {{'n': 1}}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "feedback='1'" in done.stdout


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda file: None, "does not exist. Write it"),
        (lambda file: file.mkdir(), "is no file. Write one"),
        (os.mkfifo, "is no file. Write one"),
        (lambda file: file.symlink_to("/dev/zero"), "is no file. Write one"),
        (lambda file: file.symlink_to(file), "cannot be read: Too many levels of symbolic links"),
        (lambda file: (file.touch(), os.truncate(file, 1 << 36)), "is larger than 10,000,000 bytes"),
    ],
    ids=["absent", "folder", "pipe", "device", "loop", "huge"],
)
def test_a_judge_that_is_no_usable_file(tmp_path: Path, make: Callable[[Path], object], problem: str) -> None:
    make(tmp_path / "test.py")
    verdict = judge(tmp_path / "test.py", {})
    assert verdict.verdict == "error"
    assert str(verdict.error).startswith(problem)


def test_a_fork_of_ours_judges_with_a_server_of_its_own(echo: Path) -> None:
    program = (
        "import os\nfrom pathlib import Path\nfrom guarantee_email_agent.judging.judge import judge\n"
        f"file = Path({str(echo)!r})\n"
        "assert judge(file, {'n': 1}).feedback == '1'\n"
        "child = os.fork()\n"
        "assert judge(file, {'n': 2}).feedback == '2'\n"
        "assert child == 0 or os.waitpid(child, 0)[1] == 0\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@each_isolation
def test_a_closed_pool_leaves_nothing(
    tmp_path: Path, echo: Path, monkeypatch: pytest.MonkeyPatch, namespaces: bool
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with JudgePool(namespaces=namespaces) as pool:
        assert pool.judge(echo, {"n": 1}).verdict == "passed"
        processes = [server._process.pid for server in pool._idle[False]]
    assert list(temporary.iterdir()) == []
    for pid in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


class TestWeakerIsolation:
    """What a machine does not give is said in one line, and nothing where it gives everything."""

    EVERYTHING = Isolation(**{field.name: field.type == "bool" or "" for field in fields(Isolation)})

    def test_where_everything_holds_there_is_nothing_to_say(self) -> None:
        assert self.EVERYTHING.weakness() is None

    @pytest.mark.parametrize(
        ("missing", "can"),
        [
            ("network_blocked", "use the whole network"),
            ("files_protected", "change your files"),
            ("attributes_protected", "change permissions and times of your files"),
            ("processes_protected", "stop other processes of yours"),
            ("processes_limited", "start processes without limit"),
            ("locks_separate", "lock your files and empty named pipes"),
            ("namespaces", "see other processes, reach the whole network where it may look into a sandbox"),
        ],
    )
    def test_what_is_missing_is_named(self, missing: str, can: str) -> None:
        isolation = replace(self.EVERYTHING, **{missing: False}, why="own processes: Operation not permitted")
        why = "no namespaces: own processes: Operation not permitted"
        line = f"Judges are isolated less than usual ({why}): a judge can {can}. See docs/security.md"
        assert isolation.weakness() == line

    def test_once_for_all_judges(self, echo: Path, caplog: pytest.LogCaptureFixture) -> None:
        with JudgePool(namespaces=False) as pool, ThreadPoolExecutor(3) as threads:
            list(threads.map(lambda n: pool.judge(echo, {"n": n}), range(9)))
        assert [record.message for record in caplog.records] == [pool.isolation().weakness()]
