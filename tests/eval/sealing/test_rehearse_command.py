"""Past mail through the agent, beside what people sent."""

import io
import json
import shutil
from errno import ENOSPC
from pathlib import Path

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.past_mails import ANY_TIME
from guarantee_email_agent.eval.sealing.rehearse_command import PairLabels, RehearseOptions, rehearse
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.services.mail.maildir import Maildir
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError

FIRST = """\
From: Ida Lund <ida@firm.de>
To: desk@us.example
Subject: Dryer
Date: Mon, 1 Jun 2026 10:00:00 +0000
Message-ID: <first@firm.de>

Is my dryer with serial number SN-48213 still under warranty?

Ida Lund
"""
SECOND = FIRST.replace("first@", "second@").replace("Is my dryer", "I want to speak to a person. Is my dryer")
ANSWER = """\
From: Maria Schmidt <desk@us.example>
To: ida@firm.de
Subject: Re: Dryer
Date: Tue, {day} Jun 2026 10:00:00 +0000
Message-ID: <answer{day}@us.example>
In-Reply-To: <{to}@firm.de>
{more}
Dear Ida Lund, your warranty for SN-48213 is valid{say}.

Kind regards,
Maria Schmidt

On Monday Ida Lund wrote:
> Is my dryer with serial number SN-48213 still under warranty?
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A Maildir with two mails, and what people and the agent sent."""
    table = tmp_path / "warranties.csv"
    table.write_text("serial_number,expiration_date,coverage\nSN-48213,2099-06-30,full\n", encoding="utf-8")
    folder = tmp_path / "Maildir"
    Maildir(folder, "desk@us.example", create=True).close()
    for number, text in enumerate((FIRST, SECOND, "no mail")):
        (folder / "new" / f"170000000{number}.M1.host").write_text(text, encoding="utf-8")
    sent = folder / ".Sent" / "cur"
    sent.mkdir(parents=True)
    late = ANSWER.format(day=4, to="first", more="", say=", as I said")
    first = ANSWER.format(day=3, to="first", more="", say="")
    ours = ANSWER.format(day=2, to="second", more="Auto-Submitted: auto-replied\n", say="")
    to_a_colleague = late.replace("ida@firm.de", "colleague@us.example").replace("4 Jun", "1 Jun")
    for number, text in enumerate((late, first, to_a_colleague, ours, "no mail")):
        (sent / f"18000{number}.host:2,S").write_text(text, encoding="utf-8")
    settings = {"mailbox": {"maildir": str(folder), "from_address": "desk@us.example"}}
    (tmp_path / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")
    return load_config(tmp_path / "config.yaml", {})


@pytest.fixture
def pairs(config: Config, tmp_path: Path) -> Path:
    stream, folder = io.StringIO(), tmp_path / "pairs"
    before = sorted(path.name for path in config.mailbox.maildir.rglob("*"))
    options = RehearseOptions(to=folder, period=ANY_TIME, today="2026-07-01")
    assert rehearse(options, config, stream, lambda _: None) == 0
    assert "of 2 mails the agent would have answered 1, left 1 to a person" in stream.getvalue()
    assert "people answered at least 1. Nothing was sent.\nNot known: what stands in 1 mail" in stream.getvalue()
    assert "that people sent\nLeft out: 1 mail that cannot be read\n" in stream.getvalue()
    assert sorted(path.name for path in config.mailbox.maildir.rglob("*")) == before
    return folder


def test_the_agents_answer_stands_beside_that_of_a_person(pairs: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted(pairs.iterdir())]
    assert [
        text for text in texts for name in ("Ida", "Lund", "Maria", "Schmidt", "48213", "firm.de") if name in text
    ] == []
    first, second = (load_documents(text)[0] for text in texts)
    assert (first["agent"]["scenario"], second["agent"]["outcome"]) == ("valid-warranty", "handed over")
    number = next(word for word in first["mail"]["body"].split() if word.startswith("SN-"))
    assert f"Serial number: {number}" in first["agent"]["reply"]
    assert f"your warranty for {number} is valid.\n" in first["people"]["reply"]
    assert "still under warranty" not in first["people"]["reply"]
    assert 0 < first["alike_percent"] < 50
    assert "reply" not in second["people"]  # what a machine of ours sent


def test_a_person_labels_each_pair(pairs: Path) -> None:
    sheet = PairLabels(pairs)
    first, second = sheet.items()
    assert [heading for heading, _ in first.texts] == ["Mail", "The agent", "People"]
    assert second.texts[2][1] == "Not known: what stands in 1 mail that people sent"
    sheet.save(first.id, {"label": "wrong"})
    assert [item.labelled for item in sheet.items()] == ["wrong", ""]
    with pytest.raises(AgentError, match="Choose what you think"):
        sheet.save(second.id, {"label": "fine"})
    for text in "[]", "mail: {subject: a}\nagent: {}", "mail: {subject: a, body: b}\nagent: {}\npeople: yes":
        (pairs / f"{second.id}.yaml").write_text(text, encoding="utf-8")
        with pytest.raises(AgentError, match="was not written by 'rehearse'"):
            sheet.items()


@pytest.mark.parametrize(
    ("sent", "told", "people"),
    [
        (None, "at least 0. Nothing was sent.\nNot known: what", "Not known: what people sent. Name a folder of it"),
        (
            "unused",
            "at least 0. Nothing was sent.\nNot known: what",
            "Not known: what people sent. Name a folder of it",
        ),
        ("another", " 0. Nothing", "No answer by a person"),
        ("encrypted", " 1. Nothing", "Not known: their answer has no text"),
    ],
)
def test_what_nobody_looked_for_or_can_read_is_no_silence(
    config: Config, tmp_path: Path, sent: str | None, told: str, people: str
) -> None:
    encrypted = ANSWER.format(day=4, to="first", more="Content-Type: application/pkcs7-mime\n", say="")
    for name, text in (("mails", FIRST), ("another", FIRST), ("encrypted", encrypted)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "MAIL.EML").write_text(text, encoding="utf-8")
    mails, given = tmp_path / "mails", None if sent is None else tmp_path / sent
    if sent == "unused":
        shutil.rmtree(config.mailbox.maildir / ".Sent")
        mails = given = None
    options = RehearseOptions(to=tmp_path / "to", period=ANY_TIME, today="2026-07-01", folder=mails, sent=given)
    assert rehearse(options, config, stream := io.StringIO(), lambda _: None) == 0
    assert told in stream.getvalue()
    assert PairLabels(options.to).items()[0].texts[2][1].startswith(people)
    assert "alike_percent" not in (options.to / "pair_0001.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("fails", "empty", "problem"),
    [
        ("os.scandir", "mails", r"mails cannot be looked into \(No space\)\. Allow it"),  # as where it is not allowed
        ("", "mails", "0 mails found, and 1 needed"),
        ("guarantee_email_agent.eval.sealing.sample_and_seal.write_new_file", None, r"to cannot be written \(No space"),
    ],
)
def test_mails_that_cannot_be_seen_or_written_are_not_left_out(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, empty: str | None, problem: str
) -> None:
    def fail(path: str, *_: object) -> None:
        raise OSError(ENOSPC, "No space", path)

    (tmp_path / "mails").mkdir()
    folder = None if empty is None else tmp_path / empty
    options = RehearseOptions(to=tmp_path / "to", period=ANY_TIME, today="2026-07-01", folder=folder)
    if fails:
        monkeypatch.setattr(fails, fail)
    with pytest.raises(ConfigurationError, match=problem):
        rehearse(options, config, io.StringIO(), lambda _: None)
