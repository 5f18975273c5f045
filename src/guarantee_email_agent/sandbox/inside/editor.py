"""The editor of the API: view, create, replace, insert. Its messages are written for a language model."""

from __future__ import annotations

import os
from typing import Final

from .api_request import Arguments, InvalidArgumentError, RequestError, Result, choose, encode
from .files import Files, walk
from .running_command import shorten

_CONTEXT_LINES: Final = 4
_MAX_LISTED: Final = 1_000

_Edit = tuple[str, str | None, str | None]
"""Output, content before, content now."""


def edit(files: Files, arguments: Arguments) -> Result:
    command, path = arguments.text("command"), files.resolve(arguments.path("path"))
    actions = {"view": _view, "create": _create, "str_replace": _replace, "insert": _insert}
    action = choose("command", command, actions)
    existed = os.path.lexists(path)
    output, old, new = action(files, path, arguments)
    result = {"output": output, "error": None, "path": path, "prev_exist": existed}
    return result | {"old_content": old, "new_content": new}, f"{command} done"


def _view(files: Files, path: str, arguments: Arguments) -> _Edit:
    if os.path.isdir(path):
        names = [f"{path}/"]
        for entry in walk(path, 2):
            if not entry.name.startswith("."):
                names.append(f"{entry.path}{'/' if entry.is_dir(follow_symlinks=False) else ''}")
            if len(names) > _MAX_LISTED:
                names.append("…")
                break
        return "\n".join(names), None, None
    lines = files.load_text(path).split("\n")
    first, last = 1, len(lines)
    if view_range := arguments.integers("view_range"):
        if len(view_range) != 2:
            problem = "must be two line numbers, such as [11, 20]; -1 is the last line"
            raise InvalidArgumentError("view_range", problem)
        first, last = view_range[0], len(lines) if view_range[1] == -1 else view_range[1]
        if not 1 <= first <= len(lines) or last < first:
            problem = f"must lie between 1 and {len(lines)}, the first line before the last"
            raise InvalidArgumentError("view_range", problem)
    return shorten(_numbered(lines[first - 1 : last], first)), None, None


def _create(files: Files, path: str, arguments: Arguments) -> _Edit:
    text = arguments.text("file_text")
    old = files.load_text(path) if os.path.isfile(path) else None
    files.store(path, encode(text))
    return f"File created: {path}", old, text


def _replace(files: Files, path: str, arguments: Arguments) -> _Edit:
    old, new = arguments.text("old_str"), arguments.optional_text("new_str") or ""
    text = files.load_text(path)
    count = text.count(old) if old else 0
    if count == 0:
        raise RequestError(400, f"{path}: old_str does not occur in it as it stands. Nothing was changed")
    if count > 1:
        raise RequestError(400, f"{path}: old_str occurs {count} times. Give more of the text around it")
    at, changed = text.index(old), text.replace(old, new)
    files.store(path, encode(changed))
    return f"File edited: {path}\n{_excerpt(changed, text.count(chr(10), 0, at), new)}", text, changed


def _insert(files: Files, path: str, arguments: Arguments) -> _Edit:
    new, line, text = arguments.text("new_str"), arguments.integer("insert_line"), files.load_text(path)
    lines = text.split("\n")
    if line is None or not 0 <= line <= len(lines):
        raise InvalidArgumentError("insert_line", f"must lie between 0 and {len(lines)}")
    changed = "\n".join([*lines[:line], *new.split("\n"), *lines[line:]])
    files.store(path, encode(changed))
    return f"File edited: {path}\n{_excerpt(changed, line, new)}", text, changed


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(lines, first))


def _excerpt(text: str, line: int, new: str) -> str:
    """The lines that were edited, with some around them. line: counted from 0."""
    lines, first = text.split("\n"), max(line - _CONTEXT_LINES, 0)
    return shorten(_numbered(lines[first : line + new.count("\n") + 1 + _CONTEXT_LINES], first + 1))
