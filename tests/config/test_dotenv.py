from __future__ import annotations

import pytest

from guarantee_email_agent.config.dotenv import parse_dotenv


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("# comment\n\n   \n", {}),
        ("A=1\nB_2 = two words \n", {"A": "1", "B_2": "two words"}),
        ("export A=1", {"A": "1"}),
        ("A=", {"A": ""}),
        ("A=b=c==", {"A": "b=c=="}),
        ("A=1 # note", {"A": "1"}),
        ("A=1#2", {"A": "1#2"}),
        ("A= # note", {"A": ""}),
        ("A='x # $y \\n' # note", {"A": "x # $y \\n"}),
        ('A="x \\"y\\"\\n\\\\ # z"', {"A": 'x "y"\n\\ # z'}),
        ("A=''", {"A": ""}),
        ("A=it's", {"A": "it's"}),
    ],
)
def test_values(text: str, values: dict[str, str]) -> None:
    assert parse_dotenv(text) == (values, [])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("A=1\nsecretvalue\n", 2, "must be NAME=value, a comment or empty"),
        ("1A=x", 1, "must be NAME=value, a comment or empty"),
        ("A='secretvalue", 1, "the quotes of A do not close at the end of the line"),
        ('A="x" secretvalue', 1, "the quotes of A do not close at the end of the line"),
        ("A=1\nA=secretvalue", 2, "A stands twice; keep one"),
    ],
)
def test_problems_name_the_line_and_never_the_value(text: str, line: int, message: str) -> None:
    assert parse_dotenv(text)[1] == [(line, message)]


def test_hostile_line_takes_no_time() -> None:
    assert parse_dotenv('A="' + "\\" * 200_001)[1] != []
    assert parse_dotenv("A=" + " #" * 100_000)[0] == {"A": ""}
