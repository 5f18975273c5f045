"""The loop of `eval --watch`: run the suite, then after each save what depends on it, until Ctrl-C."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.eval_recorder import inputs_of
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.options import EvalOptions
from guarantee_email_agent.eval.selection import select_scenarios
from guarantee_email_agent.eval.suite import evaluate, keep_results, run_again
from guarantee_email_agent.eval.watch.difference import Difference
from guarantee_email_agent.eval.watch.watched_files import (
    Files,
    ProgramFiles,
    Watch,
    WatchedFile,
    affected_files,
    changed_files,
    find_files,
    likely_first,
)
from guarantee_email_agent.files.report_files import is_stdout
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.records import Input, changed_inputs
from guarantee_email_agent.runlog.views.report import relative_to
from guarantee_email_agent.utils.errors import EXIT_INTERRUPTED, AgentError, ConfigurationError
from guarantee_email_agent.utils.progress import Progress
from guarantee_email_agent.utils.terminal import Terminal, TextStream, pluralize, warn_on_stderr
from guarantee_email_agent.utils.text import and_more, printable

_FIRST_PART_S: Final = 0.1
_NEXT_PART_S: Final = 5.0
"""What is different is printed so long after the first result, as soon as there is anything, and then after each of
the other."""
_QUIET_S: Final = 2.0
_LOOK_AGAIN_S: Final = 0.25
_MAX_NAMES: Final = 3

Load = Callable[[], tuple[EvalOptions, Config]]
"""What the command line and the configuration file say now; raises ConfigurationError."""


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
    elif any(map(is_stdout, options.report_files.values())):
        why = "--watch prints differences to stdout, so that no report can go there. Name a file"
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
    suite, program = _WatchedSuite(load, options, config, terminal), ProgramFiles()
    if evaluate(options, config, stream, suite.note) == EXIT_INTERRUPTED:
        return EXIT_INTERRUPTED
    suite.begin()
    watch = Watch(program, suite.tell_program_change, is_over, pause)
    try:
        while (files := watch.wait(suite.files, suite.find)) is not None:
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
        self._inputs = self._read_inputs()
        self._results: dict[str, EvalResult] = {}
        self._waiting: set[str] = set()
        self._everything = False
        self._names: frozenset[str] | None = None
        self._runs = 0

    def find(self) -> Files:
        return find_files(self._config, self._options)

    def note(self, result: EvalResult) -> None:
        """A result of the first run."""
        self._keep(result.test_case.file or "", result)

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
        self._terminal.line(f"Changed: {printable(and_more([relative_to(path) for path in changed], _MAX_NAMES))}")
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

    def tell_program_change(self, names: list[str]) -> None:
        """names: of the changed files, relative to the package."""
        what = f"Changed: the program itself ({printable(and_more(names, _MAX_NAMES))})."
        self._terminal.line("")
        self._terminal.line(f"{what} What runs here is as it was: stop it with Ctrl-C, and start it again")
        self._terminal.flush()

    def _load_again(self) -> None:
        options, self._config = self._load()
        # What is printed holds for this suite; its results so far are those of the former settings.
        self._options = replace(options, baseline=None, last_failed=False)
        self.files = self.find()

    def _run(self, changed: Mapping[str, WatchedFile]) -> None:
        inputs = self._read_inputs()
        differences = list(changed_inputs(self._inputs, inputs))
        self._inputs = inputs
        files = self._scenario_files()
        gone = self._results.keys() - set(files)
        self._waiting |= affected_files(changed, differences, files, self._results)
        self._waiting = set(files) if self._everything else self._waiting & set(files)
        difference = Difference(self._terminal)
        difference.add_removed([self._results.pop(file) for file in sorted(gone)])
        difference.print_rest()
        order = likely_first(self._waiting, files, changed, differences, self._results)
        self._run_waiting(files, order, difference)

    def _run_waiting(self, files: list[str], order: list[str], difference: Difference) -> None:
        began = time.monotonic()
        next_part, next_look = inf, began + _LOOK_AGAIN_S
        ran = 0
        progress = Progress(sys.stderr, len(order), "run", quiet_s=_QUIET_S)
        with closing(run_again(self._config, self._options, order)) as results:
            for file, result in zip(order, results, strict=True):
                ran += 1
                progress.clear()
                difference.add(self._results.get(file), result)
                self._keep(file, result)
                self._waiting.discard(file)
                now = time.monotonic()
                if ran == 1:  # what came before was to load the files
                    next_part = now + _FIRST_PART_S
                if now >= next_part and self._waiting:
                    next_part = now + _FIRST_PART_S
                    if difference.print_rest():
                        next_part = now + _NEXT_PART_S
                        self._terminal.line(f"… {ran} of {len(order)} ran")
                        self._terminal.flush()
                if now >= next_look and self._waiting:
                    next_look = now + _LOOK_AGAIN_S
                    if self.find() != self.files:
                        difference.print_rest()
                        self._terminal.line(f"Saved again: {len(self._waiting)} of {len(order)} still have to run")
                        self._terminal.flush()
                        return
                progress.show(ran)
        self._everything = False
        progress.clear()
        difference.print_rest()
        whole = [self._results[file] for file in files]
        duration_s = time.monotonic() - began
        difference.print_total(whole, self._options.threshold, ran, duration_s)
        if self._options.report_files:
            self._write_reports(whole, duration_s)

    def _write_reports(self, results: Sequence[EvalResult], duration_s: float) -> None:
        """As the suite is now, under an id that no run of the store has."""
        self._runs += 1
        options = replace(
            self._options, run_id=f"{self._options.run_id}-{self._runs}", github=None, kept=None, baseline=None
        )
        try:
            with ExitStack() as resources:
                keep_results(self._config, options, results, duration_s, resources).write_reports(options, len(results))
        except (ConfigurationError, StoreError) as error:
            warn_on_stderr(error.message)

    def _scenario_files(self) -> list[str]:
        """Those of the suite now. Raises EvalError where its folder cannot be read."""
        options = self._options
        files = EvalLoader().scenario_files(options.directory)
        if self._names is not None:
            return [file for file in files if Path(file).stem in self._names]
        return select_scenarios(files, options.only, options.directory, none_is_fine=True) if options.only else files

    def _read_inputs(self) -> Iterable[Input]:
        return inputs_of(self._config, self._options).set.inputs

    def _keep(self, file: str, result: EvalResult) -> None:
        self._results[file] = result if self._options.report_files else replace(result, trace=None)
