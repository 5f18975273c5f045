"""What is different between two texts: word by word within a line, and line by line within a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from guarantee_email_agent.utils.terminal import Terminal

_BEFORE: Final = re.compile(r"\[-.*?-\]|>>.*?<<")
_AFTER: Final = re.compile(r"\{\+.*?\+\}")
CHANGE: Final = re.compile(r"\[-.*?-\]|\{\+.*?\+\}")
_MAX_LINES: Final = 5_000


def diff_words(before: Sequence[str], after: Sequence[str], fold: Callable[[str], str] = str) -> list[str]:
    """`after` with `[-words that went-]` and `{+words that came+}`; fold: words are the same where this is."""
    from difflib import SequenceMatcher  # start-up: only where something is different

    parts: list[str] = []
    matcher = SequenceMatcher(None, list(map(fold, before)), list(map(fold, after)), autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            parts += after[c:d]
            continue
        if b > a:
            parts.append(f"[-{' '.join(before[a:b])}-]")
        if d > c:
            parts.append(f"{{+{' '.join(after[c:d])}+}}")
    return parts


def diff_text(before: str, after: str) -> Iterator[str]:
    """The lines that are different, with their words as `diff_words` has them."""
    from difflib import SequenceMatcher

    old, new = before.split("\n")[:_MAX_LINES], after.split("\n")[:_MAX_LINES]
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            line = " ".join(diff_words(" ".join(old[a:b]).split(), " ".join(new[c:d]).split()))
            yield line or "(white space alone)"


def diff_lines(before: bytes, after: bytes, limit: int) -> Iterator[str]:
    """As `diff -U0` has it, without its head: at most `limit` lines, and how many there are beyond."""
    from difflib import unified_diff

    old, new = (content.decode(errors="replace").splitlines() for content in (before, after))
    if max(len(old), len(new)) > _MAX_LINES:
        yield f"(too long for a comparison line by line: {len(old):,} lines before, {len(new):,} now)"
        return
    changes = [line for line in islice(unified_diff(old, new, n=0, lineterm=""), 2, None) if line[:2] != "@@"]
    yield from changes[:limit]
    if len(changes) > limit:
        yield f"… and {len(changes) - limit} more lines"


def paint_changes(line: str, terminal: Terminal) -> str:
    """A line with what went or should not be there in red, and what stands there instead in green."""
    painted = _BEFORE.sub(lambda words: terminal.red(words[0]), line)
    return _AFTER.sub(lambda words: terminal.green(words[0]), painted)


def split_changes(line: str) -> Iterator[tuple[str, str]]:
    """A line as `diff_words` has it in parts, each with its sign: `-` went, `+` came, a space for what stayed."""
    at = 0
    for change in CHANGE.finditer(line):
        if at < change.start():
            yield " ", line[at : change.start()]
        yield change[0][1], change[0][2:-2]
        at = change.end()
    if at < len(line):
        yield " ", line[at:]
