"""Which numbers a customer takes back: "not 4711-A but 4711-B", "scrap 4711-A", "4711-A should be 4711-B"."""

from __future__ import annotations

from collections.abc import Mapping

from guarantee_email_agent.instructions.lexicon import CorrectionKind
from guarantee_email_agent.instructions.phrases import PhraseMatch
from guarantee_email_agent.reading.number_labels import MIN_LENGTH, NumberText, have_similar_shape, is_completed_by
from guarantee_email_agent.reading.number_tokens import NumberToken

MAX_WORDS_TO_NUMBER = 4
MAX_WORDS_TO_LABEL = 6
MAX_WORDS_TO_LINK = 15
MAX_WORDS_TO_WITHDRAWAL = 15
MAX_CORRECTIONS = 100


class CorrectionReader:
    """Reads the corrections of one text."""

    def __init__(self, text: NumberText, usable: Mapping[int, NumberToken]) -> None:
        self._words, self._lexicon, self._labels, _, self._number_of = text
        self._usable = usable
        # Each is read within a few words; a hostile text shall not buy more time with more of them.
        self._marks = text.lexicon.corrections.find(text.words)[:MAX_CORRECTIONS]

    def apply(self, found: Mapping[int, NumberToken]) -> dict[int, NumberToken]:
        """`found` (each number by its first word) without what is taken back, and with what replaces it.

        Where nothing else would be left, all of them are unreadable. Where it is open which of several is replaced,
        all of them stay.
        """
        numbers, retracted = dict(found), set[str]()
        for mark in self._marks:
            if mark.payload == "next":
                self._read_retraction(mark, numbers, retracted)
            elif mark.payload == "last":
                if number := self._number_before(mark.first, numbers):
                    retracted.add(number.text)
            elif not self._read_replacement(mark, numbers, retracted) and mark.payload == "withdrawal":
                ends = range(mark.first - MAX_WORDS_TO_WITHDRAWAL, mark.first + 1)
                retracted.update([number.text for number in numbers.values() if number.end in ends][-1:])
        kept = {first: number for first, number in numbers.items() if number.text not in retracted}
        return kept or {first: number._replace(is_read=False) for first, number in found.items()}

    def _read_retraction(
        self, mark: PhraseMatch[CorrectionKind], numbers: dict[int, NumberToken], retracted: set[str]
    ) -> None:
        """ "not A", and B in "not A but B", where A is one of the numbers or a label announces it."""
        # In "it does not close: A" the word is of the sentence before.
        is_direct = mark.end < len(self._words.folded) and not self._words.gaps[mark.end].strip(" \t\n'\"(")
        wrong = self._number_after(mark.end) if is_direct else None
        if wrong is None or not (self._is_among(wrong, numbers) or self._is_announced(mark.first)):
            return
        if ":" in "".join(self._words.gaps[mark.end : wrong.first + 1]):
            return  # "on the base, not the lid: A"
        retracted.add(wrong.text)
        right = self._number_after(wrong.end) or self._linked_number_after(wrong.end)
        if right is not None and have_similar_shape(wrong, right):
            numbers.setdefault(right.first, right)

    def _read_replacement(
        self, mark: PhraseMatch[CorrectionKind], numbers: dict[int, NumberToken], retracted: set[str]
    ) -> bool:
        """B in "A should be B", "A. Correction: B", where one number was given before; whether it was found.

        Where they do not look alike, it is open which one is meant, so that A counts as unreadable.
        """
        right = self._number_after(mark.end, sentences=2)
        if right is None:
            return False
        before = {number.text: number for number in numbers.values() if number.first < mark.first}
        before.pop(right.text, None)
        wrong = [number for number in before.values() if number.text not in retracted]
        if len(wrong) != 1:
            return False
        if have_similar_shape(wrong[0], right) or is_completed_by(wrong[0], right):
            numbers.setdefault(right.first, right)
            retracted.add(wrong[0].text)
        elif len(right.text) >= MIN_LENGTH:
            numbers[wrong[0].first] = wrong[0]._replace(is_read=False)
        return True

    def _number_after(self, index: int, sentences: int = 1) -> NumberToken | None:
        """The number at word `index` or a few words on, past labels and words like "is" and "the".

        sentences: over how many of them the search goes.
        """
        words, lexicon, first = self._words, self._lexicon, index
        end = index + MAX_WORDS_TO_NUMBER
        while index < min(end, len(words.folded)):
            sentences -= words.starts_sentence[index]
            if sentences < 1:
                return None
            if number := self._usable.get(index):
                return number
            word, label = words.folded[index], self._labels.get(index)
            if label is not None and label.claim in ("own", "weak"):
                if index > first and words.gaps[index].strip():
                    return None  # the "not" of "does not come on, serial number 4711-A" takes nothing back
                index, end = label.end, label.end + MAX_WORDS_TO_NUMBER
            elif word in lexicon.links or word in lexicon.owners or len(word) == 1 or word in lexicon.stop_words:
                index += 1
            else:
                return None
        return None

    def _linked_number_after(self, index: int) -> NumberToken | None:
        """The number behind a word like "but", further on in the sentence: "not 4711-A as I told you but 4711-B"."""
        words, links = self._words.folded, self._lexicon.links
        for first in range(index, min(index + MAX_WORDS_TO_LINK, len(words))):
            if self._words.starts_sentence[first]:
                return None
            if words[first - 1] in links and (number := self._usable.get(first)):
                return number
        return None

    def _number_before(self, index: int, numbers: Mapping[int, NumberToken]) -> NumberToken | None:
        """The last of `numbers` before word `index`, a few words off at most: "SN4711 that I sent is incorrect"."""
        for end in range(index, max(index - MAX_WORDS_TO_NUMBER, 0), -1):
            if self._words.starts_sentence[end]:
                return None
            inside = self._number_of.get(end - 1)
            if inside and inside.end == end and (number := numbers.get(inside.first)):
                return number
        return None

    def _is_announced(self, index: int) -> bool:
        """Whether the serial number's label stands before word `index` in its sentence, and no other label behind."""
        for first in range(index, max(index - MAX_WORDS_TO_LABEL, 0) - 1, -1):
            if label := self._labels.get(first):
                return label.claim in ("own", "weak")
            if self._words.starts_sentence[first]:
                return False
        return False

    @staticmethod
    def _is_among(number: NumberToken, numbers: Mapping[int, NumberToken]) -> bool:
        return any(other.text == number.text for other in numbers.values())
