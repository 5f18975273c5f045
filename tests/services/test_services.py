"""The clients of a configuration, where their files are missing and where a service hangs."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from guarantee_email_agent.config.settings import Config, MailboxSettings, Tickets, Warranties
from guarantee_email_agent.services import blocking
from guarantee_email_agent.services.services import create_services
from guarantee_email_agent.services.ticket_store import TicketStore
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import IntegrationError

pytestmark = pytest.mark.anyio

NOWHERE = Path("/nowhere")
CONFIG = Config(
    mailbox=MailboxSettings(from_address="support@example.com", maildir=NOWHERE / "inbox"),
    warranties=Warranties(NOWHERE / "w.csv"),
    tickets=Tickets(NOWHERE / "t.db"),
)


@pytest.mark.parametrize(
    ("service", "message"),
    [
        ("warranty_api", "warranties.file: /nowhere/w.csv: cannot be read"),
        ("ticketing", "tickets.database: /nowhere/t.db: the folder /nowhere "),
        ("mail", "mailbox.maildir: "),
    ],
)
async def test_a_missing_file_is_named_with_its_setting(service: str, message: str) -> None:
    services = create_services(CONFIG, SystemClock())
    with pytest.raises(IntegrationError) as caught:
        await {"mail": services.mail, "ticketing": services.ticketing, **services.look_ups}[service].test_connection()
    assert caught.value.message.startswith(message)
    assert "/nowhere" in caught.value.message
    await services.close()


async def test_closing_waits_for_no_call_once_it_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by Ctrl-C while a service hangs."""
    begun, may_end = threading.Event(), threading.Event()
    monkeypatch.setattr(TicketStore, "find", lambda *_: (begun.set(), may_end.wait(PATIENCE_S)))
    monkeypatch.setattr(blocking, "CLOSE_S", 10 * PATIENCE_S)
    services = create_services(replace(CONFIG, tickets=Tickets(tmp_path / "t.db")), SystemClock())

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
