import email
import email.policy
import quopri
from datetime import UTC, datetime
from email.header import decode_header, make_header
from email.message import EmailMessage
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.compose import (
    PROOF_HEADER,
    MessageError,
    compose,
    envelope_address,
    verify_proof,
)
from guarantee_email_agent.services.ports import Reply

SENDER = "support@example.com"
DATE = datetime(2026, 1, 17, 10, 23, 45, tzinfo=UTC)
KEY = b"a key"


def reply(**changes: Any) -> Reply:
    fields: dict[str, Any] = {
        "to": "customer@example.org",
        "subject": "Re: warranty",
        "body": "Your warranty is valid.\n",
        "message_id": "<reply-1@example.com>",
    }
    return Reply(**{**fields, **changes})


def written(**changes: Any) -> bytes:
    return compose(reply(**changes), SENDER, DATE)


def parsed(raw: bytes) -> EmailMessage:
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def header_names(raw: bytes) -> list[str]:
    lines = raw.split(b"\r\n\r\n", 1)[0].split(b"\r\n")
    return [line.split(b":", 1)[0].decode() for line in lines if not line.startswith((b" ", b"\t"))]


def test_a_reply_is_exactly_these_headers_and_the_text() -> None:
    assert written(in_reply_to="<q@example.org>", references="<p@example.org> <q@example.org>") == (
        b"From: support@example.com\r\n"
        b"To: customer@example.org\r\n"
        b"Subject: Re: warranty\r\n"
        b"Date: Sat, 17 Jan 2026 10:23:45 +0000\r\n"
        b"Message-ID: <reply-1@example.com>\r\n"
        b"In-Reply-To: <q@example.org>\r\n"
        b"References: <p@example.org>\r\n <q@example.org>\r\n"
        b"Auto-Submitted: auto-replied\r\n"
        b"MIME-Version: 1.0\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"Content-Transfer-Encoding: quoted-printable\r\n"
        b"\r\n"
        b"Your warranty is valid.\r\n"
    )


def test_no_line_of_a_body_can_be_taken_for_a_mailbox_separator() -> None:
    assert b"\r\nFrom " not in written(body="x\nFrom y\n")


@pytest.mark.parametrize("field", ["to", "subject", "message_id", "in_reply_to", "references"])
@pytest.mark.parametrize("sign", ["\r", "\n", "\0", "\r\n"])
def test_a_line_break_in_a_header_is_refused(field: str, sign: str) -> None:
    value = {"to": "a@example.org", "message_id": "<a@example.org>"}.get(field, "text")
    with pytest.raises(MessageError, match=f"{field} holds a line break or NUL"):
        written(**{field: f"{value}{sign}Bcc: b@example.org"})


NO_ADDRESS = ["", "a", "a@example.org, b@example.org", "A <a@example.org>", "a@example.org b@example.org", "a@", "@b"]
NO_MESSAGE_ID = ["", "a@b", "<>", "<a b@c>", "<a@b", "<ä@b>", "<a@b><c@d>"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"headers": {"X-A": "1\nBcc: b@example.org"}}, "the header 'X-A' holds a line break"),
        ({"body": "a\0b"}, "body holds NUL"),
        ({"to": f"a@{'ü' * 70}.example"}, "the domain of to is none that can exist"),
        *(({"to": to}, "to is not one bare address") for to in (*NO_ADDRESS, "a b@c")),
        *(({"message_id": message_id}, "message_id is no Message-ID") for message_id in NO_MESSAGE_ID),
    ],
)
def test_what_no_mail_may_hold_is_refused_with_the_field(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(MessageError, match=problem):
        written(**changes)


def test_an_address_that_few_servers_take_is_rejected() -> None:
    with pytest.raises(ToolError, match="letters beyond ASCII before its @") as caught:
        written(to="grüße@example.org")
    assert caught.value.code == "mail_rejected"


def test_malformed_ids_of_the_thread_are_left_out() -> None:
    raw = written(in_reply_to="no id at all", references="rubbish <a@b> <ä@c> <d@e> <")
    assert parsed(raw)["In-Reply-To"] is None
    assert parsed(raw)["References"].split() == ["<a@b>", "<d@e>"]


def test_a_long_message_id_is_not_encoded() -> None:
    long = f"<{'x' * 300}@example.org>"
    assert f"In-Reply-To: {long}\r\n".encode() in written(in_reply_to=long)


def test_allowed_headers_are_written() -> None:
    raw = written(headers={"X-Ticket": "Nº 1", "Precedence": "bulk", "auto-submitted": "auto-replied"})
    assert parsed(raw)["X-Ticket"] == "Nº 1"
    assert parsed(raw)["Precedence"] == "bulk"
    assert parsed(raw).get_all("Auto-Submitted") == ["auto-replied"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Bcc": "b@example.org"},
        {"From": "b@example.org"},
        {"X-A:": "1"},
        {"X-A b": "1"},
        {"X-": "1"},
        {"x-sent-proof": "1"},
        {"Auto-Submitted": "no"},
        {"Precedence": "bulk list"},
        {"X-A": "1", "x-a": "2"},
        {f"X-{number}": "1" for number in range(21)},
    ],
)
def test_other_headers_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(MessageError):
        written(headers=headers)


def test_an_international_domain_is_written_in_ascii() -> None:
    assert envelope_address("a@bücher.example") == "a@xn--bcher-kva.example"
    assert envelope_address("a@straße.example") == "a@xn--strae-oqa.example"  # strasse.example is somebody else's


def test_the_proof_holds_for_the_reply_and_nothing_else() -> None:
    raw = compose(reply(), SENDER, DATE, KEY)
    body = raw.split(b"\r\n\r\n", 1)[1]
    proof = parsed(raw)[PROOF_HEADER]
    given = ("<reply-1@example.com>", "customer@example.org", body)
    assert verify_proof(KEY, *given, proof)
    assert verify_proof(KEY, *given[:2], body.replace(b"\r\n", b"\n") + b"\n\n", proof)
    assert not verify_proof(b"other", *given, proof)
    assert not verify_proof(KEY, "<reply-2@example.com>", *given[1:], proof)
    assert not verify_proof(KEY, given[0], "other@example.org", body, proof)
    assert not verify_proof(KEY, *given[:2], b"You get a new one.\r\n", proof)
    assert not verify_proof(KEY, *given, "")
    assert not verify_proof(KEY, *given, "né")


TEXT = st.text(max_size=300) | st.sampled_from(["\r\nBcc: b@example.org", "\n", "a\r b", "=?utf-8?q?a=0D=0AX:_y?="])
ADDRESS = st.emails() | TEXT


HEADERS = st.dictionaries(TEXT | st.sampled_from(["X-A", "Precedence", "Bcc", "x-b"]), TEXT, max_size=3)
ALLOWED_HEADERS = (
    f"From To Subject Date Message-ID In-Reply-To References Auto-Submitted Precedence {PROOF_HEADER} MIME-Version "
    "Content-Type Content-Transfer-Encoding"
).split()


@given(st.builds(Reply, ADDRESS, TEXT, TEXT, TEXT | st.just("<a@b>"), TEXT, TEXT, HEADERS))
def test_no_input_can_add_a_header_or_a_recipient(fields: Reply) -> None:
    try:
        raw = compose(fields, SENDER, DATE, KEY)
    except ToolError:
        return
    names = header_names(raw)
    assert set(names) <= {*ALLOWED_HEADERS, *fields.headers}
    assert len({name.lower() for name in names}) == len(names)
    message = parsed(raw)
    assert message["From"] == SENDER
    assert [str(address.addr_spec) for address in message["To"].addresses] == [fields.to] or not fields.to.isascii()
    assert message["Message-ID"] == fields.message_id
    assert b"\n" not in raw.replace(b"\r\n", b"")
    assert b"\r" not in raw.replace(b"\r\n", b"")
    assert all(len(line) <= 998 for line in raw.split(b"\r\n"))


@given(subject=st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=300))
@example("=?utf-8?q?fake?=")
@example("two  spaces")
@example("word " * 60)
@example("x" * 998)
@example("😀" * 200)
def test_any_subject_arrives(subject: str) -> None:
    visible = "".join(" " if sign < " " or "\x7f" <= sign <= "\x9f" else sign for sign in subject).strip()
    raw = written(subject=subject)
    line = email.message_from_bytes(raw)["Subject"].replace("\r\n", "")
    assert str(make_header(decode_header(line))) == visible
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert raw.isascii()


@given(body=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=500))
@example(".\n..\nFrom me\n=3D\ntab\t\nend \n")
@example("long " * 100)
def test_any_body_arrives(body: str) -> None:
    expected = body.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n") + "\n"
    raw = written(body=body).split(b"\r\n\r\n", 1)[1]
    assert quopri.decodestring(raw).replace(b"\r\n", b"\n").decode() == expected
    assert all(len(line) <= 76 for line in raw.split(b"\r\n"))
