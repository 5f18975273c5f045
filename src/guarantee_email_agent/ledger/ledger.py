"""The agent's memory across crashes and machines: which agent has claimed which mail, and how far it got.

The mailbox is the queue and the only place with content; here stand keyed hashes, states, ids and counts. Calls block
for as long as a disk or a server takes, so a coroutine puts them on a thread (`asyncio.to_thread`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, Update

from guarantee_email_agent.config.settings import ReplyLimits
from guarantee_email_agent.ledger import tables
from guarantee_email_agent.ledger.agents import RunningAgents
from guarantee_email_agent.ledger.comparisons import Comparisons
from guarantee_email_agent.ledger.conversations import (
    MAX_THREAD_IDS,
    answered_thread,
    describe_thread,
    limit_reached,
)
from guarantee_email_agent.ledger.database import Database, LedgerError
from guarantee_email_agent.ledger.facts import (
    LEDGER_ID,
    TOO_OLD,
    ModelCosts,
    known_first_start,
    read_fact,
    save_first_start,
    write_fact,
)
from guarantee_email_agent.ledger.interventions import Interventions
from guarantee_email_agent.ledger.mail_state import (
    Busy,
    Done,
    Free,
    InboxState,
    MailState,
    Waiting,
    ended,
    mail_state,
    starts_in_future,
)
from guarantee_email_agent.ledger.pruning import prune
from guarantee_email_agent.ledger.tables import TOKEN, Delivery, Stage, require_form
from guarantee_email_agent.services.ports import TICKET_ID, Admission, Limit, Outcome, Thread, WrittenReply
from guarantee_email_agent.utils.errors import AgentError

_HASH = re.compile(r"[0-9a-f]{32,128}")
_REASON = re.compile(r"[a-z0-9_-]{0,64}")
_HASHED_WORDS = re.compile(r"[0-9a-f-]{0,10000}")
_BATCH_SIZE = 1000


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease on one mail: only the holder of the latest one may write.

    fence: higher at every claim of this mail. attempts: this one included; outages and crashes are not counted.
    crashes: how often an agent died over this mail, as far as it was not over several.
    previous: where an earlier claim left it. `sending` asks for proof before anything else is done, `sent` only for
    its end. ticket_key, ticket_id, reply_message_id, reason, delivery: what earlier claims wrote down; `delivery` says
    where the proof of a reply lies, among the mails sent or the drafts.
    """

    mail_key: str
    location_key: str
    fence: int
    attempts: int
    crashes: int
    previous: Literal["new"] | Stage
    ticket_key: str | None
    ticket_id: str | None
    reply_message_id: str | None
    reason: str
    delivery: Delivery


class OpenMails(NamedTuple):
    """Those of a mailbox that have no outcome, are due, and did not change since it was listed in full.

    settled: the reasons of those that are left as they are. listed_at: `time()` before the list was asked for.
    is_complete: False where it was not listed in full; then only those that were given back are known.
    """

    at_mailbox: str
    settled: tuple[str, ...]
    listed_at: float
    is_complete: bool = True


class LeaseLostError(AgentError):
    """Another agent has claimed the mail since: nothing was written, and nothing more may be done for it."""


class Ledger:
    """One row for each mail, and one for each location in a mailbox where it was seen.

    mail_key, location_key: keyed hashes, 32 to 128 lower-case hexadecimal digits. Every write under a claim renews its
    lease in full, so a side effect that follows its intent has all of it. Raises LeaseLostError from any write under a
    claim that another agent has taken over, and LedgerError (`outage`) where the database fails.

    agents: which agents run. costs: of the language model. interventions: what a person does to a mail. comparisons:
    with what people sent.
    What people read of it is in ledger_reader.py, which needs no key.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.agents = RunningAgents(database)
        self.costs = ModelCosts(database)
        self.interventions = Interventions(database)
        self.comparisons = Comparisons(database)

    def claim(
        self,
        mail_key: str,
        *,
        location_key: str,
        owner: str,
        lease_s: float,
        mailbox_key: str | None = None,
        to_unmark: bool = False,
    ) -> Claim | Busy | Waiting | Done:
        """Claim a mail for `lease_s` seconds from now, if it is neither finished nor waiting nor claimed by another.

        A lease that ran out is taken over. In any case the ledger remembers that this mail lies at `location_key`.
        mail_key: `location_key` for a mail that cannot be read. If others could, theirs counts; and what ended before
        it could be read has ended, as what is claimed by then is claimed.
        owner: who claims, for people to read, e.g. `host:pid`. mailbox_key: of the mailbox that the location is in.
        to_unmark: only to take its mark off; it stays one that was given back.
        """
        ids = {
            "mail_key": require_form("mail_key", mail_key, _HASH),
            "place": require_form("location_key", location_key, _HASH),
        }
        lease = {"owner": require_form("owner", owner, TOKEN), "span_s": lease_s}
        lease["if_released"] = tables.RELEASED if to_unmark else ""
        with self._database.write_transaction() as connection:
            known = connection.execute(tables.STATE, _at(location_key)).one_or_none()
            if known is not None and mail_key == location_key:
                mail_key = ids["mail_key"] = known.mail_key
            elif known is not None and known.mail_key == location_key:
                # Whoever takes it over meanwhile, by the key of before, is waited for.
                connection.execute(tables.LOCK, {"at_mail": location_key}).first()
                known = connection.execute(tables.STATE, _at(location_key)).one_or_none()
            unread = known if known is not None and known.mail_key == location_key != mail_key else None
            if unread is not None and unread.outcome is not None:
                return ended(unread)
            if unread is not None and isinstance(held := mail_state(unread), Busy):  # a person releases it, perhaps
                return held
            row = connection.execute(tables.CLAIM[connection.dialect.name], {**ids, **lease}).one_or_none()
            connection.execute(tables.SAVE_LOCATION[connection.dialect.name], {**ids, "mailbox_key": mailbox_key})
            if unread is not None:
                connection.execute(tables.FORGET_PLACELESS, {"at_mail": location_key})
            if row is not None and row.fence > 1:
                # A copy elsewhere may have lost its mark, too: once the mail has ended again, that is no news.
                connection.execute(tables.UNMARK_ALL, {"at_mail": mail_key})
            if row is None:
                found = connection.execute(tables.STATE, _at(location_key)).one()
                if starts_in_future(found):
                    connection.execute(tables.RESTART_FUTURE_SPANS)
                state = mail_state(found)
                # Its time ran out between the two statements: the next call can claim it.
                return Waiting(mail_key, 0.0, found.attempts, found.reason) if isinstance(state, Free) else state
        previous: Literal["new"] | Stage = "new" if row.fence == 1 else row.stage
        kept = row.ticket_key, row.ticket_id, row.reply_message_id, row.reason, row.delivery
        return Claim(mail_key, location_key, row.fence, row.attempts, row.crashes, previous, *kept)

    def intend_ticket(self, claim: Claim, ticket_key: str) -> None:
        """Write down that the ticket with this idempotency key is about to be created."""
        self._write(claim, tables.INTEND_TICKET, ticket_key=require_form("ticket_key", ticket_key, TOKEN))

    def ticket_created(self, claim: Claim, ticket_id: str) -> None:
        """Write down which ticket there is."""
        self._write(claim, tables.TICKET_CREATED, ticket_id=require_form("ticket_id", ticket_id, TICKET_ID))

    def intend_send(self, claim: Claim, reply_message_id: str, *, delivery: Delivery = "send") -> None:
        """Write down that the reply with this Message-ID is about to be sent, or stored as a draft.

        Refused (`ledger_wrong_stage`) while an earlier sending is open: its proof leads to `finish` or `not_sent`.
        """
        message_id = require_form("reply_message_id", reply_message_id, TOKEN)
        self._write(claim, tables.INTEND_SEND, reply_message_id=message_id, delivery=delivery)

    def not_sent(self, claim: Claim) -> None:
        """The reply is known not to have left, so it may be written and sent anew."""
        self._write(claim, tables.NOT_SENT)

    def finish(self, claim: Claim, outcome: Outcome, reason: str = "", written: WrittenReply | None = None) -> None:
        """The mail has ended; the lease is over. To be repeated where it is not known whether it was written.

        reason: a code of up to 64 small letters, digits, `_` and `-`. written: to be compared with a person's answer.
        Raises LedgerError `ledger_wrong_stage` for an outcome that does not go with what may have happened: `answered`
        takes a reply that was to be sent, `drafted` one that was to be stored, and a mail whose reply may have left
        ends as one of these or `unknown`.
        """
        values = {"reason": require_form("reason", reason, _REASON)}
        if written is not None:
            values["comparison"] = "unknown"
            if written.message_key is not None:
                values["message_key"] = require_form("message_key", written.message_key, _HASH)
                values["reply_words"] = require_form("reply_words", str(written.reply_words), _HASHED_WORDS)
        self._write(claim, tables.FINISH[outcome], outcome, **values)

    def release(self, claim: Claim, *, count_attempt: bool, retry_after_s: float, reason: str = "") -> None:
        """Give the mail back unfinished, to be claimed again in `retry_after_s` seconds.

        count_attempt: False for an outage, which is not this mail's fault. To be repeated as `finish` is.
        """
        reason, uncounted = require_form("reason", reason, _REASON), 0 if count_attempt else 1
        self._write(claim, tables.RELEASE, "open", reason=reason, span_s=retry_after_s, uncounted=uncounted)

    def unmarked(self, claim: Claim) -> None:
        """Give back a mail that a person gave back, whose mark is off now; none of its tries was used."""
        self._write(claim, tables.RELEASE, "open", reason="", span_s=0.0, uncounted=claim.attempts)

    def places(self, mail_key: str) -> frozenset[str]:
        """The locations that the mail and its copies were seen at."""
        with self._database.read_transaction() as connection:
            return frozenset(connection.scalars(tables.PLACES, {"at_mail": mail_key}))

    def free(self, mail_key: str, owner: str, *, sending: bool) -> bool:
        """End the lease of an owner that is known to run no more; whether it had it still.

        The mail's stage and tries stay as they are. sending: also where its reply may be on its way.
        """
        values = {"at_mail": require_form("mail_key", mail_key, _HASH), "at_owner": require_form("owner", owner, TOKEN)}
        statement = tables.FREE if sending else tables.FREE.where(tables.mails.c.stage != "sending")
        with self._database.write_transaction() as connection:
            return connection.execute(statement, values).rowcount == 1

    def find_thread(self, claim: Claim, reply_message_ids: Sequence[str]) -> Thread | None:
        """The conversation in which one of these Message-IDs was a reply of ours; the mail joins it.

        reply_message_ids: a sender wrote them, so they are only compared, and no more than the last 100. Of several
        replies the latest counts.
        """
        ids = _usable_ids(reply_message_ids)
        if not ids:
            return None
        with self._database.read_transaction() as connection:
            answered = answered_thread(connection, claim.mail_key, ids)
        if answered is None:
            return None
        with self._database.write_transaction() as connection:
            self._database.lock(connection)  # of two follow-ups at a time, one is the second
            _write_under_claim(connection, claim, tables.JOIN_THREAD, thread_key=answered.thread_key)
            return describe_thread(connection, claim.mail_key, answered)

    def read_thread(self, mail_key: str, reply_message_ids: Sequence[str]) -> Thread | None:
        """As `find_thread`, for who only looks: no mail is claimed, and none joins a thread. It counts as of now."""
        ids = _usable_ids(reply_message_ids)
        with self._database.read_transaction() as connection:
            answered = answered_thread(connection, mail_key, ids) if ids else None
            return None if answered is None else describe_thread(connection, mail_key, answered)

    def admit(self, claim: Claim, admission: Admission, limits: ReplyLimits) -> Limit | None:
        """Count the mail among those that are answered, or name the limit that leaves no room for it.

        Mails of the last day count, for the limit of an hour those of the last hour; the mail itself does not, nor do
        those that ended without a reply. Whatever an altered copy ended in, a person sees the other one. Nobody counts
        in between, in no other process either.
        """
        for name in ("sender_key", "text_key", "thread_key", "copy_key"):
            if (value := getattr(admission, name)) is not None:
                require_form(name, value, _HASH)
        joined_key = None if admission.thread_key == claim.mail_key else admission.thread_key
        with self._database.write_transaction() as connection:
            self._database.lock(connection)
            now = tables.current_time(connection)
            limit = limit_reached(connection, claim.mail_key, admission, limits, now)
            values: dict[str, Any] = dict(tables.NOT_ADMITTED)
            if limit is None:
                known = ("sender_key", "text_key", "copy_key")
                values = {"admitted_at": now, **{name: getattr(admission, name) for name in known}}
            _write_under_claim(connection, claim, tables.ADMIT, joined_key=joined_key, **values)
        return limit

    def marked(self, location_key: str) -> None:
        """The mailbox now carries the mark at this location."""
        with self._database.write_transaction() as connection:
            if connection.execute(tables.MARK, _at(location_key)).rowcount != 1:
                raise LedgerError(f"The ledger knows no mail at {location_key}. Claim it first", "ledger_unknown_place")

    def reopen(self, location_key: str, *, fence: int, listed_at: float) -> bool:
        """Staff took the mark off a parked mail: it may be claimed again, as if it had never been tried.

        fence: of the mail's state when that was seen. listed_at: `time()` just before the mailbox was asked for the
        list in which the mail stood without its mark. False, and nothing changes, where the mail is not parked, or was
        parked anew since its state was read, or marked less than a minute before that list, which may then have been
        drawn up without the mark.
        """
        with self._database.write_transaction() as connection:
            values = {**_at(location_key), "at_fence": fence, "listed_at": listed_at}
            if connection.execute(tables.REOPEN, values).rowcount == 0:
                # Set while the clock was ahead: it is a minute old in a minute, and not when the clock has passed it.
                connection.execute(tables.RESTART_FUTURE_MARK, _at(location_key))
                return False
            connection.execute(tables.UNMARK, _at(location_key))
        return True

    def state(self, location_key: str) -> MailState | None:
        """The state of the mail at this location; None for a location that the ledger has not seen."""
        with self._database.read_transaction() as connection:
            row = connection.execute(tables.STATE, _at(location_key)).one_or_none()
        if row is None:
            return None
        if starts_in_future(row):
            with self._database.write_transaction() as connection:
                connection.execute(tables.RESTART_FUTURE_SPANS)
        return mail_state(row)

    def time(self) -> float:
        """Seconds since 1970 on the clock of all who share this ledger; on SQLite it is this machine's."""
        if self._database.clock is not None:
            return self._database.clock()
        with self._database.read_transaction() as connection:
            return tables.current_time(connection)

    def id(self) -> str:
        """16 hexadecimal digits, the same for all who share this ledger, and in its back-ups."""
        with self._database.read_transaction() as connection:
            return str(read_fact(connection, LEDGER_ID))

    def first_start(self, mailbox_key: str, earliest: float | None = None) -> float:
        """When `run` was first started on this mailbox: at the first call now, and at every later one the same.

        earliest: when the first start can have been at the earliest; it takes the place of one in the future.
        """
        require_form("mailbox_key", mailbox_key, _HASH)
        with self._database.write_transaction() as connection:
            self._database.lock(connection)  # two at once would each save one of its own
            return save_first_start(connection, mailbox_key, earliest)

    def first_start_if_known(self, mailbox_key: str) -> float | None:
        """The same, and nothing is written: None before the first start."""
        with self._database.read_transaction() as connection:
            return known_first_start(connection, mailbox_key)

    def keep_too_old(self, mailbox_key: str, number: int) -> None:
        """Keep how many mails of the inbox are too old to be answered, for people to see."""
        require_form("mailbox_key", mailbox_key, _HASH)
        with self._database.write_transaction() as connection:
            write_fact(connection, f"{TOO_OLD}{mailbox_key}", str(number))

    def inbox(self, location_keys: Sequence[str], of: OpenMails | None = None) -> InboxState:
        """What a poll has to know before it starts mails, in one transaction, to be asked after the inbox was listed.

        Whoever starts a mail that was not seen need not ask for its `state`: another agent may claim it before we do,
        but so it may behind any answer of `state`, and `claim` is the one that decides.
        """
        with self._database.read_transaction() as connection:
            rows = _at_places(connection, location_keys)
            given_back = connection.execute(tables.GIVEN_BACK).all()
            left: list[tables.AnyRow] = []
            if of is not None:
                left += [row for row in given_back if row.mailbox_key == of.at_mailbox]
                left += connection.execute(tables.OPEN, of._asdict()) if of.is_complete else ()
        observed = frozenset(row.place for row in rows if row.outcome == "observed")
        crashed = {row.place: row.since for row in rows if row.owner is not None or row.reason == tables.CRASH}
        listed = {row.mail_key for row in rows}
        unlisted = frozenset(row.place for row in left if row.mail_key not in listed)
        released = frozenset(row.place for row in given_back)
        return InboxState(frozenset(row.place for row in rows), observed, released, crashed, unlisted)

    def prune(self, older_than_days: int) -> int:
        """Forget mails that ended so long ago, as `pruning.prune` says; returns how many."""
        return prune(self._database, older_than_days)

    def close(self) -> None:
        """Give back every connection. The ledger can't be used afterwards."""
        self._database.close()

    def _write(
        self, claim: Claim, statement: Update, end_state: Outcome | Literal["open"] | None = None, **values: Any
    ) -> None:
        """Write under a claim that is still the mail's latest. end_state: of a write that ends the lease."""
        with self._database.write_transaction() as connection:
            _write_under_claim(connection, claim, statement, end_state, **values)


def _write_under_claim(
    connection: Connection,
    claim: Claim,
    statement: Update,
    end_state: Outcome | Literal["open"] | None = None,
    **values: Any,
) -> None:
    held = {"at_mail": claim.mail_key, "at_fence": claim.fence}
    if connection.execute(statement, {**held, **values}).rowcount:
        return
    row = connection.execute(tables.CURRENT_CLAIM, held).one_or_none()
    if row is not None and row.fence == claim.fence:
        if row.owner is not None:
            raise LedgerError(
                f"The ledger has mail {claim.mail_key} as {row.stage}, which this step cannot follow",
                "ledger_wrong_stage",
            )
        if end_state == (row.outcome or "open"):
            return  # the same end of the lease, written before
    raise LeaseLostError(
        f"Mail {claim.mail_key} is no longer ours: its lease ended, and another agent claimed it. Leave it alone",
        "ledger_lease_lost",
    )


def _at_places(connection: Connection, location_keys: Sequence[str]) -> list[tables.AnyRow]:
    """The mails at these locations, as far as they were seen. In batches: a statement takes so many values only."""
    rows: list[tables.AnyRow] = []
    for start in range(0, len(location_keys), _BATCH_SIZE):
        rows += connection.execute(tables.AT_PLACES, {"places": location_keys[start : start + _BATCH_SIZE]})
    return rows


def _usable_ids(reply_message_ids: Sequence[str]) -> list[str]:
    return [each for each in dict.fromkeys(reply_message_ids) if TOKEN.fullmatch(each)][-MAX_THREAD_IDS:]


def _at(location_key: str) -> dict[str, str]:
    return {"at_location": require_form("location_key", location_key, _HASH)}
