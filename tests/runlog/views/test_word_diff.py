"""What is different between two texts."""

import io

from guarantee_email_agent.runlog.views.word_diff import diff_lines, diff_text, diff_words, paint_changes
from guarantee_email_agent.utils.terminal import Terminal


def test_words_that_went_and_came_are_marked_in_their_place() -> None:
    before, after = ["your", "warranty", "is", "valid"], ["your", "warranty", "is", "really", "quite", "valid"]
    assert " ".join(diff_words(before, after)) == "your warranty is {+really quite+} valid"
    assert " ".join(diff_words(after, before)) == "your warranty is [-really quite-] valid"


def test_words_are_compared_as_they_are_folded() -> None:
    assert diff_words(["Valid."], ["valid"], lambda word: word.strip(".").lower()) == ["valid"]


def test_of_a_text_the_lines_that_differ_are_shown() -> None:
    lines = diff_text("Hello,\n\nIt is on the label.\nBye", "Hello,\n\nIt is on the back.\nBye")
    assert list(lines) == ["It is on the [-label.-] {+back.+}"]


def test_white_space_alone_is_a_difference() -> None:
    assert list(diff_text("Hello\nBye", "Hello\n\nBye")) == ["(white space alone)"]


def test_of_a_file_the_lines_that_differ_are_shown_up_to_a_limit() -> None:
    before, after = b"a\nb\nc\n", b"a\nB\nC\n"
    assert list(diff_lines(before, after, 10)) == ["-b", "-c", "+B", "+C"]
    assert list(diff_lines(before, after, 3)) == ["-b", "-c", "+B", "… and 1 more lines"]


def test_a_file_of_very_many_lines_is_not_compared() -> None:
    (line,) = diff_lines(b"a\n" * 6_000, b"b\n", 10)
    assert line == "(too long for a comparison line by line: 6,000 lines before, 1 now)"


def test_colours_tell_what_went_from_what_came() -> None:
    terminal = Terminal(io.StringIO(), color=True)
    assert paint_changes("[-old-] {+new+}", terminal) == "\x1b[31m[-old-]\x1b[0m \x1b[32m{+new+}\x1b[0m"
