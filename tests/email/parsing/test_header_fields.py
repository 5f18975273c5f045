import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.header_fields import (
    decode_bytes,
    decode_encoded_words,
    parse_header_fields,
    parse_parameters,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("=?utf-8?q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
        ("=?UTF-8?B?R3LDvMOfZQ==?=", "Grüße"),
        ("Re: =?iso-8859-2?Q?=A3=F3d=BC?= !", "Re: Łódź !"),
        ("=?utf-8?q?a_b?= c =?utf-8?q?d?=", "a b c d"),
        ("=?utf-8?b?w7w=?= =?iso-8859-1?q?=FC?=", "üü"),
        ("=?utf-8?b?R3LD?= =?utf-8?b?vMOfZQ==?=", "Grüße"),  # split within a character
        ("=?utf-8*de?q?Gr=C3=BC=C3=9Fe?=", "Grüße"),  # RFC 2231 §5
        ("=?nonsense?q?Gr=C3=BC=C3=9Fe?=", "Grüße"),
        ("=?utf-8?q?Grüße_=C3=BC?=", "=?utf-8?q?Grüße_=C3=BC?="),
        ("=?utf-8?b?R3LDvMOfZQü?=", "=?utf-8?b?R3LDvMOfZQü?="),
        ("=?utf-8?q?open", "=?utf-8?q?open"),
    ],
)
def test_encoded_words(value: str, text: str) -> None:
    assert decode_encoded_words(value) == text


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("text/plain; charset=utf-8", {"charset": "utf-8"}),
        ('text/plain; Charset="utf-8" ; format=flowed', {"charset": "utf-8", "format": "flowed"}),
        ('a/b; name="a; b \\"c\\".pdf"', {"name": 'a; b "c".pdf'}),
        ("a/b; name=my photo.jpg; x=1", {"name": "my photo.jpg", "x": "1"}),
        ("a/b; filename*=utf-8''Ger%C3%A4t.jpg", {"filename": "Gerät.jpg"}),
        ("a/b; filename*0*=utf-8'de'Ger%C3; filename*1*=%A4t; filename*2=.jpg", {"filename": "Gerät.jpg"}),
        ('a/b; filename*1="lo.jpg"; filename*0="hel"', {"filename": "hello.jpg"}),
        ("a/b; name==?utf-8?q?Ger=C3=A4t=2Ejpg?=", {"name": "Gerät.jpg"}),
        ('a/b; name="unclosed', {"name": "unclosed"}),
        ("a/b; name=first; name=second", {"name": "first"}),
    ],
)
def test_parameters(value: str, found: dict[str, str]) -> None:
    assert parse_parameters(value) == found


def test_fields_are_unfolded_and_collected_by_name() -> None:
    problems: list[str] = []
    data = b"Subject: one\n two\n\tthree\nX-A: 1\nx-a: 2\nEmpty:\n\nbody"
    fields, body = parse_header_fields(data, 0, len(data), problems)
    assert fields == {"subject": ["one two three"], "x-a": ["1", "2"], "empty": [""]}
    assert (data[body:], problems) == (b"body", [])


def test_too_long_and_too_many_fields_are_cut_and_named() -> None:
    problems: list[str] = []
    data = b"Long: " + b"x" * 20_000 + b"\n" + b"A: b\n" * 1_500 + b"\nbody"
    fields, body = parse_header_fields(data, 0, len(data), problems)
    assert len(fields["long"][0]) <= 10_000
    assert (len(fields["a"]), data[body:], len(problems)) == (999, b"body", 2)


@given(st.text(alphabet="=?utf-8qbQB_ \t*'\";%ab\\0129"))
def test_no_value_breaks_the_readers(value: str) -> None:
    decode_encoded_words(value)
    parse_parameters(f"a/b;{value}")


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("Grüße".encode(), "utf-8", "Grüße"),
        ("Grüße".encode("latin-1"), "iso-8859-1", "Grüße"),
        (b"\x80 5", "iso-8859-1", "€ 5"),  # what Windows programs mean by it
        ("Łódź".encode("iso-8859-2"), "ISO_8859-2", "Łódź"),
        ("Grüße".encode(), "us-ascii", "Grüße"),
        ("Grüße".encode(), None, "Grüße"),
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
