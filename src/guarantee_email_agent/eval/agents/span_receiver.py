"""The spans that an agent of somebody else's exports while it works: OTLP over HTTP, as JSON or protobuf."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Final

from guarantee_email_agent.eval.agents.agent import without_secrets
from guarantee_email_agent.eval.call_checks import may_be_call_of
from guarantee_email_agent.eval.tool_mocks import ToolCall
from guarantee_email_agent.judging.otel_transcript import (
    NOT_TOLD,
    Span,
    outermost,
    record_of_spans,
    spans_of,
    tool_step,
)
from guarantee_email_agent.judging.record import MAX_RECORD_BYTES, Record
from guarantee_email_agent.llm.openai_client import chat_usage
from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.llm.usage import PLAIN_TIERS, ModelUsage, UsageMeter, cost_usd
from guarantee_email_agent.utils.distribution import install_command
from guarantee_email_agent.utils.errors import TaskError

_UNTOLD: Final = {"arguments": NOT_TOLD}
_UNSEEN: Final = ModelUsage(0, TokenUsage(uncounted=1), None, 0)
_GZIP: Final = 31  # of zlib's window bits
_TOO_MUCH: Final = f"over {MAX_RECORD_BYTES // 1_000_000} MB of spans"


class SpanReceiver:
    """Of one run. is_whole: whether nothing was refused."""

    def __init__(self) -> None:
        self.is_whole = True
        self._spans: dict[str, Span] = {}
        self._size = 0

    def receive(self, signal: str, headers: Mapping[str, str], body: bytes) -> str | None:
        """Why an export is not taken; None where it was. signal: its path."""
        if signal != "v1/traces":
            return "spans alone are taken, at v1/traces; metrics and logs are not"
        try:
            if headers.get("content-encoding") == "gzip":
                body = zlib.decompressobj(_GZIP).decompress(body, MAX_RECORD_BYTES)
            self._size += len(body)
            if self._size >= MAX_RECORD_BYTES:
                raise ValueError(_TOO_MUCH)
            text = body.decode() if "json" in headers.get("content-type", "") else _protobuf_as_json(body)
            self._spans |= {span.id: span for span in spans_of(json.loads(without_secrets(text)))}
        except (TaskError, ValueError, RecursionError, zlib.error) as error:
            self.is_whole = False
            return f"the spans cannot be read: {error}"
        return None

    def usage(self) -> ModelUsage:
        """What the model's spans tell that it took; unknown where there are none, or not all that there were."""
        meter = UsageMeter()
        models = outermost(list(self._spans.values()), "model")
        if not (models and self.is_whole):
            meter.add(_UNSEEN)
        for span in models:
            tokens = _tokens(span)
            model = span.first("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
            tier = span.first("openai.response.service_tier", "gen_ai.openai.response.service_tier")
            meter.add(ModelUsage(1, tokens, cost_usd(str(model), tokens) if tier in PLAIN_TIERS else None, 0))
        return meter.total

    def record(self) -> Record:
        """What was said, as far as the spans tell it."""
        try:
            return record_of_spans(list(self._spans.values()))
        except (TaskError, RecursionError):
            return {}

    def other_calls(self, calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        """The steps in which the agent used a tool that is not among `calls`, which our servers noted."""
        noted, steps = list(calls), []
        for span in sorted(outermost(list(self._spans.values()), "tool"), key=lambda span: span.start):
            step = tool_step(span)
            name = str(step["action"]["action_type"])
            own = next((each for each in noted if may_be_call_of(name, each.server, each.tool)), None)
            if own is None:
                steps.append({**step, "feedback": {**step["feedback"], "traced": True}})
            else:
                noted.remove(own)
        return steps


def as_call(step: Mapping[str, Any]) -> dict[str, Any]:
    """One of `other_calls` as `actual_output` has it. Its arguments are None where the span does not tell them."""
    arguments = {name: value for name, value in step["action"].items() if name != "action_type"}
    return {"tool": step["action"]["action_type"], "arguments": None if arguments == _UNTOLD else arguments}


def exporter_environment(url: str) -> dict[str, str]:
    """For an agent whose spans are taken below this URL."""
    protocol = "protobuf" if _can_read_protobuf() else "json"
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": f"http/{protocol}"}


def _can_read_protobuf() -> bool:
    return bool(find_spec("opentelemetry") and find_spec("opentelemetry.proto"))


def _protobuf_as_json(body: bytes) -> str:
    if not _can_read_protobuf():
        raise ValueError(f"protobuf needs the package opentelemetry-proto. Run: {install_command('otel')}")
    from google.protobuf.json_format import MessageToJson
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    try:
        return str(MessageToJson(ExportTraceServiceRequest.FromString(body), ensure_ascii=False))
    except DecodeError as error:
        raise ValueError(str(error)) from None


def _tokens(span: Span) -> TokenUsage:
    usage, count = "gen_ai.usage.", "llm.token_count.prompt"
    cached = {
        "cached_tokens": span.first(f"{usage}cache_read.input_tokens", f"{count}_details.cache_read"),
        "cache_write_tokens": span.first(f"{usage}cache_creation.input_tokens", f"{count}_details.cache_write"),
    }
    counts = {
        "prompt_tokens": span.first(f"{usage}input_tokens", f"{usage}prompt_tokens", count),
        "completion_tokens": span.first(
            f"{usage}output_tokens", f"{usage}completion_tokens", "llm.token_count.completion"
        ),
        "prompt_tokens_details": cached,
    }
    return chat_usage(counts)
