"""What a task may ask for, as a user of `solve` allows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tasks_and_sandboxes import MakeTask

from guarantee_email_agent import cli


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
