import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.instructions.phrases import (
    InvalidPhraseError,
    PhraseMatcher,
    fold,
    parse_phrase,
    read_phrase,
    tokenize,
)


def found(phrases: list[str], text: str) -> list[str]:
    return [
        hit.payload for hit in PhraseMatcher(parse_phrase(phrase, phrase) for phrase in phrases).find(tokenize(text))
    ]


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("serial no", "SERIAL NO 5"),
        ("serial no", "serial-no 5"),
        ("serial no", "Serial  No.: 5"),
        ("serial no", "serial\nno 5"),
        ("serial-no", "serial no"),
        ("numero de serie", "Número de série"),
        ("número de série", "NUMERO DE SERIE"),
        ("grusse", "Viele Grüße"),
        ("garanti*", "die Garantieverlängerung"),
        ("s/n", "my S/N is"),
        ("s/n", "S / N: 5"),
        ("doesn't work", "it DOESN'T work"),
        ("doesn't work", "it doesn’t work"),
        ("n° de serie", "N° de série"),
    ],
)
def test_finds_a_phrase_however_it_is_written(phrase: str, text: str) -> None:
    assert found([phrase], text) == [phrase]


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("serial no", "serial number"),
        ("serial no", "serial, no"),
        ("serial no", "serial\n\nno"),
        ("serial no", "serial      no"),
        ("serial no", "serial and no"),
        ("s/n", "s n"),
        ("s/n", "sn"),
        ("sn", "SN12345"),
        ("garanti", "Garantieverlängerung"),
        ("doesn't work", "doesn t work"),
    ],
)
def test_does_not_find_what_only_looks_alike(phrase: str, text: str) -> None:
    assert found([phrase], text) == []


def test_the_longest_phrase_wins_at_a_word() -> None:
    assert found(["serial", "serial number", "serial number*"], "serial numbers") == ["serial number*"]


@pytest.mark.parametrize(
    ("why", "phrases"),
    [
        ("would match far too much", ["a*", "ab*", "serial n*"]),
        ("Put a comma between phrases", ["photo|picture", "photo*; picture*"]),
        ("has no word", ["", "***", " - "]),
        (r"has a '\*' that is not read", ["wash*machine", "*lawyer*", "*broken drum", "door *"]),
    ],
)
def test_a_phrase_that_cannot_be_used_is_refused_with_the_reason(why: str, phrases: list[str]) -> None:
    for phrase in phrases:
        with pytest.raises(InvalidPhraseError, match=why):
            parse_phrase(phrase, None)


@pytest.mark.parametrize(
    ("text", "folded"),
    [("Größe", "grosse"), ("ŁÓDŹ", "lodz"), ("naïve", "naive"), ("Æsop", "aesop"), ("plain", "plain")],
)
def test_folding_drops_case_and_accents(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(st.text())
def test_words_stand_where_they_say(text: str) -> None:
    words = tokenize(text)

    for index, (start, end) in enumerate(zip(words.starts, words.ends, strict=True)):
        assert words.folded[index] == fold(text[start:end])
    rebuilt = "".join(
        words.gaps[index] + text[words.starts[index] : words.ends[index]] for index in range(len(words.folded))
    )
    assert text.startswith(rebuilt)


@given(st.text(max_size=40))
def test_any_phrase_is_usable_or_refused(phrase: str) -> None:
    try:
        index = PhraseMatcher([parse_phrase(phrase, True)])
    except InvalidPhraseError:
        return
    assert all(hit.payload for hit in index.find(tokenize(phrase)))


@given(st.lists(st.text("abcé*ßŁ -", min_size=1, max_size=14), max_size=6), st.text("abcé ßŁ-", max_size=60))
def test_phrases_that_are_cut_when_needed_are_found_where_all_others_are(phrases: list[str], text: str) -> None:
    usable = []
    for phrase in phrases:
        try:
            usable.append((parse_phrase(phrase, phrase), read_phrase(phrase, phrase)))
        except InvalidPhraseError:
            with pytest.raises(InvalidPhraseError):
                read_phrase(phrase, phrase)
    at_once, when_needed = (PhraseMatcher(each) for each in zip(*usable, strict=True)) if usable else ((), ())
    for words in (tokenize(text), tokenize(" ".join(phrases))) if usable else ():
        assert at_once.find(words, shorter=True) == when_needed.find(words, shorter=True)


@pytest.mark.parametrize(
    ("text", "found"), [("Nähmaschine", True), ("maschine", True), ("Maschinenöl", False), ("a machine", False)]
)
def test_a_star_before_a_word_stands_for_any_beginning(text: str, found: bool) -> None:
    assert bool(PhraseMatcher([parse_phrase("*maschine", None)]).find(tokenize(text))) is found
