"""What customers, machines and a copying mail server put into the inbox."""

from dataclasses import dataclass
from typing import Final, Literal

from guarantee_email_agent.services.ports import MailMark, Outcome

Kind = Literal["valid", "expired", "missing", "automatic", "angry", "robot", "old"]

_TEXTS: Final[dict[Kind, str]] = {
    "valid": "Is my dryer SN12345 still under warranty?",
    "expired": "Is my dryer SN54321 still under warranty?",
    "missing": "Is my dryer still under warranty?",
    "automatic": "I am out of office until Monday. Is my dryer SN12345 still under warranty?",
    "angry": "My lawyer will sue you over my dryer SN12345.",
    "robot": "Is my dryer SN12345 still under warranty?",
    "old": "Is my dryer SN12345 still under warranty?",
}
OUTCOMES: Final[dict[Kind, frozenset[Outcome]]] = {
    "valid": frozenset({"answered"}),
    "expired": frozenset({"answered"}),
    "missing": frozenset({"answered"}),
    "automatic": frozenset({"not_answered"}),
    "angry": frozenset({"handed_over"}),
    "robot": frozenset({"answered", "handed_over", "not_answered"}),
    "old": frozenset({"handed_over"}),
}
"""How a mail of each kind ends if nothing goes wrong with it; a follow-up may be handed over as well."""

TICKET_KINDS: Final = frozenset({"valid", "robot"})


@dataclass(slots=True)
class Letter:
    """One mail as it lies in the inbox. content: names what was written; copies of a mail share it."""

    id: str
    """Changes where it is moved: `earlier_ids` are those before."""

    content: str
    kind: Kind
    raw: bytes
    received: float
    mark: MailMark | None = None
    taken_care_of_at: float | None = None
    """When a person answered or flagged it."""

    follow_up: bool = False
    withheld: bool = False
    """Whether the mail server does not hand it out."""

    refused: bool = False
    """Whether the mail server takes no reply to it, for now and for ever."""

    is_altered: bool = False
    """Whether there is a copy of it in other words, or it is one."""

    is_too_old: bool = False
    """Whether it is listed no more, although it waits; `taken_care_of_at` is since when."""

    earlier_ids: tuple[str, ...] = ()
    reopened: bool = False
    """Whether a person took its mark off."""

    steered: bool = False
    """Whether a person took it over at the command line."""


def letter_text(content: str, kind: Kind, sender: str, answers: str | None = None, text: str | None = None) -> bytes:
    """An RFC 5322 mail. answers: the Message-ID of the mail that it is a reply to."""
    headers = {
        "From": f"{sender}@example.org",
        "To": "support@example.com",
        "Subject": f"Dryer {content}",
        "Date": "Sun, 18 Jan 2015 10:00:00 +0000" if kind == "old" else "Fri, 15 Jan 2027 08:00:00 +0000",
        "Message-ID": f"<{content}@example.org>",
    }
    if answers:
        headers |= {"In-Reply-To": answers, "References": answers}
    if kind == "automatic":
        headers["Auto-Submitted"] = "auto-replied"
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", text or _TEXTS[kind], ""]).encode()
