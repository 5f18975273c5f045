"""A mail as a mapping: what services and scenarios hand over, and all that can be wrong with it."""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.email import Email, Span
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.utils.errors import ProcessingError
from guarantee_email_agent.utils.text import normalize_text

MAIL: dict[str, object] = {
    "subject": "Warranty status inquiry",
    "body": "Hi, I need to check my warranty status for serial number SN12345. Thanks!",
    "from": "customer@example.com",
    "received": "2026-01-18T10:00:00Z",
    "message_id": "eval-valid_warranty_001",
}


def test_a_plain_mail() -> None:
    email = parse_email(MAIL)
    assert (email.message_id, email.sender, email.subject, email.received) == (
        "eval-valid_warranty_001",
        "customer@example.com",
        "Warranty status inquiry",
        "2026-01-18T10:00:00Z",
    )
    assert email.spans == (Span("new", str(MAIL["body"])),)
    assert email.new_text == MAIL["body"]
    assert (email.quoted_text, email.signature_text, email.problems) == ("", "", ())
    assert (email.recipients, email.attachments, email.headers, email.thread_id) == ((), (), {}, None)


def test_the_optional_fields() -> None:
    email = parse_email(
        MAIL
        | {
            "to": "Support <support@example.com>, other@example.com",
            "cc": ["support@example.com", "third@example.com"],
            "headers": {"X-Priority": "1", "Received": ["a", "b"], "AUTO-Submitted": "no"},
            "attachments": ["receipt.pdf", "C:\\photos\\sticker.jpg", "x/y.png"],
            "thread_id": "t-1",
        }
    )
    assert email.recipients == ("support@example.com", "other@example.com", "third@example.com")
    assert email.headers == {"x-priority": ("1",), "received": ("a", "b"), "auto-submitted": ("no",)}
    assert (email.attachments, email.thread_id) == (("receipt.pdf", "sticker.jpg", "y.png"), "t-1")
    assert email.problems == ()


def test_the_texts_of_each_kind() -> None:
    email = parse_email(MAIL | {"body": "New SN1\n> Old: \n> > SN2\n\nMore\n-- \nJane\n"})
    assert email.new_text == "New SN1\nMore"
    assert email.quoted_text == "Old: \nSN2"
    assert email.signature_text == "-- \nJane"


def test_the_null_sender_is_kept_as_nobody() -> None:
    email = parse_email(MAIL | {"from": "<>"})
    assert (email.sender, email.problems) == ("", ("the sender is the null address",))


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        *((raw, "email_not_a_mail") for raw in (None, "From: jane@example.com", 5, ["from"], object())),
        *(
            (MAIL | {"from": value}, "email_missing_sender")
            for value in (None, "", "  ", 5, ["a@b.example"], b"a@b.example")
        ),
        *(
            (MAIL | {"from": value}, "email_invalid_sender")
            for value in ("the shop", "shop@", "the shop@example.com", "a@example.com b@example.com")
        ),
    ],
)
def test_what_is_no_mail_or_has_nobody_to_answer(raw: Any, code: str) -> None:
    with pytest.raises(ProcessingError) as caught:
        parse_email(raw)
    assert caught.value.code == code
    if code == "email_invalid_sender":
        assert raw["from"] not in caught.value.message


@pytest.mark.parametrize("key", ["subject", "body", "received", "message_id"])
@pytest.mark.parametrize("value", [None, 5])
def test_a_missing_or_wrong_field_is_left_out_and_named(key: str, value: object) -> None:
    email = parse_email(MAIL | {key: value})
    assert len(email.problems) == 1
    assert email.problems[0].startswith(key)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("headers", "x"),
        ("headers", {"": "x"}),
        ("headers", {"X": 5}),
        ("attachments", [None]),
        ("to", [["a@example.com"]]),
        ("thread_id", 5),
    ],
)
def test_a_wrong_optional_field_is_named_and_the_mail_read(key: str, value: object) -> None:
    email = parse_email(MAIL | {key: value})
    assert len(email.problems) == 1
    assert email.new_text == MAIL["body"]


def test_a_yaml_boolean_as_a_header_value_is_the_word_it_was() -> None:
    assert parse_email(MAIL | {"headers": {"Auto-Submitted": False}}).headers == {"auto-submitted": ("no",)}


def test_the_subject_is_one_short_line() -> None:
    email = parse_email(MAIL | {"subject": " a\r\nBcc: b\t" + "x" * 5_000})
    assert email.subject.startswith("a Bcc: b xxx")
    assert len(email.subject) == 1_000
    assert email.problems == ("the subject is longer than 1000 characters and was cut",)


def test_a_missing_message_id_is_derived_from_the_content() -> None:
    without = {key: value for key, value in MAIL.items() if key != "message_id"}
    derived = parse_email(without).message_id
    assert derived.startswith("<sha256-")
    assert derived.endswith("@missing.message-id>")
    assert parse_email(dict(reversed(without.items()))).message_id == derived
    assert parse_email(without | {"body": "other"}).message_id != derived
    assert parse_email(without | {"received": "2026-01-19T10:00:00Z"}).message_id != derived


def test_the_body_is_cleaned_and_cut() -> None:
    email = parse_email(MAIL | {"body": "SN\u00a01\u200b2\r\n" + "x" * 300_000})
    assert email.new_text.startswith("SN 12\nxxx")
    assert sum(len(span.text) for span in email.spans) <= 200_000
    assert email.problems == ("the text is longer than 200000 characters; the rest was left out",)


@pytest.mark.parametrize(
    "fields",
    [
        {"body": "<html><body><p>serial SN12345</p></body></html>"},
        {"body": "<p>serial&nbsp;SN12345</p>"},
        {"body": "serial <b>SN12345</b>"},
        {"body": "<x>serial</x> SN12345", "headers": {"Content-Type": 'Text/HTML; charset="utf-8"'}},
        {"body": "", "html": "<p>serial SN12345</p>"},
        {"body": "Please view this message in your browser.", "html": "<p>serial SN12345</p>" + "<p>and more</p>" * 9},
        {"body": "serial SN12345", "html": "<p>something else</p>"},
        {"body": None, "html": "<p>serial SN12345</p>"},
    ],
)
def test_html_becomes_text(fields: dict[str, object]) -> None:
    assert parse_email(MAIL | fields).new_text.startswith("serial SN12345")


def test_markup_in_a_body_that_says_it_is_plain_stays() -> None:
    email = parse_email(MAIL | {"body": "the page shows <br> here", "headers": {"Content-Type": "text/plain"}})
    assert email.new_text == "the page shows <br> here"


def test_the_counts_of_everything_are_capped() -> None:
    email = parse_email(
        MAIL
        | {
            "to": [f"u{number}@example.com" for number in range(1_000)],
            "headers": {f"X-{number}": "x" * 20_000 for number in range(2_000)},
            "attachments": ["x" * 1_000] * 1_000,
        }
    )
    assert (len(email.recipients), len(email.headers), len(email.attachments)) == (100, 1_000, 200)
    assert {len(value[0]) for value in email.headers.values()} == {10_000}
    assert {len(name) for name in email.attachments} == {255}
    assert len(email.problems) == 4


def test_a_plain_mail_loads_no_heavy_module() -> None:
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from guarantee_email_agent.email.parsing.parse import parse_email\n"
        "from guarantee_email_agent.email.no_reply import no_reply_reason\n"
        "mail = parse_email({'from': 'Jane <jane@example.com>', 'subject': 'Grüße', 'body': 'SN–1 < 2\\n> old\\n',\n"
        "  'received': '', 'message_id': 'x', 'headers': {'X': 'y'}, 'to': 'a@example.com, b@example.com'})\n"
        "assert no_reply_reason(mail, frozenset({'x@example.com'})) is None\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, encoding="utf-8")
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"email", "html", "urllib", "hashlib", "socket", "asyncio", "datetime", "typing_extensions"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40) | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    ["from", "subject", "body", "received", "message_id", "to", "cc", "headers", "attachments", "thread_id", "html"]
)


def parsed(raw: Mapping[str, object]) -> Email | ProcessingError:
    try:
        return parse_email(raw)
    except ProcessingError as error:
        return error


@settings(max_examples=200)
@given(st.dictionaries(KEYS | st.text(max_size=5), VALUES), st.booleans())
def test_no_mapping_breaks_the_parser(raw: dict[str, object], has_sender: bool) -> None:
    email = parsed(raw | {"from": "jane@example.com"} if has_sender else raw)
    if isinstance(email, ProcessingError):
        assert email.code in ("email_missing_sender", "email_invalid_sender")
        assert not has_sender
        return
    assert email.message_id
    assert "\n" not in email.subject + email.message_id + email.received
    hash((email.spans, email.problems, email.attachments))


@settings(max_examples=100)
@given(st.text(max_size=300))
def test_the_spans_hold_all_of_a_plain_body(body: str) -> None:
    email = parse_email(MAIL | {"body": body, "headers": {"Content-Type": "text/plain"}})
    assert "".join(span.text for span in email.spans) == normalize_text(body)


@pytest.mark.parametrize(
    "piece",
    ["> ", "On ", "On 2026 10:00 x@y \n:", "wrote:\n", "--\n", "From: a\nSent: b\n", "_\n", " ", "@", "\u200b"],
)
@pytest.mark.parametrize("key", ["body", "from"])
def test_hostile_text_is_read_to_its_end(key: str, piece: str) -> None:
    email = parsed(MAIL | {key: piece * (300_000 // len(piece))})
    assert isinstance(email, Email) or key == "from"
