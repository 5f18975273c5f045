"""A sandbox in a container: the task's own compose file or Dockerfile, else the AIO Sandbox image."""

from __future__ import annotations

import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from guarantee_email_agent.isolation.processes import kill_group
from guarantee_email_agent.sandbox.asset_files import require_real_folder
from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.sandbox.compose_file import LOOPBACK, confined
from guarantee_email_agent.sandbox.sandbox import HOME, Sandbox, SandboxSettings, SandboxTask
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.text import printable

_DOCKER: Final = ("docker",)
_QUERY_S: Final = 10.0
_POLL_S: Final = 0.1
_REASON_CHARACTERS: Final = 300
_OUTPUT_BYTES: Final = 1 << 20
# Beginnings of the lines that follow docker's error message.
_REMEDIES: Final = ("Run 'docker", "See 'docker", "View build details", "For more help", "Encountered errors")


def require_engine() -> None:
    """Raises TaskError where no Docker engine answers."""
    remedy = "use --sandbox embedded, which needs none"
    if shutil.which("docker") is None:
        problem = "--sandbox docker needs the program 'docker', which is not installed. Install it"
        raise docker_error(f"{problem}, or {remedy}")
    try:
        done = _ask("version", "--format", "{{.Server.Version}}")
    except subprocess.TimeoutExpired:
        problem = f"the Docker engine does not answer within {_QUERY_S:g} s. Restart it"
        raise docker_error(f"{problem}, or {remedy}") from None
    if done.returncode != 0 or not done.stdout.strip():
        raise docker_error(f"no Docker engine runs on this machine, or it is not yours to use. Start it, or {remedy}")


def compose_program() -> tuple[str, ...]:
    """`docker compose`, or the older program that is called so. Raises TaskError where there is neither."""
    with suppress(subprocess.TimeoutExpired):
        if _ask("compose", "version").returncode == 0:
            return (*_DOCKER, "compose")
    if shutil.which("docker-compose") is not None:
        return ("docker-compose",)
    raise docker_error("the task has a compose file, and docker no command for it. Install Docker Compose")


def _ask(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = (*_DOCKER, *arguments)
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_QUERY_S, check=False)


class DockerEngine:
    """Calls `docker`. interrupted: polled while it runs; once true, it is killed."""

    def __init__(self, interrupted: Callable[[], bool]) -> None:
        self.interrupted = interrupted

    def call(
        self,
        arguments: Sequence[str],
        timeout_s: float,
        environment: Mapping[str, str] | None = None,
        *,
        program: tuple[str, ...] = _DOCKER,
        interruptible: bool = True,
    ) -> str:
        """What it printed. program: `compose_program`, for its arguments. environment: in the place of ours.

        Raises TaskError with its reason where it fails.
        """
        what = " ".join(program) if program != _DOCKER else f"docker {arguments[0]}"
        deadline = time.monotonic() + timeout_s
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    (*program, *arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    process_group=0,  # `docker compose` is a process of its own, which has to end with it
                )
            except OSError as error:
                raise docker_error(f"docker cannot be started: {error.strerror}") from None
            try:
                while process.poll() is None:
                    if interruptible and self.interrupted():
                        raise docker_error("the run was interrupted")
                    if time.monotonic() >= deadline:
                        raise docker_error(f"{what} took longer than {timeout_s:g} s")
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_POLL_S)
            finally:
                if process.poll() is None:
                    kill_group(process.pid)
                    process.wait()
            output.seek(0)
            text = output.read(_OUTPUT_BYTES).decode("utf-8", "replace")
        if process.returncode != 0:
            raise docker_error(f"{what} failed: {failure_reason(text)}")
        return text

    def try_call(self, *arguments: str, timeout_s: float = _QUERY_S) -> str:
        """The same for clean-up and questions, interrupted or not: nothing where it fails."""
        try:
            return self.call(arguments, timeout_s, interruptible=False)
        except TaskError:
            return ""


def docker_error(message: str) -> TaskError:
    return TaskError(message, "sandbox_docker")


def failure_reason(output: str) -> str:
    """The line of docker's output that has the error."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.strip().startswith(_REMEDIES)]
    errors = [line for line in lines if "error" in line.lower()]
    return printable((errors or lines or ["it said nothing"])[-1][:_REASON_CHARACTERS]).rstrip(".")


IMAGE: Final = "ghcr.io/agent-infra/sandbox:latest"
INNER_PORT: Final = 8080
LABEL: Final = "guarantee-email-agent"
"""On every container that is started here, so that one which outlived us can be found."""

_MAX_NAME_CHARACTERS: Final = 100
# What the image's own services take, a desktop with a browser among them, besides what the agent may.
_OWN_MEMORY: Final = 2 << 30
_OWN_PROCESSES: Final = 1024
_SHM_SHARE: Final = 4
_BUILD_S: Final = 1800.0
_REMOVE_S: Final = 120.0
_READY_S: Final = 120.0
_PAUSE_S: Final = 0.25
_INSPECT_S: Final = 2.0
# What docker is told its ways by; a compose file of a stranger gets no other variable of ours, such as a key.
_PASSED_VARIABLES: Final = (
    *("PATH", "HOME", "LANG", "TMPDIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"),
    *("DOCKER_API_VERSION", "DOCKER_BUILDKIT", "BUILDX_BUILDER", "BUILDX_CONFIG"),
)
# docker reads these itself, and follows links.
_READ_BY_DOCKER: Final = ("Dockerfile", "Dockerfile.dockerignore", ".dockerignore", ".env")
# Nothing that is built or mounted may hold what the judge knows.
_JUDGE_FILES: Final = ("test.py", "task.yaml", "__pycache__")


class DockerSandbox(Sandbox):
    """Built and run by `docker`: from the task's compose file, else its Dockerfile, else the image of AIO Sandbox.

    interrupted: whether the start, which may take minutes, is to end.
    """

    def __init__(self, task: SandboxTask, settings: SandboxSettings, interrupted: Callable[[], bool]) -> None:
        self._task = task
        self._settings = settings
        self._engine = DockerEngine(interrupted)
        self._port: int | None = None
        self._name = ""
        self._compose: tuple[str, ...] = ()
        self._context: Path | None = None
        self._published_to_all = False

    @property
    def docker_port(self) -> int:
        if self._port is None:
            raise TaskError("the sandbox has not been started, or has ended", "sandbox_not_running")
        return self._port

    @property
    def limitations(self) -> tuple[str, ...]:
        found = [
            "what a container may write, and how long it and its commands may take, is limited by Docker alone",
            "a container outlives solve where that is killed",
        ]
        if not self._settings.network:
            found.append("the network can be reached: a container without a network has no port for its API")
        if self._task.compose_file is not None and self._settings.compose_host:
            found.append("the task's compose file may reach this machine, and sets its own limits")
        elif self._task.compose_file is not None:
            found.append("each service of the task's compose file has the whole limit of memory and processes")
        if self._published_to_all:
            found.append("the task's compose file opens the sandbox's port to other machines, not to this one alone")
        return tuple(found)

    def start(self) -> None:
        require_engine()
        self._port = _free_port()
        self._name = container_name(self._task.name, self._port)
        try:
            if self._task.compose_file is not None:
                self._start_composed(self._task.compose_file)
            else:
                self._start_single()
            self._wait_until_ready()
        except BaseException:
            with suppress(TaskError):  # what went wrong first is what matters
                self.stop()
            raise

    def stop(self) -> None:
        if self._name:
            name, self._name = self._name, ""
            try:
                self._remove_containers(name)
            finally:
                if self._task.dockerfile is not None or self._task.compose_file is not None:
                    # A compose file tags one for each service that it builds.
                    tags = self._engine.try_call("image", "ls", "--format", "{{.Tag}}", name).split() or ["latest"]
                    images = (f"{name}:{tag}" for tag in tags)
                    self._engine.try_call("image", "rm", "--force", *images, timeout_s=_REMOVE_S)
                self._port = None
                if self._context is not None:
                    shutil.rmtree(self._context, ignore_errors=True)
                    self._context = None

    def _remove_containers(self, name: str) -> None:
        """Raises TaskError where they may be there still."""
        try:
            if self._compose and self._task.compose_file is not None:
                down = ("down", "--volumes", "--remove-orphans", "--rmi", "local", "--timeout", "0")
                command, environment = (*self._project(name, self._task.compose_file), *down), self._environment(name)
                self._engine.call(command, _REMOVE_S, environment, program=self._compose, interruptible=False)
            else:
                self._engine.call(("rm", "--force", "--volumes", name), _REMOVE_S, interruptible=False)
        except TaskError as error:
            if "No such container" not in error.message:
                remedy = f"docker rm --force $(docker ps -aq --filter label={LABEL})"
                problem = f"the container {name} could not be removed ({error.message}). Once Docker runs: {remedy}"
                raise docker_error(problem) from None

    def _start_single(self) -> None:
        image, assets, dockerfile = IMAGE, self._settings.assets, self._task.dockerfile
        if dockerfile is not None:
            image = f"{self._name}:latest"
            context = self._copy_without_judge()
            options = ("--quiet", "--tag", image, "--file", str(context / dockerfile.name))
            self._engine.call(("build", *options, str(context)), _BUILD_S)
        self._engine.call(_run_command(image, self._name, self.docker_port, self._settings), _BUILD_S)
        if dockerfile is None and assets is not None:
            require_real_folder(assets)
            self._engine.call(("cp", f"{assets}/.", f"{self._name}:{HOME}/assets"), _BUILD_S)

    def _start_composed(self, compose_file: Path) -> None:
        program = compose_program()
        copy = self._copy_without_judge() / compose_file.name
        if not self._settings.compose_host:
            memory_bytes, processes = _limits_with_services(self._settings)
            text = confined(copy, memory_bytes=memory_bytes, processes=processes, label=LABEL)
            copy.write_text(text, encoding="utf-8")
        self._compose = program  # from here on there is something to take down, by a file that may be read
        up = (*self._project(self._name, compose_file), "up", "--detach", "--build")
        self._engine.call(up, _BUILD_S, self._environment(self._name), program=self._compose)
        addresses = [
            address
            for container in self._containers()
            for address in self._engine.try_call("port", container, f"{INNER_PORT}/tcp").split()
        ]
        if not addresses:
            raise docker_error(
                f"{compose_file}: no running service publishes port {INNER_PORT}. Give the one that serves the API of "
                f'AIO Sandbox: ports: ["127.0.0.1:${{HOST_PORT}}:{INNER_PORT}"]'
            )
        # Another service may publish that port, too; a file that is trusted, any.
        self._port = int(max(addresses, key=lambda each: each.endswith(f":{self._port}")).rpartition(":")[2])
        self._published_to_all = not all(address.startswith(("127.", "[::1]")) for address in addresses)

    def _project(self, name: str, compose_file: Path) -> tuple[str, ...]:
        path = compose_file if self._context is None else self._context / compose_file.name
        return ("--project-name", name, "--file", str(path))

    def _environment(self, name: str) -> dict[str, str]:
        """With what the compose files of such tasks take from there."""
        ours = os.environ.items()
        passed = {name: value for name, value in ours if self._settings.compose_host or name in _PASSED_VARIABLES}
        names = {"TASK_DOCKER_IMAGE_NAME": f"{name}:latest", "TASK_DOCKER_CONTAINER_NAME": name}
        return passed | names | {"HOST_PORT": str(self._port)}

    def _copy_without_judge(self) -> Path:
        """A copy of the task's directory, so that no agent finds the judge in its container, or changes it there."""
        self._context = Path(tempfile.mkdtemp(prefix="task-"))
        top = str(self._task.directory)  # a file of such a name below it is the agent's
        try:
            shutil.copytree(
                self._task.directory,
                self._context,
                symlinks=True,
                ignore=lambda folder, _: _JUDGE_FILES if folder == top else (),
                copy_function=_copy_regular,
                dirs_exist_ok=True,
            )
        except (OSError, shutil.Error) as error:
            raise docker_error(f"{self._task.directory}: cannot be copied to build from: {error}") from None
        for name in _READ_BY_DOCKER:
            if (self._context / name).is_symlink():
                raise docker_error(f"{self._task.directory / name}: is a link. Put the file itself there")
        return self._context

    def _containers(self) -> list[str]:
        if self._task.compose_file is None:
            return [self._name]
        label = f"label=com.docker.compose.project={self._name}"
        return self._engine.try_call("ps", "--all", "--quiet", "--filter", label).split()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_S
        inspect_at = time.monotonic() + _INSPECT_S
        client = SandboxClient(f"http://127.0.0.1:{self.docker_port}")
        while time.monotonic() < deadline:
            with suppress(TaskError):
                client.download("/v1/sandbox", timeout_s=_QUERY_S)
                return
            if self._engine.interrupted():
                raise docker_error("the run was interrupted")
            if time.monotonic() >= inspect_at:
                self._raise_if_ended()
                inspect_at = time.monotonic() + _INSPECT_S
            time.sleep(_PAUSE_S)
        raise docker_error(
            f"the container of task {self._task.name} did not answer at /v1/sandbox within {_READY_S:g} s. It has "
            f"to serve the API of AIO Sandbox on port {INNER_PORT}"
        )

    def _raise_if_ended(self) -> None:
        """A container whose program has ended will not answer any more."""
        containers = self._containers()
        inspect = ("inspect", "--format", "{{.State.Status}}")
        states = [self._engine.try_call(*inspect, container).strip() for container in containers]
        if all(state in ("exited", "dead", "removing", "") for state in states):
            logs = [self._engine.try_call("logs", "--tail", "20", container) for container in containers]
            raise docker_error(
                f"the container of task {self._task.name} ended before it answered. It said last: "
                f"{failure_reason(''.join(logs))}. It has to serve the API of AIO Sandbox on port {INNER_PORT}"
            )


def _copy_regular(source: str, target: str, **how: bool) -> str:
    """A file or a link; from a device or a FIFO there is no end of reading."""
    if not (os.path.islink(source) or stat.S_ISREG(os.stat(source).st_mode)):
        raise OSError(f"{source} is neither a file nor a folder")
    return str(shutil.copy2(source, target, **how))


def _limits_with_services(settings: SandboxSettings) -> tuple[int, int]:
    """Bytes of memory and processes, for what the agent may use and for what the image runs of its own."""
    return settings.limits.memory_bytes + _OWN_MEMORY, settings.limits.processes + _OWN_PROCESSES


def container_name(task_name: str, port: int) -> str:
    """What Docker takes as the name of a container, an image and a project, another one for each sandbox at a time."""
    return f"task-{re.sub(r'[^a-z0-9]+', '-', task_name.lower())[:_MAX_NAME_CHARACTERS].strip('-')}-{port}"


def _run_command(image: str, name: str, port: int, settings: SandboxSettings) -> tuple[str, ...]:
    """AIO Sandbox's browser needs system calls that Docker's own filter refuses, so its image asks to run without."""
    memory, processes = map(str, _limits_with_services(settings))
    shared_memory = str(settings.limits.disk_bytes // _SHM_SHARE)
    return (
        *("run", "--detach", "--name", name, "--label", LABEL, "--publish", f"{LOOPBACK}:{port}:{INNER_PORT}"),
        *("--memory", memory, "--memory-swap", memory, "--shm-size", shared_memory),
        *("--pids-limit", processes, "--security-opt", "seccomp=unconfined"),
        image,
    )


def _free_port() -> int:
    """Free at the moment; Docker takes no socket that is open already."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
