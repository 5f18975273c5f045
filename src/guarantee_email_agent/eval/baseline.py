"""The earlier run that a run of the suite is held against, and what failed when each scenario ran last."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final

from guarantee_email_agent.eval.verdict_inputs import input_files
from guarantee_email_agent.runlog.comparison import Comparison, ContentChange, compare_runs
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.records import Case, Run, SuiteKey
from guarantee_email_agent.runlog.run_reader import GREEN, LAST, RunStore, refuse_nameless
from guarantee_email_agent.runlog.views.comparison_report import MAX_REPLIES, print_comparison
from guarantee_email_agent.runlog.views.report import relative_to
from guarantee_email_agent.runlog.views.word_diff import CHANGE, diff_text, paint_changes
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.terminal import Terminal, TextStream, pluralize
from guarantee_email_agent.utils.text import printable, truncate

if TYPE_CHECKING:
    from guarantee_email_agent.config.settings import Config
    from guarantee_email_agent.eval.execution import EvalOptions

_MAX_WORDS: Final = 200


class Baseline:
    """A whole run of the suite. Results are held against it as they come, so that the gate needs no finished run."""

    def __init__(self, file: Path, run: Run, passed: Mapping[str, bool], names: AbstractSet[str] | None) -> None:
        """passed: whether each scenario did, by name. names: of the scenarios that the suite has; None where only a
        part of what the baseline ran is wanted.
        """
        self.run = run
        self._file, self._passed = file, passed
        self._gone = frozenset() if names is None else frozenset(name for name in passed if name not in names)
        self._newly_failing: set[str] = set()
        self._ran = 0

    def refuse_nothing_in_common(self, files: Sequence[str]) -> None:
        """Raises ConfigurationError where a run of these files shows of no scenario whether it is worse."""
        if not self._gone and self._passed.keys().isdisjoint(Path(file).stem for file in files):
            problem = "has no scenario in common with what is to run. Name another one"
            raise ConfigurationError(f"The run {self.run.id} {problem}", "eval_bad_baseline")

    def add(self, case: Case) -> None:
        """Note one case."""
        self._ran += 1
        if not case.passed and self._passed.get(case.name):
            self._newly_failing.add(case.name)

    def regressions(self) -> list[str]:
        """What passed in the baseline and does not pass, and what is gone, unless only a part was asked for.

        What has not run, since the run ends before, is not gone.
        """
        worse = self._gone | self._newly_failing
        return [name for name in self._passed if name in worse] if worse else []

    def print_comparison(self, run_id: str, stream: TextStream) -> None:
        """With the run of that id, which is over, as far as it came. Raises StoreError and ConfigurationError."""
        terminal = Terminal(stream)
        if not self._ran:
            terminal.line("Not compared with the baseline: no scenario ran")
            terminal.flush()
            return
        with RunStore(self._file) as store:
            run = store.find_run(run_id)
            if run.total < self._ran:
                raise ConfigurationError(
                    f"The run {run_id} is not in the run store as a whole, so that it cannot be compared. "
                    "Its summary is complete; run it again once the store can be written",
                    "eval_run_not_kept",
                )
            print_comparison(compare_runs(store, self.run, run, max_details=MAX_REPLIES), terminal)


def find_baseline(file: Path, name: str, key: SuiteKey, names: AbstractSet[str]) -> Baseline:
    """name: as `RunStore.find_run` has it; of `last` and `green` the newest whole run of the same suite. names: of its
    scenarios now.

    A part of a suite is held against a run of the same part, else against one of the whole suite. Raises StoreError
    where there is none, and ConfigurationError for a run that results cannot be held against.
    """
    with RunStore(file) as store:
        try:
            run = _find(store, name, key)
        except StoreError as error:
            if error.code != "store_no_such_run" or not key.selection or name not in (LAST, GREEN):
                raise
            run = _find(store, name, key._replace(selection=()))
        refuse_nameless(run)
        problem = None
        if run.command != "eval":
            problem = f"is one of {run.command}. Name a run of eval"
        elif run.outcome is None:
            problem = "still goes on. Name one that is over"
        elif run.total < run.planned:
            problem = f"was not finished: {run.total} of {run.planned} scenarios ran. Name a whole run"
        if problem is not None:
            raise ConfigurationError(f"The run {run.id} {problem}", "eval_bad_baseline")
        is_part = bool(key.selection) and key.selection != run.selection
        return Baseline(file, run, store.passed_by_name(run), None if is_part else names)


def baseline_of(options: EvalOptions, key: SuiteKey, files: Sequence[str]) -> Baseline | None:
    """What a run of these files is held against.

    Raises StoreError and ConfigurationError where there is nothing to be held to.
    """
    problem = None
    if options.baseline is None and options.no_regressions:
        problem = "--no-regressions needs --baseline: name a run, last or green"
    elif options.kept is None:
        problem = "--baseline and --last-failed need the run store. Remove --no-store"
    elif options.resume is not None:
        problem = "--resume goes on with a run as it was begun. Remove --baseline and --last-failed"
    if problem is not None:
        raise ConfigurationError(problem, "cli_bad_usage")
    if options.baseline is None or options.kept is None:
        return None
    return find_baseline(options.kept.file, options.baseline, key, {Path(file).stem for file in files})


def select_last_failed(
    options: EvalOptions, key: SuiteKey, files: Sequence[str]
) -> tuple[Sequence[str], tuple[str, ...]]:
    """With --last-failed those of the files whose scenarios failed when they ran last, and the run's selection then."""
    if not options.last_failed or options.kept is None:
        return files, options.only
    failed = find_last_failed(options.kept.file, key)
    chosen = [file for file in files if Path(file).stem in failed]
    if not chosen:
        sys.stderr.write("Nothing is known to have failed last time: every scenario runs\n")
        return files, options.only
    return chosen, tuple(Path(file).stem for file in chosen)


def _find(store: RunStore, name: str, key: SuiteKey) -> Run:
    return store.find_complete(key) if name == LAST else store.find_run(name, key)


def find_last_failed(file: Path, key: SuiteKey) -> set[str]:
    """The names of the scenarios that did not pass when they ran last, whatever else was selected then.

    Empty where none failed, or where no run is kept. Raises StoreError for a store that cannot be read.
    """
    latest: dict[str, bool] = {}
    try:
        store = RunStore(file)
    except StoreError as error:
        if error.code == "store_not_found":
            return set()
        raise
    with store:
        for run in store.runs_up_to_a_whole_one(key):
            latest = store.passed_by_name(run) | latest
    return {name for name, passed in latest.items() if not passed}


def print_next_steps(config: Config, options: EvalOptions, terminal: Terminal) -> None:
    """After a run that failed: the first thing that changed since the suite was green, and what tells more.

    Nothing where no scenario of it is kept as failed.
    """
    if options.kept is None:
        return
    with suppress(StoreError), RunStore(options.kept.file) as store:  # the run has said what it could not keep
        run = store.find_run(options.run_id)
        name = next((each.name for each in store.outcomes(run, failed_only=True)), None)
        if name is None:
            return
        compare = ""
        with suppress(StoreError):  # it was never green
            baseline = store.find_green_before(run)
            comparison = compare_runs(store, baseline, run, max_details=MAX_REPLIES, counts_all=False)
            failing = [each.name for each in comparison.newly_failing]
            name = next(iter(failing), name)
            compare = ", 'compare green last' has every difference"
            changed = [each for each in comparison.contents.shown if each.kind != "scenario" or each.name in failing]
            found = [*(each.verb for each in changed), *_other_changes(comparison)]
            if changed and changed[0].kind == "scenario":
                found[0] = _first_change(changed[0], store.find_case(run, changed[0].name)[0].file)
            elif changed:
                paths = dict(input_files(config, options.directory, options.agent))
                found[0] = _first_change(changed[0], paths.get((changed[0].kind, changed[0].name), changed[0].name))
            shown = paint_changes(found[0], terminal) if found else "nothing that is known"
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            terminal.line(f"Changed since green: {shown}{more}")
        show = f"'show {printable(shlex.quote(name))}' has all that happened"
        terminal.line(f"{show}{compare}, 'view' is for the browser")
        terminal.flush()


def _first_change(change: ContentChange, path: str) -> str:
    """`instructions/main.md:3 [-words that went-] {+words that came+}`."""
    place = printable(relative_to(path))
    if change.before is None or change.after is None:
        return f"{place} ({change.verb})"
    before, after = (content.decode(errors="replace") for content in (change.before, change.after))
    lines = zip_longest(before.splitlines(), after.splitlines())
    number = next((number for number, (old, new) in enumerate(lines, 1) if old != new), 1)
    words = " ".join(CHANGE.findall(next(diff_text(before, after), "")))
    return f"{place}:{number} {printable(truncate(words, _MAX_WORDS))}".rstrip()


def _other_changes(comparison: Comparison) -> Iterator[str]:
    yield from (
        f"the setting {name}" for name, _, _ in comparison.settings if name not in ("git_revision", "selection")
    )
    if failed := sum(each.verdict != "passed" for each in comparison.added):
        yield f"{pluralize(failed, 'new scenario')} failing"
    if comparison.unknown_inputs:
        yield "what is not known, since files were edited during a run"
