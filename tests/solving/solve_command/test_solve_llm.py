"""A language model at work: the real client, and a server on loopback that speaks its protocol."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from guarantee_email_agent.config.settings import Config, Llm, Secrets
from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.solving.run_limits import RunLimits

MakeTask = Callable[..., Task]


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
def model_server(bench: Any) -> Iterator[ModelServer]:
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
    bench: Any, make_task: MakeTask, model_server: ModelServer
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
    bench: Any, make_task: MakeTask, model_server: ModelServer
) -> None:
    make_task("sum")
    model_server.fails(401, "invalid key")
    assert bench.solve(agent="llm", command=None) == 4
    record = bench.record("sum")
    assert (record["reason"]["code"], record["finished"], record["eval"]["verdict"]) == ("model_error", False, "error")
    assert "Check ANTHROPIC_API_KEY" in record["reason"]["message"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_while_the_model_thinks_leaves_a_valid_record(
    bench: Any, make_task: MakeTask, model_server: ModelServer, number: signal.Signals
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


def test_refusal_is_a_failed_run_that_is_judged(bench: Any, make_task: MakeTask, model_server: ModelServer) -> None:
    make_task("sum")
    model_server.says({"type": "text", "text": "No."}, stop_reason="refusal")
    assert bench.solve(agent="llm", command=None) == 4
    record = bench.record("sum")
    assert (record["reason"]["code"], record["finished"], record["eval"]["verdict"]) == ("refused", True, "failed")


def test_cost_limit_ends_a_run(bench: Any, make_task: MakeTask, model_server: ModelServer) -> None:
    make_task("sum")
    model_server.says(use(1, "shell_execute", command="true"))
    assert bench.solve(agent="llm", command=None, limits=RunLimits(max_cost_usd=0.008)) == 4
    record = bench.record("sum")
    assert (record["reason"]["code"], record["cost_usd"], record["iterations"]) == ("max_cost", 0.009, 3)
