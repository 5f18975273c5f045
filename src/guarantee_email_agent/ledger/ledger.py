"""The agent's memory across crashes and machines: who works on which mail, how far it got, and how it ended.

The mailbox is the queue and the only place with content; here stand keyed hashes, states, ids and counts. Calls block
for as long as a disk or a server takes, so a coroutine puts them on a thread (`asyncio.to_thread`). Importing this
module loads SQLAlchemy; `ledger_entries` and `ledger_errors` do not.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, get_args

from sqlalchemy import Row, Update

from guarantee_email_agent.integrations.ports import Outcome
from guarantee_email_agent.ledger import statements as sql
from guarantee_email_agent.ledger.database import Database, open_database
from guarantee_email_agent.ledger.ledger_errors import LeaseLostError, LedgerError
from guarantee_email_agent.ledger.mail_state import (
    Busy,
    Claim,
    Done,
    Entry,
    Free,
    Standing,
    Waiting,
)
from guarantee_email_agent.ledger.tables import prepare
from guarantee_email_agent.utils.errors import ConfigurationError

__all__ = [
    "Busy",
    "Claim",
    "Done",
    "Entry",
    "Free",
    "LeaseLostError",
    "Ledger",
    "LedgerError",
    "Outcome",
    "Standing",
    "Waiting",
    "open_ledger",
]

PATIENCE_S: Final = 10.0  # how long one call waits for others' writes
SETTLED_S: Final = 60.0  # how old a mark has to be before its absence in the mailbox means something
MIN_PRUNE_DAYS: Final = 30

_HASH = re.compile(r"[0-9a-f]{32,128}")
_WORD = re.compile(r"[!-~]{1,300}")
_TICKET_ID = re.compile(r"[\w./#-]{1,64}")
_REASON = re.compile(r"[a-z0-9_-]{0,64}")

# An open-time failure of these is the user's to mend (exit code 2); any other may heal.
_CONFIGURATION: Final = frozenset(
    "ledger_" + problem
    for problem in ("auth", "cannot_open", "database_missing", "invalid_location", "permission", "read_only")
)


class Ledger:
    """One row for each mail, and one for each place in a mailbox where it was seen.

    mail_key, place: keyed hashes, 32 to 128 lower-case hexadecimal digits. Every write under a claim renews its lease
    in full, so a side effect that follows its intent has all of it. Raises LeaseLostError from any write under a claim
    that somebody else has taken over, and LedgerError (`outage`) where the database does not do its part.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = sql.DIALECTS[database.dialect]

    def claim(self, mail_key: str, *, place: str, owner: str, lease_s: float) -> Claim | Busy | Waiting | Done:
        """Take a mail on, for `lease_s` seconds from now, if it is not finished, waiting, or in somebody's hands.

        A lease that ran out is taken over. In any case the ledger remembers that this mail lies at `place`.
        owner: who claims, for people to read, e.g. `host:pid`.
        """
        mail_key, place, owner = _hash("mail_key", mail_key), _hash("place", place), _checked("owner", owner, _WORD)
        with self._database.writing() as connection:
            taken = connection.execute(self._sql.claim, {"mail_key": mail_key, "owner": owner, "span_s": lease_s})
            row = taken.one_or_none()
            connection.execute(self._sql.remember, {"place": place, "mail_key": mail_key})
            if row is None:
                found = connection.execute(sql.SEEN_AT, {"the_place": place}).one()
                if _clock_went_back(found):
                    connection.execute(sql.HEAL)
                standing = _standing(found)
                # Its time ran out between the two statements: whoever asks next can have it.
                return Waiting(mail_key, 0.0, found.attempts, found.reason) if isinstance(standing, Free) else standing
        return Claim(
            mail_key=mail_key,
            place=place,
            fence=row.fence,
            attempts=row.attempts,
            previous="new" if row.fence == 1 else row.stage,
            ticket_key=row.ticket_key,
            ticket_id=row.ticket_id,
            reply_message_id=row.reply_message_id,
            reason=row.reason,
        )

    def intend_ticket(self, claim: Claim, ticket_key: str) -> None:
        """Write down that the ticket with this idempotency key is about to be created."""
        self._write(claim, sql.INTEND_TICKET, ticket_key=_checked("ticket_key", ticket_key, _WORD))

    def ticket_created(self, claim: Claim, ticket_id: str) -> None:
        """Write down which ticket there is."""
        self._write(claim, sql.TICKET_CREATED, ticket_id=_checked("ticket_id", ticket_id, _TICKET_ID))

    def intend_send(self, claim: Claim, reply_message_id: str) -> None:
        """Write down that the reply with this Message-ID is about to be sent.

        Refused (`ledger_wrong_stage`) while an earlier sending is open: look for its proof, then `sent` or `not_sent`.
        """
        message_id = _checked("reply_message_id", reply_message_id, _WORD)
        self._write(claim, sql.INTEND_SEND, reply_message_id=message_id)

    def sent(self, claim: Claim) -> None:
        """The reply is known to have left, even if it was once taken for not sent."""
        self._write(claim, sql.SENT)

    def not_sent(self, claim: Claim) -> None:
        """The reply is known not to have left, so it may be written and sent anew."""
        self._write(claim, sql.NOT_SENT)

    def finish(self, claim: Claim, outcome: Outcome, reason: str = "") -> None:
        """The mail has ended; the lease is over. To be repeated where it is not known whether it was written.

        reason: a code of up to 64 small letters, digits, `_` and `-`. Raises LedgerError `ledger_wrong_stage` for an
        outcome that does not go with what may have happened: `answered` takes an intended reply, and a mail whose
        reply may have left ends `answered` or `unknown`.
        """
        self._write(claim, sql.FINISH[outcome], outcome, reason=_checked("reason", reason, _REASON))

    def release(self, claim: Claim, *, count_attempt: bool, retry_after_s: float, reason: str = "") -> None:
        """Give the mail back unfinished, to be claimed again in `retry_after_s` seconds.

        count_attempt: False for an outage, which is not this mail's fault. To be repeated as `finish` is.
        """
        reason, uncounted = _checked("reason", reason, _REASON), 0 if count_attempt else 1
        self._write(claim, sql.RELEASE, "open", reason=reason, span_s=retry_after_s, uncounted=uncounted)

    def marked(self, place: str) -> None:
        """The mailbox now carries the mark at this place."""
        with self._database.writing() as connection:
            if connection.execute(sql.MARK, {"the_place": _hash("place", place)}).rowcount != 1:
                raise LedgerError(f"The ledger knows no mail at {place}. Claim it first", "ledger_unknown_place")

    def reopen(self, place: str, *, listed_at: float, settled_s: float = SETTLED_S) -> bool:
        """Staff took the mark off a parked mail: it may be claimed again, as if it had never been tried.

        listed_at: `time()` just before the mailbox was asked for the list in which the mail stood without its mark.
        False, and nothing changes, where the mail is not parked, or was marked less than `settled_s` before that list,
        which may then have been drawn up without the mark.
        """
        here = {"the_place": _hash("place", place)}
        with self._database.writing() as connection:
            if connection.execute(sql.REOPEN, {**here, "listed_at": listed_at, "settled_s": settled_s}).rowcount == 0:
                return False
            connection.execute(sql.UNMARK, here)
        return True

    def places(self, wanted: Iterable[str]) -> dict[str, Standing]:
        """How the mails at these places stand, in one query; a place that the ledger has not seen is left out."""
        listed = [_hash("place", place) for place in wanted]
        parameter = json.dumps(listed) if self._database.dialect == "sqlite" else listed
        with self._database.reading() as connection:
            rows = connection.execute(self._sql.seen_among, {"the_places": parameter}).all()
        if any(map(_clock_went_back, rows)):
            with self._database.writing() as connection:
                connection.execute(sql.HEAL)
        return {row.place: _standing(row) for row in rows}

    def time(self) -> float:
        """Seconds since 1970 on the clock of all who share this ledger."""
        with self._database.reading() as connection:
            return float(connection.execute(sql.TIME).scalar_one())

    def tally(self) -> dict[str, int]:
        """How many mails stand where: the four outcomes, `in_work` (a lease, alive or not), and `waiting`."""
        counts = dict.fromkeys((*get_args(Outcome), "in_work", "waiting"), 0)
        with self._database.reading() as connection:
            for name, count in connection.execute(sql.TALLY):
                counts[name] = count
        return counts

    def unfinished(self, limit: int = 100) -> list[Entry]:
        """Mails that have not ended, those that have not moved for longest first."""
        with self._database.reading() as connection:
            return [Entry(*row) for row in connection.execute(sql.UNFINISHED, {"most": limit})]

    def parked(self, limit: int = 100) -> list[Entry]:
        """Mails that wait for a person: quarantined, or not known to be answered. The oldest first."""
        with self._database.reading() as connection:
            return [Entry(*row) for row in connection.execute(sql.PARKED, {"most": limit})]

    def prune(self, older_than_days: int) -> int:
        """Forget mails that ended so long ago; returns how many.

        Only mails answered or deliberately not answered whose every known place carries the mark, since from then on
        the mark alone keeps the mail from being answered again. Parked mails stay. Raises ConfigurationError for
        fewer than 30 days.
        """
        if older_than_days < MIN_PRUNE_DAYS:
            raise ConfigurationError(
                f"The ledger keeps finished mails for {MIN_PRUNE_DAYS} days at least. Ask for that many or more",
                "ledger_prune_too_young",
            )
        total = 0
        while True:  # in portions: everybody else waits for each
            with self._database.writing() as connection:
                count = connection.execute(sql.PRUNE, {"age_s": older_than_days * 86_400.0}).rowcount
            total += count
            if count == 0:
                return total

    def close(self) -> None:
        """Give back every connection. The ledger can't be used afterwards."""
        self._database.close()

    def _write(
        self, claim: Claim, statement: Update, ends_in: Outcome | Literal["open"] | None = None, **values: Any
    ) -> None:
        """Write under a claim that is still the mail's latest. ends_in: of a write that ends the lease."""
        its = {"the_mail": claim.mail_key, "the_fence": claim.fence}
        with self._database.writing() as connection:
            if connection.execute(statement, {**its, **values}).rowcount:
                return
            row = connection.execute(sql.HOW_IT_STANDS, its).one_or_none()
        if row is not None and row.fence == claim.fence:
            if row.owner is not None:
                raise LedgerError(
                    f"The ledger has mail {claim.mail_key} as {row.stage}, which this step cannot follow",
                    "ledger_wrong_stage",
                )
            if ends_in == (row.outcome or "open"):
                return  # the same end of the lease, written before
        raise LeaseLostError(
            f"Mail {claim.mail_key} is no longer ours: its lease ended, and another agent took it on. Leave it alone",
            "ledger_lease_lost",
        )


def open_ledger(
    location: str, *, key: bytes, now: Callable[[], float] = time.time, patience_s: float = PATIENCE_S
) -> Ledger:
    """Open the ledger, and create it where there is none.

    location: a file (SQLite), or a URL that starts with `sqlite:` or `postgresql:`. key: what the hashes are keyed
    with; the ledger keeps a fingerprint of it and refuses another. now: the wall clock, for SQLite only. patience_s:
    how long a call waits for others' writes; a server that is silent for twice as long counts as gone.
    Raises ConfigurationError for what a user has to mend, LedgerError for what may heal.
    """
    if not key:
        raise ConfigurationError("LEDGER_KEY is empty. Set it to a secret of its own", "ledger_no_key")
    database = open_database(location, now, patience_s)
    try:
        with database.writing() as connection:
            prepare(database, connection, key)
    except BaseException as error:
        database.close()
        if isinstance(error, LedgerError) and error.code in _CONFIGURATION:
            raise ConfigurationError(error.message, error.code) from None
        raise
    return Ledger(database)


def _standing(row: Row[Any]) -> Standing:
    if row.outcome is not None:
        marked = row.marked_at is not None
        return Done(row.mail_key, row.outcome, row.reason, marked, row.ticket_id, row.reply_message_id)
    for_s = min(row.since + row.span_s - row.now, row.span_s)
    if for_s <= 0:
        return Free(row.mail_key, row.attempts)
    if row.owner is not None:
        return Busy(row.mail_key, for_s, row.owner)
    return Waiting(row.mail_key, for_s, row.attempts, row.reason)


def _clock_went_back(row: Row[Any]) -> bool:
    return row.outcome is None and bool(row.since > row.now)


def _hash(name: str, value: str) -> str:
    return _checked(name, value, _HASH)


def _checked(name: str, value: str, pattern: re.Pattern[str]) -> str:
    """What does not look like a hash, a code or an id may be something that a customer wrote: it stays out."""
    if not pattern.fullmatch(value):
        raise LedgerError(f"The ledger takes no such {name}: it has to match {pattern.pattern}", "ledger_invalid_value")
    return value
