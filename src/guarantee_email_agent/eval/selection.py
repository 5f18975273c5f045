"""Which scenarios of a suite run: those whose id, file or category somebody named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.instructions.hand_over_lexicon import LANGUAGE
from guarantee_email_agent.reading.language import read_language
from guarantee_email_agent.utils.errors import EvalError
from guarantee_email_agent.utils.text import printable


def select_scenarios(
    files: Sequence[str], patterns: Sequence[str], directory: Path, *, none_is_fine: bool = False
) -> list[str]:
    """Those of a suite's files that any pattern matches, in their order.

    patterns: globs over scenario ids, file names with or without `.yaml`, paths, and categories (`hand-over`).
    Raises EvalError(code="eval_nothing_selected") where one of them matches nothing, unless none_is_fine.
    """
    names = {file: list(_names(file)) for file in files}
    selected: set[str] = set()
    for pattern in patterns:
        if os.path.dirname(pattern):
            wanted = os.path.abspath(pattern), os.path.abspath(directory / pattern)
            matching = [file for file in files if any(fnmatchcase(os.path.abspath(file), each) for each in wanted)]
        else:
            matching = [file for file in files if any(fnmatchcase(name, pattern) for name in names[file])]
        if not matching and not none_is_fine:
            raise _nothing_selected(pattern, names, directory)
        selected.update(matching)
    return [file for file in files if file in selected]


def left_for_language(directory: Path, language: str) -> Iterator[str]:
    """The ids of scenarios with a mail in this language that is to go to a person, since no reply is in it."""
    loader = EvalLoader()
    files = (file for file in loader.scenario_files(directory) if LANGUAGE.encode() in Path(file).read_bytes())
    for entry in loader.iter_entries(files):
        if isinstance(entry, EvalTestCase) and entry.expected_output.hand_over_reason == LANGUAGE:
            email = entry.input.email
            if read_language(f"{email.subject}\n\n{email.body}").code == language:
                yield entry.scenario_id


def _names(file: str) -> Iterator[str]:
    name = os.path.basename(file)
    yield name
    stem = name.rpartition(".")[0]  # which is the id
    yield stem
    yield stem.rpartition("_")[0].replace("_", "-")  # which is the category


def _nothing_selected(pattern: str, names: dict[str, list[str]], directory: Path) -> EvalError:
    folder = printable(str(directory))
    if os.path.dirname(pattern) and os.path.exists(pattern):
        remedy = f"; it is no scenario file of {folder}. Name its folder with --eval-dir"
    else:
        word = os.path.basename(pattern)
        choices = dict.fromkeys(name for each in names.values() for name in reversed(each))
        remedy = suggestion(word.removesuffix(".yaml"), choices) or f"; {folder} lists what there is"
    problem = f"--only {printable(pattern)} matches none of the {len(names)} scenarios in {folder}{remedy}"
    return EvalError(problem, "eval_nothing_selected", {"pattern": pattern})
