"""The files that `eval --watch` looks at, and when one of them was changed.

They are looked at ten times a second and not through inotify: a file that a link leads to, a folder that is removed and
comes back and one on another machine are seen like any other, and a look at 800 files takes 3 ms.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePath
from typing import Final, NamedTuple

import guarantee_email_agent
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase
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


def affected_files(
    changed: Mapping[str, WatchedFile],
    inputs: Iterable[tuple[str, str, str]],
    files: Sequence[str],
    results: Mapping[str, EvalResult],
) -> set[str]:
    """The scenario files whose verdicts may not hold any more.

    changed: by their paths. inputs: as `changed_inputs` has them. files: of the suite now. results: by their files.
    An instruction or lexicon file, a setting and the agent count for every scenario: a trigger in any file can route
    any mail. A judge counts for all that have one, since judges import each other.
    """
    kinds = {kind for _, kind, _ in inputs}
    if kinds - {"judge"}:
        return set(files)
    beside = {file.name for file in changed.values()}
    folders = {file.name for file in changed.values() if file.kind == "recording"}
    return {
        file
        for file in files
        if file in changed
        or file not in results
        or PurePath(file).stem in folders
        or _depends(results[file], beside, judges="judge" in kinds)
    }


def _depends(result: EvalResult, beside: Collection[str], *, judges: bool) -> bool:
    """beside: names of changed files in the suite's folder."""
    case = result.test_case
    if isinstance(case, EvalTestCase):
        return case.input.email.raw_file in beside or (judges and case.test is not None)
    return any(name in case.problem for name in beside)  # it is missing, unreadable, or bears the id of this one


def likely_first(
    waiting: Collection[str],
    files: Iterable[str],
    changed: Collection[str],
    inputs: Iterable[tuple[str, str, str]],
    results: Mapping[str, EvalResult],
) -> list[str]:
    """The files that wait, as they are to run: what was saved itself, what failed, what used the instruction or
    language that changed, and then the rest; in each part one of every instruction in turn, since what one save breaks
    mostly has one in common.
    """
    names = {PurePath(name).name.partition(".")[0] for _, kind, name in inputs if kind in ("instruction", "lexicon")}

    def rank(file: str) -> int:
        result = results.get(file)
        if file in changed or result is None:
            return 0
        if not result.passed:
            return 1
        return 2 if result.actual_output.get("scenario_used") in names or result.language in names else 3

    seen: Counter[tuple[int, str]] = Counter()
    places: dict[str, tuple[int, int]] = {}
    for file in files:
        if file in waiting:
            result = results.get(file)
            part = rank(file), str(result and result.actual_output.get("scenario_used"))
            places[file] = part[0], seen[part]
            seen[part] += 1
    return sorted(places, key=places.__getitem__)
