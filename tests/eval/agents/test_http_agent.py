from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from guarantee_email_agent.eval.agents.agent import AgentRun, AgentTask
from guarantee_email_agent.eval.agents.http_agent import HttpAgent
from guarantee_email_agent.utils.errors import ConfigurationError

Answer = Callable[[BaseHTTPRequestHandler], None]


class Service:
    """Answers every POST by `answer`; `received` holds what came."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.answer: Answer = lambda handler: respond(handler)
        self.released = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.received.append((self.path, json.loads(body)))
                service.answer(self)

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/answer"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


def respond(handler: BaseHTTPRequestHandler, body: bytes = b"", status: int = 200) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def service() -> Iterator[Service]:
    service = Service()
    yield service
    service.close()


def wait_for_the_end(handler: BaseHTTPRequestHandler) -> None:
    handler.rfile.read(1)  # until the other side hangs up


def run(service: Service, timeout_s: float = 30.0, stopped_by: Callable[[], str | None] = lambda: None) -> AgentRun:
    return HttpAgent(service.url).run(AgentTask({"body": "ü"}, {"mail": "http://127.0.0.1:9/x"}, timeout_s, stopped_by))


def test_it_gets_the_task_and_is_done_with_200(service: Service) -> None:
    HttpAgent(service.url).check()
    assert run(service) == AgentRun(printed={"response": ""})
    servers = {"mail": {"type": "http", "url": "http://127.0.0.1:9/x"}}
    assert service.received == [("/answer", {"email": {"body": "ü"}, "mcp_servers": servers})]


def test_its_answer_may_be_a_record(service: Service) -> None:
    service.answer = lambda handler: respond(handler, b'{\n  "task_result": "done"\n}')
    assert run(service).record == {"task_result": "done"}


@pytest.mark.parametrize("status", [201, 302, 404, 500])
def test_any_other_status_is_a_failure(service: Service, status: int) -> None:
    service.answer = lambda handler: respond(handler, b"what went wrong", status)
    failed = run(service)
    assert failed.failure == f"the agent answered with status {status}"
    assert failed.printed == {"response": "what went wrong"}
    assert len(service.received) == 1


def test_the_deadline(service: Service) -> None:
    service.answer = wait_for_the_end
    assert run(service, timeout_s=0.3).failure == "the time was over (0.3 s) before the agent was done"


def test_an_answer_that_drips(service: Service) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not service.released.wait(0.05):
            handler.wfile.write(b"x")

    service.answer = drip
    cut_off = run(service, timeout_s=0.5)
    assert "the time was over" in (cut_off.failure or "")
    assert set(cut_off.printed["response"]) == {"x"}


def test_it_is_cut_off_where_the_mocks_say_so(service: Service) -> None:
    service.answer = wait_for_the_end
    assert run(service, stopped_by=lambda: "too many calls").failure == "too many calls"


def test_one_that_hangs_up(service: Service) -> None:
    service.answer = lambda handler: handler.connection.close()
    assert (run(service).failure or "").startswith("the agent gave no answer: ")


def test_one_that_is_not_there(service: Service) -> None:
    service.close()
    with pytest.raises(ConfigurationError, match="nothing answers there"):
        HttpAgent(service.url).check()
    assert "the agent gave no answer: " in (run(service).failure or "")


@pytest.mark.parametrize(
    "url", ["http://example.com/", "http://10.0.0.1:80/x", "http://", "http://127.0.0.1:99999/", "http://127.0.0.1/ü"]
)
def test_only_this_machine_can_be_asked(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is no URL of this machine"):
        HttpAgent(url)
