from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scenario_folder import ScenarioFolder, broken, failing

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.processor import EmailProcessor
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.utils.errors import ConfigurationError


@pytest.fixture
def suite(tmp_path: Path, config: Config) -> ScenarioFolder:
    return ScenarioFolder(tmp_path / "scenarios", config)


def test_harm_and_how_selective_the_agent_was_are_told(suite: ScenarioFolder) -> None:
    suite.write(1)
    suite.write(2, lambda text: text.replace('excludes: ["', 'excludes: ["warranty is valid", "'))
    _, printed = suite.evaluate()
    reason = "a false statement: found phrase 'warranty is valid'"
    assert f"\n    harmful: {reason}\n" in printed
    assert "\nAnswered: 2 of 2 mails, 1 of them rightly\nHarmful: 1\nPass rate: 1/2" in printed
    report = suite.report()
    assert [result["harmful"] for result in report["results"]] == [[], [reason]]
    assert (report["totals"]["harmful"], report["selective"]["right"]) == (1, 1)


def test_only_counts_an_invalid_file_that_matches(suite: ScenarioFolder) -> None:
    suite.write(1, broken)
    suite.write(2)
    assert suite.evaluate(only=("*_001",))[0] == 4
    assert suite.evaluate(only=("*_002",))[0] == 0


def test_copies_of_a_mail_are_told_from_distinct_ones(suite: ScenarioFolder) -> None:
    for number in range(1, 4):
        suite.write(number, lambda text, number=number: text.replace("SN12345", f"SN{number}2345"))
    code, printed = suite.evaluate()
    assert code == 0
    assert "Pass rate: 3/3 (100%)" in printed
    assert "Distinct mails: 1/1 (a copy shows nothing new).\n" in printed


def test_a_caution_curve_is_printed_alone_and_decides_nothing(suite: ScenarioFolder) -> None:
    suite.write(1)
    suite.write(2, failing)
    code, printed = suite.evaluate(caution_curve=True)
    assert code == 0
    title, first, *_ = printed.splitlines()
    assert title.split() == ["Caution", "Answered", "Right", "Harmful", "answers"]
    assert first.split() == ["0", "2", "of", "2", "(100%)", "1", "of", "2", "(50.0%)", "0"]
    assert "Pass rate" not in printed


def test_a_caution_curve_is_of_a_run_without_caution(suite: ScenarioFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write(1)
    suite.config = replace(suite.config, agent=replace(suite.config.agent, caution=30))
    used = []
    process = EmailProcessor.process_email

    async def watched(self: EmailProcessor, *arguments: Any, **options: Any) -> ProcessingResult:
        used.append(self.policy.caution)
        return replace(await process(self, *arguments, **options), doubt=75)

    monkeypatch.setattr(EmailProcessor, "process_email", watched)
    _, printed = suite.evaluate(caution_curve=True)
    answered = [line.split()[1] for line in printed.splitlines()[1:]]
    assert answered == ["1", "1", "1", *["0"] * 8]
    assert suite.report()["results"][0]["actual_output"]["doubt"] == 75
    assert used == [0, 30]


@pytest.mark.parametrize(
    "option",
    [{"agent": "command:true"}, {"baseline": "last"}, {"resume": ""}, {"last_failed": True}, {"fail_fast": True}],
)
def test_a_caution_curve_is_of_a_whole_run(suite: ScenarioFolder, option: dict[str, Any]) -> None:
    suite.write(1)
    with pytest.raises(ConfigurationError, match=f"Remove --{next(iter(option)).replace('_', '-')}"):
        suite.evaluate(caution_curve=True, **option)


def test_a_caution_curve_of_half_a_run_is_none(suite: ScenarioFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write(1)

    async def interrupted(*_: Any, **__: Any) -> ProcessingResult:
        raise KeyboardInterrupt

    monkeypatch.setattr(EmailProcessor, "process_email", interrupted)
    code, printed = suite.evaluate(caution_curve=True)
    assert code == 130
    assert printed.endswith("Interrupted: 0 of 1 scenarios ran, the gate is not decided")


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
