"""The held-out mails are a measure only as long as nobody tunes to them, so they may stand nowhere else."""

from __future__ import annotations

import json
from pathlib import Path

from guarantee_email_agent.eval.loader import EvalLoader

ROOT = Path(__file__).parents[2]


def mails_of(folder: Path) -> set[tuple[str, str]]:
    emails = [case.input.email for case in EvalLoader().discover_test_cases(folder)]
    return {_without_case_and_space(email.subject, email.body) for email in emails}


def test_every_held_out_file_is_a_scenario_with_a_mail_of_its_own() -> None:
    files = list((ROOT / "evals" / "held_out").glob("*.yaml"))
    assert len(mails_of(ROOT / "evals" / "held_out")) == len(files) >= 200


def test_no_held_out_mail_stands_in_the_suite() -> None:
    assert mails_of(ROOT / "evals" / "held_out") & mails_of(ROOT / "evals" / "scenarios") == set()


def test_no_held_out_mail_is_one_of_the_labelled_mails_that_the_lexicon_is_tuned_on() -> None:
    labelled = [
        json.loads(line)
        for path in (ROOT / "tests" / "interpreter" / "mails").glob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    tuned = {_without_case_and_space(mail["subject"], mail["body"]) for mail in labelled}
    assert mails_of(ROOT / "evals" / "held_out") & tuned == set()


def test_no_held_out_mail_is_one_that_the_classifier_is_trained_on() -> None:
    trained = [
        _without_case_and_space("", json.loads(line)["text"])[1]
        for path in (ROOT / "evals" / "training").glob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert len(trained) > 5000
    bodies = {body for _, body in mails_of(ROOT / "evals" / "held_out") if len(body) > 40}
    assert [body for body in bodies if any(body in text for text in trained)] == []


def _without_case_and_space(subject: str, body: str) -> tuple[str, str]:
    return " ".join(subject.lower().split()), " ".join(body.lower().split())
