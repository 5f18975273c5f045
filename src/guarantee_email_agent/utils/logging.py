"""Logging for people and for collectors: one line an event, whatever a stranger wrote into it."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.utils.text import printable, visible

ROOT = "guarantee_email_agent"

_fields: Final[ContextVar[dict[str, object] | None]] = ContextVar("log_fields", default=None)


@contextmanager
def log_fields() -> Iterator[None]:
    """What is logged in the block, in threads that it starts, too, bears the fields that it adds."""
    token = _fields.set({})
    try:
        yield
    finally:
        _fields.reset(token)


def add_log_fields(**fields: object) -> None:
    """To each further line of the block of `log_fields` around us, in JSON; without one nothing happens."""
    if (current := _fields.get()) is not None:
        current.update(fields)


class LineFormatter(logging.Formatter):
    """`2026-01-17 10:23:45 INFO Email received: …`; control characters are written out. A traceback keeps its lines."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's own name
        return visible(super().formatException(ei))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        return printable(super().formatMessage(record))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time`, `level`, `message`, `logger`, and `exception` where there is one.

    Further fields are those of `log_fields` around the call, and those that it passes as `extra={"fields": {…}}`.
    """

    def format(self, record: logging.LogRecord) -> str:
        import json

        own = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname,
            "message": printable(record.getMessage()),
            "logger": record.name,
        }
        # Ours come first for whoever reads the line, and last so that no field takes the place of one.
        event = {**own, **(_fields.get() or {}), **getattr(record, "fields", {}), **own}
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        line = json.dumps(event, ensure_ascii=False)
        return line if line.isprintable() else json.dumps(event)


def configure_logging(
    level: str, console_level: str, file: Path | None, as_json: bool, *, split_console: bool = False
) -> None:
    """Log to the console from `console_level` on, and to `file` from `level` on. Replaces what was set up before.

    split_console: up to INFO to stdout, and from WARNING on to stderr, for a command whose log is its output; else all
    goes to stderr. Raises ConfigurationError for a file that cannot be written.
    """
    console_level = "DEBUG" if level == "DEBUG" else console_level
    handlers = list(_console(console_level, split_console))
    if file is not None:
        from guarantee_email_agent.utils.log_file import open_log_file  # 10 ms that most commands save

        handlers.append(open_log_file(file))
        handlers[-1].setLevel(level)
    root = logging.getLogger(ROOT)
    for replaced in root.handlers:
        if isinstance(replaced, logging.FileHandler):
            replaced.close()
    root.handlers[:] = handlers
    lines = LineFormatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S")
    formatter = JsonFormatter() if as_json else lines
    for handler in handlers:
        handler.setFormatter(formatter)
    # No record is made that no handler wants: a suite of thousands would pay for each.
    root.setLevel(min(handler.level for handler in handlers))
    root.propagate = False
    # A log that cannot be written (a closed pipe, a full disk) must not end a run with a traceback.
    logging.raiseExceptions = False


def _console(level: str, split: bool) -> Iterator[logging.Handler]:
    for stream in (sys.stderr, sys.stdout) if split else (sys.stderr,):
        # What its encoding cannot hold is written out: logging would lose the line, and nobody would know.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    errors = logging.StreamHandler(sys.stderr)
    errors.setLevel(level)
    if split:
        results = logging.StreamHandler(sys.stdout)
        results.setLevel(level)
        results.addFilter(lambda record: record.levelno < logging.WARNING)
        yield results
        errors.setLevel(max(errors.level, logging.WARNING))
    yield errors
