import io
from pathlib import Path

import pytest
import sample_reports

from guarantee_email_agent.runlog.views.github_actions import MAX_ANNOTATIONS, annotate, github_step


class TestAnnotations:
    def test_an_error_at_the_line_of_the_scenario(self) -> None:
        case = sample_reports.case(passed=False, source=b"\n" * 15 + b"response_body_contains: []\n")
        (line,) = annotate(sample_reports.report(case))
        assert line == (
            "::error title=valid_warranty_001%3A failed,file=evals/scenarios/valid_warranty_001.yaml,line=16::"
            "response_body_contains: missing phrase 'type plate'%0A  expected: 'type plate'%0A  actual:   "
            "'Hello, Thank you …'"
        )

    def test_nothing_for_what_passed(self) -> None:
        assert annotate(sample_reports.report(sample_reports.case())) == []
        (line,) = annotate(sample_reports.report(sample_reports.case(), gate="failed", verdict="Eval failed (why)"))
        assert line == "::error title=Eval failed (why)%3A 100%25 of evals/scenarios::Eval failed (why)"

    def test_what_strangers_write_is_no_command_and_no_property(self) -> None:
        (line,) = annotate(sample_reports.report(sample_reports.hostile_case()))
        properties, _, message = line.removeprefix("::error ").partition("::")
        assert [each.partition("=")[0] for each in properties.split(",")] == ["title", "file", "line"]
        assert "\n" not in message
        assert message.isprintable()

    def test_a_percent_sign_stays_one(self) -> None:
        failed = sample_reports.Check("a", "100%0Aof it, yes: all")
        (line,) = annotate(sample_reports.report(sample_reports.case(passed=False, name="a%2Cb,c", checks=(failed,))))
        assert line.startswith("::error title=a%252Cb%2Cc%3A failed,")
        assert line.endswith("::a: 100%250Aof it, yes: all")

    def test_as_many_as_github_shows(self) -> None:
        lines = annotate(sample_reports.large_report(50, failed=30))
        assert len([line for line in lines if line.startswith("::error ")]) == MAX_ANNOTATIONS
        assert lines[-1].startswith("::notice title=Eval failed")
        assert lines[-1].endswith("::21 more scenarios did not pass")

    def test_an_interrupted_run_says_so(self) -> None:
        report = sample_reports.report(sample_reports.case(), gate="undecided", of_run={"planned": 9})
        (line,) = annotate(report)
        assert line.startswith("::warning ")
        assert line.endswith("::Interrupted: 1 of 9 scenarios ran")

    def test_files_are_named_from_the_root_of_the_repository(self, tmp_path: Path) -> None:
        case = sample_reports.case(passed=False, file=str(tmp_path / "a" / "b.yaml"))
        (line,) = annotate(sample_reports.report(case), str(tmp_path))
        assert ",file=a/b.yaml," in line


class TestSummary:
    def test_it_is_appended(self, tmp_path: Path) -> None:
        summary = tmp_path / "summary.md"
        summary.write_text("before\n")
        with github_step({"GITHUB_STEP_SUMMARY": str(summary)}, io.StringIO()) as show:
            show(sample_reports.report())
        assert summary.read_text(encoding="utf-8").startswith("before\n## ❌ Eval failed")

    @pytest.mark.parametrize("name", ["absent/summary.md", "", "nul\0"])
    def test_what_cannot_be_written_is_told_and_ends_nothing(
        self, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with github_step({"GITHUB_STEP_SUMMARY": f"{tmp_path}/{name}"}, io.StringIO()) as show:
            show(sample_reports.report())
        assert "WARNING The summary of the step cannot be written" in capsys.readouterr().err


class TestStep:
    def test_commands_in_what_is_printed_are_not_read(self) -> None:
        stream = io.StringIO()
        with github_step({}, stream) as show:
            stream.write("::error::forged by a mail\n")
            show(sample_reports.report())
        off, forged, on, *lines = stream.getvalue().splitlines()
        token = off.removeprefix("::stop-commands::")
        assert len(token) == 32
        assert (forged, on) == ("::error::forged by a mail", f"::{token}::")
        assert [line.split()[0] for line in lines] == ["::error", "::error"]

    def test_they_are_read_again_after_a_failure(self) -> None:
        stream = io.StringIO()
        with pytest.raises(KeyboardInterrupt), github_step({}, stream):
            raise KeyboardInterrupt
        assert stream.getvalue().splitlines()[-1].startswith("::")
