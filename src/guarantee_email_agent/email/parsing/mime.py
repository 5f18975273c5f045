"""Parse a mail's bytes (RFC 5322, MIME) into its header fields, its texts and the names of its attachments.

Each step is linear in the size of the mail and bounded by the limits in `parsing.email`; whatever the bytes, nothing
raises. Not stdlib `email`: a 2 MB mail of empty parts took it 30 s, nested parts end in RecursionError, and parts
cannot be limited.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, a2b_qp
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import Literal, NamedTuple

from guarantee_email_agent.email.parsing.email import (
    DAMAGED_HEADER,
    MAX_BODY_CHARS,
    MAX_HTML_CHARS,
    MAX_MAIL_BYTES,
    MAX_MIME_DEPTH,
    MAX_NAME_CHARS,
    MAX_PART_BYTES,
    MAX_PARTS,
    UNDECODED,
)
from guarantee_email_agent.email.parsing.header_fields import (
    CALENDAR,
    Fields,
    decode_bytes,
    describe_content_type,
    parse_header_fields,
    parse_main_value,
    parse_parameters,
)
from guarantee_email_agent.email.parsing.html_text import truncate_html
from guarantee_email_agent.utils.text import normalize_file_name

Subtype = Literal["plain", "html"]

_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,100}/[a-z0-9!#$&^_.+-]{1,100}")
_CARRIAGE_RETURNS = re.compile(rb"\r+\n?")
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/=\s]")
_NOT_ENCODED = re.compile(rb"=(?:0[0-8]|[13]\d)\d")  # of a number, as in "serial=12345": no program encodes its digits
_BASE64_LINE = re.compile(
    rb"^(?=.*[A-Z])(?=.*[a-z])[\w+/-]{20,}=*\s*$", re.MULTILINE
)  # that of URLs, too (RFC 4648 §5)
_WORDS_IN_A_LINE = re.compile(rb"[^ \t\n][ \t]+[^ \t\n]")


class TextPart(NamedTuple):
    """One readable part, decoded, as it was sent."""

    subtype: Subtype
    content: str


@dataclass(slots=True)
class MimeMessage:
    """`alternatives` are groups of parts with the same content; each group has at least one."""

    fields: Fields
    alternatives: list[list[TextPart]] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    content_types: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def parse_mime(raw: bytes) -> MimeMessage:
    """Parse a mail; past the limits the rest is left out, and `problems` says so."""
    problems: list[str] = []
    if len(raw) > MAX_MAIL_BYTES:
        problems.append(f"the mail is larger than {MAX_MAIL_BYTES} bytes; the rest was left out")
        raw = raw[:MAX_MAIL_BYTES]
    data = raw.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").lstrip(b"\r\n")
    if b"\r" in data:
        has_line_ends, header_end = b"\n" in data, data.find(b"\n\n")
        if has_line_ends and b"\r" in data[: header_end if header_end >= 0 else None]:
            problems.append(DAMAGED_HEADER)
        # Beside other line ends a CR too many must not look like the empty line that ends a header.
        data = _CARRIAGE_RETURNS.sub(b"\n", data) if has_line_ends else data.replace(b"\r", b"\n")
    if data.startswith((b"From ", b">From ")):  # the line that an mbox puts before a mail
        data = data.partition(b"\n")[2]
    data = b"\n" + data  # so that a boundary always follows a line end
    fields, body = parse_header_fields(data, 1, len(data), problems)
    mail = MimeMessage(fields, problems=problems)
    mail.alternatives = _MimeParser(data, mail).parse_part(fields, body, len(data), 0, "text/plain")
    return mail


@dataclass(slots=True)
class _MimeParser:
    data: bytes
    mail: MimeMessage
    parts: int = 0
    remaining_chars: dict[Subtype, int] = field(
        default_factory=lambda: {"plain": MAX_BODY_CHARS, "html": MAX_HTML_CHARS}
    )

    def parse_part(self, fields: Fields, start: int, end: int, depth: int, default: str) -> list[list[TextPart]]:
        """The texts of the part `data[start:end]` as groups of alternatives; attachments are added to the mail."""
        value = fields.get("content-type", [""])[0]
        kind = parse_main_value(value) or default
        if not _TYPE.fullmatch(kind):
            self.mail.problems.append("a content type cannot be read; taken as text/plain")
            kind = "text/plain"
        disposition = fields.get("content-disposition", [""])[0]
        shown = parse_main_value(disposition)
        described = describe_content_type(value) if kind == CALENDAR else kind
        if described != CALENDAR or shown != "attachment":
            self.mail.content_types.append(described)
        if kind.startswith("multipart/"):
            if (groups := self._parse_multipart(kind, value, start, end, depth)) is not None:
                return groups
            kind = "text/plain"
        name = parse_parameters(disposition).get("filename") or parse_parameters(value).get("name") or ""
        name = normalize_file_name(name, MAX_NAME_CHARS)
        is_text = kind.startswith("text/") and kind != CALENDAR and shown != "attachment" and (depth == 0 or not name)
        # RFC 2183 §2.1: what is inline is shown with the mail, whatever its name.
        is_text = is_text or (kind in ("text/plain", "text/html") and shown == "inline")
        if (name and depth) or not is_text:
            extension = "eml" if kind == "message/rfc822" else kind.partition("/")[2]
            self.mail.attachments.append(name or f"unnamed.{extension}")
        return [[self._decode_text(fields, value, kind, start, end)]] if is_text else []

    def _parse_multipart(self, kind: str, value: str, start: int, end: int, depth: int) -> list[list[TextPart]] | None:
        """The texts of the parts inside; None if there are no parts to be found."""
        boundary = parse_parameters(value).get("boundary", "").rstrip()
        if not boundary:
            self.mail.problems.append("a multipart has no boundary; taken as text")
            return None
        if depth >= MAX_MIME_DEPTH:
            self.mail.problems.append(f"parts are nested deeper than {MAX_MIME_DEPTH}; the rest was left out")
            return []
        default = "message/rfc822" if kind == "multipart/digest" else "text/plain"
        root = parse_parameters(value).get("start", "").strip("<> ")
        groups: list[list[TextPart]] = []
        number = -1
        for number, (part_start, part_end) in enumerate(self._parts(boundary, start, end)):
            self.parts += 1
            if self.parts > MAX_PARTS:
                self.mail.problems.append(f"the mail has more than {MAX_PARTS} parts; the rest was left out")
                break
            fields, body = parse_header_fields(self.data, part_start, part_end, self.mail.problems, is_part=True)
            inside = self.parse_part(fields, body, part_end, depth + 1, default)
            if kind == "multipart/alternative" and len(inside) > 1:
                inside = [[_join_texts(inside)]]
            if kind == "multipart/related":  # RFC 2387 §3.2: the text is what `start` names, else the first
                is_root = root and fields.get("content-id", [""])[0].strip("<> ") == root
                groups = inside if inside and (is_root or not groups) else groups
            elif number == 0 or kind != "multipart/signed":  # RFC 1847 §2.1: the second part is the signature
                groups += inside
        if number < 0:
            self.mail.problems.append("a multipart has no parts; taken as text")
            return None
        return [list(chain.from_iterable(groups))] if kind == "multipart/alternative" and groups else groups

    def _parts(self, boundary: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Where the parts between the boundary lines (RFC 2046 §5.1.1) start and end."""
        line = re.compile(rb"\n--" + re.escape(boundary.encode("utf-8", "replace")) + rb"(--)?[ \t]*(?=\n|\Z)")
        part_start: int | None = None
        for match in line.finditer(self.data, start - 1, end):
            if part_start is not None:
                yield part_start, max(match.start(), part_start)
            if match[1]:
                return
            part_start = min(match.end() + 1, end)
        if part_start is not None:
            self.mail.problems.append("a multipart is not closed; the mail may be cut")
            yield part_start, end

    def _decode_text(self, fields: Fields, value: str, kind: str, start: int, end: int) -> TextPart:
        data = self.data[start:end]
        if len(data) > MAX_PART_BYTES:
            self.mail.problems.append(f"a text part is larger than {MAX_PART_BYTES} bytes; the rest was left out")
            data = data[:MAX_PART_BYTES]
        encoding = parse_main_value(fields.get("content-transfer-encoding", [""])[0])
        data = self._decode_transfer_encoding(data, encoding)
        parameters = parse_parameters(value)
        text, problem = decode_bytes(data, parameters.get("charset"))
        if problem:
            self.mail.problems.append(problem)
        if kind == "text/plain" and parameters.get("format", "").lower() == "flowed":
            text = join_flowed_lines(text, delete_space=parameters.get("delsp", "").lower() == "yes")
        subtype: Subtype = "html" if kind in ("text/html", "text/xhtml") else "plain"
        remaining = self.remaining_chars[subtype]
        self.remaining_chars[subtype] = max(remaining - len(text), 0)
        if len(text) > remaining:
            self.mail.problems.append("the texts of the mail are too long; the rest was left out")
            text = truncate_html(text, remaining) if subtype == "html" else text[:remaining]
        return TextPart(subtype, text)

    def _decode_transfer_encoding(self, data: bytes, encoding: str) -> bytes:
        if encoding == "quoted-printable":
            if _NOT_ENCODED.search(data):
                self.mail.problems.append(UNDECODED)
            return a2b_qp(re.sub(rb"=[ \t]+(?=\n|\Z)", b"=", data))  # RFC 2045 §6.7, rule 3
        if encoding == "base64":
            return self._decode_base64(data)
        if re.search("base|quot|uu|zip", encoding):
            self.mail.problems.append(UNDECODED)
        elif encoding not in ("", "7bit", "8bit", "binary"):  # "8 bit" and "utf-8" encode nothing
            self.mail.problems.append("a transfer encoding is unknown; the text was taken as it is")
        return data

    def _decode_base64(self, data: bytes) -> bytes:
        """The decoded text; what follows the encoded lines (a mailing list's footer) is added as it is."""
        invalid = _NOT_BASE64.search(data)
        if invalid is None and not _WORDS_IN_A_LINE.search(data.strip()[:2_000]):
            encoded, rest = data, b""
        else:
            self.mail.problems.append("a base64 text is damaged")
            stop = data.rfind(b"\n", 0, invalid.start()) + 1 if invalid else 0
            encoded, rest = data[:stop], data[stop:]
            if _BASE64_LINE.search(rest):
                self.mail.problems.append(UNDECODED)
        # Texts that were encoded one by one, such as a mail and a gateway's footer, have an end each.
        texts = [digits for digits in encoded.translate(None, b" \t\n\r\f\v").split(b"=") if digits]
        if any(len(digits) % 4 == 1 for digits in texts):
            self.mail.problems.append("a base64 text is damaged")
        return b"".join([a2b_base64(digits[: -1 if len(digits) % 4 == 1 else None] + b"==") for digits in texts]) + rest


def _join_texts(groups: list[list[TextPart]]) -> TextPart:
    """The texts of one alternative as one part, which is HTML where any of them is."""
    texts = [next((part for part in group if part.subtype == "html"), group[0]) for group in groups]
    if all(text.subtype == "plain" for text in texts):
        return TextPart("plain", "\n\n".join([text.content for text in texts]))
    from html import escape  # rarely needed

    return TextPart(
        "html",
        "\n".join([text.content if text.subtype == "html" else f"<pre>{escape(text.content)}</pre>" for text in texts]),
    )


_SIGNATURE_SEPARATOR = "-- "


def join_flowed_lines(text: str, *, delete_space: bool) -> str:
    """The text with each paragraph on one line; what is quoted stays quoted, with one blank after its ">" marks.

    delete_space: the parameter `delsp=yes`, by which the blank that ends a broken line is no part of the text
    (RFC 3676 §4.1), as in languages that write no blanks and in numbers that were broken.
    """
    lines = [_split_quote_marks(line) for line in text.replace("\r\n", "\n").split("\n")]
    return "\n".join(
        [
            f"{depth * '>'} {paragraph}" if depth and paragraph else f"{depth * '>'}{paragraph}"
            for depth, run in groupby(lines, key=lambda line: line[0])
            for paragraph in _join_paragraphs([content for _, content in run], delete_space=delete_space)
        ]
    )


def _split_quote_marks(line: str) -> tuple[int, str]:
    content = line.lstrip(">")
    depth = len(line) - len(content)
    # RFC 3676 §4.4: a blank before the text was stuffed in. Before a ">" it stays, which would be a mark without it.
    is_stuffed = content.startswith(" ") and not content.startswith(" >")
    return depth, content[1:] if is_stuffed else content


def _join_paragraphs(lines: list[str], *, delete_space: bool) -> list[str]:
    paragraphs: list[str] = []
    broken: list[str] = []
    for line in lines:
        # RFC 3676 §4.3: a separator ends in a blank and stands alone all the same. So does an empty line, since people
        # leave a blank before it.
        if line in ("", _SIGNATURE_SEPARATOR):
            paragraphs += ["".join(broken), line] if broken else [line]
            broken = []
        elif line.endswith(" "):
            broken.append(line[:-1] if delete_space else line)
        else:
            paragraphs.append("".join([*broken, line]))
            broken = []
    return [*paragraphs, "".join(broken)] if broken else paragraphs
