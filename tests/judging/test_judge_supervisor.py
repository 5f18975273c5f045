"""What a judge reaches of those who run it and of the judges before it: nothing, however its process is started."""

import os
import sys
import uuid
from collections.abc import Callable

import pytest

from guarantee_email_agent.judging.judge import JudgePool
from guarantee_email_agent.judging.verdict import Verdict

if sys.platform != "linux":
    pytest.skip("only Linux has this isolation", allow_module_level=True)

OK = 'return {"passed": True, "feedback": "fine"}'
SEARCH = """\
import re
# Written so that it does not find itself.
MARKER = re.compile(rb"[m]arker-(?:record|print|feedback)-[0-9a-f]{8}")
def found_in_memory():
    found = set()
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps.read().splitlines():
            start, end = (int(place, 16) for place in line.split()[0].split("-"))
            if " r" in line and "[v" not in line:
                try:
                    memory.seek(start)
                    found.update(MARKER.findall(memory.read(end - start)))
                except (OSError, ValueError):
                    pass
    return sorted(found)
"""
# Whatever sets something for another process; ioprio_set has no function in Python.
ON_A_PROCESS = (
    "resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, 0))",
    "resource.prlimit(pid, resource.RLIMIT_CPU, (0, 0))",
    "os.setpriority(os.PRIO_PROCESS, pid, 19)",
    "os.setpriority(os.PRIO_USER, 0, 19)",
    "os.sched_setaffinity(pid, {0})",
    "os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))",
    "call(251, 30, 1, pid, 3 << 13)",
)
CALL = """\
import ctypes, os, resource
def call(x86, arm, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(x86 if os.uname().machine == 'x86_64' else arm, *arguments):
        raise OSError(ctypes.get_errno(), 'refused')
"""

Ask = Callable[..., Verdict]


def test_no_earlier_judge_is_found_in_memory(ask: Ask) -> None:
    end = uuid.uuid4().hex[:8]
    speak = (
        "record = result['text'] * 1000",
        "for _ in range(100): print('marker', 'print', result['end'], sep='-')",
        'return {"passed": True, "feedback": "-".join(["marker", "feedback", result["end"]]) * 100}',
    )
    verdict = ask(*speak, record={"text": f"marker-record-{end}" * 5000, "end": end})
    assert (verdict.verdict, f"marker-print-{end}" in verdict.output) == ("passed", True)
    verdict = ask("found = found_in_memory()", 'return {"passed": not found, "feedback": str(found)}', head=SEARCH)
    assert (verdict.verdict, verdict.feedback) == ("passed", "[]")


def test_the_search_finds_what_there_is(ask: Ask) -> None:
    end = uuid.uuid4().hex[:8]
    record = {"": f"marker-record-{end}"}
    verdict = ask('return {"passed": bool(found_in_memory()), "feedback": ""}', head=SEARCH, record=record)
    assert verdict.verdict == "passed"


@pytest.mark.parametrize("pid", ["result['caller']", "os.getppid()", "1"])
def test_other_processes_keep_what_is_theirs(succeed: Callable[..., list[str]], pool: JudgePool, pid: str) -> None:
    caller = getattr(pool, "pid", os.getpid())
    before = os.getpriority(os.PRIO_PROCESS, caller)
    attempts = (attempt.replace("pid", pid) for attempt in ON_A_PROCESS)
    assert succeed(*attempts, head=CALL, record={"caller": caller}) == []
    assert os.getpriority(os.PRIO_PROCESS, caller) == before


def test_no_mark_for_the_next_judge(ask: Ask, succeed: Callable[..., list[str]]) -> None:
    marks = {
        "fcntl.fcntl(0, fcntl.F_SETFL, os.O_APPEND)": "fcntl.fcntl(0, fcntl.F_GETFL) & os.O_APPEND",
        "os.utime('/dev/pts', (7, 7))": "os.stat('/dev/pts').st_mtime == 7",
        "os.chmod('/dev/pts', 0o711)": "os.stat('/dev/pts').st_mode & 0o777 == 0o711",
        "os.utime('/dev/pts/ptmx', (7, 7))": "os.stat('/dev/pts/ptmx').st_mtime == 7",
        "os.utime('/proc/1', (7, 7))": "os.stat('/proc/1').st_mtime == 7",
        "os.chmod('/proc/1', 0o711)": "os.stat('/proc/1').st_mode & 0o777 == 0o711",
    }
    succeed(*marks, head="import fcntl, os")
    assert ask(*(f"assert not ({find})" for find in marks.values()), OK, head="import fcntl, os").error is None


def test_nothing_of_ours_is_open_in_its_process(ask: Ask) -> None:
    look = (
        "opened = set()",
        "for number in range(1000):",
        "    try: os.fstat(number); opened.add(os.readlink(f'/proc/self/fd/{number}').partition(':')[0])",
        "    except OSError: pass",
        'return {"passed": opened <= {"/dev/null", "pipe"}, "feedback": str(opened)}',
    )
    verdict = ask(*look, head="import os")
    assert (verdict.verdict, verdict.error) == ("passed", None), verdict.feedback
