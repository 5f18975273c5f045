import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from guarantee_email_agent.eval.agents.agent import AgentRun, AgentTask
from guarantee_email_agent.eval.agents.command_agent import CommandAgent, PythonAgent
from guarantee_email_agent.utils.errors import ConfigurationError

pytestmark = pytest.mark.slow

EMAIL = {"subject": "größer", "body": "a\nb"}
LOOPBACK = "127.0.0.1,localhost"
URLS = {"mail": "http://127.0.0.1:9/token/mail/mcp"}


def task(timeout_s: float = 30.0, stopped_by: Callable[[], str | None] = lambda: None) -> AgentTask:
    return AgentTask(EMAIL, URLS, timeout_s, stopped_by)


def python(tmp_path: Path, body: str, given: AgentTask | None = None) -> AgentRun:
    (tmp_path / "agent.py").write_text(body, encoding="utf-8")
    return checked(f"{sys.executable} {tmp_path}/agent.py").run(given or task())


def checked(command: str) -> CommandAgent:
    """An agent that is isolated as far as this machine allows."""
    agent = CommandAgent(command, "http")
    agent.check()
    return agent


def test_it_gets_the_mail_and_the_servers(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    body = f"import os, sys; open({str(seen)!r}, 'w').write(sys.stdin.read() + open(os.environ['MCP_CONFIG']).read())"
    assert python(tmp_path, body) == AgentRun(printed={"stdout": "", "stderr": ""})
    line, config = seen.read_text().split("\n")
    servers = {"mail": {"type": "http", "url": URLS["mail"]}}
    assert json.loads(line) == {"email": EMAIL, "mcp_servers": servers}
    assert json.loads(config) == {"mcpServers": servers}


def test_its_folder_is_empty_and_goes_with_it(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    python(tmp_path, f"import os; open({str(seen)!r}, 'w').write(repr((os.listdir(), os.getcwd()))); open('x', 'w')")
    files, folder = eval(seen.read_text())
    assert (files, os.path.exists(folder)) == ([], False)


@pytest.mark.parametrize(("given", "hosts"), [(None, LOOPBACK), ("example.com", f"example.com,{LOOPBACK}")])
def test_no_proxy_stands_before_the_mocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, hosts: str
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    if given:
        monkeypatch.setenv("NO_PROXY", given)
    body = "import json, os; print(json.dumps({'task_result': [os.environ['no_proxy'], os.environ['NO_PROXY']]}))"
    assert python(tmp_path, body).record["task_result"] == [hosts, hosts]


def test_files_of_this_folder_are_found_from_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agent.py").write_text('print(\'{"task_result": "here"}\')')
    monkeypatch.chdir(tmp_path)
    assert CommandAgent(f"{sys.executable} agent.py", "http").run(task()).record == {"task_result": "here"}


@pytest.mark.parametrize(
    ("printed", "record"),
    [
        ('{"task_result": "done"}', {"task_result": "done"}),
        ('log\n{"task_result": 1}\n\n', {"task_result": 1}),
        ('{"task_result": "done"}\nlog', {}),
        ('{"result": "done"}', {}),
        ("[" * 100_000, {}),
        ("", {}),
        ("\udcff", {}),
    ],
)
def test_the_last_line_may_be_a_record(tmp_path: Path, printed: str, record: dict[str, object]) -> None:
    body = f"import sys; sys.stdout.buffer.write({printed!r}.encode('utf-8', 'surrogateescape'))"
    run = python(tmp_path, body)
    assert (run.failure, run.record) == (None, record)


def test_of_an_exception_the_last_line_is_told(tmp_path: Path) -> None:
    failure = python(tmp_path, "raise ValueError('bad')").failure
    assert failure == "the program ended with exit code 1: ValueError: bad"


def test_it_cannot_say_itself_how_it_ended(tmp_path: Path) -> None:
    """Whatever it writes to what it holds besides its streams."""
    body = """
import contextlib, os, sys
for descriptor in range(3, 256):
    with contextlib.suppress(OSError):
        os.write(descriptor, b"exit 0\\n")
sys.exit(3)
"""
    assert python(tmp_path, body).failure == "the program ended with exit code 3"


def test_a_program_that_went_away_meanwhile(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    agent = CommandAgent(str(program), "http")
    program.unlink()
    assert agent.run(task()).failure == "the program cannot be started (No such file or directory)"


def test_it_is_ended_at_once_where_the_mocks_say_so(tmp_path: Path) -> None:
    assert (
        python(tmp_path, "import time; time.sleep(60)", task(60, lambda: "too many calls")).failure == "too many calls"
    )


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_flood_is_cut_off_and_both_its_ends_are_kept(tmp_path: Path, stream: str) -> None:
    body = f"import sys\nsys.{stream}.write('begin')\nfor _ in range(1_000): sys.{stream}.write('x' * 999_999 + '.')"
    run = python(tmp_path, f"{body}\nsys.{stream}.flush()\nimport time; time.sleep(60)")
    assert (run.failure or "").startswith("the program printed more than 10 MB")
    kept = run.printed[stream]
    assert kept.startswith("beginxxx")
    assert int(kept.partition("[… ")[2].partition(" ")[0]) > 9_900_000
    assert len(kept) < 40_000


@pytest.mark.parametrize(
    ("body", "failure", "printed"),
    [
        ("say(b'out', b'err')", None, ("out", "err")),
        ("say(b'a\\xffb', b'\\xfe')", None, ("a\ufffdb", "\ufffd")),
        ("say(b'out', b'err'); os.close(1); os.write(2, b', closed')", None, ("out", "err, closed")),
        ("say(b'out', b'err'); os.kill(os.getpid(), 9)", "the program was ended by signal 9: err", ("out", "err")),
        (
            "say(b'out', b'err'); time.sleep(60)",
            "the time was over (1 s) before the agent was done: err",
            ("out", "err"),
        ),
    ],
)
def test_what_it_printed_is_kept(tmp_path: Path, body: str, failure: str | None, printed: tuple[str, str]) -> None:
    say = "import os, time\ndef say(out, err): os.write(1, out); os.write(2, err)\n"
    run = python(tmp_path, say + body, task(timeout_s=1.0 if "sleep" in body else 30.0))
    assert (run.failure, run.printed) == (failure, dict(zip(("stdout", "stderr"), printed, strict=True)))


def test_secrets_of_the_environment_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "MODEL_KEY": 'opaque"value',
        "SERVICE": "sk-4f8a1b2c3d4e5f6a7b8c9d0e",
        "DATABASE": "postgres://agent:hunter22@db/mails",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    body = (
        "import json, os, sys\n"
        f"said = ' '.join(os.environ[name] for name in {list(secrets)})\n"
        "print(json.dumps({'task_result': said}))\n"
        "sys.exit(said)\n"
    )
    run = python(tmp_path, body)
    told = "[$MODEL_KEY] [$SERVICE] postgres://agent:[$DATABASE]@db/mails"
    assert run.record == {"task_result": told}
    assert run.printed == {"stdout": f'{{"task_result": "{told}"}}\n', "stderr": f"{told}\n"}
    assert run.failure == f"the program ended with exit code 1: {told}"


def test_a_command_that_cannot_be_used() -> None:
    with pytest.raises(ConfigurationError, match="--agent command: there is no program 'nonesuch'"):
        CommandAgent("nonesuch --now", "http")


class TestPythonAgent:
    @pytest.fixture
    def agent(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., PythonAgent]:
        monkeypatch.chdir(tmp_path)

        def write(body: str, place: str = "my_agent:answer") -> PythonAgent:
            (tmp_path / "my_agent.py").write_text(body)
            return PythonAgent(place, "http")

        return write

    def test_it_is_called_with_the_task(self, agent: Callable[..., PythonAgent]) -> None:
        function = agent("def answer(task): return {'task_result': task['email']['subject'], 'iterations': 2}")
        function.check()
        assert function.run(task()).record == {"task_result": "größer", "iterations": 2}

    def test_one_that_is_async_is_awaited(self, agent: Callable[..., PythonAgent]) -> None:
        function = agent("async def answer(task): return {'task_result': task['email']['subject']}")
        assert function.run(task()).record == {"task_result": "größer"}

    @pytest.mark.parametrize(
        ("body", "place", "problem"),
        [
            ("", "my_agent", "names no function"),
            ("", "my_agent:", "names no function"),
            ("", "other_agent:answer", "No module named 'other_agent'"),
            ("", "my_agent:answer", "has no attribute 'answer'"),
            ("answer = 5", "my_agent:answer", "answer is no function"),
            ("import sys; sys.exit(0)", "my_agent:answer", "SystemExit: 0"),
            ("syntax error", "my_agent:answer", "SyntaxError"),
        ],
    )
    def test_a_function_that_cannot_be_called(
        self, agent: Callable[..., PythonAgent], body: str, place: str, problem: str
    ) -> None:
        with pytest.raises(ConfigurationError, match=problem):
            agent(body, place).check()
