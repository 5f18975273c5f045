"""Why code leaves a mail to a person before any model is asked: an answer to our summary, words, the language, a
follow-up, an unproved sender, a limit.
"""

from __future__ import annotations

import re

from guarantee_email_agent.email.conversation import answered_message_ids, text_fingerprint
from guarantee_email_agent.email.identity import admission_key, is_summary_id
from guarantee_email_agent.email.processor_models import AnswerPolicy, IncomingMail
from guarantee_email_agent.email.recipient import reply_recipient
from guarantee_email_agent.instructions.hand_over_lexicon import (
    FOLLOW_UP,
    LANGUAGE,
    SUMMARY_REPLY,
    UNVERIFIED_SENDER,
)
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.integrations.ports import Admission, ReplyHistory, Thread
from guarantee_email_agent.reading.language import read_language


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
    if any(map(is_summary_id, answered_message_ids(email))):
        return (SUMMARY_REPLY,)
    words = text_fingerprint(email)
    # What a conversation with a colleague is about may stand in its subject alone.
    text = f"{email.subject if thread is None else email.own_subject}\n\n{email.new_text}"
    # "See below": what a mere forward says is what it forwards.
    if thread is None and words is None and not any(map(str.isdigit, email.new_text)):
        text = f"{email.subject}\n\n{email.new_text}\n\n{email.quoted_text}"
    language = read_language(text).code
    foreign = () if language in (None, *instructions.languages) else (LANGUAGE,)
    if reasons := (*instructions.hand_over.find(text, in_conversation=thread is not None), *foreign):
        return reasons
    if thread is not None and (thread.follow_ups or asked_for(thread, instructions) is None):
        return (FOLLOW_UP,)
    # Whom a form means is said by its Reply-To alone, which an unproved one may have made up.
    is_form = reply_recipient(email, policy.trusted_forms) != email.sender
    if not mail.verified and (is_form or policy.sender_check == "hold"):
        return (UNVERIFIED_SENDER,)
    if history is None:
        return ()
    limit = await history.admit(
        Admission(
            sender_key=admission_key("sender", mail.recipient.lower(), identity_key),
            text_key=admission_key("text", words, identity_key) if words else None,
            thread_key=thread.key if thread else None,
        )
    )
    return (f"limit-{limit}",) if limit else ()


def asked_for(thread: Thread, instructions: Instructions) -> str | None:
    """What our last reply in the conversation asked for."""
    code = scenario_code(thread.scenario)
    return next((each.asks_for for each in instructions.scenarios if scenario_code(each.name) == code), None)


def scenario_code(name: str) -> str:
    """What the ledger's alphabet leaves of a name; ledgers of schema 1 have `missing_info` for `missing-info`."""
    return re.sub(r"[^a-z0-9]", "_", name.lower())[:64]
