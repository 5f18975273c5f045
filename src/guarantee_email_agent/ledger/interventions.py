"""What a person does to a mail: give it back to the agents, or take it over.

None of this sends anything, and none of it makes a reply possible twice: a mail whose reply may have left keeps the
stage `sending`, so that the agent that claims it next looks for the proof of that reply before anything else. Each step
is one transaction, and the fence goes up wherever a claim is taken from somebody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, Update, case, func, or_, select, update

from guarantee_email_agent.ledger.database import Database
from guarantee_email_agent.ledger.mail_state import left_s
from guarantee_email_agent.ledger.tables import (
    BEFORE_SENDING,
    NOT_ADMITTED,
    NOW,
    RELEASED,
    STAGE_WITHOUT_REPLY,
    STOPPED,
    UNMARK_ALL,
    AnyRow,
    mails,
)
from guarantee_email_agent.services.ports import PARKED
from guarantee_email_agent.utils.errors import AgentError

SHORT_KEY: Final = 12
"""Digits of a mail's key by which people call it."""

BY_HAND: Final = "by_hand"
"""The reason of a mail that a person took over."""

_STAGE_OF_RELEASED: Final = case(
    # A reply that may have left is looked for by the next claim; an intent to open a ticket is simply repeated.
    (or_(mails.c.outcome.is_(None), mails.c.stage.in_(("sending", "sent"))), mails.c.stage),
    else_=STAGE_WITHOUT_REPLY,
)


class RefusedError(AgentError):
    """The mail is in no state for what was asked; nothing was changed."""


class Interventions:
    """Raises RefusedError where a mail's state does not allow it, and LedgerError where the database fails.

    has_ended: whether the process of that name is known to run no more.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def release(self, mail_key: str, has_ended: Callable[[str], bool], *, is_paid: bool = False) -> None:
        """Let the agents work on a mail now: end its wait, the claim of an agent that runs no more, or its parking.

        An agent takes its mark off. All its tries are new. is_paid: whether a language model is, by the mail; what an
        interrupted try took of it stays unknown.
        """
        with self._database.write_transaction() as connection:
            row = _read(connection, mail_key)
            if row.outcome is not None and row.outcome not in PARKED:
                raise _ended(row, "It is not answered again")
            if row.outcome is None:
                _require_free(row, has_ended)
            values = {"stage": _STAGE_OF_RELEASED, "reason": RELEASED, "attempts": 0, "crashes": 0}
            if is_paid and (row.owner is not None or row.reason == STOPPED):
                values |= {"worked_s": func.coalesce(mails.c.worked_s, 0.0), "cost_usd": None}
            connection.execute(_taken(mail_key).values(outcome=None, since=NOW, **values))

    def hand_over(self, mail_key: str) -> bool:
        """A person takes the mail: no agent answers it from now on. False where it was with a person already.

        An agent that is working on it loses its claim, unless its ticket is just being opened, or its reply is about to
        leave or has left.
        """
        with self._database.write_transaction() as connection:
            row = _read(connection, mail_key)
            if row.outcome == "handed_over":
                connection.execute(UNMARK_ALL, {"at_mail": mail_key})
                return False
            # Also where no agent has it any more: one that stands still may send the reply when it goes on.
            if row.outcome is None and row.stage not in BEFORE_SENDING:
                raise _on_its_way(row)
            is_held = row.outcome is None and row.owner is not None and left_s(row.since, row.span_s, row.now) > 0
            # A person would not learn of the ticket; or its mark is being taken off, which would undo ours.
            if is_held and (row.stage == "ticketing" or row.reason == RELEASED):
                raise _busy(row)
            if row.outcome is not None and row.outcome not in PARKED:
                raise _ended(row, "Answer it by hand where you want to: nothing keeps you from it")
            forgotten = NOT_ADMITTED if row.stage in BEFORE_SENDING else {}  # else it counts against the limits still
            connection.execute(_taken(mail_key).values(outcome="handed_over", reason=BY_HAND, **forgotten))
            # Where no mark is known of, an agent sets one; else it would take the mail for one to be tried again.
            connection.execute(UNMARK_ALL, {"at_mail": mail_key})
        return True


def _read(connection: Connection, mail_key: str) -> AnyRow:
    locked = select(mails, NOW.label("now")).where(mails.c.mail_key == mail_key).with_for_update()
    row = connection.execute(locked).one_or_none()
    if row is None:
        raise RefusedError(f"Mail {mail_key[:SHORT_KEY]} is no longer in the ledger", "ledger_mail_gone")
    return row


def _require_free(row: AnyRow, has_ended: Callable[[str], bool]) -> None:
    """Raises RefusedError while somebody works on it, or its reply may be on its way."""
    seconds = left_s(row.since, row.span_s, row.now)
    if row.owner is not None and seconds > 0 and not has_ended(row.owner):
        raise _busy(row)
    if seconds > 0 and row.stage == "sending":
        raise _on_its_way(row, seconds)


def _busy(row: AnyRow) -> RefusedError:
    return RefusedError(
        f"Mail {row.mail_key[:SHORT_KEY]} is being worked on by {short_owner(row.owner)}. Wait for its outcome; if "
        f"that process is gone, the mail is free in {left_s(row.since, row.span_s, row.now):.0f} s at the latest",
        "ledger_mail_busy",
    )


def _on_its_way(row: AnyRow, seconds: float | None = None) -> RefusedError:
    when = "" if seconds is None else f", in {seconds:.0f} s at the latest"
    return RefusedError(
        f"The reply to mail {row.mail_key[:SHORT_KEY]} may be on its way. The agent finds out whether it left{when}; "
        "try again then",
        "ledger_mail_sending",
    )


def _ended(row: AnyRow, remedy: str) -> RefusedError:
    how = (
        "was only observed, and is left to people"
        if row.outcome == "observed"
        else f"has ended: {row.outcome.replace('_', ' ')}"
    )
    return RefusedError(f"Mail {row.mail_key[:SHORT_KEY]} {how}. {remedy}", "ledger_mail_ended")


def short_owner(owner: str) -> str:
    """`host:pid` of a process's name."""
    return ":".join(owner.split(":")[:2])


def _taken(mail_key: str) -> Update:
    """From whoever had it."""
    at = update(mails).where(mails.c.mail_key == mail_key)
    return at.values(owner=None, span_s=0.0, fence=mails.c.fence + 1, changed_at=NOW)
