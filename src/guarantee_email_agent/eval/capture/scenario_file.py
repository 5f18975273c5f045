"""The file of a captured scenario: its mail with personal data replaced, and what is expected, as it happens now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.email.no_reply import decides_reply
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.header_fields import decode_encoded_words
from guarantee_email_agent.eval.answer_report import ticket_fields
from guarantee_email_agent.eval.capture.anonymizer import Anonymizer
from guarantee_email_agent.eval.capture.names import find_names
from guarantee_email_agent.eval.dry_run import DryRun
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.files.yaml import dump
from guarantee_email_agent.utils.normalize import has_phrase

_MAX_PHRASES: Final = 3
_NAMED_IN: Final = ("from", "to", "cc", "reply-to")
_SCHEMA_LINE: Final = "# yaml-language-server: $schema=schema.json\n"


def anonymizer_for(
    email: Email,
    salt: bytes,
    own_addresses: Iterable[str],
    further_texts: Iterable[str] = (),
    others: Iterable[Email] = (),
) -> Anonymizer:
    """What replaces the personal data of one mail. salt: known only to those who have the mail.

    further_texts: what else will be replaced, such as the answer of a look-up. others: mails in which people are named,
    too.
    """
    names = [
        found
        for mail in (email, *others)
        for found in find_names(
            mail, [decode_encoded_words(value) for name in _NAMED_IN for value in mail.headers.get(name, ())]
        )
    ]
    texts = (email.subject, _body(email), *email.attachments, *further_texts)
    return Anonymizer(salt, texts, names, own_addresses)


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


def expected_output(run: DryRun, facts: Iterable[str], phrases: tuple[list[str], list[str]]) -> dict[str, Any]:
    """What happened, as expectations.

    facts: that the reply should tell, where it does. phrases: that other scenarios of the category expect and exclude.
    """
    expected: dict[str, Any] = {"email_sent": run.reply is not None}
    if run.reply is not None:
        body = str(run.reply["body"])
        said = [fact for fact in facts if has_phrase(fact, body)]
        usual = [phrase for phrase in phrases[0] if has_phrase(phrase, body) and phrase not in said]
        expected["response_body_contains"] = [*said, *usual[:_MAX_PHRASES]] or [_longest_sentence(body)]
        if excludes := [phrase for phrase in phrases[1] if not has_phrase(phrase, body)][:_MAX_PHRASES]:
            expected["response_body_excludes"] = excludes
    expected["ticket_created"] = run.ticket is not None
    if run.ticket is not None:
        expected["ticket_fields"] = ticket_fields(run.ticket)
    if reasons := run.report.hand_over_reasons:
        expected["hand_over_reason"] = reasons[0]
    expected["scenario_instruction_used"] = run.report.scenario_used or "none"
    return expected


def usual_phrases(suite: Iterable[EvalTestCase], category: str) -> tuple[list[str], list[str]]:
    """What the scenarios of a category expect a reply to hold and not to hold, the most frequent first."""
    contains: Counter[str] = Counter()
    excludes: Counter[str] = Counter()
    for case in suite:
        if case.category == category:
            contains.update(case.expected_output.response_body_contains)
            excludes.update(case.expected_output.response_body_excludes)
    return _repeated(contains), _repeated(excludes)


def _repeated(phrases: Counter[str]) -> list[str]:
    """What stands in a suite once is one mail's own fact, such as its serial number."""
    return [phrase for phrase, count in phrases.most_common() if count > 1]


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


def _body(email: Email) -> str:
    return "".join(span.text for span in email.spans)


def _header(name: str, value: str, anonymizer: Anonymizer) -> str:
    if name in ("in-reply-to", "references"):
        return anonymizer.replace_message_ids(value)
    if name.startswith("list-"):
        return "<https://www.example.com/list>"  # that there is one decides, and it names the list
    return anonymizer.replace(decode_encoded_words(value))


def _longest_sentence(reply: str) -> str:
    sentences = [" ".join(sentence.split()) for line in reply.split("\n\n") for sentence in line.split(". ")]
    return max(sentences, key=len)
