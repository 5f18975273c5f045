"""A request to the model: what goes over the wire, and the digest that stands for it.

Nothing here loads an SDK or an event loop, so that a recorded exchange can be replayed without either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

PARTS: Final = ("model", "max_tokens", "temperature", "system", "tools", "tool_choice", "messages")
"""Everything that decides an answer. `temperature` is None where none is sent."""


def wire_request(request: Mapping[str, Any], *, force_tool: bool) -> dict[str, Any]:
    """The request as the API gets it. Without `force_tool`, the model is asked for a tool and not made to use it.

    It is shown no other tool then: nothing would tell it which one is meant.
    """
    choice = request["tool_choice"]
    if force_tool or choice.get("type") not in ("any", "tool"):
        return dict(request)
    kept = {name: value for name, value in choice.items() if name == "disable_parallel_tool_use"}
    tools = [tool for tool in request["tools"] if choice.get("name") in (None, tool.get("name"))]
    return {**request, "tools": tools, "tool_choice": {"type": "auto", **kept}}


def all_parts(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request with each of its parts, None where it has none."""
    return {part: request.get(part) for part in PARTS}


def request_digest(request: Mapping[str, Any]) -> str:
    """Two requests on the wire are the same if their digests are."""
    return digest(all_parts(request))


def digest(data: Any) -> str:
    """SHA-256 of plain data, in hexadecimal. Raises TypeError for what JSON does not know."""
    return hashlib.sha256(canonical_json(data).encode("utf-8", "surrogatepass")).hexdigest()


def canonical_json(data: Any) -> str:
    """The one JSON text of plain data."""
    return _ENCODER.encode(data)


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))
