"""`eval --mutate`: plant faults one at a time in a copy of the instruction files, and say what notices them."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.agent_inputs import instruction_paths, lexicon_paths
from guarantee_email_agent.eval.capture.scenario_file import file_text, next_id
from guarantee_email_agent.eval.case_result import as_case, split_sentences, stored_source
from guarantee_email_agent.eval.eval_recorder import inputs_of, suite_key
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.loader import EvalLoader, select_scenarios
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase
from guarantee_email_agent.eval.mutation.instruction_faults import (
    DANGEROUS,
    PHRASE,
    REWORDING,
    Fault,
    distinct,
    instruction_faults,
)
from guarantee_email_agent.eval.runner import EvalRunner, run_without_event_loop
from guarantee_email_agent.eval.scenario_validation import KnownNames
from guarantee_email_agent.files.report_files import as_json, write_whole
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.records import Input, changed_inputs
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.statistics import meets_threshold
from guarantee_email_agent.runlog.suite_manifest import DEVELOPMENT, read_manifest
from guarantee_email_agent.runlog.views.report import relative_to
from guarantee_email_agent.runlog.views.word_diff import diff_words, paint_changes
from guarantee_email_agent.utils.errors import (
    EXIT_EVALUATION,
    EXIT_INTERRUPTED,
    EXIT_SUCCESS,
    ConfigurationError,
    EvalError,
    InstructionError,
)
from guarantee_email_agent.utils.terminal import Terminal, TextStream, pluralize, warn_on_stderr
from guarantee_email_agent.utils.text import and_more, has_phrase

Noticed = Literal["refused", "gate", "whole", "unnoticed"]
"""On loading; by a gate that closes; by a suite of which everything has to pass; by nothing."""

_HINTED: Final = re.compile(r'<(optional|sentence)\b[^>]*\bhints="([^"]+)"[^>]*>.*?</\1>', re.DOTALL)
_MAX_MAILS: Final = 12
_MAX_PHRASES: Final = 3


class Outcome(NamedTuple):
    """failed: the names of scenarios that fail by the fault, until the gate is closed. shown_by: the file of the first
    one that passes although its mail is answered otherwise.
    """

    noticed: Noticed
    failed: Sequence[str] = ()
    shown_by: str | None = None


class Example(NamedTuple):
    """A mail that is answered otherwise. added: what was written into it beside the scenario's own words.

    reply: with the fault; None for none. scenario: a file that passes without the fault alone; None where no scenario
    can tell the two apart.
    """

    name: str
    added: str
    reply: str | None
    scenario: str | None


def in_order(faults: Sequence[Fault], seed: int, ranks: Mapping[str, int]) -> list[Fault]:
    """Lower ranks first, and of one rank the files by turns, in each of them the kinds by turns; the rest is drawn."""

    def draw(*parts: str) -> bytes:
        return hashlib.sha256("\0".join((str(seed), *parts)).encode()).digest()

    turns: Counter[tuple[str, ...]] = Counter()
    of_kind = []
    for fault in sorted(faults, key=lambda fault: draw(fault.key)):
        group = (fault.file, fault.operator)
        of_kind.append((turns[group], draw(*group), fault))
        turns[group] += 1
    of_file = []
    for _, _, fault in sorted(of_kind, key=lambda each: each[:2]):
        of_file.append((ranks[fault.file], turns[(fault.file,)], draw(fault.file), fault))
        turns[(fault.file,)] += 1
    return [fault for *_, fault in sorted(of_file, key=lambda each: each[:3])]


class Trial:
    """The suite as it is without any fault, and what becomes of it with one."""

    def __init__(self, config: Config, options: EvalOptions, folder: Path) -> None:
        """folder: of the copy. Raises InstructionError and EvalError where the suite cannot run."""
        self._options = options
        self._instructions = EvalRunner(config).check_instructions()
        self.paths = {
            name if kind == "instruction" else f"{kind}/{name}": path
            for (kind, name), path in (instruction_paths(config) | lexicon_paths(config)).items()
        }
        self._texts = {name: Path(path).read_text(encoding="utf-8") for name, path in self.paths.items()}
        good, self._copy = (self._copied(config, folder / part) for part in ("good", "planted"))
        self._folder = folder / "planted"
        self._good = EvalRunner(good)
        self._loader = EvalLoader(known=KnownNames.of(self._instructions))
        files = select_scenarios(self._loader.scenario_files(options.directory), options.only, options.directory)
        self.entries = list(self._loader.iter_entries(files))
        self.results = [run_without_event_loop(self._good.run_entry(entry)) for entry in self.entries]
        self._new_ids: Counter[str] = Counter()

    def is_open(self, failed: Sequence[EvalResult]) -> bool:
        """Whether the gate is passed where nothing else fails."""
        passed, must_failed = len(self.entries) - len(failed), any(result.test_case.must for result in failed)
        return not must_failed and meets_threshold(passed, len(self.entries), self._options.threshold)

    def faults(self, seed: int, changed: Collection[str]) -> list[Fault]:
        """All that can be planted, in the order in which they are: in `changed` first, and in word lists last."""
        found: list[Fault] = []
        for name in self.paths:
            text, language = self._texts[name], self._instructions.default_language
            found += instruction_faults(name, text, language, is_lexicon=name.startswith("lexicon/"))
        ranks = {name: 0 if name in changed else 2 if name.startswith("lexicon/") else 1 for name in self.paths}
        return in_order(distinct(found), seed, ranks)

    def try_fault(self, fault: Fault) -> Outcome:
        """Ends as soon as the gate cannot be passed any more."""
        shown_by = None
        failed: list[EvalResult] = [result for result in self.results if not result.passed]
        known = {result.name for result in failed}
        with self._planted(fault) as runner:
            if runner is None:
                return Outcome("refused")
            for entry, good in zip(self.entries, self.results, strict=True):
                result = run_without_event_loop(runner.run_entry(entry))
                if not result.passed and good.passed:
                    failed.append(result)
                    if not self.is_open(failed):
                        break
                elif shown_by is None and _told(result) != _told(good):
                    shown_by = entry.file
        names = [result.name for result in failed if result.name not in known]
        if not names:
            return Outcome("unnoticed", (), shown_by)
        return Outcome("whole" if self.is_open(failed) else "gate", names)

    def find_example(self, fault: Fault, shown_by: str | None) -> Example | None:
        """Of an unnoticed fault. shown_by: as its outcome has it; None to look for a mail with the fault's phrases."""
        with self._planted(fault) as runner:
            assert runner is not None
            for case, added in self._mails(fault, shown_by):
                documents = load_documents(case.text or "")
                data = {key: value for each in documents if isinstance(each, dict) for key, value in each.items()}
                if added:
                    data["input"]["email"]["body"] += f"\n\n{added}."
                good, bad = self._run(data, case, self._good), self._run(data, case, runner)
                if good is None or bad is None or _told(good) == _told(bad):
                    continue
                name, reply = good.name, bad.actual_output["response_body"]
                prefix, _, number = next_id(self._options.directory, case.category).rpartition("_")
                data = {key: value for key, value in data.items() if key not in ("must", "test")} | {
                    "scenario_id": f"{prefix}_{int(number) + self._new_ids[prefix]:03d}",
                    "description": f"Fails on '{fault.operator}' in {fault.file}. Say here what it guards",
                    "review": True,
                    "expected_output": _expected(good.actual_output, bad.actual_output),
                }
                good, bad = self._run(data, case, self._good), self._run(data, case, runner)
                if good is None or bad is None or not good.passed or bad.passed:
                    return Example(name, added, reply, None)
                self._new_ids[prefix] += 1
                return Example(name, added, reply, file_text(data, None))
        return None

    def _mails(self, fault: Fault, shown_by: str | None) -> Iterator[tuple[EvalTestCase, str]]:
        """Scenarios, and what is to be written into the mail of each: likely ones first."""
        stem, _, language = Path(fault.file).stem.partition(".")
        mails: list[tuple[tuple[bool, bool], int, EvalTestCase]] = []
        for entry, good in zip(self.entries, self.results, strict=True):
            if isinstance(entry, EvalTestCase) and entry.file == shown_by:
                yield entry, ""
            elif isinstance(entry, EvalTestCase) and entry.input.email.raw is None and good.actual_output["email_sent"]:
                is_other = (
                    good.actual_output["scenario_used"] != stem,
                    language not in ("", as_case(good).shown.language),
                )
                mails.append((is_other, len(mails), entry))
        if shown_by is None:
            likely = [entry for *_, entry in sorted(mails)[:_MAX_MAILS]]
            yield from ((entry, words) for words in _phrases(fault, self._texts[fault.file]) for entry in likely)

    def _run(self, data: Mapping[str, Any], case: EvalTestCase, runner: EvalRunner) -> EvalResult | None:
        """Of a file beside that of `case`, which is not written; None where it would be refused."""
        path = Path(case.file or "").with_stem(data["scenario_id"])
        try:
            return run_without_event_loop(runner.run_entry(self._loader.validate_test_case(data, path)))
        except EvalError:
            return None

    def _copied(self, config: Config, folder: Path) -> Config:
        """A configuration with a copy of the files, which stays as it is whoever edits meanwhile."""
        for name, path in self.paths.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)
        main = folder / config.instructions.main.name
        files = replace(config.instructions, main=main, scenarios_dir=folder / "scenarios")
        return replace(config, instructions=files)

    @contextmanager
    def _planted(self, fault: Fault) -> Iterator[EvalRunner | None]:
        """A runner on the copy with the fault; None where it does not load."""
        path, good = self._folder / fault.file, self._texts[fault.file]
        path.write_text(fault.planted_in(good), encoding="utf-8")
        try:
            runner = EvalRunner(self._copy)
            try:
                runner.check_instructions()
            except InstructionError:
                yield None
            else:
                yield runner
        finally:
            path.write_text(good, encoding="utf-8")


def _told(result: EvalResult) -> Mapping[str, Any]:
    return {key: each for key, each in result.actual_output.items() if key not in ("processing_time_ms", "asks_back")}


def _expected(good: Mapping[str, Any], bad: Mapping[str, Any]) -> dict[str, Any]:
    """What came without the fault, as far as it is needed to tell the two apart."""
    expected = {name: good[name] for name in ("email_sent", "ticket_created")}
    expected["scenario_instruction_used"] = good["scenario_used"] or "none"
    before, after = (str(each["response_body"] or "") for each in (good, bad))
    for name, text, other in (("contains", before, after), ("excludes", after, before)):
        if sentences := [sentence for sentence in split_sentences(text) if not has_phrase(sentence, other)]:
            expected[f"response_body_{name}"] = sentences[:_MAX_PHRASES]
    if good["ticket_fields"] != bad["ticket_fields"]:
        expected["ticket_fields"] = good["ticket_fields"]
    if good["hand_over_reasons"]:
        expected["hand_over_reason"] = good["hand_over_reasons"][0]
    return expected


def _phrases(fault: Fault, text: str) -> list[str]:
    """By which a mail may come to the place of a fault: a phrase that is dropped, or the hints around it."""
    lists = [text[fault.start : fault.end]] if fault.operator == PHRASE else []
    if not lists:
        lists = [found[2] for found in _HINTED.finditer(text) if found.start() <= fault.start < found.end()]
    phrases = [phrase for each in lists for phrase in re.split(r"[,\n]", each) if phrase.strip()]
    words = (" ".join(part.split("|")[0].strip() for part in phrase.split("+")) for phrase in phrases)
    return [each.replace("*", "") for each in words][:_MAX_PHRASES]


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
