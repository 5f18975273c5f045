"""The files that `eval --watch` looks at, and when one of them was changed.

They are looked at ten times a second and not through inotify: a file that a link leads to, a folder that is removed and
comes back and one on another machine are seen like any other, and a look at 800 files takes 3 ms.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import guarantee_email_agent
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.options import EvalOptions
from guarantee_email_agent.eval.scenario_model import recordings_folder
from guarantee_email_agent.eval.verdict_inputs import input_files, suite_folders
from guarantee_email_agent.files.text_file import FileSignature, file_signature

LOOK_S: Final = 0.1
SETTLE_S: Final = 0.03
"""So long nothing may change before a change counts: editors and `git checkout` write in several steps."""
_MAX_SETTLE_S: Final = 1.0
_SHARE: Final = 10
"""To look takes at most one part in so many of the time, however many files there are."""
_PROGRAM_S: Final = 1.0


class WatchedFile(NamedTuple):
    """kind: as `input_files` has it; `scenario`, `mail` (beside a scenario), `recording` and `configuration`."""

    kind: str
    name: str
    signature: FileSignature


Files = Mapping[str, WatchedFile]
"""By their paths."""


def find_files(config: Config, options: EvalOptions) -> Files:
    """What the verdicts of a suite depend on, as it stands now. A folder that cannot be read has no files."""
    found = {
        path: WatchedFile(kind, name, file_signature(path))
        for (kind, name), path in input_files(config, options.directory, options.agent)
    }
    # Also where there is none, or none any more: it may come.
    source = os.path.abspath(config.source or "config.yaml")
    found[source] = WatchedFile("configuration", os.path.basename(source), file_signature(source))
    for path in chain.from_iterable(map(_files_in, suite_folders(options.directory))):
        name = os.path.basename(path)
        if kind := _kind_in_suite(name):
            found[path] = WatchedFile(kind, name, file_signature(path))
    if options.llm == "replay":
        for folder in _files_in(recordings_folder(options.directory)):
            for path in _files_in(folder):
                found[path] = WatchedFile("recording", os.path.basename(folder), file_signature(path))
    return found


def changed_files(before: Files, now: Files) -> dict[str, WatchedFile]:
    """Those that were written, added or removed, by their paths."""
    return {
        path: now.get(path) or before[path]
        for path in sorted(before.keys() | now.keys())
        if before.get(path) != now.get(path)
    }


class ProgramFiles:
    """The code that runs here, which another save does not change."""

    def __init__(self, folder: Path | None = None) -> None:
        """folder: of the package; ours if None."""
        self._folder = Path(guarantee_email_agent.__file__).parent if folder is None else folder
        self._files = self._find()

    def newly_changed(self) -> list[str]:
        """What was changed since the last time, relative to the package."""
        before, self._files = self._files, self._find()
        names = sorted(name for name in before.keys() | self._files if before.get(name) != self._files.get(name))
        return [os.path.relpath(name, self._folder) for name in names]

    def _find(self) -> dict[str, FileSignature]:
        paths = (os.path.join(folder, name) for folder, _, names in os.walk(self._folder) for name in names)
        return {path: file_signature(path) for path in paths if path.endswith(".py")}


class Watch:
    """Waits for the next change."""

    def __init__(
        self,
        program: ProgramFiles,
        on_program_change: Callable[[list[str]], None],
        is_over: Callable[[], bool],
        pause: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """on_program_change: gets the files of our own code that were changed. is_over: whether nobody waits any more.

        pause: waits so many seconds.
        """
        self._program, self._on_program_change, self._is_over = program, on_program_change, is_over
        self._pause, self._monotonic = pause, monotonic
        self._looked_at_program = monotonic()

    def wait(self, files: Files, find: Callable[[], Files]) -> Files | None:
        """What there is once `files` are not what `find` finds; None where nobody waits any more."""
        while not self._is_over():
            began = self._monotonic()
            if find() != files and (now := self._settled(find)) != files:
                return now
            if began - self._looked_at_program >= _PROGRAM_S:
                self._looked_at_program = began
                if changed := self._program.newly_changed():
                    self._on_program_change(changed)
            self._pause(max(LOOK_S, _SHARE * (self._monotonic() - began)))
        return None

    def _settled(self, find: Callable[[], Files]) -> Files:
        now, deadline = find(), self._monotonic() + _MAX_SETTLE_S
        while self._monotonic() < deadline:  # a file that is written all the time must not hold everything up
            self._pause(SETTLE_S)
            before, now = now, find()
            if before == now:
                break
        return now


def _files_in(folder: str | Path) -> Iterator[str]:
    """The paths in a folder but for hidden ones, as `os.fspath(folder)` begins them."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from (os.path.join(folder, name) for name in names if name[0] not in "._")


def _kind_in_suite(name: str) -> str | None:
    """What a file of the suite's folder is; None for judges, which `input_files` has, and for what nobody reads."""
    lower = name.lower()
    return "scenario" if lower.endswith((".yaml", ".yml")) else "mail" if lower.endswith(".eml") else None
