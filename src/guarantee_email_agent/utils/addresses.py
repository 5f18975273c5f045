"""Mail addresses from header values: bare, safe to put into a header again, in linear time.

Our own parser and not `email.utils`: that one takes 14 ms to import, recurses on nested comments (1,000 of "(" end in
RecursionError), and its answers to odd input differ between Python releases.
"""

from __future__ import annotations

import re

from guarantee_email_agent.utils.text import strip_invisible

MAX_ADDRESS_CHARS = 320  # RFC 5321 §4.5.3.1: 64 for the local part, "@", 255 for the domain

# RFC 5322 §3.4.1 without the forms nobody uses (quoted local part) and with the letters of RFC 6532.
# White space, controls, commas and quotes stay out: an address must never be able to end a header or add a recipient.
_ATOM = r'[^\s"(),:;<>@\[\]\\\x00-\x20\x7f-\x9f\ud800-\udfff'
_LITERAL = r"\[[0-9A-Za-z.:]{2,60}\]"
_BARE = rf"{_ATOM}]+@(?:{_ATOM}.]+(?:\.{_ATOM}.]+)*|{_LITERAL})"
_COMMON = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*", re.ASCII)
# As text and not compiled: the common form is enough for most mails, and `re` keeps what it compiled.
_NAMED = rf'(?:"[^"\\]*" ?|[^"\\<>(),;:@]*)<({_BARE})>'
_FOLD = r"\r?\n[ \t]"
_UNPAIRED = str.maketrans('"(', "  ")
_QUOTED_BLANK = "\0"  # in place of a blank in a quoted string: "jane doe"@example.com is no name with an address
_LABEL = r"[A-Za-z0-9_-]+"
_MAX_DOMAIN_CHARS = 253  # RFC 1035 §2.3.4, as text
_MAX_LABEL_CHARS = 63
_SCAN_CHARS = 10_000  # of one header value, in the slow parser


def parse_address(value: str) -> str | None:
    """The address of a value that holds exactly `addr` or `Name <addr>`, else None.

    The result has no white space, control character, comma, quote or angle bracket.
    """
    value = strip_invisible(value).strip()
    if len(value) > 2_000:
        return None
    if _COMMON.fullmatch(value) or re.fullmatch(_BARE, value):
        address = value
    elif match := re.fullmatch(_NAMED, value):
        address = match[1]
    else:
        return None
    return address if len(address) <= MAX_ADDRESS_CHARS else None


def parse_addresses(value: str) -> list[str]:
    """All addresses of a value in order: mailboxes, groups (RFC 5322 §3.4), comments, quoted names, `mailto:`.

    Blanks around the "@" of an address mean nothing (RFC 5322 §4.4).
    What holds no usable address is left out. Only the first line counts, unless the value is properly folded
    (RFC 5322 §2.2.3): a line break must not smuggle in another header.
    """
    if address := parse_address(value):
        return [address]
    value = re.sub(_FOLD, " ", strip_invisible(value[:_SCAN_CHARS]).strip())
    value = value.partition("\n")[0].partition("\r")[0]
    return [address for mailbox in _split_mailboxes(value) if (address := parse_address(mailbox))]


def ascii_domain(value: str) -> str | None:
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
    return label if len(label) <= _MAX_LABEL_CHARS and re.fullmatch(_LABEL, label) else None


def strip_comments(value: str) -> str:
    """The value without its parenthesised comments (RFC 5322 §3.2.2), nested ones included."""
    if "(" not in value:
        return value
    kept: list[str] = []
    depth = 0
    for character in value:
        if character == "(":
            depth += 1
        elif character == ")" and depth:
            depth -= 1
        elif not depth:
            kept.append(character)
    return "".join(kept)


def _split_mailboxes(value: str) -> list[str]:
    """Of each comma- or semicolon-separated mailbox the text in angle brackets, or all of it where it has none."""
    found: list[str] = []
    outside: list[str] = []
    inside: list[str] | None = None
    target = outside
    in_quotes = escaped = False
    comments = 0
    for character in value:
        if escaped:
            escaped = False
            if not comments:
                target.append(character)
        elif character == "\\" and (in_quotes or comments):
            escaped = True
        elif in_quotes:
            if character == '"':
                in_quotes = False
            else:
                target.append(_QUOTED_BLANK if character == " " else character)
        elif character == "(":
            comments += 1
        elif comments:
            comments -= character == ")"
        elif character == '"':
            in_quotes = True
        elif character == "<":
            target = inside = []
        elif character == ">":
            target = outside
        elif target is outside and character in ",;":
            found.append(_mailbox_text(outside, inside))
            outside, inside = [], None
            target = outside
        elif target is outside and character == ":":  # the end of a group's name, or of "mailto"
            outside.clear()
        else:
            target.append(character)
    if in_quotes or comments:  # never closed: an error of the sending program, so these characters mean nothing
        return _split_mailboxes(value.translate(_UNPAIRED))
    return [*found, _mailbox_text(outside, inside)]


def _mailbox_text(outside: list[str], inside: list[str] | None) -> str:
    text = "".join(outside if inside is None else inside)
    if inside is not None:
        # A source route or "mailto:" may stand before the address.
        text = ".".join([word.strip(" \t") for word in text.rpartition(":")[2].split(".")])
    return "@".join([half.strip(" \t") for half in text.split("@")])
