"""`grade` as a whole command."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import junitparser
import pytest
from command_line import MODULE, run_program
from otlp import export, log, span

WANTS_42 = """\
def test(result):
    print("looking")
    passed = result["task_result"] == "42"
    return {"passed": passed, "feedback": f"said {result['task_result']!r}"}
"""


def grade(*arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        return run_program(cwd or Path.cwd(), "grade", *arguments, stdin=file)


def write_task(folder: Path, instruction: str, judge: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "task.yaml").write_text(f"instruction: {instruction}\n", encoding="utf-8")
    (folder / "test.py").write_text(judge, encoding="utf-8")
    return folder


def copy_task(task: Path, results: Path, *names: str) -> None:
    """Further tasks of other names, each with a record that has the right answer."""
    for name in names:
        shutil.copytree(task, task.with_name(name))
        (results / f"{name}.json").write_text('{"task_result": "42"}', encoding="utf-8")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    return write_task(tmp_path / "tasks" / "six", "What is six times seven?", WANTS_42)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "six.json").write_text('{"task_result": "42"}', encoding="utf-8")
    return folder


class TestOneResult:
    def test_a_wrong_answer(self, task: Path) -> None:
        done = grade(task, "--answer=41")
        assert done.returncode == 4
        assert done.stdout.splitlines()[1:5] == ["✗ six - FAILED", "    said '41'", "    printed:", "        looking"]

    @pytest.mark.parametrize(("stdin", "code"), [(b"42", 0), (b"42\n", 0), (b"42\r\n", 0), (b"42\n\n", 4), (b"", 4)])
    def test_an_answer_from_stdin_loses_its_last_line_break(self, task: Path, stdin: bytes, code: int) -> None:
        assert grade(task, "--answer", "-", stdin=stdin).returncode == code

    def test_a_record_in_a_file_or_on_stdin(self, task: Path, results: Path) -> None:
        assert grade(task, "--result", results / "six.json").returncode == 0
        assert grade(task, "--result", "-", stdin=b'{"task_result": "42"}').returncode == 0

    @pytest.mark.parametrize("indent", [None, 1])
    def test_exports_of_spans_on_stdin(self, task: Path, indent: int | None) -> None:
        asked = span(1, {"gen_ai.operation.name": "chat"})
        exports = [export(asked, log(2, "gen_ai.choice", {"message": {"content": "42"}}))]
        exports = exports if indent else [{each: exports[0][each]} for each in ("resourceLogs", "resourceSpans")]
        stdin = "\n".join(json.dumps(each, indent=indent) for each in exports).encode()
        assert grade(task, "--from", "otel", "--result", "-", stdin=stdin).returncode == 0
        assert "no JSON (" in grade(task, "--from", "otel", "--result", "-", stdin=stdin + b"\n{").stderr

    def test_no_configuration_is_needed_or_looked_at(self, task: Path, tmp_path: Path) -> None:
        (tmp_path / "config.yaml").write_text("nonsense: [", encoding="utf-8")
        assert grade(task, "--answer", "42", cwd=tmp_path).returncode == 0

    def test_what_a_task_may_ask_for_stands_in_options(self, task: Path) -> None:
        (task / "task.yaml").write_text("instruction: Six times seven?\njudge_timeout_s: 900\n", encoding="utf-8")
        done = grade(task, "--answer", "42")
        assert (done.returncode, done.stderr) == (4, "")
        assert (
            "task.yaml: judge_timeout_s asks for 900, and 600 is allowed. Pass --allow judge_timeout_s=900"
            in done.stdout
        )
        assert grade(task, "--answer", "42", "--allow", "network", "--allow", "judge_timeout_s=900").returncode == 0

    def test_the_deadline(self, task: Path) -> None:
        (task / "test.py").write_text("while True:\n    pass\n", encoding="utf-8")
        done = grade(task, "--answer", "42", "--timeout", "0.5")
        assert done.returncode == 4
        assert "within 0.5 s" in done.stdout


class TestFolder:
    def test_reports(self, task: Path, results: Path, tmp_path: Path) -> None:
        done = grade(task.parent, "--results", results, "--json", tmp_path / "r.json", "--junit", tmp_path / "r.xml")
        assert done.returncode == 0
        report = json.loads((tmp_path / "r.json").read_bytes())
        duration_ms = report["results"][0].pop("duration_ms")
        assert 0 < duration_ms < 60_000
        assert report == {
            "schema_version": 1,
            "planned": 1,
            "totals": {"total": 1, "passed": 1, "failed": 0, "error": 0},
            "interrupted": False,
            "results": [
                {
                    "task_name": "six",
                    "verdict": "passed",
                    "eval": {"passed": True, "feedback": "said '42'", "details": {}},
                    "error": None,
                    "output": "looking\n",
                }
            ],
        }
        (suite,) = junitparser.JUnitXml.fromfile(str(tmp_path / "r.xml"))
        assert (suite.tests, suite.failures, suite.errors) == (1, 0, 0)

    def test_names_of_any_kind(self, task: Path, results: Path, tmp_path: Path) -> None:
        names = ["with space", "-dash", "new\nline", "\x1b[2J", "\u202etxt", "日本🎉", "'\"`$(x)", "%s{}"]
        names.append(os.fsdecode(b"\xff\xfe"))
        copy_task(task, results, *names)
        report, junit = tmp_path / "r.json", tmp_path / "r.xml"
        done = grade(task.parent, "--results", results, "--json", report, "--junit", junit, "--jobs", "2")
        assert (done.returncode, done.stderr) == (0, "")
        assert all(line.isprintable() for line in done.stdout.splitlines())
        assert {each["task_name"] for each in json.loads(report.read_bytes())["results"]} == {
            "six",
            *(name.encode(errors="backslashreplace").decode() for name in names),
        }
        (suite,) = junitparser.JUnitXml.fromfile(str(junit))
        assert suite.tests == 1 + len(names)

    def test_no_report_takes_the_place_of_a_record(self, task: Path, results: Path) -> None:
        record = results / "six.json"
        for arguments in (["--result", record, "--json", record], ["--result", record, "--junit", record]):
            done = grade(task, *arguments)
            assert done.returncode == 2
            assert "the report would take the place of a record" in done.stderr
        for name in ("six.json", "seven.json", "seven.jsonl"):
            assert grade(task.parent, "--results", results, "--json", results / name).returncode == 2
        assert record.read_text(encoding="utf-8") == '{"task_result": "42"}'
        assert grade(task.parent, "--results", results, "--json", results / "_report.json").returncode == 0
        assert grade(task.parent, "--results", results).returncode == 0

    @pytest.mark.parametrize("name", ["test.py", "task.yaml"])
    def test_no_report_takes_the_place_of_a_task(self, task: Path, results: Path, name: str) -> None:
        former = (task / name).read_bytes()
        link = results.parent / "report"
        link.symlink_to(task / name)
        for arguments in (
            [task, "--answer", "42", "--json", task / name],
            [task, "--answer", "42", "--junit", link],
            [task.parent, "--results", results, "--json", task / name],
        ):
            done = grade(*arguments)
            assert done.returncode == 2
            assert "it would take the place of what is no report" in done.stderr
        assert (task / name).read_bytes() == former
        assert grade(task, "--answer", "42", "--json", task / "verdict.json").returncode == 0

    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_ctrl_c(self, task: Path, results: Path, tmp_path: Path, jobs: str) -> None:
        copy_task(task, results, "seven", "ten")
        (task / "test.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
        (tmp_path / "r.json").write_text("an earlier one")
        command = [sys.executable, "-u", *MODULE[1:], "grade", task.parent, "--results", results]
        command += ["--jobs", jobs, "--json", tmp_path / "r.json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"Grading 3 results...\n"
            assert process.stdout.readline().decode() == "✓ seven: said '42'\n"
            process.send_signal(signal.SIGINT)
            printed, complaints = process.communicate(timeout=60)
        assert (process.returncode, complaints) == (130, b"")
        assert printed.decode().splitlines()[-1] == "Interrupted: 1 of 3 were judged"
        report = json.loads((tmp_path / "r.json").read_bytes())
        assert (report["interrupted"], report["totals"]["total"]) == (True, 1)


class TestValidation:
    def test_of_one_task(self, task: Path) -> None:
        correct = task.parent / "_records" / "correct" / "six.json"
        correct.parent.mkdir(parents=True)
        correct.write_text('{"task_result": "42"}', encoding="utf-8")
        done = grade(task, "--validate")
        assert done.returncode == 0
        assert "✓ six: passes the correct record, and rejects all 9 negative controls" in done.stdout.splitlines()
        correct.write_text("[", encoding="utf-8")
        assert "✗ six - ERROR" in grade(task, "--validate").stdout


class TestBadUsage:
    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["absent", "--answer", "42"], "absent: does not exist"),
            ([".", "--answer", "42"], "name one of them, or grade all with --results DIR"),
            (["six"], "one of the arguments --answer --result --results --validate is required"),
            (["six", "--answer", "42", "--validate"], "not allowed with"),
            (["six", "--result", "absent.json"], "absent.json: the file does not exist"),
            (["six", "--result", "six/test.py"], "six/test.py: no JSON (line 1, column 1)"),
            (["six", "--results", "."], "is a task itself"),
            ([".", "--results", "absent"], "absent: the folder of records does not exist"),
            (["six", "--answer", "42", "--timeout", "0"], "'0' is not seconds above 0"),
            (["six", "--answer", "42", "--jobs", "0"], "is not a whole number"),
            (["six", "--answer", "42", "--allow", "memory"], "no 'memory' to allow – did you mean 'memory_mb'?"),
            (["six", "--answer", "42", "--json", "absent/r.json"], "the report cannot be written"),
            (["six", "--answer", "42", "--json", "r", "--junit", "r"], "--json and --junit name the same file"),
        ],
    )
    def test_is_one_line_and_exit_code_2(self, task: Path, arguments: list[str], said: str) -> None:
        done = grade(*arguments, cwd=task.parent)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert said in line

    @pytest.mark.parametrize(
        ("option", "stdin", "said"),
        [
            ("--answer", b"\xff", "stdin: this is not UTF-8 text"),
            ("--result", b"", "stdin: no JSON"),
            ("--result", b"[]", "stdin: a record is a JSON object"),
        ],
    )
    def test_on_stdin(self, task: Path, option: str, stdin: bytes, said: str) -> None:
        done = grade(task, option, "-", stdin=stdin)
        assert done.returncode == 2
        assert said in done.stderr

    @pytest.mark.parametrize("option", ["--answer", "--result"])
    def test_an_endless_stdin(self, task: Path, option: str) -> None:
        with open("/dev/zero", "rb") as zeros:
            done = run_program(Path.cwd(), "grade", task, option, "-", stdin=zeros)
        assert done.returncode == 2
        assert "stdin: this is more than 100,000,000 bytes, the most that is read" in done.stderr
