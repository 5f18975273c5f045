"""The files of phrases: each phrase can be found in a mail, stands once, and means one thing."""

from pathlib import Path
from typing import get_args

import pytest

from guarantee_email_agent.email.phrases import MachineKey, PersonKey, QuotationKey, SenderKey, languages, read_language
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import normalize_text

LANGUAGES = languages()
PLAIN = (
    *get_args(QuotationKey),
    "subject words",
    "sentence words",
    "absence parts",
    "stems",
    "bounces",
    "subject endings",
    "receipt subjects",
)
# What can match nothing would match every mail.
PATTERNS = sorted({*get_args(SenderKey), *get_args(MachineKey), *get_args(PersonKey)} - set(PLAIN))


@pytest.mark.parametrize("code", LANGUAGES)
def test_each_phrase_is_written_as_a_mail_is_compared_with_it(code: str) -> None:
    for key in PLAIN:
        phrases = LANGUAGES[code].plain(key)
        assert all(phrases)
        assert [normalize_text(phrase.lower()) for phrase in phrases] == phrases
        assert len(phrases) == len(set(phrases)), key


@pytest.mark.parametrize("code", LANGUAGES)
def test_each_pattern_compiles_and_matches_no_empty_text(code: str) -> None:
    assert [key for key in PATTERNS if LANGUAGES[code].pattern(key).fullmatch("")] == []


@pytest.mark.parametrize("code", LANGUAGES)
def test_each_group_is_used(code: str) -> None:
    used = "".join(text for language in LANGUAGES.values() for text in language.phrases.values())
    assert [key for key in LANGUAGES[code].phrases if key.isupper() and f"{{{key}}}" not in used] == []


def test_a_line_break_is_a_bar_and_quotes_keep_blanks(tmp_path: Path) -> None:
    text = '# Klingon\n\nverbs: "a "|b\n  c|d\nITEM: x|y{SEP}z\npromises:\n  (?:one {ITEM}\n    two)\n  three\n'
    (tmp_path / "tlh.txt").write_text(text)
    language = read_language(str(tmp_path / "tlh.txt"), {"SEP": "-?"})
    assert language.plain("verbs") == ["a ", "b", "c", "d"]
    assert language.alternatives("promises") == "(?:one (?:x|y(?:-?)z)|two)|three"
    assert language.plain("stems") == []
    assert language.pattern("absences").search("anything") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("verb: a\n", "line 1: 'verb' is no key"),
        ("  a\n", "line 1: '  a' is no key"),
        ("verbs: a\n\nverbs: b\n", "line 3: 'verbs' is no key of phrases.py, or stands twice"),
        ("verbs:\nopenings: a\n", "write phrases behind 'verbs:'"),
        ("promises: a {ITEM}\n", "{ITEM} is named neither here nor in any.txt"),
        ("promises: a (b\n", "'promises' is no pattern"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_problem(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "xx.txt"
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        read_language(str(path)).pattern("promises")
    assert str(caught.value).startswith(f"xx.txt: {problem}")
