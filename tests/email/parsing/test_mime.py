"""A mail as bytes: the forms that mail programs send, and those that nobody should."""

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.mime import join_flowed_lines
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.utils.errors import ProcessingError

HEAD = b"From: Jane <jane@example.com>\nMessage-ID: <1@example.com>\nSubject: Drill\n"
TEXT = b"Content-Type: text/plain; charset=utf-8\n\nserial SN12345\n"
HTML = b"Content-Type: text/html; charset=utf-8\n\n<p>html SN12345</p>\n"


def multipart(kind: str, *parts: bytes, boundary: str = "b") -> bytes:
    line = b"\n--" + boundary.encode()
    body = b"".join(line + b"\n" + part for part in parts)
    return (
        f'Content-Type: multipart/{kind}; boundary="{boundary}"\n\npreamble'.encode() + body + line + b"--\nepilogue\n"
    )


def attachment(name: str, kind: str = "application/pdf") -> bytes:
    return f'Content-Type: {kind}\nContent-Disposition: attachment; filename="{name}"\n\nJVBERg==\n'.encode()


def test_a_plain_mail() -> None:
    mail = parse_email(
        b"Received: from a.example.com by b.example.com; Mon, 5 Jan 2026 10:00:09 +0100\n"
        b"Date: Mon, 5 Jan 2026 10:00:00 +0100\nTo: Support <support@example.com>\nCc: b@example.com\n" + HEAD + TEXT
    )
    assert (mail.message_id, mail.sender, mail.subject) == ("<1@example.com>", "jane@example.com", "Drill")
    assert (mail.recipients, mail.received) == (("support@example.com", "b@example.com"), "2026-01-05T09:00:09Z")
    assert (mail.new_text, mail.attachments, mail.problems) == ("serial SN12345", (), ())
    assert mail.headers["subject"] == ("Drill",)


@pytest.mark.parametrize("end", [b"\r\n", b"\r", b"\n"])
def test_any_line_end(end: bytes) -> None:
    mail = parse_email((HEAD + multipart("mixed", TEXT, attachment("a.pdf"))).replace(b"\n", end))
    assert (mail.new_text, mail.attachments, mail.problems) == ("serial SN12345", ("a.pdf",), ())


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n\n", b"From jane@example.com Mon Jan  5 10:00:00 2026\n"])
def test_what_stands_before_the_header_is_skipped(before: bytes) -> None:
    assert parse_email(before + HEAD + TEXT).new_text == "serial SN12345"


BODIES = {
    "no content type": (b"\nserial SN12345", "serial SN12345"),
    "alternative": (multipart("alternative", TEXT, HTML), "serial SN12345"),
    "html only": (HTML, "html SN12345"),
    "alternative, plain is empty": (multipart("alternative", b"Content-Type: text/plain\n\n \n", HTML), "html SN12345"),
    "alternative, plain is a stub": (
        multipart(
            "alternative",
            b"\nView this message in your browser.",
            HTML.replace(b"</p>", b" and what the stub does not say</p>"),
        ),
        "html SN12345 and what the stub does not say",
    ),
    "mixed": (multipart("mixed", TEXT, attachment("a.pdf")), "serial SN12345"),
    "related in alternative in mixed": (
        multipart(
            "mixed",
            multipart("alternative", TEXT, multipart("related", HTML, attachment("i.png"), boundary="z"), boundary="y"),
            attachment("a.pdf"),
        ),
        "serial SN12345",
    ),
    "signed": (multipart("signed", TEXT, b"Content-Type: application/pgp-signature\n\nxx\n"), "serial SN12345"),
    "related, whose second part is a text": (multipart("related", HTML, TEXT), "html SN12345"),
    "related, whose first part is an image": (multipart("related", attachment("i.png"), HTML), "html SN12345"),
    "related, whose text is named": (
        multipart("related", TEXT, b"Content-ID: <t>\n" + HTML).replace(b"related;", b"related; start=t;"),
        "html SN12345",
    ),
    "alternative with two texts in mixed": (
        multipart("alternative", b"\n \n", multipart("mixed", b"\na < b", attachment("i.png"), HTML, boundary="y")),
        "a < b\n\nhtml SN12345",
    ),
    "alternative with two plain texts in mixed": (
        multipart("alternative", multipart("mixed", b"\nserial", b"\nSN12345", boundary="y")),
        "serial\n\nSN12345",
    ),
    "alternative, plain is a part of it": (multipart("alternative", b"\nhtml", HTML), "html SN12345"),
    "alternative, plain is a stub of other words": (
        multipart(
            "alternative",
            b"\nDiese Nachricht im Browser: https://a.example/12",
            HTML.replace(b"<p>", b"<p>" + b"I ask " * 9),
        ),
        "I ask " * 9 + "html SN12345",
    ),
    "alternative, plain is more than a stub": (
        multipart(
            "alternative", b"\nI looked it up in the browser, it is SN12345", b"Content-Type: text/html\n\n<p>x</p>"
        ),
        "I looked it up in the browser, it is SN12345",
    ),
    "two texts": (multipart("mixed", b"\nserial", attachment("a.png"), b"\nSN12345"), "serial\n\nSN12345"),
    "quoted-printable": (
        b"Content-Transfer-Encoding: quoted-printable\n\nser=\nial=20SN1= \t\n2345=C3=BC= ",
        "serial SN12345ü",
    ),
    "broken quoted-printable": (
        b"Content-Transfer-Encoding: quoted-printable\n\nserial=ZZ SN12345=",
        "serial=ZZ SN12345",
    ),
    "base64": (
        b"Content-Transfer-Encoding: BASE64\n\n" + base64.encodebytes(b"serial SN12345 " * 20),
        "serial SN12345 " * 20,
    ),
    "latin-2": (
        "Content-Type: text/plain; charset=iso-8859-2\n\nwiertarka działa źle".encode("iso8859-2"),
        "wiertarka działa źle",
    ),
    "no boundary": (b"Content-Type: multipart/mixed\n\nserial SN12345", "serial SN12345"),
    "boundary that never comes": (b"Content-Type: multipart/mixed; boundary=x\n\nserial SN12345", "serial SN12345"),
    "not closed": (b"Content-Type: multipart/mixed; boundary=x\n\n--x\n\nserial SN12345", "serial SN12345"),
    "content type in error": (b"Content-Type: what?\n\nserial SN12345", "serial SN12345"),
    "named text of the whole mail": (b"Content-Type: text/plain; name=body.txt\n\nserial SN12345", "serial SN12345"),
    "empty": (b"\n", ""),
}


@pytest.mark.parametrize(("body", "text"), BODIES.values(), ids=BODIES.keys())
def test_the_text_of_a_mail(body: bytes, text: str) -> None:
    assert parse_email(HEAD + body).new_text == text.strip()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"\n\nVGhlIGRyaWxs", "The drill"),
        (b"\n\nVGhlIGRyaWxsA", "The drill"),
        (b"\n\nserial SN12345 in plain words", "serial SN12345 in plain words"),
        (b"\n\nVGhlIGRyaWxs\n_______\nlist footer", "The drill_______\nlist footer"),
        (b"\n\nVGhlIGRyaWxs\nIQ==\nIEZvb3Rlcg==", "The drill! Footer"),
        (b"\n\n=", ""),
    ],
)
def test_damaged_base64_gives_what_can_be_read(body: bytes, text: str) -> None:
    assert parse_email(HEAD + b"Content-Transfer-Encoding: base64" + body).new_text == text


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (attachment("receipt.pdf"), "receipt.pdf"),
        (attachment("C:\\\\photos\\\\a.jpg"), "a.jpg"),
        (attachment("../../etc/passwd"), "passwd"),
        (attachment("=?utf-8?q?Ger=C3=A4t=2Ejpg?="), "Gerät.jpg"),
        (b"Content-Type: image/jpeg; name=photo.jpg\n\nx", "photo.jpg"),
        (b"Content-Type: image/jpeg\nContent-Disposition: inline; filename*=utf-8''Ger%C3%A4t.jpg\n\nx", "Gerät.jpg"),
        (b"Content-Type: image/jpeg\n\nx", "unnamed.jpeg"),
        (b"Content-Type: text/plain; name=notes.txt\n\nx", "notes.txt"),
        (b"Content-Type: text/csv\nContent-Disposition: attachment\n\nx", "unnamed.csv"),
        (b"Content-Type: message/rfc822\n\n" + HEAD + b"\nforwarded SN99999", "unnamed.eml"),
        (b"Content-Type: message/rfc822; name=old.eml\n\n" + HEAD + b"\nforwarded SN99999", "old.eml"),
        (b"Content-Type: application/ms-tnef; name=winmail.dat\n\nx", "winmail.dat"),
    ],
)
def test_attachments_count_by_their_name_alone(part: bytes, name: str) -> None:
    mail = parse_email(HEAD + multipart("mixed", TEXT, part))
    assert (mail.attachments, mail.new_text) == ((name,), "serial SN12345")


def test_an_inline_text_with_a_file_name_is_read_and_named() -> None:
    part = b'Content-Type: text/plain\nContent-Disposition: inline; filename="note.txt"\n\nand SN54321\n'
    mail = parse_email(HEAD + multipart("mixed", TEXT, part))
    assert (mail.new_text, mail.attachments) == ("serial SN12345\n\n\nand SN54321", ("note.txt",))


@pytest.mark.parametrize("kind", ["text/csv", "text/vcard", "text/calendar"])
def test_an_inline_file_that_is_no_plain_text_counts_by_its_name(kind: str) -> None:
    part = f"Content-Type: {kind}\nContent-Disposition: inline; filename=a.b\n\nSN54321\n".encode()
    mail = parse_email(HEAD + multipart("mixed", TEXT, part))
    assert (mail.new_text, mail.attachments) == ("serial SN12345", ("a.b",))


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ("format=flowed; delsp=yes", "serial SN12345"),
        ("format=Flowed; DelSp=Yes", "serial SN12345"),
        ("format=flowed", "serial SN12 345"),
        ("format=fixed; delsp=yes", "serial SN12 \n345"),
    ],
)
def test_flowed_lines_are_joined(parameters: str, text: str) -> None:
    mail = parse_email(HEAD + f"Content-Type: text/plain; {parameters}\n\nserial SN12 \n345\n".encode())
    assert mail.new_text == text


def test_the_first_from_with_an_address_counts() -> None:
    mail = parse_email(b"From: Jane\nFrom: jane@example.com\nFrom: bob@example.com\nMessage-ID: <1@x>\n\nx")
    assert mail.sender == "jane@example.com"
    assert mail.problems == ("the mail has more than one From header; the first with an address counts",)


def test_a_missing_message_id_is_derived_from_the_bytes() -> None:
    raw = b"From: jane@example.com\n\nserial SN12345"
    derived = parse_email(raw).message_id
    assert derived.startswith("<sha256-")
    assert derived.endswith("@missing.message-id>")
    assert parse_email(raw).message_id == derived != parse_email(raw + b"!").message_id


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (b"<1@example.com>", "<1@example.com>"),
        (b" junk <1@x> junk", "<1@x>"),
        (b"no brackets", "no brackets"),
        (b"<a b>", "<a b>"),
    ],
)
def test_the_message_id_as_sent(sent: bytes, read: str) -> None:
    assert parse_email(b"From: jane@example.com\nMessage-ID: " + sent + b"\n\nx").message_id == read


@pytest.mark.parametrize(
    ("fields", "received"),
    [
        (b"Date: Mon, 5 Jan 2026 10:00:00 -0000\n", "2026-01-05T10:00:00Z"),
        (b"Date: 5 Jan 26 10:00 EST\n", "2026-01-05T15:00:00Z"),
        (b"Received: junk\nDate: Mon, 5 Jan 2026 10:00:00 +0000\n", "2026-01-05T10:00:00Z"),
        (b"Date: yesterday\n", "yesterday"),
        (b"Date: Mon, 99 Jan 2026 99:99:99 +9999\n", "Mon, 99 Jan 2026 99:99:99 +9999"),
        (b"", ""),
    ],
)
def test_when_a_mail_came(fields: bytes, received: str) -> None:
    assert parse_email(HEAD + fields + b"\nx").received == received


@pytest.mark.parametrize("raw", [b"", b"\n\n", b"just some words", b"\x00\xff" * 50, b"%PDF-1.7 junk"])
def test_bytes_that_are_no_mail(raw: bytes) -> None:
    with pytest.raises(ProcessingError) as caught:
        parse_email(raw)
    assert caught.value.code == "email_not_a_mail"


@pytest.mark.parametrize(
    ("field", "code"),
    [
        (b"", "email_missing_sender"),
        (b"From: Jane\n", "email_invalid_sender"),
    ],
)
def test_mails_without_a_usable_sender(field: bytes, code: str) -> None:
    with pytest.raises(ProcessingError) as caught:
        parse_email(field + b"Subject: x\n\nx")
    assert caught.value.code == code


def nested(depth: int) -> bytes:
    return (
        b"".join(b"Content-Type: multipart/mixed; boundary=x%d\n\n--x%d\n" % (level, level) for level in range(depth))
        + TEXT
    )


OVERSIZED = {
    "size": (
        multipart("mixed", TEXT, b"Content-Type: image/png; name=a.png\n\n" + b"QUFB\n" * 6_000_000),
        "larger than",
        True,
    ),
    "text": (b"\nserial SN12345\n" + b"x" * 5_000_000, "text part is larger", True),
    "depth": (nested(5_000), "nested deeper", False),
    "parts": (multipart("mixed", TEXT, *[b"\n"] * 5_000), "more than 200 parts", True),
    "header": (b"X: " + b"y" * 20_000 + b"\n\nserial SN12345", "header is longer", True),
    "folded header": (b"X: a\n" + b" y\n" * 20_000 + b"\nserial SN12345", "header is longer", True),
    "headers": (b"X: y\n" * 5_000 + b"\nserial SN12345", "more than 1000 headers", True),
    "attachments": (multipart("mixed", TEXT, *[attachment("a.pdf")] * 300), "more than 200 parts", True),
    "subject": (b"Subject: " + b"x" * 2_000 + b"\n\nserial SN12345", None, True),
    "html": (b"Content-Type: text/html\n\n<p>serial SN12345</p>" + b"<b>x</b>\n" * 200_000, "texts of the mail", True),
}


@pytest.mark.parametrize(("rest", "problem", "is_read"), OVERSIZED.values(), ids=OVERSIZED.keys())
def test_past_a_limit_the_rest_is_left_out_and_named(rest: bytes, problem: str | None, is_read: bool) -> None:
    mail = parse_email(HEAD + rest)
    assert mail.new_text.startswith("serial SN12345") == is_read
    assert problem is None or any(problem in text for text in mail.problems)
    assert sum(len(span.text) for span in mail.spans) <= 200_000


HOSTILE = {
    "empty parts": b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\n\n" * 100_000,
    "open quotes in parameters": b"Content-Type: multipart/mixed; " + b';a="' * 100_000 + b"\n\nx",
    "semicolons in every part": multipart("mixed", *[b"Content-Type: text/plain" + b";" * 10_000 + b"\n\nx"] * 200),
    "open encoded words": b"Subject: " + b"=?a?q?" * 100_000 + b"\n\nx",
    "equals signs": b"Content-Transfer-Encoding: quoted-printable\n\n" + b"=" * 300_000,
    "open base64": b"Content-Transfer-Encoding: base64\n\n" + b"a b" * 100_000,
    "quadratic codec": b"Content-Type: text/plain; charset=idna\n\n" + b"a" * 300_000,
    "many recipients": b"To: " + b"a@example.com," * 30_000 + b"\n\nx",
    "one boundary at all depths": nested(30).replace(b"x1", b"x0"),
}


@pytest.mark.parametrize("rest", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_bytes_are_read_to_their_end(rest: bytes) -> None:
    assert parse_email(HEAD + rest).sender == "jane@example.com"


LINES = b"""\
From: a@example.com
Subject: =?utf-8?q?x?=
multipart/mixed; boundary=b
multipart/alternative; boundary=b
text/html; charset=x
message/rfc822
text/plain; name*0*=u''%ff
Content-Transfer-Encoding: base64
Content-Transfer-Encoding: quoted-printable
Date: 1 Jan

--b
--b--
> quoted
"""
WORDS = (b"From:", b"Content-Type: ", b"Date: ", b"text =zz ", b"<p>html</p>", b"\r\n")
PIECES = st.sampled_from([*LINES.splitlines(keepends=True), *WORDS, *(bytes([code]) for code in b' \x00\xff=;"')])


def parsed(raw: bytes) -> Email | ProcessingError:
    try:
        return parse_email(raw)
    except ProcessingError as error:
        return error


@settings(max_examples=300)
@given(st.lists(PIECES | st.binary(max_size=5), max_size=30).map(b"".join) | st.binary(max_size=200))
def test_no_bytes_break_the_parser(raw: bytes) -> None:
    mail = parsed(raw)
    if isinstance(mail, ProcessingError):
        assert mail.code in ("email_not_a_mail", "email_missing_sender", "email_invalid_sender")
        return
    assert mail.message_id
    one_liners = (mail.subject, mail.sender, mail.received, mail.message_id, *mail.attachments, *mail.problems)
    assert "\n" not in "".join(one_liners)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("My drill \nstopped \nworking.\nBye", "My drill stopped working.\nBye"),
        ("one \n\ntwo", "one \n\ntwo"),
        ("Bye \n-- \nJane", "Bye \n-- \nJane"),
        ("> quoted \n> text\nnew", "> quoted text\nnew"),
        (">> deep \n> flat \nnew", ">> deep \n> flat \nnew"),
        (">\n>> a", ">\n>> a"),
        (" From the shop", "From the shop"),
        (" > 5 volts", " > 5 volts"),
        ("open ", "open "),
        ("a \r\nb", "a b"),
        ("", ""),
    ],
)
def test_flowed_text(sent: str, read: str) -> None:
    assert join_flowed_lines(sent, delete_space=False) == read


@pytest.mark.parametrize(
    ("sent", "read"), [("SN12 \n345", "SN12345"), ("保修 \n期", "保修期"), ("a  \nb", "a b"), ("> a \n> b", "> ab")]
)
def test_the_blank_of_a_broken_line_goes_with_delsp(sent: str, read: str) -> None:
    assert join_flowed_lines(sent, delete_space=True) == read


@given(st.text(alphabet="a>- \n", max_size=60), st.booleans())
def test_only_blanks_marks_and_line_ends_change(text: str, delete_space: bool) -> None:
    letters = str.maketrans("", "", " >\n")
    assert join_flowed_lines(text, delete_space=delete_space).translate(letters) == text.translate(letters)


@pytest.mark.parametrize(
    "sender",
    [b"=?utf-8?q?Jane_=3Cjane=40example=2Ecom=3E?=", b"jane@example.com.", b"Jane <jane@example.com.>"],
)
def test_a_wholly_encoded_author_and_a_full_domain_name_are_read(sender: bytes) -> None:
    assert parse_email(b"From: " + sender + b"\n\nx").sender == "jane@example.com"
