import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.utils.addresses import parse_address, parse_addresses, strip_comments


@pytest.mark.parametrize(
    "value",
    [
        "jane@example.com",
        "Jane <jane@example.com>",
        '"Jane, of the Shop" <jane@example.com>',
        '"Jane \\"J\\" D" <jane@example.com>',
        '"a \\" <evil@example.org>, \\"" <jane@example.com>',
        "(a \\) <evil@example.org>, \\() jane@example.com",
        "(nested (comment)) Jane <jane@example.com>",
        "=?utf-8?q?J=C3=A4ne?= <jane@example.com>",
        '"someone@example.org" <jane@example.com>',
        "Jane <mailto:jane@example.com>",
        "<@relay.example.org:jane@example.com>",
        '"Jane <jane@example.com>',
        "Jane <jane@example.com",
        "jane@example.com\r\n (Jane)",
        "\ufeffjane@example.com\u200b",
        '"jane"@example.com',
        "Team: jane@example.com;",
        "Jane <jane @example.com>",
        "Jane < jane@example . com >",
    ],
)
def test_one_address_in_any_form(value: str) -> None:
    assert parse_addresses(value) == ["jane@example.com"]


@pytest.mark.parametrize(
    "address",
    [
        "o'brien+tag@sub.example.com",
        "a@localhost",
        "jane@[192.0.2.1]",
        "jürgen@müller.example",
        "a.b_c-d=e@example.co.uk",
    ],
)
def test_unusual_addresses_are_kept_as_they_are(address: str) -> None:
    assert parse_address(address) == address


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Jane",
        "<>",
        "jane@",
        "a@b@c",
        "jane@exam ple.com",
        "jane@example..com",
        '"jane doe"@example.com',
        "undisclosed-recipients:;",
        "a" * 400 + "@example.com",
        "jane@example.com\x00",
        "(",
        "jane@example.com bob@example.com",
        "Jane <jane doe@example.com>",
        "Jane Doe jane@example.com",
    ],
)
def test_what_is_no_usable_address(value: str) -> None:
    assert parse_addresses(value) == []


def test_lists_and_groups_keep_their_order() -> None:
    value = 'a@example.com, "B, b" <b@example.com>; Friends: c@example.com, D <d@example.com>; , e@example.com'
    assert parse_addresses(value) == [f"{letter}@example.com" for letter in "abcde"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_break_smuggles_in_no_recipient(end: str) -> None:
    assert parse_addresses(f"jane@example.com{end}Bcc: evil@example.org") == ["jane@example.com"]


@pytest.mark.parametrize("piece", ["(", '"', "<", "\\", ",", "a@b,", ":", '"\\'])
def test_a_hostile_value_is_read_to_its_end(piece: str) -> None:
    for address in parse_addresses(piece * 300_000):
        assert address == "a@b"


@given(st.text() | st.text(alphabet='ab@.,;:<>()"\\ \n\r\t\x00[]'))
def test_an_address_is_always_safe_to_put_into_a_header(value: str) -> None:
    for address in parse_addresses(value):
        assert address.count("@") == 1
        assert not any(sign.isspace() or sign < " " or sign in ',;:<>()"\\\x7f' for sign in address.partition("@[")[0])


@pytest.mark.parametrize(
    ("value", "rest"),
    [("no", "no"), ("no (a person (really))", "no "), ("(x) no", " no"), ("(unclosed", ""), ("a) b", "a) b")],
)
def test_comments_are_left_out(value: str, rest: str) -> None:
    assert strip_comments(value) == rest
