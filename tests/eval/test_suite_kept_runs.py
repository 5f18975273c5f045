"""What `eval` leaves in the run store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kept_suite import KeptSuite
from scenario_folder import ROOT, broken, failing
from stored_runs import results_of

from guarantee_email_agent.eval.execution import OfflineRun
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.runlog.run_reader import RunStore


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


def test_what_it_answered_and_what_was_wrong_with_it_are_kept(suite: KeptSuite) -> None:
    path = suite.write(1, failing)
    suite.run()
    (kept,) = suite.results()
    with RunStore(suite.file) as store:
        (check,) = store.checks(kept.place.id)
        transcript = store.result(kept.place.id)
    assert (check.name, check.reason) == ("response_body_contains", "missing phrase 'no such phrase'")
    assert check.expected == "'no such phrase'"
    assert check.actual is not None
    assert check.actual.startswith("'Hello,")
    assert transcript.source == path.read_bytes()
    assert transcript.request["subject"] == "Warranty status inquiry"
    assert "warranty is valid" in transcript.response["response_body"]
    assert transcript.response["ticket_fields"]["serial_number"] == "SN12345"
    assert "processing_time_ms" not in transcript.response


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
