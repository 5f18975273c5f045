"""The page for those who decide, of runs as they mostly are and as strangers make them."""

import sample_reports
from sample_reports import HOSTILE, case

from guarantee_email_agent.runlog.views.html_report import as_board
from guarantee_email_agent.runlog.views.report import Report

READ = {"read": {"topic": "warranty"}}
HANDED_OVER = {"hand_over_reasons": ["fire"], "scenario_used": "hand-over"}


def shown(report: Report) -> str:
    return as_board(report).decode()


def test_it_says_what_is_done_with_mail_how_rightly_and_on_what_that_rests() -> None:
    replies = [case(number, trace=READ) for number in (1, 2)]
    wrong = case(3, passed=False, trace=READ, harm=("a wrong number",))
    known = {"git_revision": "abc", "git_dirty": False, "facts": {"by": "Zoe"}}
    text = shown(sample_reports.report(*replies, wrong, case(4, trace=READ, response=HANDED_OVER), of_run=known))
    assert '<th scope="row">Answers on its own</th><td>3</td><td>valid warranty 3</td>' in text
    assert '<th scope="row">Hands over to a person</th><td>1</td><td>fire 1</td>' in text
    assert "<dd>3 of 4 (75.0%)</dd>" in text
    assert "<dd>1 of 3 (33.3%)</dd>" in text
    assert "<dt>Bound for new mail, 95% sure</dt><dd>none claimed</dd>" in text
    assert "<dd><bdi>Zoe</bdi></dd>\n<dt>Commit</dt><dd><bdi>abc</bdi></dd>" in text
    assert "1 reply that passed every check" in text
    assert text.count("We are sorry that your device") == 1
    assert "It did not pass its test: 3 of 4 cases" in text
    assert "where 99% were asked for: Eval failed (&lt;99% threshold) ·" in text


def test_what_is_not_known_is_called_so() -> None:
    text = shown(sample_reports.report())
    assert "It is not known: the agent is not ours" in text
    assert text.count("<bdi>not known</bdi>") == 2
    assert "Answered on its own" not in text


def test_hostile_texts_are_text() -> None:
    actual = {"email_sent": True, "response_body": HOSTILE, "scenario_used": HOSTILE}
    hostile = case(trace=READ, name=HOSTILE, language=HOSTILE, request={"body": HOSTILE}, response=actual)
    told = {"suite": HOSTILE, "git_revision": HOSTILE, "facts": {"by": HOSTILE}}
    text = shown(sample_reports.report(hostile, of_run=told))
    assert "<script" not in text
    assert "<img" not in text
    assert "\x1b" not in text
