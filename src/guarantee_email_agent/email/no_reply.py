"""Which mails must not be answered by a program, so that programs never answer each other.

The rules, each with its source:

- the null return path `<>`: RFC 3834 §2, RFC 5321 §4.5.5;
- `Auto-Submitted` with any value but `no`: RFC 3834 §2 and §5;
- any `List-*` header: RFC 3834 §2; RFC 2369, RFC 2919;
- `Precedence: bulk`, `list` or `junk`: RFC 3834 §2; `auto_reply` is what several autoresponders write there;
- `multipart/report` (RFC 6522) and its parts sent alone (RFC 3464, RFC 8098): bounces and receipts;
- `X-Auto-Response-Suppress` with `All`, `AutoReply` or `OOF`: MS-OXCMAIL §2.1.3.2.20; the other values ask for no
  receipts only;
- `X-Autoreply`, `X-Autorespond` and variants: what autoresponders wrote before RFC 3834;
- senders that read no mail (`no-reply@` and its like), and mail systems themselves: `mailer-daemon`, `postmaster`,
  `bounce`, list servers (RFC 5230 §4.6);
- our own addresses, whatever their case or "+tag";
- subjects that only autoresponders and mail systems write, complete with the colon or the exact wording.

Left out on purpose, since people's mails carry them too: `Feedback-ID` (some providers add it to all they send),
`Return-Path` with a bounce address (every campaign and help-desk service), the senders `owner-*` and `*-request` of
RFC 5230 (lists name themselves by `List-*`), and a bare "out of office" inside a subject.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from guarantee_email_agent.email.parsing.addresses import strip_comments
from guarantee_email_agent.email.parsing.email import Email

# A fast check first: one of these stands in every sender that the two patterns match.
_SENDER_PARTS = (
    *("repl", "respond", "repond", "rispond", "antwort", "odpowiada", "beantwoord"),
    *("daemon", "postmaster", "bounce", "delivery", "listserv", "majordomo"),
)
_NO_READER = (
    r"(?:^|[-_.+=])(?:(?:no|not|non|do[-_.]?not|dont)[-_.]?repl(?:y|ies)|no[-_.]?responder?|ne[-_.]?pas[-_.]?repondre|"
    r"nicht[-_.]?antworten|keine[-_.]?antwort|nie[-_.]?odpowiada[jc]|no[-_.]?rispondere|niet[-_.]?beantwoorden)"
    r"(?=$|[-_.+=\d])"
)
_MAIL_SYSTEM = r"(?:mailer[-_.]?daemon|postmaster|bounces?|mail[-_.]?delivery|listserv|majordomo)(?=$|[-_.+=\d])"

# "Automatic reply: your subject", as Exchange and its like write it, and the whole subjects of mail systems.
_SUBJECT_STARTS = frozenset(
    {"automatic reply", "auto reply", "auto-reply", "autoreply", "auto response", "auto-response", "out of office"}
    | {"out of office autoreply", "automatische antwort", "abwesenheitsnotiz", "odpowiedź automatyczna"}
    | {"automatyczna odpowiedź", "réponse automatique", "respuesta automática", "risposta automatica"}
    | {"resposta automática", "automatisch antwoord", "autosvar", "undeliverable", "unzustellbar", "undelivered"}
    | {"niedostarczalne", "non remis", "no se puede entregar", "onbestelbaar", "mail delivery failed"}
    | {"delivery status notification"}
)
_SUBJECTS = frozenset(
    {"undelivered mail returned to sender", "delivery status notification (failure)", "failure notice"}
    | {"delivery status notification (delay)", "mail delivery failed: returning message to sender"}
    | {"mail delivery failure", "returned mail: see transcript for details", "abwesenheitsnotiz"}
)
_REPORT_TYPES = ("multipart/report", "message/delivery-status", "message/disposition-notification")
_BULK_PRECEDENCES = frozenset({"bulk", "list", "junk", "auto_reply", "auto-reply"})
_SUPPRESSED = frozenset({"all", "autoreply", "oof"})
# Any other may be the sender's own words, which no reason may quote.
_LIST_HEADERS = frozenset(
    f"list-{part}"
    for part in ("archive", "help", "id", "owner", "post", "subscribe", "unsubscribe", "unsubscribe-post")
)
_AUTORESPONDER_HEADERS = ("x-autoreply", "x-auto-reply", "x-autorespond", "x-autoresponder", "x-autoreply-from")


def no_reply_reason(email: Email, own_addresses: frozenset[str]) -> str | None:
    """Why this mail must not be answered, in a few English words; None if it may be.

    own_addresses: the bare addresses the agent reads and writes from.
    """
    if not email.sender:
        return "null return path"
    if email.headers and (reason := _header_reason(email.headers)):
        return reason
    if reason := _sender_reason(email.sender, own_addresses):
        return reason
    subject = email.subject.lower()
    start, colon, _ = subject.partition(":")
    is_automatic = subject in _SUBJECTS or (colon and start.rstrip() in _SUBJECT_STARTS)
    return "subject of an automatic reply or a bounce" if is_automatic else None


def _header_reason(headers: Mapping[str, tuple[str, ...]]) -> str | None:
    for value in headers.get("return-path", ()):
        if strip_comments(value).replace(" ", "") == "<>":
            return "null return path"
    for value in headers.get("auto-submitted", ()):
        if _keyword(value) != "no":
            return "Auto-Submitted is not 'no'"
    for name in headers:
        if name.startswith("list-"):
            return f"mailing list ({name.title() if name in _LIST_HEADERS else 'List-*'})"
    for value in headers.get("precedence", ()):
        if (keyword := _keyword(value)) in _BULK_PRECEDENCES:
            return f"Precedence is {keyword}"
    for value in headers.get("content-type", ()):
        if _keyword(value) in _REPORT_TYPES:
            return f"mail system report ({_keyword(value)})"
    for value in headers.get("x-auto-response-suppress", ()):
        if not _SUPPRESSED.isdisjoint(re.split(r"[\s,;]+", strip_comments(value).lower())):
            return "X-Auto-Response-Suppress asks for no automatic reply"
    for name in _AUTORESPONDER_HEADERS:
        for value in headers.get(name, ()):
            if _keyword(value) not in ("no", "false", "0"):
                return f"written by an autoresponder ({name.title()})"
    return None


def _sender_reason(sender: str, own_addresses: frozenset[str]) -> str | None:
    address = sender.lower()
    local = address.partition("@")[0]
    if any(part in local for part in _SENDER_PARTS):
        if re.search(_NO_READER, local):
            return "sender takes no replies"
        if re.match(_MAIL_SYSTEM, local):
            return "sender is a mail system"
    is_own = own_addresses and _strip_subaddress(address) in _canonical_addresses(own_addresses)
    return "sent by ourselves" if is_own else None


def _keyword(value: str) -> str:
    """The value's first word, without comments and parameters, lower-case (RFC 3834 §5 allows both around it)."""
    words = strip_comments(value).replace(";", " ").replace(",", " ").split(None, 1)
    return words[0].strip("\"'").lower() if words else ""


def _strip_subaddress(address: str) -> str:
    local, _, domain = address.rpartition("@")
    return f"{local.partition('+')[0]}@{domain}"


@lru_cache(maxsize=8)  # the same set for every mail of a run
def _canonical_addresses(addresses: frozenset[str]) -> frozenset[str]:
    return frozenset(_strip_subaddress(address.strip().lower()) for address in addresses)
