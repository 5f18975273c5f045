"""RFC 3676: what a mail program broke for the way is one line again, and nothing else changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.parsing.flowed import join_flowed_lines


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


@pytest.mark.parametrize("line", ["a \n", "> a \n", ">" * 50 + "\n", "\n", "-- \n"])
def test_a_long_text_is_joined_in_one_pass(line: str) -> None:
    text = line * (2_000_000 // len(line))
    assert len(join_flowed_lines(text, delete_space=False)) <= 2 * len(text)
