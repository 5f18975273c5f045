"""The file of a captured scenario: its mail with personal data replaced, and what is expected, as it happens now."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.email.no_reply import decides_reply
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.header_fields import decode_encoded_words
from guarantee_email_agent.eval.capture.anonymizer import Anonymizer
from guarantee_email_agent.eval.capture.names import find_names
from guarantee_email_agent.eval.dry_run import DryRun, ticket_fields
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.files.yaml import dump
from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.utils.text import has_phrase

_MAX_TRIES: Final = 50
_NAMED_IN: Final = ("from", "to", "cc", "reply-to")
_SCHEMA_LINE: Final = "# yaml-language-server: $schema=schema.json\n"


def anonymizer_for(
    email: Email,
    raw: bytes,
    own_addresses: Iterable[str],
    look_ups: Iterable[LookUp] = (),
    further_texts: Iterable[str] = (),
    others: Iterable[Email] = (),
) -> Anonymizer:
    """What replaces the personal data of one mail, so that all that has the form of a look-up's number keeps it.

    further_texts: what else will be replaced, such as the answer of a look-up. others: mails in which people are named,
    too.
    """
    names = [found for mail in (email, *others) for found in find_names(mail, _named_in(mail))]
    texts = (*_named_in(email), email.subject, _body(email), *email.attachments, *further_texts)
    patterns = [pattern for look_up in look_ups for pattern in look_up.format.patterns]
    form = re.compile("|".join(f"(?:{each})" for each in patterns) or r"(?!)", re.IGNORECASE)
    words = (word.strip(".,:;!?()\"'") for word in f"{email.subject} {_body(email)}".split())
    shaped = [word for word in words if form.fullmatch(word)]
    salt = hashlib.sha256(raw).digest()  # known only to those who have the mail
    first = Anonymizer(salt, texts, names, own_addresses)
    for number in range(_MAX_TRIES if shaped else 0):
        made = Anonymizer(salt + bytes((number,)), texts, names, own_addresses) if number else first
        if all(form.fullmatch(made.replace(word)) for word in shaped):
            return made
    return first


def anonymous_mail(email: Email, anonymizer: Anonymizer, received: str) -> dict[str, Any]:
    """`input.email` of a scenario. received: in place of a date that cannot be read."""
    author = next(iter(email.headers.get("from", ())), "")
    sender = anonymizer.replace(decode_encoded_words(author) if author else email.sender)
    mail: dict[str, Any] = {
        "subject": anonymizer.replace(email.subject),
        "body": anonymizer.replace(_body(email)),
        "from": sender if email.sender else f"{sender.replace('<>', '').strip()} <>".strip(),
        "received": email.received or received,
    }
    if email.recipients:
        mail["to"] = anonymizer.replace(", ".join(email.recipients))
    headers = {
        "-".join(part.capitalize() for part in name.split("-")): _header(name, values[0], anonymizer)
        for name, values in email.headers.items()
        if values and decides_reply(name, values[0])
    }
    if headers:
        mail["headers"] = headers
    if email.attachments:
        mail["attachments"] = [anonymizer.replace(name) for name in email.attachments]
    return mail


def expected_output(run: DryRun, facts: Iterable[str]) -> dict[str, Any]:
    """What happened, as expectations. facts: that the reply should tell, where it does."""
    expected: dict[str, Any] = {"email_sent": run.reply is not None}
    if run.reply is not None:
        body = str(run.reply["body"])
        said = [fact for fact in facts if has_phrase(fact, body)]
        sentences = list(run.report.reply_sentences)
        if said or not sentences:
            lines = (" ".join(line.split()) for part in body.split("\n\n") for line in part.split(". "))
            expected["response_body_contains"] = said or [max(lines, key=len)]
        if sentences:
            expected["reply_sentences"] = sentences
    expected["ticket_created"] = run.ticket is not None
    if run.ticket is not None:
        expected["ticket_fields"] = ticket_fields(run.ticket)
    if reasons := run.report.hand_over_reasons:
        expected["hand_over_reason"] = reasons[0]
    expected["scenario_instruction_used"] = run.report.scenario_used or "none"
    return expected


def next_id(folder: Path, category: str) -> str:
    """`valid_warranty_083` where 082 is the highest number of the category in the folder."""
    prefix = f"{category.replace('-', '_')}_"
    numbers = [
        int(number)
        for file in EvalLoader().scenario_files(folder)
        if (stem := Path(file).stem).startswith(prefix) and (number := stem.removeprefix(prefix)).isdecimal()
    ]
    return f"{prefix}{max(numbers, default=0) + 1:03d}"


def file_text(data: Mapping[str, Any], note: str | None) -> str:
    """The file. note: for the person who looks it through, as a comment in front."""
    comment = "".join(f"# {line}\n" for line in note.splitlines()) if note else ""
    return f"{_SCHEMA_LINE}{comment}{dump(data)}"


def _named_in(email: Email) -> list[str]:
    return [decode_encoded_words(value) for name in _NAMED_IN for value in email.headers.get(name, ())]


def _body(email: Email) -> str:
    return "".join(span.text for span in email.spans)


def _header(name: str, value: str, anonymizer: Anonymizer) -> str:
    if name in ("in-reply-to", "references"):
        return anonymizer.replace_message_ids(value)
    if name.startswith("list-"):
        return "<https://www.example.com/list>"  # that there is one decides, and it names the list
    return anonymizer.replace(decode_encoded_words(value))
