"""A scenario's mail as an agent that is not in this process gets it: as JSON, and as the bytes in a mailbox."""

from __future__ import annotations

from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Any, Final

from guarantee_email_agent.eval.models import EvalTestCase

_WRITTEN_HERE: Final = frozenset({"from", "to", "subject", "date", "message-id", "mime-version"})


def mail_as_json(test_case: EvalTestCase) -> dict[str, Any]:
    """Every key is there; `to` is None where the scenario names none."""
    email = test_case.input.email
    return {
        "subject": email.subject,
        "body": email.body,
        "from": email.from_address,
        "received": email.received,
        "to": email.to,
        "headers": dict(email.headers),
        "attachments": list(email.attachments),
        "message_id": f"eval-{test_case.scenario_id}",
    }


def raw_mail(test_case: EvalTestCase) -> bytes:
    """RFC 5322: the scenario's own, else made of its keys, with empty attachments.

    Headers of the scenario stand as they are; line breaks in them are folded.
    """
    email = test_case.input.email
    if email.raw is not None:
        return email.raw
    content = EmailMessage(policy=SMTP)
    content.set_content(email.body, cte="quoted-printable")
    for name in email.attachments:
        content.add_attachment(b"", maintype="application", subtype="octet-stream", filename=name)
    headers = {
        "From": email.from_address,
        "To": email.to or "support@example.com",
        "Subject": email.subject,
        "Date": _date(email.received),
        **{name: value for name, value in email.headers.items() if name.lower() not in _WRITTEN_HERE},
    }
    own_id = next((value for name, value in email.headers.items() if name.lower() == "message-id"), None)
    headers["Message-ID"] = own_id or f"<eval-{test_case.scenario_id}@example.com>"
    lines = [f"{name}: {' '.join(value.split())}" for name, value in headers.items()]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n" + content.as_bytes()


def _date(received: str) -> str:
    """As a header has it; as the scenario has it where that is no date."""
    try:
        return format_datetime(datetime.fromisoformat(received))
    except ValueError:
        return received
