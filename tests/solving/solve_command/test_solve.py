"""The whole of `solve` over folders of tasks, and what a task may ask for."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from stored_runs import results_of
from tasks_and_sandboxes import MakeTask

from guarantee_email_agent import cli
from guarantee_email_agent.config.task_allowance import TaskAllowance
from guarantee_email_agent.judging.record_reference import with_record
from guarantee_email_agent.runlog.records import KeptRun
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.solving.run_limits import RunLimits
from guarantee_email_agent.utils.errors import ConfigurationError, TaskError


def test_all_passed_is_a_success(bench: Any, make_task: MakeTask) -> None:
    make_task("one")
    make_task("two")
    assert bench.solve() == 0
    assert "Pass rate: 2/2 (100%)" in bench.out.getvalue()
    assert [bench.record(name)["eval"]["verdict"] for name in ("one", "two")] == ["passed", "passed"]


def test_a_judge_alone_is_no_task_for_an_agent(bench: Any, make_task: MakeTask) -> None:
    (make_task("one").directory / "task.yaml").unlink()
    assert bench.solve() == 4
    assert "one: has no task.yaml that tells an agent what to do. Write it, with at least" in bench.out.getvalue()


def test_a_rubric_is_asked_by_grade(bench: Any, make_task: MakeTask) -> None:
    with (make_task("one").directory / "task.yaml").open("a") as file:
        file.write("\nrubric: ['Is it kind?']\n")
    assert bench.solve() == 0
    told = "Rubric: 0 pass, 0 fail, 1 unknown; gating: none. No model was asked. Ask one with grade --llm live\n"
    assert told in bench.out.getvalue()


def test_what_the_agent_did_is_shown_from_its_record_also_of_a_task_that_was_finished_before(
    bench: Any, make_task: MakeTask, tmp_path: Path
) -> None:
    make_task("one")
    kept = KeptRun(tmp_path / "runs.db", None, lambda: "2026-01-18T10:00:00Z")
    bench.solve(kept=kept, html_file=tmp_path / "report.html")
    bench.solve(kept=kept)
    with RunStore(kept.file) as store:
        shown = [with_record(store.result(results_of(store, run)[0].place.id)) for run in store.runs()]
    assert [each.trace["conversation"] for each in shown] == [bench.record("one")["conversation"]] * 2
    assert [each.response for each in shown] == [bench.record("one")["task_result"]] * 2
    assert "Conversation with the model" in (tmp_path / "report.html").read_text()


def test_finished_tasks_are_skipped(bench: Any, make_task: MakeTask) -> None:
    make_task("one")
    bench.solve()
    make_task("two")
    assert bench.solve(command="echo 43") == 4
    assert "Solving 2 tasks..., 1 of them finished before; --run-all repeats them" in bench.out.getvalue()
    assert [bench.record(name)["task_result"] for name in ("one", "two")] == ["42", "43"]


@pytest.mark.parametrize("place", ["tasks", "tasks/results", "tasks/one"])
def test_records_may_lie_among_the_tasks(bench: Any, make_task: MakeTask, place: str) -> None:
    make_task("one")
    for _ in range(2):
        assert bench.solve(output_dir=bench.folder / place) == 0


def test_record_that_cannot_be_written_shows_before_an_agent_works(bench: Any, make_task: MakeTask) -> None:
    make_task("one")
    make_task("two")
    bench.results.mkdir()
    (bench.folder / "mine").write_text("mine")
    (bench.results / "two.json").symlink_to("../mine")
    with pytest.raises(TaskError, match="the record cannot be written"):
        bench.solve()
    assert (bench.folder / "mine").read_text() == "mine"
    assert bench.sandboxes.opened == {}


def test_report_in_the_place_of_a_record_is_refused(bench: Any, make_task: MakeTask) -> None:
    make_task("one")
    bench.solve()
    for name in ("one.json", "report.json"):
        with pytest.raises(ConfigurationError, match="the report would take the place of a record"):
            bench.solve(json_file=bench.results / name)
    assert bench.record("one")["task_result"] == "42"


class TestChangedTask:
    FAILS = 'def test(result):\n    return {"passed": False, "feedback": f"saw {sorted(result[\'sandbox\'])}"}\n'

    def test_new_judge_judges_the_record_that_is_there(self, bench: Any, make_task: MakeTask) -> None:
        for name in ("one", "two"):
            make_task(name)
        bench.solve()
        make_task("one", judge='def test(r):\n    return {"passed": r["task_result"] != "42", "feedback": "new"}\n')
        assert bench.solve(command="echo 43") == 4
        assert "Solving 2 tasks..., 2 of them finished before, 1 of these judged again; --run" in bench.out.getvalue()
        record = bench.record("one")
        assert (record["task_result"], record["eval"]["feedback"]) == ("42", "new")
        assert bench.solve() == 4
        assert "2 of them finished before; --run-all" in bench.out.getvalue()

    def test_new_judge_gets_no_key_that_the_task_has_no_more(self, bench: Any, make_task: MakeTask) -> None:
        judge = 'def test(r):\n    return {"passed": "wanted" not in r, "feedback": str(r.get("noted"))}\n'
        make_task("one", settings="wanted: '42'\nnoted: first\nmodel: mine\n", judge=judge)
        assert bench.solve() == 4
        make_task("one", settings="noted: then\n", judge=judge)
        assert bench.solve() == 0
        record = bench.record("one")
        assert (record["task_result"], record["eval"]["feedback"], record["model"]) == ("42", "then", None)

    def test_judge_does_not_get_a_port_that_may_be_somebody_elses(self, bench: Any, make_task: MakeTask) -> None:
        make_task("one")
        bench.solve()
        make_task("one", judge=self.FAILS)
        assert bench.solve() == 4
        assert "docker_port" in bench.record("one")["sandbox"]
        for name in ("docker_port", "base_url"):
            assert name not in bench.record("one")["eval"]["feedback"]

    def test_judge_that_may_need_the_sandbox_says_that_it_is_gone(self, bench: Any, make_task: MakeTask) -> None:
        settings = "judge_network: true\n"
        make_task("one", settings=settings)
        assert bench.solve(allowed=TaskAllowance(network=True)) == 0
        make_task("one", judge=self.FAILS, settings=settings)
        assert bench.solve(allowed=TaskAllowance(network=True)) == 4
        error = bench.record("one")["eval"]["error"]
        assert "the sandbox that it may look into is gone (judged as failed: saw [" in error
        assert error.endswith("Solve the task with --run-all to have the agent work on it again")

    def test_run_all_repeats_the_work(self, bench: Any, make_task: MakeTask) -> None:
        make_task("one")
        bench.solve()
        make_task("one", judge=self.FAILS)
        bench.solve(command="echo 43", run_all=True)
        assert bench.record("one")["task_result"] == "43"


def test_task_that_could_not_be_worked_on_is_repeated(bench: Any, make_task: MakeTask) -> None:
    make_task("one")
    program, interpreter = (bench.results.parent / name for name in ("agent", "interpreter"))
    for file, text in ((program, f"#!{interpreter}\n"), (interpreter, "no program\n")):
        file.write_text(text)
        file.chmod(0o755)
    assert bench.solve(command=str(program)) == 4
    assert bench.record("one")["eval"]["verdict"] == "error"
    assert bench.solve() == 0


def test_several_at_a_time_have_a_sandbox_each_and_keep_their_order(bench: Any, make_task: MakeTask) -> None:
    for number in range(4):
        make_task(f"task{number}")
    # Each waits until all have begun, so that one after the other would never end.
    waiting = (
        f"touch {bench.results}/$TASK_NAME.begun; while [ $(ls {bench.results}/*.begun | wc -l) -lt 4 ]; do :; done"
    )
    command = f"sh -c '{waiting}; echo 42'"
    report = bench.results.parent / "report.json"
    assert bench.solve(command=command, jobs=4, json_file=report, limits=RunLimits(wall_time_s=30)) == 0
    assert len({sandbox.base_url for sandbox in bench.sandboxes.opened.values()}) == 4
    results = json.loads(report.read_text())["results"]
    assert [result["task_name"] for result in results] == [f"task{number}" for number in range(4)]


def test_missing_script_of_one_task_does_not_stop_the_others(bench: Any, make_task: MakeTask, tmp_path: Path) -> None:
    make_task("one")
    make_task("two")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "two.yaml").write_text("- {action_type: task_complete, result: '42'}\n")
    assert bench.solve(agent="script", command=None, script=tmp_path / "scripts") == 4
    assert "there is no script one.yaml" in bench.record("one")["eval"]["error"]
    assert bench.record("two")["eval"]["verdict"] == "passed"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agent": "script", "command": None}, "--agent script needs --script"),
        ({"agent": "command", "command": None}, "--agent command needs --command"),
        ({"agent": "llm"}, "--command goes with --agent command, not llm"),
        ({"model": "claude-opus-5"}, "--model goes with --agent llm, not command"),
        ({"limits": RunLimits(max_tokens=1)}, "--max-tokens goes with --agent llm, not command"),
        ({"limits": RunLimits(max_cost_usd=1)}, "--max-cost goes with --agent llm, not command"),
        ({"agent": "llm", "command": None}, "ANTHROPIC_API_KEY is not set"),
        ({"command": "echo '"}, "Close the quotes"),
        ({"command": "nonesuch-program"}, "there is no program 'nonesuch-program'"),
        ({"json_file": Path("/nonesuch/report.json")}, "the folder does not exist"),
        ({"json_file": Path("/tmp/r"), "junit_file": Path("/tmp/../tmp/r")}, "name the same file"),
    ],
)
def test_bad_usage_shows_before_anything_starts(
    bench: Any, make_task: MakeTask, options: Mapping[str, Any], message: str
) -> None:
    make_task("one")
    with pytest.raises(ConfigurationError, match=message):
        bench.solve(**options)
    assert not bench.sandboxes.opened


def test_output_folder_that_cannot_be_made_is_a_usage_error(bench: Any, make_task: MakeTask) -> None:
    make_task("one")
    bench.results.write_text("in the way")
    with pytest.raises(ConfigurationError, match="--output-dir"):
        bench.solve()


def test_cost_limit_needs_a_known_price(bench: Any, make_task: MakeTask) -> None:
    make_task("one")
    with pytest.raises(ConfigurationError, match="the price of qwen3 is not known"):
        bench.solve(agent="llm", command=None, model="qwen3", limits=RunLimits(max_cost_usd=1))


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve"],
        ["solve", "tasks", "--agent", "robot"],
        ["solve", "tasks", "--jobs", "0"],
        ["solve", "tasks", "--max-cost", "-1"],
        ["solve", "tasks", "--time-limit", "0"],
        ["solve", "tasks", "--allow", "netwrok"],
        ["solve", "nonesuch", "--agent", "command", "--command", "echo"],
    ],
)
def test_bad_usage_ends_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.fixture
def solve(tmp_path: Path) -> Any:
    def solve(folder: Path, *options: str | Path) -> tuple[int, dict[str, Any] | None]:
        """The exit code, and the verdict of the one task."""
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        agent = ("--agent", "command", "--command", f"sh -c 'touch {tmp_path}/worked; echo 42'", "--json", report)
        arguments = ["solve", folder, *agent, "--output-dir", tmp_path / "results", *options]
        code = cli.run([str(argument) for argument in arguments])
        return code, json.loads(report.read_text())["results"][0] if report.exists() else None

    return solve


@pytest.mark.parametrize(
    ("asked", "said", "option"),
    [
        (
            "sandbox: {memory_mb: 4096}",
            "sandbox.memory_mb asks for 4096, and 2048 is allowed. Pass --allow memory_mb=4096",
            "memory_mb=4096",
        ),
        ("sandbox: {network: true}", "sandbox.network is true, which is not allowed. Pass --allow network", "network"),
        (
            "judge_timeout_s: 86400",
            "judge_timeout_s asks for 86400, and 600 is allowed. Pass --allow judge_timeout_s=86400",
            "judge_timeout_s=86400",
        ),
    ],
)
def test_a_task_that_asks_for_more_is_not_begun_until_it_is_allowed(
    solve: Any, make_task: MakeTask, tmp_path: Path, asked: str, said: str, option: str
) -> None:
    task = make_task(settings=f"{asked}\n")
    code, verdict = solve(task.directory)
    assert code == 4
    assert verdict["verdict"] == "error"
    assert verdict["error"] == f"{task.directory}/task.yaml: {said}"
    assert not (tmp_path / "worked").exists()
    code, verdict = solve(task.directory, "--allow", option)
    assert (code, verdict["verdict"]) == (0, "passed")


def test_a_configuration_that_cannot_be_used_ends_with_2(
    solve: Any, make_task: MakeTask, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "operator.yaml"
    config.write_text("store: {keep_rusn: 300}\n")
    assert solve(make_task().directory, "--config", config) == (2, None)
    assert "store.keep_rusn: unknown key 'keep_rusn' – did you mean 'keep_runs'?" in capsys.readouterr().err


def test_the_judges_deadline_is_the_operators_where_one_is_given(solve: Any, make_task: MakeTask) -> None:
    task = make_task(settings="judge_timeout_s: 86400\n")
    assert solve(task.directory, "--timeout", "60")[0] == 0
