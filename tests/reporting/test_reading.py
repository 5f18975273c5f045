"""What was read in a mail, in words."""

from __future__ import annotations

from guarantee_email_agent.reporting.reading import reading_fields


def test_a_number_stands_with_its_line_and_the_scenario_with_its_reason() -> None:
    read = {"topic": "warranty", "number_kind": "serial_number", "numbers": ["SN1"], "status": "valid"}
    fields = list(reading_fields(read, {"body": "Hello\nit is sn1 here"}, {"scenario_used": "valid-warranty"}))
    assert fields == [
        ("topic", "warranty"),
        ("serial number", "SN1, in 'it is sn1 here'"),
        ("scenario", "valid-warranty, by topic warranty, 1 serial number, status valid"),
    ]


def test_without_a_number_it_says_so_and_controls_are_written_out() -> None:
    read = {"topic": "a\x1b", "numbers": []}
    assert list(reading_fields(read, {}, {})) == [("topic", "a\\x1b"), ("number", "none")]
