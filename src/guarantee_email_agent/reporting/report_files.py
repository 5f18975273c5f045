"""What a run leaves for machines: whole files of JSON and of JUnit XML."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guarantee_email_agent.reporting.totals import Outcome
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """One test as a CI shows it. time_s: seconds. message: one line. text: why, in lines. output: what was printed."""

    name: str
    group: str
    time_s: float
    outcome: Outcome = "passed"
    message: str = ""
    text: str = ""
    output: str = ""


def write_reports(error_code: str, *reports: tuple[Path | None, Callable[[], bytes]]) -> None:
    """Write each report whose path is not None.

    Raises ConfigurationError with `error_code` for one that cannot be written, once the others are.
    """
    problems: list[ConfigurationError] = []
    for path, encode in reports:
        try:
            if path is not None:
                write_report(path, encode(), error_code)
        except ConfigurationError as error:
            problems.append(error)
    if problems:
        raise problems[0]


def as_json(content: Any) -> bytes:
    """Indented JSON in UTF-8, with a line break at its end; what JSON does not know is written as text."""
    text = json.dumps(content, ensure_ascii=False, indent=1, default=str)
    # Half of a surrogate pair cannot be UTF-8; its escape, \udc80, is just how JSON writes it.
    return f"{text}\n".encode(errors="backslashreplace")


def as_junit(command: str, suite_name: str, cases: Iterable[JUnitCase], duration_s: float) -> bytes:
    """One JUnit document with one suite; control characters, which XML cannot hold, are written out."""
    import io

    import junitparser  # only for those who ask for this format

    suite = junitparser.TestSuite(suite_name)
    suite.add_testcases([_test_case(case) for case in cases])
    suite.time = duration_s
    document = junitparser.JUnitXml(f"guarantee-email-agent {command}")
    document.add_testsuite(suite)
    document.time = duration_s
    content = io.BytesIO()
    document.write(content)
    return content.getvalue()


def check_report_paths(paths: Sequence[Path], error_code: str) -> None:
    """Raise, before a long run, the ConfigurationError that writing the reports would end in after it.

    paths: one or two, which must not be the same file.
    """
    for path in paths:
        check_writable(path, error_code)
    if len(paths) == 2 and _is_same_file(*paths):
        raise ConfigurationError("--json and --junit name the same file. Name two", "cli_bad_usage")


def check_writable(path: Path, code: str) -> None:
    """Raise, before a long run, the ConfigurationError that writing to `path` would end in after it."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise _unwritable(path, "the folder does not exist: make it first", code)
    is_folder = os.path.isdir(path)  # unlike Path's, this one takes a name that is too long for a plain no
    if is_folder or not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise _unwritable(path, "it is a folder" if is_folder else "permission denied", code)


def _is_same_file(first: Path, second: Path) -> bool:
    """Whether two paths lead to one file: by whatever links, and also where there is none yet."""
    try:
        return os.path.samefile(first, second)
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


def make_folder(folder: Path, option: str, error_code: str) -> None:
    """Make a folder for records. option: that named it. Raises ConfigurationError with `error_code`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"the folder for records cannot be made ({error.strerror}). Name another"
        raise ConfigurationError(f"{option} {printable(str(folder))}: {problem}", error_code) from None


def write_report(path: str | Path, content: bytes, code: str) -> None:
    """Writes a report; the file is complete or untouched.

    Raises ConfigurationError with `code` where it cannot be written.
    """
    try:
        write_whole(path, content)
    except (OSError, ValueError) as error:
        raise _unwritable(path, getattr(error, "strerror", None) or str(error), code) from None


def write_whole(path: str | Path, content: bytes) -> None:
    """Writes a file atomically, by a temporary file beside it that takes its place.

    Raises OSError, or ValueError for a path that no file can have.
    """
    import stat

    target = Path(path)
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        target.write_bytes(content)  # /dev/stdout or a pipe must not be replaced by a file
        return
    target = target.resolve()  # a link stays a link
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(content)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _unwritable(path: str | Path, reason: str, code: str) -> ConfigurationError:
    message = f"{printable(str(path))}: the report cannot be written ({reason}). Name a file in a folder that can be."
    return ConfigurationError(message, code, {"path": str(path)})


def _test_case(case: JUnitCase) -> Any:
    import junitparser

    element = junitparser.TestCase(printable(case.name), printable(case.group), case.time_s)
    if case.outcome != "passed":
        outcome = junitparser.Failure if case.outcome == "failed" else junitparser.Error
        verdict = outcome(printable(case.message), case.outcome)
        verdict.text = "\n".join(map(printable, case.text.split("\n")))
        element.result = [verdict]
    if case.output:
        element.system_out = "\n".join(map(printable, case.output.split("\n")))
    return element
