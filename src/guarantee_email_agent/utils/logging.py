"""Logging for people and for collectors: one line an event, whatever a stranger wrote into it."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.printable import printable

ROOT = "guarantee_email_agent"
_FORMAT = "%(asctime)s %(levelname)s %(message)s"
_DATE_FORMAT = "%Y-%m-%d %H:%M:%S"


class LineFormatter(logging.Formatter):
    """`2026-01-17 10:23:45 INFO Email received: …`; control characters are written out. A traceback keeps its lines."""

    def __init__(self) -> None:
        super().__init__(_FORMAT, _DATE_FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        return printable(super().formatMessage(record))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time`, `level`, `message`, `logger`, and `exception` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        import json

        event = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname,
            "message": record.getMessage(),
            "logger": record.name,
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False)


def configure_logging(level: str, console_level: str, file: Path | None, as_json: bool) -> None:
    """Log to stderr from `console_level` on, and to `file` from `level` on. Replaces what was set up before.

    Raises ConfigurationError for a file that cannot be written.
    """
    formatter = JsonFormatter() if as_json else LineFormatter()
    console = logging.StreamHandler(sys.stderr)
    console.setLevel("DEBUG" if level == "DEBUG" else console_level)
    handlers: list[logging.Handler] = [console]
    if file is not None:
        try:
            handlers.append(logging.FileHandler(file, encoding="utf-8"))
            handlers[-1].setLevel(level)
        except OSError as error:
            raise ConfigurationError(
                f"logging.file: cannot write {file} ({error.strerror}). Name a file in a folder that can be written",
                "config_log_file",
            ) from None
    root = logging.getLogger(ROOT)
    root.handlers[:] = handlers
    for handler in handlers:
        handler.setFormatter(formatter)
    # No record is made that no handler wants: a suite of thousands would pay for each.
    root.setLevel(min(handler.level for handler in handlers))
    root.propagate = False
    # A log that cannot be written (a closed pipe, a full disk) must not end a run with a traceback.
    logging.raiseExceptions = False
