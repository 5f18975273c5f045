"""What the ledger remembers of conversations: which thread a mail belongs to, and who was answered how often.

An admission is remembered for a day, and replies for as long as the mail. All times here are seconds since 1970 on the
ledger's clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, func, or_, select, update

from guarantee_email_agent.config.settings import ReplyLimits
from guarantee_email_agent.ledger.tables import BY_TEMPLATE, NOT_ADMITTED, AnyRow, mails
from guarantee_email_agent.services.ports import Admission, Limit, Thread

MAX_THREAD_IDS: Final = 100
"""Message-IDs that are looked up for one mail: a sender may write as many as fit into it."""

SAME_TEXT_LIMIT: Final = 3
"""Mails of the same words, from whomever, that are answered in a day. People word theirs anew, machines do not."""

_DAY_S: Final = 86_400.0
_HOUR_S: Final = 3600.0

_OTHER_MAIL: Final = mails.c.mail_key != bindparam("at_mail")
_IN_THREAD: Final = or_(mails.c.mail_key == bindparam("thread_key"), mails.c.thread_key == bindparam("thread_key"))
# A reply that is asked for proof counts, too: who answers it has had it.
_MAY_HAVE_REPLY: Final = or_(mails.c.stage.in_(("sending", "sent")), mails.c.outcome.in_(("answered", "drafted")))
# What needs no answer, such as an out-of-office notice, does not make the customer's own mail a second follow-up.
_FOLLOWS_UP: Final = or_(mails.c.outcome.is_(None), mails.c.outcome != "not_answered")
_REPLIED_AT: Final = func.coalesce(mails.c.replied_at, mails.c.changed_at)

_FORGET_OLD: Final = update(mails).where(mails.c.admitted_at <= bindparam("day_ago")).values(NOT_ADMITTED)
_RESTART_FUTURE: Final = (
    update(mails).where(mails.c.admitted_at > bindparam("now")).values(admitted_at=bindparam("now"))
)


def _count_admitted(*conditions: ColumnElement[bool]) -> ColumnElement[int]:
    admitted = mails.c.admitted_at.is_not(None)
    return select(func.count()).select_from(mails).where(admitted, _OTHER_MAIL, *conditions).scalar_subquery()


_ADMITTED: Final = select(  # at_mail, thread_key, sender_key, text_key, copy_key, hour_ago
    select(func.count())
    .select_from(mails)
    .where(mails.c.copy_key == bindparam("copy_key"), _OTHER_MAIL)
    .scalar_subquery()
    .label("copy"),
    _count_admitted(mails.c.text_key == bindparam("text_key")).label("text"),
    _count_admitted(_IN_THREAD).label("thread"),
    _count_admitted(mails.c.sender_key == bindparam("sender_key")).label("address"),
    _count_admitted(mails.c.admitted_at > bindparam("hour_ago")).label("hour"),
)
_ANSWERED: Final = (  # at_mail, message_ids
    select(func.coalesce(mails.c.thread_key, mails.c.mail_key).label("thread_key"))
    .add_columns(mails.c.reason, mails.c.reply_message_id, _REPLIED_AT.label("replied_at"))
    .where(mails.c.reply_message_id.in_(bindparam("message_ids", expanding=True)), _MAY_HAVE_REPLY, _OTHER_MAIL)
    .order_by(_REPLIED_AT.desc(), mails.c.mail_key)
    .limit(1)
)
_MAILS_OF_THREAD: Final = select(  # at_mail, thread_key
    func.coalesce(func.sum(case((_MAY_HAVE_REPLY, 1), else_=0)), 0).label("replies"),
    func.count(case((and_(mails.c.mail_key != bindparam("thread_key"), _OTHER_MAIL, _FOLLOWS_UP), 1))).label(
        "follow_ups"
    ),
).where(_IN_THREAD)
_TICKET_OF_THREAD: Final = (  # thread_key
    select(mails.c.ticket_id)
    .where(_IN_THREAD, mails.c.ticket_id.is_not(None))
    .order_by(mails.c.changed_at.desc(), mails.c.mail_key)
    .limit(1)
)


def limit_reached(
    connection: Connection, mail_key: str, admission: Admission, limits: ReplyLimits, now: float
) -> Limit | None:
    """Which limit the other mails admitted so far leave no room under; None if all do.

    The caller holds the lock on admissions. A clock that went back lets an admission count for a day from when that is
    noticed; one that goes forward ends it early.
    """
    connection.execute(_FORGET_OLD, {"day_ago": now - _DAY_S})
    connection.execute(_RESTART_FUTURE, {"now": now})
    values = {
        "at_mail": mail_key,
        "thread_key": admission.thread_key or mail_key,
        "sender_key": admission.sender_key,
        "text_key": admission.text_key,
        "copy_key": admission.copy_key,
        "hour_ago": now - _HOUR_S,
    }
    counts = connection.execute(_ADMITTED, values).one()
    most: dict[Limit, int] = {
        "copy": 1,
        "text": SAME_TEXT_LIMIT,
        "thread": limits.per_thread,
        "address": limits.per_address,
        "hour": limits.per_hour,
    }
    return next((limit for limit, count in most.items() if getattr(counts, limit) >= count), None)


def answered_thread(connection: Connection, mail_key: str, reply_message_ids: Sequence[str]) -> AnyRow | None:
    """Of the mails that one of these replies answered, the one answered last, and the key of its thread."""
    return connection.execute(_ANSWERED, {"at_mail": mail_key, "message_ids": reply_message_ids}).one_or_none()


def describe_thread(connection: Connection, mail_key: str, answered: AnyRow) -> Thread:
    """The thread of `answered` as it is for a further mail of it."""
    at_thread = {"at_mail": mail_key, "thread_key": answered.thread_key}
    counts = connection.execute(_MAILS_OF_THREAD, at_thread).one()
    return Thread(
        key=answered.thread_key,
        scenario=answered.reason.removesuffix(BY_TEMPLATE),
        ticket_id=connection.scalar(_TICKET_OF_THREAD, at_thread),
        reply_message_id=answered.reply_message_id,
        replied_at=answered.replied_at,
        replies=counts.replies,
        follow_ups=counts.follow_ups,
    )
