"""`answer` as its users meet it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run

MAIL = "From: ada@example.com\nSubject: Dryer\n\nIs SN12345 still covered?\n"


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    (tmp_path / "mail.eml").write_text(MAIL, encoding="utf-8")
    return tmp_path / "mail.eml"


def test_a_mail_is_answered_without_any_configuration(mail: Path, run: Run) -> None:
    done = run("answer", mail, "--status", "valid", "--until", "2027-01-31")
    assert (done.returncode, done.stderr) == (0, "")
    assert "your warranty is valid" in done.stdout


def test_the_configured_warranty_list_is_asked(mail: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "warranties.csv").write_text(
        "serial_number,expiration_date,coverage\nSN12345,2099-06-30,full\n", encoding="utf-8"
    )
    done = run("answer", mail, "--look-up")
    assert done.returncode == 0, done.stderr
    assert "check_warranty SN12345 (asked now)" in done.stdout
    assert "Warranty until: 2099-06-30" in done.stdout


def test_a_warranty_system_that_cannot_be_reached_is_one_line_and_ends_in_3(mail: Path, run: Run) -> None:
    done = run("answer", mail, "--look-up")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (3, "", 1)


def test_a_missing_file_is_one_line_and_ends_in_1(run: Run) -> None:
    done = run("answer", "nowhere.eml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "guarantee-email-agent: nowhere.eml: the file does not exist\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until", "2027-01-31"], "--until needs --status beside it"),
        (["--status", "valid", "--until", "soon"], "--until 'soon' is no date"),
        (["--status", "valid", "--look-up"], "--look-up asks the configured services"),
        (["--status", "expird"], "did you mean expired?"),
    ],
)
def test_options_that_make_no_sense_end_in_2(options: list[str], message: str, mail: Path, run: Run) -> None:
    done = run("answer", mail, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
