"""No sandbox: the same API on the host, in a folder that goes away."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from running_sandbox import MakeBox, processes_with

from guarantee_email_agent.sandbox import SandboxSettings
from guarantee_email_agent.sandbox.served_sandbox import HostSandbox
from guarantee_email_agent.utils.errors import TaskError


def test_commands_run_on_the_host_in_a_folder_that_is_removed(tmp_path: Path, make_box: MakeBox) -> None:
    (tmp_path / "input.txt").write_text("given")
    box = make_box(SandboxSettings(assets=tmp_path), HostSandbox)
    given, home, user = box.output("cat assets/input.txt; echo; pwd; id -u").splitlines()
    assert (given, user) == ("given", str(os.geteuid()))
    assert Path(home).is_dir()
    box.sandbox.stop()
    assert not Path(home).exists()


def test_nothing_is_left_of_an_agent_that_ended_the_sandbox(make_box: MakeBox, token: str) -> None:
    box = make_box(kind=HostSandbox)
    command = f"setsid sleep {token} & until pgrep -f 'sleep {token}$'; do :; done; kill -9 $PPID; sleep {token}"
    with pytest.raises(TaskError, match="the sandbox has ended"):
        box.post("/v1/shell/exec", command=command)
    assert processes_with(token)
    box.sandbox.stop()
    assert processes_with(token) == []
