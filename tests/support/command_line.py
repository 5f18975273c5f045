"""The program as its users meet it: a process of its own, in an empty folder.

Most tests ask for no start of their own: their process is a fork of one that has loaded everything already.
"""

import atexit
import codecs
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

import pytest

MODULE = [sys.executable, "-m", "guarantee_email_agent"]
SETTINGS = (
    "CONFIG_PATH",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "NO_COLOR",
    "TERM",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "GITHUB_ACTIONS",
    "GITHUB_STEP_SUMMARY",
    "GITLAB_CI",
)
TIMEOUT_S = 600
NEVER_OFFLINE = {"anthropic", "openai", "mcp", "yaml", "starlette", "httpx", "pydantic", "aiohttp", "uvicorn", "docker"}
LIST_MODULES = """
import sys
from guarantee_email_agent.cli import run
code = run(sys.argv[1:])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""
FORK = """
import atexit, json, os, socket, sys, tempfile, time
from guarantee_email_agent.cli import run

requests = socket.socket(fileno=int(sys.argv.pop()))
run(["eval", "--only", "missing_info_001", "--no-store"])
sys.stdout.flush()
while (received := socket.recv_fds(requests, 1 << 20, 3))[0]:
    if child := os.fork():
        for stream in received[1]:
            os.close(stream)
        requests.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        continue
    requests.close()
    for number, stream in enumerate(received[1]):
        os.dup2(stream, number)
        os.close(stream)
    arguments, folder, environment = json.loads(received[0])
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    tempfile.tempdir = None
    code = run(arguments)
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(code)  # the interpreter needs as long to take itself apart as most commands take
"""

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteSuite = Callable[..., Path]


def environment(**more: str) -> dict[str, str]:
    """Ours without any setting of the agent."""
    plain = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return {**plain, "PYTHONIOENCODING": "utf-8", **more}


def run_program(
    folder: Path,
    *arguments: str | Path,
    program: Sequence[str] | None = None,
    env: Mapping[str, str] | None = None,
    **more: Any,
) -> subprocess.CompletedProcess[str]:
    """The program from start to end in `folder`, with all of its output.

    With a `program`, with more options of a process, or with variables for Python itself it is started anew.
    """
    if program is None and not more.keys() - {"stdin"} and not any(name.startswith("PYTHON") for name in env or ()):
        return _forked(str(folder), [*map(str, arguments)], environment(**(env or {})), **more)
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(
        [*(program or MODULE), *map(str, arguments)],
        cwd=folder,
        env=environment(**(env or {})),
        encoding="utf-8",
        timeout=TIMEOUT_S,
        check=False,
        **(options | more),
    )


def _forked(
    folder: str, arguments: Sequence[str], env: Mapping[str, str], stdin: IO[Any] | int = subprocess.DEVNULL
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors, open(os.devnull, "rb") as nothing:
        streams = [(nothing if isinstance(stdin, int) else stdin).fileno(), out.fileno(), errors.fileno()]
        socket.send_fds(_fork_server(), [json.dumps([arguments, folder, env]).encode()], streams)
        code = int(_fork_server().recv(20))
        printed = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode() for file in (out, errors)]
    return subprocess.CompletedProcess(arguments, code, *printed)


@cache
def _fork_server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-c", FORK, str(theirs.fileno())],
            env=environment(),
            pass_fds=[theirs.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    ours.settimeout(TIMEOUT_S)
    atexit.register(server.wait)
    atexit.register(ours.close)
    return ours


def modules_of(run: Run, *arguments: str | Path) -> set[str]:
    """What a command that ends in 0 loads."""
    done = run(*arguments, program=[sys.executable, "-c", LIST_MODULES])
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the program in an empty folder."""
    return lambda *arguments, **more: run_program(tmp_path, *arguments, **more)


@pytest.fixture
def suite(tmp_path: Path) -> WriteSuite:
    """Writes a folder of scenarios of which so many pass, and so many fail."""
    from scenario_folder import ScenarioFolder, failing

    from guarantee_email_agent.config.settings import Config

    def write(passing: int, failed: int = 0) -> Path:
        folder = ScenarioFolder(tmp_path / "scenarios", Config())
        for number in range(1, passing + failed + 1):
            folder.write(number, failing if number > passing else str, digits=5)
        return folder.folder

    return write


def read_terminal(ours: int) -> Iterator[str]:
    """What a program writes to a terminal, piece by piece until it ends; closes our side."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other side is closed
            piece = b""
        if not piece:
            os.close(ours)
            return
        yield decoder.decode(piece)
