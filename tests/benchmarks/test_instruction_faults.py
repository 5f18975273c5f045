"""Faults of instruction files and of their translations, outside of the prose that only a model reads."""

from __future__ import annotations

import pytest
from faults.fault import Fault
from faults.instruction_faults import instruction_faults

INSTRUCTION = """---
name: valid-warranty
trigger:
  - {intent: warranty, serial_numbers: one, warranty_status: [valid]}
ticket:
  priority: normal
---
<situation>A sentence for the model.</situation>
<reply>
Your warranty is valid.
<if expiration_date="known">Until: {expiration_date}</if>
Ticket: {ticket_number}
</reply>
"""


def apply(text: str, fault: Fault) -> str:
    return text[: fault.start] + fault.replacement + text[fault.end :]


def test_an_instruction_file_gets_each_kind_of_fault_outside_of_the_prose() -> None:
    faults = list(instruction_faults("valid-warranty.md", INSTRUCTION))
    assert {fault.operator for fault in faults} == {
        "drop a trigger",
        "change a trigger",
        "change a ticket field",
        "drop a ticket field",
        "drop a sentence",
        "remove a condition",
        "swap placeholders",
        "soften a phrase",
    }
    assert all("for the model" in apply(INSTRUCTION, fault) for fault in faults)


@pytest.mark.parametrize(
    ("firm", "soft"),
    [
        ("Ihre Garantie\nist gültig.", "Ihre Garantie\nsollte gültig sein."),
        ("su garantía es\nválida.", "su garantía debería ser válida."),
        ("votre garantie est valable.", "votre garantie devrait être valable."),
        ("gwarancja jest\nważna.", "gwarancja powinna być ważna."),
        ("numeru seryjnego urządzenia.", "numeru urządzenia."),
    ],
)
def test_firm_phrases_of_translations_are_softened(firm: str, soft: str) -> None:
    text = f"<reply>\n{firm}\n</reply>\n"
    assert f"<reply>\n{soft}\n</reply>\n" in [
        apply(text, fault) for fault in instruction_faults("x.md", text) if fault.operator == "soften a phrase"
    ]
