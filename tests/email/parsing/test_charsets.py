from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.charsets import decode_bytes


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("Grüße".encode(), "utf-8", "Grüße"),
        ("Grüße".encode("latin-1"), "iso-8859-1", "Grüße"),
        (b"\x80 5", "iso-8859-1", "€ 5"),  # what Windows programs mean by it
        ("Łódź".encode("iso-8859-2"), "ISO_8859-2", "Łódź"),
        ("Łódź".encode("cp1250"), "windows-1250", "Łódź"),
        ("Grüße".encode(), "us-ascii", "Grüße"),
        ("Grüße".encode(), None, "Grüße"),
        ("日本".encode("iso2022_jp"), "iso-2022-jp", "日本"),
        ("Grüße".encode("utf-16"), "utf-16", "Grüße"),
    ],
)
def test_text_in_its_charset(data: bytes, charset: str | None, text: str) -> None:
    assert decode_bytes(data, charset) == (text, None)


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("Grüße".encode(), "x-unknown", "Grüße"),
        ("Grüße".encode("latin-1"), "x-unknown", "Grüße"),
        ("Grüße".encode("latin-1"), None, "Grüße"),
        ("Grüße".encode("latin-1"), "utf-8", "Grüße"),
        ("Grüße, Größe".encode() + b" \xff", "utf-8", "Grüße, Größe \ufffd"),
        (b"abc", "hex", "abc"),
        (b"abc", "idna", "abc"),
        (b"abc", "../etc/passwd", "abc"),
        (b"abc", "a\x00b", "abc"),
    ],
)
def test_a_wrong_charset_is_read_around_and_named(data: bytes, charset: str | None, text: str) -> None:
    found, problem = decode_bytes(data, charset)
    assert found == text
    assert problem


@given(
    st.binary(max_size=200),
    st.none() | st.sampled_from(["utf-8", "utf-7", "utf-16", "gb2312", "cp1252", "big5", "x", "rot13"]),
)
def test_any_bytes_become_text(data: bytes, charset: str | None) -> None:
    assert isinstance(decode_bytes(data, charset)[0], str)
