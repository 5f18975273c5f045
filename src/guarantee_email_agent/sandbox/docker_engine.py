"""The user's own `docker` program: called, waited for, and asked why it failed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.text import printable

_DOCKER: Final = ("docker",)
_VERSION_S: Final = 10.0
_POLL_S: Final = 0.1
_REASON_CHARACTERS: Final = 300
_OUTPUT_BYTES: Final = 1 << 20
# Beginnings of the lines that follow docker's error message.
_REMEDIES: Final = ("Run 'docker", "See 'docker", "View build details", "For more help")


def require_engine() -> None:
    """Raises TaskError where no Docker engine answers."""
    remedy = "use --sandbox embedded, which needs none"
    if shutil.which("docker") is None:
        problem = "--sandbox docker needs the program 'docker', which is not installed. Install it"
        raise docker_error(f"{problem}, or {remedy}")
    command = (*_DOCKER, "version", "--format", "{{.Server.Version}}")
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_VERSION_S, check=False)
    except subprocess.TimeoutExpired:
        problem = f"the Docker engine does not answer within {_VERSION_S:g} s. Restart it"
        raise docker_error(f"{problem}, or {remedy}") from None
    if done.returncode != 0 or not done.stdout.strip():
        raise docker_error(f"no Docker engine runs on this machine, or it is not yours to use. Start it, or {remedy}")


def compose_program() -> tuple[str, ...]:
    """`docker compose`, or the older program that is called so. Raises TaskError where there is neither."""
    command = (*_DOCKER, "compose", "version")
    with suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_VERSION_S, check=False)
        if done.returncode == 0:
            return (*_DOCKER, "compose")
    if shutil.which("docker-compose") is not None:
        return ("docker-compose",)
    raise docker_error("the task has a compose file, and docker no command for it. Install Docker Compose")


class DockerEngine:
    """Calls `docker`. interrupted: polled while it runs; once true, it is killed."""

    def __init__(self, interrupted: Callable[[], bool]) -> None:
        self._interrupted = interrupted

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
                    if interruptible and self._interrupted():
                        raise docker_error("the run was interrupted")
                    if time.monotonic() >= deadline:
                        raise docker_error(f"{what} took longer than {timeout_s:g} s")
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_POLL_S)
            finally:
                if process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            output.seek(0)
            text = output.read(_OUTPUT_BYTES).decode("utf-8", "replace")
        if process.returncode != 0:
            raise docker_error(f"{what} failed: {failure_reason(text)}")
        return text

    def try_call(
        self,
        arguments: Sequence[str],
        timeout_s: float,
        environment: Mapping[str, str] | None = None,
        *,
        program: tuple[str, ...] = _DOCKER,
    ) -> str:
        """The same for clean-up and questions, interrupted or not: nothing where it fails."""
        try:
            return self.call(arguments, timeout_s, environment, program=program, interruptible=False)
        except TaskError:
            return ""


def docker_error(message: str) -> TaskError:
    return TaskError(message, "sandbox_docker")


def failure_reason(output: str) -> str:
    """The line of docker's output that has the error."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.strip().startswith(_REMEDIES)]
    errors = [line for line in lines if "error" in line.lower()]
    return printable((errors or lines or ["it said nothing"])[-1][:_REASON_CHARACTERS])
