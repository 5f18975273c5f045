from __future__ import annotations

from collections.abc import Callable

from guarantee_email_agent.eval.models import EvalResult, EvalTestCase


class TestFormatForDisplay:
    def test_passed(self, scenario: Callable[..., EvalTestCase]) -> None:
        assert EvalResult(scenario(), True).format_for_display() == "✓ valid_warranty_001: Customer asks"

    def test_failed(self, scenario: Callable[..., EvalTestCase]) -> None:
        failing = scenario(scenario_id="missing_info_003", description="Missing serial")
        misses = ["response_body_contains: missing phrase 'serial number'\n  expected: 'serial number'\n  actual:   ''"]
        assert EvalResult(failing, False, [*misses, "crash: boom"], {}, 3).format_for_display() == (
            "✗ missing_info_003: Missing serial - FAILED\n"
            "    response_body_contains: missing phrase 'serial number'\n"
            "      expected: 'serial number'\n"
            "      actual:   ''\n"
            "    crash: boom"
        )

    def test_a_description_of_several_lines_is_one(self, scenario: Callable[..., EvalTestCase]) -> None:
        result = EvalResult(scenario(description="A folded\n  text\n"), True)
        assert result.format_for_display() == "✓ valid_warranty_001: A folded text"

    def test_terminal_escapes_are_written_out(self, scenario: Callable[..., EvalTestCase]) -> None:
        result = EvalResult(scenario(description="\x1b[2Jgone\u202e"), False, ["crash: \x1b]0;title\x07\r"])
        assert result.format_for_display() == (
            "✗ valid_warranty_001: \\x1b[2Jgone\\u202e - FAILED\n    crash: \\x1b]0;title\\x07\\r"
        )

    def test_invalid_file(self, invalid: EvalResult) -> None:
        assert (invalid.passed, invalid.invalid) == (False, True)
        assert invalid.format_for_display() == (
            "✗ a_1: invalid scenario file - FAILED\n    Invalid eval file: a_1.yaml - Missing field: created"
        )
