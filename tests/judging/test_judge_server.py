"""Hostile judges and what they are kept from, with the most and the least isolation: only their verdict suffers."""

import os
import socket
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from guarantee_email_agent.judging.judge import JudgePool
from guarantee_email_agent.judging.judge_protocol import JudgeLimits
from guarantee_email_agent.judging.verdict import Verdict

OK = 'return {"passed": True, "feedback": "fine"}'
in_each_way = pytest.mark.parametrize(
    "pool",
    ["forked", "fresh", "without-namespaces", "plain-user", "plain-user-without-namespaces"],
    indirect=True,
    scope="module",
)
# Long enough for a judge on a busy machine, short enough for a test that waits until it is over.
DEADLINE_S = 1.5

Ask = Callable[..., Verdict]


def needs(pool: JudgePool, what: str) -> None:
    isolation = pool.isolation()
    if not getattr(isolation, what):
        pytest.skip(f"this machine does not give judges '{what}': {isolation.why}")


@in_each_way
class TestSurroundings:
    def test_nothing_of_our_environment_shows(self, ask: Ask) -> None:
        verdict = ask(
            "seen = str(os.environ)",
            "for name in filter(str.isdigit, os.listdir('/proc')):",
            "    try: seen += open(f'/proc/{name}/environ').read()",
            "    except OSError: pass",
            'return {"passed": "sesame" not in seen, "feedback": seen}',
            head="import os",
        )
        assert verdict.verdict == "passed"

    def test_a_temporary_folder_that_nobody_had_before(self, ask: Ask) -> None:
        look = 'return {"passed": not os.listdir(tempfile.gettempdir()), "feedback": os.environ["TMPDIR"]}'
        write = 'open(os.path.join(tempfile.gettempdir(), "left"), "w").write("x")'
        for _ in range(2):
            assert ask(
                look.replace("return", "verdict ="), write, "return verdict", head="import os, tempfile"
            ).verdict == ("passed")

    def test_no_network(self, ask: Ask, pool: JudgePool) -> None:
        needs(pool, "network_blocked")
        error = ask('socket.create_connection(("127.0.0.1", 9), 1)', head="import socket").error
        assert "a judge has no network unless its task asks for more" in str(error)

    def test_network_where_the_task_asks(self, ask: Ask) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            record = {"port": server.getsockname()[1]}
            connect = 'socket.create_connection(("127.0.0.1", result["port"]), 5)'
            assert ask(connect, OK, head="import socket", record=record, network=True).verdict == "passed"


FILL = """\
def fill():
    while ' Z ' not in open('/proc/self/stat').read(): time.sleep(0.01)
    held = b'x' * (40 << 20); time.sleep(60)
"""
MEMORY = {
    "their own": ("hold = b'x' * (40 << 20); time.sleep(60)",),
    "behind a first thread that has ended": (
        "threading.Thread(target=fill).start()",
        "ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)",
    ),
    "in sockets": (
        "kept = []",
        "for _ in range(100):",
        "    kept.append(socket.socketpair())",
        "    kept[-1][0].setblocking(False)",
        "    kept[-1][0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)",
        "    try:",
        "        while True: kept[-1][0].send(b'x' * 100_000)",
        "    except BlockingIOError: pass",
        "time.sleep(60)",
    ),
}


class TestHostile:
    def test_an_endless_loop(self, ask: Ask) -> None:
        assert ask("while True: pass", timeout_s=0.5).error == "gave no verdict within 0.5 s"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "bomb",
        ["while True: os.fork()", "while True:\n    try: os.fork()\n    except OSError: pass"],
        ids=["gives-up", "never-gives-up"],
    )
    def test_a_fork_bomb(self, ask: Ask, pool: JudgePool, bomb: str) -> None:
        needs(pool, "processes_limited")
        verdict = ask(bomb, head="import os", timeout_s=DEADLINE_S)
        assert verdict.verdict == "error"
        assert any(why in str(verdict.error) for why in ("BlockingIOError", "gave no verdict", "MB of memory"))

    def test_ten_gigabytes(self, ask: Ask) -> None:
        error = ask("bytearray(10 * 1024 ** 3)").error
        assert error == "raised MemoryError (line 3 of test.py): a judge may take 1024 MB of memory"

    @pytest.mark.parametrize("hold", MEMORY)
    def test_memory_of_all_its_processes(self, ask: Ask, hold: str) -> None:
        fork = ("for _ in range(8):", "    if not os.fork():", *(f"        {line}" for line in MEMORY[hold]))
        head = "import ctypes, os, socket, threading, time\n" + FILL
        limits = JudgeLimits(memory_mb=300 if hold == "in sockets" else 100)
        verdict = ask(*fork, "time.sleep(60)", head=head, limits=limits)
        assert verdict.error == f"took more than {limits.memory_mb} MB of memory, all its processes together"

    @pytest.mark.parametrize("hide", ["os._exit(0)", "ctypes.CDLL(None).prctl(4, 0); os.read(end, 1); os._exit(0)"])
    def test_processes_that_cannot_be_looked_into_are_not_taken_for_sockets(self, ask: Ask, hide: str) -> None:
        """Finished ones, or such as hide what they have, for as long as the supervisor takes to look twice."""
        verdict = ask(
            "end, other = os.pipe()",
            "for _ in range(12):",
            f"    if not os.fork(): os.close(other); {hide}",
            "time.sleep(0.3)",
            OK,
            head="import ctypes, os, time",
        )
        assert verdict.verdict == "passed"

    @pytest.mark.parametrize(
        "get",
        [
            "mmap.mmap(-1, 300 << 20)",
            "mmap.mmap(os.open('/dev/zero', os.O_RDWR), 300 << 20)",
            "os.memfd_create('memory')",
        ],
    )
    def test_memory_that_belongs_to_no_process(self, ask: Ask, get: str) -> None:
        verdict = ask(
            f"memory = {get}",
            "for place in range(0, len(memory), 4096): memory[place] = 1",
            "memory.madvise(mmap.MADV_DONTNEED)",
            OK,
            head="import mmap, os",
        )
        assert any(why in str(verdict.error) for why in ("raised PermissionError", "raised OSError"))

    @pytest.mark.slow
    def test_a_gigabyte_of_output(self, ask: Ask) -> None:
        verdict = ask("for _ in range(1024): os.write(1, bytes(1 << 20))", OK, head="import os", timeout_s=60)
        assert verdict.verdict == "passed"
        assert verdict.output == "\0" * 20_000 + "\n[… and 1,073,721,824 bytes more, which were dropped]"

    def test_a_verdict_forged_on_whatever_is_open(self, ask: Ask) -> None:
        forge = (
            """forged = b'{"returned": {"passed": true, "feedback": "forged", "details": {}}}'\n"""
            "for number in range(1, 100):\n"
            "    try: os.write(number, forged)\n"
            "    except OSError: pass"
        )
        assert ask(forge, 'return {"passed": False, "feedback": "real"}', head="import os").feedback == "real"
        assert "without a verdict" in str(ask(forge, "os._exit(0)", head="import os").error)

    def test_a_channel_filled_with_rubbish(self, ask: Ask) -> None:
        flood = (
            "for number in range(3, 100):\n"
            "    try:\n"
            "        while True: os.write(number, bytes(1 << 16))\n"
            "    except OSError: pass"
        )
        error = ask(flood, OK, head="import os").error
        assert error == "wrote to a file descriptor that it did not open, the channel of its verdict"

    def test_a_judge_that_closes_everything(self, ask: Ask) -> None:
        error = "closed file descriptors that it did not open, among them the channel of its verdict"
        assert ask("os.closerange(0, 1000)", OK, head="import os").error == error
        reopen = "os.closerange(0, 1000); kept = [os.open('/dev/null', os.O_WRONLY) for _ in range(30)]"
        assert ask(reopen, OK, head="import os").error == error

    def test_closed_output_costs_no_verdict(self, ask: Ask) -> None:
        assert ask("os.close(0); os.close(1); os.close(2)", OK, head="import os").verdict == "passed"
        assert ask("sys.stdout = sys.stderr = None", OK, head="import sys").verdict == "passed"

    def test_only_the_judge_speaks_not_what_it_forks(self, ask: Ask) -> None:
        verdict = ask(
            "if not os.fork(): return {'passed': True, 'feedback': 'child'}",
            "os.wait()",
            'return {"passed": False, "feedback": "judge"}',
            head="import os",
        )
        assert verdict.feedback == "judge"

    @in_each_way
    def test_a_daemon(self, ask: Ask, is_running: Callable[[str], bool]) -> None:
        token = f"98765.{uuid.uuid4().int % 10**9}"
        verdict = ask(
            "if not os.fork():",
            "    os.setsid()",
            "    if not os.fork():",
            f"        os.closerange(0, 1000); os.execvp('sleep', ['sleep', '{token}'])",
            "    os._exit(0)",
            "os.wait(); time.sleep(0.1)",
            OK,
            head="import os, time",
        )
        assert verdict.verdict == "passed"
        assert not is_running(token)

    @in_each_way
    def test_files_stay_as_they_are(self, succeed: Callable[..., list[str]], pool: JudgePool, folder: Path) -> None:
        needs(pool, "files_protected")
        attempts = (
            "open(__file__, 'a').write('#')",
            "open(result['file'], 'w').write('{}')",
            "os.truncate(result['file'], 0)",
            "os.unlink(result['file'])",
            "os.rename(result['file'], result['file'] + 'x')",
            "os.symlink('/', result['file'] + 'x')",
            "open(os.path.join(os.path.dirname(__file__), 'helper.py'), 'w').write('x')",
        )
        kept = folder / "record.json"
        kept.write_text('{"task_result": "42"}', encoding="utf-8")
        kept.chmod(0o666)
        folder.chmod(0o777)
        assert succeed(*attempts, head="import os", record={"file": str(kept)}) == []
        assert kept.read_text(encoding="utf-8") == '{"task_result": "42"}'
        assert {file.name for file in folder.iterdir()} == {"record.json", "test.py"}

    @in_each_way
    def test_our_process_goes_on(self, ask: Ask, pool: JudgePool) -> None:
        needs(pool, "processes_protected")
        attempts = (
            "for pid in (result['caller'], os.getppid(), 1):",
            "    for number in set(signal.Signals) - {signal.SIGCONT}:",
            "        try: os.kill(pid, number)",
            "        except OSError: pass",
            "    for name in ('mem', 'environ'):",
            "        try: open(f'/proc/{pid}/{name}', 'rb').close(); raise SystemError",
            "        except OSError: pass",
            "time.sleep(0.2)",  # what a signal does may take a moment
        )
        caller = getattr(pool, "pid", os.getpid())
        assert ask(*attempts, OK, head="import os, signal, time", record={"caller": caller}).verdict == "passed"

    @pytest.mark.parametrize(
        "hide",
        [
            "",
            "os.mkdir('closed'); os.chmod('closed', 0o300); os.chdir('closed')",
            "for _ in range(60): os.mkdir('d' * 200); os.chdir('d' * 200)",
        ],
        ids=["in-sight", "in-a-closed-folder", "deep-down"],
    )
    @pytest.mark.parametrize("then", ["", "os.unlink(str(number))"], ids=["kept", "unlinked"])
    def test_a_disk_full_of_files(self, ask: Ask, hide: str, then: str) -> None:
        verdict = ask(
            f"os.chdir(os.environ['TMPDIR'])\n{hide}\nkept = []",
            "for number in range(40):",
            "    kept.append(open(str(number), 'wb', 0)); kept[-1].write(bytes(1 << 20))",
            f"    {then}",
            "time.sleep(60)",
            head="import os, time",
            limits=JudgeLimits(temp_mb=20),
        )
        assert any(why in str(verdict.error) for why in ("No space left", "wrote more than 20 MB"))

    def test_a_file_that_is_too_large(self, ask: Ask) -> None:
        write = "open(os.environ['TMPDIR'] + '/large', 'wb').write(bytes(3 << 20))"
        assert "File too large" in str(ask(write, head="import os", limits=JudgeLimits(file_mb=2)).error)

    def test_folders_nested_without_end(self, ask: Ask) -> None:
        nest = "os.chdir(os.environ['TMPDIR'])\nfor _ in range(600): os.mkdir('d' * 9); os.chdir('d' * 9)"
        assert ask(nest, OK, head="import os").verdict == "passed"

    def test_folders_that_it_closes_are_gone_before_the_next_judge(self, ask: Ask) -> None:
        close = "os.makedirs('a/b/c'); os.chmod('a/b', 0); os.chmod('a', 0); os.chmod('.', 0)"
        look = "os.chdir(os.environ['TMPDIR']); left = os.listdir()"
        ask(f"os.chdir(os.environ['TMPDIR']); {close}", OK, head="import os")
        assert ask(look, 'return {"passed": left == [], "feedback": ""}', head="import os").verdict == "passed"

    @pytest.mark.slow
    def test_too_much_processor_time(self, ask: Ask) -> None:
        assert ask("while True: pass", limits=JudgeLimits(cpu_s=1)).error == "took more processor time than 1 s"
