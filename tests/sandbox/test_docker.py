"""Sandboxes in containers, with a `docker` that writes down what it is asked and serves the API itself."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tasks_and_sandboxes import MakeTask, terminate_once

from guarantee_email_agent import cli
from guarantee_email_agent.config.task_allowance import TaskAllowance
from guarantee_email_agent.judging.task import Task, load_task
from guarantee_email_agent.sandbox import SandboxLimits, docker, open_sandbox
from guarantee_email_agent.utils.errors import TaskError

pytestmark = pytest.mark.slow

# `answers`: what it does for a command, {"output", "code", "address", "status"}; without one, all goes well.
DOCKER = r"""#!{python}
import json, os, pathlib, signal, subprocess, sys, time
state = pathlib.Path({state!r})
arguments = sys.argv[1:]
words = [word for word in arguments if not word.startswith("-")]
verb = next((word for word in ("up", "down") if word in words), words[0])
context = pathlib.Path(words[-1]) if verb == "build" else None
if verb in ("up", "down"):
    context = pathlib.Path(arguments[arguments.index("--file") + 1]).parent
seen = {{"arguments": arguments, "port": os.environ.get("HOST_PORT"), "key": os.environ.get("ANTHROPIC_API_KEY"),
        "compose": (context / "docker-compose.yaml").read_text() if verb == "up" else None,
        "files": context and sorted(str(each.relative_to(context)) for each in context.rglob("*") if each.is_file())}}
with open(state / "calls", "a") as file:
    file.write(json.dumps(seen) + "\n")
answer = json.loads((state / "answers").read_text()).get(verb, {{}})
SERVER = '''
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def reply(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b'{{"success": true, "data": {{"output": "inside", "exit_code": 0, "status": "completed"}}}}'
        self.send_response(200); self.send_header("content-length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = reply
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
'''
if verb == "version":
    print("28.2.2")
if verb in ("run", "up") and not answer.get("code"):
    port = os.environ.get("HOST_PORT") or arguments[arguments.index("--publish") + 1].split(":")[1]
    (state / "port").write_text(port)
    if not answer.get("silent"):
        server = subprocess.Popen([sys.executable, "-c", SERVER, port], stdin=-3, stdout=-3, stderr=-3)
        (state / "server").write_text(str(server.pid))
if verb in ("rm", "down") and (state / "server").exists():
    os.kill(int((state / "server").read_text()), signal.SIGKILL)
    (state / "server").unlink()
if verb == "ps":
    print("c0ffee")
if verb == "port" and "address" not in answer:
    print(answer.get("other", ""), "127.0.0.1:" + (state / "port").read_text())
if verb == "inspect":
    print(answer.get("status", "running"))
print(answer.get("address", "") or answer.get("output", ""))
if answer.get("hangs"):
    (state / "hangs").touch()
    sys.stdout.flush()
    time.sleep(60)
sys.exit(answer.get("code", 0))
"""


class Docker:
    """The program in PATH, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.answers: dict[str, dict[str, Any]] = {}
        (folder / "bin").mkdir(parents=True)
        program = folder / "bin" / "docker"
        program.write_text(DOCKER.format(python=sys.executable, state=str(folder)))
        program.chmod(0o755)
        self.set_answers()

    def set_answers(self, **answers: dict[str, Any]) -> None:
        self.answers |= answers
        (self.folder / "answers").write_text(json.dumps(self.answers))

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]

    @property
    def commands(self) -> list[list[str]]:
        return [call["arguments"] for call in self.calls]

    @property
    def verbs(self) -> list[str]:
        return [command[0] for command in self.commands]

    def command(self, verb: str) -> list[str]:
        """The first of a kind."""
        return self.commands[self.verbs.index(verb)]

    @property
    def is_serving(self) -> bool:
        return (self.folder / "server").exists()


def _port(task: Task, **options: Any) -> int:
    """The port of a sandbox that is opened and closed again."""
    with open_sandbox(task, "docker", **options) as sandbox:
        return sandbox.docker_port


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Docker]:
    engine = Docker(tmp_path / "docker")
    monkeypatch.setenv("PATH", f"{engine.folder / 'bin'}:{os.environ['PATH']}")
    yield engine
    if engine.is_serving:
        os.kill(int((engine.folder / "server").read_text()), signal.SIGKILL)


@pytest.fixture
def composed(make_task: MakeTask) -> Task:
    return _with_file(make_task(), "docker-compose.yaml", COMPOSE)


def _with_file(task: Task, name: str, text: str = "# what Docker reads is Docker's business\n") -> Task:
    (task.directory / name).write_text(text)
    return load_task(task.directory)


COMPOSE = """\
services:
  client:
    image: anything
    ports: ["${HOST_PORT}:8080"]
"""
COMMAND = ("--agent", "command", "--command", "echo 42")


def _solve(folder: Path, tmp_path: Path, *arguments: str) -> int:
    return cli.run(["solve", str(folder), *arguments, "--sandbox", "docker", "--output-dir", str(tmp_path / "results")])


def _value(command: list[str], option: str) -> str:
    return command[command.index(option) + 1]


def test_without_an_engine_no_task_is_begun(
    engine: Docker, make_task: MakeTask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine.set_answers(version={"code": 1})
    assert _solve(make_task().directory, tmp_path, *COMMAND) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "Start it, or use --sandbox embedded" in err
    assert list((tmp_path / "results").iterdir()) == []


def test_a_task_is_solved_in_a_container(engine: Docker, make_task: MakeTask, tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("- {action_type: shell, command: ls}\n- {action_type: task_complete, result: '42'}\n")
    assert _solve(make_task().directory, tmp_path, "--agent", "script", "--script", str(script)) == 0
    record = json.loads((tmp_path / "results" / "sum.json").read_text())
    assert record["sandbox"]["kind"] == "docker"
    assert record["execution_trace"][0]["feedback"]["message"] == "inside"
    gaps = "".join(record["sandbox"]["gaps"])
    assert ("the network can be reached" in gaps, "how long it and its commands" in gaps) == (True, True)
    assert not engine.is_serving


def test_the_image_runs_on_loopback_with_limits_beside_what_it_needs_itself(
    engine: Docker, make_task: MakeTask
) -> None:
    limits = SandboxLimits(memory_bytes=1 << 30, disk_bytes=1 << 30, processes=99)
    port = _port(make_task(), limits=limits)
    command = engine.command("run")
    assert command[-1] == docker.IMAGE
    assert _value(command, "--publish") == f"127.0.0.1:{port}:8080"
    assert _value(command, "--memory") == _value(command, "--memory-swap") == str(3 << 30)
    assert _value(command, "--pids-limit") == str(99 + 1024)
    assert _value(command, "--label") == docker.LABEL
    assert engine.commands[-1] == ["rm", "--force", "--volumes", _value(command, "--name")]


def test_a_dockerfile_is_built_without_the_judge(engine: Docker, make_task: MakeTask) -> None:
    task = _with_file(_with_file(make_task("a b"), "Dockerfile"), "input.txt")
    (task.directory / "assets").mkdir()
    (task.directory / "assets" / "test.py").write_text("# the agent's own\n")
    engine.set_answers(image={"output": "latest\nlatest-database"})
    _port(task)
    build = next(call for call in engine.calls if call["arguments"][0] == "build")
    image = _value(build["arguments"], "--tag")
    assert build["files"] == ["Dockerfile", "assets/test.py", "input.txt"]
    assert engine.command("run")[-1] == image
    assert engine.commands[-1] == ["image", "rm", "--force", image, f"{image}-database"]
    assert not Path(build["arguments"][-1]).exists()


def test_a_compose_file_runs_as_it_was_checked_with_its_names_and_port_and_without_our_keys(
    engine: Docker, composed: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    engine.set_answers(port={"other": "127.0.0.1:9"})
    port = _port(composed, limits=SandboxLimits(memory_bytes=1 << 30, processes=99))
    version, up, down = (call for call in engine.calls if call["arguments"][0] == "compose")
    assert version["arguments"] == ["compose", "version"]
    assert up["arguments"][:3] == down["arguments"][:3]
    assert up["arguments"][1] == "--project-name"
    assert up["port"] == down["port"] == str(port)
    assert up["files"] == down["files"] == ["docker-compose.yaml"]
    service = json.loads(up["compose"])["services"]["client"]
    assert service["ports"] == ["127.0.0.1:${HOST_PORT}:8080"]
    assert (service["mem_limit"], service["pids_limit"]) == (3 << 30, 99 + 1024)
    assert up["key"] is None
    assert not engine.is_serving


def test_a_compose_file_that_leads_to_the_host_is_never_given_to_docker(engine: Docker, make_task: MakeTask) -> None:
    text = "services: {client: {image: anything, privileged: true}}\n"
    task = _with_file(make_task(), "docker-compose.yaml", text)
    with pytest.raises(TaskError, match=r"services\.client\.privileged\. Remove it, or pass --allow compose_host"):
        _port(task)
    assert not any("up" in command or "down" in command for command in engine.commands)
    _port(task, allowed=TaskAllowance(compose_host=True))
    assert next(call for call in engine.calls if "up" in call["arguments"])["compose"] == text


@pytest.mark.parametrize("name", ["Dockerfile", ".dockerignore", "docker-compose.yaml", ".env"])
def test_what_docker_reads_itself_is_no_link(engine: Docker, make_task: MakeTask, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("root:x:0:0\n")
    task = make_task()
    (task.directory / "Dockerfile").write_text("FROM scratch\n")
    (task.directory / name).unlink(missing_ok=True)
    (task.directory / name).symlink_to(tmp_path / "secret")
    with pytest.raises(TaskError, match=f"{name}.*is a link"):
        _port(load_task(task.directory))
    assert "build" not in engine.verbs


def test_a_task_with_a_fifo_is_not_waited_for(engine: Docker, make_task: MakeTask) -> None:
    task = _with_file(make_task(), "Dockerfile")
    os.mkfifo(task.directory / "pipe")
    with pytest.raises(TaskError, match="cannot be copied to build from"):
        _port(task)
    assert engine.verbs == ["version", "rm", "image", "image"]


def test_a_compose_file_may_have_a_port_of_its_own(engine: Docker, composed: Task, stub_sandbox: Any) -> None:
    allowed = TaskAllowance(compose_host=True)
    engine.set_answers(port={"address": f"0.0.0.0:{stub_sandbox.docker_port}"}, up={"silent": True})
    with open_sandbox(composed, "docker", allowed=allowed) as sandbox:
        assert sandbox.docker_port == stub_sandbox.docker_port
        assert any("to other machines" in each for each in sandbox.limitations)


def test_a_compose_file_without_the_port_is_told_what_to_add(engine: Docker, composed: Task) -> None:
    engine.set_answers(port={"code": 1})
    with pytest.raises(TaskError, match=r'no running service publishes port 8080.*"127\.0\.0\.1:\$\{HOST_PORT\}:8080"'):
        _port(composed)
    assert not engine.is_serving


def test_a_build_that_fails_says_why_and_leaves_nothing(engine: Docker, make_task: MakeTask) -> None:
    output = "ERROR: failed to solve: process \"/bin/sh -c false\"\n\nRun 'docker build --help' for more information"
    engine.set_answers(build={"output": output, "code": 1})
    with pytest.raises(TaskError, match=r"^docker build failed: ERROR: failed to solve: process"):
        _port(_with_file(make_task(), "Dockerfile"))
    assert engine.verbs == ["version", "build", "rm", "image", "image"]


def test_a_container_that_ends_at_once_is_not_waited_for(engine: Docker, make_task: MakeTask) -> None:
    engine.set_answers(run={"silent": True}, inspect={"status": "exited"}, logs={"output": "exec: 'serve': not found"})
    with pytest.raises(TaskError, match=r"ended before it answered\. It said last: exec: 'serve': not found"):
        _port(make_task())
    assert engine.verbs[-1] == "rm"


def test_a_container_that_cannot_be_removed_is_told_with_what_to_do(engine: Docker, make_task: MakeTask) -> None:
    """As where the engine died meanwhile."""
    task = make_task()
    engine.set_answers(rm={"output": "Cannot connect to the Docker daemon", "code": 1})
    with pytest.raises(
        TaskError, match=r"the container task-sum-\d+ could not be removed .*Once Docker runs: docker rm"
    ):
        _port(task)


@pytest.mark.parametrize("verb", ["build", "run"])
def test_a_start_that_takes_long_can_be_interrupted(engine: Docker, make_task: MakeTask, verb: str) -> None:
    engine.set_answers(**{verb: {"hangs": True, "silent": True}})
    task = _with_file(make_task(), "Dockerfile")
    with pytest.raises(TaskError, match="the run was interrupted"):
        _port(task, interrupted=(engine.folder / "hangs").exists)
    assert engine.verbs[-3:] == ["rm", "image", "image"]


def test_sigterm_while_containers_are_built_ends_the_run(engine: Docker, make_task: MakeTask, tmp_path: Path) -> None:
    engine.set_answers(build={"hangs": True})
    for name in ("one", "two"):
        task = _with_file(make_task(name), "Dockerfile")
    watcher = threading.Thread(target=terminate_once, args=(engine.folder / "hangs",))
    watcher.start()
    code = _solve(task.directory.parent, tmp_path, *COMMAND, "--jobs", "2")
    watcher.join()
    assert code == 130
    assert not engine.is_serving


@pytest.mark.parametrize(
    ("task_name", "name"), [("sum", "sum"), ("My Task: ä", "my-task"), ("a__._b-", "a-b"), ("x" * 300, "x" * 100)]
)
def test_names_are_what_docker_takes(task_name: str, name: str) -> None:
    assert docker.container_name(task_name, 4711) == f"task-{name}-4711"
