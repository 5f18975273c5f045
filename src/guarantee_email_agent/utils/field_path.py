"""Where a value stands in JSON: `data.rows[0].state`, `[only].id`, `labels["with.dot"]`, or `.` for all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

MAX_STEPS: Final = 12
MAX_INDEX: Final = 99
ONLY: Final = -1
"""The index of the item of a list that holds one: several are a problem, and none is nothing."""

Step = str | int
"""A key, or an index."""

_STEP: Final = re.compile(
    r'(?P<dot>\.)?(?P<key>[^\s.\[\]"][^.\[\]"]*)|\[(?P<index>[0-9]{1,6})\]|(?P<only>\[only\])|\["(?P<quoted>[^"]+)"\]'
)


class FieldPathError(ValueError):
    """A path that is none, or that leads nowhere; the message ends a sentence about it."""


def parse_field_path(text: str) -> tuple[Step, ...]:
    """Raises FieldPathError."""
    if text == ".":
        return ()
    steps: list[Step] = []
    position = 0
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None or (found["key"] is not None and bool(found["dot"]) == (position == 0)):
            raise FieldPathError(f"must be a path such as data.rows[0].state, not {text[:60]!r}")
        position = found.end()
        if found["index"] is not None:
            steps.append(int(found["index"]))
        elif found["only"]:
            steps.append(ONLY)
        else:
            steps.append(found["key"] or found["quoted"])
    if not steps or len(steps) > MAX_STEPS or any(isinstance(step, int) and step > MAX_INDEX for step in steps):
        raise FieldPathError(f"must be a path of 1 to {MAX_STEPS} steps, with indexes up to {MAX_INDEX}, or a dot")
    return tuple(steps)


class _Missing:
    """The type of `MISSING`."""

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()
"""What is not there, which is not the same as `null`."""


def value_at(content: Any, path: Sequence[Step]) -> Any:
    """The value, or MISSING. A text that is JSON itself is gone into. Raises FieldPathError for several of `[only]`."""
    value = content
    for step in path:
        if isinstance(value, str):
            value = json_or_missing(value)
        if step == ONLY:
            if not isinstance(value, list) or not value:
                return MISSING
            if len(value) > 1:
                raise FieldPathError("holds several items where one is expected")
            value = value[0]
        elif isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return MISSING
            value = value[step]
        else:
            if not isinstance(value, dict) or step not in value:
                return MISSING
            value = value[step]
    return value


def json_or_missing(text: str) -> Any:
    """What a text holds as JSON; MISSING for one that is none, or too deep. NaN and the infinities are none."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return MISSING


def put_at(content: dict[str, Any], path: Sequence[Step], value: Any) -> None:
    """Set a value, with the objects and lists that lead to it. Raises FieldPathError where something else stands."""
    if not path or isinstance(path[0], int) or ONLY in path:
        raise FieldPathError("must begin with the name of an argument, and hold no [only]")
    place: Any = content
    for step, following in zip(path, [*path[1:], None], strict=True):
        new: Any = value if following is None else [] if isinstance(following, int) else {}
        if isinstance(step, int):
            if not isinstance(place, list) or step > len(place):
                raise FieldPathError("leaves out an item of a list, or goes into what is none")
            if step == len(place):
                place.append(new)
            elif following is None:
                raise FieldPathError("is taken already")
        else:
            if not isinstance(place, dict):
                raise FieldPathError("goes into what is no object")
            if step in place and following is None:
                raise FieldPathError("is taken already")
            place.setdefault(step, new)
        place = place[step]


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
