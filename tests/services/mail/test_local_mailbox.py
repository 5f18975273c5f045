"""The mailbox as the agent calls it: circuits, deadlines, and how long a proof is waited for."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mail_stores import REPLY
from mcp_sessions import failure
from virtual_time import SleptClock
from waiting import PATIENCE_S

from guarantee_email_agent.services.blocking import BlockingService
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.mail_store import LocalMailbox
from guarantee_email_agent.services.mail.maildir import Maildir
from guarantee_email_agent.services.ports import SentState

pytestmark = pytest.mark.anyio


class Store(Maildir):
    """A Maildir that a test steers."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, "support@example.com", create=True)
        self.states: list[SentState] = []
        self.looks: list[bool] = []
        """Whether each was everywhere."""
        self.problem: ToolError | None = None
        self.waiting = threading.Event()
        self.stopped = threading.Event()

    def find_sent(self, message_id: str, everywhere: bool = False) -> SentState:
        self.looks.append(everywhere)
        return self.states.pop(0) if self.states else "not_sent"

    def send(self, *_: object) -> Any:
        assert self.problem
        raise self.problem

    save_draft = list_unprocessed = test_connection = send

    def wait(self, timeout_s: float, stop: threading.Event) -> bool:
        self.waiting.set()
        if stop.wait(timeout_s):
            self.stopped.set()
        return False


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "inbox")


@pytest.fixture
def clock() -> SleptClock:
    return SleptClock()


@pytest.fixture
def make_mailbox(store: Store, clock: SleptClock) -> Callable[..., LocalMailbox]:
    def make(**settings: Any) -> LocalMailbox:
        service = BlockingService("mail", "mailbox.maildir", lambda: store, PATIENCE_S)
        return LocalMailbox(service, clock, copy_wait_s=10.0, **settings)

    return make


@pytest.fixture
def mailbox(make_mailbox: Callable[..., LocalMailbox]) -> LocalMailbox:
    return make_mailbox()


class TestProof:
    async def test_that_lags_is_waited_for(self, mailbox: LocalMailbox, store: Store, clock: SleptClock) -> None:
        store.proof_lags, store.states = True, ["unknown", "not_sent", "sent"]
        assert await mailbox.find_sent(REPLY.message_id, wait_s=5.0) == "sent"
        assert store.looks == [False] * 3
        assert 0 < clock.monotonic() < 5

    @pytest.mark.parametrize(("wait_s", "waited_s"), [(5.0, 5.0), (60.0, 10.0)])
    async def test_that_does_not_come_is_looked_for_everywhere_at_the_last_try(
        self, mailbox: LocalMailbox, store: Store, clock: SleptClock, wait_s: float, waited_s: float
    ) -> None:
        """Nor is it waited for longer than a copy may take."""
        store.proof_lags = True
        assert await mailbox.find_sent(REPLY.message_id, wait_s) == "not_sent"
        assert clock.monotonic() == pytest.approx(waited_s)
        assert store.looks == [False] * (len(store.looks) - 1) + [True]
        assert len(store.looks) > 4

    async def test_that_is_there_with_the_reply_is_not_waited_for(
        self, mailbox: LocalMailbox, store: Store, clock: SleptClock
    ) -> None:
        assert await mailbox.find_sent(REPLY.message_id, wait_s=5.0) == "not_sent"
        assert (store.looks, clock.monotonic()) == ([True], 0.0)


@pytest.mark.parametrize(("method", "retryable"), [("send", False), ("save_draft", False), ("list_unprocessed", True)])
async def test_a_reply_that_may_have_been_taken_is_not_tried_again(
    mailbox: LocalMailbox, store: Store, method: str, retryable: bool
) -> None:
    store.problem = ToolError("mail_timeout", "no answer", retryable=True, uncertain=True)
    arguments = () if method == "list_unprocessed" else (REPLY,)
    error = await failure(getattr(mailbox, method)(*arguments))
    assert (error.code, error.retryable, error.uncertain) == ("mail_timeout", retryable, True)


async def test_waiting_that_is_cancelled_ends_its_thread(mailbox: LocalMailbox, store: Store) -> None:
    waiting = asyncio.create_task(mailbox.wait_for_mail(PATIENCE_S))
    assert await asyncio.to_thread(store.waiting.wait, PATIENCE_S)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await asyncio.to_thread(store.stopped.wait, PATIENCE_S)


async def test_an_observer_only_counts_the_mails(
    make_mailbox: Callable[..., LocalMailbox], mailbox: LocalMailbox, store: Store
) -> None:
    store.problem = ToolError("mail_folder_missing", "there is no folder")
    assert await make_mailbox(read_only=True).test_connection()
    assert (await failure(mailbox.test_connection())).code == "mail_folder_missing"
