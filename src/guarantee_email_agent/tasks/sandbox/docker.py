"""A sandbox in a container: the task's own compose file or Dockerfile, else the AIO Sandbox image."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from guarantee_email_agent.tasks.sandbox.port import SandboxSettings
from guarantee_email_agent.utils.errors import TaskError

IMAGE: Final = "ghcr.io/agent-infra/sandbox:latest"
INNER_PORT: Final = 8080
_HOME: Final = "/home/gem"
_ASK_S: Final = 10.0
_BUILD_S: Final = 1800.0
_READY_S: Final = 120.0
_PAUSE_S: Final = 0.25


class DockerSandbox:
    """Built and run by the `docker` program. compose_file goes before dockerfile, and both before the image."""

    def __init__(
        self,
        task_name: str,
        directory: Path,
        dockerfile: Path | None,
        compose_file: Path | None,
        settings: SandboxSettings,
    ) -> None:
        self._directory = directory
        self._dockerfile = dockerfile
        self._compose_file = compose_file
        self._settings = settings
        self._task_name = task_name
        self._port: int | None = None
        self._name = ""

    @property
    def base_url(self) -> str:
        return f"http://localhost:{self.docker_port}"

    @property
    def docker_port(self) -> int:
        if self._port is None:
            raise TaskError("the sandbox has not been started, or has ended", "sandbox_not_running")
        return self._port

    @property
    def gaps(self) -> tuple[str, ...]:
        gaps = ["what a container may write to its disk is limited by Docker's own settings alone"]
        if not self._settings.network:
            gaps.append("the network can be reached: a container without a network has no port for its API")
        if self._compose_file is not None:
            gaps.append("memory and processes are limited as far as the task's compose file limits them")
        return tuple(gaps)

    def start(self) -> None:
        require_engine()
        port = _free_port()
        self._name = container_name(self._task_name, port)
        self._port = port
        try:
            if self._compose_file is not None:
                self._docker(compose_up(self._compose_file, self._name), _BUILD_S, self._compose_environment())
            else:
                image = IMAGE
                if self._dockerfile is not None:
                    image = f"{self._name}:latest"
                    self._docker(build(self._dockerfile, self._directory, image), _BUILD_S)
                self._docker(run(image, self._name, port, self._settings), _BUILD_S)
                if self._dockerfile is None and self._settings.assets is not None:
                    self._docker(("cp", f"{self._settings.assets}/.", f"{self._name}:{_HOME}/assets"), _BUILD_S)
            self._wait_until_ready(port)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        if self._port is None:
            return
        if self._compose_file is not None:
            self._docker(
                compose_down(self._compose_file, self._name), _READY_S, self._compose_environment(), check=False
            )
        else:
            self._docker(("rm", "--force", "--volumes", self._name), _READY_S, check=False)
            if self._dockerfile is not None:
                self._docker(("image", "rm", "--force", f"{self._name}:latest"), _READY_S, check=False)
        self._port = None

    def _compose_environment(self) -> dict[str, str]:
        return compose_environment(self._name, self.docker_port)

    def _docker(
        self, arguments: Sequence[str], timeout_s: float, more: Mapping[str, str] | None = None, *, check: bool = True
    ) -> None:
        try:
            done = subprocess.run(
                ("docker", *arguments),  # noqa: S607 - the user's own docker
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                env={**os.environ, **(more or {})},
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TaskError(f"docker {arguments[0]} took longer than {timeout_s:g} s", "sandbox_docker") from None
        if check and done.returncode != 0:
            last = done.stdout.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it said nothing"]
            raise TaskError(f"docker {arguments[0]} failed: {last[0][:300]}", "sandbox_docker")

    def _wait_until_ready(self, port: int) -> None:
        deadline = time.monotonic() + _READY_S
        while time.monotonic() < deadline:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ASK_S)
            try:
                connection.request("GET", "/v1/sandbox")
                if connection.getresponse().status == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            time.sleep(_PAUSE_S)
        raise TaskError(
            f"the container of task {self._task_name} did not answer at /v1/sandbox within {_READY_S:g} s. It has "
            f"to serve the API of AIO Sandbox on port {INNER_PORT}",
            "sandbox_docker",
        )


def require_engine() -> None:
    """Raises TaskError where no Docker engine answers."""
    remedy = "Use --sandbox embedded, which needs none"
    if shutil.which("docker") is None:
        raise TaskError(
            f"--sandbox docker needs the program 'docker', which is not installed. {remedy}", "sandbox_docker"
        )
    command = ("docker", "version", "--format", "{{.Server.Version}}")
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ASK_S, check=False)
    except subprocess.TimeoutExpired:
        raise TaskError(f"the Docker engine does not answer within {_ASK_S:g} s. {remedy}", "sandbox_docker") from None
    if done.returncode != 0 or not done.stdout.strip():
        raise TaskError(f"no Docker engine runs on this machine. Start it, or: {remedy}", "sandbox_docker")


def container_name(task_name: str, port: int) -> str:
    """A name that Docker takes, another one for each sandbox of a task at the same time."""
    return f"task-{re.sub(r'[^a-z0-9_.-]', '-', task_name.lower())}-{port}"


def compose_environment(name: str, port: int) -> dict[str, str]:
    """What the compose files of such tasks take from the environment."""
    return {"TASK_DOCKER_IMAGE_NAME": f"{name}:latest", "TASK_DOCKER_CONTAINER_NAME": name, "HOST_PORT": str(port)}


def compose_up(compose_file: Path, name: str) -> tuple[str, ...]:
    return ("compose", "--project-name", _project(name), "--file", str(compose_file), "up", "--detach", "--build")


def compose_down(compose_file: Path, name: str) -> tuple[str, ...]:
    ending = ("down", "--volumes", "--remove-orphans", "--timeout", "5")
    return ("compose", "--project-name", _project(name), "--file", str(compose_file), *ending)


def build(dockerfile: Path, directory: Path, image: str) -> tuple[str, ...]:
    return ("build", "--quiet", "--tag", image, "--file", str(dockerfile), str(directory))


def run(image: str, name: str, port: int, settings: SandboxSettings) -> tuple[str, ...]:
    """AIO Sandbox's browser needs system calls that Docker's own filter refuses, so its image asks to run without."""
    limits = settings.limits
    return (
        *("run", "--detach", "--rm", "--name", name, "--publish", f"127.0.0.1:{port}:{INNER_PORT}"),
        *("--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes)),
        *("--pids-limit", str(limits.processes), "--security-opt", "seccomp=unconfined"),
        image,
    )


def _project(name: str) -> str:
    return name.replace(".", "-")


def _free_port() -> int:
    """Free at the moment; Docker takes no socket that is open already."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
