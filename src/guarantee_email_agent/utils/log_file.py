"""The file that the log is appended to."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from logging.handlers import WatchedFileHandler
from pathlib import Path

from guarantee_email_agent.utils.errors import ConfigurationError


class LogFile(WatchedFileHandler):
    """Goes on in a new file where somebody moved the old one away, as `logrotate` does.

    Reports once, on stderr, that it cannot be written; a log must neither end a run nor fall silent unseen.
    """

    _is_reported = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - as logging has it
        if not self._is_reported:
            self._is_reported = True
            reason = getattr(sys.exception(), "strerror", None) or "unknown reason"
            sys.stderr.write(f"logging.file: cannot write {self.baseFilename} ({reason}); the run goes on without it\n")

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:  # reopening is outside the library's own handling
            self.handleError(record)

    def close(self) -> None:
        with suppress(OSError):  # what could not be written cannot be written now
            super().close()


def open_log_file(file: Path) -> LogFile:
    """Makes the file where it is missing. Raises ConfigurationError for one that cannot be written."""
    try:
        return LogFile(file, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"logging.file: cannot write {file} ({error.strerror}). Name a file in a folder that can be written",
            "config_log_file",
        ) from None
