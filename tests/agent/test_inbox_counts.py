from __future__ import annotations

import asyncio
import hashlib
from contextlib import closing
from pathlib import Path

from mailbox_in_memory import KEY, MailboxInMemory

from guarantee_email_agent.agent.inbox_counts import count_inbox
from guarantee_email_agent.integrations.ports import ANY_MAIL
from guarantee_email_agent.ledger.ledger import Claim
from guarantee_email_agent.ledger.opening import open_ledger


def location_key(mail_id: str) -> str:
    return hashlib.sha256(mail_id.encode()).hexdigest()


def test_observed_mails_are_not_among_those_to_answer(tmp_path: Path) -> None:
    mailbox = MailboxInMemory("observed", "begun", "new")
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY)) as ledger:
        claims = {
            name: ledger.claim(location_key(name), location_key=location_key(name), owner="this:1", lease_s=100)
            for name in ("observed", "begun")
        }
        assert isinstance(claims["observed"], Claim)
        ledger.finish(claims["observed"], "observed")
        counts = asyncio.run(count_inbox(mailbox, ledger, ANY_MAIL, location_key))
    assert (counts["unprocessed"], counts["observed"]) == (2, 1)


def test_where_none_waits_no_list_is_asked_for(tmp_path: Path) -> None:
    mailbox = MailboxInMemory("answered")
    mailbox.marks["answered"] = "answered"
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY)) as ledger:
        counts = asyncio.run(count_inbox(mailbox, ledger, ANY_MAIL, location_key))
    assert (counts["unprocessed"], counts["answered"], mailbox.limits) == (0, 1, [])
