"""Texts of the type `text/plain; format=flowed` (RFC 3676): lines that were broken for the way become one again."""

from __future__ import annotations

from itertools import groupby

_SIGNATURE_SEPARATOR = "-- "


def join_flowed_lines(text: str, *, delete_space: bool) -> str:
    """The text with each paragraph on one line; what is quoted stays quoted, with one blank after its ">" marks.

    delete_space: the parameter `delsp=yes`, by which the blank that ends a broken line is no part of the text
    (RFC 3676 §4.1), as in languages that write no blanks and in numbers that were broken.
    """
    lines = [_split_quote_marks(line) for line in text.replace("\r\n", "\n").split("\n")]
    return "\n".join(
        [
            f"{depth * '>'} {paragraph}" if depth and paragraph else f"{depth * '>'}{paragraph}"
            for depth, run in groupby(lines, key=lambda line: line[0])
            for paragraph in _join_paragraphs([content for _, content in run], delete_space=delete_space)
        ]
    )


def _split_quote_marks(line: str) -> tuple[int, str]:
    content = line.lstrip(">")
    depth = len(line) - len(content)
    # RFC 3676 §4.4: a blank before the text was stuffed in. Before a ">" it stays, which would be a mark without it.
    is_stuffed = content.startswith(" ") and not content.startswith(" >")
    return depth, content[1:] if is_stuffed else content


def _join_paragraphs(lines: list[str], *, delete_space: bool) -> list[str]:
    paragraphs: list[str] = []
    broken: list[str] = []
    for line in lines:
        # RFC 3676 §4.3: a separator ends in a blank and stands alone all the same. So does an empty line, since people
        # leave a blank before it.
        if line in ("", _SIGNATURE_SEPARATOR):
            paragraphs += ["".join(broken), line] if broken else [line]
            broken = []
        elif line.endswith(" "):
            broken.append(line[:-1] if delete_space else line)
        else:
            paragraphs.append("".join([*broken, line]))
            broken = []
    return [*paragraphs, "".join(broken)] if broken else paragraphs
