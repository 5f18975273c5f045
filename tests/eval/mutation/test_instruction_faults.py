"""Faults of instruction files and of their translations, outside of the prose that only a model reads."""

import pytest

from guarantee_email_agent.eval.mutation.instruction_faults import INVERSION, PHRASE, REWORDING, instruction_faults

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
        "add a promise",
        "invert a sentence",
    }
    assert all("for the model" in fault.planted_in(INSTRUCTION) for fault in faults)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("x.md", "A repair is free.", "A repair is not free."),
        ("x.md", "We cannot say that.", "We can say that."),
        ("x.de.md", "Das Gerät ist nicht abgedeckt.", "Das Gerät ist abgedeckt."),
        ("x.es.md", "El aparato está cubierto.", "El aparato no está cubierto."),
        ("x.fr.md", "Elle n'est plus valable.", "Elle est valable."),
        ("x.pl.md", "Gwarancja jest ważna.", "Gwarancja nie jest ważna."),
    ],
)
def test_sentences_are_inverted_in_the_language_of_the_file(name: str, right: str, wrong: str) -> None:
    text = f"<reply>\n{right}\n</reply>\n"
    faults = [fault for fault in instruction_faults(name, text) if fault.operator == INVERSION]
    assert [fault.planted_in(text) for fault in faults] == [f"<reply>\n{wrong}\n</reply>\n"]


def test_phrases_are_dropped_one_by_one_and_other_words_are_no_fault() -> None:
    text = '<reply>\nThank you for it.\n<optional hints="broken, does not,\n    leak*">\nSorry.\n</optional>\n</reply>'
    planted = [(fault.operator, fault.planted_in(text)) for fault in instruction_faults("x.md", text)]
    assert (PHRASE, text.replace("does not,\n    ", "")) in planted
    assert [other for kind, other in planted if kind == REWORDING] == [text.replace("Thank you", "Many thanks")]
    lexicon = instruction_faults("nl.md", "<denials>\ngeen, niet\n</denials>\n", is_lexicon=True)
    assert [fault.before for fault in lexicon] == ["geen, niet"]
