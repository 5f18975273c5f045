"""The phrases of one language, and what they share: patterns over lower-case text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

REF = r"(?: ?(?:number |no\.? ?|nr\.? ?|n[°º]\.? ?|№ ?)?[\[(<]?(?:id:? ?|#|№)? ?[a-z]{0,8}[-:]?\d[\w/-]{0,30}[\])>]?)?"
NUMBER = r" ?[\[(<]?#? ?[a-z]{0,8}-?\d[\w/-]{0,30}[\])>]?"


@dataclass(frozen=True)
class Phrases:
    """The phrases of one language.

    subject_words: with what its subjects can begin; two characters where no blanks part words.
    sentence_words: with what its sentences can begin besides.
    stems: one of them stands in every text that `automatic_mail` takes for a machine's.
    automatic: whole starts of subjects that announce an autoresponder or a bounce, and that ":" must follow.
    acknowledgements: "your request has been received": subjects in their whole form, or how a sentence starts.
    declarations: whole sentences by which a mail says that nobody wrote it, or that nobody reads an answer.
    promises: parts of sentences: somebody will answer, a ticket has this number.
    absences: how the sentence starts in which somebody is away.
    person: words of people that mean something else in other languages, such as "je" and "men".
    """

    subject_words: str
    sentence_words: str
    stems: str
    automatic: str
    acknowledgements: str
    declarations: str
    promises: str
    absences: str = r"(?!)"
    person: str = r"(?!)"

    @cached_property
    def all_stems(self) -> tuple[str, ...]:
        return tuple(self.stems.split())

    @cached_property
    def automatic_subject(self) -> re.Pattern[str]:
        return re.compile(f"(?:{self.automatic})")

    @cached_property
    def acknowledgement(self) -> re.Pattern[str]:
        return re.compile(f"(?:{self.acknowledgements})")

    @cached_property
    def declaration(self) -> re.Pattern[str]:
        return re.compile(f"(?:{self.declarations})")

    @cached_property
    def promise(self) -> re.Pattern[str]:
        return re.compile(f"(?:{self.promises})")

    @cached_property
    def person_word(self) -> re.Pattern[str]:
        return re.compile(rf"\b(?:{self.person})\b")

    @cached_property
    def absence(self) -> re.Pattern[str]:
        return re.compile(f"(?:{self.absences})")
