"""Many judges at once, and what becomes of a judge whose caller is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from guarantee_email_agent.judging.judge import JudgePool, judge

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


def happens(condition: Callable[[], bool]) -> bool:
    """Whether `condition` comes true; asked again and again, for as long as a busy machine may need."""
    give_up_at = time.monotonic() + 20
    while not condition():
        if time.monotonic() > give_up_at:
            return False
        threading.Event().wait(0.02)
    return True


@pytest.fixture
def token() -> str:
    return f"98765.{uuid.uuid4().int % 10**9}"


def test_every_thread_gets_its_own_verdict(echo: Path) -> None:
    with JudgePool() as pool, ThreadPoolExecutor(6) as threads:
        for ask in (pool.judge, judge):
            feedback = list(threads.map(lambda n, ask=ask: ask(echo, {"n": n}).feedback, range(40)))
            assert feedback == [str(n) for n in range(40)]


def test_a_server_that_was_killed_is_an_error_and_is_replaced(tmp_path: Path, echo: Path) -> None:
    with JudgePool(namespaces=False) as pool:
        assert pool.judge(echo, {"n": 1}).verdict == "passed"
        [server] = pool._idle[False]
        server._process.kill()
        server._process.wait()
        assert pool.judge(echo, {"n": 2}).error == "ended the process that watches it"
        assert pool.judge(echo, {"n": 3}).feedback == "3"


@each_isolation
def test_where_the_caller_is_killed_its_judge_ends(
    tmp_path: Path, token: str, is_running: Callable[[str], bool], namespaces: bool
) -> None:
    file = write_judge(tmp_path, f"import os\nos.execvp('sleep', ['sleep', '{token}'])\n")
    with judging_process(file, namespaces):
        assert happens(lambda: is_running(f"sleep {token}"))
    assert happens(lambda: not is_running(f"sleep {token}"))


@each_isolation
def test_after_ctrl_c_nothing_runs_on(
    tmp_path: Path, token: str, is_running: Callable[[str], bool], namespaces: bool
) -> None:
    start = f"subprocess.Popen(['sleep', '{token}'], start_new_session=True)"
    file = write_judge(tmp_path, f"import subprocess, time\n{start}\ntime.sleep(600)\n")
    with judging_process(file, namespaces) as caller:
        assert happens(lambda: is_running(f"sleep {token}"))
        caller.send_signal(signal.SIGINT)
        assert caller.wait(20) == -signal.SIGINT
    assert happens(lambda: not is_running(f"sleep {token}"))


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


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no /dev/shm")
def test_tasks_and_temporary_files_may_stand_in_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        file = write_judge(Path(place), ECHO)
        assert judge(file, {"n": 1}).feedback == "1"
        monkeypatch.setattr("tempfile.tempdir", place)
        with JudgePool() as pool:
            assert pool.judge(file, {"n": 2}).feedback == "2"


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


def test_terminals_and_processes_of_its_own_where_there_are_namespaces(tmp_path: Path) -> None:
    file = write_judge(
        tmp_path,
        "import multiprocessing, os\n"
        "def test(result):\n"
        "    ours, theirs = os.openpty()\n"
        "    os.write(theirs, b'hello')\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool: lengths = pool.map(len, ['a', 'bc'])\n"
        "    return {'passed': lengths == [1, 2], 'feedback': os.read(ours, 9).decode()}\n",
    )
    with JudgePool() as pool:
        if not pool.isolation().namespaces:
            pytest.skip(f"this machine has no namespaces for judges: {pool.isolation().why}")
        verdict = pool.judge(file, {})
    assert (verdict.verdict, verdict.feedback) == ("passed", "hello")


def test_a_judge_may_be_a_link(tmp_path: Path, echo: Path) -> None:
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "helper.py").write_text("WORD = 'beside the link'\n", encoding="utf-8")
    echo.write_text("import helper\ndef test(result): return {'passed': True, 'feedback': helper.WORD}\n")
    (tmp_path / "task" / "test.py").symlink_to(echo)
    assert judge(tmp_path / "task" / "test.py", {}).feedback == "beside the link"


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


def test_what_holds_here_is_said() -> None:
    with JudgePool(namespaces=False) as pool:
        isolation = pool.isolation()
    assert (isolation.namespaces, bool(isolation.why)) == (False, True)
    with JudgePool() as pool:
        isolation = pool.isolation()
        assert isolation.namespaces or isolation.why
        assert pool.isolation(network=True) == isolation
