"""Sandboxes in containers: the commands, and what is said where no engine runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from guarantee_email_agent.tasks.sandbox import SandboxLimits, SandboxSettings, docker
from guarantee_email_agent.utils.errors import TaskError

SETTINGS = SandboxSettings(SandboxLimits(memory_bytes=1 << 30, processes=99))


def test_without_the_program_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TaskError, match="'docker', which is not installed"):
        docker.DockerSandbox("job", tmp_path, None, None, SETTINGS).start()


@pytest.mark.parametrize("script", ["echo 'Cannot connect to the Docker daemon' >&2; exit 1", "exit 0"])
def test_without_an_engine_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    (tmp_path / "docker").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(TaskError, match="no Docker engine runs on this machine"):
        docker.DockerSandbox("job", tmp_path, None, None, SETTINGS).start()


def test_an_image_runs_with_limits_and_on_loopback() -> None:
    command = docker.run("image:1", "task-job-4711", 4711, SETTINGS)
    assert command[0] == "run"
    assert command[-1] == "image:1"
    assert command[command.index("--publish") + 1] == "127.0.0.1:4711:8080"
    assert command[command.index("--memory") + 1] == command[command.index("--memory-swap") + 1] == str(1 << 30)
    assert command[command.index("--pids-limit") + 1] == "99"


def test_a_compose_file_gets_its_names_from_the_environment(tmp_path: Path) -> None:
    name = docker.container_name("My Task: ä", 4711)
    assert name == "task-my-task----4711"
    assert docker.compose_environment(name, 4711) == {
        "TASK_DOCKER_IMAGE_NAME": "task-my-task----4711:latest",
        "TASK_DOCKER_CONTAINER_NAME": "task-my-task----4711",
        "HOST_PORT": "4711",
    }
    file = tmp_path / "docker-compose.yaml"
    up, down = docker.compose_up(file, name), docker.compose_down(file, name)
    assert up[:5] == down[:5] == ("compose", "--project-name", name, "--file", str(file))


def test_it_says_what_a_container_does_not_hold(tmp_path: Path) -> None:
    gaps = docker.DockerSandbox("job", tmp_path, None, tmp_path / "docker-compose.yaml", SETTINGS).gaps
    assert len(gaps) == 3
