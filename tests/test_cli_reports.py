"""Report files and what CI servers show, of whole commands."""

import csv
import json
import os
from pathlib import Path

import pytest
from command_line import MODULE, Run, WriteSuite, environment
from small_disks import in_shell, run_on_small_disk

from guarantee_email_agent.eval.eval_recorder import user_name

pytestmark = pytest.mark.slow

FORMS = ("json", "jsonl", "csv", "junit", "html", "markdown")
TASK = Path(__file__).parents[1] / "tasks" / "warranty_days"


def every_report(folder: Path) -> list[str]:
    return [part for form in FORMS for part in (f"--{form}", str(folder / f"report.{form}"))]


def content(folder: Path, form: str) -> str:
    return (folder / f"report.{form}").read_bytes().decode()


def test_eval_writes_every_form_at_once(run: Run, suite: WriteSuite, tmp_path: Path) -> None:
    done = run("eval", "--eval-dir", suite(2, failed=1), "--repeat", "2", *every_report(tmp_path))
    assert done.returncode == 4
    assert "Pass rate: 2/3" in done.stdout
    whole = json.loads(content(tmp_path, "json"))
    rows = [json.loads(line) for line in content(tmp_path, "jsonl").splitlines()]
    assert [(row["scenario_id"][-1], row["repetition"]) for row in rows] == [
        *(("1", 1), ("1", 2), ("2", 1), ("2", 2), ("3", 1), ("3", 2)),
    ]
    cells = list(csv.DictReader(content(tmp_path, "csv").splitlines()))
    assert [row["verdict"] for row in cells] == ["passed", "passed", "passed", "passed", "failed", "failed"]
    assert {row["run_id"] for row in (*rows, *cells)} == {whole["run_id"]}
    assert 'tests="3"' in content(tmp_path, "junit")
    assert "Eval failed (&lt;99% threshold)" in content(tmp_path, "html")
    assert "### Not passed (1)" in content(tmp_path, "markdown")


# Nobody knows what a broken file would have come to.
@pytest.mark.parametrize("lines", ["must: true\n", '"must" : True\nunknown: 1\n'])
def test_a_scenario_that_must_pass_closes_the_gate_alone(
    lines: str, run: Run, suite: WriteSuite, tmp_path: Path
) -> None:
    *_, last = sorted((folder := suite(199, failed=1)).iterdir())
    last.write_text(f"{lines}{last.read_text(encoding='utf-8')}", encoding="utf-8")
    done = run("eval", "--eval-dir", folder, *every_report(tmp_path))
    assert done.returncode == 4
    assert f"Must failed: {last.stem}\n" in run("show").stdout
    assert f"Must failed: {last.stem}\nPass rate: 199/200 (99.5%)\n" in done.stdout
    assert "✓ valid" not in done.stdout
    assert json.loads(content(tmp_path, "json"))["must_failed"] == [last.stem]
    assert f'name="must_failed" value="{last.stem}"' in content(tmp_path, "junit")
    for form in ("html", "markdown"):
        assert "1 scenario that must pass failed" in content(tmp_path, form)


def test_grade_writes_every_form_at_once(run: Run, tmp_path: Path) -> None:
    done = run("grade", TASK, "--answer", "wrong", "--no-store", *every_report(tmp_path))
    assert (done.returncode, done.stderr) == (4, "")
    assert [json.loads(line)["verdict"] for line in content(tmp_path, "jsonl").splitlines()] == ["failed"]
    assert next(csv.DictReader(content(tmp_path, "csv").splitlines()))["name"] == "warranty_days"
    assert "Grade failed" in content(tmp_path, "html")
    assert "Grade failed" in content(tmp_path, "markdown")


def test_the_page_for_the_board_is_of_eval_and_goes_into_a_file(run: Run, suite: WriteSuite, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("eval: {pass_threshold: 99}\n", encoding="utf-8")
    page = ("--for", "board", "--html", "report.html")
    assert run("eval", "--eval-dir", suite(2), *page).returncode == 0
    written = content(tmp_path, "html")
    assert "It passed its test: 2 of 2 cases" in written
    assert f"<dt>By</dt><dd><bdi>{user_name()}</bdi></dd>" in written
    assert run("show", *page).returncode == 0
    assert content(tmp_path, "html") == written
    assert run("grade", TASK, "--answer", "wrong").returncode == 4
    for command in (("show", *page), ("show", *page[:2]), ("eval", *page[:2])):
        assert (run(*command).returncode, content(tmp_path, "html")) == (2, written)


def test_the_page_has_the_history_of_the_suite(run: Run, suite: WriteSuite, tmp_path: Path) -> None:
    folder = suite(2)
    (tmp_path / "config.yaml").write_text("eval: {pass_threshold: 99}\n", encoding="utf-8")
    assert run("eval", "--eval-dir", folder, *every_report(tmp_path)).returncode == 0
    assert "<svg" not in content(tmp_path, "html")
    assert run("eval", "--eval-dir", folder, *every_report(tmp_path)).returncode == 0
    assert "Pass rate of the last 2 runs of this suite" in content(tmp_path, "html")
    assert run("eval", "--eval-dir", folder, "--no-store", *every_report(tmp_path)).returncode == 0
    assert "<svg" not in content(tmp_path, "html")


@pytest.mark.parametrize("form", ["json", "html"])
def test_a_report_on_stdout_stands_there_alone(form: str, run: Run, suite: WriteSuite) -> None:
    done = run("eval", "--eval-dir", suite(1), "--no-store", f"--{form}", "-")
    assert done.returncode == 0
    assert "Running evaluation suite" not in done.stdout
    assert "Running evaluation suite" in done.stderr
    assert done.stdout.startswith({"json": "{", "html": "<!DOCTYPE html>"}[form])


@pytest.mark.parametrize(
    ("command", "reports", "says"),
    [
        (["eval"], ["--html", "."], ".: the report cannot be written (it is a folder)"),
        (["grade", TASK, "--answer", "1"], ["--csv", "no/r"], "no/r: the report cannot be written (the folder does "),
        (["solve", TASK], ["--html", "r", "--jsonl", "j", "--markdown", "./r"], "--html and --markdown name the same"),
        (["eval"], ["--html", "-", "--json", "-"], "--json and --html name the same file"),
    ],
)
def test_what_cannot_be_written_ends_in_2_before_anything_runs(
    command: list[str], reports: list[str], says: str, run: Run, tmp_path: Path
) -> None:
    done = run(*command, *reports)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert says in done.stderr
    assert os.listdir(tmp_path) == []


class TestGitHubActions:
    def test_failures_are_annotated_and_the_summary_is_written(
        self, run: Run, suite: WriteSuite, tmp_path: Path
    ) -> None:
        summary = tmp_path / "summary.md"
        settings = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_WORKSPACE": str(tmp_path)}
        done = run("eval", "--eval-dir", suite(1, failed=1), "--no-store", env=settings)
        first, *_, annotation = done.stdout.splitlines()
        assert done.returncode == 4
        assert first.startswith("::stop-commands::")
        place = "title=valid_warranty_00002%3A failed,file=scenarios/valid_warranty_00002.yaml,line="
        assert annotation.startswith(f"::error {place}")
        line, _, message = annotation.removeprefix(f"::error {place}").partition("::")
        scenario = (tmp_path / "scenarios" / "valid_warranty_00002.yaml").read_text(encoding="utf-8").splitlines()
        assert scenario[int(line) - 1].strip().startswith(message.partition(":")[0])
        assert summary.read_text(encoding="utf-8").startswith("## ❌ Eval failed")

    @pytest.mark.parametrize("arguments", [("show", "--list"), ("answer", "absent.eml"), ("check",)])
    def test_no_command_reads_what_another_prints(self, run: Run, arguments: tuple[str, ...]) -> None:
        first, *_, last = run(*arguments, env={"GITHUB_ACTIONS": "true"}).stdout.splitlines()
        assert last == f"::{first.removeprefix('::stop-commands::')}::"

    def test_a_report_on_stdout_has_no_commands_in_it(self, run: Run, suite: WriteSuite) -> None:
        done = run("eval", "--eval-dir", suite(1), "--no-store", "--json", "-", env={"GITHUB_ACTIONS": "true"})
        assert json.loads(done.stdout)["gate"] == "passed"
        assert done.stderr.startswith("::stop-commands::")


@pytest.mark.slow
def test_a_disk_that_fills_up_in_mid_run_changes_no_verdict_and_leaves_former_reports(
    suite: WriteSuite, tmp_path: Path
) -> None:
    folder, disk = suite(300), tmp_path / "disk"
    texts = {form: {"csv": "run_id,", "jsonl": '{"run_id"'}.get(form, "former") for form in FORMS}
    former = [f"echo '{text}' > report.{form}" for form, text in texts.items()]
    evaluate = [*MODULE, "eval", "--eval-dir", folder, "--quiet", *every_report(disk)]
    # Room for the tables and the first batch, but for no report.
    room = "head -c $(($(stat -f -c '%a * %S' .) - 450000)) /dev/zero > rest"
    lines = ["echo '{}' > config.yaml", *former, room, evaluate, "echo exit code $?", "cat report.*", "rm rest"]
    done = run_on_small_disk(disk, "2m", in_shell(*lines, [*MODULE, "show"]), **environment())
    told, shown = done.stdout.split("exit code 2\n")
    assert told.splitlines()[1:3] == ["Pass rate: 300/300 (100%)", "✓ Passed: 300"]
    assert shown.startswith("\n".join((*(texts[form] for form in sorted(FORMS)), "Run: ")))
    assert "interrupted, " in shown
    warning, *_, lost, unwritten = done.stderr.splitlines()
    assert warning.endswith(f"{disk}/runs.db: the disk is full. Make room")
    assert lost.endswith(" results of this run are not in the run store")
    others = ", ".join(f"{disk}/report.{form}" for form in FORMS[1:])
    assert unwritten == (
        f"guarantee-email-agent: {disk}/report.json: the report cannot be written (No space left on device). "
        f"Make room. Nor can {others}."
    )
