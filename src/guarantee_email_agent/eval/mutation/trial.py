"""Faults planted one at a time in a copy of the instruction files, and the suite run on each."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.agent_inputs import instruction_paths, lexicon_paths
from guarantee_email_agent.eval.capture.scenario_file import file_text, next_id
from guarantee_email_agent.eval.case_result import split_sentences
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.loader import EvalLoader, select_scenarios
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase
from guarantee_email_agent.eval.mutation.instruction_faults import PHRASE, Fault, distinct, instruction_faults
from guarantee_email_agent.eval.runner import EvalRunner, run_without_event_loop
from guarantee_email_agent.eval.scenario_validation import KnownNames
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.runlog.statistics import meets_threshold
from guarantee_email_agent.utils.errors import EvalError, InstructionError
from guarantee_email_agent.utils.text import has_phrase

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
        named = self._loader.scenario_files(options.directory)
        named = select_scenarios(named, options.only, options.directory) if options.only else named
        self.entries = list(self._loader.iter_entries(named))
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
                is_other = good.actual_output["scenario_used"] != stem, language not in ("", good.language)
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
    return {name: value for name, value in result.actual_output.items() if name != "processing_time_ms"}


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
