"""The tables of phrases: each can be found in a mail, and stands once."""

from __future__ import annotations

import pytest

from guarantee_email_agent.email.normalize import normalize_text
from guarantee_email_agent.email.parsing.quotation_phrases import LANGUAGES, phrases_of


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_phrase_is_written_as_a_mail_is_compared_with_it(language: str) -> None:
    for phrases in LANGUAGES[language].values():
        assert normalize_text(phrases.lower()) == phrases
        assert all(phrases.split("|"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_phrase_stands_once_in_its_language(language: str) -> None:
    for usage, phrases in LANGUAGES[language].items():
        found = phrases.split("|")
        assert len(found) == len(set(found)), usage


def test_the_phrases_of_all_languages_stand_together_once() -> None:
    dates = phrases_of("date")
    assert {"sent", "gesendet", "wysłano"} < set(dates)
    assert dates.count("data") == 1


def test_a_header_line_means_the_same_in_every_language() -> None:
    uses: dict[str, set[str]] = {}
    for usage in ("from", "date", "to", "subject"):
        for label in phrases_of(usage):
            uses.setdefault(label, set()).add(usage)
    assert [label for label, found in uses.items() if len(found) > 1] == []
