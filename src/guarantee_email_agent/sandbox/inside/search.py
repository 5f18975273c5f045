"""Listing, finding and searching: operations whose work an agent decides, so each runs in a process of its own."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from .api_request import Arguments, InvalidArgumentError, RequestError, Result, choose
from .files import Files, file_error, walk

MAX_RESULTS: Final = 10_000

Operation = Callable[[Files, Arguments], Result]


def list_path(files: Files, arguments: Arguments) -> Result:
    path = _folder(files, arguments)
    depth = arguments.integer("max_depth") if arguments.flag("recursive") else 1
    hidden, endings = arguments.flag("show_hidden"), arguments.texts("file_types")
    found = []
    for entry, relative in _walk(path, depth):
        if not hidden and any(part.startswith(".") for part in relative.split("/")):
            continue
        folder = entry.is_dir(follow_symlinks=False)
        if endings and (folder or not entry.name.endswith(tuple(endings))):
            continue
        found.append(_describe(entry))
        if len(found) >= MAX_RESULTS:
            break
    key = choose("sort_by", arguments.optional_text("sort_by") or "path", _ORDERS)
    found.sort(key=key, reverse=arguments.flag("sort_desc"))
    folders = sum(item["is_directory"] for item in found)
    counts = {"total_count": len(found), "directory_count": folders, "file_count": len(found) - folders}
    return {"path": path, "files": found, **counts}, f"{len(found)} entries"


def find(files: Files, arguments: Arguments) -> Result:
    """A pattern without a slash fits names anywhere below the folder; one with a slash fits paths, as `find` has it."""
    path, pattern = _folder(files, arguments), arguments.text("glob")
    is_path = "/" in pattern
    if is_path:
        pattern = f"*/{pattern[3:]}" if pattern.startswith("**/") else f"/{pattern}"
    fits = _compile("glob", fnmatch.translate(pattern)).match
    names = ((entry.path, f"/{relative}" if is_path else entry.name) for entry, relative in _walk(path))
    found = [found for found, name in names if fits(name)][:MAX_RESULTS]
    return {"path": path, "files": found}, f"{len(found)} files found"


def search(files: Files, arguments: Arguments) -> Result:
    """The lines of a file that a regular expression occurs in, with their numbers from 0 on as reading counts them."""
    path, pattern = files.resolve(arguments.path("file")), _compile("regex", arguments.text("regex"))
    found = (hit for hit in enumerate(files.load_text(path).splitlines()) if pattern.search(hit[1]))
    matches = dict(itertools.islice(found, MAX_RESULTS))
    result = {"file": path, "matches": list(matches.values()), "line_numbers": list(matches)}
    return result, f"{len(matches)} matches"


OPERATIONS: Final[dict[str, Operation]] = {
    "/v1/file/list": list_path,
    "/v1/file/find": find,
    "/v1/file/search": search,
}


def _folder(files: Files, arguments: Arguments) -> str:
    path = files.resolve(arguments.path("path"))
    try:
        if not stat.S_ISDIR(os.stat(path).st_mode):
            raise RequestError(400, f"{path}: Is no directory")
    except OSError as error:
        raise file_error(error, path) from None
    return path


def _walk(top: str, depth: int | None = None) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Everything below a folder, each with its path from there."""
    try:
        for entry in walk(top, depth):
            yield entry, entry.path.removeprefix(top).lstrip("/")
    except OSError as error:
        raise file_error(error, top) from None


def _compile(argument: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidArgumentError(argument, f"is no regular expression: {error}") from None


def _describe(entry: os.DirEntry[str]) -> dict[str, Any]:
    details = entry.stat(follow_symlinks=False)
    folder = stat.S_ISDIR(details.st_mode)
    return {
        "name": entry.name,
        "path": entry.path,
        "is_directory": folder,
        "modified_time": time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(details.st_mtime)),
        "extension": os.path.splitext(entry.name)[1] or None,
        "size": None if folder else details.st_size,
        "permissions": stat.filemode(details.st_mode),
    }


_ORDERS: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "path": lambda item: item["path"],
    "name": lambda item: item["name"],
    "size": lambda item: item["size"] or 0,
    "modified": lambda item: item["modified_time"],
    "type": lambda item: (not item["is_directory"], item["extension"] or "", item["name"]),
}
