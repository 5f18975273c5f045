"""What people say beside what a model says, and which questions gate by that."""

import csv
import hashlib
import io
import json
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from messages_server import MessagesServer, anthropic_config
from rubric_judge import QUESTION, SAID, ask, judge, said
from stored_runs import StoredRuns

from guarantee_email_agent.judging.calibration import calibrate, calibrations_of
from guarantee_email_agent.judging.grading import grade_task
from guarantee_email_agent.judging.rubric import TaskRubrics
from guarantee_email_agent.judging.task import load_task
from guarantee_email_agent.runlog.records import CaseResult
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.utils.errors import EXIT_EVALUATION, EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.terminal import Terminal

MODEL: Final = "claude-sonnet-4-6"
OTHER: Final = "Is it short?"


def is_held_out(name: str) -> bool:
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1


class Calibrated:
    """A run of 200 cases: people let every second one pass, and so does the model, but for those in `wrong`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.runs, self.labels = folder, StoredRuns(folder / "runs.db"), folder / "labels.csv"
        (folder / "suite").mkdir()
        self.names = [f"case_{number:03}" for number in range(200)]
        self.people = {name: ("pass", "fail")[number % 2] for number, name in enumerate(self.names)}

    def run(self, wrong: dict[str, str] | None = None) -> None:
        answers = self.people | (wrong or {})
        results = [self._result(position, name, answers[name]) for position, name in enumerate(self.names, 1)]
        self.runs.write(1, results)

    def _result(self, position: int, name: str, answer: str) -> CaseResult:
        row = {"question": QUESTION, "answer": answer, "quote": "", "reason": "", "model": MODEL, "gates": False}
        unasked = {**row, "question": OTHER, "answer": "unknown", "model": ""}
        file = str(self.folder / "suite" / f"{name}.yaml")
        return CaseResult(name, position, "passed", file=file, judgement={"rubric": [row, unasked]})

    def label(self, **changed: str) -> None:
        rows = [(name, QUESTION, label) for name, label in (self.people | changed).items()]
        content = io.StringIO(newline="")
        csv.writer(content).writerows([("id", "question", "label"), *rows])
        self.labels.write_text(content.getvalue())

    def calibrate(self, threshold: float | None = None) -> tuple[int, str]:
        stream = io.StringIO()
        with RunStore(self.runs.file) as store:
            terminal = Terminal(stream, color=False, ascii_only=False)
            code = calibrate(self.labels, store, store.find_run("last"), threshold, terminal)
        return code, stream.getvalue()


@pytest.fixture
def calibrated(tmp_path: Path) -> Calibrated:
    return Calibrated(tmp_path)


def test_only_the_half_that_nobody_tunes_by_is_counted_and_the_other_is_shown(calibrated: Calibrated) -> None:
    seen = next(name for name in calibrated.names if not is_held_out(name) and calibrated.people[name] == "fail")
    unseen = next(name for name in calibrated.names if is_held_out(name) and calibrated.people[name] == "fail")
    calibrated.run({seen: "unknown", unseen: "pass"})
    calibrated.label()
    code, told = calibrated.calibrate()
    (found,) = calibrations_of(calibrated.folder / "suite" / "below")
    counts = [
        sum(is_held_out(name) for name, label in calibrated.people.items() if label == each)
        for each in ("pass", "fail")
    ]
    assert (found.question, found.model, found.gates) == (QUESTION, MODEL, False)
    assert (found.passes, found.fails) == ((counts[0], counts[0]), (counts[1] - 1, counts[1]))
    assert round(found.bounds[0] ** counts[0], 4) == 0.05  # Clopper–Pearson of all
    assert (code, f"{seen} (fail, not unknown)" in told, unseen in told) == (EXIT_SUCCESS, True, False)
    assert "gates nothing: no --threshold is set" in told
    (calibrated.folder / "suite" / "_manifest.yml").write_text("drawn_from: 9\n")
    with pytest.raises(ConfigurationError, match="one file more would break the draw"):
        calibrated.calibrate()


@pytest.mark.parametrize(("threshold", "code"), [(90.0, EXIT_SUCCESS), (99.0, EXIT_EVALUATION)])
def test_a_question_gates_where_both_bounds_reach_the_threshold(
    calibrated: Calibrated, threshold: float, code: int
) -> None:
    calibrated.run()
    calibrated.label()
    assert calibrated.calibrate(threshold)[0] == code
    (found,) = calibrations_of(calibrated.folder / "suite")
    assert found.gates is (code == EXIT_SUCCESS)
    calibrated.label(**dict.fromkeys([n for n, label in calibrated.people.items() if label == "fail"], ""))
    assert calibrated.calibrate(threshold)[0] == EXIT_EVALUATION  # nobody knows of fails any more


def test_without_a_file_one_to_be_filled_in_is_written(calibrated: Calibrated) -> None:
    calibrated.run()
    assert "Fill in pass or fail as label" in calibrated.calibrate()[1]
    rows = list(csv.DictReader(io.StringIO(calibrated.labels.read_text())))
    assert [(row["\ufeffid"], row["question"], row["label"]) for row in rows] == [
        (name, QUESTION, "") for name in calibrated.names
    ]
    with pytest.raises(ConfigurationError, match="nothing is labelled yet"):
        calibrated.calibrate()


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("id,label\ncase_000,pass\n", "labels.csv: columns are missing. It needs id, question, label"),
        (f"id;question;label\ncase_000;{QUESTION};maybe\n", "labels.csv:2: the label is 'maybe'. Write pass or fail"),
        (f"id,question,label\ncase_999,{QUESTION},pass\n", "labels.csv:2: the run has no answer to this question"),
        (f"id,question,label\ncase_000,{OTHER},pass\n", "labels.csv:2: the run has no answer to this question"),
        ("id,question,label\n" + f"case_000,{QUESTION},pass\n" * 2, "labels.csv:3: the same case and question"),
        ("id,question,label\ncase_000\n", "nothing is labelled yet"),
    ],
)
def test_labels_that_cannot_be_used_are_one_line(calibrated: Calibrated, labels: str, said: str) -> None:
    calibrated.run()
    calibrated.labels.write_text(labels)
    with pytest.raises(ConfigurationError) as error:
        calibrated.calibrate()
    assert said in error.value.message


@pytest.mark.parametrize(
    ("own", "question", "model", "gates", "verdict"),
    [
        (said("fail", "valid"), QUESTION, MODEL, True, "failed"),
        (said("pass", "not in it"), QUESTION, MODEL, True, "failed"),  # unknown is no pass
        (said("pass", "valid"), QUESTION, MODEL, True, "passed"),
        (said("fail", "valid"), f"{QUESTION} ", MODEL, False, "passed"),
        (said("fail", "valid"), QUESTION, "another-model", False, "passed"),
    ],
)
def test_another_question_or_model_is_uncalibrated_again(
    tmp_path: Path, server: MessagesServer, own: Any, question: str, model: str, gates: bool, verdict: str
) -> None:
    rubrics = [
        {"question": question, "model": model, "passes": [90, 90], "fails": [90, 90], "threshold": 90.0},
        {"question": OTHER, "model": MODEL, "passes": [90, 90], "fails": [90, 90], "threshold": 90.0},
    ]
    (tmp_path / "rubric_calibration.json").write_text(json.dumps({"rubrics": rubrics}))
    folder = tmp_path / "talk"
    folder.mkdir()
    (folder / "task.yaml").write_text(f"instruction: Is it valid?\nrubric: ['{QUESTION}']\n")
    (folder / "test.py").write_text("def test(result): return {'passed': True, 'feedback': ''}\n")
    server.replies = [judge(own)]
    config = anthropic_config(server.url, model=MODEL)

    found = grade_task(load_task(folder), {"task_result": SAID}, ask=partial(TaskRubrics(config, "live").ask, "talk"))
    assert (found.verdict, found.rubric[0]["gates"]) == (verdict, gates)
    assert found.feedback.startswith("rubric: ") is (verdict == "failed")


@pytest.mark.parametrize("content", ["[]", "{", '{"rubrics": [{"question": "x"}]}', '{"rubrics": [1]}'])
def test_a_calibration_that_is_none_is_one_line(tmp_path: Path, server: MessagesServer, content: str) -> None:
    (tmp_path / "rubric_calibration.json").write_text(content)
    with pytest.raises(ConfigurationError, match="this is no calibration of rubrics"):
        ask(server, SAID, tmp_path)
