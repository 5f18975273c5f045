from itertools import pairwise
from typing import Any

import pytest
import ryaml
from hypothesis import given, settings
from hypothesis import strategies as st

from guarantee_email_agent.files.text_file import InputFileError
from guarantee_email_agent.files.yaml import dump, load_documents, locate

AWKWARD = [
    *("", " ", "a", "a ", "  b", "\tc", "# d", "- e", "f: g", "---", "...", "'", '"', "\\", "|", "%x", "\r", "é 🎉"),
    *("\x00", "\u2028", "\x85", "\ufeff", "yes", "NaN", "1e5", "0o17", "2026-01-18", "=", "~", "\x7f", "\U0010ffff"),
]
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
LINES = st.lists(st.sampled_from(AWKWARD), max_size=6).map("\n".join)
SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False)
# A merge key is refused by the reader, however it is written.
KEYS = (TEXTS | LINES).filter(lambda key: key != "<<" and not key.startswith("!"))
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS | TEXTS | LINES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
)


def refusal(text: str) -> InputFileError:
    with pytest.raises(InputFileError) as caught:
        load_documents(text)
    return caught.value


class TestLoadDocuments:
    @pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n"])
    def test_empty_text_holds_no_document(self, text: str) -> None:
        assert load_documents(text) == []

    def test_dates_and_yes_and_leading_zeros_stay_text(self) -> None:
        text = "a: 2026-01-18\nb: 2026-01-18T10:00:00Z\nc: yes\nd: 0123\ne: 1_000\n"
        assert load_documents(text) == [
            {"a": "2026-01-18", "b": "2026-01-18T10:00:00Z", "c": "yes", "d": "0123", "e": "1_000"}
        ]

    def test_signs_of_html_and_css_are_text(self) -> None:
        text = "a: |\n  <style>/* b */</style> S/N:&nbsp;K4&#32;-&shy;\n  *nbsp;\n"
        assert load_documents(text) == [{"a": "<style>/* b */</style> S/N:&nbsp;K4&#32;-&shy;\n*nbsp;\n"}]

    def test_quoted_signs_are_text(self) -> None:
        assert load_documents('a: {"!x": 1}\nb: "<<"\n') == [{"a": {"!x": 1}, "b": "<<"}]

    @pytest.mark.parametrize(
        ("text", "line", "column", "message"),
        [
            ("a: 1\nb: 2\na: 3\n", 3, 1, "the key 'a' stands twice (first on line 1); keep one"),
            ("---\nx: 1\n---\nl:\n  - a: 1\n    a: 2\n", 6, 5, "the key 'a' stands twice (first on line 5); keep one"),
            ("1: a\n1: b\n", 2, 1, "the key '1' stands twice (first on line 1); keep one"),
            ("a:\n\tb: 1", 2, 1, "a tab is used for indentation; use spaces"),
            ("a: 1\n\tb: 2", 2, 1, "a tab is used for indentation; use spaces"),
            ("é: é\nb: x\x07", 2, 5, "the control character U+0007 is not allowed; remove it"),
            ("a: \ud800", 1, 4, "U+D800 is half a character; remove it"),
            ('a: 1\nb: "x\n', 2, 4, "the quote that opens here is never closed"),
            ("a: [1, 2\nb: 1", 1, 4, "the list that opens here with '[' lacks a ',' or its ']'"),
            ("a: {b: 2\nc: 1", 1, 4, "the mapping that opens here with '{' lacks a ',' or its '}'"),
            ("a: b: c", 1, 5, "a ': ' where no key can stand"),
            ("a: 1\nbc\n", 2, 1, "this line is no 'key: value' pair"),
            ("- a\nb: 1", 2, 1, "a key stands where a list item ('- ') must"),
            ("a: @x", 1, 4, "a value cannot start with '@'; put it in quotes"),
            ("a: *x", 1, 4, "this alias has no anchor (&name) before it"),
            ("a: ** x", 1, 5, "'*' starts an alias (*name); quote the value if it is meant as text"),
            ("a: !foo bar", 1, 1, "the tag !foo is not supported"),
            ("a: !!int x", 1, 4, "the value does not fit its tag"),
            (r'a: "\q"', 1, 5, "this escape is unknown"),
            ("a: {{ name }}", 1, 5, "a list or a mapping is used as a key"),
            ("d: &d {x: 1}\ne:\n  <<: *d\n", 3, 3, "merge keys (<<) are not supported; write the keys out"),
            ("a: 12345678901234567890123", 1, 4, 'if it is text, quote it: "12345678901234567890123"'),
            ("a: " + "[" * 200 + "]" * 200, 1, 131, "nested more than 128 levels deep; flatten it"),
            ("a: &a [*a]", 1, 4, "nested more than 128 levels deep; flatten it"),
        ],
    )
    def test_what_is_wrong_where_and_what_to_do(self, text: str, line: int, column: int, message: str) -> None:
        error = refusal(text)
        assert error.message.startswith(f"YAML does not parse (line {line}, column {column}): ")
        assert message in error.message
        assert (error.code, error.details) == ("document_yaml_invalid", {"line": line, "column": column})

    @pytest.mark.parametrize("before", ["a: ", "[" + "[], " * 600 + "]\n---\na: ", "\ufeff--- a: "])
    @pytest.mark.parametrize("opened", ["[", "{", "[{", "[a: ", "{a: ", "[\n "])
    def test_the_parser_gets_no_text_that_is_nested_too_deep(
        self, before: str, opened: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It refuses that, too, but goes through all of it first: half a minute for 100 kB, two for twice of it."""
        monkeypatch.setattr(ryaml, "loads_all", pytest.fail)
        assert "nested more than 128 levels deep; flatten it" in refusal(f"{before}{opened * 3000}").message

    @pytest.mark.parametrize(
        "text",
        [
            "a: |\n  " + ":-[ {" * 1000,
            'a: "' + "[{" * 1000 + '"',
            "a: b  # " + "[{" * 1000,
            "a: b" + "[{" * 1000,
            "a: [" + "[], {}, " * 1000 + "]",
            "a: " + "[" * 127 + "]" * 127 + "\nb: [" + "[], " * 1000 + "]",
        ],
        ids=["block", "quotes", "comment", "plain", "flat", "as deep as allowed"],
    )
    def test_brackets_that_nest_nothing_are_read(self, text: str) -> None:
        assert len(load_documents(text)) == 1

    def test_exponential_alias_bomb(self) -> None:
        names = "abcdefghi"
        bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise(names)
        )
        assert "repeat their values too often" in refusal(bomb).message

    def test_few_aliases_of_one_long_text(self) -> None:
        bomb = f'a: &a "{"x" * 100_000}"\nb: [{",".join(["*a"] * 5000)}]'
        assert "repeat their values too often" in refusal(bomb).message

    @settings(max_examples=300)
    @given(st.text(alphabet=st.sampled_from("ab:-?[]{},&*!|>'\"%@`#<~.1 \n\t\r\x00\x85\ufeff\ud800é")) | st.text())
    def test_any_text_gives_documents_or_one_clear_line(self, text: str) -> None:
        try:
            result: list[object] | InputFileError = load_documents(text)
        except InputFileError as error:
            result = error
        if not isinstance(result, list):
            assert "\n" not in result.message
            assert result.line is not None
            assert result.line >= 1


class TestLocate:
    TEXT = "---\na: 1\n---\nb:\n  c: [x,\n    y]\n  'd e': &x 007\n  f:\n  - g: 1\n"

    @pytest.mark.parametrize(
        ("path", "line"),
        [(("a",), 2), (("b", "c"), 5), (("b", "c", 1), 6), (("b", "d e"), 7), (("b", "f", 0, "g"), 9)],
    )
    def test_line_of_a_key_or_item(self, path: tuple[str | int, ...], line: int) -> None:
        assert locate(self.TEXT, path) == line

    def test_path_that_the_text_does_not_hold(self) -> None:
        assert locate(self.TEXT, ("b", "z")) is None
        assert locate("a: 1\nb: [", ("a",)) is None


class TestDump:
    @settings(max_examples=150, deadline=None)
    @given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=3))
    def test_reading_gives_back_what_was_written(self, data: dict[str, Any]) -> None:
        assert repr(load_documents(dump(data))) == repr([data])

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("one\ntwo", "|-\n  one\n  two"),
            ("one\ntwo\n\n", "|+\n  one\n  two\n\n..."),
            ("\none\ntwo", "|2-\n\n  one\n  two"),
            ("one line\n", '"one line\\n"'),
            ("\n\n", '"\\n\\n"'),
            ("one\r\ntwo", '"one\\r\\ntwo"'),
            ("one \ntwo", '"one \\ntwo"'),
            ("1\x1b[31m\n2", '"1\\e[31m\\n2"'),
            ("yes", "'yes'"),
            ("2026-01-18", '"2026-01-18"'),
            ("word " * 100, f'"{"word " * 100}"'),
        ],
    )
    def test_a_text_is_a_block_where_it_can_be_one(self, text: str, shown: str) -> None:
        assert dump({"text": text}) == f"text: {shown}\n"
        assert load_documents(dump({"text": text})) == [{"text": text}]
