import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from stored_runs import StoredRuns, ended, new_run, result, results_of

from guarantee_email_agent.runlog import run_reader
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.records import (
    NOT_STORED,
    Case,
    CaseResult,
    Check,
    Input,
    InputSet,
    Nearest,
    SuiteKey,
    Usage,
)
from guarantee_email_agent.runlog.run_reader import GroupCounts, RunStore
from guarantee_email_agent.runlog.run_writer import RunWriter

KEY = SuiteKey("eval", "evals/scenarios", llm="offline")


def names(results: list[CaseResult]) -> list[str]:
    return [each.name for each in results]


def unplaced(case: Case) -> Case:
    """As it was before it was written."""
    return Case(tuple(each._replace(place=NOT_STORED) for each in case.runs))


def test_a_run_is_found_by_its_id_or_the_unique_beginning_of_one(runs: StoredRuns) -> None:
    runs.write(1, [])
    runs.write(20, [])
    with RunStore(runs.file) as store:
        assert store.find_run(new_run(20).id).number == 2
        assert store.find_run("20260118T100020").number == 2
        with pytest.raises(StoreError, match="20260118 is the beginning of several runs: 20260118T100020-") as caught:
            store.find_run("20260118")
    assert caught.value.code == "store_ambiguous_run"


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "a'; DROP TABLE runs", "x" * 1000, "%", "ü", "a\nb"])
def test_what_is_no_id_is_refused(runs: StoredRuns, name: str) -> None:
    runs.write(1, [])
    with RunStore(runs.file) as store, pytest.raises(StoreError, match="is no id of a run") as caught:
        store.find_run(name)
    assert caught.value.code == "store_no_such_run"
    assert len(caught.value.message) < 400
    assert caught.value.message.isprintable()


def test_an_id_that_is_not_there_gets_a_suggestion(runs: StoredRuns) -> None:
    runs.write(1, [])
    with RunStore(runs.file) as store:
        with pytest.raises(StoreError, match="did you mean 'green'"):
            store.find_run("gren")
        with pytest.raises(StoreError, match="did you mean '20260118T100001-00000001'"):
            store.find_run("20260118T100001-00000002")


def test_last_and_green(runs: StoredRuns) -> None:
    runs.write(1, [])
    runs.write(2, [], "failed", 4)
    runs.write(3, [], llm="live")
    with RunStore(runs.file) as store:
        assert store.find_run("last").number == 3
        assert store.find_run("last", KEY).number == 2
        assert store.find_run("green", KEY).number == 1
        with pytest.raises(StoreError, match="no run has passed its gate of other yet"):
            store.find_run("green", KEY._replace(suite="other"))


def test_a_part_of_a_suite_is_not_the_suite(runs: StoredRuns) -> None:
    runs.write(1, [], selection=("hand_over_*",))
    with RunStore(runs.file) as store:
        assert store.runs(KEY) == []
        assert len(store.runs(KEY._replace(selection=("hand_over_*",)))) == 1


def test_runs_are_listed_page_by_page_the_newest_first(runs: StoredRuns) -> None:
    for number in range(1, 6):
        runs.write(number, [])
    with RunStore(runs.file) as store:
        first = store.runs(limit=2)
        assert [run.number for run in first] == [5, 4]
        assert [run.number for run in store.runs(before=4, limit=2)] == [3, 2]
        assert store.runs(command="grade") == []


def test_more_results_than_a_page_come_in_order(runs: StoredRuns) -> None:
    runs.write(1, [result(position) for position in range(1, 2502)])
    with RunStore(runs.file) as store:
        run = store.find_run("last")
        assert [each.position for each in results_of(store, run)] == list(range(1, 2502))


WHOLE = CaseResult(
    name="valid_warranty_001",
    position=1,
    verdict="failed",
    category="valid-warranty",
    language="de",
    description="Customer 1",
    file="evals/scenarios/valid_warranty_001.yaml",
    duration_ms=3.125,
    usage=Usage(2, 100, 20, 3, 4, None, 900),
    checks=(
        Check("email_sent", "", "True", "True", passed=True),
        Check("body", "no 'a'", "'a'", "'\ud800'", phrase="a"),
    ),
    harm=("a machine was answered",),
    nearest=(Nearest("a", "It is.", "It [-a-] {+is+}."),),
    needs_review=True,
    source=b"scenario_id: \xff",
    request={"body": "\ud800\x00"},
    response={"response_body": "It is.", "calls": [{"server": "mail"}]},
    trace={"read": None, "execution_trace": [{}, {}]},
    judgement={"feedback": "no", "details": {"checks": 1}},
    step_ms=(1.5, None),
    mail=b"0123456789abcdef",
)


@pytest.mark.parametrize("command", ["eval", "grade"])
def test_cases_read_back_as_they_were_written(runs: StoredRuns, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_reader, "_PAGE_OF_CASES", 2)
    of = 1 if command == "eval" else 3
    passed = WHOLE._replace(verdict="passed", repetition=2, harm=(), checks=WHOLE.checks[:1], step_ms=(), of=of)
    bare = [CaseResult(f"case_{number}", number, "invalid", harm=None) for number in range(2, 6)]
    first = (WHOLE._replace(of=of), passed)
    runs.write(1, [*first, *bare], "interrupted", 130, command=command, planned=9)
    with RunStore(runs.file) as store:
        run = store.find_run("last")
        read = list(map(unplaced, store.cases(run)))
        assert unplaced(Case(tuple(store.find_case(run, WHOLE.name)))) == Case(first)
        with pytest.raises(StoreError, match=r"there is no 'case_9' in the run .*did you mean"):
            store.find_case(run, "case_9")
    together = [first] if command == "eval" else [(each,) for each in first]
    assert read == [Case(runs) for runs in (*together, *((each,) for each in bare))]
    assert read[-5].name == ("valid_warranty_001" if of == 1 else "valid_warranty_001 (2 of 3)")


def test_what_was_taken_over_reads_back_as_it_was_with_the_run_that_gave_it(runs: StoredRuns) -> None:
    runs.write(1, [WHOLE])
    RunWriter(runs.file, new_run(2), runs.warnings.append, take_over=[(7, 1)]).finish(ended("failed", 4))
    with RunStore(runs.file) as store:
        (case,) = store.cases(store.find_run("last"))
    assert unplaced(case) == Case((WHOLE._replace(position=7, taken_over=new_run(1).id),))


@pytest.mark.parametrize("part", ["request", "judgement"])
@pytest.mark.parametrize(
    "damaged",
    [b"{}", zlib.compress(b'{"a": '), zlib.compress(b"[" * 200_000 + b"]" * 200_000)],
    ids=["not compressed", "no JSON", "deeply nested"],
)
def test_a_damaged_transcript_is_one_line(runs: StoredRuns, part: str, damaged: bytes) -> None:
    runs.write(1, [WHOLE])
    with closing(sqlite3.connect(runs.file)) as connection, connection:
        connection.execute(f"UPDATE blobs SET data = ? WHERE id = (SELECT {part} FROM results)", (damaged,))
    with RunStore(runs.file) as store, pytest.raises(StoreError, match="it is damaged") as caught:
        list(store.cases(store.find_run("last")))
    assert caught.value.code == "store_corrupt"


@pytest.mark.parametrize(
    "change", ["results SET duration_ms = 'x'", "results SET input_tokens = 'x'", "runs SET duration_s = x'ff'"]
)
def test_a_column_of_another_type_is_one_line(runs: StoredRuns, change: str) -> None:
    runs.write(1, [WHOLE])
    with closing(sqlite3.connect(runs.file)) as connection, connection:
        connection.execute(f"UPDATE {change}")
    with RunStore(runs.file) as store, pytest.raises(StoreError, match="it is damaged"):
        list(store.cases(store.find_run("last")))


def test_the_history_of_a_case_survives_a_new_description(runs: StoredRuns) -> None:
    for number, verdict in enumerate(("passed", "failed", "passed"), 1):
        runs.write(number, [result(1, verdict, description=f"Version {number}"), result(2)])
    with RunStore(runs.file) as store:
        history = store.history("valid_warranty_001")
        assert [(each.place.run, each.verdict, each.description) for each in history] == [
            (3, "passed", "Version 3"),
            (2, "failed", "Version 2"),
            (1, "passed", "Version 1"),
        ]
        assert [each.place.run for each in store.history("valid_warranty_001", limit=1)] == [3]
        assert names(store.results_of_case(store.find_run("last"), "valid_warranty_002")) == ["valid_warranty_002"]


def test_inputs_say_which_file_changed(runs: StoredRuns) -> None:
    same = Input.of("lexicon", "en.md", b"words")
    for number, text in enumerate((b"Be kind.", b"Be short."), 1):
        inputs = InputSet([same, Input.of("instruction", "main.md", text), Input.of("record", "x", b"big", keep=False)])
        runs.write(number, [result(1, inputs=inputs)])
    with RunStore(runs.file) as store:
        new, old = [store.inputs(each.place.input_set or 0) for each in store.history("valid_warranty_001")]
    assert [one.name for one, other in zip(new, old, strict=True) if one.digest != other.digest] == ["main.md"]
    assert [each.content for each in new] == [b"Be short.", b"words", None]


def test_a_store_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"nowhere\.db: there is no run store") as caught:
        RunStore(tmp_path / "nowhere.db")
    assert (caught.value.code, caught.value.exit_code) == ("store_not_found", 2)
    assert list(tmp_path.iterdir()) == []


def test_a_case_whose_name_two_places_bear_is_found_without_what_lies_between(runs: StoredRuns) -> None:
    same = "valid_warranty_001"
    runs.write(1, [result(1, name=same), result(2), result(3, name=same)], planned=3)
    with RunStore(runs.file) as store:
        found = store.find_case(store.find_run("last"), same)
    assert [(each.position, each.name) for each in found] == [(1, same), (3, same)]
    runs.write(2, [result(1, name="a\nb", repetition=each, of=2) for each in (1, 2)], command="grade")
    with RunStore(runs.file) as store:
        run = store.find_run("last")
        assert [each.repetition for each in store.find_case(run, "a\nb (2 of 2)")] == [2]  # as reports name it
        with pytest.raises(StoreError, match="there is no 'a"):
            store.find_case(run, "a\nb (3 of 2)")


def test_groups_count_cases_and_not_repetitions(runs: StoredRuns) -> None:
    kept = [
        result(1, repetition=1, language="en"),
        result(1, "failed", repetition=2, language="en"),
        result(2, language="de", category="missing-info"),
        result(2, repetition=2, language="de", category="missing-info"),
        result(3, language="fr"),  # of which nobody knows what the other repetition comes to
    ]
    runs.write(1, kept, repeat=2, announced=[f"valid_warranty_00{number}" for number in (1, 2, 3)])
    with RunStore(runs.file) as store:
        groups = store.group_counts(run := store.find_run("last"))
        assert (run.total, run.planned, run.passed, store.missing_cases(run)) == (2, 3, 1, ["valid_warranty_003"])
        known = [case.name for case in store.cases(run)]
        assert known == [case.name for case in store.outcomes(run)] == list(store.passed_by_name(run))
        assert known == [case.name for case in store.cases(run, undecided=True)][:2]
    assert groups == [GroupCounts("missing-info", "de", 1, 1), GroupCounts("valid-warranty", "en", 0, 1)]
    assert [each.failed for each in groups] == [0, 1]
