import pytest
from shipped_instructions import InstructionFolder

ITALIAN = """<reply>
<sentence id="greeting">Buongiorno,</sentence>

<sentence id="protect-customers">grazie per il suo messaggio.</sentence>

<sentence id="write-again">
Per favore ci scriva di nuovo dall'indirizzo con cui è registrato il
dispositivo, indicando il numero di serie nel testo.
</sentence>

<sentence id="closing">Cordiali saluti</sentence>
</reply>
"""


def test_a_file_with_a_language_in_its_name_adds_the_language(folder: InstructionFolder) -> None:
    (folder.scenarios / "unverified-sender.it.md").write_text(ITALIAN, encoding="utf-8")

    instructions = folder.load()

    scenario = next(each for each in instructions.scenarios if each.name == "unverified-sender")
    assert instructions.languages == ("en", "de", "es", "fr", "it", "pl")
    assert scenario.templates_in("it")[0].compose({})[0].startswith("Buongiorno,")
    assert instructions.reply_language(scenario, "it") == "it"


def test_a_scenario_without_replies_in_a_language_answers_in_the_default_one(folder: InstructionFolder) -> None:
    (folder.scenarios / "missing-info.de.md").unlink()

    instructions = folder.load()

    scenario = next(each for each in instructions.scenarios if each.name == "missing-info")
    assert "de" in instructions.languages
    assert instructions.reply_language(scenario, "de") == "en"


@pytest.mark.parametrize(
    ("name", "text", "line", "problem"),
    [
        ("unverified-sendr.it.md", ITALIAN, 1, "did you mean 'unverified-sender'? Rename it, or add the scenario"),
        ("missing-info.German.md", ITALIAN, 1, "'German' in the file's name is no code of a language"),
        (
            "unverified-sender.IT.md",
            ITALIAN,
            1,
            "no code of a language. Write it in lower case: unverified-sender.it.md",
        ),
        (
            "unverified-sender-it.md",
            ITALIAN,
            1,
            "has no frontmatter. If it holds a scenario's replies in another langu",
        ),
        (
            "unverified-sender.it.md",
            f"---\nname: x\n---\n{ITALIAN}",
            1,
            "counts only in unverified-sender.md. Remove it",
        ),
        (
            "unverified-sender.it.md",
            f"\n<situation>A</situation>\n{ITALIAN}",
            2,
            "<situation> counts only in unverified-",
        ),
        ("unverified-sender.it.md", '<reply lang="fr">Bonjour,</reply>', 1, "stand in a file of their own now"),
        ("unverified-sender.it.md", "Buongiorno,", 1, "holds no <reply>. Write the replies in 'it' into it"),
        ("unverified-sender.it.md", f"{ITALIAN}<reply>\n<b>\n</reply>", 14, "<b>"),
        (
            "unverified-sender.it.md",
            ITALIAN.replace('"greeting"', '"hello"'),
            1,
            "the reply in 'it' lacks the sentence 'greeting', which 'en' has. Add it",
        ),
        ("unverified-sender.en.md", ITALIAN, 1, "'en' stand in unverified-sender.md and unverified-sender.en.md"),
        ("no-reply.it.md", ITALIAN, 1, "answers mail that machines sent"),
    ],
)
def test_a_file_that_is_no_translation_is_refused(
    name: str, text: str, line: int, problem: str, folder: InstructionFolder
) -> None:
    (folder.scenarios / name).write_text(text, encoding="utf-8")

    found = folder.problems()[0]

    assert found.startswith(f"scenarios/{name}:{line}: ")
    assert problem in found


def test_a_translation_without_a_fact_is_refused_with_its_file_and_line(folder: InstructionFolder) -> None:
    path = folder.scenarios / "valid-warranty.de.md"
    folder.edit(path, "Ticketnummer: {ticket_number}", "Ticketnummer")

    (found,) = folder.problems()
    assert found == (
        "scenarios/valid-warranty.de.md:1: the reply in 'de' lacks {ticket_number}, which 'en' has. Add it"
    )


@pytest.mark.parametrize(
    ("name", "old", "new", "claim"),
    [
        (
            "invalid-warranty.de.md",
            "nicht in unseren Unterlagen.",
            "nicht in unseren Unterlagen, sie ist gültig.",
            "gultig",
        ),
        ("invalid-warranty.pl.md", "ale nie figuruje", "gwarancja wygasła i nie figuruje", "wygasla"),
        ("invalid-warranty.fr.md", "mais il ne figure", "valable, mais il ne figure", "valable"),
        ("invalid-warranty.es.md", "pero no figura", "está vigente, pero no figura", "vigente"),
        (
            "missing-info.de.md",
            "Wir helfen Ihnen gern",
            "Ihr Gerät hat noch Garantie, wir helfen gern",
            "noch garantie",
        ),
        ("missing-info.fr.md", "Nous vous aiderons", "Votre appareil est couvert. Nous vous aiderons", "est couvert"),
        ("out-of-scope.es.md", "Este buzón", "Su garantía: este buzón", "garantia"),
        ("valid-warranty.pl.md", "dobrą wiadomość:", "dobrą wiadomość, nic nie wygasło:", "wygaslo"),
    ],
)
def test_a_claim_that_is_not_so_is_found_in_every_language(
    name: str, old: str, new: str, claim: str, folder: InstructionFolder
) -> None:
    line = folder.edit(folder.scenarios / name, old, new)

    problems = folder.problems()

    assert any(
        problem.startswith(f"scenarios/{name}:{line}: the reply says '{claim}', which is not so")
        for problem in problems
    ), problems
