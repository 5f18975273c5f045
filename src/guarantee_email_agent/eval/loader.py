"""Scenario files on disk: which there are, which of them somebody chose, and each as an `EvalTestCase`.

What cannot be used is named, logged and counted, and stops nothing.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.eval.declared_servers import DeclaredServer, load_declared_servers
from guarantee_email_agent.eval.models import EvalTestCase, InvalidScenario, MockResponses, MockWarrantyAnswer
from guarantee_email_agent.eval.scenario_validation import (
    KnownNames,
    find_contradictions,
    find_file_problems,
    find_name_problems,
)
from guarantee_email_agent.eval.tool_mocks import OWN_SERVICES, find_declared_problems, find_tool_problems
from guarantee_email_agent.files.problems import (
    KeyPath,
    Problem,
    dotted_path,
    join_problems,
    locate_problems,
    mismatch,
    missing_key,
    suggestion,
)
from guarantee_email_agent.files.text_file import InputFileError, read_bytes, read_start, read_text
from guarantee_email_agent.files.validation import build
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.instructions.hand_over_lexicon import LANGUAGE
from guarantee_email_agent.instructions.router import SHIPPED_ROUTING
from guarantee_email_agent.reading.language import read_language
from guarantee_email_agent.runlog.suite_manifest import MAX_SCENARIO_BYTES, folders_above, scenario_names
from guarantee_email_agent.utils.errors import EvalError
from guarantee_email_agent.utils.text import printable, truncate

__all__ = ["MAX_SCENARIO_BYTES", "EvalLoader", "EvalSuite", "InvalidScenario"]

logger = logging.getLogger(__name__)

_SAYS_MUST: Final = re.compile(rb"(?im)(?:^|[{,])\s*[\"']?must[\"']?\s*:\s*[\"']?true")
_MAX_PROBLEMS: Final = 10
_MAX_PATH: Final = 120
_WARRANTY_KEYS: Final = frozenset(MockWarrantyAnswer.__dataclass_fields__)
_OF_OTHERS: Final = ("answer", "state", "nothing_else_changed")
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
    """Loads scenario files. Remembers the folder that it looked through last, and which names stand twice in it."""

    def __init__(self, *, any_agent: bool = False, known: KnownNames | None = None) -> None:
        """any_agent: the scenarios are for an agent that is not ours, so that they need no instruction of ours.

        known: the names that files may use of the instruction set; not checked if None.
        """
        self._any_agent = any_agent
        self.known = known
        self._twice: frozenset[str] = frozenset()
        self.suite: str | None = None

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
        return self._build_test_case(data, path, text)

    def validate_test_case(self, data: object, file_path: str | Path) -> EvalTestCase:
        """The scenario in parsed `data` (the documents of a file merged into one mapping), as PyYAML gives it, too.

        Raises EvalError with all problems in one line, and the code of the first: `eval_missing_field`,
        `eval_unknown_key`, `eval_wrong_type`, `eval_invalid_value`, `eval_test_not_found`, `eval_mail_not_found`,
        `eval_mail_unreadable`, `eval_server_invalid`, `eval_file_name`, `eval_wrong_id`, `eval_duplicate_id`. Its
        `details` hold `file_path`, and as `field` the first key that is wrong, such as `expected_output.email_sent`, or
        None.
        """
        path = os.fspath(file_path)
        try:
            plain = _with_dates_as_text(data)
        except RecursionError:
            raise _error(path, "The data holds itself, or is nested too deep", "eval_yaml_invalid") from None
        return self._build_test_case(plain, path, None)

    def discover_test_cases(self, directory: str | Path) -> EvalSuite:
        """All scenarios of a folder and of those below it, in the byte order of their paths.

        A file that cannot be used is logged at ERROR and stays among the suite's `entries`. Raises EvalError
        (`eval_file_not_found`, `eval_file_unreadable`) where the folder itself cannot be read.
        """
        return EvalSuite(self.iter_entries(self.scenario_files(directory)))

    def scenario_files(self, directory: str | Path) -> list[str]:
        """The paths of the scenario files in a folder and in those below it, in their byte order.

        Every `*.yaml`, `*.yml` and `*.yaml.txt` counts, whatever it is, but for names that begin with '.' or '_', and
        in a folder `servers` for those without a scenario's id. Folders whose name begins like that, or that
        have a manifest, are not searched. Raises EvalError as `discover_test_cases` does.
        """
        folder = os.fspath(directory)
        try:
            files = sorted((os.path.join(folder, name) for name in scenario_names(folder)), key=path_order)
        except OSError as error:
            raise _folder_error(error.filename or folder, error) from None
        self._twice, self.suite = names_twice(files), os.path.dirname(os.path.join(folder, ""))
        return files

    def iter_entries(self, files: Iterable[str]) -> Iterator[EvalTestCase | InvalidScenario]:
        """The scenarios in `files`, one at a time, so that memory stays flat; an unusable file is logged at ERROR."""
        for path in files:
            try:
                entry: EvalTestCase | InvalidScenario = self.load_eval_test_case(path)
            except EvalError as error:
                entry = _invalid_scenario(path, error)
                logger.error("%s", entry.message)
            yield entry

    def _build_test_case(self, data: object, path: str, text: str | None) -> EvalTestCase:
        mocks = _mocks_of(data)
        mocked = [name for name in mocks if name not in OWN_SERVICES]
        folders = [os.path.dirname(path)] if mocked else []
        while folders and self.suite is not None and folders[-1].startswith(os.path.join(self.suite, "")):
            folders.append(os.path.dirname(folders[-1]))
        folders += folders_above(folders[-1]) if folders else ()
        try:
            servers = load_declared_servers(folders, mocked)
        except ValueError as error:
            raise _error(path, f"Server cannot be used: {error}", "eval_server_invalid") from None
        routing = SHIPPED_ROUTING if self.known is None else self.known.routing
        case = build(EvalTestCase, data, {"file": path, "text": text, "servers": servers, "routing": routing})
        problems = case if isinstance(case, list) else list(find_contradictions(case))
        for missing in _find_missing(data, self._any_agent):  # before what else is wrong in its section
            places = enumerate(problems)
            same = (at for at, each in places if each.path[:1] == missing.path[:1] and each.kind != "missing")
            problems.insert(next(same, len(problems)), missing)
        problems += _find_mock_problems(mocks, servers, folders)
        if isinstance(case, EvalTestCase) and not problems and self._any_agent:
            from guarantee_email_agent.eval.world_validation import find_world_problems  # ours knows no tables

            problems += find_world_problems(case)
        if self.known is not None:
            problems += find_name_problems(data, self.known)
        others = list(find_file_problems(data, path))
        if self._twice and (stem := Path(path).stem) in self._twice:
            problem = f"Duplicate scenario_id: {stem} is that of a file in another folder of the suite, too; rename one"
            others.append((problem, "eval_duplicate_id"))
        if problems or others:
            raise _problems_error(problems, others, path, text)
        assert isinstance(case, EvalTestCase)
        return case if case.input.email.raw_file is None else _with_raw_mail(case, path)


def _with_raw_mail(case: EvalTestCase, path: str) -> EvalTestCase:
    name = str(case.input.email.raw_file)
    try:
        raw = read_bytes(os.path.join(os.path.dirname(path), name), MAX_SCENARIO_BYTES)
    except InputFileError as error:
        raise _error(path, f"Mail cannot be used: {name}: {error.message}", "eval_mail_unreadable") from None
    return replace(case, input=replace(case.input, email=replace(case.input.email, raw=raw)))


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
        for key in filter(merged.__contains__, document):
            problem = f"Duplicate key: {key} stands in both documents; keep one"
            raise _error(path, problem, "eval_duplicate_key")
        merged |= document
    return merged


def _with_dates_as_text(data: object) -> object:
    """PyYAML makes dates of what our own reader leaves as its author wrote it."""
    if isinstance(data, dict):
        return {_with_dates_as_text(key): _with_dates_as_text(value) for key, value in data.items()}
    if isinstance(data, list):
        return list(map(_with_dates_as_text, data))
    return data.isoformat().replace("+00:00", "Z") if isinstance(data, date) else data


def _find_missing(data: object, any_agent: bool) -> Iterator[Problem]:
    """What an agent needs to be given, and what has to be said of what it can do.

    Our own gets a mail, and it alone has instructions of ours. Another one may get a task instead, and no mailbox.
    """
    met, expected = _mapping_at(data, "input"), _mapping_at(data, "expected_output")
    if met is None or expected is None:
        return
    places: list[tuple[KeyPath, dict[str, object]]] = [(("expected_output",), expected)]
    turns = data.get("turns") if isinstance(data, dict) else None
    if "task" not in met and isinstance(turns, list):  # each a mail, of which as much is to be said
        said = [(at, turn.get("expected_output", {})) for at, turn in enumerate(turns) if isinstance(turn, dict)]
        places += [(("turns", at, "expected_output"), each) for at, each in said if isinstance(each, dict)]
    if not any_agent:
        of_others = ((("input",), met, ("task", "world")), *((*place, _OF_OTHERS) for place in places))
        for section, values, names in of_others:
            for name in filter(values.__contains__, names):
                wrong = "is for an agent that --agent names: ours gets a mail, and replies"
                yield Problem((*section, name), "value", wrong)
        if "task" in met and "email" not in met:
            return
    mocks = _mapping_at(met, "mock_responses") or {}
    has_email = "email" in met or not any_agent
    if has_email or met.get("task") is None:
        yield from _missing(met, ("input",), "email", "a mapping of keys to values")
    for place, values in places:
        if has_email or "gmail" in mocks:
            yield from _missing(values, place, "email_sent", "true or false")
        if has_email or "ticketing" in mocks:
            yield from _missing(values, place, "ticket_created", "true or false")
        if not any_agent:
            yield from _missing(values, place, "scenario_instruction_used", "text")


def _missing(values: Mapping[str, object], section: KeyPath, key: str, kind: str) -> Iterator[Problem]:
    if key not in values:
        yield missing_key(key, section, ())
    elif values[key] is None:
        yield mismatch((*section, key), kind, None)


def _mapping_at(data: object, key: str) -> dict[str, object] | None:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else None


def _mocks_of(data: object) -> dict[str, dict[str, object]]:
    """Empty for what is told as a wrong type."""
    mocks: dict[str, Any] | None = _mapping_at(_mapping_at(data, "input"), "mock_responses")
    return mocks if mocks is not None and all(map(_is_mapping_of_text, (mocks, *mocks.values()))) else {}


def _find_mock_problems(
    mocks: dict[str, dict[str, object]], servers: Mapping[str, DeclaredServer], folders: list[str]
) -> list[Problem]:
    known = {name: answer for name, answer in mocks.items() if name in OWN_SERVICES}
    if answer := mocks.get("warranty_api"):  # facts may have any further keys
        known["warranty_api"] = {key: value for key, value in answer.items() if key in _WARRANTY_KEYS}
    found = build(MockResponses, known)
    problems = list(found) if isinstance(found, list) else []
    if mocks.keys() - OWN_SERVICES:
        problems += find_tool_problems(mocks, servers)
        problems += [] if problems else find_declared_problems(mocks, servers, folders)
    return [replace(problem, path=("input", "mock_responses", *problem.path)) for problem in problems]


def _is_mapping_of_text(value: object) -> bool:
    return isinstance(value, dict) and set(map(type, value)) <= {str}


def _problems_error(problems: list[Problem], others: list[tuple[str, str]], path: str, text: str | None) -> EvalError:
    """others: what is wrong with the file as such: problem and error code."""
    listed = problems[:_MAX_PROBLEMS]
    if text is not None and any(problem.kind != "missing" for problem in listed):
        listed = locate_problems(listed, text)
    sentences = [_format_problem(problem) for problem in listed]
    if len(problems) > len(listed):
        sentences.append(f"and {len(problems) - len(listed)} more")
    sentences.extend(problem for problem, _ in others)
    if not problems:
        return _error(path, join_problems(sentences), others[0][1])
    return _error(path, join_problems(sentences), _CODES[problems[0].kind], field=dotted_path(problems[0].path))


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
        problem = "the scenario folder does not exist. Create it, or name another"
    elif isinstance(error, NotADirectoryError):
        problem = "this is a file, not a folder of scenarios. Name its folder"
    elif error.errno == errno.ELOOP:
        problem = "this link leads to scenarios, which would not run. Put their folder in its place, or remove it"
    else:
        problem = f"the scenario folder cannot be read ({error.strerror}). Check its permissions"
        code = "eval_file_unreadable"
    return EvalError(f"{printable(folder)}: {problem}.", code, {"path": folder, "file_path": folder})


def _error(
    path: str, problem: str, code: str, details: Mapping[str, object] | None = None, field: str | None = None
) -> EvalError:
    safe = printable(problem)
    scenario = InvalidScenario(os.path.basename(path), path, safe, code)
    return EvalError(
        scenario.message, code, {**(details or {}), "path": path, "file_path": path, "field": field, "problem": safe}
    )


def _invalid_scenario(path: str, error: EvalError) -> InvalidScenario:
    text = b""
    with suppress(OSError):
        text = read_start(path, MAX_SCENARIO_BYTES)
    must = _SAYS_MUST.search(text) is not None
    return InvalidScenario(os.path.basename(path), path, error.details["problem"], error.code, must=must)


path_order = os.fsencode


def position_in(files: Sequence[str], file: str | None) -> int:
    """Of one of the files, from 1; 0 for any other."""
    index = bisect_left(files, path_order(file or ""), key=path_order)
    return index + 1 if index < len(files) and files[index] == file else 0


def names_twice(files: Sequence[str]) -> frozenset[str]:
    """The names without ending that several files have, in different folders."""
    return frozenset(name for name, count in Counter(map(stem, files)).items() if count > 1)


def stem(file: str) -> str:
    """A scenario's id, by its file."""
    return os.path.basename(file).rpartition(".")[0]


def select_scenarios(
    files: list[str], patterns: Sequence[str], directory: Path, *, none_is_fine: bool = False
) -> list[str]:
    """Those of a suite's files that any pattern matches, in their order.

    patterns: globs over scenario ids, file names with or without `.yaml`, paths, and categories (`hand-over`); none for
    all.
    Raises EvalError(code="eval_nothing_selected") where one of them matches nothing, unless none_is_fine.
    """
    if not patterns:
        return files
    names = {file: list(_names(file)) for file in files}
    selected: set[str] = set()
    for pattern in patterns:
        if os.path.dirname(pattern):
            wanted = os.path.abspath(pattern), os.path.abspath(directory / pattern)
            matching = [file for file in files if any(fnmatchcase(os.path.abspath(file), each) for each in wanted)]
        else:
            matching = [file for file in files if any(fnmatchcase(name, pattern) for name in names[file])]
        if not matching and not none_is_fine:
            raise _nothing_selected(pattern, names, directory)
        selected.update(matching)
    return [file for file in files if file in selected]


def left_for_language(directory: Path, language: str) -> Iterator[str]:
    """The ids of scenarios with a mail in this language that is to go to a person, since no reply is in it."""
    loader = EvalLoader()
    files = (file for file in loader.scenario_files(directory) if LANGUAGE.encode() in Path(file).read_bytes())
    for entry in loader.iter_entries(files):
        if isinstance(entry, EvalTestCase) and entry.expected_output.hand_over_reason == LANGUAGE:
            email = entry.input.email
            if read_language(f"{email.subject}\n\n{email.body}").code == language:
                yield entry.scenario_id


def _names(file: str) -> Iterator[str]:
    name = os.path.basename(file)
    yield name
    stem = name.rpartition(".")[0]  # which is the id
    yield stem
    yield stem.rpartition("_")[0].replace("_", "-")  # which is the category


def _nothing_selected(pattern: str, names: dict[str, list[str]], directory: Path) -> EvalError:
    folder = printable(str(directory))
    if os.path.dirname(pattern) and os.path.exists(pattern):
        remedy = f"; it is no scenario file of {folder}. Name its folder with --eval-dir"
    else:
        word = os.path.basename(pattern)
        choices = dict.fromkeys(name for each in names.values() for name in reversed(each))
        remedy = suggestion(word.removesuffix(".yaml"), choices) or f"; {folder} lists what there is"
    problem = f"--only {printable(pattern)} matches none of the {len(names)} scenarios in {folder}{remedy}"
    return EvalError(problem, "eval_nothing_selected", {"pattern": pattern})
