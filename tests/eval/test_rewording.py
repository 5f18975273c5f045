"""`eval --accept`: the scenarios follow a sentence that was reworded on purpose, and nothing else of them changes."""

import io
import sys
from pathlib import Path

import pytest
from command_line import Run
from shipped_instructions import SHIPPED

from guarantee_email_agent.eval.rewording import _Phrase, _rewrite, _same_place, accept_rewordings

TURNS = """turns:
  - says: It is SN12345.
    expected_output:
      {email_sent: true, ticket_created: false, scenario_instruction_used: invalid-warranty,
       response_body_contains: ["in our records"]}
"""
ALL = ("eval", "--accept=all", "--reason", "a clearer word")


@pytest.fixture
def folder(tmp_path: Path, run: Run) -> Path:
    """An agent of one's own with three scenarios that were green."""
    assert run("init", ".").returncode == 0
    for file in (tmp_path / "evals" / "scenarios").rglob("*.*"):
        if file.stem not in ("missing_info_001", "missing_info_631", "valid_warranty_001", "schema"):
            file.unlink()
    with (tmp_path / "evals" / "scenarios" / "missing_info_001.yaml").open("a", encoding="utf-8") as file:
        file.write(TURNS)
    assert run("eval").returncode == 0
    return tmp_path


def reword(folder: Path, name: str, before: str, now: str) -> None:
    file = folder / "instructions" / "scenarios" / name
    file.write_text(file.read_text(encoding="utf-8").replace(before, now), encoding="utf-8")


def test_scenarios_follow_the_new_words_and_the_run_says_who_and_why(folder: Path, run: Run) -> None:
    reword(folder, "missing-info.md", "type plate", "rating label")
    reword(folder, "invalid-warranty.md", "our records", "our lists")
    done = run(*ALL)
    assert done.returncode == 4
    assert "Reworded in 1 scenario: 'records.' is now 'lists.'\n    missing_info_001\n" in done.stdout
    assert "Reworded in 2 scenarios: 'type plate' is now 'rating label'\n    missing_info_001, missing_info_631\n" in (
        done.stdout
    )
    assert "since a clearer word: 'type plate' is now 'rating label'" in run("show").stdout
    assert run("eval").returncode == 0
    shipped = SHIPPED.parent / "evals" / "scenarios" / "missing_info_001.yaml"
    changed = (folder / "evals" / "scenarios" / "missing_info_001.yaml").read_text(encoding="utf-8")
    before = f"{shipped.read_text(encoding='utf-8')}{TURNS}"
    assert changed == before.replace('"type plate"]', '"rating label"]').replace("our records", "our lists")


def test_what_could_not_be_written_is_not_accepted(folder: Path, run: Run) -> None:
    reword(folder, "missing-info.md", "type plate", "rating label")
    file = folder / "evals" / "scenarios" / "missing_info_001.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("type plate", r"t\x79pe plate"), encoding="utf-8")
    done = run(*ALL)
    assert "missing_info_001.yaml: write 'rating label' for 'type plate' yourself\n" in done.stdout
    assert "✓ 1 scenario changed. Run eval again\n" in done.stdout
    assert "Accepted in 1 scenario by" in run("show").stdout


def test_a_scenario_that_fails_for_something_else_too_is_left_alone(folder: Path, run: Run) -> None:
    reword(folder, "missing-info.md", "type plate", "rating label")
    file = folder / "evals" / "scenarios" / "missing_info_001.yaml"
    text = file.read_text(encoding="utf-8").replace("ticket_created: false", "ticket_created: true")
    file.write_text(text, encoding="utf-8")
    next((folder / "evals" / "scenarios").rglob("missing_info_631.yaml")).unlink()
    done = run(*ALL)
    assert "No scenario fails by a reworded phrase alone" in done.stdout
    assert "1 scenario newly failing for something else" in done.stdout
    assert file.read_text(encoding="utf-8") == text


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "accepted"), [("y\n", True), ("n\n", False), ("", False)])
def test_each_difference_is_asked_about(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, answer: str, accepted: bool
) -> None:
    reword(folder, "missing-info.md", "type plate", "rating label")
    run("eval")
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    accept_rewordings(folder / "runs.db", "last", io.StringIO(), ask=True, reason="")
    text = (folder / "evals" / "scenarios" / "missing_info_001.yaml").read_text(encoding="utf-8")
    assert ("rating label" in text) is accepted


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--accept"], "asks at a terminal"),
        (["--accept=all"], "Say why with --reason TEXT"),
        (["--reason", "x"], "--reason is for --accept"),
        (["--accept=all", "--reason", "x", "--no-store"], "Leave --no-store, --watch"),
        (["--accept=all", "--reason", "x", "--resume"], "and --resume out"),
        (["--accept=all", "--reason", "x", "--caution-curve"], "--caution-curve and"),
    ],
)
def test_bad_usage_is_one_line(run: Run, arguments: list[str], says: str) -> None:
    done = run("eval", *arguments)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert says in done.stderr


@pytest.mark.parametrize(
    ("phrase", "now", "found"),
    [
        ("type plate", "It is on the rating label, below.", ("type plate,", "rating label,", "rating label")),
        (
            "is on the type plate",
            "It stands on the label, below.",
            ("is on the type plate,", "stands on the label,", "stands on the label"),
        ),
        ("on the type plate", "It is on the label, below.", ("type plate,", "label,", "on the label")),
        ("below", "It is on the type plate, behind.", ("below.", "behind.", "behind")),
        ("below.", "It is on the type plate, below!", ("below.", "below!", "below!")),
        ("type plate", "It is below.", None),
        ("ype plate", "It is on the rating label, below.", None),
    ],
)
def test_what_stands_in_its_place(phrase: str, now: str, found: tuple[str, str, str] | None) -> None:
    assert _same_place(phrase, "It is on the type plate, below.", now) == found


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ('response_body_contains: ["a plate", "plate"]', 'response_body_contains: ["a plate", "a: label"]'),
        ("response_body_contains: [a plate, plate]", None),  # a colon would make it a mapping
        (
            'description: "plate"\nresponse_body_contains: ["plate"]',
            'description: "plate"\nresponse_body_contains: ["a: label"]',
        ),
        ('a: b\r\nresponse_body_contains: ["plate"]\r\n', 'a: b\r\nresponse_body_contains: ["a: label"]\r\n'),
        ('response_body_contains: ["pl\\x61te"]', None),
    ],
)
def test_nothing_but_the_phrase_changes(tmp_path: Path, text: str, changed: str | None) -> None:
    file = tmp_path / "one.yaml"
    file.write_bytes(text.encode())
    assert _rewrite(_Phrase("one", file, "plate", "a: label"), "plate", "a: label") is (changed is not None)
    assert file.read_bytes().decode() == (changed or text)
