"""What a judge takes from the host where it only reads: locks, what is in a pipe, and names that it remembers."""

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from guarantee_email_agent.judging.judge import JudgePool
from guarantee_email_agent.judging.verdict import Verdict

if sys.platform != "linux":
    pytest.skip("only Linux has this isolation", allow_module_level=True)

Ask = Callable[..., Verdict]
OK = 'return {"passed": True, "feedback": "fine"}'

pytestmark = pytest.mark.parametrize("pool", ["forked", "plain-user"], indirect=True, scope="module")


@pytest.fixture
def host_file(folder: Path) -> Path:
    file = folder / "database"
    file.write_text("content")
    file.chmod(0o644)
    return file


def test_it_says_so(pool: JudgePool) -> None:
    isolation = pool.isolation()
    assert isolation.namespaces
    if not isolation.locks_separate:
        pytest.skip("this machine has a file system that takes no overlay, or does not answer")
    assert "lock" not in (isolation.weakness() or "")


@pytest.mark.parametrize(
    "lock", ["flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)", "lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)"]
)
def test_locks_of_the_host_are_not_its_own(ask: Ask, host_file: Path, lock: str) -> None:
    with host_file.open("r+") as held, host_file.open("r+") as held_too:
        fcntl.flock(held, fcntl.LOCK_EX)
        fcntl.lockf(held_too, fcntl.LOCK_EX)
        verdict = ask(f"file = open({str(host_file)!r})", f"fcntl.{lock}", OK, head="import fcntl")
        assert (verdict.verdict, verdict.error) == ("passed", None)


@pytest.fixture
def pipe(folder: Path) -> Iterator[Path]:
    """A named pipe with "for us" in it, which has to be there afterwards."""
    path = folder / "pipe"
    os.mkfifo(path)
    path.chmod(0o666)
    opened = os.open(path, os.O_RDWR)
    try:
        os.write(opened, b"for us")
        yield path
        assert os.read(opened, 100) == b"for us"
    finally:
        os.close(opened)


def test_a_pipe_is_not_had_by_its_number(ask: Ask, pipe: Path) -> None:
    handle = f"struct.pack('=IiII', 8, 1, {pipe.stat().st_ino}, 0)"  # of any generation, as ext4 takes it
    found = ask(
        "mount = os.open('/', os.O_RDONLY)",
        f"handle = ctypes.create_string_buffer({handle}, 256)",
        "opened = ctypes.CDLL(None).open_by_handle_at(mount, handle, os.O_RDONLY | os.O_NONBLOCK)",
        "taken = os.read(opened, 100) if opened >= 0 else b''",
        "return {'passed': True, 'feedback': repr([opened, taken])}",
        head="import ctypes, os, struct",
    )
    assert found.feedback == "[-1, b'']"


def test_what_changed_since_the_judge_before(ask: Ask, host_file: Path, folder: Path) -> None:
    (removed := folder / "removed").write_text("there")
    removed.chmod(0o644)
    names = [str(host_file), str(folder / "later" / "file"), str(removed)]
    look = f"found = [open(name).read() if os.path.exists(name) else '' for name in {names}]"
    show = 'return {"passed": True, "feedback": repr(found)}'
    assert ask(look, show, head="import os").feedback == "['content', '', 'there']"
    (folder / "new").write_text("replaced")
    os.replace(folder / "new", host_file)
    (folder / "later").mkdir()
    (folder / "later" / "file").write_text("added")
    removed.unlink()
    assert ask(look, show, head="import os").feedback == "['replaced', 'added', '']"


def test_its_own_locks_and_databases(ask: Ask) -> None:
    database = (
        "base = sqlite3.connect(os.path.join(tempfile.gettempdir(), 'base'))",
        "base.execute('pragma journal_mode = wal')",
        "base.execute('create table kept (value)'); base.execute('insert into kept values (1)'); base.commit()",
        "file = open(os.path.join(tempfile.gettempdir(), 'lock'), 'w')",
        "fcntl.flock(file, fcntl.LOCK_EX); fcntl.lockf(file, fcntl.LOCK_EX)",
    )
    verdict = ask(*database, OK, head="import fcntl, os, sqlite3, tempfile")
    assert (verdict.verdict, verdict.error) == ("passed", None)
