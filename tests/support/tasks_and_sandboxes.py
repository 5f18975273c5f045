"""Fixtures for tasks: task directories, a sandbox that is the HTTP API over a folder, and what agents are made with."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from guarantee_email_agent.judging.task import Task, load_task
from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.solving.agents.agent import TaskContext
from guarantee_email_agent.solving.run_limits import Deadline
from guarantee_email_agent.solving.sandbox_tools import ClientType, tools_for
from guarantee_email_agent.solving.tools import ToolCall
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.parallel import Interruption

MakeTask = Callable[..., Task]


class StubSandbox:
    """Serves the API from `folder`. `pages`: what the browser's GETs and POSTs answer. `asked`: path and payload."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages: dict[str, Any] = {}
        self.asked: list[tuple[str, Any]] = []
        self.stops = 0
        self.limitations: tuple[str, ...] = ()
        sandbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                payload = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
                self._answer(urlsplit(self.path).path, payload)

            def do_GET(self) -> None:
                url = urlsplit(self.path)
                self._answer(url.path, {name: values[0] for name, values in parse_qs(url.query).items()})

            def _answer(self, path: str, payload: Mapping[str, Any]) -> None:
                sandbox.asked.append((path, payload))
                status, body = 200, b""
                try:
                    data = sandbox.answer(path, payload)
                    if isinstance(data, bytes):
                        body = data
                    else:
                        body = json.dumps({"success": True, "message": "done", "data": data}).encode()
                except (OSError, KeyError) as error:
                    status, body = 400, json.dumps({"success": False, "message": str(error), "data": None}).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def docker_port(self) -> int:
        return self._http.server_port

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.docker_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stops += 1
        if self.stops == 1:
            self._http.shutdown()
            self._thread.join()
            self._http.server_close()

    def answer(self, path: str, payload: Mapping[str, Any]) -> Any:
        if path in self.pages:
            return self.pages[path]
        if path == "/v1/sandbox":
            return "a stub"
        if path == "/v1/shell/exec":
            command = ["bash", "-c", payload["command"]]
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
            return {"output": done.stdout + done.stderr, "exit_code": done.returncode, "status": "completed"}
        place = self.folder / payload["path" if path == "/v1/file/download" else "file"].lstrip("/")
        if path == "/v1/file/write":
            return {"file": str(place), "bytes_written": place.write_text(payload["content"])}
        if path == "/v1/file/read":
            return {"file": str(place), "content": place.read_text()}
        if path == "/v1/file/download":
            return place.read_bytes()
        raise KeyError(path)


@pytest.fixture
def stub_sandbox(tmp_path: Path) -> Iterator[StubSandbox]:
    (tmp_path / "root").mkdir()
    sandbox = StubSandbox(tmp_path / "root")
    sandbox.start()
    yield sandbox
    sandbox.stop()


@pytest.fixture
def stub_client(stub_sandbox: StubSandbox) -> SandboxClient:
    return SandboxClient(stub_sandbox.base_url)


class Sandboxes:
    """Opens one for each task; `opened` has them all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: dict[str, StubSandbox] = {}

    @contextmanager
    def __call__(self, task: Task) -> Iterator[StubSandbox]:
        place = self.folder / task.name
        place.mkdir(parents=True, exist_ok=True)
        sandbox = self.opened[task.name] = StubSandbox(place)
        sandbox.start()
        try:
            yield sandbox
        finally:
            sandbox.stop()


@pytest.fixture
def sandboxes(tmp_path: Path) -> Sandboxes:
    return Sandboxes(tmp_path / "sandboxes")


JUDGE = """
def test(result):
    return {"passed": result["task_result"] == "42", "feedback": f"answered {result['task_result']!r}"}
"""


def write_task(
    folder: Path, task_yaml: str | bytes | None = "instruction: Say 42\n", judge: str | None = JUDGE
) -> Path:
    """A task directory; None leaves the file out."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("task.yaml", task_yaml), ("test.py", judge)):
        if content is not None:
            (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    def make(name: str = "sum", judge: str = JUDGE, settings: str = "", instruction: str = "Add 40 and 2.") -> Task:
        task_yaml = f"instruction: {json.dumps(instruction)}\n{settings}"
        return load_task(write_task(tmp_path / "tasks" / name, task_yaml, judge))

    return make


def task_context(
    instruction: str = "Add 40 and 2.", seconds: float = 60.0, interruption: Interruption | None = None
) -> TaskContext:
    """What an agent knows of a task with every tool, and of a sandbox that is not there."""
    deadline = Deadline(seconds, SystemClock(), interruption or Interruption())
    facts = {"docker_port": 8080, "client_type": "unified", "base_url": "http://127.0.0.1:8080"}
    return TaskContext("sum", instruction, tools_for(ClientType.UNIFIED), facts, deadline)


def tool_call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(f"id_{name}", name, arguments)


def shell(command: str) -> ToolCall:
    return tool_call("shell_execute", command=command)


def complete(result: str = "42") -> ToolCall:
    return tool_call("task_complete", result=result)


def read_json(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())


class SolveFolders:
    """Where `solve` finds its tasks and leaves its records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tasks = folder / "tasks"
        self.results = folder / "results"

    def record(self, name: str) -> dict[str, Any]:
        return read_json(self.results / f"{name}.json")


@pytest.fixture
def is_running() -> Callable[[str], bool]:
    """Whether some process here has this text in its command line."""

    def is_running(text: str) -> bool:
        return text in subprocess.run(["ps", "-Awwo", "args"], capture_output=True, text=True, check=True).stdout

    return is_running


def terminate_once(begun: Path) -> None:
    """Send SIGTERM to this process as soon as a file is there."""
    for _ in range(2000):
        if begun.exists():
            break
        threading.Event().wait(0.01)
    os.kill(os.getpid(), signal.SIGTERM)
