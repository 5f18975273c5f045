"""Whom a reply goes to: the mail's sender, and for the web forms that an operator trusts, the address in Reply-To.

Reply-To is the sender's word alone, so for everybody else it is not read: who writes somebody else's address into it
would have us write to strangers. A form that is not trusted, `noreply@shop.example`, is not answered at all; a person
gets its mail, and that of a trusted form which names nobody for certain.
"""

from __future__ import annotations

from guarantee_email_agent.email.parsing.email import MAX_HEADER_CHARS, Email
from guarantee_email_agent.utils.addresses import parse_address, strip_comments


def reply_recipient(email: Email, trusted_forms: frozenset[str]) -> str | None:
    """The bare address to reply to: the one in Reply-To of a trusted form's mail, otherwise the sender.

    None where a trusted form names nobody but itself, or not exactly one address: nobody knows who filled it in.

    trusted_forms: the addresses that forms write as From, lower-case (`agent.trusted_forms`). Reply-To counts where the
    mail has one such header with exactly one well-formed address, in no group; whether that one may be answered (it may
    be one of ours) is for `has_unclear_recipient` to judge. From can be forged: with `agent.sender_check`, a form's
    mail has to be verified like any other.
    """
    if not trusted_forms or email.sender.lower() not in trusted_forms:
        return email.sender
    values = email.headers.get("reply-to", ())
    if len(values) != 1 or len(values[0]) >= MAX_HEADER_CHARS:
        return None
    recipient = parse_address(strip_comments(values[0]))
    return None if recipient is None or recipient.lower() == email.sender.lower() else recipient
