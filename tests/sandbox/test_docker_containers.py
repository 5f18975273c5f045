"""Sandboxes in containers of a real Docker engine, with images that are built from nothing."""

import json
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from docker_engines import COMPOSE, NOTHING_LEFT, Engine, build_from_nothing
from tasks_and_sandboxes import MakeTask

from guarantee_email_agent.sandbox import SandboxLimits, docker, open_sandbox
from guarantee_email_agent.sandbox.docker import compose_program
from guarantee_email_agent.utils.errors import TaskError

pytestmark = pytest.mark.slow


def _inspect(engine: Engine, container: str = "") -> dict[str, Any]:
    """What the engine knows of a container, or of the only one."""
    return json.loads(engine.ask("inspect", container or engine.ask("ps", "--quiet")))[0]


def _get(port: int, path: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as reply:
        return reply.read()


@pytest.fixture
def contexts(real_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the copies are that images are built from; the engine's own folder needs a shorter path."""
    assert real_engine.ask("version")
    folder = tmp_path / "contexts"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def _arguments(folder: Path, results: Path, command: str) -> list[str]:
    options = ["--sandbox", "docker", "--agent", "command", "--command", command, "--output-dir", str(results)]
    return ["solve", str(folder), *options]


def test_a_dockerfile_is_built_run_limited_and_removed(
    real_engine: Engine, make_task: MakeTask, contexts: Path
) -> None:
    task = build_from_nothing(make_task())
    limits = SandboxLimits(memory_bytes=64 << 20, processes=10)
    with open_sandbox(task, "docker", limits) as sandbox:
        assert b"a container" in _get(sandbox.docker_port, "v1/sandbox")
        container = _inspect(real_engine)
        host = container["HostConfig"]
        assert (host["Memory"], host["MemorySwap"], host["PidsLimit"]) == ((64 << 20) + (2 << 30),) * 2 + (1034,)
        bound = [{"HostIp": "127.0.0.1", "HostPort": str(sandbox.docker_port)}]
        assert host["PortBindings"] == {"8080/tcp": bound}
        assert docker.LABEL in container["Config"]["Labels"]
    assert real_engine.left() == NOTHING_LEFT
    assert list(contexts.iterdir()) == []


def test_a_compose_file_runs_confined_and_leaves_nothing(
    real_engine: Engine, make_task: MakeTask, contexts: Path
) -> None:
    try:
        compose_program()
    except TaskError:
        pytest.skip("no Docker Compose (docker-compose)")
    task = build_from_nothing(make_task(), compose=COMPOSE)
    with open_sandbox(task, "docker", SandboxLimits(memory_bytes=64 << 20, processes=10)) as sandbox:
        assert b"a container" in _get(sandbox.docker_port, "copy/sandbox")
        container = _inspect(real_engine)
        host = container["HostConfig"]
        assert (host["Memory"], host["PidsLimit"], host["Privileged"]) == ((64 << 20) + (2 << 30), 1034, False)
        assert [each["HostIp"] for each in host["PortBindings"]["8080/tcp"]] == ["127.0.0.1"]
        assert docker.LABEL in container["Config"]["Labels"]
    assert real_engine.left() == NOTHING_LEFT
    assert list(contexts.iterdir()) == []
