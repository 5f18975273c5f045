"""The mail as the rest of the agent sees it, whatever form it arrived in, and the limits on what is read of one.

Past a limit the rest is left out, `Email.problems` says so, and a person gets the mail. The limits lie well above what
people send and keep the work on the worst mail at about a second.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from guarantee_email_agent.email.phrases import phrases_of

MAX_MAIL_BYTES = 25_000_000  # what the large providers let through with attachments
MAX_PART_BYTES = 4_000_000  # one text part as sent, before base64 or quoted-printable is decoded
MAX_HTML_CHARS = 1_000_000  # all HTML of a mail; styles and markup are most of it
MAX_BODY_CHARS = 200_000  # the text that is labelled and searched for a serial number
MAX_SUBJECT_CHARS = 1_000  # RFC 5322 §2.1.1 allows 998 a line
MAX_HEADER_CHARS = 10_000  # one header, unfolded; a value of that length was cut
MAX_HEADERS = 1_000
MAX_MIME_DEPTH = 20
MAX_PARTS = 200
MAX_ATTACHMENTS = 200
MAX_NAME_CHARS = 255  # an attachment's name: what file systems take
MAX_RECIPIENTS = 100
MAX_MESSAGE_ID_CHARS = 998
MAX_DATE_CHARS = 100

SpanKind = Literal["new", "quoted", "signature"]

DERIVED_ID_SUFFIX = "@missing.message-id>"
"""Ends a Message-ID that we derived for a mail without one; no other program knows the mail by it."""

SEVERAL_AUTHORS = "the mail has more than one author; the first counts"
"""The problem of a mail whose From holds several addresses, which nobody can vouch for."""

DAMAGED_HEADER = "the header holds a line that is no header field, or a bare CR"
TOO_MANY_HEADERS = f"the mail has more than {MAX_HEADERS} headers; the rest was left out"
REPEATED_HEADER = "a field that may stand in a header once stands there twice; the first counts"
HEADER_DAMAGES = frozenset({DAMAGED_HEADER, TOO_MANY_HEADERS, REPEATED_HEADER})
"""The problems by which a header may have said more than was read: that no person wrote the mail, for one."""

UNDECODED = "a text cannot be decoded and was taken as it is"
UNREAD_ENDINGS = ("left out", UNDECODED)
"""How the problems end by which a mail may have said more than was read."""

_ADDRESS = r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"
_FORWARD = r"[-_*=]|\w+ ?:"  # a divider, or a block of header lines
_QUOTE_PREFIX = r"(?m)^[ \t]*>[> \t]*"


def is_reply_or_forward(subject: str) -> bool:
    """Whether a lower-case subject starts with what mail programs put before that of an earlier mail."""
    return subject.startswith(phrases_of("reply prefixes", "forward prefixes"))


class Span(NamedTuple):
    """A run of the body, in the sender's words: freshly written, quoted from earlier, or a signature.

    Of whole lines, unless a line holds an answer and, behind it, the start of a quotation.
    """

    kind: SpanKind
    text: str


@dataclass(frozen=True, slots=True)
class Email:
    """One mail. The texts of `spans`, joined in order, are the whole body after `normalize_text`."""

    message_id: str
    """As sent, with its angle brackets where it had them; derived from the content where there was none."""

    sender: str
    """The bare address of the author; empty only where the mail says `<>` (RFC 5321 §4.5.5: never answer)."""

    recipients: tuple[str, ...]
    """Bare addresses, in order, each once."""

    subject: str
    """One line."""

    received: str
    """ISO 8601 where the source gave a date that can be read, else what it gave, else empty."""

    spans: tuple[Span, ...]
    attachments: tuple[str, ...]
    """Names only; an attachment's content is never opened."""

    headers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Lower-case names to unfolded values as sent (RFC 2047 words not decoded), in order of appearance."""

    thread_id: str | None = None
    problems: tuple[str, ...] = ()
    """What was wrong with the mail's form and how it was read all the same; never its text."""

    content_types: tuple[str, ...] = ()
    """Of the mail and its parts, lower-case, a calendar's with its method: `text/calendar reply`. Left out are files of
    calendars without one."""

    is_answer: bool = field(init=False, repr=False, compare=False)
    """Whether the subject is that of an earlier mail, answered or forwarded."""

    new_text: str = field(init=False, repr=False, compare=False)
    """What the sender wrote for this mail."""

    quoted_text: str = field(init=False, repr=False, compare=False)
    """What stems from earlier mails, without the `>` marks."""

    signature_text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        quoted = self._text("quoted")
        object.__setattr__(self, "is_answer", is_reply_or_forward(self.subject.casefold()))
        object.__setattr__(self, "new_text", self._text("new"))
        object.__setattr__(self, "quoted_text", re.sub(_QUOTE_PREFIX, "", quoted) if quoted else "")
        object.__setattr__(self, "signature_text", self._text("signature"))

    @property
    def own_subject(self) -> str:
        """The subject where it was written for this mail; empty where it repeats an earlier one."""
        return "" if self.is_answer else self.subject

    @property
    def original_message_id(self) -> str | None:
        """The Message-ID by which the sender's program knows this mail; None where it has none."""
        return None if self.message_id.endswith(DERIVED_ID_SUFFIX) else self.message_id

    @property
    def quotes_others(self) -> bool:
        """Whether what is quoted begins with "On Monday, X wrote:", and X is neither the sender nor a recipient.

        Only an address tells; and whoever forwards a mail makes it their own.
        """
        if not self.quoted_text:
            return False
        first, *following = self.quoted_text.split("\n", 2)
        attribution = first if first.rstrip().endswith(":") else " ".join((first, *following[:1]))  # which may wrap
        author = None if re.match(_FORWARD, first) else re.search(_ADDRESS, attribution)
        ours = {address.casefold() for address in (self.sender, *self.recipients)}
        return author is not None and author[0].casefold() not in ours

    def _text(self, kind: SpanKind) -> str:
        return "".join([span.text for span in self.spans if span.kind == kind]).strip()
