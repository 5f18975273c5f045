"""How far a model that answers rubrics agrees with people: measured on cases by which nobody tuned a question.

A question and a model belong together: where either is another, nothing is known.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from guarantee_email_agent.files.report_files import as_json, write_report
from guarantee_email_agent.files.text_file import InputFileError, read_text
from guarantee_email_agent.runlog.statistics import threshold_fraction, upper_bound
from guarantee_email_agent.runlog.suite_manifest import CALIBRATION_FILE, calibration_file, refuse_drawn
from guarantee_email_agent.utils.errors import EXIT_EVALUATION, EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.terminal import Terminal, pluralize
from guarantee_email_agent.utils.text import and_more, printable, truncate

if TYPE_CHECKING:
    from guarantee_email_agent.runlog.records import Run
    from guarantee_email_agent.runlog.run_reader import RunStore

SCHEMA_VERSION: Final = 1
LABELS: Final = ("pass", "fail")
_COLUMNS: Final = ("id", "question", "label")
_ALPHA: Final = 0.05
_MAX_BYTES: Final = 10_000_000
_MAX_NAMES: Final = 20
_UNWRITABLE: Final = "rubric_calibration_unwritable"


@dataclass(frozen=True, slots=True)
class Calibration:
    """passes, fails: with how many of those that people let pass, and let fail, the model agrees, and of how many.

    threshold: percent that both lower bounds have to reach for the question to gate; None: it never does.
    """

    question: str
    model: str
    passes: tuple[int, int]
    fails: tuple[int, int]
    threshold: float | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """The shares that it agrees with at least, 95 % sure of each (Clopper–Pearson, one-sided)."""
        lowest = [1 - upper_bound(total - agreed, total, _ALPHA) for agreed, total in (self.passes, self.fails)]
        return lowest[0], lowest[1]

    @property
    def gates(self) -> bool:
        return self.threshold is not None and min(self.bounds) >= threshold_fraction(self.threshold)


def calibrations_of(folder: Path) -> list[Calibration]:
    """Those of the nearest file, in the folder or in one that it lies in. Raises ConfigurationError for a bad file."""
    file = calibration_file(folder)
    return [] if file is None else _read(file)


def _read(file: Path) -> list[Calibration]:
    try:
        rows = json.loads(read_text(file, _MAX_BYTES))["rubrics"]
        found = [Calibration(**{**row, "passes": tuple(row["passes"]), "fails": tuple(row["fails"])}) for row in rows]
        for each in found:
            _ = each.gates  # fails where its numbers make no sense
    except (InputFileError, ValueError, TypeError, LookupError, RecursionError):
        problem = f"{printable(str(file))}: this is no calibration of rubrics. Remove it, and run 'judge calibrate'"
        raise ConfigurationError(problem, "rubric_calibration_invalid") from None
    return found


class _Pair(NamedTuple):
    """What people and the model say of a case."""

    case: str
    label: str
    answer: str

    @property
    def agrees(self) -> bool:
        return self.label == self.answer

    @property
    def is_held_out(self) -> bool:
        """Half of the cases, the same ones in every run and on every machine."""
        return hashlib.sha256(self.case.encode("utf-8", "surrogatepass")).digest()[0] % 2 == 1


def calibrate(labels: Path, store: RunStore, run: Run, threshold: float | None, terminal: Terminal) -> int:
    """Hold the labels of people against the answers of a run, and write the outcome where runs find it.

    Where there is no file of labels, one to be filled in is written. The exit code: 4 where a question does not reach
    the threshold. Raises ConfigurationError for a run without answers, and for labels that cannot be used.
    """
    answers, folder = _answers_of(store, run)
    if not labels.exists():
        write_report(labels, _sheet(answers), _UNWRITABLE)
        todo = f"Fill in {' or '.join(LABELS)} as label, by the answers in 'show' or 'view', and run this again"
        terminal.line(printable(f"Written: {labels}. {todo}"))
        terminal.flush()
        return EXIT_SUCCESS
    refuse_drawn(folder, "Copy its scenarios elsewhere, and calibrate there")
    pairs = _pairs(labels, answers)
    found = []
    for (question, model), of_question in sorted(pairs.items()):
        held_out = [pair for pair in of_question if pair.is_held_out]
        counts = [_agreement(held_out, label) for label in LABELS]
        found.append(Calibration(question, model, counts[0], counts[1], threshold))
        _print(found[-1], [pair for pair in of_question if not pair.is_held_out], terminal)
    file = folder / CALIBRATION_FILE
    kept = [each for each in _read(file) if (each.question, each.model) not in pairs] if file.is_file() else []
    rows = [asdict(each) for each in (*kept, *found)]
    write_report(file, as_json({"schema_version": SCHEMA_VERSION, "rubrics": rows}), _UNWRITABLE)
    terminal.line(printable(f"Written: {file}"))
    terminal.flush()
    return EXIT_SUCCESS if threshold is None or all(each.gates for each in found) else EXIT_EVALUATION


def _answers_of(store: RunStore, run: Run) -> tuple[dict[tuple[str, str], tuple[str, str]], Path]:
    """Model and answer by case and question, and the folder that has all cases. Of repetitions the first counts."""
    answers: dict[tuple[str, str], tuple[str, str]] = {}
    folders: set[str] = set()
    for case in store.cases(run, ("judgement",)):
        first = case.runs[0]
        for row in first.rubric:
            if row["model"] and first.repetition == 1:
                answers[first.name, row["question"]] = row["model"], row["answer"]
                folders.add(os.path.dirname(os.path.abspath(first.file)))
    if not answers:
        problem = f"judge: no model has answered a rubric in run {run.id}. Run it with --llm live, record or replay"
        raise ConfigurationError(problem, "rubric_no_answers")
    folder = Path(os.path.commonpath(folders))
    if not folder.is_dir():
        problem = f"judge: {folder}, where the cases of run {run.id} lay, is no folder. Call it where the run began"
        raise ConfigurationError(printable(problem), "rubric_no_folder")
    return answers, folder


def _sheet(answers: Iterable[tuple[str, str]]) -> bytes:
    content = io.StringIO(newline="")
    csv.writer(content).writerows([_COLUMNS, *((*key, "") for key in answers)])
    return content.getvalue().encode("utf-8-sig", "backslashreplace")  # without the mark Excel takes it for cp1252


def _pairs(labels: Path, answers: Mapping[tuple[str, str], tuple[str, str]]) -> dict[tuple[str, str], list[_Pair]]:
    """By question and model."""
    pairs = defaultdict[tuple[str, str], list[_Pair]](list)
    seen: set[tuple[str, str]] = set()
    for line, row in _rows(labels):
        key, label = (row["id"], row["question"]), row["label"].strip().lower()
        if not label:
            continue
        problem = None
        if label not in LABELS:
            problem = f"the label is {truncate(label, 40)!r}. Write {' or '.join(LABELS)}, or nothing"
        elif key in seen:
            problem = "the same case and question have a label above. Keep one"
        elif key not in answers:
            problem = "the run has no answer to this question of this case. Correct it, or name the run"
        if problem is not None:
            raise _bad_labels(labels, problem, line)
        seen.add(key)
        model, answer = answers[key]
        pairs[key[1], model].append(_Pair(key[0], label, answer))
    if not pairs:
        raise _bad_labels(labels, f"nothing is labelled yet. Write {' or '.join(LABELS)} as label")
    return pairs


def _rows(labels: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Each with its line."""
    try:
        text = read_text(labels, _MAX_BYTES)
        separator = max(",;\t", key=text.partition("\n")[0].count)  # as spreadsheets in many countries write
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator)
        if not set(_COLUMNS) <= set(reader.fieldnames or ()):
            raise _bad_labels(labels, f"columns are missing. It needs {', '.join(_COLUMNS)}")
        for row in reader:
            yield reader.line_num, {name: row[name] or "" for name in _COLUMNS}
    except InputFileError as error:
        raise _bad_labels(labels, error.message) from None
    except csv.Error as error:
        raise _bad_labels(labels, f"this is no CSV ({error})") from None


def _bad_labels(labels: Path, problem: str, line: int | None = None) -> ConfigurationError:
    place = f"{labels}" if line is None else f"{labels}:{line}"
    return ConfigurationError(printable(f"{place}: {problem}"), "rubric_labels_invalid")


def _agreement(pairs: Iterable[_Pair], label: str) -> tuple[int, int]:
    agrees = [pair.agrees for pair in pairs if pair.label == label]
    return sum(agrees), len(agrees)


def _print(found: Calibration, to_tune_by: Sequence[_Pair], terminal: Terminal) -> None:
    terminal.line(printable(f"{found.question} ({found.model})"))
    shares: Any = zip(LABELS, (found.passes, found.fails), found.bounds, strict=True)
    for label, (agreed, total), bound in shares:
        lowest = math.floor(1000 * bound) / 10  # never more than is known
        terminal.line(f"    says {label} where people do: {agreed} of {total}, so at least {lowest:g}% (95% sure)")
    outcome = "no --threshold is set"
    if found.threshold is not None:
        outcome = f"at least {found.threshold:g}% of both {'is' if found.gates else 'is not'} proven"
    terminal.line(f"    {'gates' if found.gates else 'gates nothing'}: {outcome}")
    if others := [f"{pair.case} ({pair.label}, not {pair.answer})" for pair in to_tune_by if not pair.agrees]:
        of = pluralize(len(to_tune_by), "other label")
        terminal.line(printable(f"    to reword it by, of {of}: {and_more(others, _MAX_NAMES)}"))
