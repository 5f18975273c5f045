"""The file operations of the API. They run with the rights of the agent itself, so they reach what it reaches."""

from __future__ import annotations

import binascii
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from .api_request import Arguments, InvalidArgumentError, RequestError, Result, encode

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

    def load_text(self, path: str) -> str:
        return self.load(path).decode("utf-8", "replace")

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
        text = self.load_text(path)
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


def walk(top: str, depth: int | None = None) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder, folders before what is in them; links are not followed. Never raises but for `top`."""
    waiting = [(top, depth)]
    while waiting:
        folder, left = waiting.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            if folder == top:
                raise
            continue
        for entry in entries:
            yield entry
            if (left is None or left > 1) and entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, None if left is None else left - 1))
