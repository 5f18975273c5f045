"""Spans by hand, as OTLP's JSON has them."""

from collections.abc import Mapping
from typing import Any


def value(of: object) -> dict[str, Any]:
    match of:
        case bool():
            return {"boolValue": of}
        case int():
            return {"intValue": str(of)}
        case list():
            return {"arrayValue": {"values": [value(each) for each in of]}}
        case dict():
            return {"kvlistValue": {"values": attributes(of)}}
    return {"stringValue": of}


def attributes(of: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(held)} for key, held in of.items()]


def span(number: int, of: Mapping[str, Any], parent: int = 0, trace: str = "a1", **fields: Any) -> dict[str, Any]:
    """Begins at its number, in nanoseconds."""
    events = [{"name": name, "attributes": attributes(held)} for name, held in fields.pop("events", [])]
    times = {"startTimeUnixNano": str(number), "endTimeUnixNano": str(number)}
    ids = {"traceId": trace, "spanId": f"{number:016x}", "parentSpanId": f"{parent:016x}" if parent else ""}
    return {**ids, **times, "name": f"span {number}", "attributes": attributes(of), "events": events, **fields}


def log(number: int, name: str, body: Mapping[str, Any], of_span: int = 1, trace: str = "a1") -> dict[str, Any]:
    """An event as a log record of a span."""
    ids = {"traceId": trace, "spanId": f"{of_span:016x}"}
    return {**ids, "timeUnixNano": str(number), "eventName": name, "body": value(body)}


def export(*spans: object, **resource: Any) -> dict[str, Any]:
    logs = [each for each in spans if isinstance(each, dict) and "body" in each]
    held = {"resource": {"attributes": attributes(resource)}}
    exported = {"resourceSpans": [{**held, "scopeSpans": [{"spans": [each for each in spans if each not in logs]}]}]}
    return exported | ({"resourceLogs": [{**held, "scopeLogs": [{"logRecords": logs}]}]} if logs else {})
