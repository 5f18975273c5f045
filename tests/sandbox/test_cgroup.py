"""Cgroups of sandboxes: a hierarchy of the kernel's where there is one, and folders that look like one with limits."""

import os
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import as_nobody
from running_sandbox import MIB, SMALL, processes_with
from waiting import wait_until

from guarantee_email_agent.sandbox.cgroup import Cgroup, CgroupUnavailableError, create_cgroup, remove_unused


@pytest.fixture
def hierarchy() -> Iterator[Path]:
    """A cgroup of the tests' own, of no controller."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    mount = next((Path(place) for _, place, kind, *_ in mounts if kind == "cgroup2"), None)
    if mount is None or not os.access(mount, os.W_OK):
        pytest.skip("this machine lets us make no cgroup of version 2")
    folder = mount / f"test-{secrets.token_hex(6)}"
    folder.mkdir()
    yield folder
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        path.rmdir()
    folder.rmdir()


def test_all_that_is_in_it_ends_with_it(hierarchy: Path) -> None:
    cgroup = Cgroup.create(hierarchy, {})
    with subprocess.Popen(["sleep", "100"]) as first:
        cgroup.add(first.pid)
        cgroup.remove()
        assert first.wait() == -9
    assert not cgroup.path.exists()


def test_what_was_left_over_is_removed_and_what_is_in_use_is_not(hierarchy: Path) -> None:
    """The lock goes with the process that has it, as where `solve` is killed."""
    used, left_over = Cgroup.create(hierarchy, {}), Cgroup.create(hierarchy, {})
    with subprocess.Popen(["sleep", "100"]) as process:
        left_over.add(process.pid)
        left_over.release()
        remove_unused(hierarchy)
        assert process.wait() == -9
    assert [path.name for path in hierarchy.iterdir() if path.is_dir()] == [used.path.name]
    used.remove()


@pytest.fixture
def delegated(tmp_path: Path) -> Path:
    """What stands for a cgroup that was delegated to us, with our process in it."""
    own = tmp_path / "user.slice" / "run.scope"
    own.mkdir(parents=True)
    (own / "cgroup.type").write_text("domain\n")
    (own / "cgroup.controllers").write_text("cpu memory pids\n")
    (own / "cgroup.subtree_control").write_text("\n")
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    (own.parent / "cgroup.type").write_text("domain\n")
    (own.parent.parent / "cgroup.type").write_text("domain\n")
    return own


def test_the_limits_are_memory_with_the_disk_and_processes(delegated: Path, tmp_path: Path) -> None:
    (delegated / "cgroup.subtree_control").write_text("memory pids\n")
    cgroup = create_cgroup(SMALL, (tmp_path, delegated))
    assert cgroup.path.parent == delegated
    assert int((cgroup.path / "memory.max").read_text()) == (256 + 32 + 8 + 64) * MIB
    assert (cgroup.path / "memory.swap.max").read_text() == "0"
    assert int((cgroup.path / "pids.max").read_text()) == 56


def test_we_move_to_a_leaf_so_that_sandboxes_can_have_limits(delegated: Path, tmp_path: Path) -> None:
    create_cgroup(SMALL, (tmp_path, delegated))
    assert (delegated / "guarantee-email-agent.solve" / "cgroup.procs").read_text() in (
        f"{os.getpid()}",
        f"{os.getppid()}",
    )
    assert (delegated / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_a_cgroup_with_other_processes_is_not_ours_to_change(delegated: Path, tmp_path: Path, token: str) -> None:
    subprocess.run(["setsid", "--fork", "sleep", token], check=True)
    wait_until(lambda: bool(processes_with(token)))
    stranger = processes_with(token)[0]
    (delegated / "cgroup.procs").write_text(f"{os.getpid()}\n{stranger}\n")
    try:
        with pytest.raises(CgroupUnavailableError, match="other processes share our cgroup"):
            create_cgroup(SMALL, (tmp_path, delegated))
    finally:
        os.kill(stranger, 9)
    assert (delegated / "cgroup.subtree_control").read_text() == "\n"


def test_without_a_memory_controller_it_says_so(delegated: Path, tmp_path: Path) -> None:
    (delegated / "cgroup.controllers").write_text("cpu pids\n")
    with pytest.raises(CgroupUnavailableError, match="no controller for memory in cgroups of version 2"):
        create_cgroup(SMALL, (tmp_path, delegated))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_one_that_was_not_delegated_is_left_alone(delegated: Path, tmp_path: Path) -> None:
    with as_nobody(delegated), pytest.raises(CgroupUnavailableError, match="our cgroup is not delegated to us"):
        create_cgroup(SMALL, (tmp_path, delegated))
