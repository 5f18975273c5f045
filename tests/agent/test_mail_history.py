"""The summary of a time: what it counts, and what it refuses to count."""

import re

import pytest
from steered_desk import SteeredDesk

from guarantee_email_agent.agent import mail_history
from guarantee_email_agent.agent.outbox import NOT_WAITING
from guarantee_email_agent.cli import run
from guarantee_email_agent.ledger.agents import AgentReport, Work


def summary(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert run(["log", "--summary", *options]) == 0
    return capsys.readouterr().out


def test_it_counts_what_was_done(
    desk: SteeredDesk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = desk.ended("first", "answered", "valid-warranty")
    angry = desk.ended("angry", "handed_over", "anger")
    with desk.ledger() as ledger:
        ledger.agents.beat("one:1", AgentReport("1.0", "answer"), {answered: Work(12.5, 0.25), angry: Work(0.5, None)})
    text = summary(capsys, "--since", "yesterday")
    period, _, rest = text.partition("\n")
    assert re.fullmatch(r"From \d{4}-\d\d-\d\d 00:00:00 to \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(.+\)\.", period)
    assert rest == (
        "\nAnswered: 1\nDrafted: 0\nHanded over: 1\n    anger: 1\nNot answered: 0\n"
        "Quarantined: 0\nUnknown: 0\nObserved: 0\n"
        "\nLanguage model, for these: 0.2500 USD, without 1 mail whose cost is not known\nDown now: nothing\n"
        "Unfinished now: 0\nWaiting in the inbox, as one:1 saw it last: not known\nToo old: not counted yet\n"
        "Left to a person after a failure, of all days: 0\n"
    )
    monkeypatch.setattr(mail_history, "MAX_MAILS", 1)  # of which the cost is read
    assert "without 2 mails whose cost is not known" in summary(capsys, "--since", "yesterday")


def test_what_was_done_afterwards_is_not_counted(desk: SteeredDesk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.ended("first", "answered", "valid-warranty")
    text = summary(capsys, "--since", "yesterday")  # by an agent that was killed before it could say what that took
    assert " USD, without 1 mail whose cost is not known\nDown now: not known, since no agent runs\n" in text
    text = summary(capsys, "--since", "2026-01-30", "--until", "2026-01-31 07:00")
    assert text.startswith("From 2026-01-30 00:00:00 to 2026-01-31 07:00:00 (")
    assert "Answered: 0\n" in text


def test_what_people_took_while_an_agent_worked_on_it_is_not_unfinished(
    desk: SteeredDesk, capsys: pytest.CaptureFixture[str]
) -> None:
    with desk.ledger() as ledger:
        for name, reason in (("taken", NOT_WAITING), ("waits", "timeout")):
            ledger.release(desk.claim(ledger, name), count_attempt=False, retry_after_s=0, reason=reason)
    assert "Unfinished now: 1, the oldest first seen " in summary(capsys, "--since", "today")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "--summary of when? Add --since yesterday, or a date"),
        (["--today", "--json", "-"], "--json is for a list. Leave it or --summary out"),
        (["--today", "--outcome", "answered"], "--outcome is for a list"),
        (["--since", "2999-01-01"], "no time has passed from --since to --until"),
        (["--since", "today", "--until", "yesterday"], "no time has passed from --since to --until"),
    ],
)
def test_what_cannot_be_counted_is_refused(
    desk: SteeredDesk, capsys: pytest.CaptureFixture[str], options: list[str], problem: str
) -> None:
    desk.ended("first", "handed_over")
    assert run(["log", "--summary", *options]) == 2
    assert problem in capsys.readouterr().err
