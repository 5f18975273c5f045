"""An agent that is a program: started for each scenario in an empty folder, with the mail on its stdin."""

from __future__ import annotations

import json
import logging
import os
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final, Literal

from guarantee_email_agent.eval.agents import python_function, stdio_relay
from guarantee_email_agent.eval.agents.agent import (
    MAX_OUTPUT_BYTES,
    AgentRun,
    AgentTask,
    Deadline,
    http_servers,
    parse_record,
    read_printed,
    task_as_json,
)
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.process import parse_program
from guarantee_email_agent.utils.text import printable, truncate

logger = logging.getLogger(__name__)

McpTransport = Literal["http", "stdio"]

_POLL_S: Final = 0.02
_EXIT_S: Final = 10.0  # that everything a program started may take to end
_CHECK_S: Final = 60.0  # that the import of an agent's module may take
_MAX_STDERR_CHARACTERS: Final = 500
_URL_VARIABLE: Final = "MOCK_MCP_URL"
_ISOLATED: Final = ("-I", "-S")
_FOLDER: Final = "work"  # that a program starts in, beside its `$MCP_CONFIG`
_LOOPBACK: Final = ("127.0.0.1", "localhost")
_PACKAGE_ROOT: Final = str(Path(__file__).resolve().parents[3])
_SUPERVISE: Final = (
    f"import sys; sys.path.insert(0, {_PACKAGE_ROOT!r}); from guarantee_email_agent.isolation.supervisor import main; "
    "_, lifeline, status, place, folder, namespaces, *command = sys.argv; "
    "main(int(lifeline), int(status), place, folder, bool(int(namespaces)), command)"
)
_SUPERVISOR: Final = (sys.executable, *_ISOLATED, "-c", _SUPERVISE)


class CommandAgent:
    """`command:"PROGRAM ARGS"`, on each task below a supervisor, in a folder of its own beside those of the others. It
    gets our environment, and `MCP_CONFIG`.
    """

    def __init__(self, command: str, transport: McpTransport) -> None:
        """Raises ConfigurationError for a command that cannot be used."""
        program, *arguments = parse_program(command, "--agent command")
        # It runs in another folder: files of this one that its arguments name have to be found from there.
        self._command = [
            os.path.abspath(shutil.which(program) or program),
            *(os.path.abspath(each) if os.path.isfile(each) else each for each in arguments),
        ]
        self._transport = transport
        self._namespaces = True
        self._parent = os.path.realpath(tempfile.mkdtemp(prefix="agents-"))
        self._remove_parent = weakref.finalize(self, shutil.rmtree, self._parent, ignore_errors=True)

    def check(self) -> None:
        """Find out how far programs can be kept apart on this machine, and say so where it is less than usual."""
        tried = subprocess.run(
            [*_SUPERVISOR, "0", "1", "", "", "1"], stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        self._namespaces = tried.stdout.startswith(b"exit")
        if not self._namespaces:
            logger.warning(
                "Programs are isolated less than usual (no namespaces: %s): one can see other processes and scenarios, "
                "and what it detaches from itself may outlive it. See docs/security.md",
                _reason(tried.stdout.decode()),
            )

    def run(self, task: AgentTask) -> AgentRun:
        """stdin, `$MCP_CONFIG`, deadline, exit code, the last line of its output."""
        servers = http_servers(task)
        if self._transport == "stdio":
            relay = {"command": sys.executable, "args": [*_ISOLATED, stdio_relay.__file__]}
            servers = {name: {**relay, "env": {_URL_VARIABLE: url}} for name, url in task.urls.items()}
        with (
            tempfile.TemporaryDirectory(prefix="agent-", dir=self._parent, ignore_cleanup_errors=True) as name,
            tempfile.TemporaryFile() as stdin,
            tempfile.TemporaryFile() as output,
            tempfile.TemporaryFile() as errors,
        ):
            place = Path(name)
            config = place / "mcp.json"
            (place / _FOLDER).mkdir()
            config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
            stdin.write(task_as_json(task, servers).encode() + b"\n")
            stdin.seek(0)
            environment = {
                **os.environ,
                **_without_proxy(os.environ),
                **task.environment,
                "MCP_CONFIG": str(config),
                "PWD": str(place / _FOLDER),
            }
            failure = self._supervise(Deadline(task), place, environment, (stdin, output, errors))
            (stdout, kept_out), (stderr, kept_err) = map(_read, (output, errors))
            if failure is not None and (said := _last_line(stderr).strip()):
                failure += f": {truncate(printable(said), _MAX_STDERR_CHARACTERS)}"
            return AgentRun(failure, parse_record(stdout), {"stdout": kept_out, "stderr": kept_err})

    def _supervise(
        self,
        deadline: Deadline,
        place: Path,
        environment: Mapping[str, str],
        streams: tuple[IO[bytes], ...],
    ) -> str | None:
        """Why the program's work does not count; None where it ended with 0. Nothing of it runs any more."""
        lifeline_read, lifeline = os.pipe()
        status, status_write = os.pipe()
        given = (lifeline_read, status_write, place, place / _FOLDER, int(self._namespaces), *self._command)
        try:
            process = subprocess.Popen(
                [*_SUPERVISOR, *map(str, given)],
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                env=environment,
                pass_fds=(lifeline_read, status_write),
                start_new_session=True,
            )
        finally:
            os.close(lifeline_read)
            os.close(status_write)
        try:
            failure = _wait(status, deadline, streams[1:])
        finally:
            with suppress(BrokenPipeError):
                os.write(lifeline, b".")  # whatever the program started goes with it; its folder is ours to remove
            os.close(lifeline)
            try:
                process.wait(_EXIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            report = b""
            with suppress(OSError):
                report = os.read(status, 100)
            os.close(status)
        return failure or _ending(report.decode())


class PythonAgent(CommandAgent):
    """`python:module:function`, called in a process of its own."""

    def __init__(self, place: str, transport: McpTransport) -> None:
        """Raises ConfigurationError for what is not of this form."""
        module, colon, function = place.partition(":")
        if not (colon and module and function):
            problem = f"--agent python:{printable(place)} names no function. Write --agent python:module:function"
            raise ConfigurationError(problem, "eval_bad_agent")
        self._place = place
        # By its path: as a module it would import this package first.
        super().__init__(shlex.quote(sys.executable), transport)
        self._command += [python_function.__file__, module, function, os.getcwd()]

    def check(self) -> None:
        super().check()
        try:
            tried = subprocess.run(
                [*self._command, "--check"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_CHECK_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            problem = f"its module took over {_CHECK_S:.0f} s to import"
        else:
            if tried.returncode == 0:
                return
            problem = _last_line(tried.stderr.decode("utf-8", "replace")) or f"exit code {tried.returncode}"
        text = f"--agent python:{printable(self._place)} cannot be called: {problem}. Correct its name or its module"
        raise ConfigurationError(text, "eval_bad_agent")


def _wait(status: int, deadline: Deadline, printed: Sequence[IO[bytes]]) -> str | None:
    """Why the program has to stop; None where it ended by itself."""
    while True:
        if (reason := deadline.reason_to_stop()) is not None:
            return reason
        if any(os.fstat(file.fileno()).st_size > MAX_OUTPUT_BYTES for file in printed):
            return f"the program printed more than {MAX_OUTPUT_BYTES // 1_000_000} MB"
        if select.select([status], [], [], min(_POLL_S, deadline.left_s()))[0]:
            return None


def _ending(report: str) -> str | None:
    """Why the program's work does not count, by what its supervisor reports of its end."""
    kind, _, number = report.partition("\n")[0].partition(" ")
    if kind == "error":
        return f"the program cannot be started ({_reason(report)})"
    if kind != "exit":
        return "the program was ended from outside"
    code = int(number)
    if code == 0:
        return None
    return f"the program ended with exit code {code}" if code > 0 else f"the program was ended by signal {-code}"


def _reason(report: str) -> str:
    """That of the supervisor, where it gave one."""
    number = report.partition("\n")[0].removeprefix("error ")
    return os.strerror(int(number)) if number.isdigit() else "reason unknown"


def _without_proxy(environ: Mapping[str, str]) -> dict[str, str]:
    """What keeps clients from asking a proxy for the mocks, which only this machine can reach."""
    given = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    hosts = ",".join(filter(None, (given, *_LOOPBACK)))
    return {"no_proxy": hosts, "NO_PROXY": hosts}


def _read(file: IO[bytes]) -> tuple[str, str]:
    """Both ends of more than a program may print."""
    half, missing = MAX_OUTPUT_BYTES // 2, max(0, os.fstat(file.fileno()).st_size - MAX_OUTPUT_BYTES)
    file.seek(0)
    content = file.read(half)
    file.seek(missing, os.SEEK_CUR)
    return read_printed(content + file.read(half), missing)


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2]
