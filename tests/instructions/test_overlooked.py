from __future__ import annotations

import pytest
from shipped_instructions import InstructionFolder

from guarantee_email_agent.instructions.overlooked import find_overlooked

SPARE_PARTS = """---
name: spare-parts
description: The customer wants a spare part
trigger: [{topic: spare-parts}]
version: "1.0.0"
---
<topic name="spare-parts">The customer wants a spare part.</topic>
<reply>%s</reply>
"""
REPLIES = "Look here.</reply>" + "</reply>".join(
    f'<reply lang="{code}">Look here.' for code in ("de", "es", "fr", "pl")
)


def sentences(folder: InstructionFolder) -> list[str]:
    found = find_overlooked(folder.load(), folder.scenarios)
    return [f"{part}: {sentence}".replace(f"{folder.path}/", "") for part, sentence in found]


def test_of_the_shipped_files_nothing_is_overlooked(folder: InstructionFolder) -> None:
    assert sentences(folder) == []


def test_a_topic_that_no_phrase_speaks_for(folder: InstructionFolder) -> None:
    folder.scenario("spare-parts").write_text(SPARE_PARTS % REPLIES)
    (sentence,) = sentences(folder)
    assert sentence == (
        "Topics: no phrase of the lexicon speaks for 'spare-parts', so without a language model no mail is about it. "
        'Add <about topic="spare-parts"> to a file of the lexicon'
    )


@pytest.mark.parametrize("language", ["en", "fr"])
def test_one_phrase_in_any_language_is_enough(language: str, folder: InstructionFolder) -> None:
    folder.scenario("spare-parts").write_text(SPARE_PARTS % REPLIES)
    lexicon = folder.lexicon(language)
    lexicon.write_text(lexicon.read_text() + '\n<about topic="spare-parts">\n5: accessoires\n</about>\n')
    assert sentences(folder) == []


def test_a_language_that_only_some_replies_have_may_be_meant(folder: InstructionFolder) -> None:
    (folder.scenarios / "missing-info.fr.md").unlink()
    assert sentences(folder) == []


@pytest.mark.parametrize("name", ["spare-parts.txt", "spare-parts.md.txt", "spare-parts.MD", "spare-parts"])
def test_a_file_that_is_not_read(name: str, folder: InstructionFolder) -> None:
    (folder.scenarios / name).touch()
    assert sentences(folder) == [
        f"Files: scenarios/{name} is not read: its name does not end in .md. Rename it, or move it away"
    ]


def test_a_folder_among_the_scenarios(folder: InstructionFolder) -> None:
    (folder.scenarios / "german").mkdir()
    assert sentences(folder) == [
        "Files: scenarios/german is not read: no folder is. Move its files up, or move it away"
    ]


@pytest.mark.parametrize(
    "name", ["_draft.md", ".DS_Store", "missing-info.md~", "missing-info.md.bak", "#missing-info.md#"]
)
def test_what_editors_leave_and_what_is_left_out_on_purpose_is_no_matter(name: str, folder: InstructionFolder) -> None:
    (folder.scenarios / name).touch()
    assert sentences(folder) == []
