"""No sandbox: the same API on the host, in a folder that goes away."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from guarantee_email_agent.tasks.sandbox import SandboxSettings
from guarantee_email_agent.tasks.sandbox.client import SandboxClient
from guarantee_email_agent.tasks.sandbox.none import HostSandbox


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
    assert "nothing is isolated" in HostSandbox(SandboxSettings()).gaps[0]


def test_even_so_nothing_is_left_running(running: Callable[[str], list[int]], token: str) -> None:
    sandbox = HostSandbox(SandboxSettings())
    sandbox.start()
    command = f"sleep {token}1 & (setsid sleep {token}2 &); echo ok"
    client = SandboxClient(sandbox.base_url)
    assert client.call("POST", "/v1/shell/exec", {"command": command}, timeout_s=10)["output"] == "ok"
    assert running(token)
    sandbox.stop()
    assert running(token) == []
