"""The summary of a day over a real mail system: that it arrives, waits for a server that is down, and comes once."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mail_servers import ADDRESS, MailServers
from steered_desk import SteeredDesk
from tcp_proxy import TcpProxy

from guarantee_email_agent.agent.daily_summary import DailySummary
from guarantee_email_agent.agent.identity_key import identity_key
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import AgentError

pytestmark = pytest.mark.slow
DAY_S = 86_400.0
KEY = "a key of this test"


class Desk:
    """A desk whose mailbox is the real mail system's, and what `lead@example.com` got."""

    def __init__(self, folder: Path, servers: MailServers, ledger: str, smtp_port: int, to: str) -> None:
        self._servers, self._folder, self._ledger = servers, folder, ledger
        tls = {"host": "localhost", "security": "tls"}
        mailbox: dict[str, Any] = {
            "from_address": ADDRESS,
            "copy_wait_s": 2,
            "imap": {**tls, "port": servers.imaps_port, "ca_file": str(servers.ca_file)},
            "smtp": {**tls, "port": smtp_port},
        }
        SteeredDesk(folder, mailbox=mailbox, agent={"ledger": ledger}, summary={"at": "00:00", "zone": "UTC", "to": to})

    @property
    def config(self) -> Config:
        environ = {"IMAP_PASSWORD": self._servers.password, "LEDGER_KEY": KEY}
        return load_config(self._folder / "config.yaml", environ=environ, cwd=self._folder)

    def ledger(self) -> closing[Ledger]:
        """On SQLite a day later, so that a day is over in any case."""
        key = identity_key(self.config)
        return closing(open_ledger(self._ledger, key=key, now=lambda: time.time() + DAY_S))

    def agent(self, ledger: Ledger) -> DailySummary:
        return DailySummary(self.config, ledger, identity_key(self.config), 0.0, SystemClock())

    def told(self) -> list[bytes]:
        self._servers.wait_until_sent()
        return [raw for raw in self._servers.sent_to_customers() if b"summary of" in raw]


@pytest.fixture
def ledger_place(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


@pytest.fixture
def desk(tmp_path: Path, mail_servers: MailServers, ledger_place: str) -> Desk:
    return Desk(tmp_path, mail_servers, ledger_place, mail_servers.smtps_port, "lead@example.com")


def test_it_arrives_and_says_that_a_machine_wrote_it(desk: Desk) -> None:
    with desk.ledger() as ledger:
        assert asyncio.run(desk.agent(ledger).tell_if_due())
    (told,) = desk.told()
    assert b"To: lead@example.com\r\n" in told or b"To: lead@example.com\n" in told
    assert b"Auto-Submitted: auto-replied" in told
    assert b"Down now: nothing" in told


def test_with_the_mail_server_down_at_that_minute_it_comes_later_and_once(
    tmp_path: Path, mail_servers: MailServers, ledger_place: str
) -> None:
    with TcpProxy(mail_servers.smtps_port) as proxy:  # nobody listens there any more once it has ended
        desk = Desk(tmp_path, mail_servers, ledger_place, proxy.port, "lead@example.com")
    with desk.ledger() as ledger:
        summary = desk.agent(ledger)
        with pytest.raises(AgentError) as raised:
            asyncio.run(summary.tell_if_due())
        assert raised.value.code == "mail_unavailable"
        desk = Desk(tmp_path / "again", mail_servers, ledger_place, mail_servers.smtps_port, "lead@example.com")
        summary = desk.agent(ledger)
        assert [asyncio.run(summary.tell_if_due()) for _ in range(2)] == [True, False]
    assert len(desk.told()) == 1


def test_an_address_that_is_refused_for_good_is_an_error_that_says_what_to_do(
    tmp_path: Path, mail_servers: MailServers, ledger_place: str, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(tmp_path, mail_servers, ledger_place, mail_servers.smtps_port, "nobody@example.net")

    async def until_told() -> None:
        async with desk.agent(ledger).running():
            while not caplog.records:
                await asyncio.sleep(0.01)

    caplog.set_level(logging.WARNING, "guarantee_email_agent.agent.daily_summary")
    with desk.ledger() as ledger:
        asyncio.run(until_told())
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == (
        "The mail server refuses the summary of the day for good. Correct summary.to; next try in 60 min "
        "(mail_rejected)"
    )


def test_of_two_agents_on_one_ledger_one_tells(desk: Desk) -> None:
    async def both(*summaries: DailySummary) -> list[bool]:
        return await asyncio.gather(*(summary.tell_if_due() for summary in summaries))

    with desk.ledger() as one, desk.ledger() as other:
        assert sorted(asyncio.run(both(desk.agent(one), desk.agent(other)))) == [False, True]
    assert len(desk.told()) == 1
