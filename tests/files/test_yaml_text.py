from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.files.yaml_text import to_yaml

AWKWARD = [
    "",
    " ",
    "a",
    "  b",
    "\tc",
    "# d",
    "- e",
    "f: g",
    "---",
    "...",
    "'",
    '"',
    "\\",
    "|",
    "é 🎉",
    "a ",
    "%x",
    "\r",
]
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
LINES = st.lists(st.sampled_from([*AWKWARD, "\x00", "\u2028", "\x85", "\ufeff"]), max_size=6).map("\n".join)
SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
# A merge key is refused by the reader, however it is written.
KEYS = (TEXTS | LINES).filter(lambda key: key != "<<" and not key.startswith("!"))
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS | TEXTS | LINES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=3))
def test_reading_gives_back_what_was_written(data: dict[str, Any]) -> None:
    assert repr(load_documents(to_yaml(data))) == repr([data])


def test_every_line_of_a_text_stands_in_a_line_of_its_own() -> None:
    data = {"request": {"system": [{"type": "text", "text": "Be short.\n\n  - and kind\n"}], "max_tokens": 10}}

    assert to_yaml(data) == (
        "request:\n"
        "  system:\n"
        '    - type: "text"\n'
        "      text: |2\n"
        "        Be short.\n"
        "\n"
        "          - and kind\n"
        "  max_tokens: 10\n"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one\ntwo", "|2-\n  one\n  two"),
        ("one\ntwo\n", "|2\n  one\n  two"),
        ("one\ntwo\n\n", "|2+\n  one\n  two\n"),
        ("\none\ntwo", "|2-\n\n  one\n  two"),
        ("one line\n", '"one line\\n"'),
        ("\n\n", '"\\n\\n"'),
        ("one\r\ntwo", '"one\\r\\ntwo"'),
        ("1\x1b[31m\n2", '"1\\u001b[31m\\n2"'),
        ("yes", '"yes"'),
        ("2026-01-18", '"2026-01-18"'),
    ],
)
def test_a_text_is_a_block_where_it_can_be_one(text: str, shown: str) -> None:
    written = to_yaml({"text": text})

    assert written == f"text: {shown}\n"
    assert load_documents(written) == [{"text": text}]


def test_empty_collections_and_scalars_stand_behind_their_key() -> None:
    data: dict[str, Any] = {"a": [], "b": {}, "c": None, "d": True, "e": 0.0, "yes": [[], {}, [1]]}

    assert to_yaml(data) == 'a: []\nb: {}\nc: null\nd: true\ne: 0.0\n"yes":\n  - []\n  - {}\n  -\n    - 1\n'


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, {"a": object()}, {1: "a"}], ids=["bytes", "set", "object", "key"])
def test_what_json_does_not_know_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        to_yaml({"value": value})
