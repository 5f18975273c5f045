"""No sandbox: the same API on the host, in a folder that goes away."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from guarantee_email_agent.sandbox import SandboxSettings
from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.sandbox.host import HostSandbox
from guarantee_email_agent.utils.errors import TaskError


def test_commands_run_on_the_host_in_a_folder_that_is_removed(tmp_path: Path) -> None:
    (tmp_path / "input.txt").write_text("given")
    sandbox = HostSandbox(SandboxSettings(assets=tmp_path))
    sandbox.start()
    client = SandboxClient(sandbox.base_url)
    result = client.call("POST", "/v1/shell/exec", {"command": "cat assets/input.txt; pwd; id -u"}, timeout_s=10)
    given, home, user = result["output"].replace("given", "given\n").splitlines()
    assert (given, user) == ("given", str(os.geteuid()))
    assert Path(home).is_dir()
    sandbox.stop()
    assert not Path(home).exists()


def test_it_says_what_it_gives_up() -> None:
    assert "nothing is isolated" in HostSandbox(SandboxSettings()).limitations[0]


def test_even_so_nothing_is_left_running(running: Callable[[str], list[int]], token: str) -> None:
    sandbox = HostSandbox(SandboxSettings())
    sandbox.start()
    command = f"sleep {token}1 & (setsid sleep {token}2 &); echo ok"
    client = SandboxClient(sandbox.base_url)
    assert client.call("POST", "/v1/shell/exec", {"command": command}, timeout_s=10)["output"] == "ok"
    assert running(token)
    sandbox.stop()
    assert running(token) == []


def test_nothing_is_left_where_we_are_killed(running: Callable[[str], list[int]], token: str, tmp_path: Path) -> None:
    program = (
        "import os, sys, time\n"
        "from guarantee_email_agent.sandbox import SandboxSettings\n"
        "from guarantee_email_agent.sandbox.client import SandboxClient\n"
        "from guarantee_email_agent.sandbox.host import HostSandbox\n"
        "sandbox = HostSandbox(SandboxSettings())\n"
        "sandbox.start()\n"
        "SandboxClient(sandbox.base_url).call('POST', '/v1/shell/exec',\n"
        f"    {{'command': 'env -i setsid sleep {token} & sleep {token}', 'async_mode': True}}, timeout_s=10)\n"
        "print('up', flush=True)\n"
        "time.sleep(60)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        _until(lambda: len(running(token)) >= 2)
        assert len(list(tmp_path.iterdir())) == 1
        process.kill()
    _until(lambda: running(token) == [] and list(tmp_path.iterdir()) == [])


def test_nothing_is_left_of_an_agent_that_ended_the_sandbox(running: Callable[[str], list[int]], token: str) -> None:
    sandbox = HostSandbox(SandboxSettings())
    sandbox.start()
    client = SandboxClient(sandbox.base_url)
    command = f"setsid sleep {token} & until pgrep -f 'sleep {token}$'; do :; done; kill -9 $PPID; sleep {token}"
    with pytest.raises(TaskError, match="the sandbox has ended"):
        client.call("POST", "/v1/shell/exec", {"command": command}, timeout_s=10)
    assert running(token)
    sandbox.stop()
    assert running(token) == []


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
