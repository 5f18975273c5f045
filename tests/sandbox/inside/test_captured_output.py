"""How much of an endless stream is kept."""

from __future__ import annotations

from guarantee_email_agent.sandbox.inside.running_command import KEPT_BYTES, CapturedOutput, shorten


def test_of_long_output_the_beginning_and_the_end_are_kept() -> None:
    output = CapturedOutput()
    output.add(b"first" + b"x" * KEPT_BYTES)
    for _ in range(10):
        output.add(b"y" * KEPT_BYTES)
    output.add(b"last")
    text = output.text(shortened=False)
    assert text.startswith("first")
    assert text.endswith("last")
    assert f"[… {9 * KEPT_BYTES + 9} bytes left out …]" in text
    assert output.whole() is None
    assert len(output.text()) < 31_000


def test_shortening_says_how_much_is_left_out() -> None:
    assert shorten("abcdef", 4) == "ab\n[… 2 characters left out …]\nef"
    assert shorten("abcd", 4) == "abcd"
