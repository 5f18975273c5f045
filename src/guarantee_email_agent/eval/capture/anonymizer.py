"""Replace personal data in the texts of one mail, the same thing by the same everywhere, so that it reads the same.

Addresses, links, names, streets, places and numbers. Dates, times, years, amounts and numbers of up to three digits
stay. A number keeps its length, its separators, the letters before its first digit, and where equal digits stand; that
holds for serial and order numbers as for phones and accounts. All follows from the mail alone: the same mail gives the
same replacement, and nobody without the mail can compute it.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from guarantee_email_agent.email.no_reply import sender_reason
from guarantee_email_agent.eval.capture.names import spellings
from guarantee_email_agent.utils.terminal import pluralize

_UPPER: Final = r"A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĘĚĞĽŁŃŇŐŘŚŞŠŤŮŰŹŻŽ"
_DAYS: Final = (
    "Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag|Januar|Februar|März|April|Mai|Juni|Juli|August|"
    "September|Oktober|November|Dezember"
)
_OBFUSCATED: Final = (
    (re.compile(r"[ ]?[\[({][ ]?(?i:at|@)[ ]?[\])}][ ]?"), "@"),
    (re.compile(r"[ ]?[\[({][ ]?(?i:dot|punkt|punto|kropka)[ ]?[\])}][ ]?"), "."),
)
_PATTERNS: Final[Mapping[str, str]] = {
    "link": r"(?i:https?://|www\.)[^\s<>\"']+",
    "address": (
        r"[\w.!#$%&'*+/=?^`{|}~-]{1,64}@\w(?:[\w-]{0,62}\.)*[\w-]{0,62}\w|"
        r"[\w.+-]{1,64}[ ]?[\[({][ ]?(?i:at|@)[ ]?[\])}][ ]?[\w-]{1,63}"  # jane.doe [at] firm (dot) com
        r"(?:(?:\.|[ ]?[\[({][ ]?(?i:dot|punkt|punto|kropka)[ ]?[\])}][ ]?)[\w-]{1,63}){1,5}"
    ),
    # Kept as they are.
    "date": (
        r"\b\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?\b|"
        r"\b(?=(?:\d\d?[./-])?(?:0?[1-9]|1[0-2])[./-])[0-3]?\d[./-][0-3]?\d[./-](?:\d{4}|\d\d)\b(?![./-]?\d)|"
        r"\b\d{1,2}[:.]\d\d(?::\d\d)?\b(?!\d)(?![.:-]\d)|\b(?:19|20)\d\d\b(?![-./]?\d)"
    ),
    "amount": (
        r"(?:[€$£]|\b(?:EUR|USD|GBP|PLN|CHF))[ \u00a0]?\d[\d.,]*|"
        r"\b\d[\d.,]*[ \u00a0]?(?:[€$£%°]|(?:EUR|USD|GBP|PLN|CHF|zł|W|kW|V|Hz|rpm|GB|TB|MB|kg|cm|mm)\b)"
    ),
    "street": (
        rf"(?<![\w-])(?:[{_UPPER}][\w.-]{{1,30}}[ ])?[\w-]{{0,30}}(?:[Ss]tra(?:ß|ss)e|[Ss]tr\.|[Gg]asse|[Aa]llee|"
        rf"[Pp]latz|[Ww]eg|[Dd]amm|[Uu]fer|straat|laan|plein|gracht|gatan|vägen|gade|veien)[ ]\d{{1,4}}[ ]?[a-z]?\b|"
        rf"\b\d{{1,5}}[A-Za-z]?[ ](?:[{_UPPER}][\w'.-]{{1,30}}[ ]){{1,3}}(?:Street|St|Road|Rd|Avenue|Ave|Lane|Ln|"
        rf"Drive|Dr|Court|Boulevard|Blvd|Way|Close|Square|Terrace|Place|Crescent|Grove|Gardens|Hill|Mews|Row|Walk|"
        r"Parade|Highway|Parkway|Circle|Trail)\b|"
        r"\b(?:Am|Im|An[ ]de[rnm]|Auf[ ]de[rm]|Unter[ ]den|Zu[mr]|In[ ]de[rn]|Hinter[ ]de[rm]|Beim)[ ]"
        rf"(?!(?:{_DAYS})\b)(?:[{_UPPER}][\w-]{{2,30}}[ ]){{1,3}}\d{{1,3}}[ ]?[a-z]?"
        r"(?=[ \t]{0,20}(?:$|\n|[,;]|\.(?:\s|$)))|"
        rf"\b(?:(?:ul|al|os|pl)\.|[Uu]lica|[Aa]lej[ae]|[Oo]siedle|[Pp]lac)[ ]?[{_UPPER}][\w.-]{{1,30}}"
        rf"(?:[ ][{_UPPER}][\w.-]{{1,30}}){{0,2}}[ ]\d{{1,4}}\w?(?:/\d+)?|"
        r"\b\d{1,4}(?:[ ]?(?:bis|ter|quater))?,?[ ](?:rue|avenue|boulevard|chemin|allée|impasse|quai)[ ]"
        r"[^\n,\d]{2,40}|"
        r"\b(?:[Cc]/|[Cc]alle|[Aa]v(?:da)?\.|[Aa]venida|[Pp]laza|[Pp]aseo|[Vv]ia|[Vv]iale|[Pp]iazza|[Cc]orso)[ ]"
        rf"(?:del?[ ](?:l[ao]s?[ ])?)?[{_UPPER}]"
        r"[^\n,\d]{1,40},?[ ]\d{1,4}"
    ),
    "place": (
        rf"(?m:(?<=, )|^[ \t>]{{0,20}})(?:[A-Z]{{1,2}}-)?(?:\d{{4,5}}|\d\d-\d{{3}}|\d{{3}}[ ]\d\d)[ ]"
        rf"[{_UPPER}][\w-]{{1,30}}"
        r"(?:[ ][\w-]{1,30}){0,2}(?=[ \t]{0,20}(?:$|\n|,))|"
        r"\b[A-Z]{1,2}\d[A-Z\d]?[ ]\d[A-Z]{2}\b|\b[A-Z]\d[\dW][ ][A-Z\d]{4}\b"  # LS6 2AB, D02 XY45
    ),
    "number": (
        r"\b[\dA-Fa-f]{2}(?::[\dA-Fa-f]{2}){5}\b|"  # the address of a network card
        r"(?:\+|\b00)\d{1,3}(?:[ ./()-]{0,3}\d[\dA-Za-z]*){1,8}|"  # a phone with the country's code
        r"(?<!\w)\(?0\d{1,5}\)?(?:[ ./-]{1,3}\d{2,}){1,6}\b|"  # a phone without it
        r"\b[A-Z]{2}\d\d(?:[ ]?[A-Z\d]{4}){2,7}(?:[ ]?[A-Z\d]{1,3})?\b|"  # an IBAN
        r"\b\d{3,}(?:[ ]\d{3,}){1,5}\b|\b(?=(?:[ .-]{0,3}\d){7})\d{2,3}(?:[ .-]{1,3}\d{2,3}){2,4}\b|"  # in groups
        r"[A-Za-z]{0,20}\d[\dA-Za-z]*(?:[-/.]\d[\dA-Za-z]*)*"
    ),
    "name": r"[^\W\d_]+",
}  # fmt: skip
_PATTERN: Final = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()))
_MESSAGE_ID: Final = re.compile(r"<[^<>\s]{1,996}>")
_PHONE: Final = re.compile(r"\+|\(?0")
_IBAN: Final = re.compile(r"[A-Z]{2}\d\d[ A-Z\d]{11,}")
_PREFIX: Final = re.compile(r"\+\d\d|[A-Za-z]*")
_LETTERS: Final = "ABCDEFGHJKLMNPRSTUVWXYZ"  # without those that look like digits
_PLAIN_NAMES: Final = """
Alex Robin Kim Sam Jo Max Lee Noa Toni Nico Luca Mika Sascha Jamie Morgan Taylor Jules Andrea Dominique Pat Chris Ariel
Quinn Sky Eden Remy Kai Ollie Ash Blair
"""
_NAMES: Final = tuple(_PLAIN_NAMES.split())
_DOMAINS: Final = ("example.com", "example.org", "example.net")
_ROLES: Final = frozenset({"support", "service", "info", "contact", "kontakt", "office", "sales", "hello", "help"})
_DECLENSION: Final = ("iej", "ie", "ej", "y", "ę", "ą", "i", "o")
"""Of Polish names in -a."""

_DIGITS: Final = "0123456789"
_MIN_DIGITS: Final = 4


class Anonymizer:
    """`replace` a mail's texts one after another. `counts`: how many different things of each kind were replaced."""

    def __init__(
        self, salt: bytes, texts: Iterable[str], names: Iterable[str], own_addresses: Iterable[str] = ()
    ) -> None:
        """salt: what only those can know who have the mail. own_addresses: become support@…

        texts: all that will be replaced, so that a number that stands in a longer one is known as a part of it.
        """
        self._salt = salt
        self._own = {address.casefold() for address in own_addresses}
        self._domains: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._others: dict[tuple[str, str], str] = {}
        self._message_ids: dict[str, str] = {}
        self._kinds: dict[tuple[str, str], None] = {}
        self._names = self._name_map(names)
        self._numbers = self._number_map(texts)

    @property
    def counts(self) -> dict[str, int]:
        return dict(Counter(kind for kind, _ in self._kinds))

    def replace(self, text: str) -> str:
        """The text with everything personal that is found replaced."""
        return _PATTERN.sub(self._replacement, text)

    def replace_message_ids(self, header: str) -> str:
        """The value of In-Reply-To or References: each Message-ID by one of ours."""
        return " ".join(
            self._message_ids.setdefault(each, f"<message-{len(self._message_ids) + 1}@example.com>")
            for each in _MESSAGE_ID.findall(header)
        )

    def _replacement(self, match: re.Match[str]) -> str:
        text, kind = match[0], str(match.lastgroup)
        if kind in ("date", "amount"):
            return text
        by_kind: dict[str, Callable[[str], str]] = {
            "address": self._address,
            "number": self._number,
            "name": self._name,
        }
        return by_kind[kind](text) if kind in by_kind else self._other(kind, text)

    def _address(self, address: str) -> str:
        for sign, meant in _OBFUSCATED:
            address = sign.sub(meant, address)
        key = address.casefold()
        if key not in self._addresses:
            local, _, domain = key.rpartition("@")
            self._kinds[("address", key)] = None
            self._addresses[key] = f"{self._local_part(key, local)}@{self._domain(domain)}"
        return self._addresses[key]

    def _local_part(self, address: str, local: str) -> str:
        if address in self._own:
            return "support"
        # What the sender is decides whether it may be answered.
        if sender_reason(address, frozenset()) is not None:
            role = re.split(r"[+=.]", local)[0]  # of bounces+jane.doe=firm.de@
            is_enough = sender_reason(f"{role}@example.com", frozenset()) is not None
            return re.sub(r"\d", "1", role if is_enough else local)
        if local.partition("+")[0] in _ROLES:
            return local.partition("+")[0]
        people = sum(1 for each in self._addresses.values() if each.startswith(("customer", "person")))
        return "customer" if not people else f"person{people + 1}"

    def _domain(self, domain: str) -> str:
        if domain not in self._domains:
            number = len(self._domains)
            self._domains[domain] = _DOMAINS[number] if number < len(_DOMAINS) else f"company{number + 1}.example"
        return self._domains[domain]

    def _other(self, kind: str, text: str) -> str:
        """A street, a place or a link, by a made-up one."""
        lead = text[: len(text) - len(text.lstrip(" \t>"))]
        key = (kind, text.strip(" \t>").casefold())
        if key not in self._others:
            self._kinds[key] = None
            number = sum(1 for known, _ in self._others if known == kind) + 1
            made_up = {
                "street": f"Example Street {number}",
                "place": f"{10000 + number} Exampletown",
                "link": f"https://www.example.com/{number}",
            }
            self._others[key] = made_up[kind]
        return lead + self._others[key]

    def _name(self, word: str) -> str:
        known = self._names.get(word.casefold())
        if known is None:
            return self._inflected_name(word)
        written, replacement = known
        if word[0].islower() and not written[0].islower():
            return word  # `will`, `mark`, `rose`
        self._kinds[("name", written.casefold())] = None
        if word.isupper() and len(word) > 1:
            return replacement.upper()
        return replacement.lower() if word.islower() else replacement

    def _inflected_name(self, word: str) -> str:
        """`Anny`, `Annas`, `Kowalskiego`: another ending, or a longer name with up to three letters more."""
        if word[0].isupper():
            for ending in _DECLENSION:
                nominative = word[: -len(ending)] + "a"
                if len(nominative) >= 4 and word.endswith(ending) and nominative.casefold() in self._names:
                    return self._name(nominative)
            for cut in (1, 2, 3):
                stem = word[:-cut].casefold()
                if len(stem) >= 4 and stem in self._names:
                    return self._name(word[:-cut]) + word[-cut:]
        return word

    def _name_map(self, names: Iterable[str]) -> dict[str, tuple[str, str]]:
        """By each spelling: the name as written, and its replacement."""
        words = list(names)
        taken = {word.casefold() for word in words}
        free = [name for name in _NAMES if name.casefold() not in taken]
        found: dict[str, tuple[str, str]] = {}
        given = 0
        for word in words:
            if word.casefold() in found:
                continue
            replacement = free[given] if given < len(free) else f"Name{'abcdefghijklmnopqrstuvwxyz'[given % 26]}"
            given += 1
            for spelling in spellings(word):
                for part in re.findall(r"[^\W\d_]+", spelling):  # of O'Brien or Anna-Lena each
                    if len(part) > 1:
                        found.setdefault(part.casefold(), (word, replacement))
        return found

    def _number(self, text: str) -> str:
        prefix = _PREFIX.match(text)[0]  # type: ignore[index]  # it may be empty
        digits = _digits(text)
        new_digits = self._numbers.get(digits)
        if new_digits is None:
            return self._name(prefix) + text[len(prefix) :] if prefix.isalpha() else text
        kind = "account" if _IBAN.match(text) else "phone" if _PHONE.match(text) and len(digits) >= 7 else "number"
        self._kinds[(kind, digits)] = None
        signs = iter(new_digits)
        letters = random.Random(self._salt + digits.encode())  # noqa: S311 - its seed is the secret
        changed = "".join(self._sign(sign, signs, letters) for sign in text)
        return (self._name(prefix) if prefix.isalpha() else prefix) + changed[len(prefix) :]

    def _sign(self, sign: str, digits: Iterator[str], letters: random.Random) -> str:
        if sign in _DIGITS:
            return next(digits)
        if sign.isascii() and sign.isalpha():
            letter = letters.choice(_LETTERS)
            return letter if sign.isupper() else letter.lower()
        return sign

    def _number_map(self, texts: Iterable[str]) -> dict[str, str]:
        """New digits for each number of four or more; one that is part of a longer one becomes the same part of it."""
        found = {
            digits: None
            for text in texts
            for match in _PATTERN.finditer(text)
            if match.lastgroup == "number" and len(digits := _digits(match[0])) >= _MIN_DIGITS
        }
        result: dict[str, str] = {}
        taken: set[str] = set()
        for _, numbers in groupby(sorted(found, key=lambda each: (-len(each), each)), key=len):
            # Side by side, so that a mail of thousands of numbers is searched at the speed of one text.
            longer, changed = "|".join(result), "|".join(result.values())
            for digits in numbers:
                at = longer.find(digits)
                result[digits] = changed[at : at + len(digits)] if at >= 0 else self._new_digits(digits, taken)
                taken.add(result[digits])
        return result

    def _new_digits(self, digits: str, taken: set[str]) -> str:
        """Other digits, equal where these are equal, with a zero in front where there is one."""
        source = random.Random(self._salt + digits.encode())  # noqa: S311 - its seed is the secret
        new = digits
        for _ in range(100):  # as good as always enough: there are a million orders
            order = source.sample(_DIGITS, 10)
            new = digits.translate(str.maketrans(_DIGITS, "".join(order)))
            if (new[0] == "0") == (digits[0] == "0") and new != digits and new not in taken:
                break
        return new


def what_was_replaced(counts: Mapping[str, int]) -> str:
    """counts: of each kind, as `Anonymizer` has them."""
    kinds = [
        f"{count} addresses" if kind == "address" and count != 1 else pluralize(count, kind)
        for kind, count in sorted(counts.items())
    ]
    return f"Replaced: {', '.join(kinds) or 'nothing'}"


def _digits(text: str) -> str:
    return "".join(sign for sign in text if sign in _DIGITS)
