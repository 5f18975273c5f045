"""The user's own `docker` program: called, waited for, and asked why it failed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Final

from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.printable import printable

_ASK_S: Final = 10.0
_LOOK_S: Final = 0.1
_SHOWN: Final = 300
_OUTPUT_BYTES: Final = 1 << 20
# How docker ends what it says of an error.
_REMEDIES: Final = ("Run 'docker", "See 'docker", "View build details", "For more help")


def require_engine() -> None:
    """Raises TaskError where no Docker engine answers."""
    remedy = "use --sandbox embedded, which needs none"
    if shutil.which("docker") is None:
        problem = "--sandbox docker needs the program 'docker', which is not installed. Install it"
        raise TaskError(f"{problem}, or {remedy}", "sandbox_docker")
    command = ("docker", "version", "--format", "{{.Server.Version}}")
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ASK_S, check=False)
    except subprocess.TimeoutExpired:
        problem = f"the Docker engine does not answer within {_ASK_S:g} s. Restart it"
    else:
        if done.returncode == 0 and done.stdout.strip():
            return
        problem = "no Docker engine runs on this machine, or it is not yours to use. Start it"
    raise TaskError(f"{problem}, or {remedy}", "sandbox_docker")


class Engine:
    """Calls `docker`. interrupted: looked at while it works; it is ended then."""

    def __init__(self, interrupted: Callable[[], bool]) -> None:
        self._interrupted = interrupted

    def call(self, arguments: Sequence[str], timeout_s: float, more: Mapping[str, str] | None = None) -> str:
        """What it printed. more: variables besides our environment. Raises TaskError with its reason where it fails."""
        with tempfile.TemporaryFile() as output:
            code = self._run(arguments, timeout_s, more, output, self._interrupted)
            output.seek(0)
            text = output.read(_OUTPUT_BYTES).decode("utf-8", "replace")
        if code != 0:
            raise TaskError(f"docker {arguments[0]} failed: {reason(text)}", "sandbox_docker")
        return text

    def try_to(self, arguments: Sequence[str], timeout_s: float, more: Mapping[str, str] | None = None) -> str:
        """The same for clean-up and questions, interrupted or not: nothing where it fails."""
        try:
            with tempfile.TemporaryFile() as output:
                code = self._run(arguments, timeout_s, more, output, lambda: False)
                output.seek(0)
                return output.read(_OUTPUT_BYTES).decode("utf-8", "replace") if code == 0 else ""
        except TaskError:
            return ""

    @staticmethod
    def _run(
        arguments: Sequence[str],
        timeout_s: float,
        more: Mapping[str, str] | None,
        output: IO[bytes],
        interrupted: Callable[[], bool],
    ) -> int:
        deadline = time.monotonic() + timeout_s
        environment = {**os.environ, **(more or {})}
        try:
            process = subprocess.Popen(
                ("docker", *arguments),  # noqa: S607 - the user's own docker
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        except OSError as error:
            raise TaskError(f"docker cannot be started: {error.strerror}", "sandbox_docker") from None
        try:
            while True:
                try:
                    return process.wait(_LOOK_S)
                except subprocess.TimeoutExpired:
                    if interrupted():
                        raise TaskError("the run was interrupted", "sandbox_docker") from None
                    if time.monotonic() >= deadline:
                        problem = f"docker {arguments[0]} took longer than {timeout_s:g} s"
                        raise TaskError(problem, "sandbox_docker") from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def reason(output: str) -> str:
    """The line that says why, of all that docker printed."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.strip().startswith(_REMEDIES)]
    errors = [line for line in lines if "error" in line.lower()]
    last = (errors or lines or ["it said nothing"])[-1]
    return printable(last[:_SHOWN])
