"""What a task may ask of its sandbox, and how one is opened."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.config.task_allowance import TaskAllowance
from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.sandbox import SandboxLimits, SandboxSettings, open_sandbox, require_sandbox
from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.sandbox.sandbox import parse_settings
from guarantee_email_agent.utils.errors import TaskError


def _task(directory: Path, settings: Mapping[str, Any], assets: Path | None = None) -> Task:
    return Task("job", directory, "Do it.", settings, directory / "test.py", assets=assets)


def test_without_a_section_the_usual_limits_hold(tmp_path: Path) -> None:
    assert parse_settings(_task(tmp_path, {}), SandboxLimits()) == SandboxSettings(hidden=(tmp_path,))


def test_a_task_says_what_it_needs(tmp_path: Path) -> None:
    section = {"network": True, "memory_mb": 512, "disk_mb": 64, "processes": 20, "time_s": 30.5}
    settings = parse_settings(
        _task(tmp_path, {"sandbox": section}), SandboxLimits(command_s=5.0), TaskAllowance(network=True)
    )
    limits = SandboxLimits(512 << 20, 64 << 20, processes=20, time_s=30.5, command_s=5.0)
    assert settings == SandboxSettings(limits, network=True, hidden=(tmp_path,))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ([], "must be a mapping"),
        ({"memory": 1}, "there is no 'memory'; known: network, memory_mb"),
        ({"memory_mb": "much", "network": 1}, "memory_mb must be a number from 1 on, not 'much'; network must be true"),
        ({"processes": 0}, "processes must be a number"),
        ({"files": True}, "files must be a number"),
    ],
)
def test_everything_wrong_is_told_with_its_place(tmp_path: Path, section: object, message: str) -> None:
    with pytest.raises(TaskError) as problem:
        parse_settings(_task(tmp_path, {"sandbox": section}), SandboxLimits())
    assert str(tmp_path / "task.yaml") in problem.value.message
    assert message in problem.value.message


@pytest.mark.parametrize("more", [{"network": True}, {"memory_mb": 2049}, {"time_s": 7200.5}, {"files": 200_001}])
def test_a_task_that_asks_for_more_than_is_allowed_gets_no_sandbox(tmp_path: Path, more: dict[str, Any]) -> None:
    name = next(iter(more))
    with pytest.raises(TaskError, match=rf"task.yaml: sandbox.{name} .* Pass --allow {name}") as problem:
        open_sandbox(_task(tmp_path, {"sandbox": more}))
    assert problem.value.code == "sandbox_not_allowed"
    with open_sandbox(_task(tmp_path, {"sandbox": more}), allowed=TaskAllowance(**{name: more[name]})):
        pass


def test_a_task_that_does_not_say_gets_the_network_where_that_is_allowed(tmp_path: Path) -> None:
    allowed = TaskAllowance(network=True)
    assert parse_settings(_task(tmp_path, {}), allowed=allowed).network
    assert not parse_settings(_task(tmp_path, {"sandbox": {"network": False}}), allowed=allowed).network
    assert not parse_settings(_task(tmp_path, {})).network


def test_what_is_allowed_holds_for_a_task_that_asks_for_nothing_too(tmp_path: Path) -> None:
    settings = parse_settings(_task(tmp_path, {}), allowed=TaskAllowance(memory_mb=64, files=10, processes=9999))
    assert settings.limits == SandboxLimits(memory_bytes=64 << 20, files=10)


def test_what_the_operator_gives_may_be_asked_for(tmp_path: Path) -> None:
    """`--time-limit` makes a sandbox live longer than is allowed otherwise."""
    task = _task(tmp_path, {"sandbox": {"time_s": 9000}})
    assert parse_settings(task, SandboxLimits(time_s=10_000.0)).limits.time_s == 9000


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"there is no sandbox 'vm'\. Use one of: embedded, docker, none"):
        open_sandbox(_task(tmp_path, {}), kind="vm")


def test_it_is_open_within_the_block_and_gone_after(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "input.txt").write_text("given")
    with open_sandbox(_task(tmp_path, {}, tmp_path / "assets")) as sandbox:
        client = SandboxClient(sandbox.base_url)
        read = client.call("POST", "/v1/file/read", {"file": "assets/input.txt"}, timeout_s=10)
        assert read["content"] == "given"
    with pytest.raises(TaskError, match=r"the sandbox at http://localhost:\d+ cannot be reached: ") as gone:
        client.call("GET", "/v1/sandbox", timeout_s=10)
    assert gone.value.code == "sandbox_unreachable"


@pytest.mark.parametrize("kind", ["embedded", "none"])
def test_another_system_than_linux_is_told_what_it_can_have(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(TaskError, match=f"--sandbox {kind} needs Linux. Use --sandbox docker"):
        require_sandbox(kind)
