from __future__ import annotations

import os
import pickle
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guarantee_email_agent.files.yaml import InputFileError, load_documents, locate, read_text, written


def refusal(text: str) -> InputFileError:
    with pytest.raises(InputFileError) as caught:
        load_documents(text)
    return caught.value


class TestReadText:
    def test_text_comes_back_as_written(self, tmp_path: Path) -> None:
        file = tmp_path / "a.yaml"
        file.write_bytes("größe: ✓\n".encode())
        assert read_text(file, 1000) == "größe: ✓\n"

    def test_byte_order_mark_is_dropped(self, tmp_path: Path) -> None:
        file = tmp_path / "a.yaml"
        file.write_bytes(b"\xef\xbb\xbfa: 1")
        assert read_text(file, 1000) == "a: 1"

    def test_every_line_break_becomes_a_newline(self, tmp_path: Path) -> None:
        file = tmp_path / "a.yaml"
        file.write_bytes(b"a: 1\r\nb: 2\rc: 3\n")
        assert read_text(file, 1000) == "a: 1\nb: 2\nc: 3\n"

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(InputFileError, match="the file does not exist") as caught:
            read_text(tmp_path / "none.yaml", 1000)
        assert caught.value.code == "document_not_found"

    def test_folder_named_like_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "a.yaml").mkdir()
        with pytest.raises(InputFileError, match="this is a folder, not a file"):
            read_text(tmp_path / "a.yaml", 1000)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
    def test_named_pipe_does_not_hang(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "a.yaml")
        with pytest.raises(InputFileError, match="a pipe or a device"):
            read_text(tmp_path / "a.yaml", 1000)

    def test_unreadable_file(self, tmp_path: Path) -> None:
        file = tmp_path / "a.yaml"
        file.symlink_to(file)  # taking its permissions away would not stop root
        with pytest.raises(InputFileError, match=r"cannot be read \(Too many levels of symbolic links\)"):
            read_text(file, 1000)

    def test_name_with_a_nul(self) -> None:
        with pytest.raises(InputFileError, match="cannot be read"):
            read_text("a\0b", 1000)

    def test_largest_size_is_accepted_and_one_more_byte_is_not(self, tmp_path: Path) -> None:
        file = tmp_path / "a.yaml"
        file.write_bytes(b"x" * 1000)
        assert len(read_text(file, 1000)) == 1000
        with pytest.raises(InputFileError, match="larger than 999 bytes") as caught:
            read_text(file, 999)
        assert caught.value.code == "document_too_large"

    def test_latin1_names_the_place_and_the_byte(self, tmp_path: Path) -> None:
        file = tmp_path / "a.yaml"
        file.write_bytes("a: 1\nb: é\n".encode("latin-1"))
        with pytest.raises(InputFileError, match=r"not UTF-8 text \(line 2, column 4: byte 0xE9\); save it as UTF-8"):
            read_text(file, 1000)

    def test_utf16_is_called_by_its_name(self, tmp_path: Path) -> None:
        file = tmp_path / "a.yaml"
        file.write_bytes("a: 1".encode("utf-16"))
        with pytest.raises(InputFileError, match="UTF-16 text; save it as UTF-8"):
            read_text(file, 1000)


class TestLoadDocuments:
    @pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n"])
    def test_empty_text_holds_no_document(self, text: str) -> None:
        assert load_documents(text) == []

    def test_one_or_more_documents(self) -> None:
        assert load_documents("a: 1\n") == [{"a": 1}]
        assert load_documents("---\na: 1\n---\nb: 2\n---\n- 3\n") == [{"a": 1}, {"b": 2}, [3]]

    def test_dates_and_yes_and_leading_zeros_stay_text(self) -> None:
        text = "a: 2026-01-18\nb: 2026-01-18T10:00:00Z\nc: yes\nd: 0123\ne: 1_000\n"
        assert load_documents(text) == [
            {"a": "2026-01-18", "b": "2026-01-18T10:00:00Z", "c": "yes", "d": "0123", "e": "1_000"}
        ]

    def test_anchors_and_aliases_of_a_sane_size(self) -> None:
        assert load_documents("a: &x [1, 2]\nb: *x\n") == [{"a": [1, 2], "b": [1, 2]}]

    def test_markdown_stars_and_ampersands_are_text(self) -> None:
        assert load_documents('a: "R &D and *bold* and !important"') == [{"a": "R &D and *bold* and !important"}]

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

    def test_exponential_alias_bomb(self) -> None:
        names = "abcdefghi"
        bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise(names)
        )
        assert "repeat their values too often" in refusal(bomb).message

    def test_few_aliases_of_one_long_text(self) -> None:
        bomb = f'a: &a "{"x" * 100_000}"\nb: [{",".join(["*a"] * 5000)}]'
        assert "repeat their values too often" in refusal(bomb).message

    def test_error_survives_pickling(self) -> None:
        error = pickle.loads(pickle.dumps(refusal("a: @")))
        assert (error.code, error.line) == ("document_yaml_invalid", 1)

    @settings(max_examples=300, deadline=None)
    @given(st.text(alphabet=st.sampled_from("ab:-?[]{},&*!|>'\"%@`#<~.1 \n\t\r\x00\x85\ufeff\ud800é")) | st.text())
    def test_any_text_gives_documents_or_one_clear_line(self, text: str) -> None:
        trouble = None
        try:
            documents = load_documents(text)
        except InputFileError as error:
            trouble = error
        if trouble is None:
            assert isinstance(documents, list)
        else:
            assert "\n" not in trouble.message
            assert trouble.line is not None
            assert trouble.line >= 1


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

    def test_text_that_does_not_parse_as_far_as_that(self) -> None:
        assert locate("a: 1\nb: [", ("a",)) == 1
        assert locate("a: 1\nb: [\n", ("c",)) is None

    def test_depth_does_not_matter(self) -> None:
        assert locate("[" * 900 + "]" * 900, (0,) * 5) == 1

    def test_written_is_what_the_author_wrote(self) -> None:
        assert written(self.TEXT, ("b", "d e")) == "007"
        assert written("n: 12e5\nd: 2026-01-18", ("n",)) == "12e5"

    def test_lists_and_unknown_paths_have_no_scalar(self) -> None:
        assert written(self.TEXT, ("b", "c")) is None
        assert written(self.TEXT, ("q",)) is None
