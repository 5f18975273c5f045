import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

from guarantee_email_agent.agent.process_identity import has_ended, is_on_this_machine, process_name

ASK_AS_NOBODY = """import os, sys
from guarantee_email_agent.agent.process_identity import has_ended, process_name
process_name()  # loads what nobody may not read
os.setgid(65534)
os.setuid(65534)
print(*map(has_ended, sys.argv[1:]))"""
PRINT_NAME = "from guarantee_email_agent.agent.process_identity import process_name; print(process_name(), flush=True)"


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """A process that prints its name and runs until its input ends."""
    program = [sys.executable, "-c", f"{PRINT_NAME}; input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def name_of(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline().strip()


def renamed(**parts: str) -> str:
    """Our own name with other parts."""
    names = ("host", "pid", "boot", "namespace", "start")
    ours = dict(zip(names, process_name().split(":"), strict=True))
    return ":".join({**ours, **parts}.values())


def test_a_process_that_runs_has_not_ended(other: subprocess.Popen[str]) -> None:
    assert not has_ended(process_name())
    assert not has_ended(name_of(other))


def test_a_process_that_was_killed_has_ended_also_before_its_parent_looked(other: subprocess.Popen[str]) -> None:
    name = name_of(other)
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    assert has_ended(name)
    other.wait()
    assert has_ended(name)


def test_another_process_with_the_same_id_is_not_the_one() -> None:
    assert has_ended(renamed(start="1"))


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare")
@pytest.mark.parametrize("kind", ["noaccess", "invisible"])
def test_a_process_that_proc_does_not_show_has_not_ended(other: subprocess.Popen[str], kind: str) -> None:
    """As another user sees it where /proc is mounted with hidepid; systemd does it with ProtectProc=invisible."""
    living, ended = name_of(other), renamed(pid="4194304")  # no process has the largest number that there may be
    script = f'mount -t proc -o hidepid={kind} proc /proc && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", ASK_AS_NOBODY, living, ended]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "True"], done.stderr


@pytest.mark.parametrize(
    "name",
    [renamed(boot="00000000", start="1"), renamed(namespace="1", pid="999999999"), "host:1", "dead:1", "", "a:b"],
    ids=["other boot", "other namespace", "earlier version", "no machine", "nobody", "no process"],
)
def test_of_a_process_elsewhere_nothing_is_known(name: str) -> None:
    """On another machine, before a restart of this one, in another container, or of an earlier version."""
    assert not is_on_this_machine(name)
    assert not has_ended(name)
