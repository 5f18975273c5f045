"""Which scenarios are copies of each other.

Two scenarios are copies where the agent meets the same: the same mail and the same answers of the services. What a
copying hand changes does not count: case, white space, every number (serial numbers, dates, amounts), the name and
address of a sender who may be a person, and a name as signature. Nor does what is expected of the agent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from guarantee_email_agent.email.no_reply import sender_reason
from guarantee_email_agent.eval.models import EvalInput, EvalTestCase
from guarantee_email_agent.runlog.distinct_mails import FINGERPRINT_BYTES
from guarantee_email_agent.utils.addresses import parse_address

_DIGIT: Final = re.compile(r"\d")
_NUMBER_PARTS: Final = re.compile(r"([0-9]+)|([a-z]+)|[!-/:-@\[-`{-~]+")
_WORDS: Final = re.compile(r"\w+")
_IGNORED_HEADERS: Final = frozenset({"date", "message-id", "received"})
_MAX_NAME_WORDS: Final = 3


def mail_fingerprint(case: EvalTestCase) -> bytes:
    """16 bytes that are the same for copies."""
    said = (_fold(repr([_ordered(turn.says) for turn in case.turns])),) if case.turns else ()
    facts = repr((*_what_the_agent_meets(case.input), *said)).encode(errors="backslashreplace")
    return hashlib.blake2b(facts, digest_size=FINGERPRINT_BYTES).digest()


def _what_the_agent_meets(met: EvalInput) -> tuple[object, ...]:
    mail = met.email
    address = parse_address(mail.from_address)
    display_name = mail.from_address.partition("<")[0].strip(' "')
    names = {word.casefold() for word in _WORDS.findall(display_name)}
    if address is not None:
        names.update(word.casefold() for word in _WORDS.findall(address.partition("@")[0]))
    is_name = len(display_name.split()) <= _MAX_NAME_WORDS
    headers = sorted((name.casefold(), _fold(value)) for name, value in mail.headers.items())
    return (
        _fold(mail.subject, names),
        _fold(_without_signature(mail.body), names),
        address if address is None or sender_reason(address, frozenset()) else "a person",
        "" if is_name else _fold(display_name),
        [(name, value) for name, value in headers if name not in _IGNORED_HEADERS],
        [_fold(name) for name in mail.attachments],
        _fold(repr(_ordered(met.mock_responses))),
        met.previous_reply and _fold(repr(met.previous_reply)),
        met.agent and _fold(repr(met.agent)),
        *(() if met.task is None else (_fold(repr(_ordered(met.task))), _fold(repr(_ordered(met.world))))),
    )


def _fold(text: str, names: Iterable[str] = ()) -> str:
    words = " ".join([_fold_number(word) if _DIGIT.search(word) else word for word in text.casefold().split()])
    for name in sorted(names):
        if name in words:
            words = re.sub(rf"\b{re.escape(name)}\b", "name", words)
    return words


def _fold_number(word: str) -> str:
    """`SN12345`, `HX-77-20391` and `tv.4` alike; signs that are not ASCII are a matter of their own."""
    folded = _NUMBER_PARTS.sub(lambda part: "0" if part[1] else "a" if part[2] else "", word)
    return re.sub("0+", "0", folded)


def _without_signature(body: str) -> str:
    """Without a last line of one to three capitalised words, a name by all appearance, below other text."""
    text, line_break, last = body.rstrip().rpartition("\n")
    words = last.strip(" ,.-").split()
    is_name = 0 < len(words) <= _MAX_NAME_WORDS and all(word[0].isupper() and word[-1].isalpha() for word in words)
    return text if line_break and is_name else body


def _ordered(value: object) -> object:
    """Mappings as lists in the order of their keys."""
    if isinstance(value, dict):
        return [(key, _ordered(value[key])) for key in sorted(value, key=str)]
    return [_ordered(item) for item in value] if isinstance(value, (list, tuple)) else value
