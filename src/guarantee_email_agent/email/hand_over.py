"""Why code leaves a mail to a person before any model is asked: words, the language, a follow-up, an unproved sender,
a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Final

from guarantee_email_agent.email.conversation import text_fingerprint
from guarantee_email_agent.email.identity import admission_key, copy_key
from guarantee_email_agent.email.no_reply import has_unclear_recipient, maybe_automatic
from guarantee_email_agent.email.parsing.email import HEADER_DAMAGES, UNREAD_ENDINGS
from guarantee_email_agent.email.parsing.parse import parse_date
from guarantee_email_agent.email.processor_models import AnswerPolicy, IncomingMail, Triage
from guarantee_email_agent.email.recipient import reply_recipient
from guarantee_email_agent.instructions.hand_over_lexicon import (
    COPY,
    DAMAGED_HEADER,
    DELAYED,
    ENCRYPTED,
    FOLLOW_UP,
    LANGUAGE,
    MAYBE_AUTOMATIC,
    UNCLEAR_RECIPIENT,
    UNEXPLAINED,
    UNVERIFIED_SENDER,
)
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.instructions.phrases import tokenize
from guarantee_email_agent.reading.language import read_language
from guarantee_email_agent.reading.topic import labels_number
from guarantee_email_agent.services.look_up_answer import LookUpAnswer, possible_dates
from guarantee_email_agent.services.ports import Admission, ReplyHistory, Thread

_ENCRYPTED_TYPES: Final = frozenset(
    {"multipart/encrypted", "application/pgp-encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"}
    | {"application/x-microsoft-rpmsg-message"}
)
_ENCRYPTED_FILES: Final = (".p7m", ".rpmsg", "encrypted.asc")


async def hand_over_reasons(
    mail: IncomingMail,
    instructions: Instructions,
    policy: AnswerPolicy,
    history: ReplyHistory | None,
    identity_key: bytes,
) -> tuple[str, ...]:
    """Why code alone leaves the mail to a person; a mail without a reason is counted as one to be answered.

    history: what the agent did before; None where every mail is the first. identity_key: see `identity`.
    """
    email, thread = mail.email, mail.thread
    words = text_fingerprint(email)
    text = _text_of(mail)
    # "See below": what a mere forward says is what it forwards.
    if thread is None and words is None and not any(map(str.isdigit, email.new_text)):
        text = f"{email.subject}\n\n{email.new_text}\n\n{email.quoted_text}"
    # As the reply's language is chosen: the subject counts where the text does not tell.
    language = read_language(email.new_text).code or read_language(text).code
    foreign = () if language in (None, *instructions.languages) else (LANGUAGE,)
    # Whom a form means is said by its Reply-To alone, which an unproved one may have made up.
    recipient = reply_recipient(email, policy.trusted_forms)
    is_form = recipient != email.sender
    found = instructions.hand_over.find(text, in_conversation=thread is not None)
    if reasons := (*found, *foreign, *_doubts(mail, recipient, policy)):
        return reasons
    if thread is not None and (thread.follow_ups or asked_for(thread, instructions) is None):
        return (FOLLOW_UP,)
    if not mail.verified and (is_form or policy.sender_check == "hold"):
        return (UNVERIFIED_SENDER,)
    if history is None:
        return ()
    limit = await history.admit(
        Admission(
            sender_key=admission_key("sender", mail.recipient.lower(), identity_key),
            text_key=admission_key("text", words, identity_key) if words else None,
            thread_key=thread.key if thread else None,
            copy_key=copy_key(email, identity_key),
        )
    )
    return (COPY if limit == "copy" else f"limit-{limit}",) if limit else ()


def reasons_beside_number(mail: IncomingMail, instructions: Instructions, triage: Triage) -> tuple[str, ...]:
    """Why a mail is left to a person though its number would be looked up, or stands in a mail about something else."""
    text = _text_of(mail)
    if not triage.numbers and (triage.look_up or not labels_number(tokenize(text), instructions.lexicon)):
        return ()
    return instructions.hand_over.find(text, numbered=True)


def _text_of(mail: IncomingMail) -> str:
    # What a conversation with a colleague is about may stand in its subject alone.
    return f"{mail.email.subject if mail.thread is None else mail.email.own_subject}\n\n{mail.email.new_text}"


def _doubts(mail: IncomingMail, recipient: str | None, policy: AnswerPolicy) -> Iterator[str]:
    """Why nobody can be sure that this mail is to be answered, or what it says."""
    email, days = mail.email, _delay_days(mail)
    if days is not None and policy.max_delay_days is not None and days > policy.max_delay_days:
        yield DELAYED
    if not HEADER_DAMAGES.isdisjoint(email.problems):
        yield DAMAGED_HEADER
    elif any(problem.endswith(UNREAD_ENDINGS) for problem in email.problems):
        yield UNEXPLAINED
    if (
        not _ENCRYPTED_TYPES.isdisjoint(email.content_types)
        or any(name.lower().endswith(_ENCRYPTED_FILES) for name in email.attachments)
        or "-----BEGIN PGP MESSAGE-----" in email.new_text
    ):
        yield ENCRYPTED
    if has_unclear_recipient(email, recipient, policy.own_addresses):
        yield UNCLEAR_RECIPIENT
    elif recipient == email.sender and maybe_automatic(email):
        yield MAYBE_AUTOMATIC


def _delay_days(mail: IncomingMail) -> float | None:
    """From the newer of the mail's Date and its oldest Received to its delivery; None where nobody knows."""
    headers = mail.email.headers
    first_server = [value.rpartition(";")[2] for value in headers.get("received", ())[-1:]]
    moments = [moment for value in (*headers.get("date", ()), *first_server) if (moment := parse_date(value))]
    if not moments or mail.arrived_at is None:
        return None
    return (mail.arrived_at - max(moments).timestamp()) / 86_400


def asked_for(thread: Thread, instructions: Instructions) -> str | None:
    """What our last reply in the conversation asked for."""
    code = scenario_code(thread.scenario)
    return next((each.asks_for for each in instructions.scenarios if scenario_code(each.name) == code), None)


def scenario_code(name: str) -> str:
    """What the ledger's alphabet leaves of a name; ledgers of schema 1 have `missing_info` for `missing-info`."""
    return re.sub(r"[^a-z0-9]", "_", name.lower())[:64]


GRACE: Final = timedelta(days=30)
"""A warranty that is still `valid` so long after its end may be so for goodwill; later, somebody should look."""


def contradicts(answer: LookUpAnswer, look_up: LookUp, instructions: Instructions, today: date | None) -> bool:
    """Whether a warranty is `valid` though it ended longer than `GRACE` ago, or `expired` before its end.

    A coverage that no instruction file knows counts the same: what it says is not known. today: when the mail came;
    None where nobody knows, and nothing can be compared.
    """
    if not look_up.is_of_warranties:
        return False
    for fact in look_up.facts:
        if fact.form == "word" and answer.facts.get(fact.name) not in (None, *instructions.words_of(fact)):
            return True
    written = answer.facts.get("expiration_date")
    if written is None or today is None or answer.status not in look_up.statuses:
        return False
    ends = possible_dates(written)
    if answer.status == "valid":
        return any(today > end + GRACE for end in ends)
    return any(today <= end for end in ends)


def day_of_mail(received: str, arrived_at: float | None) -> date | None:
    """The day on which a mail came: by its own date (ISO 8601), else when the mailbox took it (seconds since 1970)."""
    try:
        return date.fromisoformat(received[:10])
    except ValueError:
        return None if arrived_at is None else datetime.fromtimestamp(arrived_at, UTC).date()
