"""What mail programs, autoresponders and ticket systems write: `languages/*.txt`, one file a language, read once.

A new language is a new file. It needs none of the keys that stand below; `any.txt` holds what all languages share.

- `key: alternatives`, in lower case and as `normalize_text` leaves them, with "|" between them. An indented line goes
  on, and its line break is a "|", within a group too. Double quotes only keep the blanks at a phrase's ends.
- `NAME: alternatives` names a group, which patterns of the file take as `{NAME}`; those of `any.txt` stand in all.
- Patterns are compiled at the first mail that needs them, since most need none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal, get_args

from guarantee_email_agent.utils.errors import ConfigurationError

# What programs write around an earlier mail, and below a mail of their own. Plain phrases, no patterns.
QuotationKey = Literal[
    "openings",  # how an attribution starts: "on " of "On Mon, 5 Jan 2026 at 10:00, Jane wrote:"
    "weekdays",  # or with which day, at least its first letters: "pon., 5 sty 2026 o 10:00 Jane napisała:"
    "verbs",  # how it ends, before the colon
    "inner verbs",  # what stands further inside: "schrieb Jane <jane@example.com>:"
    "first persons",  # who says it of himself beside the verb: then it is no program's sentence
    "dividers",  # between dashes: "-----Original Message-----"
    "forward lines",  # on a line of their own that ends in a colon
    "from",  # the labels of the header lines that are repeated above an earlier mail
    "date",
    "to",
    "subject",
    "other header",  # further labels among them
    "form",  # labels of a web form's mail, which repeats header lines above what the customer typed
    "signatures",  # how a line starts that a phone or program adds by itself
    "framed signatures",  # or how it starts and ends: "von mein … gesendet"
    "reply prefixes",  # before the subject of an answer
    "forward prefixes",
]

# The part of an address before the "@", by which nobody reads what is sent to it.
SenderKey = Literal[
    "no reader",  # patterns of some words of it: "no-reply"
    "notifiers",  # patterns of all of it, or of its last word: "jira-notifications"
    "mail systems",  # patterns of how it starts: "mailer-daemon"
    "sender stems",  # one of them stands in every address that the three match
]

# What machines write. Patterns, unless said otherwise.
MachineKey = Literal[
    "subject words",  # plain: with what a subject can begin; two signs where no blanks part words
    "sentence words",  # plain: with what a sentence can begin besides
    "absence parts",  # plain: or what stands further inside, where a name comes first: "Jane Doe is out of the office"
    "stems",  # plain: one of them stands in every text that is taken for a machine's
    "bounces",  # plain: whole subjects
    "subject endings",  # plain: "jane doe is out of the office"
    "automatic subjects",  # whole subjects, or their starts where ":" or an earlier subject follows
    "subjects before a colon",  # those of them after which a ":" must follow
    "acknowledgements",  # "your request has been received": whole subjects, or how a sentence starts
    "declarations",  # whole sentences by which a mail says that nobody wrote it, or that nobody reads an answer
    "promises",  # parts of sentences: somebody will answer, a ticket has this number
    "receipt subjects",  # plain: before the ":" in the subject of a calendar's answer, a receipt or a recall
    "receipts",  # whole texts of such receipts
    "doubtful",  # how parts of texts start that are mostly a machine's: of gateways, of an address that is given up
    "absences",  # how the sentence starts in which somebody is away
    "own person words",  # as "person words", where other languages mean something else by them, such as "je"
]

# What tells a person from a machine, whatever the language of the mail. Patterns.
PersonKey = Literal[
    "person words",  # whole words that stand in no template: "I", "my", "but"
    "person signs",  # the same where no blanks part words
    "customer",  # what a customer writes about, and no machine but in somebody's words
    "unread",  # a machine's sentence with a person's word, "nobody reads this"
    "unread mailboxes",  # and what it names
    "and",  # what may join it to the sentence before
    "greetings",  # in front of what a text says first, up to the comma
    "bare greetings",  # the same without one
    "honorifics",  # behind the name of who is greeted
    "thanks",  # how a sentence of thanks starts
    "possessives",  # "my", with which somebody away speaks only of
    "absent things",  # these
    "objections",  # "but", which no absence text says
    "faults",  # what none is about
    "absence words",  # what each of its longer sentences has one of
    "absence ends",  # what may follow an absence: "until"
]
Key = QuotationKey | SenderKey | MachineKey | PersonKey

_FOLDER: Final = os.path.join(os.path.dirname(__file__), "languages")  # pathlib loads urllib
_SHARED: Final = "any"
_KEYS: Final = frozenset(key for group in get_args(Key) for key in get_args(group))
_GROUP: Final = re.compile(r"\{([A-Z]+)\}")


@dataclass(frozen=True, eq=False)
class Language:
    """The phrases of one file: for each key, and for the name of each group, the alternatives between "|"."""

    path: str
    phrases: Mapping[str, str]
    shared: Mapping[str, str] = field(default_factory=dict)
    _compiled: dict[Key, re.Pattern[str]] = field(default_factory=dict)

    def plain(self, key: Key) -> list[str]:
        """The phrases of a key that holds no patterns; none where the language has none."""
        return self.phrases[key].split("|") if key in self.phrases else []

    def alternatives(self, key: Key) -> str | None:
        """The patterns of a key with their groups put in. Raises ConfigurationError for a group that has no name."""
        return self._expand(self.phrases[key]) if key in self.phrases else None

    def pattern(self, key: Key) -> re.Pattern[str]:
        """All patterns of a key in one; it matches nothing where the language has none. Raises ConfigurationError."""
        if key not in self._compiled:
            text = self.alternatives(key) or "(?!)"
            try:
                compiled = re.compile(rf"\b(?:{text})\b" if key == "own person words" else f"(?:{text})")
            except re.error as error:
                raise _bad(self.path, f"{key!r} is no pattern: {error}") from None
            self._compiled[key] = compiled
        return self._compiled[key]

    def _expand(self, text: str) -> str:
        return _GROUP.sub(self._group, text) if "{" in text else text

    def _group(self, found: re.Match[str]) -> str:
        alternatives = self.phrases.get(found[1]) or self.shared.get(found[1])
        if alternatives is None:
            raise _bad(self.path, f"{found[0]} is named neither here nor in {_SHARED}.txt")
        return f"(?:{self._expand(alternatives)})"


@cache
def languages() -> Mapping[str, Language]:
    """All of them by code, such as `de`. Raises ConfigurationError for a file that cannot be used."""
    shared = read_language(os.path.join(_FOLDER, f"{_SHARED}.txt"))
    codes = sorted(name.removesuffix(".txt") for name in os.listdir(_FOLDER) if name.endswith(".txt"))
    return {code: read_language(os.path.join(_FOLDER, f"{code}.txt"), shared.phrases) for code in codes}


@cache
def phrases_of(*keys: Key) -> tuple[str, ...]:
    """The plain phrases of all languages for these keys, each once."""
    return tuple(
        dict.fromkeys(phrase for key in keys for language in languages().values() for phrase in language.plain(key))
    )


def alternatives(key: Key) -> str:
    """The patterns of all languages for a key, between "|"."""
    return "|".join(filter(None, [language.alternatives(key) for language in languages().values()]))


def read_language(path: str, shared: Mapping[str, str] | None = None) -> Language:
    """One file; `shared`: the groups of `any.txt`. Raises ConfigurationError with file, problem and remedy."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    found: dict[str, list[str]] = {}
    key = ""
    for number, line in enumerate(lines, 1):
        if not line or line[0] == "#":
            continue
        rest = line
        if line[0] != " " or not key:
            key, _, rest = line.partition(":")
            if key in found or not (key in _KEYS or key.isupper()):
                raise _bad(path, f"line {number}: '{key}' is no key of phrases.py, or stands twice")
            found[key] = []
        if rest := rest.strip():
            found[key].append(rest.replace('"', ""))
    if empty := [key for key, pieces in found.items() if not pieces]:
        raise _bad(path, f"write phrases behind '{empty[0]}:', or remove it")
    return Language(path, {key: "|".join(pieces) for key, pieces in found.items()}, shared or {})


def _bad(path: str, problem: str) -> ConfigurationError:
    return ConfigurationError(f"{os.path.basename(path)}: {problem}", "email_phrases_invalid")
