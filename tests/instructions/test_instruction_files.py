from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.instruction_files import MAX_BYTES, InstructionFiles
from guarantee_email_agent.instructions.router import Situation, every_situation, matching
from guarantee_email_agent.utils.errors import InstructionError

Edit = Callable[[Path, str, str], int]


class Folder(Protocol):
    """See conftest."""

    path: Path
    main: Path
    scenarios: Path
    files: InstructionFiles

    def scenario(self, name: str) -> Path: ...
    def load(self) -> Instructions: ...
    def problems(self) -> list[str]: ...


# The shipped files ---------------------------------------------------------------------------------------------------


def test_the_shipped_files_load(folder: Folder) -> None:
    names = [scenario.name for scenario in folder.load().scenarios]

    assert names == sorted(
        ["valid-warranty", "invalid-warranty", "missing-info", "graceful-degradation", "out-of-scope", "no-reply"]
    )


@pytest.mark.parametrize("situation", list(every_situation()), ids=str)
def test_every_situation_has_exactly_one_shipped_scenario(situation: Situation, folder: Folder) -> None:
    assert len(matching(folder.load().scenarios, situation)) == 1


@pytest.mark.parametrize(
    ("situation", "name"),
    [
        (Situation(False, "warranty", "one", "valid"), "valid-warranty"),
        (Situation(False, "warranty", "one", "expired"), "invalid-warranty"),
        (Situation(False, "warranty", "one", "not_found"), "invalid-warranty"),
        (Situation(False, "warranty", "one", "other"), "graceful-degradation"),
        (Situation(False, "warranty", "none"), "missing-info"),
        (Situation(False, "warranty", "several"), "graceful-degradation"),
        (Situation(False, "unclear", "none"), "graceful-degradation"),
        (Situation(False, "other", "none"), "out-of-scope"),
        (Situation(automatic=True), "no-reply"),
    ],
    ids=str,
)
def test_a_situation_leads_to_its_scenario(situation: Situation, name: str, folder: Folder) -> None:
    assert folder.load().route(situation).name == name


def test_only_a_valid_warranty_opens_a_ticket(folder: Folder) -> None:
    tickets = {scenario.name: scenario.ticket for scenario in folder.load().scenarios if scenario.ticket is not None}

    assert tickets == {"valid-warranty": {"priority": "normal", "category": "warranty_claim"}}


# Reading anew --------------------------------------------------------------------------------------------------------


def test_an_edit_counts_at_the_next_load(folder: Folder, edit: Edit) -> None:
    files = folder.files
    before = files.load().route(Situation(False, "warranty", "none"))
    edit(folder.scenario("missing-info"), "We are glad to help", "We are happy to help")
    after = files.load().route(Situation(False, "warranty", "none"))

    assert "glad to help" in before.approved_text
    assert "happy to help" in after.approved_text


def test_a_file_that_is_spoiled_later_is_an_error_then(folder: Folder, edit: Edit) -> None:
    files = folder.files
    files.load()
    edit(folder.scenario("missing-info"), "</reply>", "")

    with pytest.raises(InstructionError, match="never closed"):
        files.load()


def test_a_new_scenario_file_is_seen(folder: Folder) -> None:
    files = folder.files
    files.load()
    text = folder.scenario("out-of-scope").read_text(encoding="utf-8")
    folder.scenario("also-out").write_text(text.replace("name: out-of-scope", "name: also-out"), encoding="utf-8")

    with pytest.raises(InstructionError, match="also-out and out-of-scope"):
        files.load()


@pytest.mark.parametrize("name", [".missing-info.md.swp", "._notes.md", "_draft.md", "README.txt"])
def test_files_that_are_no_scenarios_are_left_alone(name: str, folder: Folder) -> None:
    (folder.scenarios / name).write_text("anything", encoding="utf-8")

    assert len(folder.load().scenarios) == 6


# How a file may be saved ---------------------------------------------------------------------------------------------


def test_a_byte_order_mark_changes_nothing(folder: Folder) -> None:
    plain = folder.load()
    for path in (folder.main, folder.scenario("missing-info")):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())

    assert folder.load() == plain


def test_windows_line_ends_change_nothing(folder: Folder) -> None:
    plain = folder.load()
    for path in (folder.main, folder.scenario("missing-info")):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert folder.load() == plain


def test_windows_line_ends_keep_the_line_of_an_error(folder: Folder, edit: Edit) -> None:
    path = folder.scenario("missing-info")
    line = edit(path, "Thank you for your message", "Thank {name}")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert folder.problems()[0].startswith(f"scenarios/missing-info.md:{line}: unknown placeholder {{name}}")


def test_a_file_that_is_not_utf8_is_told(folder: Folder) -> None:
    folder.scenario("missing-info").write_bytes("---\nname: größe\n---\n".encode("latin-1"))

    (problem,) = folder.problems()
    assert problem.startswith("scenarios/missing-info.md: is not UTF-8")
    assert problem.endswith("Save it as UTF-8")


def test_a_file_that_is_too_large_is_told(folder: Folder) -> None:
    with folder.main.open("ab") as file:
        file.write(b"x" * MAX_BYTES)

    assert folder.problems() == ["main.md: larger than 256 KiB. Shorten it: a model reads all of it with every mail"]


def test_a_missing_file_is_told(folder: Folder) -> None:
    folder.main.unlink()

    (problem,) = folder.problems()
    assert problem.startswith("main.md: cannot read the instruction file (No such file or directory)")


def test_a_folder_in_place_of_a_file_is_told(folder: Folder) -> None:
    (folder.scenarios / "extra.md").mkdir()

    assert folder.problems()[0].startswith("scenarios/extra.md: cannot read the instruction file (Is a directory)")


def test_a_missing_scenario_folder_is_told(folder: Folder) -> None:
    os.rename(folder.scenarios, folder.path / "elsewhere")

    (problem,) = folder.problems()
    assert problem.startswith("scenarios: cannot read the folder of scenario instructions")
    assert problem.endswith("Set instructions.scenarios_dir in the configuration")


# Frontmatter ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "no frontmatter\n", "---\nname: x\n", " ---\nname: x\n---\n"])
def test_a_file_without_frontmatter_is_told(text: str, folder: Folder) -> None:
    folder.scenario("missing-info").write_text(text, encoding="utf-8")

    assert folder.problems()[0].startswith("scenarios/missing-info.md:1: has no frontmatter. Begin the file with '---'")


@pytest.mark.parametrize("key", ["name", "description", "trigger", "version"])
def test_a_missing_key_is_told(key: str, folder: Folder) -> None:
    path = folder.main
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join(line for line in lines if not line.startswith(f"{key}:")), encoding="utf-8")

    assert folder.problems() == [f"main.md:1: {key} is missing. Add it to the frontmatter"]


def test_an_unknown_key_is_told_with_its_line_and_the_nearest_known_one(folder: Folder, edit: Edit) -> None:
    line = edit(folder.scenario("valid-warranty"), "ticket:\n", "tickets:\n")

    assert any(
        problem.startswith(f"scenarios/valid-warranty.md:{line}: tickets: unknown key 'tickets'")
        and "'ticket'" in problem
        for problem in folder.problems()
    )


def test_a_wrong_value_deep_in_the_trigger_is_told_with_its_line(folder: Folder, edit: Edit) -> None:
    line = edit(folder.scenario("missing-info"), "serial_numbers: none", "serial_numbers: zero")

    (problem,) = folder.problems()
    assert problem.startswith(f"scenarios/missing-info.md:{line}: trigger")
    assert "serial_numbers" in problem
    assert "zero" in problem


def test_frontmatter_that_is_no_yaml_is_told_with_its_line(folder: Folder, edit: Edit) -> None:
    line = edit(folder.scenario("missing-info"), "trigger:\n", "trigger: [\n")

    (problem,) = folder.problems()
    assert problem.startswith("scenarios/missing-info.md:")
    assert int(problem.split(":")[1]) >= line


def test_a_duplicate_key_is_told(folder: Folder, edit: Edit) -> None:
    line = edit(folder.scenario("missing-info"), 'version: "1.0.0"\n', 'version: "1.0.0"\nversion: "1.0.1"\n')

    assert folder.problems()[0].startswith(f"scenarios/missing-info.md:{line + 1}:")


# Bodies --------------------------------------------------------------------------------------------------------------


def test_a_bad_pattern_is_told_with_file_line_and_remedy(folder: Folder, edit: Edit) -> None:
    line = edit(folder.main, "<unlabelled-serial>\n", "<unlabelled-serial>\n[A-Z]+[0-9]+\n")

    (problem,) = folder.problems()
    assert problem.startswith(f"main.md:{line + 1}: pattern '[A-Z]+[0-9]+' can match more than 100 characters. Use")


def test_a_missing_element_is_told(folder: Folder) -> None:
    text = folder.main.read_text(encoding="utf-8")
    folder.main.write_text(text.replace("denials>", "refusals>"), encoding="utf-8")

    (problem,) = folder.problems()
    assert "<denials> is missing. Add the element; docs/instructions.md shows" in problem


def test_an_unclosed_element_is_told_with_the_line_where_it_opens(folder: Folder, edit: Edit) -> None:
    path = folder.scenario("out-of-scope")
    opening = path.read_text(encoding="utf-8").split("\n").index("<reply>") + 1
    edit(path, "</reply>", "")

    assert folder.problems() == [
        f"scenarios/out-of-scope.md:{opening}: <reply> is never closed. Add </reply>",
    ]


def test_an_unknown_placeholder_is_told_with_file_line_and_the_known_ones(folder: Folder, edit: Edit) -> None:
    line = edit(folder.scenario("valid-warranty"), "Serial number: {serial_number}", "Serial number: {serial}")

    (problem,) = folder.problems()
    assert problem.startswith(f"scenarios/valid-warranty.md:{line}: unknown placeholder {{serial}}. Known are: ")


def test_a_fact_that_may_be_unknown_needs_a_condition(folder: Folder, edit: Edit) -> None:
    edit(folder.scenario("valid-warranty"), '<if expiration_date="known">', '<if serial_number="known">')

    (problem,) = folder.problems()
    assert "{expiration_date} has no value where" in problem
    assert 'Put it inside <if expiration_date="known">' in problem


def test_a_serial_number_in_a_reply_that_knows_none_is_told(folder: Folder, edit: Edit) -> None:
    edit(folder.scenario("missing-info"), "the serial number of your device", "{serial_number}")

    assert any("{serial_number} has no value where 'intent: warranty" in problem for problem in folder.problems())


def test_a_scenario_without_a_reply_is_told(folder: Folder) -> None:
    path = folder.scenario("out-of-scope")
    text = path.read_text(encoding="utf-8")
    path.write_text(text[: text.index("<reply>")], encoding="utf-8")

    assert folder.problems() == ["scenarios/out-of-scope.md:1: has no <reply>. Add one"]


def test_a_status_without_a_reply_is_named(folder: Folder, edit: Edit) -> None:
    edit(folder.scenario("invalid-warranty"), '<reply warranty_status="not_found">', '<reply warranty_status="valid">')

    assert folder.problems() == [
        "scenarios/invalid-warranty.md:1: has no <reply> for warranty_status not_found. Add one",
    ]


def test_a_ticket_number_without_a_ticket_is_told(folder: Folder, edit: Edit) -> None:
    path = folder.scenario("invalid-warranty")
    edit(path, "We can still help:", "Ticket {ticket_number}. We can still help:")

    (problem,) = folder.problems()
    assert "{ticket_number} stands in a reply without a ticket. Add 'ticket:'" in problem


@pytest.mark.parametrize("name", ["serial_number", "warranty_status", "customer_email", "idempotency_key"])
def test_a_ticket_field_that_code_decides_is_refused(name: str, folder: Folder, edit: Edit) -> None:
    edit(folder.scenario("valid-warranty"), "  priority: normal\n", f"  priority: normal\n  {name}: mine\n")

    (problem,) = folder.problems()
    assert f"ticket.{name} is decided by the agent" in problem


def test_a_name_that_is_not_the_files_is_told(folder: Folder, edit: Edit) -> None:
    edit(folder.scenario("missing-info"), "name: missing-info", "name: missing-information")

    (problem,) = folder.problems()
    assert "name is 'missing-information' but the file is called missing-info.md. Make them the same" in problem


def test_a_reply_to_automatic_mail_is_refused(folder: Folder) -> None:
    path = folder.scenario("no-reply")
    path.write_text(path.read_text(encoding="utf-8") + "\n<reply>\nThank you!\n</reply>\n", encoding="utf-8")

    (problem,) = folder.problems()
    assert "must never be answered (RFC 3834). Remove the <reply>" in problem


# The set -------------------------------------------------------------------------------------------------------------


def test_a_situation_that_no_scenario_answers_is_told(folder: Folder) -> None:
    folder.scenario("missing-info").unlink()

    (problem,) = folder.problems()
    assert problem == (
        "scenarios: no scenario is triggered by 'intent: warranty, serial_numbers: none'. "
        "Add it to the trigger of the scenario that should answer"
    )


def test_a_situation_that_two_scenarios_answer_is_told(folder: Folder, edit: Edit) -> None:
    edit(folder.scenario("graceful-degradation"), "warranty_status: [other]", "warranty_status: [other, expired]")

    (problem,) = folder.problems()
    assert problem == (
        "scenarios: 'intent: warranty, serial_numbers: one, warranty_status: expired' triggers "
        "graceful-degradation and invalid-warranty. Leave it to one of them"
    )


def test_an_empty_scenario_folder_leaves_every_situation_open(folder: Folder) -> None:
    for path in folder.scenarios.glob("*.md"):
        path.unlink()

    assert len(folder.problems()) == len(list(every_situation()))


def test_all_problems_are_told_at_once(folder: Folder, edit: Edit) -> None:
    edit(folder.main, "</never-serial>", "")
    edit(folder.scenario("missing-info"), "name: missing-info", "name: missing")
    edit(folder.scenario("out-of-scope"), "</reply>", "")

    problems = folder.problems()
    assert [problem.partition(":")[0] for problem in problems] == [
        "main.md",
        "scenarios/missing-info.md",
        "scenarios/out-of-scope.md",
    ]


def test_an_error_ends_in_exit_code_2(folder: Folder) -> None:
    folder.main.unlink()

    with pytest.raises(InstructionError) as caught:
        folder.load()
    assert caught.value.exit_code == 2
