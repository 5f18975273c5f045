from collections.abc import Callable

import pytest
from messages_server import MessagesServer, Reply

from guarantee_email_agent.eval.agents.agent import AgentRun, AgentTask
from guarantee_email_agent.eval.agents.http_agent import HttpAgent
from guarantee_email_agent.utils.errors import ConfigurationError

NOWHERE = "http://127.0.0.1:9/answer"


def run(
    service: MessagesServer | str, *replies: Reply, timeout_s: float = 30.0, stopped: str | None = None
) -> AgentRun:
    stopped_by: Callable[[], str | None] = lambda: stopped  # noqa: E731
    if isinstance(service, MessagesServer):
        service.replies = list(replies)
        service = f"{service.url}/v1/answer"
        HttpAgent(service).check()
    return HttpAgent(service).run(AgentTask({"body": "ü"}, {"mail": NOWHERE}, timeout_s, stopped_by))


def test_it_gets_the_task_and_is_done_with_200(server: MessagesServer) -> None:
    assert run(server, Reply(b"")) == AgentRun(printed={"response": ""})
    task = {"email": {"body": "ü"}, "mcp_servers": {"mail": {"type": "http", "url": NOWHERE}}}
    assert (server.requests, server.headers[0]["accept-encoding"]) == ([task], "identity")


def test_its_answer_may_be_a_record(server: MessagesServer) -> None:
    assert run(server, Reply(b'{\r\n  "task_result": "a\xe2\x80\xa8b"\r\n}')).record == {"task_result": "a\u2028b"}


@pytest.mark.parametrize("status", [201, 302, 404, 500])
def test_any_other_status_is_a_failure(server: MessagesServer, status: int) -> None:
    failed = run(server, Reply(b"what went wrong", status, {"location": NOWHERE}))
    assert failed.failure == f"the agent answered with status {status}"
    assert failed.printed == {"response": "what went wrong"}
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "stopped", "failure", "printed"),
    [
        (Reply(b"", hangs=True), None, "the time was over (0.3 s) before the agent was done", ""),
        (Reply(b"", length=9_000, trickles=True), None, "the time was over (0.3 s) before the agent was done", " "),
        (Reply(b"", hangs=True), "too many calls", "too many calls", ""),
        (Reply(b"what", length=9, resets=True), None, "the agent gave no answer: ", "what"),
    ],
)
def test_one_that_does_not_come_to_its_end(
    server: MessagesServer, reply: Reply, stopped: str | None, failure: str, printed: str
) -> None:
    cut_off = run(server, reply, timeout_s=30.0 if reply.resets else 0.3, stopped=stopped)
    assert str(cut_off.failure).startswith(failure)
    assert set(cut_off.printed["response"]) <= set(printed)


def test_one_that_is_not_there() -> None:
    with pytest.raises(ConfigurationError, match="nothing answers there"):
        HttpAgent(NOWHERE).check()
    assert "the agent gave no answer: " in (run(NOWHERE).failure or "")


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.com/", "http://10.0.0.1:80/x", "http://", "http://127.0.0.1:99999/", "http://127.0.0.1/ü"),
        "http://[::1",
    ],
)
def test_only_this_machine_can_be_asked(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is no URL of this machine"):
        HttpAgent(url)
