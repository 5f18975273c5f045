"""`eval --watch`: run the suite, then after each save what depends on it, and print what is different, until Ctrl-C.

Files are looked at ten times a second and not through inotify: a file that a link leads to, a folder that is removed
and comes back and one on another machine are seen like any other, and a look at 800 files takes 3 ms.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.case_result import as_case
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.loader import EvalLoader, select_scenarios
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase
from guarantee_email_agent.eval.reporter import describe_failure
from guarantee_email_agent.eval.scenario_model import recordings_folder
from guarantee_email_agent.eval.suite import evaluate, run_again
from guarantee_email_agent.eval.verdict_inputs import input_files
from guarantee_email_agent.files.text_file import FileSignature, file_signature
from guarantee_email_agent.runlog.comparison import Changes, ReplyChange, text_of
from guarantee_email_agent.runlog.statistics import format_percentage, meets_threshold, threshold_text
from guarantee_email_agent.runlog.suite_manifest import suite_folders
from guarantee_email_agent.runlog.suite_statistics import SharedCauses, Totals
from guarantee_email_agent.runlog.views.comparison_report import print_replies
from guarantee_email_agent.runlog.views.report import relative_to
from guarantee_email_agent.utils.errors import EXIT_INTERRUPTED, AgentError, ConfigurationError
from guarantee_email_agent.utils.terminal import Progress, Terminal, TextStream, pluralize
from guarantee_email_agent.utils.text import and_more, printable

LOOK_S: Final = 0.1
SETTLE_S: Final = 0.03
"""So long nothing may change before a change counts: editors and `git checkout` write in several steps."""
_MAX_SETTLE_S: Final = 1.0
_SHARE: Final = 10
"""To look takes at most one part in so many of the time, however many files there are."""
_QUIET_S: Final = 2.0
_MAX_PATHS: Final = 3
_MAX_DETAILS: Final = 20
_MAX_NAMES: Final = 50
_ALONE: Final = ("scenario", "mail", "recording")
"""Kinds of files that scenarios depend on alone; any other, such as a trigger's, can route any mail."""
_PLURALS: Final = {"changed reply": "changed replies"}

Load = Callable[[], tuple[EvalOptions, Config]]
"""What the command line and the configuration file say now; raises ConfigurationError."""
Results = Mapping[str, EvalResult]
"""Of a suite, by their files."""


class WatchedFile(NamedTuple):
    """kind: as `input_files` has it; `scenario`, `mail` (beside a scenario), `recording` and `configuration`."""

    kind: str
    name: str
    signature: FileSignature


Files = Mapping[str, WatchedFile]
"""By their paths."""


def refuse_unwatchable(options: EvalOptions) -> None:
    """Raises ConfigurationError for an option that makes no sense, or costs money at every save."""
    why = None
    if options.llm in ("live", "record"):
        why = f"--llm {options.llm} would be paid for at every save. Use offline or replay, or remove --watch"
    elif options.fail_fast:
        why = "--fail-fast ends a run at its first failure, and --watch goes on. Remove one"
    elif options.resume is not None or options.changed:
        name = "--resume" if options.resume is not None else "--changed"
        why = f"{name} takes over results of earlier runs, and --watch runs what each save affects. Remove one"
    elif options.caution_curve:
        why = "--caution-curve is of one whole run, and --watch goes on. Remove one"
    elif options.no_regressions or options.require_proof:
        name = "--no-regressions" if options.no_regressions else "--require-proof"
        why = f"{name} decides how a run ends, and --watch ends with Ctrl-C alone. Remove one"
    elif options.executor != "local":
        why = f"--executor {options.executor} is for long runs, and what one save affects runs here. Remove one"
    elif options.report_files:
        why = "--watch prints differences, and writes no report. Leave report files out, or remove --watch"
    if why is not None:
        raise ConfigurationError(why, "cli_bad_usage")


def watch_suite(
    load: Load, stream: TextStream, is_over: Callable[[], bool], pause: Callable[[float], None] = time.sleep
) -> int:
    """Run the suite as `eval` does, then go on until Ctrl-C, SIGTERM or until nobody reads; the exit code, 130.

    is_over: whether nobody reads. pause: waits so many seconds.

    The run store gets the first run alone: what runs again is no whole run, of files that somebody edits. Raises what
    `evaluate` raises where the first run cannot begin. What happens later is printed, and waits for the next save.
    """
    options, config = load()
    refuse_unwatchable(options)
    terminal = Terminal(stream)
    suite = _WatchedSuite(load, options, config, terminal)
    if evaluate(options, config, stream, suite.keep) == EXIT_INTERRUPTED:
        return EXIT_INTERRUPTED
    suite.begin()
    try:
        while (files := wait_for_change(suite.files, suite.find, is_over, pause)) is not None:
            suite.take(files)
    except KeyboardInterrupt:
        terminal.line("Interrupted: no longer watching")
        terminal.flush()
    return EXIT_INTERRUPTED


class _WatchedSuite:
    """The results of the suite as its files were last, and what has to run for them to be so again."""

    def __init__(self, load: Load, options: EvalOptions, config: Config, terminal: Terminal) -> None:
        self._load, self._options, self._config, self._terminal = load, options, config, terminal
        # Before anything runs: what is saved meanwhile runs again.
        self.files = self.find()
        self._results: dict[str, EvalResult] = {}
        self._everything = False
        self._names: frozenset[str] | None = None

    def find(self) -> Files:
        return find_files(self._config, self._options)

    def keep(self, result: EvalResult) -> None:
        self._results[result.test_case.file or ""] = result

    def begin(self) -> None:
        """After the first run."""
        if self._options.last_failed:
            self._names = frozenset(result.name for result in self._results.values())
        self._terminal.line(f"Watching {pluralize(len(self.files), 'file')}; Ctrl-C ends it.")
        self._terminal.flush()

    def take(self, files: Files) -> None:
        """Run what depends on the files that are not as they were, print what is different, and wait for the next."""
        changed = changed_files(self.files, files)
        self.files = files
        self._terminal.line("")
        self._terminal.line(f"Changed: {printable(and_more([relative_to(path) for path in changed], _MAX_PATHS))}")
        self._terminal.flush()
        try:
            if any(file.kind == "configuration" for file in changed.values()):
                self._load_again()
            self._run(changed)
        except AgentError as error:
            self._everything = True  # what was saved has not run, and is not told again
            for line in error.message.splitlines():
                self._terminal.line(self._terminal.red(f"✗ {printable(line)}"))
            self._terminal.line("Nothing is known of the suite as it is now. Waiting for the next save")
            self._terminal.flush()

    def _load_again(self) -> None:
        options, self._config = self._load()
        # What is printed holds for this suite; its results so far are those of the former settings.
        self._options = replace(options, baseline=None, last_failed=False)
        self.files = self.find()

    def _run(self, changed: Files) -> None:
        files, before, began = self._scenario_files(), self._results, time.monotonic()
        again = files if self._everything else affected_files(changed, files, before)
        progress = Progress(sys.stderr, len(again), "run", quiet_s=_QUIET_S)
        with closing(run_again(self._config, self._options, again)) as results:
            self._results = before.copy()
            for ran, result in enumerate(results, 1):
                self.keep(result)
                progress.show(ran)
        progress.clear()
        self._results, self._everything = {file: self._results[file] for file in files}, False
        duration_s = time.monotonic() - began
        print_difference(before, self._results, self._options.threshold, duration_s, self._terminal)

    def _scenario_files(self) -> list[str]:
        """Those of the suite now. Raises EvalError where its folder cannot be read."""
        options = self._options
        files = EvalLoader().scenario_files(options.directory)
        if self._names is not None:
            return [file for file in files if Path(file).stem in self._names]
        return select_scenarios(files, options.only, options.directory, none_is_fine=True)


# Which files, and when one of them was changed ------------------------------------------------------------------------


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
        lower = name.lower()
        kind = "scenario" if lower.endswith((".yaml", ".yml")) else "mail" if lower.endswith(".eml") else None
        if kind is not None and path not in found:
            found[path] = WatchedFile(kind, name, file_signature(path))
    if options.llm == "replay":
        for folder in _files_in(recordings_folder(options.directory)):
            for path in _files_in(folder):
                found[path] = WatchedFile("recording", os.path.basename(folder), file_signature(path))
    return found


def _files_in(folder: str | Path) -> Iterator[str]:
    """The paths in a folder but for hidden ones, as `os.fspath(folder)` begins them."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    yield from (os.path.join(folder, name) for name in names if name[0] not in "._")


def changed_files(before: Files, now: Files) -> dict[str, WatchedFile]:
    """Those that were written, added or removed, by their paths."""
    return {
        path: now.get(path) or before[path]
        for path in sorted(before.keys() | now.keys())
        if before.get(path) != now.get(path)
    }


def wait_for_change(
    files: Files,
    find: Callable[[], Files],
    is_over: Callable[[], bool],
    pause: Callable[[float], None],
    monotonic: Callable[[], float] = time.monotonic,
) -> Files | None:
    """What there is once `files` are not what `find` finds; None where nobody waits any more."""
    while not is_over():
        began = monotonic()
        if find() != files:
            now, deadline = find(), monotonic() + _MAX_SETTLE_S
            while monotonic() < deadline:  # a file that is written all the time must not hold everything up
                pause(SETTLE_S)
                before, now = now, find()
                if before == now:
                    break
            if now != files:
                return now
        pause(max(LOOK_S, _SHARE * (monotonic() - began)))
    return None


def affected_files(changed: Files, files: list[str], results: Results) -> list[str]:
    """The scenario files whose verdicts may not hold any more. files: of the suite now."""
    if any(file.kind not in _ALONE for file in changed.values()):
        return files
    beside = {file.name for file in changed.values()}
    ids = {PurePath(file.name).stem for file in changed.values() if file.kind != "mail"}  # two of one id are invalid
    return [
        file
        for file in files
        if file in changed or file not in results or PurePath(file).stem in ids or _names_one(results[file], beside)
    ]


def _names_one(result: EvalResult, beside: set[str]) -> bool:
    """Whether a scenario reads one of these files of its folder, or cannot be used because of one."""
    case = result.test_case
    if isinstance(case, EvalTestCase):
        return case.input.email.raw_file in beside
    return any(name in case.problem for name in beside)  # it is missing, unreadable, or bears the id of this one


# What a save made different -------------------------------------------------------------------------------------------


def print_difference(before: Results, after: Results, threshold: float, duration_s: float, terminal: Terminal) -> None:
    """after: with the very results of `before` for what did not run again. threshold: percent."""
    removed = [before[file] for file in sorted(before.keys() - after.keys())]
    ran = [(before.get(file), result) for file, result in after.items() if before.get(file) is not result]
    counts = Counter({"removed": len(removed)})
    failing: dict[str, list[EvalResult]] = {}
    passing: dict[str, list[EvalResult]] = {"Removed": removed} if removed else {}
    replies: list[ReplyChange] = []
    for old, new in ran:
        if (kind := _kind_of_change(old, new)) is not None:
            counts[kind[0]] += 1
            (passing if new.passed else failing).setdefault(kind[1], []).append(new)
        if old is not None and "invalid" not in (old.outcome, new.outcome):
            said, says = (text_of(each.actual_output) for each in (old, new))
            counts["changed reply"] += said != says
            replies += [ReplyChange(new.name, said, says)] if said != says else []
    causes = _print_failing(failing, terminal)
    for title, results in passing.items():
        terminal.line((str if title == "Removed" else terminal.green)(f"{title}: {len(results)}"))
        for result in results[:_MAX_NAMES]:
            terminal.line(f"    {printable(result.name)}: {printable(' '.join(result.test_case.description.split()))}")
        if len(results) > _MAX_NAMES:
            terminal.line(f"    … and {len(results) - _MAX_NAMES} more")
    print_replies(Changes(tuple(replies)), terminal)
    for line in causes.lines():
        terminal.line(line)
    totals = Totals.of(result.outcome for result in after.values())
    must_failed = sum(result.test_case.must and not result.passed for result in after.values())
    reached = meets_threshold(totals.passed, totals.total, threshold)
    told = (f"{count} {what if count == 1 else _PLURALS.get(what, what)}" for what, count in counts.items() if count)
    rate = f"{totals.passed}/{totals.total} ({format_percentage(totals.passed, totals.total, threshold)})"
    gate = "" if reached else f", below the threshold of {threshold_text(threshold)}%"
    gate += f", {pluralize(must_failed, 'scenario')} that must pass failed" if must_failed else ""
    terminal.outcome(
        f"{'✗' if gate or failing else '✓'} {', '.join(told) or 'No difference'}. Pass rate: {rate}{gate}; "
        f"{pluralize(len(ran), 'scenario')} ran in {duration_s:.2f}s"
    )
    terminal.flush()


def _kind_of_change(before: EvalResult | None, after: EvalResult) -> tuple[str, str] | None:
    """As it is counted, and as a title."""
    if before is None:
        return "new", f"New, and {'passing' if after.passed else 'failing'}"
    if after.passed != before.passed:
        return ("newly passing", "Newly passing") if after.passed else ("newly failing", "Newly failing")
    if list(before.failures) != list(after.failures):
        return "failing otherwise", "Still failing, for another reason"
    return None


def _print_failing(failing: Mapping[str, list[EvalResult]], terminal: Terminal) -> SharedCauses:
    """The first in full, and the causes of all."""
    causes, shown = SharedCauses(), 0
    for title, results in failing.items():
        if shown < _MAX_DETAILS:
            terminal.line(terminal.red(f"{title}:"))
        for result in results:
            shown += 1
            if shown <= _MAX_DETAILS:
                terminal.outcome(describe_failure(as_case(result), causes, terminal))
            else:
                causes.add(as_case(result))
    if shown > _MAX_DETAILS:
        terminal.line(f"… and {shown - _MAX_DETAILS} more that fail")
    return causes
