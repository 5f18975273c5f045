"""Header fields of a mail from bytes: unfolding, encoded words and parameters, in linear time and without exceptions.

Not stdlib `email`: its modern policy took 36 s for one 80 kB Content-Type header and raises RecursionError on nested
comments; what it makes of broken fields changes between Python releases, and a verdict must not.
"""

from __future__ import annotations

import codecs
import re
from binascii import Error as Base64Error
from binascii import a2b_base64, a2b_qp
from contextlib import suppress

from guarantee_email_agent.email.parsing.email import (
    DAMAGED_HEADER,
    MAX_HEADER_CHARS,
    MAX_HEADERS,
    REPEATED_HEADER,
    TOO_MANY_HEADERS,
    UNDECODED,
)
from guarantee_email_agent.utils.text import replace_controls

# RFC 2047 §2; spaces inside the encoded text are forbidden there and sent all the same.
_ENCODED_WORD = re.compile(r"=\?([A-Za-z0-9_.:+-]{1,60})(?:\*[A-Za-z0-9-]{1,20})?\?([BbQq])\?([^?\r\n]*)\?=")
_FIELD_NAME = re.compile(rb"([!-9;-~]{1,200})[ \t]*:")
_FIELD_END = re.compile(rb"\n(?![ \t])")
_PARAMETER = re.compile(r'[;\s]*+(?:([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"?|([^;]*)))?')
_ESCAPED = re.compile(r"\\(.)")
_CONTINUED = re.compile(r"(.+?)(?:\*(\d{1,3}))?(\*)?")

CALENDAR = "text/calendar"
_SINGLE_FIELDS = ("subject", "content-type", "content-transfer-encoding")  # which mail programs read differently

Fields = dict[str, list[str]]


def parse_header_fields(
    data: bytes, start: int, end: int, problems: list[str], *, is_part: bool = False
) -> tuple[Fields, int]:
    """The header fields of `data[start:end]` (lines end in LF) and where the body starts.

    Names are lower-case, values unfolded (RFC 5322 §2.2.3) and cut at MAX_HEADER_CHARS. With a line that is no
    field the body starts, as if the empty line before it had been forgotten; a whole mail's fields that follow it up to
    an empty line count all the same. is_part: whether it is the header of a part.
    """
    fields: Fields = {}
    position, count = start, 0
    damaged_at: int | None = None
    while position < end:
        if data.startswith(b"\n", position):
            position += 1
            break
        match = _FIELD_NAME.match(data, position, end)
        if match is None and is_part:
            problems.append("a part's header ends in a line that is no header field")
            break
        field_start = match.end() if match else position
        field_end = _FIELD_END.search(data, field_start, end)
        folded = data[field_start : field_end.start() if field_end else end]
        line_start, position = position, field_end.end() if field_end else end
        if match is None:
            damaged_at = line_start if damaged_at is None else damaged_at
            continue
        count += 1
        if count > MAX_HEADERS:
            continue
        is_cut = len(folded) - folded.count(b"\n") > MAX_HEADER_CHARS
        if is_cut:
            problems.append(f"a header is longer than {MAX_HEADER_CHARS} characters and was cut")
        # Each line break goes with a blank, so twice the limit holds every value that is not too long.
        value = b" ".join([line.strip() for line in folded[: 2 * MAX_HEADER_CHARS].split(b"\n")])[:MAX_HEADER_CHARS]
        text = replace_controls(decode_bytes(value, None)[0])
        # As in a mapping, blanks at the end must not hide that a value was cut.
        fields.setdefault(match[1].decode("ascii").lower(), []).append(text.ljust(MAX_HEADER_CHARS) if is_cut else text)
    if count > MAX_HEADERS:
        problems.append(TOO_MANY_HEADERS)
    if any(len(set(fields.get(name, ()))) > 1 for name in _SINGLE_FIELDS):
        problems.append(REPEATED_HEADER)
    if damaged_at is not None:
        problems.append(DAMAGED_HEADER)
        position = damaged_at
    return fields, position


def decode_encoded_words(value: str) -> str:
    """The value with its encoded words decoded (RFC 2047). A word that cannot be decoded stays as it is.

    Neighbouring words of one charset are decoded as one, since many programs split them within a character.
    """
    if "=?" not in value:
        return value
    text: list[str] = []
    charset, pending, position = "", b"", 0
    for match in _ENCODED_WORD.finditer(value):
        content = _decode_word(match[2], match[3])
        if content is None:
            continue
        gap = value[position : match.start()]
        if pending and gap.isspace():
            gap = ""  # RFC 2047 §6.2: white space between encoded words is not part of the text
        if pending and (gap or match[1].lower() != charset):
            text.append(decode_bytes(pending, charset)[0])
            pending = b""
        text.append(gap)
        charset, pending, position = match[1].lower(), pending + content, match.end()
    return "".join([*text, decode_bytes(pending, charset)[0], value[position:]])


def _decode_word(encoding: str, content: str) -> bytes | None:
    if encoding in "Qq":
        return a2b_qp(content.encode("ascii"), header=True) if content.isascii() else None
    try:
        return a2b_base64(content.encode("ascii") + b"==")
    except (Base64Error, UnicodeEncodeError):
        return None


def parse_main_value(value: str) -> str:
    """The value without parameters and comments, lower-case: `text/plain` of `Text/Plain; charset=utf-8`."""
    words = value.partition(";")[0].split(None, 1)
    return words[0].lower() if words else ""


def describe_content_type(value: str) -> str:
    """The main value; behind that of a calendar its method (RFC 6047 §2.4): `text/calendar reply`."""
    kind = parse_main_value(value)
    method = parse_parameters(value).get("method", "").lower() if kind == CALENDAR else ""
    return f"{kind} {method}".rstrip()


def parse_parameters(value: str) -> dict[str, str]:
    """The parameters of a Content-Type or Content-Disposition value, names lower-case.

    Continuations and charsets (RFC 2231 §3, §4) are put together, encoded words in values (against RFC 2047 §5, and
    common) decoded. Of repeated names the first counts.
    """
    pieces: dict[str, dict[int, tuple[str, bool]]] = {}
    position = value.find(";")
    while 0 <= position < len(value):
        match = _PARAMETER.match(value, position)
        assert match is not None  # it may be empty
        position = match.end()
        if match[1] is None:
            position = value.find(";", position)
            continue
        content = match[3].strip() if match[2] is None else _ESCAPED.sub(r"\1", match[2])
        name = _CONTINUED.fullmatch(match[1].lower())
        assert name is not None  # one character is enough for it
        pieces.setdefault(name[1], {}).setdefault(int(name[2] or 0), (content, name[3] is not None))
    return {name: _join_continuations([parts[number] for number in sorted(parts)]) for name, parts in pieces.items()}


def _join_continuations(parts: list[tuple[str, bool]]) -> str:
    if not any(encoded for _, encoded in parts):
        return decode_encoded_words("".join([content for content, _ in parts]))
    from urllib.parse import unquote_to_bytes  # only names with foreign letters need it

    charset = None
    first, encoded = parts[0]
    if encoded and first.count("'") >= 2:
        charset, _, first = first.split("'", 2)
        parts = [(first, True), *parts[1:]]
    data = b"".join(
        [unquote_to_bytes(content) if encoded else content.encode("utf-8", "replace") for content, encoded in parts]
    )
    return decode_bytes(data, charset)[0]


_CHARSET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+-]{0,39}")

# The superset by which browsers and mail programs decode a label (WHATWG Encoding).
_SUPERSETS = {
    "ascii": "utf-8",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
}
# Python's own codecs, which are no charsets; idna and punycode are quadratic besides.
_NON_CHARSETS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "mbcs", "oem"})


def decode_bytes(data: bytes, charset: str | None) -> tuple[str, str | None]:
    """The text, and a message saying what was wrong with the charset, or None. Never raises.

    Without a charset: UTF-8, else Windows-1252, else Latin-1. An unknown charset, or one that the bytes contradict,
    is treated as none. A broken UTF-8 text that is mostly UTF-8 keeps its good parts.
    """
    name = _codec_name(charset) if charset else None
    problem = "the charset is unknown; read as UTF-8 or Latin-1" if charset and name is None else None
    for candidate in dict.fromkeys((name or "utf-8", "utf-8")):
        try:
            return data.decode(candidate), problem
        except (UnicodeError, ValueError):
            if name is not None:
                problem = f"the text does not fit its charset {name}"
    if name is None or name == "utf-8":
        repaired = data.decode("utf-8", "replace")
        broken = repaired.count("\ufffd")
        intact = sum(character > "\x7f" for character in repaired[:10_000]) - repaired[:10_000].count("\ufffd")
        if broken <= intact:
            return repaired, "some bytes are not UTF-8"
        for candidate in ("cp1252", "latin-1"):
            with suppress(UnicodeError):
                return data.decode(candidate), problem or "the text names no charset and is not UTF-8"
    return data.decode(name or "latin-1", "replace"), UNDECODED


def _codec_name(charset: str) -> str | None:
    """Python's name of the codec for a charset label, None if there is none."""
    charset = charset.strip("\"' \t")
    if not _CHARSET_NAME.fullmatch(charset):
        return None
    try:
        name = codecs.lookup(charset).name
        b"a\n".decode(name)  # LookupError for codecs that do not make text, such as hex
    except (LookupError, ValueError):
        return None
    return None if name in _NON_CHARSETS else _SUPERSETS.get(name, name)
