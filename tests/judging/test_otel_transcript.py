"""Spans that Pydantic AI makes here, those of OpenInference's instrumentations (openai 3, langgraph 1) and of
OpenLLMetry's (langchain 0.62, with its log records), and by hand.
"""

import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from otlp import export, log, span
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings

from guarantee_email_agent.judging import record_files, record_from_otel
from guarantee_email_agent.judging.record_files import RecordIndex, SpanFile, find_records
from guarantee_email_agent.utils.errors import TaskError

TRANSCRIPTS = Path(__file__).parent / "transcripts"
ANSWER = "The warranty of SN12345 is valid until 2027-05-31. Grüße – 日本"
ASK = [{"role": "user", "parts": [{"type": "text", "content": "How much?"}]}]
MODEL = {"gen_ai.operation.name": "chat"}
CHAT = {**MODEL, "gen_ai.input.messages": ASK}
OUTPUT = "gen_ai.output.messages"
ASKED = ("gen_ai.user.message", {"content": "How much?"})
CHOICE: dict[str, Any] = {"index": 0, "finish_reason": "stop", "message": {"content": "5.00"}}
INDEXED = {
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": "How much?",
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": "5.00",
}
LLM = {"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
REDACTED = {
    **LLM,
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "__REDACTED__",
}
AGENT = {"openinference.span.kind": "AGENT"}
SEARCHED = [
    {"type": "tool_call", "id": "s", "name": "search"},
    {"type": "tool_call_response", "id": "s", "result": "found"},
    {"type": "text", "content": "5.00"},
]
CUT = {"finish_reason": "length", "message": {"content": "5"}}
ERROR = {"status": {"code": 2, "message": "boom\nat line 1"}}


def look_up(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if any(isinstance(message, ModelResponse) for message in messages):
        return ModelResponse([TextPart(ANSWER)], finish_reason="stop")
    calls = [ToolCallPart("check_warranty", {"serial_number": number}, number) for number in ("SN12345", "SN99999")]
    return ModelResponse([ThinkingPart("hm"), TextPart("I look both up."), *calls], finish_reason="tool_call")


def run_pydantic_ai(**settings: Any) -> dict[str, Any]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    agent = Agent(FunctionModel(look_up), instructions="You answer.", name="desk")
    agent.instrument = InstrumentationSettings(tracer_provider=provider, **settings)

    @agent.tool_plain(retries=2)
    def check_warranty(serial_number: str) -> str:
        if serial_number == "SN99999":
            raise ModelRetry("no such number")
        return "valid"

    asyncio.run(agent.run("Are SN12345 and SN99999 under warranty?"))
    return MessageToDict(encode_spans(exporter.get_finished_spans()))


def said(text: str | None, role: str = "assistant", **more: Any) -> list[dict[str, Any]]:
    return [{"role": role, "parts": [{"type": "text", **({} if text is None else {"content": text})}], **more}]


def answer(number: int, text: str | None, parent: int = 0, *, trace: str = "a1", **more: Any) -> dict[str, Any]:
    """The span of a model's answer. more: attributes, by their names with a dot for each two underscores."""
    told = {name.replace("__", "."): value for name, value in more.items()}
    return span(number, {**CHAT, OUTPUT: said(text), **told}, parent, trace)


def agent(number: int, parent: int = 0, **told: str) -> dict[str, Any]:
    """As OpenInference tells of one: `input` and `output`."""
    values = {f"{name}.value": value for name, value in told.items()}
    return span(number, {**AGENT, **values}, parent)


@pytest.mark.parametrize("source", [5, 6, "openinference_langgraph", "openllmetry_langgraph"])
def test_a_run(source: int | str) -> None:
    instrumented = isinstance(source, int)
    exported = (
        run_pydantic_ai(version=source) if instrumented else json.loads((TRANSCRIPTS / f"{source}.json").read_bytes())
    )
    record = record_from_otel(exported)
    assert (record["task_result"], record["status"], record["iterations"]) == (ANSWER, "success", 2)
    assert [message["role"] for message in record["conversation"]] == [
        *("system", "user", "assistant", "tool", "tool", "assistant")
    ]
    known, unknown = record["execution_trace"]
    assert known["action"] == {"serial_number": "SN12345", "action_type": "check_warranty"}
    assert "valid" in known["feedback"]["message"]
    assert "no such number" in unknown["feedback"]["message"]
    assert unknown["feedback"].get("error") is (True if instrumented else None)

    scopes = [scope for whole in exported.values() for scope in whole[0].get("scopeSpans", whole[0].get("scopeLogs"))]
    spans = [each for scope in scopes for each in scope.get("spans", scope.get("logRecords"))]
    random.Random(1).shuffle(spans)
    assert record_from_otel([export(*spans[:3]), export(*spans[2:])]) == record  # out of order, and one of them twice


def test_content_parts_and_the_agents_own_answer() -> None:
    record = record_from_otel(json.loads((TRANSCRIPTS / "openinference_openai.json").read_bytes()))
    assert record["conversation"][1]["content"] == "Is SN12345 under warranty?\n[image]"
    assert (record["task_result"], len(record["execution_trace"])) == ("It is valid.", 1)


@pytest.mark.parametrize(
    ("spans", "answer", "reason"),
    [
        ([span(1, {**CHAT, OUTPUT: json.dumps(said("5.00"))}, parent=9)], "5.00", None),
        ([span(1, {**CHAT, OUTPUT: said("5", finish_reason="length")})], "", "length"),
        ([span(1, {**CHAT, OUTPUT: [{"role": "assistant", "parts": SEARCHED}]})], "5.00", None),
        (
            [answer(1, "5.00"), answer(2, "", gen_ai__response__finish_reasons=["content_filter"])],
            *("", "content_filter"),
        ),
        ([answer(1, "5"), span(2, CHAT, **ERROR)], "", "error (boom)"),
        ([span(1, CHAT, **ERROR), answer(2, "5")], "5", None),
        (
            [span(1, MODEL, events=[ASKED, ("gen_ai.choice", CHOICE | {"message": '{"content": "5.00"}'})])],
            "5.00",
            None,
        ),
        (
            [span(1, MODEL, events=[("gen_ai.client.inference.operation.details", {OUTPUT: said("5.00")})])],
            *("5.00", None),
        ),
        ([log(3, "gen_ai.choice", CHOICE), log(2, *ASKED), log(4, "http.request", {}), span(1, MODEL)], "5.00", None),
        ([{**span(1, CHAT, **ERROR), "status": {}}, log(2, "gen_ai.choice", CUT)], "", "length"),
        ([span(1, {"traceloop.span.kind": "workflow", "traceloop.entity.output": '"5.00"'})], "5.00", None),
        (
            [
                span(1, {"traceloop.span.kind": "agent", "traceloop.entity.output": '{"outputs": {"messages": []}}'}),
                answer(2, "5.00", parent=1),
            ],
            *("5.00", None),
        ),
        ([span(1, {"gen_ai.request.model": "m", **INDEXED})], "5.00", None),
        ([agent(1, input="How much?", output="5.00")], "5.00", None),
        (
            [span(1, {**AGENT, "output.value": '{"a": "4', "output.mime_type": "application/json"}), answer(2, "5", 1)],
            *("5", None),
        ),
        ([agent(1, output="5.00"), agent(2, 1, output="of a part"), answer(3, "a title", parent=1)], "5.00", None),
        ([span(1, {"gen_ai.operation.name": "invoke_agent"}, **ERROR), answer(2, "5.00", 1)], "5.00", "boom"),
    ],
)
def test_what_the_answer_is(spans: Sequence[object], answer: str, reason: str | None) -> None:
    record = record_from_otel(export(*spans))
    assert (record["task_result"], record["status"]) == (answer, "failed" if reason else "success")
    assert record.get("reason", {"message": None})["message"] in (reason, f"the model's answer was cut off: {reason}")


@pytest.mark.parametrize(
    ("spans", "problem"),
    [
        ([span(1, MODEL)], "none of its 1 spans tells what was said"),
        ([span(1, CHAT), log(2, "gen_ai.choice", {"message": {}})], "without its text"),
        ([log(2, "gen_ai.choice", CUT)], "a log record tells of a span that is not there"),
        ([answer(1, None)], "the span 'span 1' tells of a message without its text"),
        ([span(1, MODEL, events=[("gen_ai.choice", {"message": {}})])], "without its text"),
        ([span(1, REDACTED)], "without its text"),
        ([agent(1, output="__REDACTED__")], "tells what was said"),
        ([span(1, {"traceloop.span.kind": "agent", "traceloop.entity.output": '"5.0'})], "tells what was said"),
        ([answer(1, "5"), span(2, CHAT)], "'span 2' does not tell what the model answered"),
        ([span(1, {**CHAT, OUTPUT: '[{"role": "as'})], "gen_ai.output.messages of the span 'span 1' is no JSON"),
        ([span(1, {**CHAT, OUTPUT: said("5")}, droppedAttributesCount=3)], "lost 3 attributes"),
        ([span(1, {**LLM, "llm.input_messages.0.message.role": "bot"})], "has the role 'bot'"),
        ([span(1, CHAT), span(2, CHAT, trace="a2")], "there are 2 traces of agents"),
        ([{"name": "x"}], "a span has no traceId"),
        ([7], "a span is 7, not an object"),
    ],
)
def test_what_is_not_known_is_an_error(spans: Sequence[object], problem: str) -> None:
    with pytest.raises(TaskError) as caught:
        record_from_otel(export(*spans))
    assert problem in caught.value.message
    assert caught.value.code == "task_transcript_invalid"


@pytest.mark.parametrize(
    ("given", "gave"),
    [
        ({"args": [], "kwargs": {"at": 1}}, "5.00"),
        ({"input_str": "{'at': 1}", "inputs": {"at": 1}, "kwargs": {}}, {"output": "5.00", "kwargs": {}}),
        ({"input_str": "", "inputs": {"at": 1}}, {"output": {"lc": 1, "kwargs": {"content": "5.00"}}, "kwargs": {}}),
    ],
)
def test_a_tool_as_openllmetry_wraps_it(given: object, gave: object) -> None:
    told = {"traceloop.span.kind": "tool", "traceloop.entity.name": "look"}
    told |= {"traceloop.entity.input": json.dumps(given), "traceloop.entity.output": json.dumps(gave)}
    record = record_from_otel(export(span(1, told), answer(2, "5.00")))
    [step] = record["execution_trace"]
    assert step == {"action": {"at": 1, "action_type": "look"}, "feedback": {"done": False, "message": "5.00"}}


def test_tools_that_no_message_tells_of() -> None:
    record = record_from_otel(
        export(
            span(1, {**TOOL, "gen_ai.tool.call.arguments": {"at": -1}, "gen_ai.tool.call.result": "5.00"}),
            answer(2, "5.00"),
            span(3, TOOL, **ERROR),
            span(4, TOOL, 3),
        )
    )
    first, second = record["execution_trace"]
    assert first == {"action": {"at": -1, "action_type": "look"}, "feedback": {"done": False, "message": "5.00"}}
    assert second["action"] == {"arguments": "[not in the trace]", "action_type": "look"}
    assert second["feedback"] == {"done": False, "message": "boom", "error": True}
    assert record["task_result"] == "5.00"


def test_the_answer_of_a_tool_after_which_the_run_ended() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"at": 1}}
    asked = {**CHAT, OUTPUT: [{"role": "assistant", "parts": [call]}]}
    record = record_from_otel(export(span(1, asked), span(2, {**TOOL, "gen_ai.tool.call.result": "5.00"})))
    assert [step["feedback"]["message"] for step in record["execution_trace"]] == ["5.00"]
    assert (record["status"], record["conversation"][-1]["tool_call_id"]) == ("failed", "c1")


class TestFiles:
    def index(self, path: Path, *lines: object) -> RecordIndex:
        path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
        return find_records(path if path.suffix == ".jsonl" else path.parent, ["count", "six"], record_from_otel)

    def test_traces_over_several_lines(self, tmp_path: Path) -> None:
        index = self.index(
            tmp_path / "runs.jsonl",
            export(answer(1, "1", trace="a1"), answer(2, "2", trace="a2", task_name="six")),
            {"resourceMetrics": []},
            "{",
            export(span(3, {"http.route": "/"}, trace="a3"), answer(4, "4", trace="a4")),
            export(span(5, CHAT, trace="a1"), task_name="count"),
            export(log(6, "gen_ai.choice", {"message": {"content": "5"}}, of_span=5, trace="a1")),
        )
        assert [place.read()["task_result"] for place in index.places("count")] == ["5"]
        [six] = index.places("six")
        assert (six.read()["task_result"], six.name) == ("2", f"{tmp_path / 'runs.jsonl'}, trace 2")
        assert SpanFile(tmp_path / "runs.jsonl").read(six.extent)["task_result"] == "2"  # as it is shown later
        [nameless] = index.places(None)
        with pytest.raises(TaskError, match=r"runs.jsonl, trace 3: it names no task, or several\."):
            nameless.read()
        assert list(index.problems) == ["runs.jsonl"]
        assert "runs.jsonl:3: no JSON (column 2)" in index.problems["runs.jsonl"]

    @pytest.mark.parametrize("indent", [None, 1])
    def test_a_file_of_a_task(self, tmp_path: Path, indent: int | None) -> None:
        exported = export(answer(1, "5", trace="a1"), answer(2, "6", trace="a2"))
        places = list(self.index(tmp_path / "count.json", json.dumps(exported, indent=indent)).places("count"))
        assert [place.read()["task_result"] for place in places] == ["5", "6"]

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ('{"resourceSpans": ' + "[" * 99_999 + "}", "nested too deep"),
            ({"spans": []}, "this is no OTLP: an object with 'resourceSpans'"),
            (export(span(1, {"http.route": "/"})), "no span of it tells of an agent"),
            (export(span(1, {"x" * 3_000: "y"})), "bytes, and 3,000 are the most"),
        ],
    )
    def test_what_is_no_file_of_spans(
        self, tmp_path: Path, line: object, problem: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(record_files, "MAX_RECORD_BYTES", 3_000 if "3,000" in problem else 1_000_000)
        index = self.index(tmp_path / "count.jsonl", {"resourceLogs": []}, line)
        assert index.count == 0
        assert problem in index.problems["count.jsonl"]

    def test_a_trace_that_is_too_long_is_one_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(record_files, "MAX_RECORD_BYTES", 2_000)
        lines = [export(answer(number, "5", trace=f"a{number % 9 and 1}")) for number in range(1, 10)]
        long, short = self.index(tmp_path / "count.jsonl", *lines).places("count")
        with pytest.raises(TaskError, match=r"count.jsonl, trace 1: the exports with its spans have over 2,000 bytes"):
            long.read()
        assert short.read()["task_result"] == "5"
