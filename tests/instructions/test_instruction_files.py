import os
import shutil

import pytest
from shipped_instructions import InstructionFolder

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.instruction_files import MAX_BYTES, InstructionFiles
from guarantee_email_agent.instructions.look_up import WARRANTY, Fact, LookUp
from guarantee_email_agent.instructions.router import Situation
from guarantee_email_agent.utils.errors import InstructionError


def test_the_shipped_files_load(folder: InstructionFolder) -> None:
    names = [scenario.name for scenario in folder.load().scenarios]
    assert names == [
        *("graceful-degradation", "hand-over", "invalid-warranty", "missing-info"),
        *("no-reply", "out-of-scope", "unverified-sender", "valid-warranty"),
    ]


def test_an_edit_counts_at_the_next_load(folder: InstructionFolder) -> None:
    files = folder.files
    before = files.load().route(Situation(False, "warranty", "none"))
    folder.edit(folder.scenario("missing-info"), "<reply>", "<reply>\nWe are overjoyed to help.\n")
    after = files.load().route(Situation(False, "warranty", "none"))

    assert "overjoyed" not in before.approved_text
    assert "overjoyed" in after.approved_text


@pytest.mark.parametrize("name", [".missing-info.md.swp", "._notes.md", "_draft.md", "README.txt"])
def test_files_that_are_no_scenarios_are_left_alone(name: str, folder: InstructionFolder) -> None:
    (folder.scenarios / name).write_text("anything", encoding="utf-8")
    assert len(folder.load().scenarios) == 8


@pytest.mark.parametrize(
    ("old", "new"), [(b"---\n", b"\xef\xbb\xbf---\n"), (b"\n", b"\r\n")], ids=["byte order mark", "windows line ends"]
)
def test_how_a_file_is_saved_changes_nothing(old: bytes, new: bytes, folder: InstructionFolder) -> None:
    plain = folder.load()
    for path in (folder.main, folder.scenario("missing-info")):
        count = 1 if old == b"---\n" else -1
        path.write_bytes(path.read_bytes().replace(old, new, count))

    assert folder.load() == plain


def test_a_file_that_is_too_large_is_reported(folder: InstructionFolder) -> None:
    with folder.main.open("ab") as file:
        file.write(b"x" * MAX_BYTES)
    assert folder.problems() == ["main.md: larger than 256 KiB. Shorten it: it is read anew for every mail"]


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_file_that_cannot_be_read_is_reported(is_folder: bool, folder: InstructionFolder) -> None:
    folder.main.unlink()
    if is_folder:
        folder.main.mkdir()

    reason = "this is a folder, not a file" if is_folder else "the file does not exist"
    assert folder.problems() == [
        f"main.md: cannot read the instruction file ({reason}). Restore it, or correct the configuration"
    ]


def test_a_missing_scenario_folder_is_reported(folder: InstructionFolder) -> None:
    os.rename(folder.scenarios, folder.path / "elsewhere")
    (problem,) = folder.problems()
    assert problem.startswith("scenarios: cannot read the folder of scenario instructions")
    assert problem.endswith("Set instructions.scenarios_dir in the configuration")


@pytest.mark.parametrize("text", ["", "no frontmatter\n", "---\nname: x\n", " ---\nname: x\n---\n"])
def test_a_file_without_frontmatter_is_reported(text: str, folder: InstructionFolder) -> None:
    folder.scenario("missing-info").write_text(text, encoding="utf-8")
    assert folder.problems()[0].startswith("scenarios/missing-info.md:1: has no frontmatter. Begin the file with '---'")


@pytest.mark.parametrize("key", ["name", "description", "trigger", "version"])
def test_a_missing_key_is_reported(key: str, folder: InstructionFolder) -> None:
    path = folder.main
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join(line for line in lines if not line.startswith(f"{key}:")), encoding="utf-8")
    assert folder.problems() == [f"main.md:1: {key} is missing. Add it to the frontmatter"]


@pytest.mark.parametrize(
    ("scenario", "old", "new", "problem"),
    [
        ("valid-warranty", "ticket:\n", "tickets:\n", ":LINE: tickets: unknown key 'tickets' – did you mean 'ticket'"),
        ("missing-info", "serial_numbers: none", "serial_numbers: zero", ":LINE: trigger[0].serial_numbers: must be"),
        ("missing-info", "name: missing-info", "name: missing-information", "the file is called missing-info.md. Make"),
        *(
            (
                "valid-warranty",
                "  priority: normal\n",
                f"  priority: normal\n  {name}: mine\n",
                f"ticket.{name} is decided",
            )
            for name in ("serial_number", "warranty_status", "customer_email", "idempotency_key")
        ),
    ],
)
def test_a_wrong_key_or_value_is_reported_with_its_place(
    scenario: str, old: str, new: str, problem: str, folder: InstructionFolder
) -> None:
    line = folder.edit(folder.scenario(scenario), old, new)

    assert any(
        message.startswith(f"scenarios/{scenario}.md:") and problem.replace("LINE", str(line)) in message
        for message in folder.problems()
    )


@pytest.mark.parametrize(
    ("scenario", "old", "new", "problem"),
    [
        (
            "valid-warranty",
            "Serial number: {serial_number}",
            "Serial number: {serial}",
            ":LINE: unknown placeholder {serial} – did you mean 'serial_number'? Known are: ",
        ),
        (
            "valid-warranty",
            '<if expiration_date="known">',
            '<if serial_number="known">',
            (
                "{expiration_date} has no value where 'topic: warranty, serial_numbers: one, warranty_status: valid'. "
                'Put it inside <if expiration_date="known">'
            ),
        ),
        (
            "invalid-warranty",
            '<reply warranty_status="not_found">',
            '<reply warranty_status="valid">',
            ":1: has no <reply> for warranty_status not_found where 'topic: warranty, serial_numbers: one, ",
        ),
        (
            "invalid-warranty",
            "We can still help:",
            "Ticket {ticket_number}. We can still help:",
            "{ticket_number} stands in a reply without a ticket. Add 'ticket:'",
        ),
    ],
)
def test_a_reply_that_cannot_be_written_is_reported(
    scenario: str, old: str, new: str, problem: str, folder: InstructionFolder
) -> None:
    line = folder.edit(folder.scenario(scenario), old, new)
    (message,) = folder.problems()
    assert message.startswith(f"scenarios/{scenario}.md:")
    assert problem.replace("LINE", str(line)) in message


def test_a_bad_pattern_is_reported_with_file_line_and_remedy(folder: InstructionFolder) -> None:
    line = folder.edit(folder.lexicon("any"), "<unlabelled-serial>\n", "<unlabelled-serial>\n[A-Z]+[0-9]+\n")
    (problem,) = folder.problems()
    assert problem.startswith(
        f"lexicon/any.md:{line + 1}: pattern '[A-Z]+[0-9]+' can match more than 100 characters. Use"
    )


def test_an_instruction_folder_without_a_lexicon_is_told_what_to_do(folder: InstructionFolder) -> None:
    shutil.rmtree(folder.path / "lexicon")
    (problem,) = folder.problems()
    assert problem.startswith(
        "lexicon: cannot read the folder of the lexicon (No such file or directory). The words for"
    )
    assert "'guarantee-email-agent init' puts the shipped ones beside the main file" in problem


def test_word_lists_in_the_main_file_are_told_where_they_belong(folder: InstructionFolder) -> None:
    text = folder.main.read_text(encoding="utf-8")
    folder.main.write_text(
        f"{text}\n<denials>\nno, not\n</denials>\n\n<greetings>\nhi\n</greetings>\n", encoding="utf-8"
    )
    (problem,) = folder.problems()
    assert problem.startswith(
        f"main.md:{text.count(chr(10)) + 2}: <denials> is a word list. Those stand in files of their"
    )


def test_phrases_for_a_misspelt_topic_are_reported(folder: InstructionFolder) -> None:
    line = folder.edit(folder.lexicon("nl"), '<about topic="warranty">', '<about topic="warrenty">')
    (problem,) = folder.problems()
    assert (
        problem == f"lexicon/nl.md:{line}: no instruction file declares the topic 'warrenty' – did you mean 'warranty'?"
    )


def test_an_edit_of_the_lexicon_counts_at_the_next_load(folder: InstructionFolder) -> None:
    files = folder.files
    files.load()
    folder.edit(folder.lexicon("en"), "<denials>\n", "<denials>\nwobbulator, ")
    assert "wobbulator" not in files.lexicon().denials
    assert "wobbulator" in files.load().lexicon.denials
    assert "wobbulator" in files.lexicon().denials


SPARE_PARTS = """---
name: spare-parts
description: Wants a spare part
trigger:
  - {topic: spare-parts}
version: "1.0.0"
---
<topic name="spare-parts">
The customer wants to buy a spare part.
<example>Where do I get a new door seal?</example>
</topic>

<reply>
Hello,

you will find spare parts on our website.
</reply>
"""


def test_one_file_adds_a_topic(folder: InstructionFolder) -> None:
    folder.scenario("spare-parts").write_text(SPARE_PARTS, encoding="utf-8")
    instructions = folder.load()
    assert [topic.name for topic in instructions.topics] == ["warranty", "other", "spare-parts"]
    assert instructions.route(Situation(False, "spare-parts")).name == "spare-parts"


@pytest.mark.parametrize(
    ("old", "new", "at", "problem"),
    [
        ("- {topic: spare-parts}", "- {topic: spare-part}", 5, "declares the topic 'spare-part' – did you mean"),
        ("- {topic: spare-parts}", "- {topic: xyz}", 5, "the topic 'xyz'. Write <topic name=\"xyz\"> into one"),
        ("- {topic: spare-parts}", "- {intent: spare-parts}", 5, "trigger[0].intent is called 'topic' now. Rename it"),
        ("topic: spare-parts}", "topic: spare-parts, serial_numbers: one}", 5, "trigger[0]: applies in no situation: "),
        ("- {topic: spare-parts}", "- {}", 5, "trigger[0]: names no topic, so that every mail would have it. "),
        (
            "- {topic: spare-parts}",
            "- spare-parts",
            5,
            "'spare-parts'. Write a line '- {topic: NAME}' below 'trigger:'",
        ),
        ("\n  - {topic: spare-parts}", " spare-parts", 4, "Write a line '- {topic: NAME}' below 'trigger:'"),
        ("\n  - {topic: spare-parts}", "", 4, "but is empty. Write a line '- {topic: NAME}' below 'trigger:'"),
        ('name="spare-parts"', 'name="other"', 8, "the topic 'other' is declared in main.md:"),
        ('name="spare-parts"', 'name="unclear"', 8, "the topic 'unclear' is built in"),
        ("spare parts on", "that it is valid on", 16, "the reply says 'is valid', which is not so where 'topic: "),
        ("spare parts on", "your warranty has expired on", 16, "the reply says 'expired', which is not so where '"),
        ("spare parts on", "{serial_number} on", 16, "unknown placeholder {serial_number}"),
    ],
)
def test_a_topic_that_does_not_fit_is_reported_with_its_place(
    old: str, new: str, at: int, problem: str, folder: InstructionFolder
) -> None:
    assert SPARE_PARTS.count(old) == 1
    folder.scenario("spare-parts").write_text(SPARE_PARTS.replace(old, new), encoding="utf-8")
    assert any(line.startswith(f"scenarios/spare-parts.md:{at}: ") and problem in line for line in folder.problems())


def test_a_question_for_the_serial_number_needs_the_topic_that_looks_it_up(folder: InstructionFolder) -> None:
    folder.edit(folder.main, '<topic name="warranty">', '<topic name="guarantee">')
    top = "scenarios/missing-info.md:1: asks_for: 'serial_number' is the number of no look-up. Known are: none, since"
    assert any(problem.startswith(top) for problem in folder.problems())


def test_a_file_that_cannot_be_read_does_not_make_topics_unknown(folder: InstructionFolder) -> None:
    folder.edit(folder.main, "</role>", "")
    (problem,) = folder.problems()
    assert problem.startswith("main.md:")


def test_all_problems_are_reported_at_once(folder: InstructionFolder) -> None:
    folder.edit(folder.main, "</role>", "")
    folder.edit(folder.scenario("missing-info"), "name: missing-info", "name: missing")
    folder.edit(folder.scenario("out-of-scope"), "</reply>", "")

    problems = folder.problems()
    assert [problem.partition(":")[0] for problem in problems] == [
        "main.md",
        "scenarios/missing-info.md",
        "scenarios/out-of-scope.md",
    ]


def test_an_error_ends_in_exit_code_2(folder: InstructionFolder) -> None:
    folder.main.unlink()
    with pytest.raises(InstructionError) as caught:
        folder.load()
    assert caught.value.exit_code == 2


ORDERS = LookUp("orders", ("order-status",), "order_number", "status", ("shipped",), (Fact("carrier", "name"),))
ORDER = """---
name: order
description: The customer asks where an order is
trigger:
  - {topic: order-status}
version: "1.0.0"
---
<topic name="order-status">The customer asks where an order is.</topic>

<reply status="shipped">Your order {order_number} is on its way.</reply>
<reply status="not_found">We do not know the order {order_number}.</reply>
<reply>Which order do you mean?</reply>
"""


def load_with_orders(folder: InstructionFolder, text: str = ORDER) -> Instructions:
    folder.scenario("order").write_text(text, encoding="utf-8")
    return InstructionFiles(folder.main, folder.scenarios, (WARRANTY, ORDERS)).load()


def test_a_configured_look_up_serves_a_declared_topic(folder: InstructionFolder) -> None:
    instructions = load_with_orders(folder)
    assert instructions.look_ups == (WARRANTY, ORDERS)
    assert instructions.look_up_for("order-status") is ORDERS
    assert instructions.route(Situation(False, "order-status", "one", "withheld")).name == "order"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "{topic: order-status}",
            "{topic: order-status, status: [shiped]}",
            "trigger[0].status: is 'shiped', which is",
        ),
        ("{topic: order-status}", "{topic: order-status, serial_numbers: one}", "for the topic order-status write 'nu"),
        ("{topic: order-status}", "{topic: order-status, numbers: none, status: [shipped]}", "applies in no situation"),
        ("order {order_number} is on", "order {order_numbr} is on", "{order_numbr} – did you mean 'order_number'?"),
        ("order {order_number} is on", "order {serial_number} is on", "unknown placeholder {serial_number}"),
        ("order {order_number} is on", "order is on", "the reply does not always hold {order_number}"),
        ("order {order_number} is on", "{order_number} by {carrier} is on", "{carrier} has no value"),
        (
            "version:",
            "asks_for: order_numbr\nversion:",
            "is the number of no look-up – did you mean 'order_number'? Known are: ",
        ),
        ("version:", "ticket: {order_number: x}\nversion:", "ticket.order_number is decided by the agent"),
        ("version:", "ticket: {order: '{oder_number}'}\nversion:", "ticket.order: unknown placeholder {oder_number}"),
        (
            '<topic name="order-status">',
            '<topic name="order-state">',
            "look_ups.orders.topics: no instruction file decl",
        ),
    ],
)
def test_what_does_not_fit_the_look_up_is_reported(old: str, new: str, problem: str, folder: InstructionFolder) -> None:
    assert ORDER.count(old) == 1
    with pytest.raises(InstructionError) as caught:
        load_with_orders(folder, ORDER.replace(old, new))
    assert problem in caught.value.message
