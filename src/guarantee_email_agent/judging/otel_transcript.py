"""The record of a run from its spans: OTLP's JSON, with the GenAI conventions of OpenTelemetry, also in log records,
with OpenInference's, or with OpenLLMetry's (`traceloop.`).
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from guarantee_email_agent.judging.openai_transcript import read_message
from guarantee_email_agent.judging.record import Record, cut_off_by
from guarantee_email_agent.judging.transcript import (
    Call,
    Message,
    as_text,
    call_of,
    id_of,
    list_at,
    mapping_at,
    record_of_messages,
    transcript_error,
)
from guarantee_email_agent.utils.field_path import MISSING, json_or_missing
from guarantee_email_agent.utils.text import printable, truncate

NOT_TOLD: Final = "[not in the trace]"
TASK_NAME: Final = "task_name"
"""The attribute, of a span or a resource, that says which task a trace is of."""

_CONVENTIONS: Final = ("gen_ai.", "openinference.", "llm.", "traceloop.")
_SIGNALS: Final = (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords"))
_KINDS: Final = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
_TOOLS: Final = ("execute_tool", "TOOL", "tool")
_RUNS: Final = ("invoke_agent", "invoke_workflow", "AGENT", "CHAIN", "agent", "workflow")
_MODELS: Final = ("chat", "text_completion", "generate_content", "LLM")
_INPUTS: Final = ("llm.input_messages", "gen_ai.prompt")
_OUTPUTS: Final = ("llm.output_messages", "gen_ai.completion")
_DETAILS: Final = "gen_ai.client.inference.operation.details"
_REDACTED: Final = "__REDACTED__"  # by OpenInference
_CAPTURE: Final = "Let the instrumentation capture contents (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT)"


@dataclass(frozen=True, slots=True)
class Span:
    """start, end: nanoseconds. problem: why it failed; None where it did not. dropped: attributes and events of it that
    its limits cost. is_logged: whether this is what a log record tells of the span with this id.
    """

    id: str
    parent: str
    name: str
    start: int
    end: int
    attributes: Mapping[str, Any]
    events: Sequence[tuple[str, Mapping[str, Any]]]
    problem: str | None
    dropped: int
    is_logged: bool = False

    @property
    def kind(self) -> Literal["model", "tool", "run"] | None:
        stated = self.first(*_KINDS)
        if stated in _TOOLS:
            return "tool"
        if stated in _RUNS:
            return "run"
        is_model = stated in _MODELS or (stated is None and "gen_ai.request.model" in self.attributes)
        return "model" if is_model else None

    def first(self, *names: str) -> Any:
        """The first of these attributes that is there."""
        return next((self.attributes[name] for name in names if self.attributes.get(name) is not None), None)

    def __str__(self) -> str:
        return f"the span {truncate(self.name, 60)!r}"


def record_from_otel(exported: object) -> Record:
    """The record of a run of which the spans are known, of one trace.

    exported: what an exporter wrote, a mapping with `resourceSpans`, or a list of such. The answer is what the span of
    the outermost agent says it is, else the last message's. Raises TaskError(code="task_transcript_invalid"), also
    where contents were not captured: what the spans do not tell is not known.
    """
    traces = {trace for trace, _, is_told in traces_in(exported) if is_told}
    if len(traces) > 1:
        raise transcript_error(f"there are {len(traces)} traces of agents. Name the file with --results")
    return record_of_spans(spans_of(exported, *traces))


def traces_in(document: object) -> Iterator[tuple[str, str | None, bool]]:
    """Of each span its trace, the task that it names, and whether it tells anything of an agent."""
    for resource, span in _exported_spans(document):
        attributes = [each for each in (*resource, *list_at(span.get("attributes"), "'attributes'")) if each]
        held = {str(mapping_at(each, "an attribute").get("key")): each.get("value") for each in attributes}
        named, is_run = _value(held.get(TASK_NAME)), _value(held.get(_KINDS[0])) != "create_agent"
        is_told = "isLogged" in span or (is_run and any(key.startswith(_CONVENTIONS) for key in held))
        yield span["traceId"], named if isinstance(named, str) and named else None, is_told


def spans_of(document: object, trace: str | None = None) -> list[Span]:
    """The spans of an export, or of a list of such. trace: the id of the one that is wanted; None for all."""
    found = (span for _, span in _exported_spans(document) if trace is None or span["traceId"] == trace)
    return [_read_span(span) for span in found]


def record_of_spans(spans: Sequence[Span]) -> Record:
    """As `record_from_otel` has it; the spans of one trace, in any order."""
    unique = {span.id: span for span in spans if not span.is_logged}  # an exporter may send one twice
    inner: defaultdict[str, list[Span]] = defaultdict(list)
    for each in unique.values():
        inner[each.parent] += [each] if each.kind == "model" else []
    for log in sorted((span for span in spans if span.is_logged), key=lambda span: span.start):
        if (span := unique.get(log.id)) is None:
            raise transcript_error("a log record tells of a span that is not there. Export both to the same file")
        if span.kind != "model":  # some are written after the model's span has ended
            begun = [each for each in inner[span.id] if each.start <= log.start]
            span = unique[max(begun, key=lambda each: each.start, default=span).id]
        attributes, events = {**log.attributes, **span.attributes}, [*span.events, *log.events]
        unique[span.id] = replace(span, attributes=attributes, events=events)
    ordered = sorted(unique.values(), key=lambda span: span.start)
    models, runs = outermost(ordered, "model"), outermost(ordered, "run")
    said = _said_by(models) or _said_by(runs)
    answer = _answer_of(runs[-1]) if runs else None
    failed = runs[-1].problem if runs else None
    if not said and answer is None and failed is None:
        raise transcript_error(f"none of its {len(spans)} spans tells what was said. {_CAPTURE}")
    last = models[-1] if models else None
    if said and answer is None and failed is None and last is not None and not _messages_of(last)[1]:
        if last.problem is None:
            raise transcript_error(f"{last} does not tell what the model answered. {_CAPTURE}")
        said.append((last.end, Message("assistant", cut_off=f"error ({last.problem})")))
    said.sort(key=lambda each: each[0])
    steps = _with_tools(said, outermost(ordered, "tool"))
    messages = [message for _, message in said] or [Message("assistant", answer or "")]
    record = record_of_messages(messages)
    called = [time for time, message in said for _ in message.calls]
    steps += zip(called, record["execution_trace"], strict=True)
    record["execution_trace"] = [step for _, step in sorted(steps, key=lambda each: each[0])]
    record["iterations"] = len(models) or record["iterations"]
    if answer is not None and "reason" not in record:
        record |= {"task_result": answer, "status": "success" if answer.strip() else "failed"}
    if failed is not None:
        record |= {"status": "failed", "reason": {"code": "otel_error", "message": failed}}
    return record


def outermost(spans: Sequence[Span], kind: str) -> list[Span]:
    """The spans of a kind that stand in no other one of it: two instrumentations tell of the same call."""
    by_id = {span.id: span for span in spans}
    within: dict[str, bool] = {}  # whether a span of the kind is, or stands around, the one of this id

    def is_within(span_id: str) -> bool:
        path = []
        while span_id in by_id and span_id not in within and by_id[span_id].kind != kind:
            within[span_id] = False  # where parents go in a circle
            path.append(span_id)
            span_id = by_id[span_id].parent
        found = within.get(span_id, span_id in by_id)
        within.update(dict.fromkeys(path, found))
        return found

    return [span for span in spans if span.kind == kind and not is_within(span.parent)]


def tool_step(span: Span) -> dict[str, Any]:
    """A tool's span as a step of `execution_trace`."""
    [step] = record_of_messages(_call_and_answer(span))["execution_trace"]
    return {"action": step["action"], "feedback": step["feedback"]}


def _exported_spans(document: object) -> Iterator[tuple[Sequence[Any], Mapping[str, Any]]]:
    """Each span, and what a log record tells of one, with the attributes of its resource.

    Raises TaskError for what no exporter writes.
    """
    if isinstance(document, list):
        for each in document:
            yield from _exported_spans(each)
        return
    fields = mapping_at(document, "the export") if isinstance(document, Mapping) else {}
    if not fields.keys() & {"resourceSpans", "resourceLogs", "resourceMetrics"}:
        problem = "this is no OTLP: an object with 'resourceSpans', as the file exporter of a collector writes it"
        raise transcript_error(problem)
    for resources, scopes, entries in _SIGNALS:
        for exported in list_at(fields.get(resources), f"'{resources}'"):
            held = mapping_at(exported, f"an entry of '{resources}'").get("resource") or {}
            attributes = list_at(mapping_at(held, "'resource'").get("attributes"), "'attributes' of a resource")
            for scope in list_at(exported.get(scopes), f"'{scopes}'"):
                for entry in list_at(mapping_at(scope, f"an entry of '{scopes}'").get(entries), f"'{entries}'"):
                    is_span = entries == "spans"
                    span = mapping_at(entry, "a span") if is_span else _logged(mapping_at(entry, "a log record"))
                    if all(isinstance(span.get(key), str) and span[key] for key in ("traceId", "spanId")):
                        yield attributes, span
                    elif is_span:
                        raise transcript_error("a span has no traceId or no spanId")


def _logged(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a log record tells of its span, as one; nothing for any other record."""
    name = record.get("eventName") or _attributes(record).get("event.name")
    if not str(name).startswith("gen_ai."):
        return {}
    body = mapping_at(record.get("body") or {}, "'body' of a log record").get("kvlistValue") or {}
    told = list_at(mapping_at(body, "'body' of a log record").get("values"), "'values'")
    event = {"name": name, "attributes": [*list_at(record.get("attributes"), "'attributes'"), *told]}
    time = record.get("timeUnixNano") or record.get("observedTimeUnixNano")
    ids = {key: record.get(key) for key in ("traceId", "spanId")}
    return {**ids, "startTimeUnixNano": time, "events": [event], "isLogged": True}


def _read_span(span: Mapping[str, Any]) -> Span:
    events = []
    for each in list_at(span.get("events"), "'events' of a span"):
        event = mapping_at(each, "an event of a span")
        events.append((str(event.get("name")), _attributes(event)))
    attributes = _attributes(span)
    for name, fields in events:
        attributes |= fields if name == _DETAILS else {}
    status = mapping_at(span.get("status") or {}, "'status' of a span")
    raised = (str(fields.get("exception.message") or "") for name, fields in events if name == "exception")
    said = (status.get("message") or next(raised, "")) if status.get("code") in (2, "STATUS_CODE_ERROR") else None
    problem = None if said is None else printable(truncate(str(said or "error").partition("\n")[0], 500))
    start, end = (_integer(span.get(f"{name}TimeUnixNano")) or 0 for name in ("start", "end"))
    dropped = sum(_integer(span.get(name)) or 0 for name in ("droppedAttributesCount", "droppedEventsCount"))
    above, name = (str(span.get(key) or "") for key in ("parentSpanId", "name"))
    is_logged = span.get("isLogged") is True
    end = max(start, end)
    return Span(span["spanId"], above, name, start, end, attributes, events, problem, dropped, is_logged)


def _integer(value: object) -> int | None:
    """64 bits are a text in protobuf's JSON. None for what is no such number."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value):
        return int(value)
    return value if isinstance(value, int) else None


def _attributes(fields: Mapping[str, Any]) -> dict[str, Any]:
    pairs = [mapping_at(pair, "an attribute") for pair in list_at(fields.get("attributes"), "'attributes'")]
    return {str(pair.get("key")): _value(pair.get("value")) for pair in pairs}


def _value(value: object) -> Any:
    """What an AnyValue holds; None for nothing."""
    if not isinstance(value, Mapping):
        return None
    for kind, held in value.items():
        if kind == "arrayValue":
            return [_value(each) for each in list_at(mapping_at(held, "a list").get("values"), "'values'")]
        if kind == "kvlistValue":
            return _attributes({"attributes": mapping_at(held, "a mapping").get("values")})
        if kind == "intValue":
            return _integer(held)
        return None if held == _REDACTED else held
    return None


def _said_by(spans: Iterable[Span]) -> list[tuple[int, Message]]:
    """What was said, each thing once, with its time: every call of a model tells all that came before it, too."""
    said: list[tuple[int, Message]] = []
    known: Counter[object] = Counter()
    for span in spans:
        asked, answered = _messages_of(span)
        again: Counter[object] = Counter()
        for message in asked:
            again[key := _identity(message)] += 1
            if again[key] > known[key]:
                known[key] += 1
                said.append((span.start, message))
        for message in answered:
            known[_identity(message)] += 1
            said.append((span.end, message))
    ids = {message.answered_id for _, message in said}
    waiting: list[str | None] = []
    for at, (time, message) in enumerate(said):  # OpenLLMetry's events do not name the call that a tool answers
        waiting += [call.id for call in message.calls if call.id not in ids]
        if message.role == "tool" and message.answered_id is None and waiting:
            said[at] = time, replace(message, answered_id=waiting.pop(0))
    return said


def _identity(message: Message) -> object:
    """What it is known by when it is told again, maybe with its text in another form."""
    ids = tuple(call.id for call in message.calls)
    if ids and None not in ids:
        return ids
    calls = [(call.name, json.dumps(call.arguments, sort_keys=True, default=str)) for call in message.calls]
    return message.role, message.answered_id or message.text.strip(), *calls


def _messages_of(span: Span) -> tuple[list[Message], list[Message]]:
    """What was said to a model or an agent, and what it answered, in whichever way the span tells it."""
    if span.dropped and span.kind == "model":
        remedy = "Raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT and OTEL_SPAN_EVENT_COUNT_LIMIT"
        raise transcript_error(f"{span} lost {span.dropped} attributes or events to a limit. {remedy}")
    system = _structured(span, "gen_ai.system_instructions")
    asked = _structured(span, "gen_ai.input.messages") + _numbered(span, _INPUTS)
    answered = _structured(span, "gen_ai.output.messages") + _numbered(span, _OUTPUTS)
    asked_too, answered_too = list[Any](), list[Any]()
    for name, fields in span.events:
        if name == "gen_ai.choice":
            message = _parsed(fields.get("message"))
            given = message if isinstance(message, dict) else {"content": message}
            answered_too.append({"role": "assistant", **fields, **given})
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            asked_too.append({"role": name.split(".")[1], "tool_call_id": fields.get("id"), **fields})
    asked, answered = asked or asked_too, answered or answered_too  # a span may tell the same in both ways
    asked = [*([{"role": "system", "parts": system}] if system else ()), *asked]
    ending = span.first("gen_ai.response.finish_reasons", "llm.finish_reason")
    cut_off = cut_off_by({"finish_reason": ending[-1] if isinstance(ending, list) and ending else ending})
    said = [[message for entry in part for message in _read(entry, str(span))] for part in (asked, answered)]
    return said[0], [replace(each, cut_off=each.cut_off or cut_off) for each in said[1]]


def _read(entry: object, where: str) -> Iterator[Message]:
    """A message in any of the conventions' forms; what tools answered are messages of their own."""
    fields = {**mapping_at(entry, f"a message of {where}")}
    fields.setdefault("role", "user")
    calls = [_openai_call(call) for call in list_at(_parsed(fields.get("tool_calls")), f"'tool_calls' of {where}")]
    content = fields.get("content", fields.get("contents"))
    if isinstance(content, list):
        content = [part.get("message_content", part) if isinstance(part, Mapping) else part for part in content]
    answered = False
    is_bare = content is None and not calls and not fields.keys() & {"parts", "refusal"}
    if is_bare and fields["role"] == "assistant":
        raise transcript_error(f"{where} tells of a message without its text. {_CAPTURE}")
    for each in list_at(fields.get("parts"), f"'parts' of {where}"):
        part = mapping_at(each, f"a part of {where}")
        kind, held = part.get("type"), part.get("content")
        if kind == "tool_call_response":
            answered = True
            if calls:  # of a tool that ran at the provider
                begun = read_message({**fields, "content": content, "tool_calls": calls}, f"a message of {where}")
                yield replace(begun, goes_on=True)
                content, calls = None, []
            text = next((part[key] for key in ("response", "result") if part.get(key) is not None), NOT_TOLD)
            yield Message("tool", as_text(text), answered_id=id_of(part.get("id")))
        elif kind == "tool_call":
            calls.append(_openai_call(part))
        elif kind == "text" and held is None:
            raise transcript_error(f"{where} tells of a message without its text. {_CAPTURE}")
        else:
            content = [*(content or ()), {"type": kind, "text": held if kind == "text" else None}]
    if content is not None or calls or not answered:
        yield read_message({**fields, "content": content, "tool_calls": calls}, f"a message of {where}")


def _openai_call(call: object) -> object:
    fields = mapping_at(call, "a tool call")
    fields = mapping_at(fields.get("tool_call", fields), "a tool call")
    return fields if "function" in fields else {"id": fields.get("id"), "function": fields}


def _structured(span: Span, name: str) -> list[Any]:
    """The messages in an attribute, as a list or as JSON. Raises TaskError for what was cut off."""
    value = _parsed(span.attributes.get(name))
    if isinstance(value, str):
        remedy = "Was it cut by OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT?"
        raise transcript_error(f"{name} of {span} is no JSON. {remedy}")
    return list(list_at(value, f"{name} of {span}"))


def _numbered(span: Span, prefixes: Sequence[str]) -> list[Any]:
    """The messages in attributes such as `llm.input_messages.0.message.role`."""
    tree: dict[str, Any] = {}
    for key, value in span.attributes.items():
        if prefix := next((prefix for prefix in prefixes if key.startswith(f"{prefix}.")), None):
            *path, last = key.removeprefix(f"{prefix}.").split(".")
            place = tree
            for name in path:
                place = place.setdefault(name, {})
                if not isinstance(place, dict):
                    raise transcript_error(f"{key} of {span} stands below a value")
            place[last] = value
    listed = _as_lists(tree)
    found = listed if isinstance(listed, list) else []
    return [each.get("message", each) if isinstance(each, dict) else each for each in found]


def _as_lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if tree and all(_integer(name) is not None for name in tree):
        return [_as_lists(tree[name]) for name in sorted(tree, key=int)]
    return {name: _as_lists(value) for name, value in tree.items()}


def _answer_of(run: Span) -> str | None:
    """What the span of an agent says that it answered; None where it does not, or has its whole state there."""
    if (final := run.first("final_result")) is not None:
        return as_text(final)
    if answered := _messages_of(run)[1]:
        return None if answered[-1].calls or answered[-1].cut_off else answered[-1].text
    if (value := run.first("output.value")) is None:
        value = json_or_missing(str(run.first("traceloop.entity.output")))  # which a limit may have cut
        return None if value in (MISSING, None) or isinstance(value, dict) else as_text(value)
    told = json_or_missing(as_text(value)) if "json" in str(run.first("output.mime_type")) else value
    return None if told is MISSING or isinstance(told, dict) else as_text(value)


def _with_tools(said: list[tuple[int, Message]], tools: Iterable[Span]) -> list[tuple[int, dict[str, Any]]]:
    """Complete what was said by what the tools' spans tell; the steps, with their times, that no model asked for."""
    calls = [call for _, message in said for call in message.calls]
    told = {message.answered_id: at for at, (_, message) in enumerate(said) if message.role == "tool"}
    by_name: defaultdict[str, dict[int, Call]] = defaultdict(dict)
    by_id: defaultdict[str | None, list[int]] = defaultdict(list)
    for number, call in enumerate(calls):
        by_name[call.name][number] = call
        by_id[call.id].append(number)
    steps = []
    for span in tools:
        asking, answer = _call_and_answer(span)
        [made] = asking.calls
        alike = by_name[made.name]
        of_id = (number for number in by_id[made.id] if number in alike)
        same = (number for number, call in alike.items() if call.arguments == made.arguments)
        exact = next(of_id, next(same, None))
        if not alike:
            steps.append((span.start, tool_step(span)))
            continue
        asked = alike.pop(next(iter(alike)) if exact is None else exact)
        if (at := told.get(asked.id)) is None:
            said.append((span.end, replace(answer, answered_id=asked.id)))
        elif exact is not None and answer.is_error:
            said[at] = said[at][0], replace(said[at][1], is_error=True)
    said.sort(key=lambda each: each[0])
    return steps


def _call_and_answer(span: Span) -> tuple[Message, Message]:
    named = span.first("gen_ai.tool.name", "tool.name", "traceloop.entity.name")
    name = str(named or span.name.removeprefix("execute_tool ") or "?")
    arguments = span.first("gen_ai.tool.call.arguments", "tool_arguments", "input.value", "traceloop.entity.input")
    call_id = span.first("gen_ai.tool.call.id", "tool_call.id") or span.id
    result = span.first("gen_ai.tool.call.result", "tool_response", "output.value", "traceloop.entity.output")
    if "traceloop.span.kind" in span.attributes:
        arguments, result = _unwrapped(arguments, result)
    call = call_of(name, NOT_TOLD if arguments is None else arguments, call_id, str(span))
    text = span.problem or NOT_TOLD if result is None else as_text(result)
    answer = Message("tool", text, answered_id=call.id, is_error=span.problem is not None)
    return Message("assistant", calls=(call,)), answer


def _unwrapped(arguments: object, result: object) -> tuple[object, object]:
    """Of a tool what OpenLLMetry wraps: what LangChain's callbacks, or a decorated function, were given and gave."""
    match _parsed(arguments):
        case {"inputs": dict() as given, "input_str": _} | {"args": [], "kwargs": dict() as given}:
            arguments = given
    match _parsed(result):
        case {"output": {"kwargs": {"content": told}}, "kwargs": _} | {"output": told, "kwargs": _} | told:
            return arguments, told


def _parsed(value: object) -> Any:
    """JSON that stands in a text; a text that is none as it is."""
    found = json_or_missing(value) if isinstance(value, str) else value
    return value if found is MISSING else found
