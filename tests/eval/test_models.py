from __future__ import annotations

from collections.abc import Callable

from guarantee_email_agent.eval.models import EvalResult, EvalTestCase


class TestFormatForDisplay:
    def test_a_description_of_several_lines_is_one(self, scenario: Callable[..., EvalTestCase]) -> None:
        result = EvalResult(scenario(description="A folded\n  text\n"), True)
        assert result.format_for_display() == "✓ valid_warranty_001: A folded text"

    def test_terminal_escapes_are_written_out(self, scenario: Callable[..., EvalTestCase]) -> None:
        result = EvalResult(scenario(description="\x1b[2Jgone\u202e"), False, ["crash: \x1b]0;title\x07\r"])
        assert result.format_for_display() == (
            "✗ valid_warranty_001: \\x1b[2Jgone\\u202e - FAILED\n    crash: \\x1b]0;title\\x07\\r"
        )
