"""What an agent's work and a verdict were made from, as digests: of an earlier run they tell what is out of date."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.judging.task import TASK_FILE, Task

# The keys of task.yaml that an agent or its sandbox gets to feel; a judge gets them all.
_KEYS_FOR_AGENTS: Final = ("client_type", "sandbox")
_ASSETS: Final = "assets"
_CHUNK: Final = 1 << 20


def work_digest(task: Task, record_file: Path) -> str:
    """Of what an agent and its sandbox get: instruction, `assets/`, what a container is built from.

    record_file: which is no part of the task, nor is its folder, even where they lie in it.
    """
    built_from = {file.name for file in (task.dockerfile, task.compose_file) if file is not None}
    names = {_ASSETS, *built_from}
    if built_from:  # then the folder is copied for the build, without the judge
        names |= {name for name in _names(task.directory) if not name.endswith(".py")}
    settings = {key: task.settings[key] for key in _KEYS_FOR_AGENTS if key in task.settings}
    return _digest(task.directory, names, [task.instruction, settings], record_file, _content)


def judge_digest(task: Task, record_file: Path) -> str:
    """Of what a judge gets beside the record: `test.py`, the files beside it, and the keys of `task.yaml`."""
    agents = {_ASSETS, *(file.name for file in (task.dockerfile, task.compose_file) if file is not None)}
    facts = [task.instruction, dict(task.settings)]
    names = set(_names(task.directory)) - agents
    return _digest(task.directory, names, facts, record_file, _content_behind_links)


def _digest(
    directory: Path, names: set[str], facts: list[Any], record_file: Path, content_of: Callable[[str], str]
) -> str:
    folder, records = directory.resolve(), record_file.parent.resolve()
    ours = {str(records), str(records / record_file.name)}
    digest = hashlib.sha256()
    _add(digest, "facts", json.dumps(facts, sort_keys=True, default=str))
    for path in sorted(path for name in names for path in _files(folder / name, ours)):
        _add(digest, os.path.relpath(path, folder), content_of(path))
    return f"sha256:{digest.hexdigest()}"


def _names(folder: Path) -> Iterator[str]:
    """What is in the directory of a task beside `task.yaml`, without what tools leave there."""
    try:
        names = os.listdir(folder)
    except OSError:
        names = []
    return (name for name in names if name[0] != "." and name not in (TASK_FILE, "__pycache__"))


def _files(path: Path, ours: set[str]) -> Iterator[str]:
    """`path`, and everything below it but what is `ours`; no folder behind a link."""
    if not os.path.lexists(path) or str(path) in ours:
        return
    yield os.fspath(path)
    for parent, folders, files in os.walk(path) if not os.path.islink(path) else ():
        folders[:] = [name for name in folders if name != "__pycache__" and os.path.join(parent, name) not in ours]
        yield from (os.path.join(parent, name) for name in (*folders, *files))


def _content(path: str) -> str:
    """The kind of what stands there, and what it holds; nothing but a file is opened."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return f"link {os.readlink(path)}"
        if not stat.S_ISREG(mode):
            return f"kind {stat.S_IFMT(mode):o}"
        content = hashlib.sha256()
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            while chunk := file.read(_CHUNK):
                content.update(chunk)
    except OSError as error:
        return f"unreadable {error.errno}"
    return f"file {mode & stat.S_IXUSR:o} {content.hexdigest()}"


def _content_behind_links(path: str) -> str:
    """The same with what the file holds that a link leads to, such as a module that the judges of many tasks share."""
    return f"{_content(path)} {_content(os.path.realpath(path))}" if os.path.islink(path) else _content(path)


def _add(digest: Any, name: str, content: str) -> None:
    for text in (name, content):
        data = text.encode("utf-8", "surrogateescape")
        digest.update(len(data).to_bytes(8, "big") + data)
