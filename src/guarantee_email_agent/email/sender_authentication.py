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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from guarantee_email_agent.email.parsing.email import (
    MAX_HEADER_CHARS,
    MAX_HEADERS,
    SEVERAL_AUTHORS,
    Email,
)
from guarantee_email_agent.utils.addresses import parse_addresses

SenderVerdict = Literal["verified", "unverified"]

# Servers behind the border add one each at most; more of them is somebody's attempt to keep us busy.
_MAX_RESULT_HEADERS = 50
_MAX_DOMAIN_CHARS = 253  # RFC 1035 §2.3.4, as text
_MAX_LABEL_CHARS = 63

_BLANKS = re.compile(r"[ \t]*+")
_COMMENT_PART = re.compile(r"[^()\\]++|\\.|[()]", re.DOTALL)
# RFC 8601 §2.2: a MIME token, a quoted string or an address; servers write "/", "=", ":" and "<>" in it, too.
_VALUE = re.compile(r'(?:"(?:[^"\\]|\\.)*+"|[^\s"();\\])++')
_QUOTED_PART = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9_-]++")


@dataclass(frozen=True, slots=True)
class MethodResult:
    """One method's result, such as `dkim=pass header.d=example.com`; all lower-case but the values."""

    method: str
    result: str
    properties: tuple[tuple[str, str], ...] = ()
    """Names with their type, such as `header.d`, to values without quotes, in order."""

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.properties if key == name]


@dataclass(frozen=True, slots=True)
class AuthenticationResults:
    """One header's value."""

    authserv_id: str
    results: tuple[MethodResult, ...]


class _MalformedError(Exception):
    """The value does not follow RFC 8601 §2.2."""


def sender_verdict(email: Email, authserv_id: str) -> SenderVerdict:
    """Whether the domain of the mail's sender is proved by our server's results. Never raises; linear in the headers.

    authserv_id: the name by which our server signs its results (RFC 8601 §2.5), in any case; empty verifies nobody.
    """
    domain = _from_domain(email)
    if not domain or not authserv_id.strip():
        return "unverified"
    wanted = authserv_id.strip().lower()
    for value in email.headers.get("authentication-results", ())[:_MAX_RESULT_HEADERS]:
        scanner = _Scanner(value)
        try:
            if scanner.read_authserv_id().lower() != wanted:
                continue
            # What was cut may have said anything: "dmarc=fail", for one.
            if len(value) >= MAX_HEADER_CHARS:
                return "unverified"
            return "verified" if _is_proved(domain, tuple(scanner.read_results())) else "unverified"
        except _MalformedError:
            if scanner.authserv_id.lower() == wanted:
                return "unverified"
    return "unverified"


def parse_authentication_results(value: str) -> AuthenticationResults | None:
    """The value of an `Authentication-Results` header, unfolded (RFC 8601 §2.2); None where it breaks the grammar.

    `none` gives no results. A version other than 1, of the header or a method, is not understood and gives None, too.
    """
    scanner = _Scanner(value)
    try:
        return AuthenticationResults(scanner.read_authserv_id(), tuple(scanner.read_results()))
    except _MalformedError:
        return None


def _is_proved(domain: str, results: tuple[MethodResult, ...]) -> bool:
    policies = [result for result in results if result.method == "dmarc"]
    if len(policies) > 1:
        return False
    if policies and policies[0].result != "none":
        names = [_ascii_domain(value) for value in policies[0].values("header.from")]
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
    return _ascii_domain(values[0]) if len(values) == 1 else None


def _from_domain(email: Email) -> str | None:
    """The domain of the only author; None for several, for none, or where the parser had to guess."""
    if SEVERAL_AUTHORS in email.problems or sum(map(len, email.headers.values())) >= MAX_HEADERS:
        return None
    # A mail from a mapping may have no From among its headers.
    for value in (authors := email.headers.get("from", ())):
        if len(authors) > 1 or len(value) >= MAX_HEADER_CHARS or parse_addresses(value) != [email.sender]:
            return None
    return _ascii_domain(email.sender) if "@" in email.sender else None


def _ascii_domain(value: str) -> str | None:
    """The domain of an address, or the domain itself, as lower-case A-labels; None for what is no public domain name.

    A-labels by RFC 5891 §4.4 without its table of permitted characters. Not the codec "idna" of Python: that one
    follows RFC 3490 and takes straße.example for strasse.example, which may belong to somebody else.
    """
    domain = value.rpartition("@")[2].removesuffix(".").lower()
    if len(domain) > _MAX_DOMAIN_CHARS:
        return None
    labels = [_ascii_label(label) for label in domain.split(".")]
    return ".".join(filter(None, labels)) if len(labels) > 1 and all(labels) else None


def _ascii_label(label: str) -> str | None:
    if not label.isascii():
        from unicodedata import normalize  # with the codec, only foreign letters need it

        try:
            label = "xn--" + normalize("NFC", label).encode("punycode").decode("ascii")
        except UnicodeError:
            return None
    return label if len(label) <= _MAX_LABEL_CHARS and _NAME.fullmatch(label) else None


class _Scanner:
    """Reads a value from left to right, every character once; raises _MalformedError where it cannot go on."""

    def __init__(self, value: str) -> None:
        self._value = value
        self._position = 0
        self.authserv_id = ""

    def read_authserv_id(self) -> str:
        self._skip_comments()
        self.authserv_id = self._read_value()
        self._skip_comments()
        if not self._at_end() and not self._at(";"):
            if self._read_name() != "1":
                raise _MalformedError
            self._skip_comments()
            if not self._at_end() and not self._at(";"):
                raise _MalformedError
        return self.authserv_id

    def read_results(self) -> Iterator[MethodResult]:
        while not self._at_end():
            self._expect(";")
            self._skip_comments()
            if self._at_end() or self._at(";"):  # an empty one, which several servers write at the end
                continue
            method = self._read_name().lower()
            self._skip_comments()
            if method == "none" and (self._at_end() or self._at(";")):
                continue
            if self._at("/"):
                self._expect("/")
                self._skip_comments()
                if self._read_name() != "1":
                    raise _MalformedError
                self._skip_comments()
            self._expect("=")
            self._skip_comments()
            result = self._read_name().lower()
            yield MethodResult(method, result, tuple(self._read_properties()))

    def _read_properties(self) -> Iterator[tuple[str, str]]:
        """The properties; `reason=…` and what else has no type, such as Microsoft's `action=none`, with a bare name."""
        self._skip_comments()
        while not self._at_end() and not self._at(";"):
            name = self._read_name().lower()
            self._skip_comments()
            if self._at("."):
                self._expect(".")
                self._skip_comments()
                name = f"{name}.{self._read_name().lower()}"
                self._skip_comments()
            self._expect("=")
            self._skip_comments()
            yield name, ("" if self._at_end() or self._at(";") else self._read_value())
            self._skip_comments()

    def _read_name(self) -> str:
        return self._read(_NAME)

    def _read_value(self) -> str:
        return _QUOTED_PART.sub(lambda match: _ESCAPED.sub(r"\1", match[1]), self._read(_VALUE))

    def _read(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._value, self._position)
        if match is None:
            raise _MalformedError
        self._position = match.end()
        return match[0]

    def _skip_comments(self) -> None:
        """White space and comments, nested to any depth (RFC 5322 §3.2.2)."""
        value = self._value
        depth = 0
        while True:
            if not depth:
                self._read(_BLANKS)
                if not self._at("("):
                    return
            part = self._read(_COMMENT_PART)  # a comment that is never closed ends here
            depth += (part == "(") - (part == ")")
            if self._position == len(value) and depth:
                raise _MalformedError

    def _at(self, character: str) -> bool:
        return self._value.startswith(character, self._position)

    def _at_end(self) -> bool:
        return self._position == len(self._value)

    def _expect(self, character: str) -> None:
        if not self._at(character):
            raise _MalformedError
        self._position += 1
