"""The file operations of the API. They run with the rights of the agent itself, so they reach what it reaches."""

from __future__ import annotations

import binascii
import errno
import fnmatch
import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from .api_request import Arguments, InvalidArgumentError, RequestError, Result, choose, encode
from .running_command import shorten

READ_BYTES: Final = 16 << 20
"""The longest file that is read or edited as text."""
DOWNLOAD_BYTES: Final = 64 << 20

_STATUS: Final = {errno.ENOENT: 404, errno.ENOTDIR: 404, errno.EACCES: 403, errno.EPERM: 403, errno.EROFS: 403}


def file_error(error: OSError, path: str) -> RequestError:
    """What an operating system's error answers."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RequestError(507, f"{path}: the disk of the sandbox is full")
    if error.errno == errno.EFBIG:
        return RequestError(507, f"{path}: the file would be larger than the sandbox allows")
    reason = os.strerror(error.errno) if error.errno else str(error)
    if error.errno == errno.ENOENT:
        reason = "File does not exist"
    return RequestError(_STATUS.get(error.errno or 0, 400), f"{path}: {reason}")


class Files:
    """Reads, writes and edits files. home: what a relative path is relative to."""

    def __init__(self, home: str) -> None:
        self._home = home

    def resolve(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        return os.path.normpath(os.path.join(self._home, path)) if ".." not in path else os.path.join(self._home, path)

    def folder(self, path: str | None) -> str:
        """To run a program in; home where none is given. Raises RequestError."""
        folder = self.resolve(path or self._home)
        if not os.path.isdir(folder):
            raise RequestError(400, f"{folder}: is no folder to run a program in")
        return folder

    def load(self, path: str, limit: int = READ_BYTES) -> bytes:
        """The content of a regular file. Raises RequestError."""
        chunks, size = [], 0
        with _open_regular(path, os.O_RDONLY) as descriptor:
            # The size that a file claims is no measure: those in /proc claim none, and others grow.
            while size <= limit and (chunk := os.read(descriptor, min(1 << 20, limit + 1 - size))):
                chunks.append(chunk)
                size += len(chunk)
        if size > limit:
            problem = f"is longer than {limit >> 20} MiB. Download it, or look at parts of it in the shell"
            raise RequestError(413, f"{path}: {problem}")
        return b"".join(chunks)

    def store(self, path: str, content: bytes, *, append: bool = False) -> None:
        """Write a regular file, with the folders above it. Raises RequestError."""
        with _open_regular(path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else 0)) as descriptor:
            if not append:
                os.ftruncate(descriptor, 0)
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]

    def load_text(self, path: str, *, exact: bool = False) -> str:
        """exact: bytes that are no UTF-8 stay what they are where the text is stored again."""
        return self.load(path).decode("utf-8", "surrogateescape" if exact else "replace")

    def read(self, arguments: Arguments) -> Result:
        path = self.resolve(arguments.path("file"))
        start, end = arguments.integer("start_line"), arguments.integer("end_line")
        text = self.load_text(path)
        if start is not None or end is not None:
            text = "".join(text.splitlines(keepends=True)[max(start or 0, 0) : end])
        return {"content": text, "file": path}, "File read"

    def write(self, arguments: Arguments) -> Result:
        path, text = self.resolve(arguments.path("file")), arguments.text("content")
        encoding = arguments.optional_text("encoding") or "utf-8"
        if encoding == "base64":
            try:
                content = binascii.a2b_base64(text.encode(), strict_mode=True)
            except (binascii.Error, ValueError) as error:
                raise InvalidArgumentError("content", f"is not base64: {error}") from None
        elif encoding in ("utf-8", "raw"):
            before, after = arguments.flag("leading_newline"), arguments.flag("trailing_newline")
            content = encode("\n" * before + text + "\n" * after)
        else:
            raise InvalidArgumentError("encoding", "must be utf-8, base64 or raw")
        self.store(path, content, append=arguments.flag("append"))
        return {"file": path, "bytes_written": len(content)}, "File written"

    def replace(self, arguments: Arguments) -> Result:
        path = self.resolve(arguments.path("file"))
        old, new = arguments.text("old_str"), arguments.text("new_str")
        if not old:
            raise InvalidArgumentError("old_str", "must not be empty")
        text = self.load_text(path, exact=True)
        count = text.count(old)
        if count:
            self.store(path, encode(text.replace(old, new)))
        message = f"Replaced {count} times" if count else "old_str does not occur in the file"
        return {"file": path, "replaced_count": count}, message

    def upload_entry(self, query: dict[str, str], content: bytes) -> Result:
        """One entry of a folder that is copied in: a file with its mode, a link (`link`) or a folder (`folder`).

        A file may come in parts: all but the first one have `append`.
        """
        path = self.resolve(query.get("path", ""))
        try:
            os.makedirs(path if "folder" in query else os.path.dirname(path), exist_ok=True)
            if "link" in query:
                os.symlink(query["link"], path)
            elif "folder" not in query:
                self.store(path, content, append="append" in query)
                os.chmod(path, int(query.get("mode", "644"), 8) & 0o777)
        except ValueError as error:
            raise InvalidArgumentError("query", str(error)) from None
        except OSError as error:
            raise file_error(error, path) from None
        return {"file_path": path, "file_size": len(content), "success": True}, "File uploaded"


@contextmanager
def _open_regular(path: str, flags: int) -> Iterator[int]:
    """A descriptor of a regular file. Raises RequestError, also where the work on it fails.

    A pipe or a device is refused: a program may wait at it for ever.
    """
    try:
        if flags & os.O_CREAT:
            os.makedirs(os.path.dirname(path) or "/", exist_ok=True)
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY, 0o644)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                raise RequestError(400, f"{path}: Is {'a directory' if stat.S_ISDIR(mode) else 'no regular file'}")
            yield descriptor
        finally:
            os.close(descriptor)
    except OSError as error:
        raise file_error(error, path) from None


def walk(top: str, unread: list[str], depth: int | None = None) -> Iterator[tuple[os.DirEntry[str], str]]:
    """Everything below a folder, each with its path from there, folders before what is in them; links are not followed.

    unread: to which folders are added that cannot be read. Raises RequestError for `top`.
    """
    waiting = [(top, depth)]
    while waiting:
        folder, left = waiting.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            if folder == top:
                raise file_error(error, top) from None
            unread.append(folder)
            continue
        for entry in entries:
            yield entry, entry.path.removeprefix(top).lstrip("/")
            if (left is None or left > 1) and entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, None if left is None else left - 1))


MAX_RESULTS: Final = 10_000  # of one answer; a part of more would look like all

Operation = Callable[[Files, Arguments], Result]


def list_path(files: Files, arguments: Arguments) -> Result:
    path = _folder(files, arguments)
    depth = arguments.integer("max_depth") if arguments.flag("recursive") else 1
    hidden, endings = arguments.flag("show_hidden"), tuple(arguments.texts("file_types"))
    unread = list[str]()
    found = _all(
        path,
        (
            _describe(entry)
            for entry, relative in walk(path, unread, depth)
            if (hidden or not any(part.startswith(".") for part in relative.split("/")))
            and (not endings or (entry.name.endswith(endings) and not entry.is_dir(follow_symlinks=False)))
        ),
    )
    key = choose("sort_by", arguments.optional_text("sort_by") or "path", _ORDERS)
    found.sort(key=key, reverse=arguments.flag("sort_desc"))
    folders = sum(item["is_directory"] for item in found)
    counts = {"total_count": len(found), "directory_count": folders, "file_count": len(found) - folders}
    return {"path": path, "files": found, "unreadable": unread, **counts}, f"{len(found)} entries"


def find(files: Files, arguments: Arguments) -> Result:
    """A pattern without a slash fits names anywhere below the folder; one with a slash fits paths, as `find` has it."""
    path, pattern = _folder(files, arguments), arguments.text("glob")
    is_path = "/" in pattern
    if is_path:
        pattern = f"*/{pattern[3:]}" if pattern.startswith("**/") else f"/{pattern}"
    fits = _compile("glob", fnmatch.translate(pattern)).match
    unread = list[str]()
    names = ((entry.path, f"/{relative}" if is_path else entry.name) for entry, relative in walk(path, unread))
    found = _all(path, (found for found, name in names if fits(name)))
    return {"path": path, "files": found, "unreadable": unread}, f"{len(found)} files found"


def search(files: Files, arguments: Arguments) -> Result:
    """The lines of a file that a regular expression occurs in, with their numbers from 0 on as reading counts them."""
    path, pattern = files.resolve(arguments.path("file")), _compile("regex", arguments.text("regex"))
    found = (hit for hit in enumerate(files.load_text(path).splitlines()) if pattern.search(hit[1]))
    matches = dict(_all(path, found))
    result = {"file": path, "matches": list(matches.values()), "line_numbers": list(matches)}
    return result, f"{len(matches)} matches"


OPERATIONS: Final[dict[str, Operation]] = {"/v1/file/list": list_path, "/v1/file/find": find, "/v1/file/search": search}


def _all(path: str, found: Iterator[Any]) -> list[Any]:
    """Raises RequestError where that is too much for an answer."""
    kept = list(itertools.islice(found, MAX_RESULTS + 1))
    if len(kept) > MAX_RESULTS:
        raise RequestError(413, f"{path}: over {MAX_RESULTS:,} fit. Ask for less of it, or look in the shell")
    return kept


def _folder(files: Files, arguments: Arguments) -> str:
    path = files.resolve(arguments.path("path"))
    try:
        if not stat.S_ISDIR(os.stat(path).st_mode):
            raise RequestError(400, f"{path}: Is no directory")
    except OSError as error:
        raise file_error(error, path) from None
    return path


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


_CONTEXT_LINES: Final = 4
_MAX_LISTED: Final = 1_000

_Edit = tuple[str, str | None, str | None]
"""Output, content before, content now."""


def edit(files: Files, arguments: Arguments) -> Result:
    """View, create, replace or insert; the messages are written for a language model."""
    command, path = arguments.text("command"), files.resolve(arguments.path("path"))
    actions = {"view": _view, "create": _create, "str_replace": _replace, "insert": _insert}
    action = choose("command", command, actions)
    existed = os.path.lexists(path)
    output, old, new = (text and encode(text).decode("utf-8", "replace") for text in action(files, path, arguments))
    result = {"output": output, "error": None, "path": path, "prev_exist": existed}
    return result | {"old_content": old, "new_content": new}, f"{command} done"


def _view(files: Files, path: str, arguments: Arguments) -> _Edit:
    if os.path.isdir(path):
        names = [f"{path}/"]
        for entry, _ in walk(path, unread := list[str](), 2):
            if not entry.name.startswith("."):
                names.append(f"{entry.path}{'/' if entry.is_dir(follow_symlinks=False) else ''}")
            if len(names) > _MAX_LISTED:
                names.append("…")
                break
        return "\n".join([*names, *(f"{folder}: cannot be read" for folder in unread)]), None, None
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
    text = files.load_text(path, exact=True)
    count = text.count(old) if old else 0
    if count == 0:
        raise RequestError(400, f"{path}: old_str does not occur in it as it stands. Nothing was changed")
    if count > 1:
        raise RequestError(400, f"{path}: old_str occurs {count} times. Give more of the text around it")
    at, changed = text.index(old), text.replace(old, new)
    files.store(path, encode(changed))
    return f"File edited: {path}\n{_excerpt(changed, text.count(chr(10), 0, at), new)}", text, changed


def _insert(files: Files, path: str, arguments: Arguments) -> _Edit:
    new, line = arguments.text("new_str"), arguments.integer("insert_line")
    text = files.load_text(path, exact=True)
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
