"""What the mails prove of the words by which the offline interpreter reads: the entries of the lexicon files.

    uv run --quiet python benchmarks/lexicon_entries.py [--show] [--redundant] [--prune]

Counts, for each list of instructions/lexicon, the entries and those that stand in no mail that is read by them: the
labelled mails of tests/interpreter/mails and the scenarios of evals/scenarios, but for what is left to a person or not
answered at all. The phrases that leave a mail to a person and the hints of replies are counted, too. `--redundant`
takes the entries of the lexicon away one after the other, those of the fewest mails first, and tells without how many
every mail is still read rightly and every scenario passes. `--show` names the entries, `--prune` writes the lexicon
without them. Regular expressions are left alone. The held-out mails prove nothing: they judge what is left.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.mocks import build_raw_email
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.runner import EvalRunner, run_without_event_loop
from guarantee_email_agent.instructions.hand_over_lexicon import EXCEPTION_ELEMENT, REASON_ELEMENT
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.lexicon import (
    ABOUT_ELEMENT,
    EVIDENCE_ELEMENTS,
    FUNCTION_WORDS_ELEMENT,
    PATTERN_ELEMENTS,
    Lexicon,
    parse_lexicon,
)
from guarantee_email_agent.instructions.lexicon_files import LexiconFiles
from guarantee_email_agent.instructions.markup import Element, parse_elements
from guarantee_email_agent.instructions.phrases import (
    PhraseMatcher,
    TokenizedText,
    parse_phrase,
    tokenize,
)
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.interpreter.serial_numbers import canonical_serial_number
from guarantee_email_agent.llm.port import ToolUseBlock
from guarantee_email_agent.llm.prompts import triage_request
from guarantee_email_agent.utils.errors import InstructionError

ROOT = Path(__file__).resolve().parents[1]
INSTRUCTIONS = ROOT / "instructions"
SUITE = ROOT / "evals" / "scenarios"
LABELLED_MAILS = ROOT / "tests" / "interpreter" / "mails"
_WIDTH = 120
_ELEMENT = re.compile(r"^<([a-z-]+)([^>]*)>\n(.*?)^</\1>\n", re.MULTILINE | re.DOTALL)
_HAND_OVER = re.compile(rf"^<({REASON_ELEMENT}|{EXCEPTION_ELEMENT})([^>]*)>\n(.*?)^</\1>\n", re.MULTILINE | re.DOTALL)
_HINTS = re.compile(r'(?<=\s)hints="([^"]*)"')
_SECTION = re.compile(r"^## [^\n]*\n(?:(?!## ).*\n)*", re.MULTILINE)
_EMPTY_ELEMENT = re.compile(r"(?:^[^\n<#][^\n]*\n)*\n?^<([a-z-]+)[^>]*>\n</\1>\n\n?", re.MULTILINE)
_WEIGHTED = frozenset((ABOUT_ELEMENT, *EVIDENCE_ELEMENTS))

Files = Sequence[tuple[str, str]]
"""(path, text) pairs of the lexicon."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A phrase or word of a list. path, line: where it stands. weight: empty where the list has none."""

    path: str
    line: int
    element: str
    topic: str
    weight: str
    text: str

    @property
    def place(self) -> str:
        return f"{Path(self.path).name}:{self.line} <{self.list_name}>"

    @property
    def list_name(self) -> str:
        return f'{self.element} topic="{self.topic}"' if self.topic else self.element


@dataclass(frozen=True, slots=True)
class Mail:
    """A mail with what is expected of its reading: a label, or the scenario that it stands in."""

    email: Email
    words: TokenizedText
    label: dict[str, Any] | None = None
    scenario: EvalTestCase | None = None
    is_read: bool = True
    """Whether the lexicon decides anything: a mail that is left to a person for its words is not read further."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--redundant", action="store_true")
    parser.add_argument("--prune", action="store_true")
    options = parser.parse_args()
    mails = [*labelled_mails(), *suite_mails()]
    read = [mail for mail in mails if mail.is_read]
    files = LexiconFiles(INSTRUCTIONS / "lexicon").read()
    entries = lexicon_entries(files)
    held = mails_by_entry(entries, read)
    gone = [entry for entry, found in zip(entries, held, strict=True) if not found]
    _print_counts(f"The lexicon, in {len(read)} mails that are read by it", entries, gone, show=options.show)
    if options.redundant:
        proof = Proof(read)
        print(f"Read rightly before: {proof.rightly_read(files)} of {len(read)}")
        more = find_redundant(without_entries(files, gone), proof, read)
        _print_counts("Without which every mail is read as before", entries, more, show=options.show)
        gone += more
        print(f"Read rightly after: {proof.rightly_read(without_entries(files, gone))} of {len(read)}")
    others = [*hand_over_entries(), *hint_entries()]
    missing = [entry for entry, found in zip(others, mails_by_entry(others, mails), strict=True) if not found]
    _print_counts(f"Reasons for a person, and hints, in {len(mails)} mails", others, missing, show=options.show)
    if options.prune:
        _write(files, without_entries(files, gone))
        paths = dict.fromkeys(entry.path for entry in missing)
        scenarios = [(path, Path(path).read_text(encoding="utf-8")) for path in paths]
        _write(scenarios, [(path, without_phrases(text, missing)) for path, text in scenarios])


def _print_counts(title: str, entries: Sequence[Entry], gone: Collection[Entry], *, show: bool) -> None:
    print(f"{title}: {len(gone)} of {len(entries)} entries")
    all_counts, counts = (Counter(each.list_name for each in group) for group in (entries, gone))
    for name, count in counts.most_common():
        print(f"  {name:32}{count:6} of {all_counts[name]:5}")
    for entry in gone if show else ():
        print(f"  {entry.place} {entry.text}")


def _write(before: Files, after: Files) -> None:
    kept = dict(after)
    for path, text in before:
        if path not in kept:
            Path(path).unlink()
        elif kept[path] != text:
            Path(path).write_text(kept[path], encoding="utf-8")


def lexicon_entries(files: Files) -> list[Entry]:
    """All but the regular expressions and the words that tell a language, in their order."""
    return [
        Entry(path, line, element.name, element.attributes.get("topic", ""), weight, text)
        for path, content in files
        for element in parse_elements(content)
        if element.name not in (*PATTERN_ELEMENTS, FUNCTION_WORDS_ELEMENT)
        for line, source in element.numbered_lines()
        for weight, texts in [_weight_and_entries(element.name, source)]
        for text in texts
    ]


def _weight_and_entries(element: str, line: str) -> tuple[str, list[str]]:
    weight, colon, rest = line.partition(":") if element in _WEIGHTED else ("", "", line)
    return weight + colon, [stripped for text in rest.split(",") if (stripped := text.strip())]


def hand_over_entries() -> list[Entry]:
    """What leaves a mail to a person, and what only sounds like it; `a|b + c|d` is one entry."""
    path = INSTRUCTIONS / "scenarios" / "hand-over.md"
    return [
        Entry(
            str(path), line, element.name, element.attributes.get("reason", ""), "", " ".join(text.casefold().split())
        )
        for element in parse_elements(path.read_text(encoding="utf-8"))
        if element.name in (REASON_ELEMENT, EXCEPTION_ELEMENT)
        for line, source in element.numbered_lines()
        for text in source.split(",")
        if text.strip()
    ]


def hint_entries() -> list[Entry]:
    """The hints of the sentences that a reply may hold."""
    found = []
    for path in sorted((INSTRUCTIONS / "scenarios").glob("*.md")):
        waiting = list(parse_elements(path.read_text(encoding="utf-8")))
        while waiting:
            element: Element = waiting.pop(0)
            waiting[:0] = element.children
            found += [
                Entry(
                    str(path),
                    element.line,
                    element.name,
                    element.attributes["id"],
                    "",
                    " ".join(hint.casefold().split()),
                )
                for hint in element.attributes.get("hints", "").split(",")
                if hint.strip()
            ]
    return found


def mails_by_entry(entries: Sequence[Entry], mails: Sequence[Mail]) -> list[list[int]]:
    """For each entry the mails, by their index, in which it stands."""
    sides = [[[phrase.strip() for phrase in side.split("|")] for side in entry.text.split("+")] for entry in entries]
    phrases = {phrase for of_entry in sides for side in of_entry for phrase in side}
    matcher = PhraseMatcher(parse_phrase(phrase, phrase) for phrase in phrases)
    found_in = dict[str, set[int]]((phrase, set()) for phrase in phrases)
    for index, mail in enumerate(mails):
        for match in matcher.find(mail.words, shorter=True):
            found_in[match.payload].add(index)
    return [
        sorted(set.intersection(*(set[int]().union(*(found_in[phrase] for phrase in side)) for side in of_entry)))
        for of_entry in sides
    ]


def without_entries(files: Files, gone: Collection[Entry]) -> tuple[tuple[str, str], ...]:
    """The files in their layout; lists, sections and files of which nothing is left are gone as well."""
    kept = []
    for path, text in files:
        removed = {(entry.element, entry.topic, entry.weight, entry.text) for entry in gone if entry.path == path}
        if removed:
            text = _ELEMENT.sub(partial(_without, removed), text)
            text = _EMPTY_ELEMENT.sub("", text)
            text = _SECTION.sub(lambda section: section[0] if "\n<" in section[0] else "", text).rstrip("\n") + "\n"
        if parse_elements(text):
            kept.append((path, text))
    return tuple(kept)


def without_phrases(text: str, gone: Collection[Entry]) -> str:
    """A scenario's file in its layout, without phrases for a person, exceptions and hints of these words."""
    removed = {entry.text for entry in gone}

    def kept(entries: str) -> list[str]:
        words = ((entry, " ".join(unescape(entry).casefold().split())) for entry in entries.split(","))
        return [entry for entry, phrase in words if phrase not in removed]

    def lines_kept(match: re.Match[str]) -> str:
        lines = (", ".join(map(str.strip, kept(line))) for line in match[3].splitlines())
        return f"<{match[1]}{match[2]}>\n" + "".join(f"{line}\n" for line in lines if line) + f"</{match[1]}>\n"

    text = _HAND_OVER.sub(lines_kept, text)
    return _HINTS.sub(lambda match: f'hints="{",".join(kept(match[1])).lstrip()}"', text)


def _without(removed: set[tuple[str, str, str, str]], match: re.Match[str]) -> str:
    name, attributes, content = match.groups()
    topic = attributes.partition('"')[2].rstrip('"')
    if not any((name, topic) == each[:2] for each in removed):
        return match[0]
    by_weight: dict[str, list[str]] = {}
    for line in content.splitlines():
        weight, texts = _weight_and_entries(name, line)
        kept = [text for text in texts if (name, topic, weight, text) not in removed]
        by_weight.setdefault(weight, []).extend(kept)
    lines = (line for weight, texts in by_weight.items() for line in _wrapped(weight, texts))
    return f"<{name}{attributes}>\n{''.join(lines)}</{name}>\n"


def _wrapped(weight: str, entries: Iterable[str]) -> Iterator[str]:
    begin = f"{weight} " if weight else ""
    line = ""
    for entry in entries:
        if line and len(begin) + len(line) + 2 + len(entry) > _WIDTH:
            yield f"{begin}{line}\n"
            line = ""
        line += f", {entry}" if line else entry
    if line:
        yield f"{begin}{line}\n"


def labelled_mails() -> Iterator[Mail]:
    for path in sorted(LABELLED_MAILS.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            label = json.loads(line)
            raw = {
                "subject": label["subject"],
                "body": label["body"],
                "from": "c@example.com",
                "message_id": label["id"],
            }
            if label.get("html"):
                raw["headers"] = {"Content-Type": "text/html"}
            email = parse_email(raw)
            yield Mail(email, _words(email), label=label, is_read="topic" in label and not label.get("hand_over"))


def suite_mails() -> Iterator[Mail]:
    for case in EvalLoader().discover_test_cases(SUITE):
        email = parse_email(build_raw_email(case))
        is_read = case.expected_output.scenario_instruction_used not in ("hand-over", "no-reply")
        yield Mail(email, _words(email), scenario=case, is_read=is_read)


def _words(email: Email) -> TokenizedText:
    return tokenize("\n\n".join((email.subject, email.new_text, email.quoted_text, email.signature_text)))


class _EditedFiles(InstructionFiles):
    """A set of instruction files in memory."""

    edited: Instructions

    def load(self) -> Instructions:
        return self.edited

    def lexicon(self) -> Lexicon:
        return self.edited.lexicon


class _Runner(EvalRunner):
    """Runs scenarios with a lexicon that no file holds."""

    def __init__(self) -> None:
        super().__init__(load_config(ROOT / "config.yaml"))
        self.shipped = self._instructions.load()
        self._instructions = self._files = _EditedFiles(INSTRUCTIONS / "main.md", INSTRUCTIONS / "scenarios")

    def read_by(self, lexicon: Lexicon) -> None:
        self._files.edited = replace(self.shipped, lexicon=lexicon)


class Proof:
    """Whether mails are read rightly by a lexicon. Those that are read wrongly by the shipped one prove nothing."""

    def __init__(self, mails: Sequence[Mail]) -> None:
        self._mails = mails
        self._runner = _Runner()
        self._requests = [triage_request(mail.email, self._runner.shipped) for mail in mails]

    def rightly_read(self, files: Files) -> int:
        lexicon = parse_lexicon(tuple(files))
        return sum(self.is_right(index, lexicon) for index in range(len(self._mails)))

    def is_right(self, index: int, lexicon: Lexicon) -> bool:
        mail = self._mails[index]
        if mail.scenario is not None:
            self._runner.read_by(lexicon)
            return run_without_event_loop(self._runner.run_test_case(mail.scenario)).passed
        assert mail.label is not None
        interpreter = InstructionInterpreter(lambda: lexicon)
        (block,) = run_without_event_loop(interpreter.create(**self._requests[index])).content
        assert isinstance(block, ToolUseBlock)
        answer = block.input
        numbers, expected = (
            sorted(map(canonical_serial_number, each)) for each in (answer["serial_numbers"], mail.label["serials"])
        )
        # What numbers a mail about something else holds does not matter.
        is_same = numbers == expected or mail.label["topic"] == "other"
        return is_same and answer["topic"] in (mail.label["topic"], mail.label.get("also_right"))


def find_redundant(files: Files, proof: Proof, mails: Sequence[Mail]) -> list[Entry]:
    """The entries without all of which every mail is read as with them; those of the fewest mails are tried first."""
    entries = lexicon_entries(files)
    held = mails_by_entry(entries, mails)
    before = parse_lexicon(tuple(files))
    right = {index for index in range(len(mails)) if proof.is_right(index, before)}
    redundant: list[Entry] = []
    for position in sorted(range(len(entries)), key=lambda position: (len(held[position]), position)):
        less = without_entries(files, [entries[position]])
        try:
            lexicon = parse_lexicon(less)
        except InstructionError:
            continue  # the last of its list
        if all(proof.is_right(index, lexicon) for index in held[position] if index in right):
            files = less
            redundant.append(entries[position])
    return redundant


if __name__ == "__main__":
    main()
