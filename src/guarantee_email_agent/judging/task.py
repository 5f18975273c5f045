"""A task directory as data: its `task.yaml` and what else it holds; what cannot be used is named, with a remedy."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.files.problems import Problem, dotted_path, join_problems, locate_problems
from guarantee_email_agent.files.text_file import InputFileError, kind_of_file, read_text
from guarantee_email_agent.files.validation import build, distinct_texts, not_blank, number, setting
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.text import printable

MAX_TIMEOUT_S: Final = 86_400
MAX_TASK_BYTES: Final = 1 << 20
TASK_FILE: Final = "task.yaml"
TEST_FILE: Final = "test.py"

# The other keys of task.yaml are the task's own, but a misspelled one of ours must not ride along unseen.
_RESERVED_PREFIX: Final = "judge_"
_OF_DIRECTORY: Final = {"key": None}  # no key of task.yaml
_COMPOSE_FILES: Final = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
_MAX_PROBLEMS: Final = 10
_CODES: Final = {
    "missing": "task_missing_field",
    "unknown": "task_unknown_key",
    "type": "task_wrong_type",
    "value": "task_invalid_value",
}


@dataclass(frozen=True, slots=True)
class Task:
    """A usable task directory. settings: all keys of `task.yaml` but `instruction`.

    instruction: empty where there is no `task.yaml`: each record says what was asked for.
    """

    name: str = field(metadata=_OF_DIRECTORY)
    directory: Path = field(metadata=_OF_DIRECTORY)
    instruction: str = field(metadata={"doc": "What the agent has to do, in words.", "check": not_blank})
    settings: Mapping[str, Any] = field(metadata=_OF_DIRECTORY)
    test_file: Path = field(metadata=_OF_DIRECTORY)
    dockerfile: Path | None = field(default=None, metadata=_OF_DIRECTORY)
    compose_file: Path | None = field(default=None, metadata=_OF_DIRECTORY)
    assets: Path | None = field(default=None, metadata=_OF_DIRECTORY)
    judge_network: bool = setting(False, "Whether test.py may use the network, as it must to look into a sandbox.")
    rubric: tuple[str, ...] = setting((), "Questions on the answer, for a live model to say yes to.", distinct_texts)
    judge_timeout_s: float | None = number(None, "Seconds that test.py may take.", 0, MAX_TIMEOUT_S, above=True)


@dataclass(frozen=True, slots=True)
class InvalidTask:
    """A task directory that cannot be used. It keeps its place among the others, and counts as an error."""

    name: str
    message: str


def load_task(directory: str | Path) -> Task:
    """The task in one directory; its name is the directory's.

    Raises TaskError with one line that says what is wrong, where, and what to do: `task_not_found`,
    `task_unreadable`, `task_no_task_file`, `task_no_test`, `task_missing_field`, `task_wrong_type`,
    `task_invalid_value`, `task_unknown_key`, `task_yaml_invalid`, `task_file_unreadable`, `task_file_not_utf8`,
    `task_file_too_large`.
    """
    folder = Path(directory)
    names = _list_directory(folder, "the task directory")
    if TASK_FILE not in names and TEST_FILE not in names:
        if any(is_task(folder / name) for name in names):
            remedy = "It holds task directories: name one of them, or grade all with --results DIR"
        else:
            remedy = "Add both, or name another directory"
        raise _error(folder, f"has neither {TASK_FILE} nor {TEST_FILE}, so it is no task. {remedy}", "task_not_found")
    for name in names:
        if name != TASK_FILE and name.lower() in (TASK_FILE, "task.yml"):
            raise _error(folder, f"has a {name}, which nothing reads. Call it {TASK_FILE}", "task_no_task_file")
    # Without a task.yaml, records say themselves what was asked for.
    data, text = _read_task_file(folder / TASK_FILE) if TASK_FILE in names else ({}, "")
    _check_test_file(folder)
    given: dict[str, Any] = {
        "name": folder.name if folder.name not in ("", "..") else folder.resolve().name,
        "directory": folder,
        "settings": {key: value for key, value in data.items() if key != "instruction"} if type(data) is dict else {},
        "test_file": folder / TEST_FILE,
        "dockerfile": folder / "Dockerfile" if "Dockerfile" in names else None,
        "compose_file": next((folder / name for name in _COMPOSE_FILES if name in names), None),
        "assets": folder / "assets" if os.path.isdir(folder / "assets") else None,
    }
    if TASK_FILE not in names:
        return Task(instruction="", **given)
    task = build(Task, data, given, reserved_prefix=_RESERVED_PREFIX)
    if isinstance(task, list):
        raise _problems_error(folder / TASK_FILE, task, text)
    return task


def discover_tasks(directory: str | Path, records: Path | None = None) -> list[Task | InvalidTask]:
    """Every sub-folder of a folder as a task, in the byte order of their names.

    Whatever a sub-folder turns out to be, it counts, except for names that begin with '.' or '_', and for what only
    leads to `records`, the folder for records of runs. Raises TaskError
    where the folder cannot be read (`task_not_found`, `task_unreadable`), is a task itself (`task_is_single`) or holds
    no sub-folder (`task_none_found`).
    """
    folder = Path(directory)
    found = _list_directory(folder, "the folder of tasks")
    if is_task(folder):
        remedy = "Name the folder that it stands in, or grade this task alone with --result FILE or --answer TEXT"
        raise _error(folder, f"is a task itself, not a folder of tasks. {remedy}", "task_is_single")
    names = sorted((name for name in found if name[0] not in "._"), key=os.fsencode)
    # A task that was moved away under a link must not disappear from the total.
    paths = (folder / name for name in names)
    folders = [path for path in paths if os.path.isdir(path) or (os.path.islink(path) and not os.path.exists(path))]
    if records is not None:
        place = f"{os.path.realpath(records)}/"
        folders = [path for path in folders if is_task(path) or not place.startswith(f"{os.path.realpath(path)}/")]
    if not folders:
        raise _error(folder, "holds no task directories. Name the folder that they stand in", "task_none_found")
    return [_load_or_invalid(path) for path in folders]


def load_tasks(directory: Path, records: Path | None = None) -> list[Task | InvalidTask]:
    """The one task that a directory is, or the tasks in it. Raises TaskError as `load_task` and `discover_tasks` do."""
    return [load_task(directory)] if is_task(directory) else discover_tasks(directory, records)


def to_work_on(task: Task | InvalidTask) -> Task | InvalidTask:
    """The task, for an agent: one without a `task.yaml` cannot be used."""
    if isinstance(task, InvalidTask) or task.instruction:
        return task
    problem = f"has no {TASK_FILE} that tells an agent what to do. Write it, with at least 'instruction:'"
    return InvalidTask(task.name, _error(task.directory, problem, "task_no_task_file").message)


def is_task(folder: Path) -> bool:
    """Whether a folder is meant as a task: it has a `task.yaml` or a `test.py`."""
    return os.path.lexists(folder / TASK_FILE) or os.path.lexists(folder / TEST_FILE)


def _load_or_invalid(folder: Path) -> Task | InvalidTask:
    try:
        return load_task(folder)
    except TaskError as error:
        return InvalidTask(folder.name, error.message)


def _read_task_file(path: Path) -> tuple[object, str]:
    """The content of `task.yaml`, and its text."""
    try:
        text = read_text(path, MAX_TASK_BYTES)
        documents = load_documents(text)
    except InputFileError as error:
        if error.code == "document_not_found" and os.path.islink(path):
            problem = f"has a {TASK_FILE} that is a link to what does not exist. Correct it"
            raise _error(path.parent, problem, "task_no_task_file") from None
        component = "task" if error.code == "document_yaml_invalid" else "task_file"
        code = f"{component}_{error.code.removeprefix('document_')}"
        raise _error(path, error.message, code, error.line) from None
    if len(documents) > 1:
        raise _error(path, "holds more than one YAML document; remove a '---'", "task_yaml_invalid")
    return documents[0] if documents else {}, text


def _check_test_file(folder: Path) -> None:
    path = folder / TEST_FILE
    function = "a function test(result) that returns {'passed': bool, 'feedback': str}"
    try:
        kind = kind_of_file(path)
    except OSError as error:
        raise _error(folder, f"has a {TEST_FILE} that cannot be read ({error.strerror})", "task_no_test") from None
    if kind is not None:
        raise _error(folder, f"has a {TEST_FILE} that is {kind}. Write a file with {function}", "task_no_test")
    if not os.path.lexists(path):
        raise _error(folder, f"has no {TEST_FILE}. Write it: {function}", "task_no_test")
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        problem = f"has a {TEST_FILE} that is a link out of the task's folder. Put the file itself there"
        raise _error(folder, problem, "task_no_test")


def _problems_error(path: Path, problems: list[Problem], text: str) -> TaskError:
    located = locate_problems(problems[:_MAX_PROBLEMS], text)
    sentences = [_sentence(problem) for problem in located]
    if located[0].message == "is missing":
        sentences[0] += ". Add it: what the agent has to do, in words"
    return _error(path, join_problems(sentences), _CODES[problems[0].kind], located[0].line)


def _sentence(problem: Problem) -> str:
    names_its_key = problem.message.startswith(("unknown key", "the key"))
    return problem.message if names_its_key else f"{dotted_path(problem.path)} {problem.message}".lstrip()


def _list_directory(folder: Path, what: str) -> set[str]:
    """The names in a folder. what: what an error asks for where it is no folder."""
    try:
        names = set(os.listdir(folder))
        os.stat(os.path.join(folder, "."))  # which takes the right to go through it, beside that to list it
        return names
    except (FileNotFoundError, NotADirectoryError):
        problem = "does not exist. Correct the path"
        if os.path.exists(folder):
            problem = f"is not a folder. Name {what}"
        elif os.path.islink(folder):
            problem = "is a link to what does not exist. Correct it"
        raise _error(folder, problem, "task_not_found") from None
    except PermissionError as error:
        raise _error(folder, f"cannot be read ({error.strerror}). Check its permissions", "task_unreadable") from None
    except (OSError, ValueError) as error:  # a name that no folder can have
        reason = getattr(error, "strerror", None) or error
        raise _error(folder, f"cannot be read ({reason}). Correct the path", "task_not_found") from None


def _error(path: Path, problem: str, code: str, line: int | None = None) -> TaskError:
    location = str(path) if line is None else f"{path}:{line}"
    return TaskError(f"{printable(location)}: {printable(problem)}", code)
