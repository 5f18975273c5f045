"""`eval --agent … --llm`: what an agent of somebody else's asks of its model passes through us."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from threading import Thread
from typing import Any, Final
from unittest.mock import ANY
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from command_line import MODULE, run_program
from messages_server import CHAT_USAGE, USAGE, MessagesServer, Reply, answer, completion, error_reply, text

from guarantee_email_agent.config.settings import Config, Secrets
from guarantee_email_agent.eval.agents.model_gateway import KEY_SET_BY_US, CaseModel, GatewayRun, ModelGateway
from guarantee_email_agent.llm.recording import Exchange, Recordings
from guarantee_email_agent.mcp_servers.loopback import LoopbackServer

KEY: Final = "sk-a-very-secret-key"
SCENARIO: Final = """\
scenario_id: {id}
description: The agent says what its model says
category: talk
created: 2026-11-27
input: {{task: Say hello}}
expected_output: {{answer: {{contains: [hello]}}}}
{more}
"""
AGENT: Final = """
import json, os, urllib.request

def agent(task):
    said = []
    for path, body in json.load(open(os.environ["ASKED"])):
        base = os.environ["ANTHROPIC_BASE_URL"] + "/v1" if path == "messages" else os.environ["OPENAI_BASE_URL"]
        headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
        request = urllib.request.Request(f"{base}/{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            said.append(answer.read().decode())
    return {"task_result": "\\n".join(said)}
"""
MESSAGES: Final = ("messages", {"model": "claude-haiku-4-5", "max_tokens": 50, "messages": []})
CHAT: Final = ("chat/completions", {"model": "gpt-5-mini", "messages": []})
RESPONSES: Final = ("responses", {"model": "gpt-5-mini", "input": "Say hello"})
SAID: Final = answer(text("hello"), stop_reason="end_turn", model="claude-haiku-4-5")
RESPONDED: Final[dict[str, Any]] = {
    "model": "gpt-5-mini",
    "output": [{"type": "function_call"}, {"type": "message", "content": [{"type": "output_text", "text": "hello"}]}],
    "usage": {"input_tokens": 22, "output_tokens": 5, "total_tokens": 27, "input_tokens_details": {"cached_tokens": 7}},
}
LOCAL: Final = {  # without id, created and total_tokens, and with an ending of its own
    "model": "gpt-5-mini",
    "choices": [{"message": {"content": "hello"}, "finish_reason": "eos"}],
    "usage": {"prompt_tokens": 22, "completion_tokens": 5},
}
PLAIN: Final = {"speed": "standard", "inference_geo": "global", "cache_creation": {"ephemeral_1h_input_tokens": 0}}
DEARER: Final = (
    {"server_tool_use": {"web_search_requests": 1}},
    {"speed": "fast"},
    {"inference_geo": "us"},
    {"cache_creation": {"ephemeral_1h_input_tokens": 3}},
)
PRICE: Final = (12 * 1 + 5 * 5 + 7 * 0.1 + 3 * 1.25) / 1e6


STARTED: Final = {
    "type": "message_start",
    "message": {"model": "claude-haiku-4-5", "usage": {**USAGE, "output_tokens": 1}},
}


def events(*payloads: Any, end: str = "data: [DONE]\n\n") -> Reply:
    body = "".join(f"event: {each.get('type')}\ndata: {json.dumps(each)}\n\n" for each in payloads) + end
    return Reply(body.encode(), headers={"content-type": "text/event-stream"})


class Desk:
    def __init__(self, folder: Path, server: MessagesServer) -> None:
        self.folder, self.server = folder, server
        (folder / "evals" / "talk").mkdir(parents=True)
        (folder / "talker.py").write_text(AGENT)

    def scenario(self, number: int = 1, more: str = "") -> None:
        name = f"talk_{number:03}"
        (self.folder / "evals" / "talk" / f"{name}.yaml").write_text(SCENARIO.format(id=name, more=more))

    def run(self, *asked: Any, llm: str = "live", key: str | None = KEY, options: tuple[str, ...] = ()) -> Any:
        """The code, the JSON report and stderr."""
        (self.folder / "asked.json").write_text(json.dumps(asked))
        env = {"ASKED": str(self.folder / "asked.json"), "ANTHROPIC_BASE_URL": self.server.url}
        env |= {"OPENAI_BASE_URL": f"{self.server.url}/v1"}
        env |= {} if key is None else {"ANTHROPIC_API_KEY": key, "OPENAI_API_KEY": key}
        agent = ("--agent", "python:talker:agent", "--llm", llm, "--json", "report.json")
        run = run_program(self.folder, "eval", "--eval-dir", "evals/talk", *agent, *options, program=MODULE, env=env)
        report = json.loads((self.folder / "report.json").read_text()) if run.returncode in (0, 4) else {}
        return run.returncode, report, run.stdout + run.stderr


@pytest.fixture
def desk(tmp_path: Path, server: MessagesServer) -> Desk:
    return Desk(tmp_path, server)


@pytest.mark.slow
def test_what_is_recorded_is_replayed_without_key_and_network(desk: Desk) -> None:
    desk.scenario(more="at_most: {tokens: 81, usd: 0.01}")
    desk.server.replies = [SAID, completion(ending="stop", content="hello"), Reply(json.dumps(RESPONDED).encode())]
    code, report, told = desk.run(MESSAGES, CHAT, RESPONSES, llm="record")
    assert (code, report["totals"]["passed"]) == (0, 1), told
    assert "the agent's own: 3 answers" in told
    assert {headers["authorization"] for headers in desk.server.headers} == {f"Bearer {KEY}"}
    files = sorted((desk.folder / "evals" / "agent-recordings" / "talk_001").iterdir())
    assert [file.name.split("-")[2] for file in files] == ["messages", "completions", "responses"]
    assert KEY not in "".join(file.read_text() for file in files)

    code, report, told = desk.run(RESPONSES, MESSAGES, CHAT, llm="replay", key=None)
    assert (code, len(desk.server.requests), "the agent's own:" in told) == (0, 3, False), told
    changed = ("responses", {**RESPONSES[1], "input": "Say goodbye"})
    code, _, told = desk.run(changed, llm="replay", key=None)
    assert code == 4
    assert "is not recorded: body.input (now " in told
    assert "Record it anew: eval --llm record --eval-dir evals/talk --agent python:talker:agent --only talk_001" in told


@pytest.mark.parametrize(
    ("asked", "reply", "tokens", "usd"),
    [
        (MESSAGES, SAID, 27, PRICE),
        (
            MESSAGES,
            events(
                STARTED,
                {"type": "content_block_delta", "delta": {"text": "hello"}},
                {"type": "message_delta", "usage": {"output_tokens": 5}},
            ),
            27,
            PRICE,
        ),
        (CHAT, events({"model": "gpt-5-mini", "choices": [{"delta": {"content": "hello"}}]}), None, None),
        (
            CHAT,
            events({"model": "gpt-5-mini", "usage": None}, {"model": "gpt-5-mini", "usage": CHAT_USAGE, "x": "hello"}),
            27,
            (15 * 0.25 + 5 * 2 + 7 * 0.025) / 1e6,
        ),
        (
            RESPONSES,
            events({"type": "response.completed", "response": RESPONDED}),
            27,
            (15 * 0.25 + 5 * 2 + 7 * 0.025) / 1e6,
        ),
        (
            RESPONSES,
            Reply(json.dumps({**RESPONDED, "output": [*RESPONDED["output"], {"type": "new_call"}]}).encode()),
            27,
            None,
        ),
        (("embeddings", {"input": "x"}), Reply(b'{"data": "hello"}'), None, None),
        (RESPONSES, Reply(json.dumps({**RESPONDED, "output": 5, "service_tier": {}}).encode()), None, None),
        (CHAT, completion(ending="stop", content="hello", model="llama"), 27, None),
        (CHAT, Reply(json.dumps(LOCAL).encode()), 27, (22 * 0.25 + 5 * 2) / 1e6),
        (CHAT, Reply(json.dumps({**LOCAL, "usage": None}).encode()), None, None),
        (CHAT, completion(ending="stop", usage={"prompt_tokens": -1, "completion_tokens": 5}), None, None),
        (CHAT, completion(ending="stop", usage={"prompt_tokens": 0, "completion_tokens": 0}), None, None),
        (RESPONSES, Reply(json.dumps({**RESPONDED, "created_at": 10**400}).encode()), None, None),
        (MESSAGES, answer(model="claude-haiku-4-5", usage={"output_tokens": 5}), None, None),
        (MESSAGES, answer(model="claude-haiku-4-5", usage=USAGE | PLAIN), 27, PRICE),
        *((MESSAGES, answer(model="claude-haiku-4-5", usage=USAGE | PLAIN | other), 27, None) for other in DEARER),
    ],
)
def test_what_an_answer_took_is_counted_or_not_known(
    gateway: ModelGateway, server: MessagesServer, asked: Any, reply: Reply, tokens: int | None, usd: float | None
) -> None:
    server.replies = [reply]
    run = CaseModel(gateway, None).begin(1)
    with published(run) as loopback, ask(loopback[1], asked) as got:
        assert (got.read(), got.headers["content-type"]) == (reply.body, answered_as(reply))
    used = run.meter.total
    assert used.cost_usd == (None if usd is None else pytest.approx(usd))
    assert (None if used.tokens.uncounted else used.tokens.total) == tokens
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(("asked", "package"), [(MESSAGES, "anthropic"), (CHAT, "openai")])
def test_an_sdk_that_is_not_there_is_told(
    gateway: ModelGateway, asked: Any, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with published(run := CaseModel(gateway, None).begin(1)) as (_, url), pytest.raises(HTTPError) as caught:
        ask(url, asked)
    caught.value.close()
    wanted = f"--llm, for an agent that asks {package}'s API, needs the package {package}. Run: uv sync"
    assert str(run.failure).startswith(wanted)


@pytest.mark.parametrize(
    ("replies", "tokens", "is_recorded"),
    [
        ([events(STARTED, {"type": "content_block_delta", "delta": {"text": "message_stop"}}, end="")], None, False),
        ([events(STARTED, {"type": "error", "error": {"type": "overloaded_error"}}, end="")], None, False),
        ([Reply(SAID.body[:-9])], None, False),
        ([Reply(b"\xff\xfe", headers={"content-type": "audio/mpeg"})], None, False),
        ([Reply(b"", hangs=True)], None, False),
        ([Reply(b"", headers={"no HTTP": ""})], None, False),
        ([error_reply(500)], None, False),
        ([error_reply(529)], 0, False),
        ([Reply(b"", 404)], 0, True),
        ([error_reply(500), SAID], None, True),
        (
            [
                events(
                    STARTED, {"type": "message_delta", "usage": {"output_tokens": 5}}, {"type": "message_stop"}, end=""
                )
            ],
            27,
            True,
        ),
    ],
)
def test_what_is_not_there_to_its_end_is_not_known_and_replaces_no_recording(
    gateway: ModelGateway,
    server: MessagesServer,
    tmp_path: Path,
    replies: list[Reply],
    tokens: int | None,
    is_recorded: bool,
) -> None:
    server.replies = replies
    recordings = Recordings(tmp_path / "talk_001", "talk_001", remedy="")
    recordings.write([[Exchange({"path": "before"}, "0" * 12, {})]])
    model = CaseModel(gateway, recordings)
    with published(run := model.begin(1)) as (loopback, url):
        for number, reply in enumerate(tuple(replies), 1):
            asking = Thread(target=ask_in_vain, args=(url, MESSAGES))
            asking.start()
            while len(server.requests) < number:
                asking.join(0.01)
            if not reply.hangs:
                asking.join()
        loopback.withdraw({"": url})
    used = run.meter.total.tokens
    assert (None if used.uncounted else used.total) == tokens
    assert (gateway.progress_detail() == "cost not known") == (tokens is None)
    assert (model.finish() is None) == is_recorded
    assert [file.name for file in (tmp_path / "talk_001").glob("*before*")] == [] if is_recorded else [ANY]


@contextmanager
def published(run: GatewayRun) -> Iterator[tuple[LoopbackServer, str]]:
    loopback = LoopbackServer(1000)
    loopback.start()
    try:
        yield loopback, loopback.publish_app(run)
        loopback.in_loop(run._gateway.aclose())
    finally:
        loopback.stop()


def ask(url: str, asked: Any) -> Any:
    place = f"{url}/openai/v1/{asked[0]}".replace("openai/v1/messages", "anthropic/v1/messages")
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY_SET_BY_US}"}
    return urlopen(Request(place, json.dumps(asked[1]).encode(), headers))


def ask_in_vain(url: str, asked: Any) -> None:
    try:
        with ask(url, asked) as got:
            got.read()
    except HTTPError as error:
        error.close()
    except (OSError, HTTPException):
        return


def answered_as(reply: Reply) -> str:
    return reply.headers.get("content-type", "application/json")


@pytest.fixture
def gateway(server: MessagesServer) -> ModelGateway:
    secrets = Secrets(KEY, server.url, KEY, f"{server.url}/v1")
    return ModelGateway(Config(secrets=secrets), None, "live")


@pytest.mark.slow
def test_limits_of_a_case_and_of_the_run_hold(desk: Desk) -> None:
    desk.scenario(1, "at_most: {tokens: 26, usd: 0.00001}")
    desk.scenario(2)
    desk.server.replies = [SAID]
    code, report, told = desk.run(MESSAGES, options=("--max-cost", "0.00005"))
    assert (code, len(desk.server.requests)) == (4, 1), told
    assert "--max-cost 5e-05" in told
    code, report, _ = desk.run(MESSAGES)
    failures = " ".join(report["results"][0]["failures"])
    unseen = desk.run(MESSAGES, llm="offline")[1]
    assert [unseen[name] for name in ("model", "tokens", "cost_usd")] == ["the agent's own", None, None]
    assert ("at_most.tokens" in failures, "at_most.usd" in failures) == (True, True), failures
    desk.server.replies = [completion(ending="stop", content="hello", model="llama")]
    for llm in ("live", "offline"):  # offline, since no span tells it either
        code, _, told = desk.run(CHAT, llm=llm, options=("--max-cost", "5"))
        assert (code, "what the model costs is no longer known" in told) == (4, True), told


def test_what_is_not_recorded_is_not_replayed(desk: Desk) -> None:
    desk.scenario()
    agent = ("--agent", "command:true", "--llm", "replay")
    run = run_program(desk.folder, "eval", "--eval-dir", "evals/talk", *agent, program=MODULE)
    assert (run.returncode, "nothing is recorded of this suite" in run.stderr) == (2, True), run.stderr
