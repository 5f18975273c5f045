"""What an agent exports while it works: evidence of its calls, and of what its model took."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from command_line import MODULE, run_program
from google.protobuf.json_format import ParseDict
from mcp_by_hand import write_program
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from otlp import export, span

from guarantee_email_agent.eval.agents import span_receiver
from guarantee_email_agent.eval.agents.span_receiver import SpanReceiver, as_call
from guarantee_email_agent.eval.tool_mocks import ToolCall

SCENARIO = """\
scenario_id: booking_001
description: A table is booked, whatever the weather
category: booking
created: 2026-11-28
input: {task: Book a table, mock_responses: {desk: {book: {id: B-1}}}}
expected_output: {answer: {contains: [B-1]}, calls: [{server: desk, tool: book}]}
at_most: {calls: 1, tokens: 34, usd: 0.000074}
"""
AGENT = """
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))  # which sends them at the end
span = provider.get_tracer("booker").start_as_current_span

def say(said):
    message = {"role": "assistant", "parts": [{"type": "text", "content": said}]}
    told = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": json.dumps([message])}
    told |= {"gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 5}
    told["gen_ai.request.model"] = "claude-haiku-4-5"
    with span("chat", attributes=told):
        pass

def use(tool, made, arguments):
    told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
    told["gen_ai.tool.call.arguments"] = json.dumps(arguments)
    with span(tool, attributes=told) as current:
        current.set_attribute("gen_ai.tool.call.result", made())

with span("booker", attributes={"gen_ai.operation.name": "invoke_agent"}):
    say("I look.")
    use("weather", lambda: "rain", {"town": "Graz"})
    use("desk_book", lambda: json.dumps(call("desk", "book")["structuredContent"]), {})
    say("B-1")
print(json.dumps({"task_result": "B-1"}))
"""
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "claude-haiku-4-5"}
USED = {"gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 5}
LLM = {"openinference.span.kind": "LLM", "llm.model_name": "claude-haiku-4-5"}
COUNTED = {
    "llm.token_count.prompt": 12,
    "llm.token_count.completion": 5,
    "llm.token_count.prompt_details.cache_read": 10,
}
PRICE = (12 * 1 + 5 * 5) / 1e6
JSON = {"content-type": "application/json"}


def received(*spans: dict[str, Any]) -> SpanReceiver:
    receiver = SpanReceiver()
    assert receiver.receive("v1/traces", JSON, json.dumps(export(*spans)).encode()) is None
    return receiver


@pytest.mark.slow
def test_an_agent_with_a_real_exporter(tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "booking_001.yaml").write_text(SCENARIO)
    agent = f"command:{write_program(tmp_path, AGENT)}"
    options = ("--agent", agent, "--max-cost", "1", "--json", "report.json", "--records", "records")
    run = run_program(tmp_path, "eval", "--eval-dir", "evals", *options, program=MODULE)
    assert "the agent's own: 2 answers" in run.stdout, run.stdout + run.stderr
    report = json.loads((tmp_path / "report.json").read_text())["results"][0]
    assert report["failures"] == ["at_most.calls: it took more\n  expected: at most 1\n  actual:   2"]
    assert report["actual_output"]["other_calls"] == [{"tool": "weather", "arguments": {"town": "Graz"}}]
    record = json.loads((tmp_path / "records" / "booking_001.json").read_text())
    booked, asked = record["execution_trace"]
    assert booked["action"] == {"action_type": "desk.book"}
    assert asked["feedback"] == {"done": False, "message": "rain", "traced": True}
    assert (record["iterations"], record["conversation"][-1]["content"]) == (2, "B-1")
    shown = run_program(tmp_path, "show", "last", "booking_001", program=MODULE).stdout
    assert "in its spans: weather(town='Graz')" in shown


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", ["application/json", "application/x-protobuf"])
def test_exports_of_every_form(kind: str, packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "very-secret-1")
    sent = export(
        span(1, {**CHAT, **USED}),
        span(2, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "input.value": "very-secret-1"}),
    )
    for each in sent["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        each["traceId"] = "YTE="
    as_bytes = (
        ParseDict(sent, ExportTraceServiceRequest()).SerializeToString()
        if "protobuf" in kind
        else json.dumps(sent).encode()
    )
    headers = {"content-type": kind} | ({"content-encoding": "gzip"} if packed else {})
    receiver = SpanReceiver()
    assert "logs are not" in str(receiver.receive("v1/logs", headers, as_bytes))
    assert receiver.receive("v1/traces", headers, gzip.compress(as_bytes) if packed else as_bytes) is None
    usage = receiver.usage()
    assert (usage.calls, usage.tokens.total, usage.cost_usd) == (1, 17, pytest.approx(PRICE))
    assert receiver.other_calls([])[0]["action"]["arguments"] == "[$SHOP_KEY]"


@pytest.mark.parametrize(
    ("spans", "tokens", "usd"),
    [
        ([span(1, {**CHAT, **USED}), span(2, {**CHAT, **USED})], 34, 2 * PRICE),
        ([span(1, {**CHAT, **USED}), span(2, {**LLM, **COUNTED}, parent=1)], 17, PRICE),
        ([span(1, {**LLM, **COUNTED})], 17, (2 + 5 * 5 + 10 * 0.1) / 1e6),
        ([span(1, {**CHAT, **USED, "gen_ai.request.model": "llama"})], 17, None),
        ([span(1, {**CHAT, **USED, "openai.response.service_tier": "priority"})], 17, None),
        ([span(1, {**CHAT, **USED}), span(2, CHAT)], None, None),
        ([span(1, {**CHAT, "gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0})], None, None),
        ([span(1, {**LLM, **COUNTED, "llm.token_count.prompt": 9})], None, None),
        ([span(1, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"})], None, None),
        ([], None, None),
    ],
)
def test_what_the_model_took(spans: list[dict[str, Any]], tokens: int | None, usd: float | None) -> None:
    usage = received(*spans).usage()
    assert (None if usage.tokens.uncounted else usage.tokens.total) == tokens
    assert usage.cost_usd == (None if usd is None else pytest.approx(usd))


@pytest.mark.parametrize(
    ("headers", "body", "problem"),
    [
        (JSON, b"{", "the spans cannot be read: Expecting"),
        (JSON, b"{}", "this is no OTLP"),
        (JSON, b'{"resourceSpans": ' + b"[" * 99_999, "the spans cannot be read: "),
        ({**JSON, "content-encoding": "gzip"}, b"{}", "incorrect header check"),
        ({**JSON, "content-encoding": "gzip"}, gzip.compress(b" " * 3_000, mtime=0), "over 100 MB of spans"),
        ({"content-type": "application/x-protobuf"}, b"{}", "Error parsing message"),
    ],
)
def test_what_cannot_be_read_leaves_the_rest_unknown(
    headers: dict[str, str], body: bytes, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_receiver, "MAX_RECORD_BYTES", 2_000 if "100 MB" in problem else 1_000_000)
    receiver = received(span(1, {**CHAT, **USED}))
    assert problem in str(receiver.receive("v1/traces", headers, body))
    assert receiver.usage().tokens.uncounted == 1


def test_calls_that_our_servers_noted_are_no_others() -> None:
    names = ("get_order", "mcp__orders__get_order", "orders.get_order", "forget_order", "refund")
    tools = [
        span(number, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name})
        for number, name in enumerate(names, 1)
    ]
    calls = [ToolCall("orders", "get_order", {}) for _ in range(4)]
    others = [as_call(step) for step in received(*tools).other_calls(calls)]
    assert others == [{"tool": name, "arguments": None} for name in ("forget_order", "refund")]


def test_protobuf_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    assert span_receiver.exporter_environment("x")["OTEL_EXPORTER_OTLP_PROTOCOL"] == "http/protobuf"
    monkeypatch.setattr(span_receiver, "find_spec", lambda name: None)
    assert span_receiver.exporter_environment("x")["OTEL_EXPORTER_OTLP_PROTOCOL"] == "http/json"
    assert "extra otel" in str(SpanReceiver().receive("v1/traces", {}, b""))
