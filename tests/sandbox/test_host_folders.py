"""What an agent sees of the machine: its programs, and no judge, no record and nothing of our home among them."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from running_sandbox import MakeBox

from guarantee_email_agent.sandbox import SandboxSettings, host_folders
from guarantee_email_agent.sandbox.host_folders import find_host_folders
from guarantee_email_agent.utils.errors import TaskError


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is shown beside those of the real interpreter: the prefix of another one."""
    folder = tmp_path / "prefix"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "library").write_text("shown")
    monkeypatch.setattr(sys, "base_prefix", str(folder))
    return folder


def _make_task(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "test.py").write_text("THE ANSWER")
    return folder


def _covered(*hidden: Path) -> tuple[str, ...]:
    return find_host_folders(None, hidden, network=False).covered


def test_a_judge_below_the_prefix_is_not_seen(prefix: Path, make_box: MakeBox) -> None:
    task = _make_task(prefix / "lib" / "tasks" / "one")
    other = _make_task(prefix / "lib" / "tasks" / "two")
    box = make_box(SandboxSettings(hidden=(task,)))
    assert box.output(f"cat {prefix}/lib/library; cat {task}/test.py {other}/test.py 2>/dev/null") == "shown"


def test_what_covers_it_takes_nothing(prefix: Path, make_box: MakeBox) -> None:
    task = _make_task(prefix / "lib" / "one")
    box = make_box(SandboxSettings(hidden=(task,)))
    assert box.output(f"ls -A {task}; echo x > {task}/new") == f"bash: line 1: {task}/new: Read-only file system"


def test_of_a_prefix_only_what_an_interpreter_needs_is_seen(prefix: Path, make_box: MakeBox) -> None:
    task = _make_task(prefix / "tasks" / "one")
    assert "No such file" in make_box().output(f"cat {task}/test.py 2>&1")


def test_a_link_to_the_task_is_no_other_way_to_name_it(prefix: Path, tmp_path: Path) -> None:
    task = _make_task(prefix / "lib" / "tasks" / "one")
    (tmp_path / "link").symlink_to(task)
    assert _covered(tmp_path / "link") == (str(task.parent),)


def test_our_package_is_not_seen(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = prefix / "lib" / "python3" / "site-packages" / "guarantee_email_agent"
    package.mkdir(parents=True)
    monkeypatch.setattr(host_folders, "_PACKAGE", package)
    assert _covered() == (str(package),)


def test_our_home_is_not_seen(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = prefix / "lib" / "service"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    assert _covered() == (str(home),)


def test_where_programs_lie_in_what_must_not_be_seen_the_sandbox_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    browser = tmp_path / "chrome"
    browser.touch()
    with pytest.raises(TaskError, match=f"^an agent would see {tmp_path} in the sandbox, .* use --sandbox docker$"):
        find_host_folders(str(browser), (), network=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a folder once more")
@pytest.mark.parametrize(
    ("source", "seen"), [("tasks/one", "elsewhere"), ("tasks/one/data", "elsewhere"), (".", "elsewhere/tasks")]
)
def test_a_task_that_is_mounted_once_more_is_not_seen_there(tmp_path: Path, source: str, seen: str) -> None:
    task = _make_task(tmp_path / "tasks" / "one")
    (task / "data").mkdir()
    elsewhere = tmp_path / "prefix" / "lib" / "elsewhere"
    elsewhere.mkdir(parents=True)
    program = f"""if True:
        import json, sys
        from pathlib import Path
        from guarantee_email_agent.isolation import syscalls as kernel
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount("none", "/", "none", kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount("{tmp_path / source}", "{elsewhere}", "none", kernel.MS_BIND)
        sys.base_prefix = "{tmp_path}/prefix"
        from guarantee_email_agent.sandbox.host_folders import find_host_folders
        found = find_host_folders(None, (Path("{task}"),), network=False)
        print(json.dumps([found.covered, sorted(found.parted)]))
    """
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == [[str(elsewhere.parent / seen)], [str(elsewhere.parent)]]


def test_a_lock_of_an_agent_is_none_of_ours(prefix: Path, make_box: MakeBox) -> None:
    file = prefix / "lib" / "library"
    box = make_box()
    assert not any("lock" in limitation for limitation in box.sandbox.limitations)
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert box.output(f"flock --nonblock {file} echo locked") == "locked"
    box.output(
        f"flock --shared {file} sleep 100 > /dev/null 2>&1 & until flock --shared --nonblock {file} true; do :; done"
    )
    with file.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_reading_leaves_no_mark(prefix: Path, make_box: MakeBox) -> None:
    file = prefix / "lib" / "library"
    os.utime(file, ns=(1, 1))
    assert make_box().output(f"cat {file}") == "shown"
    assert file.stat().st_atime_ns == 1
