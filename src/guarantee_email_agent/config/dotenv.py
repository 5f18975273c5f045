"""A `.env` file: `NAME=value` lines. Strict, so that a typo is named instead of dropped; values are never shown."""

from __future__ import annotations

import re
from typing import Final

_ASSIGNMENT: Final = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_QUOTED: Final = re.compile(r"""(?:'([^']*)'|"((?:[^"\\]|\\.)*)")\s*(?:#.*)?""")
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


def parse_dotenv(text: str) -> tuple[dict[str, str], list[tuple[int, str]]]:
    """The variables, and the problems as (line from 1, what is wrong).

    Empty lines, `#` comments, `export`, 'literal' and "escaped" quotes are known; nothing is expanded.
    """
    values: dict[str, str] = {}
    problems: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        assignment = _ASSIGNMENT.fullmatch(line)
        if assignment is None:
            problems.append((number, "must be NAME=value, a comment or empty"))
            continue
        name, written = assignment.groups()
        if name in values:
            problems.append((number, f"{name} stands twice; keep one"))
        elif written[:1] in ("'", '"'):
            quoted = _QUOTED.fullmatch(written)
            if quoted is None:
                problems.append((number, f"the quotes of {name} do not close at the end of the line"))
                continue
            literal, escaped = quoted.groups()
            values[name] = (
                literal if literal is not None else _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), escaped)
            )
        else:
            values[name] = _COMMENT.sub("", written).rstrip()
    return values, problems
