"""A language model at work: the real client, and a server on loopback that speaks its protocol."""

import os
import signal
import threading
import time
from collections.abc import Mapping
from typing import Any

import messages_server
import pytest
from messages_server import MessagesServer, Reply, answer, completion, error_reply, openai_config, text
from tasks_and_sandboxes import MakeTask

from guarantee_email_agent.config.settings import Config, Llm, Secrets
from guarantee_email_agent.solving.run_limits import RunLimits

pytestmark = pytest.mark.slow

MODEL = "claude-sonnet-5-5-20260928"


@pytest.fixture
def model_server(bench: Any, make_task: MakeTask, server: MessagesServer) -> MessagesServer:
    """A server for one task."""
    make_task("sum")
    bench.config = Config(
        llm=Llm(model="claude-sonnet-5-5"),
        secrets=Secrets(anthropic_api_key="test-key", anthropic_base_url=server.url),
    )
    return server


def says(*content: Mapping[str, Any], stop_reason: str = "tool_use") -> Reply:
    usage = {"input_tokens": 1000, "output_tokens": 100}
    return answer(*content, stop_reason=stop_reason, model=MODEL, usage=usage)


def use(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return messages_server.tool_call(name, arguments, number)


def test_language_model_solves_a_task_with_the_real_client(bench: Any, model_server: MessagesServer) -> None:
    thinking = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    both = (use(1, "shell_execute", command="echo $((40 + 2))"), use(2, "nonesuch"))
    model_server.replies = [
        error_reply(529, "Overloaded", retry_after_ms="1"),
        says(thinking, text("Both."), *both),
        says(use(3, "task_complete", answer="42")),
        says(use(4, "shell_execute", command="touch late"), use(5, "task_complete", result="42")),
    ]
    assert bench.solve(agent="llm", command=None) == 0
    record = bench.record("sum")
    assert (record["status"], record["iterations"], record["task_result"]) == ("success", 3, "42")
    assert (record["model"], record["tokens"]["total"]) == (MODEL, 3300)
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


ECHO = messages_server.tool_call("shell_execute", {"command": "echo 42"})
DONE = messages_server.tool_call("task_complete", {"result": "42"}, 2)


@pytest.mark.parametrize(
    ("replies", "options", "told"),
    [
        ([completion(ECHO), completion(DONE)], {}, ("success", None, 54)),
        ([completion(ECHO, usage=None), completion(DONE)], {}, ("success", None, None)),
        (
            [completion(ECHO, usage=None), completion(DONE)],
            {"limits": RunLimits(max_cost_usd=5)},
            ("failed", "max_cost", None),
        ),
        ([completion(ending="stop", refusal="I cannot help with that")], {}, ("failed", "refused", 27)),
        ([completion(ending="content_filter", content="I")], {}, ("failed", "refused", 27)),
        ([completion(ECHO, ending="length"), completion(DONE)], {}, ("success", None, 54)),
    ],
    ids=["tools", "unknown usage", "unknown usage and a limit", "refused", "filtered", "cut off"],
)
def test_a_server_of_chat_completions_solves_a_task(
    bench: Any, model_server: MessagesServer, replies: list[Reply], options: dict[str, Any], told: tuple[object, ...]
) -> None:
    model_server.replies = replies
    bench.config = openai_config(model_server.url, model="gpt-5-mini")
    code = bench.solve(agent="llm", command=None, **options)
    record = bench.record("sum")
    found = (record["status"], (record["reason"] or {}).get("code"), record["tokens"] and record["tokens"]["total"])
    assert (found, code) == (told, 0 if told[0] == "success" else 4), record["reason"]
    filtered = b"content_filter" in replies[0].body
    assert not filtered or record["reason"]["message"].endswith("refused to go on: content_filter")


def test_model_that_cannot_be_asked_is_an_error_and_repeated(bench: Any, model_server: MessagesServer) -> None:
    model_server.replies = [error_reply(401, "invalid key")]
    assert bench.solve(agent="llm", command=None) == 4
    record = bench.record("sum")
    assert (record["reason"]["code"], record["finished"], record["eval"]["verdict"]) == ("model_error", False, "error")
    assert "Check ANTHROPIC_API_KEY" in record["reason"]["message"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_while_the_model_thinks_leaves_a_valid_record(
    bench: Any, model_server: MessagesServer, number: signal.Signals
) -> None:
    # Else the watcher waits for what never comes.
    pytest.importorskip("anthropic", reason="anthropic is not installed: uv sync --group ci")
    model_server.replies = [says(use(1, "shell_execute", command="echo one")), Reply(b"", hangs=True)]

    def interrupt() -> None:
        until = time.monotonic() + 30
        while len(model_server.requests) < 2:
            assert time.monotonic() < until
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    code = bench.solve(agent="llm", command=None)
    watcher.join()
    record = bench.record("sum")
    assert (code, record["reason"]["code"], record["finished"]) == (130, "interrupted", False)
    assert record["execution_trace"][0]["feedback"]["message"] == "one"
