"""A language that is still to be translated is no language yet; once it is, it says the same facts as the others."""

import pytest
from shipped_instructions import InstructionFolder

from guarantee_email_agent.instructions.new_language import add_language
from guarantee_email_agent.utils.errors import ConfigurationError

SIGN = "[translate]"


def translate(folder: InstructionFolder, language: str) -> None:
    for path in folder.path.rglob(f"*{language}.md"):
        folder.replace_all(path, f"{SIGN} ", "")


@pytest.mark.parametrize("default", ["en", "pl"])
@pytest.mark.parametrize("language", ["hu", "nl"])
def test_nothing_of_a_skeleton_is_read_and_translated_it_is_a_language(
    default: str, language: str, folder: InstructionFolder
) -> None:
    folder.edit(folder.main, "\nversion:", f"\ndefault_language: {default}\nversion:")
    if default != "en":  # the files without a code hold the default language
        for path in folder.scenarios.glob("*.pl.md"):
            own = path.with_name(path.name.replace(".pl", ""))
            head, _, replies = own.read_text(encoding="utf-8").partition("<reply")
            path.with_name(path.name.replace(".pl", ".en")).write_text(f"<reply{replies}", encoding="utf-8")
            own.write_text(head, encoding="utf-8")
    before = folder.load()

    added = add_language(folder.files, language)

    skeleton = folder.load()
    assert (skeleton.languages, skeleton.lexicon) == (before.languages, before.lexicon)
    assert {path.name for path in added.written} == {path.rpartition("/")[2] for path in added.untranslated}
    assert f"{language}.md" in {path.name for path in added.written} or "<back-references>" in added.lacking
    translate(folder, language)
    done = add_language(folder.files, language)
    assert (done.written, done.untranslated) == ((), {})
    assert language in folder.load().languages


@pytest.mark.parametrize("left", ["scenarios/valid-warranty.hu.md", "lexicon/hu.md"])
def test_one_text_that_is_left_keeps_the_whole_language_out(left: str, folder: InstructionFolder) -> None:
    add_language(folder.files, "hu")
    skeleton = (folder.path / left).read_text(encoding="utf-8")
    translate(folder, "hu")
    (folder.path / left).write_text(skeleton, encoding="utf-8")

    instructions = folder.load()

    assert "hu" not in instructions.languages
    assert [each.rpartition("/")[2] for each in instructions.untranslated["hu"]] == [left.rpartition("/")[2]]


def test_in_a_file_that_has_to_be_read_the_sign_is_an_error(folder: InstructionFolder) -> None:
    line = folder.edit(folder.scenario("out-of-scope"), "Hello,", f"{SIGN} Hello,")
    assert folder.problems()[0].startswith(f"scenarios/out-of-scope.md:{line}: {SIGN} stands before what nobody has")


@pytest.mark.parametrize("language", ["en", "Dutch", "../nl"])
def test_what_is_no_further_language_is_refused(language: str, folder: InstructionFolder) -> None:
    with pytest.raises(ConfigurationError, match="--language: "):
        add_language(folder.files, language)
