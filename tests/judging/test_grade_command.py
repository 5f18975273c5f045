"""`grade` over a folder of tasks and one of records, and what it leaves in the run store."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from stored_runs import results_of
from tasks_and_sandboxes import write_task
from viewed_runs import ViewedRuns

from guarantee_email_agent.judging.grade_command import GradeOptions, grade_command
from guarantee_email_agent.runlog.comparison import compare_runs
from guarantee_email_agent.runlog.records import KeptRun
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.views.comparison_report import json_comparison, print_comparison
from guarantee_email_agent.runlog.views.result_view import print_result, print_run
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.terminal import Terminal


class Folders:
    """Tasks b to f and records for a to e; c is no usable task, e no usable record."""

    def __init__(self, folder: Path) -> None:
        self.tasks, self.records, self.report = folder / "tasks", folder / "results", folder / "report.json"
        self.records.mkdir()
        for name in "bcdef":
            write_task(self.tasks / name, "instruction: 1\n" if name == "c" else "instruction: Say 42\n")
        for name, answer in {"a": "42", "b": "42", "c": "42", "d": "41"}.items():
            (self.records / f"{name}.json").write_text(json.dumps({"task_result": answer}))
        (self.records / "e.json").write_text("[]")
        for name in ("_totals.json", ".hidden.json", "notes.txt"):
            (self.records / name).touch()

    def grade(self, jobs: int = 1, executor: str = "local") -> list[dict[str, Any]]:
        options = GradeOptions(
            directory=self.tasks, results=self.records, jobs=jobs, executor=executor, json_file=self.report
        )
        assert grade_command(options, io.StringIO(), io.StringIO(), bytes) == 4
        return json.loads(self.report.read_bytes())["results"]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_task_and_every_record_counts_in_the_order_of_the_names(folders: Folders, jobs: int) -> None:
    results = folders.grade(jobs)
    assert [(result["task_name"], result["verdict"]) for result in results] == [
        ("a", "error"),
        ("b", "passed"),
        ("c", "error"),
        ("d", "failed"),
        ("e", "error"),
        ("f", "error"),
    ]
    reasons = {result["task_name"]: str(result["error"]) for result in results}
    assert "there is no task for the record" in reasons["a"]
    assert "a.json" in reasons["a"]
    assert "instruction is the number 1" in reasons["c"]
    assert "e.json: a record is a JSON object" in reasons["e"]
    assert reasons["f"] == "there is no record f.json for this task"


def test_several_records_of_a_task_are_judged_each_and_the_task_passed_where_all_did(folders: Folders) -> None:
    answers = {"f": "42", "b": "41", "dd": "42"}
    lines = [{"task_name": name, "task_result": answers[name]} for name in ("f", "b", "f", "dd")]
    (folders.records / "more.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n{")
    results = folders.grade(jobs=2)
    assert [(each["index"], each["verdict"]) for each in results if each["task_name"] == "b"] == [
        (1, "passed"),
        (2, "failed"),
    ]
    report = json.loads(folders.report.read_bytes())
    assert report["totals"] == {"total": 10, "passed": 3, "failed": 2, "error": 5}
    summed_up = {each.pop("task_name"): each for each in report["tasks"]}
    assert summed_up["b"] == {"passed": False, "records_passed": 1, "records": 2}
    assert summed_up["f"] == {"passed": True, "records_passed": 2, "records": 2}
    assert "index" not in next(each for each in results if each["task_name"] == "d")
    assert "more.jsonl:4 – did you mean 'd'?" in next(each["error"] for each in results if each["task_name"] == "dd")
    assert results[-1]["task_name"] == f"{folders.records}/more.jsonl:5"


def test_a_folder_of_records_among_the_tasks_may_be_a_file_of_lines(folders: Folders) -> None:
    folders.records = folders.tasks / "results" / "runs.jsonl"
    folders.records.parent.mkdir()
    folders.records.write_text('{"task_name": "b", "task_result": "42"}\n')
    results = folders.grade()
    assert [result["task_name"] for result in results] == ["b", "c", "d", "e", "f"]
    assert results[-1]["error"] == f"there is no record of this task in {folders.records}"


@pytest.mark.parametrize(
    ("transcript", "content"),
    [
        ("openai", [{"role": "assistant", "content": "42"}]),
        ("langchain", {"messages": [["human", "Say 42"], ["ai", "42"]]}),
        ("inspect", {"messages": [{"role": "assistant", "content": "42"}]}),
    ],
)
def test_transcripts_of_other_programs(tmp_path: Path, transcript: str, content: object) -> None:
    tasks, file, lines = tmp_path / "tasks", tmp_path / "run.json", tmp_path / "runs.jsonl"
    write_task(tasks / "1", "instruction: Say 42\n")
    file.write_text(json.dumps(content))

    def code(**what: Any) -> int:
        options = GradeOptions(transcript=transcript, **what)
        return grade_command(options, io.StringIO(), io.StringIO(), lambda _: file.read_bytes())

    assert code(directory=tasks / "1", result_file=str(file)) == 0
    assert code(directory=tasks / "1", result_file="-") == 0
    messages = content["messages"] if isinstance(content, dict) else content
    line = json.dumps({"task_name": "1", "messages": messages})
    lines.write_text(f"{line}\n{line}\n")
    assert code(directory=tasks, results=lines) == 0
    lines.write_text(f"{line}\n{{}}\n")
    assert code(directory=tasks, results=lines) == 4


def test_an_answer_is_no_transcript(tmp_path: Path) -> None:
    write_task(tmp_path / "b", "instruction: Say 42\n")
    options = GradeOptions(directory=tmp_path / "b", answer="42", transcript="openai")
    with pytest.raises(ConfigurationError, match="--from says what --result or --results holds"):
        grade_command(options, io.StringIO(), io.StringIO(), bytes)


JUDGE = """\
def test(result):
    print("looking")
    return {"passed": result["task_result"] == "42", "feedback": "said " + result["task_result"], "details": {"n": 1}}
"""


class KeptGrading:
    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "runs.db"
        self.tasks, self.records = folder / "tasks", folder / "records"
        self.records.mkdir()
        for name, answer in (("six", "42"), ("seven", "41")):
            task = self.tasks / name
            task.mkdir(parents=True)
            (task / "task.yaml").write_text("instruction: Say it.\n")
            (task / "test.py").write_text(JUDGE)
            (self.records / f"{name}.json").write_text(json.dumps({"task_result": answer}))

    def grade(self, *, stream: io.StringIO | None = None, **options: Any) -> int:
        kept = KeptRun(self.file, None, lambda: "2026-01-18T10:00:00Z")
        values = {"directory": self.tasks, "results": self.records, "kept": kept, **options}
        return grade_command(GradeOptions(**values), stream or io.StringIO(), io.StringIO(), lambda _: b"")


@pytest.fixture
def grading(tmp_path: Path) -> KeptGrading:
    return KeptGrading(tmp_path)


def test_every_verdict_is_kept_with_what_the_judge_said(grading: KeptGrading) -> None:
    assert grading.grade() == 4
    with RunStore(grading.file) as store:
        run = store.find_run("last")
        results = results_of(store, run)
        first = store.result(results[0].place.id)
        (check,) = store.checks(results[0].place.id)
    assert (run.command, run.suite, run.outcome, run.exit_code) == ("grade", grading.tasks.as_posix(), "failed", 4)
    assert (run.planned, run.total, run.passed, run.failed) == (2, 2, 1, 1)
    assert run.id.startswith("20260118T100000-")
    assert [(each.name, each.verdict) for each in results] == [("seven", "failed"), ("six", "passed")]
    assert first.file == (grading.tasks / "seven" / "test.py").as_posix()
    assert first.judgement == {
        "verdict": "failed",
        "feedback": "said 41",
        "details": {"n": 1},
        "error": None,
        "output": "looking\n",
    }
    assert (check.name, check.reason) == ("", "said 41")


def test_what_a_verdict_depended_on_is_named_and_the_record_stays_where_it_is(grading: KeptGrading) -> None:
    grading.grade()
    with RunStore(grading.file) as store:
        first = results_of(store, store.find_run("last"))[0]
        inputs = {(each.kind, each.name): each.content for each in store.inputs(first.place.input_set or 0)}
    assert inputs["judge", "test.py"] == JUDGE.encode()
    assert inputs["task", "task.yaml"] == b"instruction: Say it.\n"
    assert inputs["record", "seven.json"] is None
    assert inputs["library", "python"]


def test_what_a_judge_imports_and_what_is_not_known_of_it_are_named(grading: KeptGrading) -> None:
    folder = grading.tasks / "seven"
    (folder / "inner").mkdir()
    (folder / "inner" / "helper.py").write_text("LIMIT = 1\n")
    (folder / "test.py").write_text(f"from inner import helper\nimport os\n{JUDGE}\nos.listdir('.')\n")
    grading.grade()
    with RunStore(grading.file) as store:
        run = store.find_run("last")
        first = results_of(store, run)[0]
        inputs = {(each.kind, each.name): each.content for each in store.inputs(first.place.input_set or 0)}
        assert store.incomplete_inputs(run) == ["test.py, line 7: it reads whatever lies in a folder"]
    assert inputs["judge", "inner/helper.py"] == b"LIMIT = 1\n"


def test_a_single_record_has_its_place_and_an_answer_has_none(grading: KeptGrading) -> None:
    grading.grade(directory=grading.tasks / "six", results=None, result_file=str(grading.records / "six.json"))
    grading.grade(directory=grading.tasks / "six", results=None, answer="42")
    with RunStore(grading.file) as store:
        traces = [store.result(results_of(store, run)[0].place.id).trace for run in store.runs()]
    assert traces[0] is None
    assert traces[1]["record"]["file"] == str(grading.records / "six.json")


def test_a_comparison_names_the_task_of_a_changed_file_and_what_the_judge_says_now(grading: KeptGrading) -> None:
    grading.grade()
    (grading.tasks / "six" / "test.py").write_text(JUDGE.replace("said ", "answered "))
    (grading.tasks / "seven" / "task.yaml").write_text("instruction: Say it aloud.\n")
    grading.grade()
    with RunStore(grading.file) as store:
        after, before = store.runs()
        found = compare_runs(store, before, after)
    assert {(each.kind, each.name) for each in found.contents.shown} == {
        ("judge", "six/test.py"),
        ("task", "seven/task.yaml"),
    }
    assert [tuple(each) for each in found.feedback.shown] == [("six", "said 42", "answered 42")]
    stream = io.StringIO()
    print_comparison(found, Terminal(stream, color=False, ascii_only=False))
    assert "Changed feedback: 1\n    six:\n      [-said-] {+answered+} 42\n" in stream.getvalue()
    assert json_comparison(found)["changed_feedback"][0]["name"] == "six"


def test_several_records_of_a_task_are_its_repetitions(grading: KeptGrading) -> None:
    lines = [{"task_name": "six", "task_result": answer} for answer in ("42", "41", "42")]
    file = grading.folder / "records.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    grading.grade(results=file)
    grading.grade(results=file)
    with RunStore(grading.file) as store:
        run, before = store.runs()
        assert (run.reached, compare_runs(store, before, run).missing) == ("", 0)
        assert run._replace(outcome="interrupted").reached == "not all of 4"
        history = [(each.name, each.repetition, each.verdict) for each in results_of(store, run)]
    assert history == [("seven", 1, "error"), ("six", 1, "passed"), ("six", 2, "failed"), ("six", 3, "passed")]


def test_scores_are_averaged_over_the_tasks_that_have_one_in_every_form(grading: KeptGrading) -> None:
    for name, returned in (("five", {"score": 0.25}), ("six", {"score": 0.75}), ("seven", {"score": None})):
        (grading.tasks / name).mkdir(exist_ok=True)
        verdict = {"passed": True, "feedback": "", **returned}
        (grading.tasks / name / "test.py").write_text(f"def test(result): return {verdict!r}\n")
        (grading.records / f"{name}.json").write_text('{"task_result": "x"}')
    shown = "Mean score: 0.50 (95% interval 0.01 to 0.99), of 2 of 3 tasks"
    forms = ("json", "jsonl", "csv", "html", "markdown")
    files = {form: grading.folder / f"report.{form}" for form in forms}
    stream = io.StringIO()
    assert grading.grade(stream=stream, **{f"{form}_file": file for form, file in files.items()}) == 0
    written = {form: file.read_text() for form, file in files.items()}
    report = json.loads(written["json"])
    assert report["score"] == {"mean": 0.5, "low": 0.0063, "high": 0.9937, "scored": 2, "total": 3}
    assert [row["eval"].get("score") for row in report["results"]] == [0.25, None, 0.75]
    assert [json.loads(row)["eval"].get("score") for row in written["jsonl"].splitlines()] == [0.25, None, 0.75]
    assert [row["score"] for row in csv.DictReader(written["csv"].splitlines())] == ["0.25", "", "0.75"]
    with RunStore(grading.file) as store:
        run = store.find_run("last")
        print_run(store, run, Terminal(stream, color=False, ascii_only=False))
        print_result(run, store.find_case(run, "five"), Terminal(stream, color=False, ascii_only=False))
    pages = ViewedRuns(grading.file)
    assert stream.getvalue().count(shown) == 2
    assert "score: 0.25" in stream.getvalue()
    for text in (written["html"], written["markdown"], pages.get(f"/runs/{run.id}").text):
        assert shown.partition(": ")[2].partition(" (")[2] in text.replace("\\", "")
    assert "score 0.25" in pages.get(f"/runs/{run.id}/results/five").text


def test_a_store_that_cannot_be_used_is_a_warning(grading: KeptGrading, capsys: pytest.CaptureFixture[str]) -> None:
    grading.file.mkdir()
    assert grading.grade() == 4
    assert capsys.readouterr().err.startswith(f"WARNING This run is not kept: {grading.file}: it is a folder.")
