"""Scenario files on disk to `EvalTestCase`: what cannot be used is named, logged and counted, and stops nothing."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from guarantee_email_agent.email.parsing.addresses import parse_address
from guarantee_email_agent.eval.models import (
    EvalTestCase,
    ExpectedCall,
    ForbiddenCall,
    InvalidScenario,
    MockResponses,
    MockWarrantyAnswer,
)
from guarantee_email_agent.eval.tool_mocks import OWN_SERVICES, OWN_TOOLS, find_tool_problems
from guarantee_email_agent.files.problems import (
    KeyPath,
    Problem,
    dotted_path,
    locate_problems,
    mismatch,
    missing_key,
    suggestion,
)
from guarantee_email_agent.files.text_file import InputFileError, read_text
from guarantee_email_agent.files.validation import build
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.utils.errors import EvalError
from guarantee_email_agent.utils.text import printable, truncate

__all__ = ["MAX_SCENARIO_BYTES", "EvalLoader", "EvalSuite", "InvalidScenario"]

logger = logging.getLogger(__name__)

MAX_SCENARIO_BYTES: Final = 1 << 20

_MAX_PROBLEMS: Final = 10
_MAX_PATH: Final = 120
_WARRANTY_KEYS: Final = frozenset(MockWarrantyAnswer.__dataclass_fields__)
_CODES: Final = {
    "missing": "eval_missing_field",
    "unknown": "eval_unknown_key",
    "type": "eval_wrong_type",
    "value": "eval_invalid_value",
}


class EvalSuite(list[EvalTestCase]):
    """A folder's usable scenarios; `entries` also holds the unusable ones. Both are in the order of files."""

    def __init__(self, entries: Iterable[EvalTestCase | InvalidScenario]) -> None:
        self.entries = tuple(entries)
        super().__init__(entry for entry in self.entries if isinstance(entry, EvalTestCase))


class EvalLoader:
    """Loads scenario files. Remembers none, so that one loader serves any number of folders."""

    def __init__(self, *, any_agent: bool = False) -> None:
        """any_agent: the scenarios are for an agent that is not ours, so that they need no instruction of ours."""
        self._any_agent = any_agent

    def load_eval_test_case(self, file_path: str | Path) -> EvalTestCase:
        """The scenario in one file.

        Raises EvalError with a line for the person who wrote the file: `eval_file_not_found`, `eval_file_unreadable`,
        `eval_file_not_utf8`, `eval_file_too_large`, `eval_file_empty`, `eval_yaml_invalid`, or what
        `validate_test_case` raises.
        """
        path = os.fspath(file_path)
        try:
            text = read_text(path, MAX_SCENARIO_BYTES)
            data = _merge_documents(load_documents(text), path)
        except InputFileError as error:
            component = "eval" if error.code == "document_yaml_invalid" else "eval_file"
            code = f"{component}_{error.code.removeprefix('document_')}"
            raise _error(path, error.message[0].upper() + error.message[1:], code, error.details) from None
        return _build_test_case(data, path, text, self._any_agent)

    def validate_test_case(self, data: object, file_path: str | Path) -> EvalTestCase:
        """The scenario in parsed `data` (the documents of a file merged into one mapping).

        Raises EvalError with all problems in one line, and the code of the first: `eval_missing_field`,
        `eval_unknown_key`, `eval_wrong_type`, `eval_invalid_value`, `eval_test_not_found`, `eval_file_name`.
        """
        return _build_test_case(data, os.fspath(file_path), None, self._any_agent)

    def discover_test_cases(self, directory: str | Path) -> EvalSuite:
        """All scenarios of a folder, in the byte order of their file names.

        A file that cannot be used is logged at ERROR and stays among the suite's `entries`. Raises EvalError
        (`eval_file_not_found`, `eval_file_unreadable`) where the folder itself cannot be read.
        """
        return EvalSuite(self.iter_entries(self.scenario_files(directory)))

    def scenario_files(self, directory: str | Path) -> list[str]:
        """The paths of a folder's scenario files, in the byte order of their names; sub-folders are not searched.

        Every `*.yaml` and `*.yml` counts, whatever it turns out to be, except for names that begin with '.' or '_'.
        Raises EvalError as `discover_test_cases` does.
        """
        folder = os.fspath(directory)
        try:
            names = os.listdir(folder)
        except OSError as error:
            raise _folder_error(folder, error) from None
        scenarios = [name for name in names if name[0] not in "._" and name.lower().endswith((".yaml", ".yml"))]
        return [os.path.join(folder, name) for name in sorted(scenarios, key=os.fsencode)]

    def iter_entries(self, files: Iterable[str]) -> Iterator[EvalTestCase | InvalidScenario]:
        """The scenarios in `files`, one at a time, so that memory stays flat; an unusable file is logged at ERROR.

        Of two files with one id, the second is unusable.
        """
        first_files: dict[str, str] = {}
        for path in files:
            try:
                case = self.load_eval_test_case(path)
            except EvalError as error:
                entry = _invalid_scenario(path, error)
            else:
                duplicate = self.find_duplicate(case, first_files)
                if duplicate is None:
                    yield case
                    continue
                entry = duplicate
            logger.error("%s", entry.message)
            yield entry

    @staticmethod
    def find_duplicate(case: EvalTestCase, first_files: dict[str, str]) -> InvalidScenario | None:
        """What a scenario is whose id came before; `first_files` (id to path) remembers every id it was asked for."""
        path = case.file or ""
        first = first_files.setdefault(case.scenario_id, path)
        if first == path:
            return None
        name = _file_name(first)
        problem = f"Duplicate scenario_id: {case.scenario_id} is already that of {name}; give this file another"
        return _invalid_scenario(path, _error(path, problem, "eval_duplicate_id"))


def _build_test_case(data: object, path: str, text: str | None, any_agent: bool) -> EvalTestCase:
    case = build(EvalTestCase, data, {"file": path})
    missing = [] if any_agent else list(_find_missing_instruction(data))
    if isinstance(case, list):
        raise _problems_error([*case, *missing], path, text)
    if missing:
        raise _problems_error(missing, path, text)
    if case.input.mock_responses and (problems := _find_mock_problems(case.input.mock_responses)):
        raise _problems_error(problems, path, text)
    if problems := list(_find_contradictions(case)):
        raise _problems_error(problems, path, text)
    if case.test is not None and not Path(path).with_name(case.test).is_file():
        raise _error(path, f"Test not found: {case.test} is not beside this file", "eval_test_not_found")
    stem, _, ending = _file_name(path).rpartition(".")
    prefix, _, number = stem.rpartition("_")
    if not (prefix == case.category.replace("-", "_") and number.isascii() and number.isdigit() and ending == "yaml"):
        wanted = f"{case.category.replace('-', '_')}_<number>.yaml"
        problem = f"File name: category {case.category!r} wants {wanted}; rename the file, or correct the category"
        raise _error(path, problem, "eval_file_name")
    return case


def _merge_documents(documents: list[object], path: str) -> object:
    """The one mapping of a file whose frontmatter and body may be two documents."""
    filled = [document for document in documents if document is not None]
    if not filled:
        raise _error(path, "The file is empty. Copy _template.yaml, or remove the file", "eval_file_empty")
    if len(filled) > 2:
        problem = f"{len(filled)} YAML documents. A scenario is one, or two: frontmatter and body; remove a '---'"
        raise _error(path, problem, "eval_yaml_invalid")
    merged: dict[object, object] = {}
    for document in filled:
        if not isinstance(document, dict):
            what = "a list" if isinstance(document, list) else "plain text"
            problem = f"Wrong type: a scenario is a mapping of keys to values, not {what}"
            raise _error(path, problem, "eval_wrong_type")
        for key in document:
            if key in merged:
                problem = f"Duplicate key: {key} stands in both documents; keep one"
                raise _error(path, problem, "eval_duplicate_key")
        merged |= document
    return merged


def _find_missing_instruction(data: object) -> Iterator[Problem]:
    """`scenario_instruction_used` is for our own agent, which is the only one that has instructions of ours."""
    expected = data.get("expected_output") if isinstance(data, dict) else None
    if isinstance(expected, dict) and expected.get("scenario_instruction_used", "") is None:
        yield mismatch(("expected_output", "scenario_instruction_used"), "text", None)
    elif isinstance(expected, dict) and "scenario_instruction_used" not in expected:
        yield missing_key("scenario_instruction_used", ("expected_output",), ())


def _find_mock_problems(mocks: Mapping[str, Mapping[str, object]]) -> list[Problem]:
    known = {name: answer for name, answer in mocks.items() if name in OWN_SERVICES}
    if answer := mocks.get("warranty_api"):  # facts may have any further keys
        known["warranty_api"] = {key: value for key, value in answer.items() if key in _WARRANTY_KEYS}
    found = build(MockResponses, known)
    problems = [*(found if isinstance(found, list) else ()), *find_tool_problems(mocks)]
    return [replace(problem, path=("input", "mock_responses", *problem.path)) for problem in problems]


def _find_contradictions(case: EvalTestCase) -> Iterator[Problem]:
    """Keys that say nothing beside the others, so that the scenario would guard less than its author thinks."""
    expected, previous, agent = case.expected_output, case.input.previous_reply, case.input.agent
    if previous is not None and previous.message_id not in _answered_ids(case.input.email.headers):
        wrong = "must stand in the mail's In-Reply-To or References header, or the mail does not answer that reply"
        yield Problem(("input", "previous_reply", "message_id"), "value", wrong)
    if agent is not None and agent.sender_check in ("neutral", "hold") and agent.authserv_id is None:
        wrong = "needs authserv_id beside it, or no sender is ever verified"
        yield Problem(("input", "agent", "sender_check"), "value", wrong)
    if expected.sent_to is not None:
        path = ("expected_output", "sent_to")
        if parse_address(expected.sent_to) != expected.sent_to:
            yield Problem(path, "value", "must be a bare address, such as customer@example.com")
        elif not expected.email_sent:
            yield Problem(path, "value", "says whom the reply goes to, but email_sent is false; remove one")
    if expected.hand_over_reason is not None and expected.email_sent:
        wrong = "says why no reply goes out, but email_sent is true; remove one"
        yield Problem(("expected_output", "hand_over_reason"), "value", wrong)
    yield from _find_unknown_calls(case)


def _find_unknown_calls(case: EvalTestCase) -> Iterator[Problem]:
    """Calls of tools that this scenario does not have: nobody could make them, so they would guard nothing."""
    expected = case.expected_output
    if expected.ordered and len(expected.calls) < 2:
        yield Problem(("expected_output", "ordered"), "value", "needs two calls or more; add them, or remove it")
    mocked = {name: tuple(tools) for name, tools in case.input.mock_responses.items() if name not in OWN_SERVICES}
    known = {**OWN_TOOLS, **mocked}
    for index, call in enumerate(expected.calls):
        yield from _find_unknown_call(call, known, ("expected_output", "calls", index))
    for index, forbidden in enumerate(expected.never_called):
        yield from _find_unknown_call(forbidden, known, ("expected_output", "never_called", index))


def _find_unknown_call(
    call: ExpectedCall | ForbiddenCall, known: Mapping[str, Sequence[str]], path: KeyPath
) -> Iterator[Problem]:
    if call.server not in known:
        wrong = f"{call.server!r} is no server of this scenario{_listed(call.server, known)}"
        yield Problem((*path, "server"), "value", wrong)
    elif call.tool is not None and call.tool not in known[call.server]:
        wrong = f"{call.tool!r} is no tool of {call.server}{_listed(call.tool, known[call.server])}"
        yield Problem((*path, "tool"), "value", wrong)


def _listed(word: str, known: Iterable[str]) -> str:
    return suggestion(word, known) or f"; there are {', '.join(known)}"


def _answered_ids(headers: Mapping[str, str]) -> list[str]:
    values = [value for name, value in headers.items() if name.lower() in ("in-reply-to", "references")]
    return " ".join(values).split()


def _problems_error(problems: list[Problem], path: str, text: str | None) -> EvalError:
    listed = problems[:_MAX_PROBLEMS]
    if text is not None and any(problem.kind != "missing" for problem in listed):
        listed = locate_problems(listed, text)
    sentences = [_format_problem(problem) for problem in listed]
    if len(problems) > len(listed):
        sentences.append(f"and {len(problems) - len(listed)} more")
    return _error(path, "; ".join(sentences), _CODES[problems[0].kind])


def _format_problem(problem: Problem) -> str:
    place = truncate(dotted_path(problem.path), _MAX_PATH)
    if problem.kind == "missing":
        return f"Missing field: {place}"
    if problem.line is not None:
        place += f" (line {problem.line})"
    if problem.kind == "unknown":
        return f"Unknown key: {place}{problem.message.removeprefix(f'unknown key {problem.path[-1]!r}')}"
    title = "Wrong type" if problem.kind == "type" else "Invalid value"
    return f"{title}: {place} {problem.message}" if place else f"{title}: the scenario {problem.message}"


def _folder_error(folder: str, error: OSError) -> EvalError:
    code = "eval_file_not_found"
    if isinstance(error, FileNotFoundError):
        problem = "the scenario folder does not exist. Create it, or name another with --eval-dir"
    elif isinstance(error, NotADirectoryError):
        problem = "this is a file, not a folder of scenarios. Name the folder with --eval-dir"
    else:
        problem = f"the scenario folder cannot be read ({error.strerror}). Check its permissions"
        code = "eval_file_unreadable"
    return EvalError(f"{printable(folder)}: {problem}.", code, {"path": folder})


def _error(path: str, problem: str, code: str, details: Mapping[str, object] | None = None) -> EvalError:
    safe = printable(problem)
    scenario = InvalidScenario(_file_name(path), path, safe, code)
    return EvalError(scenario.message, code, {**(details or {}), "path": path, "problem": safe})


def _invalid_scenario(path: str, error: EvalError) -> InvalidScenario:
    return InvalidScenario(_file_name(path), path, error.details["problem"], error.code)


def _file_name(path: str) -> str:
    return path.rpartition("/")[2] if os.sep == "/" else os.path.basename(path)
