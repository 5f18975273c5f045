"""The ledger's four tables, and every statement on them but those of conversations.py, interventions.py, agents.py
and pruning.py.

docs/ledger.md explains each column. The open parameters of a statement are named in a comment behind it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias, get_args

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Row,
    Table,
    Text,
    Update,
    and_,
    bindparam,
    case,
    delete,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from guarantee_email_agent.ledger.database import SQLITE_CLOCK_FUNCTION, LedgerError
from guarantee_email_agent.services.ports import PARKED, Outcome

Stage: TypeAlias = Literal["claimed", "ticketing", "ticketed", "sending", "sent"]
"""How far the side effects of a mail may have got: written before one (`ticketing`, `sending`) and after it
(`ticketed`; `sent` with the outcome). A new claim leaves the stage alone: what may have happened is not undone by a
crash."""

Delivery: TypeAlias = Literal["send", "draft"]
"""What a reply was written for. The mode may have changed since, and its proof lies elsewhere."""

TOKEN: Final = re.compile(r"[!-~]{1,300}")

AnyRow: TypeAlias = Row[*tuple[Any, ...]]

BY_TEMPLATE: Final = "_by_template"
"""Ends the reason of a mail that a template answered while the language model was down; the scenario stands before."""

SETTLED_S: Final = 60.0  # how old a mark has to be before its absence in the mailbox means something

metadata = MetaData()

facts = Table("ledger_facts", metadata, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))

mails = Table(
    "ledger_mails",
    metadata,
    Column("mail_key", Text, primary_key=True),
    Column("stage", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("owner", Text),
    # A lease, or the wait after a failure. Its length is kept instead of its end, so that a clock that went back can be
    # seen (`since` lies in the future) and can prolong it by no more than that length.
    Column("since", Double, nullable=False),
    Column("span_s", Double, nullable=False),
    Column("ticket_key", Text),
    Column("ticket_id", Text),
    Column("reply_message_id", Text),
    Column("outcome", Text),
    Column("reason", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("changed_at", Double, nullable=False),
    Column("delivery", Text, nullable=False, server_default="send"),
    Column("replied_at", Double),
    Column("thread_key", Text),
    # Of the mails that were admitted in the last day: their indexes hold those alone, and stay small.
    Column("admitted_at", Double),
    Column("sender_key", Text),
    Column("text_key", Text),
    Column("worked_s", Double),
    Column("cost_usd", Double),
    Column("copy_key", Text),
    Column("crashes", Integer, nullable=False, server_default="0"),
    # Of a reply that a person's is compared with, until it was.
    Column("message_key", Text),
    Column("reply_words", Text),
    Column("comparison", Text),
    Column("alike_percent", Integer),
    CheckConstraint("stage IN ('claimed', 'ticketing', 'ticketed', 'sending', 'sent')", name="ledger_mails_stage"),
    CheckConstraint(
        "outcome IN ('answered', 'drafted', 'handed_over', 'not_answered', 'observed', 'quarantined', 'unknown')",
        name="ledger_mails_outcome",
    ),
    CheckConstraint("owner IS NULL OR outcome IS NULL", name="ledger_mails_final"),
    CheckConstraint("delivery IN ('send', 'draft')", name="ledger_mails_delivery"),
    CheckConstraint("attempts >= 0 AND fence >= 1 AND span_s >= 0", name="ledger_mails_counts"),
    sqlite_with_rowid=False,
)
Index("ledger_mails_by_outcome", mails.c.outcome)


def _index_of_known(name: str, column: Column[Any]) -> None:
    """An index of the rows that have a value there."""
    known = column.is_not(None)
    Index(name, column, sqlite_where=known, postgresql_where=known)


_index_of_known("ledger_mails_by_reply", mails.c.reply_message_id)
_index_of_known("ledger_mails_by_thread", mails.c.thread_key)
_index_of_known("ledger_mails_by_admission", mails.c.admitted_at)
_index_of_known("ledger_mails_by_sender", mails.c.sender_key)
_index_of_known("ledger_mails_by_text", mails.c.text_key)
_index_of_known("ledger_mails_by_copy", mails.c.copy_key)
_index_of_known("ledger_mails_by_message", mails.c.message_key)

locations = Table(
    "ledger_places",
    metadata,
    Column("place", Text, primary_key=True),
    Column("mail_key", Text, ForeignKey(mails.c.mail_key, ondelete="CASCADE"), nullable=False),
    Column("marked_at", Double),
    Column("mailbox_key", Text),
    sqlite_with_rowid=False,
)
Index("ledger_places_by_mail", locations.c.mail_key)

agents = Table(
    "ledger_agents",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("version", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("waiting", Integer),
    Column("oldest_received", Double),
    Column("outages", Text, nullable=False),
    sqlite_with_rowid=False,
)


class Now(FunctionElement[float]):
    """Seconds since 1970 on the one clock of all who share a ledger, when the statement runs (after it got its locks).

    Machines differ, so PostgreSQL's own clock counts, or on SQLite that of the machine that the file lies on. It jumps:

    - Backwards: a lease seems to begin in the future. Who sees that restarts it (RESTART_FUTURE_SPANS), so
      it ends late, never early, and by no more than its own length.
    - Forwards: leases end early, and a second agent may claim a mail that the first still works on. The fence refuses
      the first one's writes, and the second finds its intent and asks for proof before it repeats anything.
    """

    type = Double()
    inherit_cache = True


@compiles(Now, "sqlite")
def _compile_for_sqlite(_element: Now, _compiler: Any, **_options: Any) -> str:
    return f"{SQLITE_CLOCK_FUNCTION}()"


@compiles(Now, "postgresql")
def _compile_for_postgresql(_element: Now, _compiler: Any, **_options: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"


NOW: Final = Now()


def current_time(connection: Connection) -> float:
    """Of NOW."""
    return float(connection.execute(select(NOW)).scalar_one())


def require_form(name: str, value: str, pattern: re.Pattern[str]) -> str:
    """Refuse what is no hash, code or id: a customer may have written it."""
    if not pattern.fullmatch(value):
        raise LedgerError(f"The ledger takes no such {name}: it has to match {pattern.pattern}", "ledger_invalid_value")
    return value


_STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
RELEASED: Final = "released"
"""The reason of a mail that a person gave back, until an agent has taken its mark off, or works on it."""

CRASH: Final = "crash"
"""The reason of a mail whose last claim was neither ended nor given back: its owner died, or stood still."""

STOPPED: Final = "stopped"
"""The reason of a mail whose agent was stopped in the middle of it. As after a crash, nobody knows what that cost."""

BEFORE_SENDING: Final[tuple[Stage, ...]] = ("claimed", "ticketing", "ticketed")
_HAS_REPLY_INTENT: Final = mails.c.reply_message_id.is_not(None)
# Its proof, or who stands still after sending it, may come hours after a reply has left.
_INTENDED_AT: Final = func.coalesce(mails.c.replied_at, NOW)
NOT_ADMITTED: Final[dict[str, None]] = {"admitted_at": None, "sender_key": None, "text_key": None}
STAGE_WITHOUT_REPLY: Final = case((mails.c.ticket_id.is_not(None), "ticketed"), else_="claimed")
_IS_DUE: Final = or_(mails.c.span_s == 0, mails.c.since + mails.c.span_s <= NOW)
_AT_LOCATION: Final = locations.c.place == bindparam("at_location")


def _under_claim(stages: tuple[Stage, ...], **values: Any) -> Update:
    """A write under the mail's latest claim, at one of `stages`; it renews the lease. Open: at_mail, at_fence."""
    held = and_(
        mails.c.mail_key == bindparam("at_mail"),
        mails.c.fence == bindparam("at_fence"),
        mails.c.owner.is_not(None),
        mails.c.stage.in_(stages),
    )
    return update(mails).where(held).values(since=NOW, changed_at=NOW, **values)


def _finish(outcome: Outcome, *stages: Stage, **values: Any) -> Update:
    return _under_claim(stages, owner=None, span_s=0.0, outcome=outcome, **values)


def _finish_replied(outcome: Outcome, delivery: Delivery) -> Update:
    intended = and_(_HAS_REPLY_INTENT, mails.c.delivery == delivery)
    return _finish(outcome, *_STAGES, stage="sent", replied_at=_INTENDED_AT).where(intended)


def _finish_without_reply(outcome: Outcome) -> Update:
    return _finish(outcome, *BEFORE_SENDING, **NOT_ADMITTED)


INTEND_TICKET: Final = _under_claim(BEFORE_SENDING, stage="ticketing")  # ticket_key
TICKET_CREATED: Final = _under_claim(("ticketing", "ticketed"), stage="ticketed")  # ticket_id
INTEND_SEND: Final = _under_claim(BEFORE_SENDING, stage="sending", replied_at=NOW)  # reply_message_id, delivery
NOT_SENT: Final = _under_claim(("sending",), stage=STAGE_WITHOUT_REPLY, replied_at=None)
RELEASE: Final = _under_claim(  # span_s, reason, uncounted
    _STAGES,
    owner=None,
    attempts=mails.c.attempts - bindparam("uncounted"),
    # Its next try asks the limits again; it may be the last one, with nothing sent.
    **{name: case((mails.c.stage.not_in(BEFORE_SENDING), mails.c[name])) for name in NOT_ADMITTED},
)
JOIN_THREAD: Final = _under_claim(BEFORE_SENDING)  # thread_key
ADMIT: Final = _under_claim(  # admitted_at, sender_key, text_key, joined_key; copy_key where it was admitted
    BEFORE_SENDING, thread_key=func.coalesce(bindparam("joined_key"), mails.c.thread_key)
)
# What a mail may end in, by how far it may have got: none whose reply may have left can end as one without a reply.
FINISH: Final[dict[Outcome, Update]] = {  # reason
    "answered": _finish_replied("answered", "send"),
    "drafted": _finish_replied("drafted", "draft"),
    "handed_over": _finish_without_reply("handed_over"),
    "not_answered": _finish_without_reply("not_answered"),
    "observed": _finish("observed", *BEFORE_SENDING),  # counts against the limits as if it had been answered
    "quarantined": _finish_without_reply("quarantined"),
    "unknown": _finish("unknown", *BEFORE_SENDING, "sending"),
}
FREE: Final = (  # at_mail, at_owner
    update(mails)
    .where(
        mails.c.mail_key == bindparam("at_mail"),
        mails.c.owner == bindparam("at_owner"),
        mails.c.span_s > 0,
    )
    .values(span_s=0.0, changed_at=NOW)  # its owner stays: who claims it next sees a crash
)
CURRENT_CLAIM: Final = select(mails.c.stage, mails.c.fence, mails.c.owner, mails.c.outcome).where(
    mails.c.mail_key == bindparam("at_mail")
)
# Leases and waits that seem to begin in the future: the clock went back.
RESTART_FUTURE_SPANS: Final = update(mails).where(mails.c.outcome.is_(None), mails.c.since > NOW).values(since=NOW)

MARK: Final = update(locations).where(_AT_LOCATION).values(marked_at=NOW)
UNMARK: Final = update(locations).where(_AT_LOCATION).values(marked_at=None)
RESTART_FUTURE_MARK: Final = update(locations).where(_AT_LOCATION, locations.c.marked_at > NOW).values(marked_at=NOW)
UNMARK_ALL: Final = update(locations).where(locations.c.mail_key == bindparam("at_mail")).values(marked_at=None)
REOPEN: Final = (  # listed_at, at_fence
    update(mails)
    .where(
        mails.c.mail_key
        == select(locations.c.mail_key)
        .where(
            _AT_LOCATION,
            locations.c.marked_at <= bindparam("listed_at") - SETTLED_S,
            locations.c.marked_at <= NOW - SETTLED_S,  # the clock may have gone back since the list
        )
        .scalar_subquery(),
        mails.c.fence == bindparam("at_fence"),
        mails.c.outcome.in_(PARKED),
    )
    # A mail that was unknown and then handed over by hand may have been answered: its proof is looked for once more.
    .values(
        outcome=None,
        stage=case(
            (
                and_(mails.c.outcome == "handed_over", mails.c.stage.not_in(BEFORE_SENDING)),
                mails.c.stage,
            ),
            else_=STAGE_WITHOUT_REPLY,
        ),
        attempts=0,
        span_s=0.0,
        changed_at=NOW,
    )
)

STATE: Final = (
    select(mails, locations.c.place, locations.c.marked_at, NOW.label("now")).join(locations).where(_AT_LOCATION)
)
# Whoever asks compares what it gets: with a condition SQLite goes through all mails of that outcome for each location.
AT_PLACES: Final = (  # places
    select(locations.c.place, mails.c.mail_key, mails.c.outcome, mails.c.owner, mails.c.reason, mails.c.since)
    .join(mails)
    .where(locations.c.place.in_(bindparam("places", expanding=True)))
)

# Also where an agent that had lost its claim set a mark.
GIVEN_BACK: Final = (
    select(locations.c.place, locations.c.mailbox_key, mails.c.mail_key)
    .join(mails)
    .where(mails.c.outcome.is_(None), _IS_DUE, or_(mails.c.reason == RELEASED, locations.c.marked_at.is_not(None)))
)

OPEN: Final = (  # at_mailbox, settled, listed_at
    select(locations.c.place, mails.c.mail_key)
    .join(mails)
    .where(
        locations.c.mailbox_key == bindparam("at_mailbox"),
        locations.c.marked_at.is_(None),
        mails.c.outcome.is_(None),
        mails.c.reason.not_in(bindparam("settled", expanding=True)),
        mails.c.changed_at < bindparam("listed_at"),
        _IS_DUE,
    )
)

LOCK: Final = select(mails.c.mail_key).where(mails.c.mail_key == bindparam("at_mail")).with_for_update()

PLACES: Final = select(locations.c.place).where(locations.c.mail_key == bindparam("at_mail"))
LOCATIONS_OF_MAIL: Final = select(locations.c.place).where(locations.c.mail_key == mails.c.mail_key)
# Of a mail that could not be read at first: nothing that lies anywhere is known by it any more.
FORGET_PLACELESS: Final = delete(mails).where(mails.c.mail_key == bindparam("at_mail"), ~LOCATIONS_OF_MAIL.exists())


def by_dialect(build: Callable[[Any], Any]) -> dict[str, Any]:
    """A statement that begins with the `insert` of each database, which alone knows conflicts."""
    return {"sqlite": build(sqlite.insert), "postgresql": build(postgresql.insert)}


_CRASHED: Final = and_(mails.c.owner.is_not(None), mails.c.reason != RELEASED)
_OTHER: Final = mails.alias("other")


def _exists_other(*criteria: Any) -> Any:
    return select(_OTHER.c.mail_key).where(_OTHER.c.mail_key != mails.c.mail_key, *criteria).correlate(mails).exists()


# Of a crash that other mails share nobody can tell whose it is, before one of them gets to its end.
_CRASH_IS_ITS_OWN: Final = or_(
    _exists_other(_OTHER.c.outcome.is_not(None), _OTHER.c.changed_at > mails.c.since),
    ~_exists_other(_OTHER.c.outcome.is_(None), or_(_OTHER.c.reason == CRASH, _OTHER.c.owner == mails.c.owner)),
)


def _claim(insert: Any) -> Any:
    """Insert the mail, or claim it anew where it is free; then it returns the row.

    Open: mail_key, owner, span_s, and if_released: the reason, then.
    """
    claim = insert(mails).values(
        stage="claimed", attempts=1, fence=1, since=NOW, reason="", created_at=NOW, changed_at=NOW
    )
    return claim.on_conflict_do_update(
        index_elements=[mails.c.mail_key],
        set_={
            "attempts": mails.c.attempts + case((_CRASHED, 0), else_=1),
            "crashes": mails.c.crashes + case((and_(_CRASHED, _CRASH_IS_ITS_OWN), 1), else_=0),
            "fence": mails.c.fence + 1,
            "reason": case(
                (_CRASHED, CRASH), (mails.c.reason == RELEASED, bindparam("if_released")), else_=mails.c.reason
            ),
            **{name: claim.excluded[name] for name in ("owner", "since", "span_s", "changed_at")},
        },
        where=and_(mails.c.outcome.is_(None), _IS_DUE),
    ).returning(mails)


def _save_location(insert: Any) -> Any:
    """Remember which mail lies there, even if another one did before. Open: place, mail_key, mailbox_key."""
    save = insert(locations)
    return save.on_conflict_do_update(
        index_elements=[locations.c.place],
        set_={
            "mail_key": save.excluded.mail_key,
            "mailbox_key": save.excluded.mailbox_key,
            "marked_at": case((locations.c.mail_key == save.excluded.mail_key, locations.c.marked_at)),
        },
    )


CLAIM: Final = by_dialect(_claim)
SAVE_LOCATION: Final = by_dialect(_save_location)
