"""What helps to read a failure: its reply, and what it says in place of a missing phrase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from guarantee_email_agent.eval.checks import find_phrase
from guarantee_email_agent.runlog.records import Case

_MAX_REPLY_CHARS: Final = 4_000


def explain(case: Case) -> Iterator[str]:
    """Lines below a failed scenario's misses; none where its reply is not what failed."""
    shown = case.shown
    reply = (shown.response or {}).get("response_body")
    if not isinstance(reply, str) or not any(each.name.startswith("response_body_") for each in shown.failed_checks):
        return
    yield from map(str, shown.nearest)
    yield "reply:"
    forbidden = [
        each.phrase for each in shown.failed_checks if each.phrase and each.name.endswith("response_body_excludes")
    ]
    marked = _mark(reply[:_MAX_REPLY_CHARS].strip(), forbidden)
    yield from (f"  {line.rstrip()}" for line in marked.split("\n") if line.strip())
    if len(reply) > _MAX_REPLY_CHARS:
        yield f"  … and {len(reply) - _MAX_REPLY_CHARS} more characters"


def _mark(reply: str, phrases: Sequence[str]) -> str:
    """The reply with every phrase that must not be there between `>>` and `<<`."""
    spans = sorted(span for phrase in phrases if (span := find_phrase(phrase, reply)) is not None)
    marked, end = "", 0
    for first, last in spans:
        if first >= end:
            marked += f"{reply[end:first]}>>{reply[first:last]}<<"
            end = last
    return marked + reply[end:]
