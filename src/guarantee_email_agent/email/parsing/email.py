"""The mail as the rest of the agent sees it: labelled text and plain facts, whatever form it arrived in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SpanKind = Literal["new", "quoted", "signature"]

REPLY_PREFIXES = ("re:", "aw:", "antw:", "odp:", "sv:", "vs:")
"""What mail programs of several languages put before the subject of a mail answered."""

ANSWER_PREFIXES = (*REPLY_PREFIXES, "rv:", "fwd:", "fw:", "wg:", "pd:", "tr:", "i:")
"""The same for a mail answered or forwarded."""

MISSING_ID_END = "@missing.message-id>"
"""How the Message-ID of a mail ends that came without one, and by which nobody else knows it."""

_QUOTE_MARKS = r"(?m)^[ \t]*>[> \t]*"


@dataclass(frozen=True, slots=True)
class Span:
    """A run of whole lines of the body, in the sender's words: freshly written, quoted from earlier, or a signature."""

    kind: SpanKind
    text: str


@dataclass(frozen=True, slots=True)
class Email:
    """One mail. The texts of `spans`, joined in order, are the whole body after clean-up (see `characters`)."""

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

    @property
    def is_answer(self) -> bool:
        """Whether the subject is that of an earlier mail, answered or forwarded."""
        return self.subject.casefold().startswith(ANSWER_PREFIXES)

    @property
    def id_to_answer(self) -> str | None:
        """The Message-ID by which the sender's program knows this mail; None where it has none."""
        return None if self.message_id.endswith(MISSING_ID_END) else self.message_id

    @property
    def new_text(self) -> str:
        """What the sender wrote for this mail."""
        return self._text("new")

    @property
    def quoted_text(self) -> str:
        """What stems from earlier mails, without the `>` marks."""
        return re.sub(_QUOTE_MARKS, "", text) if (text := self._text("quoted")) else ""

    @property
    def signature_text(self) -> str:
        return self._text("signature")

    def _text(self, kind: SpanKind) -> str:
        spans = self.spans
        if len(spans) == 1:  # almost every first mail of a customer
            return spans[0].text.strip() if spans[0].kind == kind else ""
        return "".join([span.text for span in spans if span.kind == kind]).strip()
