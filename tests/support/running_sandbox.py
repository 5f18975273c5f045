"""Sandboxes that run, each with the client that judges use, and ours."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_sandbox import Sandbox as RealClient
from agent_sandbox.core.api_error import ApiError

from guarantee_email_agent.sandbox import SandboxLimits
from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.sandbox.served_sandbox import ServedSandbox

MIB = 1 << 20
SMALL = SandboxLimits(
    memory_bytes=256 * MIB, disk_bytes=32 * MIB, files=2_000, processes=40, time_s=60.0, command_s=20.0
)


class Box:
    """Starts a sandbox. real: the client that judges use; ours: our own."""

    def __init__(self, sandbox: ServedSandbox) -> None:
        self.sandbox = sandbox
        sandbox.start()
        self._http = httpx.Client(timeout=30)
        self.real = RealClient(base_url=sandbox.base_url, httpx_client=self._http)
        self.ours = SandboxClient(sandbox.base_url)

    def close(self) -> None:
        self._http.close()
        self.sandbox.stop()

    def shell(self, command: str, **more: Any) -> Any:
        """The result of a command, as the real client gives it."""
        return self.real.shell.exec_command(command=command, **more).data

    def output(self, command: str) -> str:
        return str(self.shell(command).output)

    def write(self, file: str, content: str, **more: Any) -> Any:
        return self.real.file.write_file(file=file, content=content, **more).data

    def read(self, file: str, **more: Any) -> str:
        return str(self.real.file.read_file(file=file, **more).data.content)

    def python(self, code: str, **more: Any) -> Any:
        """The result of a program, as the real client gives it."""
        return self.real.code.execute_code(language="python", code=code, **more).data

    def post(self, path: str, timeout_s: float = 20.0, **payload: Any) -> Any:
        """What our client gives."""
        return self.ours.call("POST", path, payload, timeout_s=timeout_s)


MakeBox = Callable[..., Box]


@contextmanager
def refused(status: int) -> Iterator[pytest.ExceptionInfo[ApiError]]:
    """The real client has to hear that a request is refused."""
    with pytest.raises(ApiError) as refusal:
        yield refusal
    assert refusal.value.status_code == status


def processes_with(word: str) -> list[int]:
    """The processes of this machine that have a word in their command line; one that has ended has none any more."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(folder.name) != os.getpid() and word.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


@contextmanager
def sandbox_of_another_process(
    kind: type[ServedSandbox], command: str, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """The process that started a sandbox, for a test to kill; a command runs in it in the background."""
    program = (
        "import sys, time\n"
        "from guarantee_email_agent.sandbox import SandboxSettings\n"
        "from guarantee_email_agent.sandbox.client import SandboxClient\n"
        f"from {kind.__module__} import {kind.__name__}\n"
        f"sandbox = {kind.__name__}(SandboxSettings())\n"
        "sandbox.start()\n"
        "SandboxClient(sandbox.base_url).call('POST', '/v1/shell/exec',\n"
        f"    {{'command': {command!r}, 'async_mode': True}}, timeout_s=10)\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )
    command_line, variables = [sys.executable, "-c", program], {**os.environ, **environment}
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, env=variables) as process:
        assert process.stdout.readline() == b"up\n"
        yield process
