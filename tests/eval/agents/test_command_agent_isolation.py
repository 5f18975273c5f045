import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import MODULE, environment
from scenario_folder import ScenarioFolder
from waiting import wait_until

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.agents.agent import AgentRun, AgentTask
from guarantee_email_agent.eval.agents.command_agent import CommandAgent

pytestmark = pytest.mark.slow

MARK = "AGENT_OF_THIS_TEST"
Agent = Callable[[str], CommandAgent]
# Leaves a process that is a session of its own and has lost its parent, once that has said so.
DETACH = """
import json, os, signal, sys, time
ready, say = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(say, b"x")
        time.sleep(600)
    os._exit(0)
os.read(ready, 1)
"""


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """Makes an agent of a program, isolated as far as this machine allows."""
    monkeypatch.setenv(MARK, str(tmp_path))

    def make(body: str) -> CommandAgent:
        (tmp_path / "agent.py").write_text(DETACH + body if "DETACH" in body else body, encoding="utf-8")
        made = CommandAgent(f"{sys.executable} {tmp_path}/agent.py", "http")
        made.check()
        return made

    return make


@pytest.fixture
def isolated(agent: Agent) -> Agent:
    """The same, on machines that have namespaces."""
    if not agent("")._namespaces:
        pytest.skip("no namespaces on this machine")
    return agent


def run(agent: CommandAgent, timeout_s: float = 60.0) -> AgentRun:
    urls = {"mail": "http://127.0.0.1:9/token/mail/mcp"}
    return agent.run(AgentTask({"subject": "x"}, urls, timeout_s, lambda: None))


def left(mark: Path) -> list[str]:
    """The processes of agents of this test that still run."""
    variable = f"{MARK}={mark}".encode()
    own = str(os.getpid())
    return [name for name in os.listdir("/proc") if name.isdigit() and name != own and variable in variables_of(name)]


def variables_of(pid: str) -> list[bytes]:
    try:
        return Path("/proc", pid, "environ").read_bytes().split(b"\0")
    except OSError:
        return []


@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize("ending", ["", "time.sleep(600)"])
def test_what_it_detaches_from_itself_ends_with_it(agent: Agent, tmp_path: Path, ending: str, namespaces: bool) -> None:
    program = agent(f"# DETACH\n{ending}")
    program._namespaces &= namespaces
    failure = run(program, 2.0 if ending else 60.0).failure
    assert (failure is None) is (ending == ""), failure
    assert left(tmp_path) == []


@pytest.mark.parametrize(
    "last", ["os.kill(os.getppid(), 9)", "os.killpg(os.getpgid(os.getppid()), 9)", "os.kill(-1, 15); os.kill(-1, 2)"]
)
def test_nor_does_it_stay_where_the_program_ends_all_it_can_reach(isolated: Agent, tmp_path: Path, last: str) -> None:
    run(isolated(f"# DETACH\n{last}"))
    assert left(tmp_path) == []


def test_without_namespaces_a_supervisor_that_was_ended_is_told(agent: Agent) -> None:
    program = agent("import os; os.kill(os.getppid(), 9)")
    program._namespaces = False
    assert run(program).failure == "the program was ended from outside"


def test_no_other_process_is_seen(isolated: Agent) -> None:
    program = isolated("""
import json, os
print(json.dumps({"task_result": [int(name) for name in os.listdir("/proc") if name.isdigit()]}))
""")
    assert run(program).record["task_result"] == [1, 2]


def test_the_folder_of_another_scenario_is_not_seen(isolated: Agent) -> None:
    program = isolated("""
import json, os
place = os.path.dirname(os.environ["MCP_CONFIG"])
print(json.dumps({"task_result": [os.path.basename(place), os.listdir(os.path.dirname(place)), os.listdir(place)]}))
""")
    (Path(program._parent) / "agent-other").mkdir()
    own, beside, inside = run(program).record["task_result"]
    assert (beside, sorted(inside)) == ([own], ["mcp.json", "work"])


def test_an_orphan_that_ends_is_gone(agent: Agent) -> None:
    """A daemon is often waited for by its id, which a process that nobody has waited for keeps."""
    program = agent("""
import os, sys, time
read, write = os.pipe()
if os.fork() == 0:
    if (child := os.fork()) == 0:
        os.read(read, 1)
        os._exit(0)
    print(child, flush=True)
    os.write(write, child.to_bytes(4, "big"))
    os._exit(0)
orphan = int.from_bytes(os.read(read, 4), "big")
os.wait()
os.write(write, b"x")
while os.path.exists(f"/proc/{orphan}"):
    time.sleep(0.01)
""")
    assert run(program).failure is None


def test_signals_are_those_of_any_program(tmp_path: Path) -> None:
    """An interpreter ignores some, and programs that it starts would go on doing so."""
    seen = tmp_path / "seen"
    assert run(CommandAgent(f"sh -c 'grep SigIgn /proc/self/status > {seen}'", "http")).failure is None
    assert int(seen.read_text().split()[1], 16) == 0


def test_a_machine_without_namespaces_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused = "import os; os.write(1, b'error 1')"
    supervisor = "guarantee_email_agent.eval.agents.command_agent._SUPERVISOR"
    monkeypatch.setattr(supervisor, (sys.executable, "-I", "-c", refused))
    CommandAgent("true", "http").check()
    (message,) = caplog.messages
    assert message.startswith("Programs are isolated less than usual (no namespaces: Operation not permitted): one can")


def test_nothing_is_left_of_an_evaluation_that_was_killed(tmp_path: Path) -> None:
    """SIGKILL leaves it no time for anything."""
    ScenarioFolder(tmp_path / "scenarios", Config()).write(1)
    started, temporary = tmp_path / "started", tmp_path / "temporary"
    temporary.mkdir()
    program = tmp_path / "agent.py"
    program.write_text(f"{DETACH}open({str(started)!r}, 'w').close()\ntime.sleep(600)\n")
    command = [*MODULE, "eval", "--eval-dir", tmp_path / "scenarios", "--agent", f"command:{sys.executable} {program}"]
    variables = environment(**{MARK: str(tmp_path), "TMPDIR": str(temporary)})
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as evaluation:
        wait_until(started.exists)
        evaluation.send_signal(signal.SIGKILL)
    wait_until(lambda: not left(tmp_path) and not any(temporary.iterdir()))
