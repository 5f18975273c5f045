"""Looks in the Sent folder for what people answered where the agent drafted a reply or would have sent one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.people_answers import MOST_SENT_BYTES, answers_by_mail, compare, message_key
from guarantee_email_agent.ledger.comparisons import AWAITED_S
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.utils.errors import ProcessingError

_LATE_S: Final = 3600.0  # how long a program may take to file what it sent


@dataclass(slots=True)
class SentAnswers:
    """Of one mailbox; what was read before is read again only for a mail that it answers.

    list_sent: as a MailClient has it.
    """

    list_sent: Callable[[float, int], Awaitable[list[bytes]]]
    ledger: Ledger
    mailbox_key: str
    key: bytes
    looked_at: float | None = None
    answered: set[str] = field(default_factory=set)
    unclear: set[str] = field(default_factory=set)

    async def look(self) -> None:
        """Compare what is there. Raises LedgerError, and IntegrationError where nobody can tell what was sent."""
        awaited = await asyncio.to_thread(self.ledger.comparisons.awaited, self.mailbox_key)
        if not awaited:
            return
        now = await asyncio.to_thread(self.ledger.time)
        since = now - AWAITED_S
        if self.looked_at is not None and not self.answered.intersection(each.message_key for each in awaited):
            since = max(since, self.looked_at - _LATE_S)
        sent, is_complete = await asyncio.to_thread(_parsed, await self.list_sent(since, MOST_SENT_BYTES))
        answers = {message_key(mail_id, self.key): mails for mail_id, mails in answers_by_mail(sent).items()}
        self.answered |= answers.keys()
        for each in awaited:
            mails = answers.get(each.message_key, [])
            found = await asyncio.to_thread(compare, each.reply_words, mails, each.mail_key, self.key)
            if found is not None:
                await asyncio.to_thread(self.ledger.comparisons.save, each.mail_key, *found)
            elif mails or not is_complete:  # what cannot be read, or went to somebody else, may be the answer
                self.unclear.add(each.mail_key)
            elif each.mail_key not in self.unclear:
                await asyncio.to_thread(self.ledger.comparisons.not_answered, each.mail_key)
        self.looked_at = now


def _parsed(sent: list[bytes]) -> tuple[list[Email], bool]:
    """The mails that can be read, and whether these are all."""
    found = []
    for raw in sent:
        try:
            found.append(parse_email(raw))
        except ProcessingError:
            continue
    return found, len(found) == len(sent)
