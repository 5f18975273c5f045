import io
from pathlib import Path

from stored_runs import new_run

from guarantee_email_agent.judging.grade_report import GradeRecorder, GradeReporter, as_cases, format_graded
from guarantee_email_agent.judging.verdict import Graded, Verdict
from guarantee_email_agent.runlog.records import Case, KeptRun
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.views.report import RunOptions

PASSED = Graded("six", Verdict("passed", "That is 42.", {"said": 42}, output="hello", duration_ms=5))
FAILED = Graded("seven", Verdict("failed", "41 is wrong.\nIt is 42.", output="a\nb\n", duration_ms=6))
ERROR = Graded("eight", Verdict("error", error="gave no verdict within 60 s", duration_ms=60_000))


def as_case(graded: Graded) -> Case:
    (case,) = as_cases((each for each in [graded]), Path("tasks"), "")
    return case


def printed(*results: Graded, planned: int | None = None, measures_agent: bool = True) -> str:
    stream = io.StringIO()
    reporter = GradeReporter(stream, measures_agent=measures_agent)
    for graded in results:
        reporter.add(as_case(graded))
    reporter.finish(0.42, planned)
    return stream.getvalue()


class TestLines:
    def test_passed_first_then_failed_then_errors_then_the_totals(self) -> None:
        assert printed(ERROR, FAILED, PASSED) == (
            "✓ six: That is 42.\n"
            "✗ seven - FAILED\n"
            "    41 is wrong.\n"
            "    It is 42.\n"
            "    printed:\n"
            "        a\n"
            "        b\n"
            "✗ eight - ERROR\n"
            "    gave no verdict within 60 s\n"
            "Pass rate: 1/3 (33.3%)\n"
            "✓ Passed: 1\n"
            "✗ Failed: 1\n"
            "✗ Errors: 1\n"
            "Duration: 0.4s\n"
        )

    def test_tasks_with_several_records_are_counted_once(self) -> None:
        again = [Graded("six", PASSED.verdict, number, 99) for number in range(1, 100)]
        text = printed(*again, FAILED)
        assert "✓ six (99 of 99): That is 42.\n" in text
        assert text.endswith("Tasks passed every time: 1/2\n    six: 99 of 99\n")

    def test_validation_has_no_pass_rate(self) -> None:
        text = printed(PASSED, PASSED, measures_agent=False)
        assert "rate" not in text
        assert "✓ Passed: 2\n✗ Failed: 0\n✗ Errors: 0\n" in text

    def test_an_interrupted_run(self) -> None:
        assert printed(PASSED, FAILED, planned=5).endswith("Interrupted: 2 of 5 were judged\n")

    def test_a_pass_is_one_line(self) -> None:
        assert format_graded(as_case(Graded("six", Verdict("passed", "one\n  two\n")))) == "✓ six: one two"

    def test_control_characters_never_get_through(self) -> None:
        hostile = "\x1b[2J\x07\r \u202e"
        text = printed(
            Graded(hostile, Verdict("passed", hostile)),
            Graded(hostile, Verdict("failed", hostile, output=hostile)),
            Graded(hostile, Verdict("error", error=hostile)),
        )
        assert all(character.isprintable() or character == "\n" for character in text)

    def test_of_much_feedback_the_beginning_is_shown_and_of_much_output_the_end(self) -> None:
        lines = "\n".join(f"line {number}" for number in range(100))
        text = format_graded(as_case(Graded("six", Verdict("failed", lines, output=lines))))
        assert text.startswith("✗ six - FAILED\n    line 0\n")
        assert "    line 19\n    …\n    printed:\n        …\n        line 80\n" in text
        assert text.endswith("        line 99")


def test_what_a_folder_holds_that_cannot_be_listed_is_not_known(tmp_path: Path) -> None:
    kept = KeptRun(tmp_path / "runs.db", None, lambda: "2026-01-18T10:00:01Z")
    recorder = GradeRecorder(kept, new_run(command="grade"), RunOptions(directory=tmp_path / "gone"))
    recorder.add(as_case(PASSED))
    recorder.finish("passed", 0, 0.1)
    with RunStore(kept.file) as store:
        assert "the folder of six cannot be listed (No such file or directory)" in store.incomplete_inputs(store.run(1))
