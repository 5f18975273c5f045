"""Decode text by the charset that a mail declares, or detect it where none or a wrong one is declared."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress

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
    return data.decode(name or "latin-1", "replace"), problem


def encode_undecoded(text: str, charset: str) -> bytes | None:
    """The bytes of a text that came as raw 8-bit and was read without its charset; None if there is no telling.

    What is no UTF-8 was read as Windows-1252, which leads back to the bytes; UTF-8 has to be encoded as it is declared.
    """
    name = _codec_name(charset)
    for candidate in ("utf-8",) if name == "utf-8" else ("cp1252", name or "utf-8"):
        with suppress(UnicodeError):
            return text.encode(candidate)
    return None


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
