"""A week among machines that answer every reply of ours: what it costs until the agent has had enough."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from mailbox_in_memory import KEY, MailboxInMemory, Tickets, Warranties, worker_on

from guarantee_email_agent.agent.mail_worker import MailWorker
from guarantee_email_agent.config.settings import ReplyLimits
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.services.ports import InboxEntry, Reply

WEEK_S = 7 * 86_400.0
PER_HOUR = 20
AWAY = "Thank you for your mail about the dryer. I am travelling and will read it when I am back in the office."

Autoresponder = Callable[[Reply, int], bytes]


def raw_mail(sender: str, subject: str, body: str, number: int, *headers: str) -> bytes:
    lines = [f"From: {sender}", "To: support@example.com", f"Subject: {subject}", f"Message-ID: <auto-{number}@x.org>"]
    return "\r\n".join([*lines, *headers, "", body, ""]).encode()


def answering(reply: Reply) -> str:
    return f"References: {reply.message_id}"


def with_headers(reply: Reply, number: int) -> bytes:
    return raw_mail(reply.to, f"Re: {reply.subject}", AWAY, number, answering(reply), "Auto-Submitted: auto-replied")


def without_headers(reply: Reply, number: int) -> bytes:
    return raw_mail(reply.to, f"Re: {reply.subject}", AWAY, number, answering(reply))


def quoting_us(reply: Reply, number: int) -> bytes:
    return raw_mail(reply.to, f"Re: {reply.subject}", reply.body, number, answering(reply))


def new_senders_and_words(reply: Reply, number: int) -> bytes:
    return raw_mail(f"desk-{number}@x.org", f"Note {number}", f"{AWAY} S/N SN12345, note number {number}", number)


def limited(worker: MailWorker) -> MailWorker:
    """With fewer mails an hour than by default, since a test has to send them all."""
    return replace(worker, settings=replace(worker.settings, limits=ReplyLimits(per_hour=PER_HOUR)))


@pytest.fixture
def week(tmp_path: Path) -> Iterator[Callable[[Autoresponder, float], list[Reply]]]:
    now = 1_800_000_000.0
    ledger = open_ledger(str(tmp_path / "ledger.db"), key=KEY, now=lambda: now)

    def run(autoresponder: Autoresponder, delay_s: float) -> list[Reply]:
        """Every reply of ours; each is answered `delay_s` later, and a customer begins it all every morning."""
        nonlocal now
        mailbox = MailboxInMemory()
        worker = limited(worker_on(mailbox, ledger, Warranties(), Tickets()))
        end, number = now + WEEK_S, 0
        while now < end:
            number += 1
            name, received = f"customer-{number}", now
            mailbox.mails[name] = raw_mail(
                "jane@x.org", "Dryer", f"Is my dryer SN12345 under warranty? Day {number}", number
            )
            while received < end:
                sent = len(mailbox.replies)
                asyncio.run(worker.work(InboxEntry(name, 1000, received), now))
                if len(mailbox.replies) == sent:
                    break  # a machine that gets no answer is silent
                number += 1
                now += delay_s
                name, received = f"machine-{number}", now
                mailbox.mails[name] = autoresponder(mailbox.replies[-1], number)
            now += 86_400.0
        return mailbox.replies

    yield run
    ledger.close()


@pytest.mark.parametrize("delay_s", [2.0, 90.0])
@pytest.mark.parametrize("autoresponder", [with_headers, without_headers, quoting_us])
def test_one_that_answers_our_reply_gets_none(
    week: Callable[[Autoresponder, float], list[Reply]], autoresponder: Autoresponder, delay_s: float
) -> None:
    assert len(week(autoresponder, delay_s)) == 7  # one a day for the customer


@pytest.mark.slow
def test_one_that_changes_everything_runs_into_the_limit_of_an_hour(
    week: Callable[[Autoresponder, float], list[Reply]],
) -> None:
    assert len(week(new_senders_and_words, 2.0)) <= 7 * PER_HOUR


def test_who_tries_serial_numbers_has_five_look_ups_a_day_for_an_address_and_some_an_hour_in_all(
    tmp_path: Path,
) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.db"), key=KEY, now=lambda: 1_800_000_000.0)
    mailbox, warranties = MailboxInMemory(), Warranties()
    worker = limited(worker_on(mailbox, ledger, warranties, Tickets()))

    def look_ups(*senders: str) -> int:
        """How many of the mails, each with another number, are looked up."""
        before = warranties.calls
        for sender in senders:
            number = len(mailbox.mails)
            mailbox.mails[f"{number}"] = raw_mail(sender, "Warranty", f"Is SN{10_000 + number} covered?", number)
            asyncio.run(worker.work(InboxEntry(f"{number}", 1000, 1_800_000_000.0), 1_800_000_000.0))
        return warranties.calls - before

    assert look_ups(*["one@x.org"] * 20) == 5
    assert look_ups(*(f"sender-{number}@x.org" for number in range(40))) == PER_HOUR - 5
    ledger.close()
