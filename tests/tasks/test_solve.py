"""The whole of `solve` over folders of tasks."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent import cli
from guarantee_email_agent.config.models import Config, Llm, Secrets
from guarantee_email_agent.tasks.limits import Limits
from guarantee_email_agent.tasks.models import Task
from guarantee_email_agent.tasks.solve import SolveOptions, solve_command
from guarantee_email_agent.utils.errors import ConfigurationError, TaskError

MakeTask = Callable[..., Task]


class Bench:
    def __init__(self, folder: Path, sandboxes: Any) -> None:
        self.tasks = folder / "tasks"
        self.results = folder / "results"
        self.sandboxes = sandboxes
        self.config = Config()
        self.out = io.StringIO()

    def solve(self, **options: Any) -> int:
        self.out = io.StringIO()
        options = {"agent": "command", "command": "echo 42", **options}
        settings: dict[str, Any] = {"directory": self.tasks, "out_dir": self.results, **options}
        return solve_command(
            SolveOptions(**settings),
            self.out,
            io.StringIO(),
            load_config=lambda: self.config,
            started=lambda: "2026-01-18T10:00:00Z",
            open_sandbox=self.sandboxes,
            connect=self.sandboxes.connect,
        )

    def record(self, name: str) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self.results / f"{name}.json").read_text())
        return record


@pytest.fixture
def bench(tmp_path: Path, sandboxes: Any) -> Bench:
    return Bench(tmp_path, sandboxes)


def test_all_passed_is_a_success(bench: Bench, make_task: MakeTask) -> None:
    make_task("one")
    make_task("two")
    assert bench.solve() == 0
    assert "Pass rate: 2/2 (100%)" in bench.out.getvalue()
    assert [bench.record(name)["eval"]["verdict"] for name in ("one", "two")] == ["passed", "passed"]


def test_single_task_directory_will_do(bench: Bench, make_task: MakeTask) -> None:
    assert bench.solve(directory=make_task("one").directory) == 0
    assert "Solving 1 task..." in bench.out.getvalue()


def test_one_failure_is_an_evaluation_failure(bench: Bench, make_task: MakeTask) -> None:
    make_task("one")
    make_task("two", judge='def test(result):\n    return {"passed": False, "feedback": "never"}\n')
    assert bench.solve() == 4
    assert "✗ two - FAILED\n    never" in bench.out.getvalue()


def test_task_that_cannot_be_used_counts_as_an_error(bench: Bench, make_task: MakeTask) -> None:
    make_task("one")
    (bench.tasks / "two").mkdir()
    assert bench.solve() == 4
    assert "✗ Errors: 1" in bench.out.getvalue()


def test_finished_tasks_are_skipped(bench: Bench, make_task: MakeTask) -> None:
    make_task("one")
    bench.solve()
    make_task("two")
    assert bench.solve(command="echo 43") == 4
    assert "Solving 2 tasks..., 1 of them finished before; --run-all repeats them" in bench.out.getvalue()
    assert [bench.record(name)["task_result"] for name in ("one", "two")] == ["42", "43"]


def test_failed_tasks_are_finished_too(bench: Bench, make_task: MakeTask) -> None:
    make_task("one")
    assert bench.solve(command="echo 41") == 4
    assert bench.solve() == 4
    assert bench.record("one")["task_result"] == "41"


def test_run_all_repeats_them(bench: Bench, make_task: MakeTask) -> None:
    make_task("one")
    bench.solve()
    assert bench.solve(command="echo 43", run_all=True) == 4
    assert bench.record("one")["task_result"] == "43"


def test_task_that_could_not_be_worked_on_is_repeated(bench: Bench, make_task: MakeTask) -> None:
    make_task("one")
    assert bench.solve(command="nonesuch-program") == 4
    assert bench.record("one")["eval"]["verdict"] == "error"
    assert bench.solve() == 0


def test_several_at_a_time_have_a_sandbox_each_and_keep_their_order(bench: Bench, make_task: MakeTask) -> None:
    for number in range(4):
        make_task(f"task{number}")
    # Each waits until all have begun, so that one after the other would never end.
    waiting = (
        f"touch {bench.results}/$TASK_NAME.begun; while [ $(ls {bench.results}/*.begun | wc -l) -lt 4 ]; do :; done"
    )
    command = f"sh -c '{waiting}; echo 42'"
    report = bench.results.parent / "report.json"
    assert bench.solve(command=command, jobs=4, json_file=report, limits=Limits(wall_time_s=30)) == 0
    assert len({sandbox.base_url for sandbox in bench.sandboxes.opened.values()}) == 4
    results = json.loads(report.read_text())["results"]
    assert [result["task_name"] for result in results] == [f"task{number}" for number in range(4)]


def test_json_has_the_shape_of_grade(bench: Bench, make_task: MakeTask) -> None:
    make_task("one")
    report = bench.results.parent / "report.json"
    bench.solve(json_file=report)
    content = json.loads(report.read_text())
    assert (content["schema_version"], content["totals"]) == (1, {"total": 1, "passed": 1, "failed": 0, "error": 0})
    assert content["results"][0].keys() == {"task_name", "verdict", "eval", "error", "output", "duration_ms"}


def test_script_works_in_the_sandbox(bench: Bench, make_task: MakeTask, tmp_path: Path) -> None:
    make_task("sum")
    script = tmp_path / "script.yaml"
    script.write_text(
        "- {action_type: shell, command: 'echo $((40 + 2)) | tee sum.txt'}\n"
        "- {action_type: task_complete, result: '42'}\n"
    )
    assert bench.solve(agent="script", command=None, script=script) == 0
    assert bench.record("sum")["execution_trace"][0]["feedback"] == {"done": False, "message": "42"}
    assert (bench.sandboxes.opened["sum"].folder / "sum.txt").read_text() == "42\n"


def test_missing_script_of_one_task_does_not_stop_the_others(bench: Bench, make_task: MakeTask, tmp_path: Path) -> None:
    make_task("one")
    make_task("two")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "two.yaml").write_text("- {action_type: task_complete, result: '42'}\n")
    assert bench.solve(agent="script", command=None, script=tmp_path / "scripts") == 4
    assert "there is no script one.yaml" in bench.record("one")["eval"]["error"]
    assert bench.record("two")["eval"]["verdict"] == "passed"


@pytest.mark.parametrize("jobs", [1, 2])
def test_sigterm_and_ctrl_c_leave_valid_records(bench: Bench, make_task: MakeTask, jobs: int) -> None:
    for name in ("one", "two"):
        make_task(name)
    begun = bench.results.parent / "begun"
    watcher = threading.Thread(target=_terminate_once, args=(begun,))
    watcher.start()
    code = bench.solve(command=f"sh -c 'touch {begun}; sleep 300'", jobs=jobs)
    watcher.join()
    assert code == 130
    assert "Interrupted: 0 of 2 were judged" in bench.out.getvalue()
    record = bench.record("one")
    assert (record["status"], record["reason"]["code"], record["finished"]) == ("failed", "interrupted", False)
    assert all(sandbox.stops for sandbox in bench.sandboxes.opened.values())
    assert bench.solve() == 0


def _terminate_once(begun: Path) -> None:
    for _ in range(2000):
        if begun.exists():
            break
        threading.Event().wait(0.01)
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"agent": "script", "command": None}, "--agent script needs --script"),
        ({"agent": "command", "command": None}, "--agent command needs --command"),
        ({"agent": "human"}, "--command goes with --agent command, not human"),
        ({"agent": "human", "command": None}, "--agent human needs a terminal"),
        ({"model": "claude-opus-5"}, "--model goes with --agent llm, not command"),
        ({"agent": "llm", "command": None}, "ANTHROPIC_API_KEY is not set"),
        ({"command": "echo '"}, "Close the quotes"),
        ({"json_file": Path("/nonesuch/report.json")}, "the folder does not exist"),
    ],
)
def test_bad_usage_shows_before_anything_starts(
    bench: Bench, make_task: MakeTask, options: Mapping[str, Any], says: str
) -> None:
    make_task("one")
    with pytest.raises(ConfigurationError, match=says):
        bench.solve(**options)
    assert not bench.sandboxes.opened


def test_folder_without_tasks_is_a_usage_error(bench: Bench) -> None:
    bench.tasks.mkdir()
    with pytest.raises(TaskError):
        bench.solve()


def test_output_folder_that_cannot_be_made_is_a_usage_error(bench: Bench, make_task: MakeTask) -> None:
    make_task("one")
    bench.results.write_text("in the way")
    with pytest.raises(ConfigurationError, match="--output-dir"):
        bench.solve()


def test_cost_limit_needs_a_known_price(bench: Bench, make_task: MakeTask) -> None:
    make_task("one")
    with pytest.raises(ConfigurationError, match="the price of qwen3 is not known"):
        bench.solve(agent="llm", command=None, model="qwen3", limits=Limits(max_cost_usd=1))


class ModelServer:
    """Speaks `/v1/messages`; each reply is (status, body), and the last one stays. `hangs_from`: a request's number."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, dict[str, Any]]] = []
        self.requests: list[dict[str, Any]] = []
        self.hangs_from: int | None = None
        self.reached, self.over = threading.Event(), threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                if len(server.requests) == server.hangs_from:
                    server.reached.set()
                    server.over.wait(30)
                    return
                status, body = server.replies.pop(0) if len(server.replies) > 1 else server.replies[0]
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.send_header("retry-after-ms", "1")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True

    def says(self, *content: Mapping[str, Any], stop_reason: str = "tool_use") -> None:
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5-5-20260928",
            "content": list(content),
            "stop_reason": stop_reason,
            "usage": {"input_tokens": 1000, "output_tokens": 100},
        }
        self.replies.append((200, message))

    def fails(self, status: int, message: str) -> None:
        self.replies.append((status, {"type": "error", "error": {"type": "some_error", "message": message}}))


@pytest.fixture
def model_server(bench: Bench) -> Iterator[ModelServer]:
    server = ModelServer()
    thread = threading.Thread(target=server.http.serve_forever, args=(0.01,))
    thread.start()
    bench.config = Config(
        llm=Llm(model="claude-sonnet-5-5", temperature=None),
        secrets=Secrets(anthropic_api_key="test-key", anthropic_base_url=f"http://127.0.0.1:{server.http.server_port}"),
    )
    yield server
    server.over.set()
    server.http.shutdown()
    thread.join()
    server.http.server_close()


def use(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}


def test_language_model_solves_a_task_with_the_real_client(
    bench: Bench, make_task: MakeTask, model_server: ModelServer
) -> None:
    make_task("sum")
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    model_server.fails(529, "Overloaded")
    model_server.says(
        thinking,
        {"type": "text", "text": "Both."},
        use(1, "shell_execute", command="echo $((40 + 2))"),
        use(2, "nonesuch"),
    )
    model_server.says(use(3, "task_complete", answer="42"))
    model_server.says(use(4, "shell_execute", command="touch late"), use(5, "task_complete", result="42"))
    assert bench.solve(agent="llm", command=None) == 0
    record = bench.record("sum")
    assert (record["status"], record["iterations"], record["task_result"]) == ("success", 3, "42")
    assert (record["model"], record["tokens"]["total"]) == ("claude-sonnet-5-5-20260928", 3300)
    assert record["cost_usd"] == pytest.approx(3 * (1000 * 2 + 100 * 10) / 1e6)
    messages = [step["feedback"]["message"] for step in record["execution_trace"]]
    assert messages[0] == "42"
    assert messages[1].startswith("There is no tool 'nonesuch'")
    assert messages[2].startswith("task_complete: result is missing")
    last = model_server.requests[-1]
    assert last["tool_choice"] == {"type": "auto"}
    assert last["messages"][1]["content"][0] == thinking
    assert [block["type"] for block in last["messages"][1]["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block["tool_use_id"] for block in last["messages"][2]["content"]] == ["toolu_1", "toolu_2"]


def test_model_that_cannot_be_asked_is_an_error_and_repeated(
    bench: Bench, make_task: MakeTask, model_server: ModelServer
) -> None:
    make_task("sum")
    model_server.fails(401, "invalid key")
    assert bench.solve(agent="llm", command=None) == 4
    record = bench.record("sum")
    assert (record["reason"]["code"], record["finished"], record["eval"]["verdict"]) == ("model_error", False, "error")
    assert "Check ANTHROPIC_API_KEY" in record["reason"]["message"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_while_the_model_thinks_leaves_a_valid_record(
    bench: Bench, make_task: MakeTask, model_server: ModelServer, number: signal.Signals
) -> None:
    make_task("sum")
    model_server.says(use(1, "shell_execute", command="echo one"))
    model_server.says(use(2, "task_complete", result="42"))
    model_server.hangs_from = 2

    def interrupt() -> None:
        assert model_server.reached.wait(30)
        os.kill(os.getpid(), number)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    code = bench.solve(agent="llm", command=None)
    watcher.join()
    record = bench.record("sum")
    assert (code, record["reason"]["code"], record["finished"]) == (130, "interrupted", False)
    assert record["execution_trace"][0]["feedback"]["message"] == "one"


def test_refusal_is_a_failed_run_that_is_judged(bench: Bench, make_task: MakeTask, model_server: ModelServer) -> None:
    make_task("sum")
    model_server.says({"type": "text", "text": "No."}, stop_reason="refusal")
    assert bench.solve(agent="llm", command=None) == 4
    record = bench.record("sum")
    assert (record["reason"]["code"], record["finished"], record["eval"]["verdict"]) == ("refused", True, "failed")


def test_cost_limit_ends_a_run(bench: Bench, make_task: MakeTask, model_server: ModelServer) -> None:
    make_task("sum")
    model_server.says(use(1, "shell_execute", command="true"))
    assert bench.solve(agent="llm", command=None, limits=Limits(max_cost_usd=0.008)) == 4
    record = bench.record("sum")
    assert (record["reason"]["code"], record["cost_usd"], record["iterations"]) == ("max_cost", 0.009, 3)


def test_help_lists_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["solve", "--help"]) == 0
    assert "exit codes:" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve"],
        ["solve", "tasks", "--agent", "robot"],
        ["solve", "tasks", "--jobs", "0"],
        ["solve", "tasks", "--max-cost", "-1"],
        ["solve", "tasks", "--time-limit", "0"],
        ["solve", "nonesuch", "--agent", "command", "--command", "echo"],
    ],
)
def test_bad_usage_ends_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
