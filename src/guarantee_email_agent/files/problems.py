"""What is wrong with a file that a person edits: each problem with its key, its line, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal

KeyPath = tuple[str | int, ...]
ProblemKind = Literal["missing", "unknown", "type", "value"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a document; `message` leaves out where, which is `path` (see `dotted_path`)."""

    path: KeyPath
    kind: ProblemKind
    message: str
    quote: bool = False  # a plain scalar stands where text must: quoting it is the remedy
    line: int | None = None  # from 1; filled by `locate_problems`


class ProblemsError(ValueError):
    """Several things wrong below one value, by a check or by a dataclass over its fields. Their paths start there."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(join_problems(f"{dotted_path(each.path)}: {each.message}" for each in self.problems))


def dotted_path(path: KeyPath) -> str:
    """A path as people write it: `("input", "to", 0)` is `input.to[0]`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def locate_problems(problems: list[Problem], text: str) -> list[Problem]:
    """The problems with their lines in `text`, and with what to quote exactly as its author wrote it."""
    from guarantee_email_agent.files import yaml_errors  # PyYAML takes 35 ms to import; only when something is wrong

    wanted = {problem.path[:length] for problem in problems for length in range(1, len(problem.path) + 1)}
    nodes: dict[KeyPath, yaml_errors.Node] = {}
    for node in yaml_errors.nodes(text):
        if node.path in wanted:
            nodes.setdefault(node.path, node)
            if len(nodes) == len(wanted):
                break
    located = []
    for problem in problems:
        path, message = problem.path, problem.message
        if problem.quote and path in nodes and (scalar := nodes[path].scalar):
            message = _quote_hint(scalar)
        while path and path not in nodes:
            path = path[:-1]
        # The root has no key of its own: a key that is missing at the top has no line.
        located.append(replace(problem, message=message, line=nodes[path].line if path else None))
    return located


def mismatch(path: KeyPath, expected: str, value: object, hint: str = "", kind: ProblemKind = "type") -> Problem:
    """The value is not what is expected. hint: what to do, after a semicolon or a dash."""
    return Problem(path, kind, f"must be {expected}, {_actual(value)}{hint}")


def not_text(path: KeyPath, value: object) -> Problem:
    """The value is something else than text."""
    if type(value) in (int, float, bool):
        return Problem(path, "type", _quote_hint(as_yaml(value)), quote=True)
    return mismatch(path, "text", value)


def missing_key(key: str, path: KeyPath, others: Iterable[object]) -> Problem:
    """others: keys that are no problem by themselves, one of which may be meant."""
    near = _close_match(key, others)
    hint = f" – is it misspelled as {near!r}?" if near else ""
    return Problem((*path, key), "missing", f"is missing{hint}")


def unknown_key(key: object, path: KeyPath, known: Iterable[str]) -> Problem:
    if not isinstance(key, str):
        return non_text_key(key, path)
    return Problem((*path, key), "unknown", f"unknown key {key!r}{suggestion(key, known, listing=True)}")


def non_text_key(key: object, path: KeyPath) -> Problem:
    shown = as_yaml(key)
    return Problem((*path, shown), "type", f'the key {shown} is not text; quote it: "{shown}"')


def join_problems(problems: Iterable[str]) -> str:
    """Several problems on one line; what ends in a question, as a suggestion does, takes no further sign."""
    line = ""
    for problem in problems:
        line += f"{' ' if line.endswith('?') else '; ' if line else ''}{problem}"
    return line


def suggestion(word: object, choices: Iterable[object], listing: bool = False) -> str:
    """` – did you mean …?`, or the known keys where nothing is near."""
    if near := _close_match(word, choices):
        return f" – did you mean {near!r}?"
    names = [choice for choice in choices if isinstance(choice, str)]
    return f"; known keys: {', '.join(names)}" if listing and names else ""


def listed(word: object, choices: Iterable[str]) -> str:
    """The same, or all that there are."""
    return suggestion(word, choices) or f"; there are {', '.join(choices) or 'none'}"


def _close_match(word: object, choices: Iterable[object]) -> str | None:
    from difflib import get_close_matches  # 2 ms, only when something is wrong

    names = {choice.casefold(): choice for choice in choices if isinstance(choice, str)}
    near = get_close_matches(word[:100].casefold(), names, n=1) if isinstance(word, str) else []
    return names[near[0]] if near else None


def unquote_hint(value: object) -> str:
    """What to do with a number in quotes."""
    if isinstance(value, str) and "_" not in value:  # Python's own, which stands there without quotes
        with suppress(ValueError):
            return "; remove the quotes" if isfinite(float(value)) else ""
    return ""


def _actual(value: object) -> str:
    """What stands there instead, cut to a length that fits a line."""
    if value is None:
        return "but is empty"
    if isinstance(value, dict):
        return "not a mapping"
    if isinstance(value, list):
        return "not a list"
    if isinstance(value, str):
        return f"not the text {value!r}" if len(value) <= 40 else f"not the text {value[:37]!r}…"
    return f"not {as_yaml(value)}"


def as_yaml(value: object) -> str:
    """A scalar as YAML has it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def _quote_hint(scalar: str) -> str:
    is_word = scalar.lower() in ("true", "false")
    what = f"the word {scalar}, true or false in YAML" if is_word else f"the number {scalar}"
    return f'is {what}, not text; quote it: "{scalar}"'
