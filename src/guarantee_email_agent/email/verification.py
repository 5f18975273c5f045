"""Verify what a model extracted against the mail itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from guarantee_email_agent.email.normalize import normalize_text
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.instructions.lexicon import LabelKind, Lexicon
from guarantee_email_agent.instructions.look_up import NumberFormat
from guarantee_email_agent.instructions.phrases import PhraseMatch, TokenizedText, tokenize
from guarantee_email_agent.interpreter.serial_numbers import (
    canonical_serial_number,
    extract_answer,
    extract_serial_numbers,
    mentions_serial_number,
)
from guarantee_email_agent.interpreter.whole_numbers import WholeNumber, find_whole_numbers

MAX_CANDIDATE_LENGTH = 60
MIN_LENGTH_WITHOUT_LABEL = 6  # KX200 is a model
MIN_DIGITS_WITHOUT_LABEL = 3
MAX_WORDS_OF_SENTENCE = 40
MAX_PARTS = 20

_PLACES = ("the new text", "the quoted text", "the signature")

_PLAUSIBLE = re.compile(r"(?=.{0,59}[0-9])[A-Z0-9](?:[A-Z0-9]|[-/._ ](?=[A-Z0-9])){1,58}")
# A reply repeats the number, perhaps to somebody whose address was forged: no status, and nothing that is a link.
_MAKES_A_CLAIM = re.compile(r"VALID|EXPIRE|[.][A-Z]{2,}(?:/|$)")
_DIGIT = re.compile(r"[0-9]")
_SENTENCE_END = re.compile(r"[?!;\n]|[.](?=\s)")
_BARE_DIGITS = re.compile(r"[1-9][0-9]{5,13}")
_CITY = re.compile(r"[ \t]{1,3}[^\W\d_a-z][^\W\d_]")
_OTHER_SHAPES = re.compile(
    r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"  # a date without separators
    r"|(?:0[1-9]|[12][0-9]|3[01])(?:0[1-9]|1[0-2])(?:19|20)[0-9]{2}"
    r"|1Z[0-9A-Z]{16}|[A-Z]{2}[0-9]{9}[A-Z]{2}"  # parcels: UPS; UPU S10
    r"|[A-Z]{2}[0-9]{2}[A-Z]{4}[0-9A-Z]{6,26}"  # an IBAN whose bank has a name
    r"|[A-Z]{1,2}[0-9][A-Z0-9]?[0-9][A-Z]{2}|[0-9]{4}[A-Z]{2}|[A-Z][0-9][A-Z][0-9][A-Z][0-9]"  # postcodes: GB, NL, CA
    r"|[-A-Z0-9._/]{1,60}[.][A-Z]{2,6}"  # a file or a domain
)
_POSTCODE = re.compile(
    r"(?:[ABDEFHILNPS]|AT|BE|CH|CZ|DE|DK|ES|FI|FIN|FR|HU|IT|NL|PL|PT|RO|SE|SK)-[0-9]{2,3}-?[0-9]{2,3}"
)


def verify_numbers(
    candidates: Sequence[str],
    email: Email,
    lexicon: Lexicon,
    number_format: NumberFormat | None = None,
    *,
    asked: bool = False,
) -> tuple[str, ...]:
    """The different numbers of a look-up that `candidates` point at, spelled as in the mail, upper case.

    number_format: how they look; None for serial numbers. asked: the mail answers a reply that asked for one, so that
    a lone number needs no label.
    """
    if number_format is None:
        return verify_serial_numbers(candidates, email, lexicon, asked=asked)
    from guarantee_email_agent.interpreter.look_up_numbers import find_given_numbers, number_key  # start-up

    wanted = set(map(number_key, candidates))
    for text in _tiers(email):
        given = find_given_numbers(tokenize(normalize_text(text)), number_format, lexicon)
        kept = {key: number for key, number in given.all(asked=asked).items() if key in wanted}
        if given.labelled and given.labelled.keys().isdisjoint(kept):
            return ()
        if kept:
            return tuple(number for number in (kept | given.labelled).values() if not _MAKES_A_CLAIM.search(number))
        asked = False
    return ()


def _tiers(email: Email) -> tuple[str, str, str]:
    """What was newly written (with a subject of its own), what was quoted, and the signature."""
    quoted = email.quoted_text
    if email.is_answer:
        return email.new_text, f"{email.subject}\n\n{quoted}", email.signature_text
    return f"{email.subject}\n\n{email.new_text}", quoted, email.signature_text


def verify_serial_numbers(
    candidates: Sequence[str], email: Email, lexicon: Lexicon, *, asked: bool = False
) -> tuple[str, ...]:
    """The different serial numbers that `candidates` point at, spelled as in the mail, upper case.

    A candidate counts where it is a whole number of the mail (`find_whole_numbers`) that no other label claims. Without
    a label of its own it needs a shape that phone numbers, dates, postcodes and the like do not have. Newly written
    text (and a subject of its own) counts before quoted text, and that before the signature. Where a text labels serial
    numbers, they count together: the others too where a candidate is one of them, else none.

    asked: the mail answers a reply that asked for a serial number, so that a lone number needs no label.
    """
    written = dict.fromkeys(
        spelling
        for candidate in candidates
        if len(candidate) <= MAX_CANDIDATE_LENGTH
        and _PLAUSIBLE.fullmatch(spelling := normalize_text(candidate).strip().upper())
    )
    if not written:
        return ()
    quoted = email.quoted_text
    may_answer = asked or bool(quoted)
    for text in _tiers(email):
        if not _DIGIT.search(text := normalize_text(text)):
            continue
        words = tokenize(text)
        may_answer = may_answer and (asked or mentions_serial_number(tokenize(quoted), lexicon))
        given, labelled = _numbers_given(words, lexicon, may_answer)
        kept: dict[str, str] = {}
        for candidate in written:
            if (key := canonical_serial_number(candidate)) in given:
                kept.setdefault(key, _spelling(given[key], words, candidate))
        if labelled and labelled.keys().isdisjoint(kept):
            return ()
        if kept:
            for key in labelled:
                kept.setdefault(key, given[key].text)
            return tuple(number for number in kept.values() if not _MAKES_A_CLAIM.search(number))
        may_answer = False
    return ()


def explain_dropped(
    numbers: Sequence[str], email: Email, lexicon: Lexicon, number_format: NumberFormat | None, *, asked: bool = False
) -> dict[str, str]:
    """The numbers of the mail that `verify_numbers` did not take, each with the reason in words.

    numbers: those that it took. The other arguments as there.
    """
    dropped: dict[str, str] = {}
    kept = set(map(canonical_serial_number, numbers))
    reason = None
    for place, text in zip(_PLACES, _tiers(email), strict=True):
        words = tokenize(normalize_text(text))
        found = find_whole_numbers(words, lexicon)
        why = _reasons(words, lexicon, number_format, asked)
        for number in found:
            shown = number.text or words.text[words.starts[number.first] : words.ends[number.end - 1]]
            if canonical_serial_number(shown) not in kept:
                dropped.setdefault(shown, reason or why(number))
        if reason is None and any(canonical_serial_number(number.text) in kept for number in found if number.text):
            reason = f"stands behind {place}, which gives a number already"
    return dropped


def _reasons(
    words: TokenizedText, lexicon: Lexicon, number_format: NumberFormat | None, asked: bool
) -> Callable[[WholeNumber], str]:
    """What says why a number of one text does not count."""
    labels = [label for label in lexicon.labels.find(words) if label.payload == "other"]
    if number_format is None:
        claimed = extract_serial_numbers(words, lexicon).other_words
        given, labelled = _numbers_given(words, lexicon, asked)

        def why(number: WholeNumber) -> str:
            key = canonical_serial_number(number.text)
            if not number.text:
                return "is no plain number, but part of a sum, a time or the like"
            if not claimed.isdisjoint(range(number.first, number.end)):
                return _behind(number, words, labels)
            if lexicon.never.fullmatch(number.text) or _OTHER_SHAPES.fullmatch(number.text):
                return "has the form of a date, an amount, a parcel, a post code or the like"
            if key not in given:
                return "has no label, and not the form of a serial number"
            return _not_taken(number, is_labelled=key in labelled, others_are=bool(labelled))

        return why
    from guarantee_email_agent.interpreter.look_up_numbers import find_given_numbers, number_key

    numbers = find_given_numbers(words, number_format, lexicon)

    def why_not(number: WholeNumber) -> str:
        key = number_key(number.text)
        if not number.text or not re.fullmatch(number_format.pattern, number.text, re.IGNORECASE):
            return f"does not fit the pattern of {number_format.name}"
        if key in numbers.bare:
            return "has no label, and no letter that tells what it is"
        if key not in numbers.labelled and key not in numbers.unlabelled:
            return _behind(number, words, labels)
        return _not_taken(number, is_labelled=key in numbers.labelled, others_are=bool(numbers.labelled))

    return why_not


def _behind(number: WholeNumber, words: TokenizedText, labels: Sequence[PhraseMatch[LabelKind]]) -> str:
    """Which label claims a number; a link, a list or an example claims it without one."""
    before = [label for label in labels if label.end <= number.first]
    if not before:
        return "belongs to something else, such as an address, a link or an example"
    label = before[-1]
    return f"belongs to '{words.text[words.starts[label.first] : words.ends[label.end - 1]]}'"


def _not_taken(number: WholeNumber, *, is_labelled: bool, others_are: bool) -> str:
    if _MAKES_A_CLAIM.search(number.text):
        return "reads like a status or a link, which no reply may repeat"
    if others_are and not is_labelled:
        return "has no label, and another number has one"
    return "is none that the model named"


def is_newly_given(serial_number: str, email: Email, lexicon: Lexicon) -> bool:
    """Whether the customer gives the number now, however it is spelled, and not only what was quoted before."""
    key = canonical_serial_number(serial_number)
    new, quoted = (
        {canonical_serial_number(number.text) for number in find_whole_numbers(tokenize(normalize_text(text)), lexicon)}
        for text in (f"{email.own_subject}\n\n{email.new_text}", email.quoted_text)
    )
    return key in new and key not in quoted


def _numbers_given(
    words: TokenizedText, lexicon: Lexicon, asked: bool
) -> tuple[dict[str, WholeNumber], dict[str, None]]:
    """The numbers of a text that may be serial numbers, and which of them carry a label that says so; by their keys.

    asked: the text answers the question for a serial number, so a lone number needs no label.
    """
    numbers = find_whole_numbers(words, lexicon)
    extracted = extract_serial_numbers(words, lexicon)
    spellings = extracted.numbers if extracted.labelled else ()
    if asked and not spellings:
        spellings = extract_answer(words, lexicon)
    announced = dict.fromkeys(map(canonical_serial_number, spellings))

    free: list[tuple[str, WholeNumber, bool]] = []
    claimed: set[str] = set()
    is_claimed = False
    for index, number in enumerate(numbers):
        # A label's claim goes on over the digits beside: "tel. 030 231 25014".
        is_claimed = (
            is_claimed and number.is_beside_last and number.is_digits
        ) or not extracted.other_words.isdisjoint(range(number.first, number.end))
        key = canonical_serial_number(number.text)
        if is_claimed and key not in announced:
            claimed.add(key)
        elif number.text and lexicon.labelled.fullmatch(number.text):
            is_alone = not number.is_beside_last and (
                index + 1 == len(numbers) or not numbers[index + 1].is_beside_last
            )
            free.append((key, number, is_alone))

    # A label whose number was read in part still speaks of the whole.
    whole = {key for key, _, _ in free}
    parts = [key for key in announced if key not in whole][:MAX_PARTS]
    given: dict[str, WholeNumber] = {}
    labelled: dict[str, None] = {}
    for key, number, is_alone in free:
        if key in announced or any(part in key for part in parts):
            labelled[key] = None
        elif key in claimed or not _may_stand_unlabelled(number, words, lexicon, is_alone):
            continue
        given.setdefault(key, number)
    return given, labelled


def _may_stand_unlabelled(number: WholeNumber, words: TokenizedText, lexicon: Lexicon, is_alone: bool) -> bool:
    text = number.text
    if lexicon.self_labelled.fullmatch(text):
        return True
    if lexicon.never.fullmatch(text) or _OTHER_SHAPES.fullmatch(text):
        return False
    if number.is_digits:
        return (
            is_alone and _BARE_DIGITS.fullmatch(text) is not None and _speaks_of_serial_number(number, words, lexicon)
        )
    if _POSTCODE.fullmatch(text) and _CITY.match(words.text, words.ends[number.end - 1]):
        return False
    if lexicon.unlabelled.fullmatch(text):
        return True
    signs = sum(map(str.isalnum, text))
    return signs >= MIN_LENGTH_WITHOUT_LABEL and len(_DIGIT.findall(text)) >= MIN_DIGITS_WITHOUT_LABEL


def _speaks_of_serial_number(number: WholeNumber, words: TokenizedText, lexicon: Lexicon) -> bool:
    """Whether the sentence around a number has a label of serial numbers, none of others, and does not deny it."""
    first, end, count = number.first, number.end, len(words.folded)
    while first and number.first - first < MAX_WORDS_OF_SENTENCE and not _SENTENCE_END.search(words.gap_before(first)):
        first -= 1
    while end < count and end - number.end < MAX_WORDS_OF_SENTENCE and not _SENTENCE_END.search(words.gap_before(end)):
        end += 1
    sentence = tokenize(words.text[words.starts[first] : words.ends[end - 1]])
    kinds = {label.payload for label in lexicon.labels.find(sentence)}
    return bool(kinds & {"serial", "weak"}) and "other" not in kinds and lexicon.denials.isdisjoint(sentence.folded)


def _spelling(number: WholeNumber, words: TokenizedText, candidate: str) -> str:
    """The number as the mail has it; with its label where that is SN, as many serial numbers begin, and asked for."""
    if candidate.startswith("SN") and not number.text.startswith("SN") and words.folded[number.first - 1] == "sn":
        return f"SN{number.text}"
    return number.text
