"""That the lexicon holds what a mail proves, and that `benchmarks/lexicon_entries.py` finds what none does."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from shipped_instructions import SHIPPED

from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.instructions.lexicon import PATTERN_ELEMENTS, REQUIRED_ELEMENTS
from guarantee_email_agent.instructions.lexicon_files import LexiconFiles
from guarantee_email_agent.instructions.phrases import tokenize

ROOT = Path(__file__).parents[1]
LAYOUT = """# Language

For people.

## Labels

Stand before a number.

<serial-labels>
number, serial
</serial-labels>

Stand before another.

<other-labels>
invoice
</other-labels>

## Topics

Of orders.

<about topic="other">
4: order
2: parcel, shop
</about>
"""


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("lexicon_entries", ROOT / "benchmarks" / "lexicon_entries.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["lexicon_entries"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["lexicon_entries"]


def mail(tool: ModuleType, body: str, label: dict[str, Any] | None = None) -> Any:
    return tool.Mail(parse_email({"subject": "", "body": body, "from": "c@example.com"}), tokenize(body), label=label)


def without(tool: ModuleType, text: str, *gone: str) -> list[str]:
    """What is left of a file, if anything is."""
    files = [("xx.md", text)]
    kept = tool.without_entries(files, [entry for entry in tool.lexicon_entries(files) if entry.text in gone])
    return [content for _, content in kept]


@pytest.fixture(scope="module")
def mails(tool: ModuleType) -> list[Any]:
    return [*tool.labelled_mails(), *tool.suite_mails()]


def unproved(tool: ModuleType, entries: list[Any], mails: list[Any]) -> list[str]:
    held = tool.mails_by_entry(entries, mails)
    return [f"{entry.place} {entry.text}" for entry, found in zip(entries, held, strict=True) if not found]


REMEDY = "label a mail that holds it, or take the entry out: benchmarks/lexicon_entries.py --prune"


def test_every_entry_of_the_lexicon_stands_in_a_labelled_mail_or_a_scenario(tool: ModuleType, mails: list[Any]) -> None:
    entries = tool.lexicon_entries(LexiconFiles(SHIPPED / "lexicon").read())
    assert unproved(tool, entries, [mail for mail in mails if mail.is_read]) == [], REMEDY


def test_every_phrase_for_a_person_every_exception_and_every_hint_stands_in_one(
    tool: ModuleType, mails: list[Any]
) -> None:
    assert unproved(tool, [*tool.hand_over_entries(), *tool.hint_entries()], mails) == [], REMEDY


def test_an_entry_of_two_sides_needs_a_word_of_each(tool: ModuleType) -> None:
    entry = tool.Entry("hand-over.md", 1, "hand-over", "injury", "", "burned|cut + my hand|my finger*")
    mails = [mail(tool, body) for body in ("I cut my fingers", "I cut the cable", "my hand")]
    assert tool.mails_by_entry([entry], mails) == [[0]]


def test_a_file_keeps_its_layout_without_an_entry(tool: ModuleType) -> None:
    assert without(tool, LAYOUT, "parcel") == [LAYOUT.replace("parcel, ", "")]


def test_a_scenario_keeps_its_layout_without_a_phrase_an_exception_and_a_hint(tool: ModuleType) -> None:
    text = """---
name: x
---
<hand-over reason="injury" description="somebody, hurt">
hurt, a&amp;e
cut + my hand|my arm

fell
</hand-over>
<optional id="a" use="hurt, fell"
    hints="photo, how
    long, fell">Hurt, fell.</optional>
"""
    gone = [tool.Entry("x.md", 1, "", "", "", phrase) for phrase in ("a&e", "fell", "how long")]
    assert tool.without_phrases(text, gone) == text.replace(", a&amp;e", "").replace("\n\nfell", "").replace(
        ', how\n    long, fell"', '"'
    )


def test_a_weight_goes_with_its_last_entry(tool: ModuleType) -> None:
    assert without(tool, LAYOUT, "order") == [LAYOUT.replace("4: order\n", "")]


def test_a_list_goes_with_its_last_entry_and_its_explanation(tool: ModuleType) -> None:
    gone = "Stand before another.\n\n<other-labels>\ninvoice\n</other-labels>\n\n"
    assert without(tool, LAYOUT, "invoice") == [LAYOUT.replace(gone, "")]


def test_a_section_goes_with_its_last_list(tool: ModuleType) -> None:
    assert without(tool, LAYOUT, "order", "parcel", "shop") == [LAYOUT[: LAYOUT.index("\n## Topics")]]


def test_a_file_goes_with_its_last_entry(tool: ModuleType) -> None:
    assert without(tool, LAYOUT, *(entry.text for entry in tool.lexicon_entries([("xx.md", LAYOUT)]))) == []


def test_without_an_entry_that_nothing_else_makes_up_for_a_mail_is_misread(tool: ModuleType) -> None:
    lists = "\n".join(
        f"<{name}>\n{'3: ' if name in ('faults', 'unsolicited') else ''}zzz\n</{name}>"
        for name in REQUIRED_ELEMENTS
        if name not in (*PATTERN_ELEMENTS, "about")
    )
    patterns = "\n".join(f"<{name}>\nX[0-9]{{9}}\n</{name}>" for name in PATTERN_ELEMENTS)
    about = '<about topic="warranty">\n3: fan, warranty, guarantee\n</about>'
    mails = [
        mail(tool, "Fan, warranty?", {"topic": "warranty", "serials": []}),
        mail(tool, "Guarantee?", {"topic": "warranty", "serials": []}),
    ]
    redundant = tool.find_redundant([("xx.md", f"{lists}\n{patterns}\n{about}\n")], tool.Proof(mails), mails)
    assert [entry.text for entry in redundant] == ["fan"]
