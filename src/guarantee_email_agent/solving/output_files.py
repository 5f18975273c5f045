"""Outputs that are too long for the record, whole in files beside it: `<task_name>.outputs/0007.txt`."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.judging.task import OUTPUTS_ENDING

MAX_BYTES: Final = 100_000_000
"""What the outputs of one run may take together."""

_NAME: Final = re.compile(r"[0-9]{4,}\.txt")


class OutputFiles:
    """The folder of one run's outputs, made with the first of them; a link in its place is never followed.

    record_file: beside which it stands, with the same name but for its ending.
    """

    def __init__(self, record_file: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = record_file.with_name(f"{record_file.name.removesuffix('.json')}{OUTPUTS_ENDING}")
        self._left = self._max_bytes = max_bytes

    def remove(self) -> None:
        """What an earlier run left, so that nothing of two runs stands beside each other; what else is there stays."""
        self._left = self._max_bytes
        with suppress(OSError):
            if self._folder.is_symlink():
                self._folder.unlink()
                return
            folder = self._open()
            try:
                for name in filter(_NAME.fullmatch, os.listdir(folder)):
                    os.unlink(name, dir_fd=folder)
            finally:
                os.close(folder)
            self._folder.rmdir()

    def keep(self, step: int, text: str) -> dict[str, Any]:
        """What a trace says of an output: its file, from the record's folder, and its length.

        Where it could not be kept, the file is None and `output_lost` says why.
        """
        content = text.encode("utf-8", "backslashreplace")
        facts: dict[str, Any] = {"output_file": None, "output_characters": len(text)}
        if len(content) > self._left:
            return facts | {"output_lost": f"the outputs of this run take more than {self._max_bytes:,} bytes"}
        name = f"{step:04}.txt"
        try:
            self._write(name, content)
        except OSError as error:
            return facts | {"output_lost": f"it cannot be written ({error.strerror})"}
        self._left -= len(content)
        return facts | {"output_file": f"{self._folder.name}/{name}"}

    def _write(self, name: str, content: bytes) -> None:
        with suppress(FileExistsError):
            self._folder.mkdir(0o700)
        folder = self._open()
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(name, flags, 0o600, dir_fd=folder), "wb") as file:
                file.write(content)
        except OSError:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise
        finally:
            os.close(folder)

    def _open(self) -> int:
        return os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
