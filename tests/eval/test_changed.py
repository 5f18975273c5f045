"""`eval --changed`: what did not change is not run again, and its verdicts are taken over with their run's name."""

import csv
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import junitparser
import pytest
from kept_suite import KeptSuite, executed
from scenario_folder import failing
from stored_runs import results_of

from guarantee_email_agent.config import look_up_settings as made
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.agent_inputs import agent_settings
from guarantee_email_agent.eval import verdict_inputs
from guarantee_email_agent.eval.reuse import find_stale, print_stale
from guarantee_email_agent.runlog.records import Input
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.views.result_view import json_result, print_run
from guarantee_email_agent.utils.errors import AgentError
from guarantee_email_agent.utils.terminal import Terminal

JUDGE = "import helper\ndef test(result):\n    return {'passed': True, 'feedback': ''}\n"


@pytest.fixture
def suite(tmp_path: Path) -> KeptSuite:
    suite = KeptSuite(tmp_path / "scenarios")
    suite.write(1)
    suite.write(2, failing)
    suite.write(3)
    suite.run()
    return suite


def origins(suite: KeptSuite) -> list[str | None]:
    return [each.taken_over or None for each in suite.results()]


def without_summary_of_origin(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("Taken over: "))


def test_what_is_unchanged_does_not_run_and_is_told_as_if_it_had(
    suite: KeptSuite, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    whole, told = suite.run_and_print()
    caplog.clear()
    code, text = suite.run_and_print(changed=True)
    assert executed(caplog) == []
    assert code == whole == 4
    assert "Taken over: 3 of 3 scenarios, from run-2" in text
    assert without_summary_of_origin(text) == told
    with RunStore(suite.file) as store:
        run = store.find_run("last")
        assert (run.id, run.outcome, run.total, run.passed, run.mails) == ("run-3", "failed", 3, 2, 1)
        assert [each.position for each in results_of(store, run)] == [1, 2, 3]
        for before, now in zip(suite.results("run-2"), results_of(store, run), strict=True):
            taken_over = store.result(now.place.id)._replace(taken_over="", place=before.place)
            assert store.result(before.place.id) == taken_over
            assert store.checks(before.place.id) == store.checks(now.place.id)
            assert before.step_ms == now.step_ms


def test_a_changed_and_a_new_scenario_run_and_a_removed_one_is_gone(
    suite: KeptSuite, caplog: pytest.LogCaptureFixture
) -> None:
    suite.write(2)
    suite.write(0)
    (suite.folder / "valid_warranty_001.yaml").unlink()
    caplog.set_level("INFO")
    assert suite.run(changed=True) == 0
    assert executed(caplog) == ["valid_warranty_000", "valid_warranty_002"]
    assert [(each.position, each.name, each.taken_over or None) for each in suite.results()] == [
        (1, "valid_warranty_000", None),
        (2, "valid_warranty_002", None),
        (3, "valid_warranty_003", "run-1"),
    ]


def test_the_last_verdict_counts_in_whichever_run_it_is(suite: KeptSuite) -> None:
    suite.write(2)
    suite.run(only=("valid_warranty_002",))
    suite.run(changed=True)
    assert origins(suite) == ["run-1", "run-2", "run-1"]
    _, text = suite.run_and_print(changed=True)
    assert origins(suite) == ["run-1", "run-2", "run-1"]
    assert "Taken over: 3 of 3 scenarios, from run-1, run-2" in text
    suite.write(2, failing)  # as it was in the first run, but not at its last verdict
    _, text = suite.run_and_print(changed=True, fail_fast=True)
    assert "Pass rate: 2/3" in text  # as in the store: what is taken over need not run
    assert origins(suite) == ["run-1", None, "run-1"]


def test_any_input_that_changed_runs_all_again(suite: KeptSuite, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = verdict_inputs.program_inputs()
    others = tuple(Input.of(each.kind, each.name, b"other") if each.kind == "program" else each for each in inputs)
    monkeypatch.setattr(verdict_inputs, "program_inputs", lambda: others)
    suite.run(changed=True)
    assert origins(suite) == [None, None, None]
    serial_number = made.SerialNumberSettings((made.NumberFormatSettings("SN[0-9]+", "SN12345"),))
    bolder = replace(suite.config, agent=replace(suite.config.agent, caution=50))
    for suite.config in (bolder, replace(bolder, warranty=made.WarrantySettings(serial_number))):
        suite.run(changed=True)
        assert origins(suite) == [None, None, None]


def test_where_a_table_lies_is_no_part_of_what_verdicts_depend_on() -> None:
    tables = [made.LookUpSettings(("x",), "order", ("no",), "[0-9]{5}", table=Path(name)) for name in ("a", "b/a")]
    here, there = (list(agent_settings(Config(look_ups={"shop": each}), "offline")) for each in tables)
    assert here == there != list(agent_settings(Config(), "offline"))


def test_what_a_judge_imports_counts(suite: KeptSuite, caplog: pytest.LogCaptureFixture) -> None:
    (suite.folder / "judge.py").write_text(JUDGE)
    helper = suite.folder / "helper" / "__init__.py"
    helper.parent.mkdir()
    helper.write_text("LIMIT = 1\n")
    suite.run()
    suite.run(changed=True)
    assert origins(suite) == ["run-2"] * 3
    helper.write_text("LIMIT = 22\n")
    with RunStore(suite.file) as store:
        stale = find_stale(store, "last", suite.config, suite.folder)
    assert list(stale.changes) == ["changed judge: helper/__init__.py"]
    suite.run(changed=True)
    assert origins(suite) == [None] * 3


def test_a_mail_beside_a_scenario_counts_and_its_folder(suite: KeptSuite) -> None:
    suite.take("missing_info_1031")
    suite.run()
    suite.run(changed=True)
    assert origins(suite) == ["run-2"] * 4
    mail = suite.folder / "missing_info_1031.eml"
    mail.write_bytes(mail.read_bytes().replace(b"Subject: ", b"X-Mailer: none\nSubject: ", 1))
    suite.run(changed=True)
    assert origins(suite) == [None, "run-2", "run-2", "run-2"]
    (suite.folder / "more").mkdir()  # where another judge may lie beside them
    for file in (mail, mail.with_suffix(".yaml"), suite.folder / "valid_warranty_003.yaml"):
        file.rename(file.parent / "more" / file.name)
    with RunStore(suite.file) as store:
        stale = find_stale(store, "last", suite.config, suite.folder).stale
    assert stale == {"missing_info_1031", "valid_warranty_003"}
    suite.run(changed=True)
    assert origins(suite) == [None, None, "run-2", "run-2"]


def test_an_invalid_file_is_read_again(suite: KeptSuite) -> None:
    suite.write(3, lambda text: text.replace("scenario_id:", "scenario_id: ["))
    suite.run()
    suite.run(changed=True)
    assert [(each.verdict, each.taken_over or None) for each in suite.results()] == [
        ("passed", "run-2"),
        ("failed", "run-2"),
        ("invalid", None),
    ]


def test_a_file_whose_name_another_folder_got_too_is_not_taken_over(suite: KeptSuite) -> None:
    copy = suite.folder / "more" / "valid_warranty_001.yaml"
    copy.parent.mkdir()
    copy.write_bytes((suite.folder / copy.name).read_bytes())
    assert suite.run(changed=True) == 4
    assert [each.name for each in suite.results() if each.verdict == "invalid"] == ["valid_warranty_001"] * 2


def test_more_repetitions_than_there_were_run_anew(suite: KeptSuite) -> None:
    suite.run(repeat=2, changed=True)
    assert origins(suite) == [None] * 6
    suite.run(repeat=2, changed=True)
    assert origins(suite) == ["run-2"] * 6
    suite.run(changed=True)
    assert origins(suite) == ["run-2"] * 3
    suite.run(repeat=2)
    with closing(sqlite3.connect(suite.file)) as store, store:
        store.execute("UPDATE results SET verdict = 'failed' WHERE repetition = 2")  # flaky, where the first passed
    suite.run(changed=True)
    assert origins(suite) == [None, "run-5", None]


def test_what_was_taken_over_is_there_after_ctrl_c_and_the_run_goes_on(suite: KeptSuite) -> None:
    suite.write(3, failing)
    assert suite.run_until(0, changed=True) == 130
    assert origins(suite) == ["run-1", "run-1"]
    assert suite.run(resume="") == 4
    assert origins(suite) == ["run-1", "run-1", None]


def test_every_report_names_the_run(suite: KeptSuite, tmp_path: Path) -> None:
    suite.write(3)
    suite.write(4)
    forms = ("json", "jsonl", "csv", "junit", "html", "markdown")
    files = {f"{form}_file": tmp_path / f"report.{form}" for form in forms}
    suite.run(changed=True, **files)
    texts = {form: (tmp_path / f"report.{form}").read_text(encoding="utf-8") for form in forms}
    wanted = ["run-1", "run-1", "run-1", None]
    report = json.loads(texts["json"])
    assert [each.get("taken_over") for each in report["results"]] == wanted
    assert report["taken_over"] == {"run-1": 3}
    assert [json.loads(line).get("taken_over") for line in texts["jsonl"].splitlines()] == wanted
    assert [row["taken_over"] or None for row in csv.DictReader(texts["csv"].splitlines())] == wanted
    (junit,) = junitparser.JUnitXml.fromstring(texts["junit"].encode())
    assert {each.name: each.value for each in junit.properties()}["taken_over"] == "3 of 4 scenarios, from run-1"
    assert [each.system_out for each in junit] == ["taken over from run-1"] * 3 + [None]
    assert texts["html"].count("taken over from run-1") == 3
    assert "failed, taken over from run-1" in texts["markdown"]
    assert "`valid_warranty_001` (taken over), " in texts["markdown"]


def test_show_names_the_run(suite: KeptSuite, capsys: pytest.CaptureFixture[str]) -> None:
    suite.run(changed=True)
    with RunStore(suite.file) as store:
        run = store.find_run("last")
        print_run(store, run, Terminal(sys.stdout))
        one = json_result(run, next(store.cases(run)).shown)
    assert "Taken over from run-1: 3 results\n" in capsys.readouterr().out
    assert one["taken_over"] == "run-1"


def test_without_a_store_file_everything_runs(tmp_path: Path) -> None:
    suite = KeptSuite(tmp_path / "scenarios")
    suite.write(1)
    suite.run(changed=True)
    assert origins(suite) == [None]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"kept": None}, "--changed needs the run store"),
        ({"llm": "live"}, "a live model can"),
        ({"llm": "record"}, "a live model can"),
        ({"resume": ""}, "--changed begins a new run"),
        ({"last_failed": True}, "--changed and --last-failed choose different scenarios"),
        ({"records_dir": Path("records")}, "--records has the record of every run"),
        ({"caution_curve": True}, "Remove --changed"),
    ],
)
def test_what_makes_no_sense_with_it_is_refused(suite: KeptSuite, options: dict[str, object], problem: str) -> None:
    with pytest.raises(AgentError, match=problem) as caught:
        suite.run_and_print(changed=True, **options)
    assert caught.value.exit_code == 2


@pytest.fixture
def incomplete(suite: KeptSuite) -> KeptSuite:
    (suite.folder / "judge.py").write_text("import importlib\nimportlib.import_module(input())\n")
    suite.run_until(2)
    return suite


REASON = "judge.py, line 2: it imports what only a run tells"


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="there is no file that cannot be read")
def test_a_file_that_cannot_be_read_is_not_the_same_as_last_time() -> None:
    inputs = verdict_inputs.VerdictInputs(Config(), Path("evals"), "offline", "command:cat /proc/self/mem")
    assert "mem cannot be read (Input/output error)" in inputs.set.incomplete


@pytest.mark.parametrize(
    ("make", "kind"),
    [(os.mkfifo, "a pipe"), (lambda path: path.symlink_to("/dev/null"), "a device")],
    ids=["pipe", "device"],
)
def test_what_is_no_file_is_neither_waited_for_nor_read(
    tmp_path: Path, make: Callable[[Path], None], kind: str
) -> None:
    (tmp_path / "judge.py").write_text(JUDGE)
    names = ("helper.py", "other.py")
    for name in names:
        make(tmp_path / name)
    inputs = verdict_inputs.VerdictInputs(Config(), tmp_path, "offline", None)
    assert inputs.set.incomplete == tuple(f"{name} cannot be read (this is {kind}, not a file)" for name in names)


def test_what_is_missing_or_too_large_is_not_the_same_as_last_time(tmp_path: Path) -> None:
    inputs = verdict_inputs.VerdictInputs(Config(), tmp_path, "replay", None)
    assert inputs.set.incomplete == ("the recordings cannot be read (No such file or directory)",)
    (tmp_path / "judge.py").write_text(f"{JUDGE}    open('data')")
    with (tmp_path / "data").open("wb") as data:
        data.truncate(257 << 20)
    inputs = verdict_inputs.VerdictInputs(Config(), tmp_path, "offline", None)
    assert "data is too large to be looked at" in inputs.set.incomplete


def test_incomplete_inputs_are_refused(incomplete: KeptSuite) -> None:
    with pytest.raises(
        AgentError, match=f"what verdicts depend on is incomplete: {REASON}. Remove --changed"
    ) as caught:
        incomplete.run(changed=True)
    assert caught.value.exit_code == 2


def test_a_resumed_run_and_stale_say_that_its_inputs_are_incomplete_and_never_that_a_verdict_holds(
    incomplete: KeptSuite, capsys: pytest.CaptureFixture[str]
) -> None:
    incomplete.run(resume="")
    assert capsys.readouterr().err == f"Resuming run-2: 2 results are taken over\nincomplete: {REASON}\n"
    with RunStore(incomplete.file) as store:
        run = store.find_run("last")
        print_run(store, run, Terminal(sys.stdout))
        assert f"incomplete: {REASON}\n" in capsys.readouterr().out
        found = find_stale(store, "last", incomplete.config, incomplete.folder)
    print_stale(found, Terminal(sys.stdout))
    shown = capsys.readouterr().out
    assert "✓" not in shown
    assert shown.endswith(f"incomplete: {REASON} (3 verdicts)\n3 verdicts of the run: not known whether they hold\n")
    assert (found.stale, len(found.unknown)) == (frozenset(), 3)
    assert found.as_dict()["incomplete"][0]["reason"] == REASON


def test_no_unchanged_scenario_is_parsed(suite: KeptSuite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.write(2)
    suite.run()
    monkeypatch.setattr("guarantee_email_agent.eval.loader.load_documents", pytest.fail)
    os.utime(suite.folder / "valid_warranty_001.yaml")
    assert suite.run(changed=True) == 0
    assert origins(suite) == ["run-2"] * 3
