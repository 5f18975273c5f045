"""Listing, finding and searching: operations whose work an agent decides, so each runs in a process of its own."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from .api_request import Arguments, InvalidArgumentError, RequestError, Result, choose
from .files import Files, file_error, walk

MAX_RESULTS: Final = 10_000
_SIZES: Final = {"K": 10, "M": 20, "G": 30}

Operation = Callable[[Files, Arguments], Result]


def list_path(files: Files, arguments: Arguments) -> Result:
    path = _folder(files, arguments)
    depth = arguments.integer("max_depth") if arguments.flag("recursive") else 1
    hidden, endings = arguments.flag("show_hidden"), arguments.texts("file_types")
    found = []
    for entry, relative in _walk(path, depth):
        if not hidden and _is_hidden(relative):
            continue
        folder = entry.is_dir(follow_symlinks=False)
        if endings and (folder or not entry.name.endswith(tuple(endings))):
            continue
        size, permissions = arguments.flag("include_size", default=True), arguments.flag("include_permissions")
        found.append(_describe(entry, size=size, permissions=permissions))
        if len(found) >= MAX_RESULTS:
            break
    _sort(found, arguments)
    folders = sum(item["is_directory"] for item in found)
    counts = {"total_count": len(found), "directory_count": folders, "file_count": len(found) - folders}
    return {"path": path, "files": found, **counts}, f"{len(found)} entries"


def find(files: Files, arguments: Arguments) -> Result:
    """A pattern without a slash fits names anywhere below the folder, one with a slash fits paths below it."""
    path, pattern = _folder(files, arguments), arguments.text("glob")
    fits = _path_pattern(pattern) if "/" in pattern else _name_pattern(pattern)
    found = [entry.path for entry, relative in _walk(path) if fits(relative)][:MAX_RESULTS]
    return {"path": path, "files": found}, f"{len(found)} files found"


def glob(files: Files, arguments: Arguments) -> Result:
    path, pattern = _folder(files, arguments), arguments.text("pattern")
    fits = _path_pattern(pattern)
    excluded = [_name_pattern(text) for text in arguments.texts("exclude")]
    only_files, hidden = arguments.flag("files_only", default=True), arguments.flag("include_hidden")
    found = []
    for entry, relative in _walk(path):
        if not fits(relative) or (not hidden and _is_hidden(relative)) or any(skip(relative) for skip in excluded):
            continue
        if not (only_files and entry.is_dir(follow_symlinks=False)):
            found.append(_describe(entry, size=True, permissions=False))
    _sort(found, arguments)
    limit = min(arguments.integer("max_results") or MAX_RESULTS, MAX_RESULTS)
    listed = found[:limit]
    if not arguments.flag("include_metadata"):
        listed = [{key: item[key] for key in ("path", "name", "is_directory")} for item in listed]
    result = {"path": path, "pattern": pattern, "files": listed, "total_count": len(found)}
    return result | {"truncated": len(found) > limit}, f"{len(found)} matches"


def search(files: Files, arguments: Arguments) -> Result:
    """The lines of a file that a regular expression occurs in, with their numbers from 0 on as reading counts them."""
    path, pattern = files.resolve(arguments.path("file")), _compile("regex", arguments.text("regex"))
    found = (hit for hit in enumerate(files.load_text(path).splitlines()) if pattern.search(hit[1]))
    matches = dict(itertools.islice(found, MAX_RESULTS))
    result = {"file": path, "matches": list(matches.values()), "line_numbers": list(matches)}
    return result, f"{len(matches)} matches"


def grep(files: Files, arguments: Arguments) -> Result:
    path, given = files.resolve(arguments.path("path")), arguments.text("pattern")
    flags = re.IGNORECASE if arguments.flag("case_insensitive") else 0
    pattern = _compile("pattern", re.escape(given) if arguments.flag("fixed_strings") else given, flags)
    before, after = max(arguments.integer("context_before") or 0, 0), max(arguments.integer("context_after") or 0, 0)
    skip, limit = max(arguments.integer("offset") or 0, 0), min(arguments.integer("max_results") or 1_000, MAX_RESULTS)
    matches: list[dict[str, Any]] = []
    seen = searched = matched = 0
    for name in _searched_files(path, arguments):
        try:
            lines = files.load(name).decode("utf-8").splitlines()
        except (RequestError, UnicodeDecodeError):
            continue
        searched += 1
        hits = [number for number, line in enumerate(lines) if pattern.search(line)]
        matched += bool(hits)
        for number in hits:
            seen += 1
            if seen > skip and len(matches) < limit:
                above, below = lines[max(number - before, 0) : number], lines[number + 1 : number + 1 + after]
                context = {"context_before": above, "context_after": below}
                matches.append({"file": name, "line_number": number + 1, "line_content": lines[number], **context})
    counts = {"match_count": seen, "files_searched": searched, "files_matched": matched}
    result = {"path": path, "pattern": given, "matches": matches, **counts, "truncated": seen > skip + len(matches)}
    return result, f"{seen} matches in {matched} files"


OPERATIONS: Final[dict[str, Operation]] = {
    "/v1/file/list": list_path,
    "/v1/file/find": find,
    "/v1/file/glob": glob,
    "/v1/file/search": search,
    "/v1/file/grep": grep,
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


def _searched_files(path: str, arguments: Arguments) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    included = [_name_pattern(text) for text in arguments.texts("include")]
    if (ending := arguments.optional_text("type")) is not None:
        included.append(_name_pattern(f"*.{ending}"))
    excluded = [_name_pattern(text) for text in arguments.texts("exclude")]
    largest = _parse_size(arguments.optional_text("max_file_size"))
    for entry, relative in _walk(path, None if arguments.flag("recursive", default=True) else 1):
        if not entry.is_file(follow_symlinks=False) or any(skip(relative) for skip in excluded):
            continue
        if (not included or any(fits(relative) for fits in included)) and entry.stat().st_size <= largest:
            yield entry.path


def _parse_size(text: str | None) -> int:
    if text is None:
        return 10 << 20
    match = re.fullmatch(r"(\d{1,12})([KMG]?)B?", text.strip().upper())
    if match is None:
        raise InvalidArgumentError("max_file_size", "must be a size such as 500K or 1M")
    return int(match[1]) << _SIZES.get(match[2], 0)


def _compile(argument: str, pattern: str, flags: int = 0) -> re.Pattern[str]:
    try:
        return re.compile(pattern, flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidArgumentError(argument, f"is no regular expression: {error}") from None


def _name_pattern(pattern: str) -> Callable[[str], bool]:
    """Whether any part of a path has such a name."""
    fits = _compile("glob", fnmatch.translate(pattern)).match
    return lambda path: fits(path) is not None or any(fits(part) is not None for part in path.split("/"))


def _path_pattern(pattern: str) -> Callable[[str], bool]:
    """`**` stands for any folders, `*` and `?` for anything within a name."""
    names = [
        part if part == "**" else _compile("pattern", fnmatch.translate(part)) for part in pattern.split("/") if part
    ]
    return lambda path: _fits(path.split("/"), names)


def _fits(parts: Sequence[str], names: Sequence[str | re.Pattern[str]]) -> bool:
    if not names or not parts:
        return not names and not parts
    if isinstance(name := names[0], str):
        return len(names) == 1 or _fits(parts, names[1:]) or _fits(parts[1:], names)
    return name.match(parts[0]) is not None and _fits(parts[1:], names[1:])


def _is_hidden(relative: str) -> bool:
    return any(part.startswith(".") for part in relative.split("/"))


def _describe(entry: os.DirEntry[str], *, size: bool, permissions: bool) -> dict[str, Any]:
    details = entry.stat(follow_symlinks=False)
    folder = stat.S_ISDIR(details.st_mode)
    modified = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(details.st_mtime))
    description = {"name": entry.name, "path": entry.path, "is_directory": folder, "modified_time": modified}
    description["extension"] = os.path.splitext(entry.name)[1] or None
    description["size"] = details.st_size if size and not folder else None
    return description | ({"permissions": stat.filemode(details.st_mode)} if permissions else {})


_ORDERS: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "path": lambda item: item["path"],
    "name": lambda item: item["name"],
    "size": lambda item: item["size"] or 0,
    "modified": lambda item: item["modified_time"],
    "type": lambda item: (not item["is_directory"], item["extension"] or "", item["name"]),
}


def _sort(found: list[dict[str, Any]], arguments: Arguments) -> None:
    key = choose("sort_by", arguments.optional_text("sort_by") or "path", _ORDERS)
    found.sort(key=key, reverse=arguments.flag("sort_desc"))
