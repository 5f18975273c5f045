"""What the ledger asks of its database.

Every statement is built once: to build one anew for each mail takes four times as long as to execute it. The names that
a statement leaves open are given in a comment behind it; plain names are columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Insert,
    Select,
    Text,
    Update,
    and_,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from guarantee_email_agent.integrations.ports import Outcome
from guarantee_email_agent.ledger.database_clock import NOW
from guarantee_email_agent.ledger.mail_state import Entry, Stage
from guarantee_email_agent.ledger.tables import mails, places

PRUNE_PORTION: Final = 1000

_STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
_BEFORE_SENDING: Final[tuple[Stage, ...]] = ("claimed", "ticketing", "ticketed")
_INTENDED: Final = mails.c.reply_message_id.is_not(None)
_BACK_TO_ITS_TICKET: Final = case((mails.c.ticket_id.is_not(None), "ticketed"), else_="claimed")


def _one_of(column: ColumnElement[str], values: Sequence[str]) -> ColumnElement[bool]:
    return column.in_([literal_column(f"'{value}'") for value in values])


def _under_claim(stages: tuple[Stage, ...], **values: Any) -> Update:
    """A write by who has the mail's latest claim, at one of `stages`. Renews the lease. Open: the_mail, the_fence."""
    ours = and_(
        mails.c.mail_key == bindparam("the_mail"),
        mails.c.fence == bindparam("the_fence"),
        mails.c.owner.is_not(None),
        _one_of(mails.c.stage, stages),
    )
    return update(mails).where(ours).values(since=NOW, changed_at=NOW, **values)


INTEND_TICKET: Final = _under_claim(_BEFORE_SENDING, stage="ticketing")  # ticket_key
TICKET_CREATED: Final = _under_claim(("ticketing", "ticketed"), stage="ticketed")  # ticket_id
INTEND_SEND: Final = _under_claim(_BEFORE_SENDING, stage="sending")  # reply_message_id
SENT: Final = _under_claim(_STAGES, stage="sent").where(_INTENDED)
NOT_SENT: Final = _under_claim(("sending",), stage=_BACK_TO_ITS_TICKET)
RELEASE: Final = _under_claim(  # span_s, reason, uncounted
    _STAGES, owner=None, attempts=mails.c.attempts - bindparam("uncounted")
)
# What a mail may end in, by how far it may have got: none that may have been sent can end as not answered.
FINISH: Final[dict[Outcome, Update]] = {  # reason
    "answered": _under_claim(_STAGES, owner=None, span_s=0.0, outcome="answered").where(_INTENDED),
    "not_answered": _under_claim(_BEFORE_SENDING, owner=None, span_s=0.0, outcome="not_answered"),
    "quarantined": _under_claim(_BEFORE_SENDING, owner=None, span_s=0.0, outcome="quarantined"),
    "unknown": _under_claim((*_BEFORE_SENDING, "sending"), owner=None, span_s=0.0, outcome="unknown"),
}
HOW_IT_STANDS: Final = select(mails.c.stage, mails.c.fence, mails.c.owner, mails.c.outcome).where(
    mails.c.mail_key == bindparam("the_mail")
)
# Leases and waits that seem to begin in the future: the clock went back.
HEAL: Final = update(mails).where(mails.c.outcome.is_(None), mails.c.since > NOW).values(since=NOW)

MARK: Final = update(places).where(places.c.place == bindparam("the_place")).values(marked_at=NOW)
UNMARK: Final = update(places).where(places.c.place == bindparam("the_place")).values(marked_at=None)
REOPEN: Final = (
    update(mails)
    .where(
        mails.c.mail_key
        == select(places.c.mail_key)
        .where(
            places.c.place == bindparam("the_place"),
            places.c.marked_at <= bindparam("listed_at") - bindparam("settled_s"),
            places.c.marked_at <= NOW - bindparam("settled_s"),  # the clock may have gone back since the list
        )
        .scalar_subquery(),
        _one_of(mails.c.outcome, ("quarantined", "unknown")),
    )
    .values(outcome=None, stage=_BACK_TO_ITS_TICKET, attempts=0, span_s=0.0, changed_at=NOW)
)

TIME: Final = select(NOW)
_STANDING: Final = func.coalesce(mails.c.outcome, case((mails.c.owner.is_(None), "waiting"), else_="in_work"))
TALLY: Final = select(_STANDING, func.count()).group_by(_STANDING)
_ENTRIES: Final = (
    select(*(mails.c[name] for name in Entry.__slots__))
    .order_by(mails.c.changed_at, mails.c.mail_key)
    .limit(bindparam("most"))
)
UNFINISHED: Final = _ENTRIES.where(mails.c.outcome.is_(None))
PARKED: Final = _ENTRIES.where(_one_of(mails.c.outcome, ("quarantined", "unknown")))

_PLACES_OF_IT: Final = select(places.c.place).where(places.c.mail_key == mails.c.mail_key)
PRUNE: Final = delete(mails).where(
    mails.c.mail_key.in_(
        select(mails.c.mail_key)
        .where(
            _one_of(mails.c.outcome, ("answered", "not_answered")),
            mails.c.changed_at < NOW - bindparam("age_s"),
            _PLACES_OF_IT.exists(),
            ~_PLACES_OF_IT.where(places.c.marked_at.is_(None)).exists(),
        )
        .limit(PRUNE_PORTION)
    )
)

_FREE: Final = and_(mails.c.outcome.is_(None), or_(mails.c.span_s == 0, mails.c.since + mails.c.span_s <= NOW))
_SEEN: Final = select(mails, places.c.place, places.c.marked_at, NOW.label("now")).join(places)
SEEN_AT: Final = _SEEN.where(places.c.place == bindparam("the_place"))


@dataclass(frozen=True, slots=True)
class Dialect:
    """The statements that the two databases word differently."""

    claim: Insert  # mail_key, owner, span_s; returns the row where it was free
    remember: Insert  # place, mail_key
    seen_among: Select[Any]  # the_places: a JSON array on SQLite, a list on PostgreSQL


def _dialect(insert: Any, the_places: Select[Any]) -> Dialect:
    claim = insert(mails).values(
        stage="claimed", attempts=1, fence=1, since=NOW, reason="", created_at=NOW, changed_at=NOW
    )
    claim = claim.on_conflict_do_update(
        index_elements=[mails.c.mail_key],
        set_={
            "attempts": mails.c.attempts + 1,
            "fence": mails.c.fence + 1,
            **{name: claim.excluded[name] for name in ("owner", "since", "span_s", "changed_at")},
        },
        where=_FREE,
    )
    remember = insert(places)
    remember = remember.on_conflict_do_update(  # a mailbox that gave the place to another mail
        index_elements=[places.c.place],
        set_={"mail_key": remember.excluded.mail_key, "marked_at": None},
        where=places.c.mail_key != remember.excluded.mail_key,
    )
    return Dialect(claim.returning(mails), remember, _SEEN.where(places.c.place.in_(the_places)))


DIALECTS: Final = {
    "sqlite": _dialect(sqlite.insert, select(func.json_each(bindparam("the_places")).table_valued("value").c.value)),
    "postgresql": _dialect(postgresql.insert, select(func.unnest(bindparam("the_places", type_=ARRAY(Text))))),
}
