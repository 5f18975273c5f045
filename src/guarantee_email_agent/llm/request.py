"""A request to the model as a whole: what goes over the wire, and the one text that stands for it.

Nothing here loads an SDK or an event loop, so that a recorded exchange can be replayed without either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

PARTS: Final = ("model", "max_tokens", "temperature", "system", "tools", "tool_choice", "messages")
"""Everything that decides an answer. `temperature` is None where none is sent."""


def as_sent(request: Mapping[str, Any], *, force_tool: bool) -> dict[str, Any]:
    """The request as the API gets it: without `force_tool`, the model is asked for a tool and not made to use it."""
    sent = dict(request)
    choice = request["tool_choice"]
    if not force_tool and choice.get("type") in ("any", "tool"):
        kept = {name: value for name, value in choice.items() if name == "disable_parallel_tool_use"}
        sent["tool_choice"] = {"type": "auto", **kept}
    return sent


def canonical(request: Mapping[str, Any]) -> str:
    """The one JSON text of a request as sent; two requests are the same if their texts are."""
    return canonical_json({part: request.get(part) for part in PARTS})


def canonical_json(data: Any) -> str:
    """The one JSON text of plain data."""
    return _ENCODER.encode(data)


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))
