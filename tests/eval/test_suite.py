"""What `eval` prints, what its options choose, and what it leaves in the run store."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kept_suite import KeptSuite
from scenario_folder import ROOT, broken, failing
from stored_runs import results_of

from guarantee_email_agent.email.processor import EmailProcessor
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.eval.execution import OfflineRun
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.utils.errors import ConfigurationError


def test_harm_and_how_selective_the_agent_was_are_told(suite: KeptSuite) -> None:
    suite.write(1)
    suite.write(2, lambda text: text.replace('excludes: ["', 'excludes: ["warranty is valid", "'))
    _, printed = suite.evaluate()
    reason = "a false statement: found phrase 'warranty is valid'"
    assert f"\n    harmful: {reason}\n" in printed
    assert "\nAnswered: 2 of 2 mails, 1 of them rightly\nHarmful: 1\nPass rate: 1/2" in printed
    report = suite.report()
    assert [result["harmful"] for result in report["results"]] == [[], [reason]]
    assert (report["totals"]["harmful"], report["selective"]["right"]) == (1, 1)


def test_only_counts_an_invalid_file_that_matches(suite: KeptSuite) -> None:
    suite.write(1, broken)
    suite.write(2)
    assert suite.evaluate(only=("*_001",))[0] == 4
    assert suite.evaluate(only=("*_002",))[0] == 0


def test_copies_of_a_mail_are_told_from_distinct_ones(suite: KeptSuite) -> None:
    for number in range(1, 4):
        suite.write(number, lambda text, number=number: text.replace("SN12345", f"SN{number}2345"))
    code, printed = suite.evaluate()
    assert code == 0
    assert "Pass rate: 3/3 (100%)" in printed
    assert "Distinct mails: 1/1 (a copy shows nothing new).\n" in printed


def test_a_caution_curve_is_printed_alone_and_decides_nothing(suite: KeptSuite) -> None:
    suite.write(1)
    suite.write(2, failing)
    code, printed = suite.evaluate(caution_curve=True)
    assert code == 0
    title, first, *_ = printed.splitlines()
    assert title.split() == ["Caution", "Answered", "Right", "Harmful", "answers"]
    assert first.split() == ["0", "2", "of", "2", "(100%)", "1", "of", "2", "(50.0%)", "0"]
    assert "Pass rate" not in printed


def test_a_caution_curve_is_of_a_run_without_caution(suite: KeptSuite, monkeypatch: pytest.MonkeyPatch) -> None:
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
    [
        *({"agent": "command:true"}, {"baseline": "last"}, {"resume": ""}, {"last_failed": True}, {"fail_fast": True}),
        {"html_file": Path("curve.html")},
    ],
)
def test_a_caution_curve_is_of_a_whole_run(suite: KeptSuite, option: dict[str, Any]) -> None:
    suite.write(1)
    with pytest.raises(
        ConfigurationError, match=f"Remove --{next(iter(option)).removesuffix('_file').replace('_', '-')}"
    ):
        suite.evaluate(caution_curve=True, **option)


def test_a_caution_curve_of_half_a_run_is_none(suite: KeptSuite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write(1)

    async def interrupted(*_: Any, **__: Any) -> ProcessingResult:
        raise KeyboardInterrupt

    monkeypatch.setattr(EmailProcessor, "process_email", interrupted)
    code, printed = suite.evaluate(caution_curve=True)
    assert code == 130
    assert printed.endswith("Interrupted: 0 of 1 scenarios ran, the gate is not decided")


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


@pytest.fixture
def suite(tmp_path: Path) -> KeptSuite:
    return KeptSuite(tmp_path / "scenarios")


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_result_is_kept_in_the_order_of_the_files(suite: KeptSuite, jobs: int) -> None:
    suite.write(1)
    suite.write(2, failing)
    suite.write(3, broken)
    assert suite.run(jobs=jobs) == 4
    found = [(each.name, each.position, each.verdict) for each in suite.results()]
    assert found == [
        ("valid_warranty_001", 1, "passed"),
        ("valid_warranty_002", 2, "failed"),
        ("valid_warranty_003", 3, "invalid"),
    ]
    with RunStore(suite.file) as store:
        run = store.find_run("last")
    assert (run.outcome, run.exit_code, run.planned, run.total) == ("failed", 4, 3, 3)
    assert (run.passed, run.failed, run.invalid) == (1, 2, 1)
    assert (run.llm, run.model, run.package_version) == ("offline", "instruction-interpreter", "0.1.0")


def test_the_inputs_of_a_verdict_are_named(suite: KeptSuite) -> None:
    suite.write(1)
    (suite.folder / "judge.py").write_text("def test(result):\n    return {'passed': True, 'feedback': ''}\n")
    suite.run()
    (kept,) = suite.results()
    with RunStore(suite.file) as store:
        inputs = {(each.kind, each.name): each.content for each in store.inputs(kept.place.input_set or 0)}
    assert inputs["instruction", "main.md"] == (ROOT / "instructions" / "main.md").read_bytes()
    assert inputs["lexicon", "en.md"] == (ROOT / "instructions" / "lexicon" / "en.md").read_bytes()
    assert inputs["instruction", "scenarios/valid-warranty.de.md"]
    assert (inputs["judge", "judge.py"] or b"").startswith(b"def test")
    assert inputs["package", "version"] == b"0.1.0"
    assert b"sender_check" in (inputs["setting", "agent"] or b"")
    kinds = {"instruction", "lexicon", "judge", "package", "program", "library", "setting", "model"}
    assert {kind for kind, _ in inputs} == kinds


def test_a_store_that_cannot_be_used_is_a_warning_and_no_verdict(
    suite: KeptSuite, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.write(1)
    suite.file.mkdir()
    assert suite.run() == 0
    assert capsys.readouterr().err == (
        f"WARNING This run is not kept: {suite.file}: it is a folder. "
        "Name another file in store.file, or leave the runs unkept with --no-store\n"
    )


def test_a_file_that_is_edited_during_the_run_leaves_its_results_without_known_inputs(
    suite: KeptSuite, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.write(1)
    whole = OfflineRun.one_by_one

    def edited(run: OfflineRun, entries: Iterable[Any], count: int) -> Iterator[EvalResult]:
        (suite.folder / "new_judge.py").write_text("")
        yield from whole(run, entries, count)

    monkeypatch.setattr(OfflineRun, "one_by_one", edited)
    assert suite.run() == 0
    assert [each.place.input_set for each in suite.results()] == [None]
    assert "files were edited during the run" in capsys.readouterr().err


def test_no_secret_and_no_environment_is_kept(suite: KeptSuite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    monkeypatch.setenv("SOME_VARIABLE", "of-the-environment")
    suite.write(1)
    suite.run(agent="command:true http://user:pass-word@example.com/")
    with RunStore(suite.file) as store:
        run = store.find_run("last")
        contents = [each.content or b"" for each in store.inputs(results_of(store, run)[0].place.input_set or 0)]
    assert run.agent == "command:true http://…@example.com/"
    everything = b"\n".join([*contents, repr(run).encode(), suite.file.read_bytes()])
    for secret in (b"sk-very-secret", b"of-the-environment", b"pass-word"):
        assert secret not in everything


def test_copies_count_once_and_every_step_has_its_time(suite: KeptSuite) -> None:
    suite.write(1)
    suite.write(2)
    suite.run()
    with RunStore(suite.file) as store:
        run = store.find_run("last")
        for kept in results_of(store, run):
            assert len(kept.step_ms) == len(store.result(kept.place.id).trace["execution_trace"]) == 3
    assert (run.total, run.mails, run.mails_passed) == (2, 1, 1)
