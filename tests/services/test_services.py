"""The clients of a configuration: real files, and programs of others."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp_sessions import TICKET
from waiting import PATIENCE_S

from guarantee_email_agent.config.look_up_settings import LookUpSettings
from guarantee_email_agent.config.settings import Config, MailboxSettings, Tickets, Warranties
from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.services import blocking
from guarantee_email_agent.services.look_up_answer import LookUpAnswer, parse_look_up_answer
from guarantee_email_agent.services.ports import Reply
from guarantee_email_agent.services.services import Services, create_services
from guarantee_email_agent.services.ticket_store import TicketStore
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import IntegrationError

pytestmark = pytest.mark.anyio

NOWHERE = Path("/nowhere")
MAILBOX = MailboxSettings(from_address="support@example.com", maildir=NOWHERE / "inbox")
MAIL = b"From: customer@example.com\r\nTo: support@example.com\r\nMessage-ID: <1@example.com>\r\n\r\nSN-100?\r\n"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "warranties.csv").write_text("serial_number,expiration_date,coverage\nSN-100,2999-12-31,full\n")
    for folder in ("cur", "new", "tmp"):
        (tmp_path / "inbox" / folder).mkdir(parents=True)
    (tmp_path / "inbox" / "new" / "1").write_bytes(MAIL)
    return Config(
        mailbox=MailboxSettings(from_address="support@example.com", maildir=tmp_path / "inbox"),
        warranties=Warranties(tmp_path / "warranties.csv"),
        tickets=Tickets(tmp_path / "tickets.db"),
    )


@pytest.fixture
async def services(config: Config) -> AsyncIterator[Services]:
    services = create_services(config, SystemClock(), os.environ)
    yield services
    await services.close()


async def test_one_mail_goes_all_the_way(services: Services, tmp_path: Path) -> None:
    await asyncio.gather(
        services.mail.test_connection(), services.warranty.test_connection(), services.ticketing.test_connection()
    )
    (entry,) = await services.mail.list_unprocessed()
    assert entry.size == len(MAIL)
    assert await services.mail.read_raw(entry.id, 10_000) == MAIL

    answer = parse_look_up_answer(await services.warranty.check_warranty("sn100"), WARRANTY)
    assert answer == LookUpAnswer("valid", {"expiration_date": "2999-12-31", "coverage": "full"})

    created = await services.ticketing.create_ticket(TICKET)
    assert created == {"ticket_id": "TICKET-000001", "status": "created"}
    assert await services.ticketing.create_ticket(TICKET) == {**created, "status": "existing"}

    reply = Reply(
        "customer@example.com",
        "Re: warranty",
        "It is covered.",
        "<reply-1@example.com>",
        in_reply_to="<1@example.com>",
        references="<1@example.com>",
        headers={"Auto-Submitted": "auto-replied"},
    )
    assert await services.mail.find_sent(reply.message_id) == "not_sent"
    for status in ("sent", "already_sent"):
        assert await services.mail.send(reply) == {"message_id": reply.message_id, "status": status}
    assert await services.mail.find_sent(reply.message_id) == "sent"

    await services.mail.mark(entry.id, "answered")
    assert await services.mail.list_unprocessed() == []
    counts = await services.mail.count_by_outcome()
    assert {name: count for name, count in counts.items() if count} == {"answered": 1}
    assert len(list((tmp_path / "inbox" / ".Sent").glob("[cn]*/*"))) == 1


@pytest.mark.parametrize(
    ("service", "broken", "message"),
    [
        ("warranty", {"warranties": Warranties(NOWHERE / "w.csv")}, "warranties.file: /nowhere/w.csv: cannot be read"),
        ("ticketing", {"tickets": Tickets(NOWHERE / "t.db")}, "tickets.database: /nowhere/t.db: the folder /nowhere "),
        ("mail", {"mailbox": MAILBOX}, "mailbox.maildir: "),
    ],
)
async def test_a_missing_file_is_named_with_its_setting(
    service: str, broken: dict[str, Any], message: str, config: Config
) -> None:
    services = create_services(replace(config, **broken), SystemClock(), os.environ)
    with pytest.raises(IntegrationError) as caught:
        await getattr(services, service).test_connection()
    assert caught.value.message.startswith(message)
    assert "/nowhere" in caught.value.message
    await services.close()


ORDERS = LookUpSettings(("order",), "order_number", ("order",), "[A-Z]{2}-[0-9]{5}", table=Path("orders.csv"))


async def test_closing_waits_for_no_call_once_it_is_cancelled(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by Ctrl-C while a service hangs."""
    begun, may_end = threading.Event(), threading.Event()
    monkeypatch.setattr(TicketStore, "find", lambda *_: (begun.set(), may_end.wait(PATIENCE_S)))
    monkeypatch.setattr(blocking, "CLOSE_S", 10 * PATIENCE_S)

    async def work() -> None:
        try:
            await services.ticketing.test_connection()
        finally:
            await services.close()

    working = asyncio.create_task(work())
    await asyncio.to_thread(begun.wait, PATIENCE_S)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(working, PATIENCE_S)
    may_end.set()
