"""A sandbox in a container: the task's own compose file or Dockerfile, else the AIO Sandbox image."""

from __future__ import annotations

import http.client
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from guarantee_email_agent.sandbox.docker_engine import Engine, reason, require_engine
from guarantee_email_agent.sandbox.sandbox import SandboxSettings
from guarantee_email_agent.utils.errors import TaskError

IMAGE: Final = "ghcr.io/agent-infra/sandbox:latest"
INNER_PORT: Final = 8080
LABEL: Final = "guarantee-email-agent"
"""On every container that is started here, so that one which outlived us can be found."""

_HOME: Final = "/home/gem"
_LONGEST_NAME: Final = 100
# What the image's own services take, a desktop with a browser among them, besides what the agent may.
_OWN_MEMORY: Final = 2 << 30
_OWN_PROCESSES: Final = 1024
_SHM_SHARE: Final = 4
_ASK_S: Final = 10.0
_BUILD_S: Final = 1800.0
_END_S: Final = 120.0
_READY_S: Final = 120.0
_PAUSE_S: Final = 0.25
_LOOK_S: Final = 2.0
# Nothing that is built or mounted may hold what the judge knows.
_KEPT_BACK: Final = ("test.py", "task.yaml", "__pycache__")


class DockerSandbox:
    """Built and run by the `docker` program. compose_file goes before dockerfile, and both before the image.

    interrupted: whether somebody wants the start to end, which may take minutes.
    """

    def __init__(
        self,
        task_name: str,
        directory: Path,
        dockerfile: Path | None,
        compose_file: Path | None,
        settings: SandboxSettings,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._directory = directory
        self._dockerfile = dockerfile
        self._compose_file = compose_file
        self._settings = settings
        self._task_name = task_name
        self._interrupted = interrupted
        self._engine = Engine(interrupted)
        self._port: int | None = None
        self._name = ""
        self._context: Path | None = None
        self._published_to_all = False

    @property
    def base_url(self) -> str:
        return f"http://localhost:{self.docker_port}"

    @property
    def docker_port(self) -> int:
        if self._port is None:
            raise TaskError("the sandbox has not been started, or has ended", "sandbox_not_running")
        return self._port

    @property
    def limitations(self) -> tuple[str, ...]:
        limitations = [
            "what a container may write to its disk is limited by Docker's own settings alone",
            "a container outlives solve where that is killed",
        ]
        if not self._settings.network:
            limitations.append("the network can be reached: a container without a network has no port for its API")
        if self._compose_file is not None:
            limitations.append("memory and processes are limited as far as the task's compose file limits them")
        if self._published_to_all:
            limitations.append(
                "the task's compose file opens the sandbox's port to other machines, not to this one alone"
            )
        return tuple(limitations)

    def start(self) -> None:
        require_engine()
        self._port = _free_port()
        self._name = container_name(self._task_name, self._port)
        try:
            if self._compose_file is not None:
                self._start_composed(self._compose_file)
            else:
                self._start_single()
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        if self._name:
            name, port = self._name, self._port or 0
            self._name, self._port = "", None
            if self._compose_file is not None:
                down = ("down", "--volumes", "--remove-orphans", "--timeout", "5")
                self._engine.try_to((*self._compose(self._compose_file, name), *down), _END_S, variables(name, port))
            else:
                self._engine.try_to(("rm", "--force", "--volumes", name), _END_S)
            if self._dockerfile is not None or self._compose_file is not None:
                self._engine.try_to(("image", "rm", "--force", f"{name}:latest"), _END_S)
        if self._context is not None:
            shutil.rmtree(self._context, ignore_errors=True)
            self._context = None

    def _start_single(self) -> None:
        image, assets = IMAGE, self._settings.assets
        if self._dockerfile is not None:
            image = f"{self._name}:latest"
            context = self._without_judge()
            command = ("build", "--quiet", "--tag", image, "--file", str(context / self._dockerfile.name), str(context))
            self._engine.call(command, _BUILD_S)
        self._engine.call(run(image, self._name, self.docker_port, self._settings), _BUILD_S)
        if self._dockerfile is None and assets is not None:
            self._engine.call(("cp", f"{assets}/.", f"{self._name}:{_HOME}/assets"), _BUILD_S)

    def _start_composed(self, compose_file: Path) -> None:
        self._without_judge()
        up = (*self._compose(compose_file, self._name), "up", "--detach", "--build")
        self._engine.call(up, _BUILD_S, variables(self._name, self.docker_port))
        addresses = [
            address
            for container in self._containers()
            for address in self._engine.try_to(("port", container, f"{INNER_PORT}/tcp"), _ASK_S).split()
        ]
        if not addresses:
            wanted = f'"127.0.0.1:${{HOST_PORT}}:{INNER_PORT}"'
            raise TaskError(
                f"{compose_file}: no running service publishes port {INNER_PORT}. Give the one that serves the API of "
                f"AIO Sandbox: ports: [{wanted}]",
                "sandbox_docker",
            )
        self._port = int(addresses[0].rpartition(":")[2])
        self._published_to_all = not all(address.startswith(("127.", "[::1]")) for address in addresses)

    def _compose(self, compose_file: Path, project: str) -> tuple[str, ...]:
        place = compose_file if self._context is None else self._context / compose_file.name
        return ("compose", "--project-name", project, "--file", str(place))

    def _without_judge(self) -> Path:
        """A copy of the task's directory, so that no agent finds the judge in its container, or changes it there."""
        self._context = Path(tempfile.mkdtemp(prefix="task-"))
        try:
            shutil.copytree(
                self._directory,
                self._context,
                symlinks=True,
                ignore=shutil.ignore_patterns(*_KEPT_BACK),
                dirs_exist_ok=True,
            )
        except (OSError, shutil.Error) as error:
            raise TaskError(f"{self._directory}: cannot be copied to build from: {error}", "sandbox_docker") from None
        return self._context

    def _containers(self) -> list[str]:
        if self._compose_file is None:
            return [self._name]
        label = f"label=com.docker.compose.project={self._name}"
        return self._engine.try_to(("ps", "--all", "--quiet", "--filter", label), _ASK_S).split()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_S
        look_at = time.monotonic() + _LOOK_S
        while time.monotonic() < deadline:
            if _answers(self.docker_port):
                return
            if self._interrupted():
                raise TaskError("the run was interrupted", "sandbox_docker")
            if time.monotonic() >= look_at:
                self._raise_if_ended()
                look_at = time.monotonic() + _LOOK_S
            time.sleep(_PAUSE_S)
        raise TaskError(
            f"the container of task {self._task_name} did not answer at /v1/sandbox within {_READY_S:g} s. It has "
            f"to serve the API of AIO Sandbox on port {INNER_PORT}",
            "sandbox_docker",
        )

    def _raise_if_ended(self) -> None:
        """A container whose program has ended will not answer any more."""
        states = {
            container: self._engine.try_to(("inspect", "--format", "{{.State.Status}}", container), _ASK_S).strip()
            for container in self._containers()
        }
        if any(state not in ("exited", "dead", "removing", "") for state in states.values()):
            return
        said = [self._engine.try_to(("logs", "--tail", "20", container), _ASK_S) for container in states]
        raise TaskError(
            f"the container of task {self._task_name} ended before it answered. It said last: "
            f"{reason(''.join(said))}. It has to serve the API of AIO Sandbox on port {INNER_PORT}",
            "sandbox_docker",
        )


def container_name(task_name: str, port: int) -> str:
    """What Docker takes as the name of a container, an image and a project, another one for each sandbox at a time."""
    return f"task-{re.sub(r'[^a-z0-9]+', '-', task_name.lower())[:_LONGEST_NAME].strip('-')}-{port}"


def variables(name: str, port: int) -> dict[str, str]:
    """What the compose files of such tasks take from the environment."""
    return {"TASK_DOCKER_IMAGE_NAME": f"{name}:latest", "TASK_DOCKER_CONTAINER_NAME": name, "HOST_PORT": str(port)}


def run(image: str, name: str, port: int, settings: SandboxSettings) -> tuple[str, ...]:
    """AIO Sandbox's browser needs system calls that Docker's own filter refuses, so its image asks to run without."""
    limits = settings.limits
    memory = str(limits.memory_bytes + _OWN_MEMORY)
    return (
        *("run", "--detach", "--name", name, "--label", LABEL, "--publish", f"127.0.0.1:{port}:{INNER_PORT}"),
        *("--memory", memory, "--memory-swap", memory, "--shm-size", str(limits.disk_bytes // _SHM_SHARE)),
        *("--pids-limit", str(limits.processes + _OWN_PROCESSES), "--security-opt", "seccomp=unconfined"),
        image,
    )


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ASK_S)
    try:
        connection.request("GET", "/v1/sandbox")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _free_port() -> int:
    """Free at the moment; Docker takes no socket that is open already."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
