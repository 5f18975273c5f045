"""A running embedded sandbox, shared by the tests of one module, and others with small limits."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_sandbox import Sandbox as RealClient

from guarantee_email_agent.sandbox import SandboxLimits, SandboxSettings
from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.sandbox.embedded import EmbeddedSandbox

MIB = 1 << 20
SMALL = SandboxLimits(
    memory_bytes=256 * MIB, disk_bytes=32 * MIB, files=2_000, processes=40, time_s=60.0, command_s=20.0
)


class Box:
    """A sandbox with both clients: the one that judges use, and ours."""

    def __init__(self, sandbox: EmbeddedSandbox) -> None:
        self.sandbox = sandbox
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


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    sandbox = EmbeddedSandbox(SandboxSettings())
    sandbox.start()
    box = Box(sandbox)
    try:
        yield box
    finally:
        box.close()


@pytest.fixture
def make_box() -> Iterator[Callable[[SandboxSettings], Box]]:
    """Starts sandboxes that end with the test."""
    made: list[Box] = []

    def make(settings: SandboxSettings) -> Box:
        sandbox = EmbeddedSandbox(settings)
        sandbox.start()
        made.append(Box(sandbox))
        return made[-1]

    try:
        yield make
    finally:
        for box in made:
            box.close()


@pytest.fixture
def small_box(make_box: Callable[[SandboxSettings], Box]) -> Box:
    return make_box(SandboxSettings(SMALL))


@pytest.fixture
def token() -> str:
    """A number that no process of another run of the tests has in its command line."""
    return f"{time.time_ns() % 10**9:09}"


@pytest.fixture
def running() -> Callable[[str], list[int]]:
    """The processes of this machine that have a word in their command line; one that has ended has none any more."""

    def running(word: str) -> list[int]:
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                try:
                    if word.encode() in (folder / "cmdline").read_bytes():
                        found.append(int(folder.name))
                except OSError:
                    continue
        return found

    assert sys.platform == "linux"
    return running
