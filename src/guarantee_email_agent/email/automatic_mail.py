"""Subjects and texts that only machines write: autoresponders, bounces, and ticket systems that set no header.

A person must never be taken for a machine, since nobody would read that mail; a machine that passes for a person gets
an answer or two until the limits on replies stop it. So

- a subject counts in its whole form: "Ticket #5 received", or "Ticket received: Re: your question" with the subject
  that the machine answers, but neither "Re: Ticket #5 received" nor "Ticket received, and nobody called";
- a text counts where it begins like a machine's, after a greeting; says in a sentence of its own that nobody wrote it,
  or acknowledges and promises an answer; and holds no word that only people write ("I", "mein", "but");
- a vacation text, which does say "I", counts where every sentence of it is about the absence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice

from guarantee_email_agent.email.parsing.email import is_reply_or_forward
from guarantee_email_agent.email.phrases import Key, Language, alternatives, languages, phrases_of


def _by_phrase(*keys: Key) -> dict[str, tuple[Language, ...]]:
    found: dict[str, tuple[Language, ...]] = {}
    for language in languages().values():
        for phrase in {phrase for key in keys for phrase in language.plain(key)}:
            found[phrase] = (*found.get(phrase, ()), language)
    return found


_BY_SUBJECT_WORD = _by_phrase("subject words")
_BY_SENTENCE_WORD = _by_phrase("subject words", "sentence words")
_ABSENCE_PARTS = phrases_of("absence parts")
# Where the name of who is away may come first.
_NAME_FIRST = tuple(language for language in languages().values() if language.plain("absence parts"))

_OPENING = ("[", "(", "【", "<", "*")
_TAG = r"[\[(【<*]{1,3} ?([^\])】>*]{1,80})[\])】>*]{1,3}\s*"
_BOUNCES = frozenset(phrases_of("bounces"))
_SUBJECT_ENDINGS = phrases_of("subject endings")
# As text and not compiled: few mails need them, and `re` keeps what it compiled.
_NEEDS_COLON = alternatives("subjects before a colon")
_PERSON = rf"\b(?:{alternatives('person words')})\b|{alternatives('person signs')}"
_CUSTOMER = alternatives("customer")
_UNREAD = (
    rf"(?:[,;]?\s+(?:{alternatives('and')})\s+)?\b(?:{alternatives('unread')}) (?:{alternatives('unread mailboxes')})\b"
)
_GREETING = (
    rf"(?:(?:{alternatives('greetings')})\b[^,.!:;\n?]{{0,60}}(?:[,.!:;]+|$)|"
    rf"[^\s,]{{1,20}} ?(?:{alternatives('honorifics')})|"
    rf"(?:{alternatives('bare greetings')})[^,.!:\n]{{0,10}}[,.!:。]*)\s*"
)
_THANKS = alternatives("thanks")
_ABSENCE_WORDS = alternatives("absence words")
_FAULTS = (
    rf"\b(?:{alternatives('possessives')}) (?!{alternatives('absent things')}|\d)|\b(?:{alternatives('objections')})\b|"
    rf"{alternatives('faults')}"
)
_HOW_LONG = rf"\s*(?:$|[,.:;!-]|\d|(?:{alternatives('absence ends')})\b)"
_ORNAMENTS = "*_=#-~|<> "
_GREETING_CHARS = 160
_READ_CHARS = 6_000  # of a text; what a machine says of itself stands in its first or last lines
_MAX_SENTENCES = 40
_MAX_SENTENCE_CHARS = 300
_MIN_WRAPPED_CHARS = 40  # a line that long goes on in the next, unless a sentence ends with it
_MAX_ABSENCE_SENTENCES = 15
_MAX_NAME_CHARS = 40


def is_automatic_subject(subject: str, text: str = "") -> bool:
    """Whether the whole subject is one of a machine's, and the text does not speak as a customer all the same.

    subject: one line, as `Email.subject`. text: what was newly written below it.
    """
    line = subject.lower()
    if line in _BOUNCES:
        return True
    if is_reply_or_forward(line):
        return False
    forms = [line]
    if line[:1] in _OPENING and (tag := re.match(_TAG, line)):
        name, rest = tag[1].strip(), line[tag.end() :]
        # "[Ticket 5] received", "[Request received] your subject", "[Acme] Request received"
        forms += [f"{name} {rest}".rstrip(), f"{name}: {rest}", rest]
    return any(_is_automatic_form(form, text) for form in forms)


def _is_automatic_form(form: str, text: str) -> bool:
    found = _languages_of(form, _BY_SUBJECT_WORD)
    if not found:  # almost every mail
        return form.endswith(_SUBJECT_ENDINGS) and not _asks(text)
    if re.search(_PERSON, form.partition(":")[0].partition(" - ")[0]):
        return any(_is_away(language, form) and not _speaks(form.partition(" ")[2]) for language in found)
    for language in found:
        if match := language.pattern("automatic subjects").match(form):
            rest = form[match.end() :].strip()
            if rest.startswith(":"):
                return True
            if not re.match(_NEEDS_COLON, form) and _is_echo(rest):
                return not _asks(text)
        if (match := language.pattern("acknowledgements").match(form)) and _is_echo(form[match.end() :].strip()):
            return not _asks(text) and not re.search(_PERSON, text[:_READ_CHARS].lower())
        if _is_away(language, form):
            return not _asks(text)
    return False


def _asks(text: str) -> bool:
    return re.search(_CUSTOMER, text[:_READ_CHARS].lower()) is not None


def _is_echo(rest: str) -> bool:
    """Whether nothing follows a machine's phrase, or only the subject that it answers."""
    if not rest.strip(".! "):
        return True
    subject = rest.lstrip(":-|[( ")
    if is_reply_or_forward(subject):
        return True
    return subject != rest and not _speaks(subject)


def _speaks(text: str) -> bool:
    return "?" in text or re.search(_PERSON, text) is not None


def is_automatic_text(text: str) -> bool:
    """Whether a machine wrote the text, which is the new one of a mail, without quotations. Linear in its length."""
    beginning = _strip_greetings(" ".join(text[:_GREETING_CHARS].lower().split()))
    found = _languages_of(beginning)
    if not found and any(part in beginning for part in _ABSENCE_PARTS):
        found = _NAME_FIRST
    if not found:  # almost every mail
        return False
    head = re.sub(_UNREAD, "", text[:_READ_CHARS].lower())
    if not any(stem in head for language in found for stem in language.plain("stems")):
        return False
    sentences = list(islice(_sentences(head), _MAX_SENTENCES))
    # What thanks for a message, as both do, says nothing yet.
    start = next((number for number, sentence in enumerate(sentences[:3]) if not re.match(_THANKS, sentence)), 0)
    return _is_absence(sentences, start) or _is_acknowledgement(sentences, start, head)


def _is_acknowledgement(sentences: list[str], start: int, head: str) -> bool:
    if re.search(_PERSON, head) or re.search(_CUSTOMER, head):  # before the patterns of a language are compiled
        return False
    for sentence in sentences[: start + 1]:
        for language in _languages_of(sentence):
            if (language.pattern("acknowledgements").match(sentence) or _declares(language, sentence)) and (
                _points(language, sentences) >= 2 and not language.pattern("own person words").search(head)
            ):
                return True
    return False


def _languages_of(
    sentence: str, by_word: Mapping[str, tuple[Language, ...]] = _BY_SENTENCE_WORD
) -> tuple[Language, ...]:
    word = sentence.partition(" ")[0].strip(":[]()#.,!*-")
    return by_word.get(word) or by_word.get(word[:2], ())


def _strip_greetings(line: str) -> str:
    rest = line.strip(_ORNAMENTS)
    while rest and (greeting := re.match(_GREETING, rest)) and greeting.end():
        rest = rest[greeting.end() :]
    return rest


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a text without greetings. Lines of one sentence, as programs wrap them, are put together."""
    for line in _unwrapped_lines(text):
        rest = _strip_greetings(" ".join(line.split()))
        for sentence in re.split(r"(?<=[.!?。!?])\s+|(?<=[。])", rest):
            if stripped := sentence.strip("*_=#-~|()[], "):
                yield stripped[:_MAX_SENTENCE_CHARS]


def _unwrapped_lines(text: str) -> Iterator[str]:
    pending = ""
    for line in text.split("\n"):
        goes_on = len(line) >= _MIN_WRAPPED_CHARS and not line.rstrip().endswith((".", "!", "?", ":"))
        pending = f"{pending} {line}" if pending else line
        if not goes_on or len(pending) > _MAX_SENTENCE_CHARS:
            yield pending
            pending = ""
    yield pending


def _declares(language: Language, sentence: str) -> bool:
    return (
        not sentence.endswith("?") and language.pattern("declarations").fullmatch(sentence.rstrip(".!。 ")) is not None
    )


def _points(language: Language, sentences: list[str]) -> int:
    """Two for "this is an automated message"; one for an acknowledgement, one for promises and ticket numbers."""
    if any(_declares(language, sentence) for sentence in sentences):
        return 2
    acknowledgements = sum(language.pattern("acknowledgements").match(sentence) is not None for sentence in sentences)
    return acknowledgements + any(language.pattern("promises").search(sentence) for sentence in sentences)


def _is_absence(sentences: list[str], start: int) -> bool:
    """Whether somebody says that they are away, and nothing else: no question, no device, nothing that is theirs."""
    if not 0 < len(sentences) <= _MAX_ABSENCE_SENTENCES:
        return False
    found = _languages_of(sentences[start]) or _NAME_FIRST
    if not any(_is_away(language, sentences[start]) for language in found):
        return False
    return all(
        "?" not in sentence
        and not re.search(_FAULTS, sentence)
        and not re.search(_CUSTOMER, sentence)
        # A short one may be a name or a phone number.
        and (number == start or len(sentence) <= _MAX_NAME_CHARS or re.search(_ABSENCE_WORDS, sentence) is not None)
        for number, sentence in enumerate(sentences)
    )


def _is_away(language: Language, sentence: str) -> bool:
    match = language.pattern("absences").match(sentence)
    return match is not None and re.match(_HOW_LONG, sentence[match.end() :]) is not None
