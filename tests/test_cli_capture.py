"""`capture` and `answer` as their users meet them."""

from contextlib import closing
from pathlib import Path

import pytest
from command_line import Run
from ledgers import claimed

from guarantee_email_agent.agent.identity_key import identity_key
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.ledger.opening import open_ledger

MAIL = "From: Ida Lund <ida@firm.de>\nSubject: Dryer\n\nIs SN48213 still covered?\n"


@pytest.fixture
def mail(tmp_path: Path) -> Path:
    (tmp_path / "evals" / "scenarios").mkdir(parents=True)
    (tmp_path / "mail.eml").write_text(MAIL, encoding="utf-8")
    return tmp_path / "mail.eml"


def test_the_recorded_answer_is_that_of_the_configured_system(mail: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "warranties.csv").write_text(
        "serial_number,expiration_date,coverage\nSN48213,2099-06-30,full\n", encoding="utf-8"
    )
    assert run("capture", mail, "--look-up").returncode == 0
    written = (tmp_path / "evals" / "scenarios" / "valid_warranty_001.yaml").read_text(encoding="utf-8")
    assert "2099-06-30" in written
    assert "48213" not in written


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nowhere.eml"], 1, "nowhere.eml: the file does not exist"),
        (["."], 1, ".: this is a folder, not a file"),
        (["<no id>"], 2, "<no id> is no Message-ID. Write it as <text@domain>"),
        (["<a@firm.de>"], 2, "mailbox.from_address is missing"),
        (["a@firm.de"], 2, "If it is the Message-ID of a mail in the mailbox, write it in angle brackets and quotes:"),
        (["mail.eml", "--id", "x"], 2, "--id 'x' is no category with a number"),
        (["mail.eml", "--id", "valid_waranty_1"], 2, "called 'valid-waranty' – did you mean 'valid-warranty'?"),
        (["mail.eml", "--eval-dir", "nowhere"], 2, "nowhere: the scenario folder does not exist"),
        (["mail.eml", "--look-up"], 3, "warranties.csv: cannot be read"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: list[str], code: int, message: str, mail: Path, run: Run, tmp_path: Path
) -> None:
    done = run("capture", *arguments)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (code, "", 1)
    assert message in done.stderr
    assert list((tmp_path / "evals" / "scenarios").iterdir()) == []


def test_the_built_in_scenarios_and_a_drawn_suite_are_not_written_to(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mail.eml").write_text(MAIL, encoding="utf-8")
    done = run("capture", "mail.eml")
    assert done.returncode == 2
    assert "Run 'guarantee-email-agent init' to have them here" in done.stderr
    (tmp_path / "drawn" / "below").mkdir(parents=True)
    (tmp_path / "drawn" / "_manifest.yml").write_text("drawn_from: 9\n")
    for command in (["capture", "mail.eml"], ["mock", "import", "shop", "https://localhost"]):
        done = run(*command, "--eval-dir", "drawn/below")
        assert (done.returncode, "one file more would break the draw" in done.stderr) == (2, True)


def test_a_follow_up_in_the_mailbox_has_the_reply_that_the_ledger_knows(mail: Path, run: Run, tmp_path: Path) -> None:
    for name in ("cur", "new", "tmp"):
        (tmp_path / "mailbox" / name).mkdir(parents=True)
    (tmp_path / "config.yaml").write_text("mailbox: {from_address: us@example.com, maildir: mailbox}\n")
    config = load_config(tmp_path / "config.yaml", {}, tmp_path)
    with closing(open_ledger(config.agent.ledger, key=identity_key(config))) as ledger:
        claim = claimed(ledger)
        ledger.intend_send(claim, "<ours@example.com>")
        ledger.finish(claim, "answered", "missing_info")
    raw = MAIL.replace("Subject: ", "Message-ID: <m2@firm.de>\nIn-Reply-To: <ours@example.com>\nSubject: Re: ")
    (tmp_path / "mailbox" / "new" / "1.M1P1.host").write_text(raw.replace("Is SN48213 still covered?", "4711-A12"))
    done = run("capture", "<m2@firm.de>", "--status", "valid")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Answers our reply: missing-info\nOutcome: answered (valid-warranty)\n" in done.stdout
    assert run("eval").returncode == 0


QUESTION = "From: ada@example.com\nSubject: Dryer\n\nIs SN12345 still covered?\n"


@pytest.fixture
def question(tmp_path: Path) -> Path:
    (tmp_path / "mail.eml").write_text(QUESTION, encoding="utf-8")
    return tmp_path / "mail.eml"


def test_a_mail_is_answered_without_any_configuration(question: Path, run: Run) -> None:
    done = run("answer", question, "--status", "valid", "--until", "2027-01-31")
    assert (done.returncode, done.stderr) == (0, "")
    assert "your warranty is valid" in done.stdout


def test_the_configured_warranty_list_is_asked(question: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "warranties.csv").write_text(
        "serial_number,expiration_date,coverage\nSN12345,2099-06-30,full\n", encoding="utf-8"
    )
    done = run("answer", question, "--look-up")
    assert done.returncode == 0, done.stderr
    assert "check_warranty SN12345 (asked now)" in done.stdout
    assert "Warranty until: 2099-06-30" in done.stdout


def test_a_warranty_system_that_cannot_be_reached_is_one_line_and_ends_in_3(question: Path, run: Run) -> None:
    done = run("answer", question, "--look-up")
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
        (["--status", "expird"], "did you mean 'expired'?"),
    ],
)
def test_options_that_make_no_sense_end_in_2(options: list[str], message: str, question: Path, run: Run) -> None:
    done = run("answer", question, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
