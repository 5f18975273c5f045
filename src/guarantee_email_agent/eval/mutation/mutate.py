"""The whole of `eval --mutate`: plant faults until the time is over, and say what notices them."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.case_result import stored_source
from guarantee_email_agent.eval.eval_recorder import inputs_of, suite_key
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.mutation.instruction_faults import DANGEROUS, REWORDING, Fault
from guarantee_email_agent.eval.mutation.trial import Noticed, Outcome, Trial
from guarantee_email_agent.files.report_files import as_json, write_whole
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.records import Input, changed_inputs
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.suite_manifest import DEVELOPMENT, read_manifest
from guarantee_email_agent.runlog.views.report import relative_to
from guarantee_email_agent.runlog.views.word_diff import diff_words, paint_changes
from guarantee_email_agent.utils.errors import EXIT_EVALUATION, EXIT_INTERRUPTED, EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.terminal import Terminal, TextStream, pluralize, warn_on_stderr
from guarantee_email_agent.utils.text import and_more

_ALLOWED: Final = ("only", "run_id", "started", "kept", "github", "verbose")
_WORDS: Final[Mapping[Noticed, str]] = {
    "refused": "refused on loading",
    "gate": "close the gate",
    "whole": "seen only at 100 %",
    "unnoticed": "unnoticed",
}
_MAX_RUNS: Final = 50
_CONTEXT: Final = 6


def mutate(
    options: EvalOptions,
    config: Config,
    stream: TextStream,
    *,
    seconds: float,
    seed: int,
    floor: float | None,
    monotonic: Callable[[], float] = time.monotonic,
) -> int:
    """Plant faults in a copy of the instruction files, run the suite on each, and print what noticed; the exit code.

    seconds: in which faults are planted. seed: by which they are ordered. floor: percent of those that load which the
    suite has to notice; None for any.

    Raises ConfigurationError for options that make no sense here, and what `evaluate` raises before a scenario runs.
    """
    _refuse(options)
    terminal = Terminal(stream)
    code = EXIT_SUCCESS
    with tempfile.TemporaryDirectory(prefix="guarantee-email-agent-") as folder:
        inputs = inputs_of(config, options).set  # before they are copied: what is edited meanwhile was not tried
        trial = Trial(config, options, Path(folder))
        failed = [result for result in trial.results if not result.passed]
        if not trial.entries or not trial.is_open(failed):
            count = pluralize(len(failed), "scenario")
            terminal.line(f"The gate is closed without any fault: {count} failed. Mend them first")
            terminal.flush()
            return EXIT_EVALUATION
        changed = _changed(config, options, inputs.inputs, trial.paths)
        faults = trial.faults(seed, changed)
        state = _State(options, repr((inputs.digest, options.threshold, seed)), trial)
        tried = {fault: state.outcomes[fault.key] for fault in faults if fault.key in state.outcomes}
        taken_over, ends = len(tried), monotonic() + seconds
        sys.stderr.write(f"Planting faults for {seconds:g} s. Ctrl-C ends it, and shows what there is\n")
        try:
            for fault in faults:
                if fault not in tried:
                    if monotonic() >= ends:
                        break
                    tried[fault] = trial.try_fault(fault)
                    state.keep(fault, tried[fault])
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
        report = _Report(terminal, trial, {fault: tried[fault] for fault in faults if fault in tried})
        share = report.totals()
        before = f"; {taken_over} of them taken over" if taken_over else ""
        terminal.line(f"Seed {seed}{before}. Not reached: {len(faults) - len(tried)}")
        if changed:
            terminal.line(f"Changed since a green run, and first: {', '.join(sorted(changed))}")
        report.details()
        terminal.flush()
    is_enough = floor is None or (share is not None and share >= floor)
    return code if is_enough or code == EXIT_INTERRUPTED else EXIT_EVALUATION


class _Report:
    def __init__(self, terminal: Terminal, trial: Trial, tried: Mapping[Fault, Outcome]) -> None:
        self._terminal, self._trial = terminal, trial
        self._tried = {fault: outcome for fault, outcome in tried.items() if fault.operator != REWORDING}
        self._reworded = {fault: outcome for fault, outcome in tried.items() if fault.operator == REWORDING}

    def totals(self) -> float | None:
        """Percent of what loads that the suite notices; None where nothing was planted that loads."""
        counts = Counter(outcome.noticed for outcome in self._tried.values())
        loaded = len(self._tried) - counts["refused"]
        share = 100 * (loaded - counts["unnoticed"]) / loaded if loaded else None
        self._terminal.line(f"of {pluralize(len(self._tried), 'fault')}: {_counted(self._tried.values())}")
        of_loaded = "not known" if share is None else f"{loaded - counts['unnoticed']} of {loaded} ({share:.1f} %)"
        self._terminal.line(f"Of those that load the scenarios notice {of_loaded}")
        return share

    def details(self) -> None:
        line = self._terminal.line
        line("")
        line("Dangerous kinds:")
        for kind in DANGEROUS:
            of_kind = {fault: outcome for fault, outcome in self._tried.items() if fault.operator == kind}
            line(f"  {kind}: {f'{len(of_kind)} planted, {_counted(of_kind.values())}' if of_kind else 'none reached'}")
            for fault, outcome in of_kind.items():
                if outcome.noticed == "whole":
                    self._line(fault, f"the gate stays open; fails {and_more(outcome.failed, 1)}")
        for fault, outcome in self._tried.items():
            if outcome.noticed == "unnoticed":
                line("")
                self._line(fault, "unnoticed")
                self._example(fault, outcome)
        failing = {fault: outcome for fault, outcome in self._reworded.items() if outcome.noticed != "unnoticed"}
        line("")
        line(f"Harmless, the same in other words: {len(failing)} of {len(self._reworded)} fail a scenario")
        for fault, outcome in failing.items():
            refused = outcome.noticed == "refused"
            self._line(fault, "refused on loading" if refused else f"fails {and_more(outcome.failed, 1)}")

    def _line(self, fault: Fault, what: str) -> None:
        place = f"{relative_to(self._trial.paths[fault.file])}:{fault.line}"
        self._terminal.line(f"  {place}: {fault.operator}: {what}")
        words = diff_words(fault.before.split(), fault.after.split())
        places = [at for at, word in enumerate(words) if word[:2] in ("[-", "{+")] or [0]
        shown = " ".join(words[max(0, places[0] - _CONTEXT) : places[-1] + _CONTEXT + 1])
        self._terminal.line(f"    {paint_changes(shown, self._terminal)}")

    def _example(self, fault: Fault, outcome: Outcome) -> None:
        line = self._terminal.line
        example = self._trial.find_example(fault, outcome.shown_by)
        if example is None:
            line("    No mail of the suite is answered otherwise by it, nor one with its phrases")
            return
        line(f"    Reply to the mail of {example.name}{example.added and f' with the words {example.added!r}'}:")
        for text in (example.reply or "(none)").splitlines():
            line(f"      | {text}".rstrip())
        if example.scenario is None:
            line("    Nothing that a scenario can expect tells it from the right one")
            return
        line("    A scenario that fails on it, and passes without:")
        for text in example.scenario.splitlines():
            line(f"      {text}".rstrip())


class _State:
    """What came of each fault, in a file beside the run store, for as long as nothing that decides is another."""

    def __init__(self, options: EvalOptions, inputs: str, trial: Trial) -> None:
        """inputs: what decides beside the scenarios."""
        self._file = options.kept and options.kept.file.with_name(f"{options.kept.file.name}.mutations.json")
        cases = [each for each in trial.entries if isinstance(each, EvalTestCase)]
        sources = [(case.file, stored_source(case)) for case in cases]
        self._digest = hashlib.sha256(repr((inputs, len(trial.entries), sources)).encode()).hexdigest()
        self.outcomes: dict[str, Outcome] = {}
        if self._file is not None:
            with suppress(OSError, ValueError, KeyError, TypeError):  # none yet, or of another version
                found = json.loads(self._file.read_bytes())
                if found["inputs"] == self._digest:
                    self.outcomes = {key: Outcome(*outcome) for key, outcome in found["outcomes"].items()}

    def keep(self, fault: Fault, outcome: Outcome) -> None:
        self.outcomes[fault.key] = outcome
        if self._file is not None:
            try:
                self._file.parent.mkdir(0o700, parents=True, exist_ok=True)
                write_whole(self._file, as_json({"inputs": self._digest, "outcomes": self.outcomes}))
            except OSError as error:
                warn_on_stderr(f"{self._file}: cannot be written ({error.strerror}). Another run begins anew")
                self._file = None


def _refuse(options: EvalOptions) -> None:
    for field in fields(options):
        if field.default is MISSING or field.name in _ALLOWED or getattr(options, field.name) == field.default:
            continue
        name = field.name.removesuffix("_file").removesuffix("_dir").removesuffix("_usd").replace("_", "-")
        problem = f"--mutate runs our own agent's suite again and again, and decides no gate. Remove --{name}"
        raise ConfigurationError(f"eval: {problem}", "cli_bad_usage")
    if read_manifest(options.directory) != DEVELOPMENT:
        problem = "--mutate shows what notices a fault, which opens the suite. Name one that the agent was built on"
        raise ConfigurationError(f"eval: {options.directory}: {problem}", "cli_bad_usage")


def _changed(config: Config, options: EvalOptions, now: Iterable[Input], names: Mapping[str, str]) -> set[str]:
    """The files that are not as they were in the newest green run of the suite that had others."""
    if options.kept is not None:
        with suppress(StoreError), RunStore(options.kept.file) as store:
            for run in store.runs(suite_key(config, options)._replace(selection=()), limit=_MAX_RUNS):
                number = store.input_set_of(run) if run.outcome == "passed" else None
                if number is None:
                    continue
                changes = changed_inputs(store.inputs(number), now)
                changed = {name if kind == "instruction" else f"{kind}/{name}" for _, kind, name in changes}
                if changed := changed & names.keys():
                    return changed
    return set()


def _counted(outcomes: Iterable[Outcome]) -> str:
    counts = Counter(outcome.noticed for outcome in outcomes)
    return ", ".join(f"{counts[name]} {words}" for name, words in _WORDS.items())
