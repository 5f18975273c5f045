"""What people sent, beside what the agent wrote or would have: compared word by word.

Of a reply that waits for a person's, only a keyed hash of each word is kept, another one for every mail, so that
neither words nor their frequency can be read off it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from operator import attrgetter
from typing import Final

from guarantee_email_agent.email.conversation import answered_message_ids
from guarantee_email_agent.email.identity import admission_key, content_identity
from guarantee_email_agent.email.parsing.email import DERIVED_ID_SUFFIX, Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor import OPEN_TICKET_NUMBER
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.services.ports import Comparison, WrittenReply
from guarantee_email_agent.utils.errors import ProcessingError
from guarantee_email_agent.utils.text import normalize_phrase

MOST_SENT_BYTES: Final = 200_000
"""Of a mail that was sent: its text stands before what is attached."""

_MOST_WORDS: Final = 2_000  # to compare takes the product of both
_EDITED_PERCENT: Final = 50  # fewer words in common are another answer
_DIGITS: Final = 4  # of a word's hash: one in 65,536 others has the same
_FILLED_IN: Final = "-" * _DIGITS
"""Stands for the ticket's number, which a person has to write."""


def read_sent(raw: bytes) -> Email | None:
    """None for what is no mail."""
    with suppress(ProcessingError):
        return parse_email(raw)
    return None


def answers_by_mail(sent: Iterable[Email]) -> dict[str, list[Email]]:
    """What people sent, the earliest first, by the Message-ID of the mail that it answers, or forwards."""
    found: dict[str, list[Email]] = {}
    for email in sorted(sent, key=attrgetter("received")):
        is_automatic = email.headers.get("auto-submitted", ("no",))[0].strip().lower() != "no"
        ids = answered_message_ids(email)
        if ids and not is_automatic:
            found.setdefault(ids[-1], []).append(email)
    return found


def goes_to(email: Email, address: str) -> bool:
    """Else it may be a question to a colleague, which names the customer's mail just as well."""
    return address.lower() in map(str.lower, email.recipients)


def written_text(email: Email) -> str:
    """What stands in it without what it quotes."""
    return "".join(span.text for span in email.spans if span.kind != "quoted")


def words_of(text: str) -> list[str]:
    return normalize_phrase(text).split()[:_MOST_WORDS]


def likeness(one: Sequence[str], other: Sequence[str]) -> int | None:
    """Percent of the words that two texts have in common, in their order, rounded down.

    None, not known, for an answer without text, as one that is encrypted, and for what is cut.
    """
    if not other or max(len(one), len(other)) >= _MOST_WORDS:
        return None
    return int(100 * SequenceMatcher(None, one, other, autojunk=False).ratio())


def message_key(message_id: str, key: bytes) -> str:
    """What the ledger knows a mail by whose answer is awaited."""
    return admission_key("message", message_id, key)


def written_reply(result: ProcessingResult, mail_key: str, key: bytes) -> WrittenReply | None:
    """What is kept of a draft, or of a reply that would have been sent; None where there is neither."""
    if not (result.drafted or result.observed) or result.response_body is None:
        return None
    if result.message_id.endswith(DERIVED_ID_SUFFIX):
        return WrittenReply(None, None)  # no answer can name it
    marker = OPEN_TICKET_NUMBER.replace(" ", "-")
    found = words_of(result.response_body.replace(OPEN_TICKET_NUMBER, marker))
    hashed = (_FILLED_IN if marker in word else _hashed(word, mail_key, key) for word in found)
    to = _hashed(str(result.recipient).lower(), mail_key, key)
    return WrittenReply(message_key(result.message_id, key), "".join((to, *hashed)))


def compare(written: str, sent: Iterable[Email], mail_key: str, key: bytes) -> tuple[Comparison, int | None] | None:
    """How a person's answer compares with the agent's, and the percent of words that they have in common.

    written: as `written_reply` has it. sent: what goes on with the mail; None where nothing of it went to the customer.
    """
    to, *one = [written[place : place + _DIGITS] for place in range(0, len(written), _DIGITS)]
    answer = next(
        (mail for mail in sent if to in (_hashed(each.lower(), mail_key, key) for each in mail.recipients)), None
    )
    if answer is None:
        return None
    other = [_hashed(word, mail_key, key) for word in words_of(written_text(answer))]
    if len(one) == len(other):
        one = [theirs if ours == _FILLED_IN else ours for ours, theirs in zip(one, other, strict=True)]
    if (percent := likeness(one, other)) is None:
        return "unknown", None
    return "as_it_was" if percent == 100 else "edited" if percent >= _EDITED_PERCENT else "another", percent


def _hashed(word: str, mail_key: str, key: bytes) -> str:
    return content_identity(f"{mail_key} {word}".encode("utf-8", "surrogatepass"), key)[:_DIGITS]
