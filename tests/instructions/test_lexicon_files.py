from __future__ import annotations

from pathlib import Path

import pytest
from shipped_instructions import SHIPPED

from guarantee_email_agent.instructions.lexicon_files import LexiconFiles
from guarantee_email_agent.instructions.look_up import LookUp, NumberFormat
from guarantee_email_agent.reading.numbers import SERIAL_NUMBER, Tiers, read_numbers
from guarantee_email_agent.utils.errors import InstructionError


def test_the_files_of_a_folder_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("pl.md", "de.md", "_notes.md", ".de.md.swp", "README.txt"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    assert LexiconFiles(tmp_path).read() == ((f"{tmp_path}/de.md", "de.md"), (f"{tmp_path}/pl.md", "pl.md"))


def test_the_folder_lies_beside_the_main_file() -> None:
    assert LexiconFiles.beside(SHIPPED / "main.md") == LexiconFiles(SHIPPED / "lexicon")


def test_a_file_that_is_not_utf8_is_reported(tmp_path: Path) -> None:
    (tmp_path / "de.md").write_bytes("größe".encode("latin-1"))
    with pytest.raises(InstructionError, match="cannot read the lexicon file"):
        LexiconFiles(tmp_path).load()


def test_an_unchanged_lexicon_is_parsed_once() -> None:
    assert LexiconFiles(SHIPPED / "lexicon").load() is LexiconFiles(SHIPPED / "lexicon").load()


def test_a_number_with_the_label_of_a_look_up_is_no_serial_number() -> None:
    orders = NumberFormat("order_number", "", ("[A-Z]{2}-?[0-9]{5}",), ("wagon mark",))
    look_up = LookUp("orders", ("orders",), "order_number", "status", ("found",), (), format=orders)
    answer = Tiers("Wagon mark XK-48213.", "", "")
    plain, labelled = LexiconFiles.beside(SHIPPED / "main.md"), LexiconFiles.beside(SHIPPED / "main.md", [look_up])

    assert read_numbers(answer, SERIAL_NUMBER, plain.load(), asked=True).numbers == ("XK-48213",)
    assert read_numbers(answer, SERIAL_NUMBER, labelled.load(), asked=True).numbers == ()
