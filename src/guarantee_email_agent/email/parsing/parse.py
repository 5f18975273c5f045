"""Parse a raw mail into an `Email`: a mapping, as mail services and scenarios give it, or the bytes of RFC 5322.

The only exception is `ProcessingError`, for what is no mail or has nobody to answer to. Any other defect is worked
around, and named in `Email.problems`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from guarantee_email_agent.email.parsing.email import (
    DERIVED_ID_SUFFIX,
    MAX_ATTACHMENTS,
    MAX_BODY_CHARS,
    MAX_DATE_CHARS,
    MAX_HEADER_CHARS,
    MAX_HEADERS,
    MAX_HTML_CHARS,
    MAX_MESSAGE_ID_CHARS,
    MAX_NAME_CHARS,
    MAX_RECIPIENTS,
    MAX_SUBJECT_CHARS,
    SEVERAL_AUTHORS,
    TOO_MANY_HEADERS,
    Email,
)
from guarantee_email_agent.email.parsing.quoting import label_spans
from guarantee_email_agent.utils.addresses import parse_addresses
from guarantee_email_agent.utils.errors import ProcessingError
from guarantee_email_agent.utils.text import normalize_file_name, normalize_line, normalize_text, replace_controls

if TYPE_CHECKING:
    from datetime import datetime

_MESSAGE_ID = r"<[^<>\s]{1,996}>"
_HTML_BLANK = "&(?:nbsp|#160|#xa0);"
_WORD, _LINK = r"\w+", r"https?://\S+"
_NAME_DOT = r"\.(?=\s*(?:>|$))"  # which ends a fully qualified domain name
_MAX_STUB_CHARS = 400  # of a plain half such as "Please view this message in a browser."


def parse_email(raw: Mapping[str, object] | bytes) -> Email:
    """Read one mail.

    A mapping has `from`, `subject`, `body`, `received` (ISO 8601) and `message_id`, and may have `to`, `cc`, `html`,
    `headers` (raw names to a value or a list of values), `attachments` (names) and `thread_id`. Only `from` says who
    the sender is; a `From` among the headers does not. A body that is HTML, by its `Content-Type` header or its looks,
    is turned into text.

    Raises ProcessingError with the code `email_not_a_mail`, `email_missing_sender` (nobody is named) or
    `email_invalid_sender` (what is named is no address).
    """
    if isinstance(raw, (bytes, bytearray, memoryview)):
        return _from_bytes(bytes(raw))
    if isinstance(raw, Mapping):
        return _from_mapping(raw)
    raise ProcessingError(
        f"A mail must be a mapping or bytes, not {type(raw).__name__}. Pass the raw message or its fields.",
        "email_not_a_mail",
    )


def _from_mapping(raw: Mapping[str, object]) -> Email:
    problems: list[str] = []
    sender = _sender(raw.get("from"), problems)
    headers = _headers(raw.get("headers"), problems)
    subject = _text_field(raw, "subject", problems)
    if "=?" in subject:
        from guarantee_email_agent.email.parsing.header_fields import decode_encoded_words  # rarely left encoded

        subject = decode_encoded_words(subject[:MAX_HEADER_CHARS])
    subject = _subject(subject, problems)
    received = normalize_line(_text_field(raw, "received", problems), MAX_DATE_CHARS)
    content_types: tuple[str, ...] = ()
    if "content-type" in headers:
        from guarantee_email_agent.email.parsing.header_fields import describe_content_type  # few mappings name it

        content_types = (describe_content_type(headers["content-type"][0]),)
    body = _mapping_body(raw, "".join(content_types), problems)
    message_id = normalize_line(_text_field(raw, "message_id", problems), MAX_MESSAGE_ID_CHARS)
    if not message_id:
        message_id = _derive_message_id("\x1f".join((sender, subject, received, body)).encode("utf-8", "replace"))
    thread_id = _text_field(raw, "thread_id", problems, required=False)
    attachments = _attachments(raw.get("attachments"), problems)
    addressed: Mapping[str, object] = raw if "to" in raw or "cc" in raw else headers
    return Email(
        message_id,
        sender,
        _recipients((addressed.get("to"), addressed.get("cc")), problems) if addressed else (),
        subject,
        received,
        label_spans(body),
        attachments,
        headers,
        normalize_line(thread_id, MAX_MESSAGE_ID_CHARS) or None if thread_id else None,
        tuple(dict.fromkeys(problems)),
        content_types,
    )


def _from_bytes(raw: bytes) -> Email:
    from guarantee_email_agent.email.parsing.header_fields import decode_encoded_words  # only bytes need it and MIME
    from guarantee_email_agent.email.parsing.mime import parse_mime

    mail = parse_mime(raw)
    fields, problems = mail.fields, mail.problems
    if not fields:
        raise ProcessingError(
            "The message has no header fields, so it is no mail. A mail's file begins with lines such as 'From: …'.",
            "email_not_a_mail",
        )
    senders = fields.get("from", [])
    if len(senders) > 1:
        problems.append("the mail has more than one From header; the first with an address counts")
    sender = _sender(next(filter(parse_addresses, senders), senders[0] if senders else None), problems)
    message_ids = fields.get("message-id", [])
    if len(message_ids) > 1:
        problems.append("the mail has more than one Message-ID; the first counts")
    if message_ids and message_ids[0]:
        found = re.search(_MESSAGE_ID, message_ids[0])
        message_id = found[0] if found else normalize_line(message_ids[0], MAX_MESSAGE_ID_CHARS)
    else:
        problems.append("the mail has no Message-ID; one was derived from its content")
        message_id = _derive_message_id(raw)
    body = "\n\n".join(filter(None, [_preferred_text(group, problems) for group in mail.alternatives]))
    return Email(
        message_id=message_id,
        sender=sender,
        recipients=_recipients((fields.get("to"), fields.get("cc")), problems),
        subject=_subject(decode_encoded_words(fields.get("subject", [""])[0]), problems),
        received=_parse_received_date(fields),
        spans=label_spans(_truncate(body, MAX_BODY_CHARS, "the text", problems)),
        attachments=_attachments(mail.attachments, problems),
        headers={name: tuple(values) for name, values in fields.items()},
        problems=tuple(dict.fromkeys(problems)),
        content_types=tuple(mail.content_types),
    )


def _sender(value: object, problems: list[str]) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ProcessingError(
            "The mail has no sender, so nobody can be answered. Its From must hold a mail address.",
            "email_missing_sender",
        )
    found = parse_addresses(value)
    if not found and ("=?" in value or re.search(_NAME_DOT, value)):
        from guarantee_email_agent.email.parsing.header_fields import decode_encoded_words  # against RFC 2047 §5

        found = parse_addresses(re.sub(_NAME_DOT, "", decode_encoded_words(value[:MAX_HEADER_CHARS])))
        found = found if len(found) == 1 else []
    if found:
        if len(found) > 1:
            problems.append(SEVERAL_AUTHORS)
        return found[0]
    if value.rstrip().endswith("<>"):
        problems.append("the sender is the null address")
        return ""
    raise ProcessingError(
        "The mail's sender is no mail address, so nobody can be answered. Its From must hold one, such as "
        "jane@example.com or Jane <jane@example.com>.",
        "email_invalid_sender",
    )


def _subject(text: str, problems: list[str]) -> str:
    if len(text) > MAX_SUBJECT_CHARS:
        problems.append(f"the subject is longer than {MAX_SUBJECT_CHARS} characters and was cut")
    return normalize_line(text, MAX_SUBJECT_CHARS)


def _text_field(raw: Mapping[str, object], key: str, problems: list[str], *, required: bool = True) -> str:
    value = raw.get(key)
    if isinstance(value, str):
        return value
    if value is not None:
        problems.append(f"{key} is {type(value).__name__}, not text; left out")
    elif required:
        problems.append(f"{key} is missing")
    return ""


def _mapping_body(raw: Mapping[str, object], content_type: str, problems: list[str]) -> str:
    body = _text_field(raw, "body", problems)
    html = _text_field(raw, "html", problems, required=False)
    if content_type.startswith("text/calendar"):  # its source is no text of anybody
        body = ""
    is_html = content_type.startswith(("text/html", "application/xhtml"))
    if not is_html and "<" in body and not content_type.startswith("text/plain"):
        from guarantee_email_agent.email.parsing.html_text import looks_like_html  # most bodies hold no "<"

        is_html = looks_like_html(body[:MAX_BODY_CHARS])
    if not is_html and not html:  # almost every mail
        return _plain_text(body, problems)
    return _preferred_text([("html" if is_html else "plain", body), ("html", html)], problems)


def _preferred_text(group: Sequence[tuple[str, str]], problems: list[str]) -> str:
    """The text of alternative (subtype, content) parts: the plain one, unless it is empty or a stub of the other."""
    plain = ""
    for subtype, content in group:
        if subtype == "plain":
            text = _plain_text(content, problems)
            plain = plain if plain.strip() else text
            if len(text.strip()) >= _MAX_STUB_CHARS:
                return text
    for subtype, content in group:
        if subtype == "html" and content.strip():
            # Few mails hold HTML.
            from guarantee_email_agent.email.parsing.html_text import html_to_text, truncate_html

            if len(content) > MAX_HTML_CHARS:
                problems.append(f"the HTML is longer than {MAX_HTML_CHARS} characters; the rest was left out")
            text = normalize_text(html_to_text(truncate_html(content, MAX_HTML_CHARS)))
            text = _truncate(text, MAX_BODY_CHARS, "the text", problems)
            if text.strip() and _is_stub(plain, text):
                return text
    return plain


def _plain_text(body: str, problems: list[str]) -> str:
    """What web forms leave of their HTML is no part of a number: "S/N&nbsp;KT-77120-9"."""
    return re.sub(_HTML_BLANK, " ", normalize_text(_truncate(body, MAX_BODY_CHARS, "the text", problems)))


def _is_stub(plain: str, html: str) -> bool:
    """Whether a short plain text says something else than the HTML, or only a part of it."""
    words, shown = (set(re.findall(_WORD, re.sub(_LINK, "", text.casefold()))) for text in (plain, html))
    if any(map(str.isdigit, "".join(words - shown))):  # no stub gives a number of its own
        return False
    return len(html) >= len(plain.strip()) and (2 * len(words & shown) < len(words) or len(shown) >= 2 * len(words))


def _truncate(text: str, limit: int, what: str, problems: list[str]) -> str:
    if len(text) <= limit:
        return text
    problems.append(f"{what} is longer than {limit} characters; the rest was left out")
    return text[:limit]


def _headers(given: object, problems: list[str]) -> dict[str, tuple[str, ...]]:
    """Header fields from a mapping of names to a value or a list of values."""
    if given is None:
        return {}
    found: dict[str, list[str]] = {}
    headers = _iterate_headers(given, problems)
    for name, value in islice(headers, MAX_HEADERS):
        found.setdefault(name, []).append(_header_value(value, problems))
    if next(headers, None):
        problems.append(TOO_MANY_HEADERS)
    return {name: tuple(values) for name, values in found.items()}


def _iterate_headers(given: object, problems: list[str]) -> Iterator[tuple[str, object]]:
    if not isinstance(given, Mapping):
        problems.append(f"headers is {type(given).__name__}, not a mapping; left out")
        return
    for name, values in given.items():
        if not isinstance(name, str) or not name.strip():
            problems.append("a header has no name")
            continue
        key = normalize_line(name, MAX_NAME_CHARS).rstrip(":").rstrip().lower()
        yield from ((key, value) for value in _as_list(values))


def _header_value(value: object, problems: list[str]) -> str:
    if isinstance(value, str):
        kept = replace_controls(_truncate(value, MAX_HEADER_CHARS, "a header", problems))
        # Blanks at the end must not hide that a value was cut: the rest may have said the opposite.
        return kept if len(value) <= MAX_HEADER_CHARS else kept.ljust(MAX_HEADER_CHARS)
    if isinstance(value, bool):  # what YAML 1.1 makes of "Auto-Submitted: no"
        return "yes" if value else "no"
    # The name alone can decide that a mail must not be answered, so it stays.
    problems.append(f"a header's value is {type(value).__name__}, not text; taken as empty")
    return ""


def _recipients(values: Iterable[object], problems: list[str]) -> tuple[str, ...]:
    singles = [single for value in values for single in _as_list(value)]
    found: list[str] = []
    for single in singles[:MAX_RECIPIENTS]:
        if isinstance(single, str):
            found += parse_addresses(single)
        elif single is not None:
            problems.append(f"a recipient is {type(single).__name__}, not text; left out")
        if len(found) > MAX_RECIPIENTS:
            break
    if len(found) > MAX_RECIPIENTS or len(singles) > MAX_RECIPIENTS:
        problems.append(f"the mail has more than {MAX_RECIPIENTS} recipients; the rest was left out")
    return tuple(dict.fromkeys(found[:MAX_RECIPIENTS]))


def _attachments(given: object, problems: list[str]) -> tuple[str, ...]:
    names: list[str] = []
    for entry in () if given is None else _as_list(given):
        if len(names) == MAX_ATTACHMENTS:
            problems.append(f"the mail has more than {MAX_ATTACHMENTS} attachments; the rest was left out")
            break
        if isinstance(entry, str):
            names.append(normalize_file_name(entry, MAX_NAME_CHARS) or "unnamed")
        else:
            problems.append("an attachment has no name")
    return tuple(names)


def _as_list(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _parse_received_date(fields: Mapping[str, list[str]]) -> str:
    """When the last server took the mail (its Received line is the first), else when the sender says it was written."""
    written = fields.get("date", [""])[0]
    for value in (fields.get("received", [""])[0].rpartition(";")[2], written):
        if moment := parse_date(value):
            return moment.isoformat().replace("+00:00", "Z")
    return normalize_line(written, MAX_DATE_CHARS)


def parse_date(value: str) -> datetime | None:
    """The moment in UTC that a header's date names (RFC 5322 §3.3); None for what is none."""
    from datetime import UTC  # with email.utils, only what has a date needs it
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value.strip()[:MAX_DATE_CHARS])
        # "-0000" means UTC by a sender that does not tell its zone.
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _derive_message_id(content: bytes) -> str:
    from hashlib import sha256  # 8 ms to load, for the few mails without a Message-ID

    return f"<sha256-{sha256(content).hexdigest()}{DERIVED_ID_SUFFIX}"
