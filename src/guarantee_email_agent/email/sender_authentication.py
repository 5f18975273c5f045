"""Whether our own mail server vouches for the domain in a mail's From: its `Authentication-Results` (RFC 8601).

Anybody can write that header, so only what our server wrote counts: of the headers that name the configured
authserv-id the topmost, since a border server puts its own above all it received, and has to remove what arrives in its
name (RFC 8601 §5). A server that does neither makes every verdict worthless.

Verified is a From of exactly one address whose domain

- equals the `header.from` of `dmarc=pass`: the server found a DKIM or SPF domain aligned with it (RFC 7489 §3.1); or
- where there is no `dmarc` result, or `dmarc=none` (the domain has no policy), equals that of `dkim=pass` (`header.d`,
  else `header.i`) or of `spf=pass` (`smtp.mailfrom`).

Domains must be equal, which is the strict alignment of RFC 7489 §3.1. The relaxed one, where `mail.example.com` stands
for `example.com`, needs the Public Suffix List (`tenant.github.io` does not speak for `github.io`, nor that for it) and
is what DMARC does at the server. Any other dmarc result, more than one, and any header that is not understood to its
last character verify nothing: a sender can put text of its own into a server's comments and `smtp.mailfrom`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from guarantee_email_agent.email.parsing.email import (
    MAX_HEADER_CHARS,
    MAX_HEADERS,
    SEVERAL_AUTHORS,
    Email,
)
from guarantee_email_agent.utils.addresses import ascii_domain, parse_addresses

SenderVerdict = Literal["verified", "unverified"]

# Servers behind the border add one each at most; more of them is somebody's attempt to keep us busy.
_MAX_RESULT_HEADERS = 50

_COMMENT_PART = re.compile(r"[^()\\]++|\\.|[()]", re.DOTALL)
_PLAIN_PART = re.compile(r'"(?:[^"\\]|\\.)*+"|[^"()\\]++|[(]', re.DOTALL)
_BLANKS = r"[ \t]*+"
_NAME = r"[A-Za-z0-9_-]++"
# RFC 8601 §2.2: a MIME token, a quoted string or an address; servers write "/", "=", ":" and "<>" in it, too.
_VALUE = r'(?:"(?:[^"\\]|\\.)*+"|[^\s"();\\])++'
_AUTHSERV_ID = re.compile(rf"{_BLANKS}({_VALUE}){_BLANKS}(?:1{_BLANKS})?", re.DOTALL)
# `reason=…` and what else has no type, such as Microsoft's `action=none`, has a bare name.
_PROPERTY = rf"{_BLANKS}({_NAME}){_BLANKS}(?:\.{_BLANKS}({_NAME}){_BLANKS})?={_BLANKS}({_VALUE})?"
# Several servers write an empty one at the end.
_RESULT = re.compile(
    rf";{_BLANKS}(?:none{_BLANKS}(?=;|\Z)|"
    rf"({_NAME}){_BLANKS}(?:/{_BLANKS}1{_BLANKS})?={_BLANKS}({_NAME})((?:{_PROPERTY})*+){_BLANKS})?(?=;|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_QUOTED_PART = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MethodResult:
    """One method's result, such as `dkim=pass header.d=example.com`; all lower-case but the values."""

    method: str
    result: str
    properties: tuple[tuple[str, str], ...] = ()
    """Names with their type, such as `header.d`, to values without quotes, in order."""

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.properties if key == name]


def sender_verdict(email: Email, authserv_id: str) -> SenderVerdict:
    """Whether the domain of the mail's sender is proved by our server's results. Never raises; linear in the headers.

    authserv_id: the name by which our server signs its results (RFC 8601 §2.5), in any case; empty verifies nobody.
    """
    domain = _from_domain(email)
    if not domain or not authserv_id.strip():
        return "unverified"
    wanted = authserv_id.strip().lower()
    for value in email.headers.get("authentication-results", ())[:_MAX_RESULT_HEADERS]:
        name, results = parse_authentication_results(value)
        if name.lower() == wanted:
            # What was cut may have said anything: "dmarc=fail", for one.
            is_whole = results is not None and len(value) < MAX_HEADER_CHARS
            return "verified" if results and is_whole and _is_proved(domain, results) else "unverified"
    return "unverified"


def parse_authentication_results(value: str) -> tuple[str, tuple[MethodResult, ...] | None]:
    """The authserv-id of an `Authentication-Results` header, unfolded, and its results (RFC 8601 §2.2).

    None for results that break the grammar; `none` gives none of them. A version other than 1, of the header or a
    method, is not understood, too. Linear in its length.
    """
    text = _without_comments(value)
    name = _AUTHSERV_ID.match(text)
    if name is None:
        return "", None
    results, position = list[MethodResult](), name.end()
    while position < len(text):
        found = _RESULT.match(text, position)
        if found is None:
            return _unquoted(name[1]), None
        position = found.end()
        if found[1]:
            properties = tuple(
                (f"{kind}.{key}".lower() if key else kind.lower(), _unquoted(content))
                for kind, key, content in re.findall(_PROPERTY, found[3], re.DOTALL)
            )
            results.append(MethodResult(found[1].lower(), found[2].lower(), properties))
    return _unquoted(name[1]), tuple(results)


def _without_comments(value: str) -> str:
    """The value with a blank for each comment, nested to any depth (RFC 5322 §3.2.2).

    It ends with a sign that nothing may hold where a comment or a string is never closed.
    """
    kept, depth, position = list[str](), 0, 0
    while position < len(value):
        part = (_COMMENT_PART if depth else _PLAIN_PART).match(value, position)
        if part is None:
            break
        position = part.end()
        is_inside = depth > 0
        depth += (part[0] == "(") - (is_inside and part[0] == ")")
        kept.append(" " if is_inside or depth else part[0])
    return "".join(kept) + ("\\" if depth or position < len(value) else "")


def _unquoted(value: str) -> str:
    return _QUOTED_PART.sub(lambda match: _ESCAPED.sub(r"\1", match[1]), value)


def _is_proved(domain: str, results: tuple[MethodResult, ...]) -> bool:
    policies = [result for result in results if result.method == "dmarc"]
    if len(policies) > 1:
        return False
    if policies and policies[0].result != "none":
        names = [ascii_domain(value) for value in policies[0].values("header.from")]
        return policies[0].result == "pass" and names == [domain]
    return any(_proved_domain(result) == domain for result in results)


def _proved_domain(result: MethodResult) -> str | None:
    """The one domain that a passed `dkim` or `spf` stands for."""
    if result.result != "pass":
        return None
    if result.method == "dkim":
        values = result.values("header.d") or result.values("header.i")
    else:
        values = result.values("smtp.mailfrom") if result.method == "spf" else []
    return ascii_domain(values[0]) if len(values) == 1 else None


def _from_domain(email: Email) -> str | None:
    """The domain of the only author; None for several, for none, or where the parser had to guess."""
    if SEVERAL_AUTHORS in email.problems or sum(map(len, email.headers.values())) >= MAX_HEADERS:
        return None
    # A mail from a mapping may have no From among its headers.
    for value in (authors := email.headers.get("from", ())):
        if len(authors) > 1 or len(value) >= MAX_HEADER_CHARS or parse_addresses(value) != [email.sender]:
            return None
    return ascii_domain(email.sender) if "@" in email.sender else None
