"""A server as a program: its command line, then lines in and lines out."""

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import pytest

from guarantee_email_agent.cli import run

pytestmark = pytest.mark.slow

SAMPLE = """
import asyncio, resource, sys, time
from guarantee_email_agent.mcp_servers.server import ServerTool, ToolArguments, ToolOutput, in_thread
from guarantee_email_agent.mcp_servers.server import serve

class File(ToolArguments):
    file: str

class Limits(ToolOutput):
    core: int
    stdin: str

def write(file):
    time.sleep(0.3)
    with open(file, "w") as opened:
        opened.write("done")

async def work(arguments: File) -> ToolOutput:
    await in_thread(write, arguments.file)
    return ToolOutput()

async def wait(_: ToolArguments) -> ToolOutput:
    await asyncio.sleep(3600)
    return ToolOutput()

async def limits(_: ToolArguments) -> Limits:
    print("a stray print", flush=True)
    return Limits(core=resource.getrlimit(resource.RLIMIT_CORE)[0], stdin=sys.stdin.read())

tools = [*map(ServerTool, (wait, work, limits))]
sys.exit(serve("sample", tools))
"""


class RawServer:
    """A context manager, which kills what still runs."""

    def __init__(self, script: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([sys.executable, script], stdin=pipe, stdout=pipe, stderr=pipe)
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr
        client = {"name": "test", "version": "1"}
        self.request(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        assert self.await_line()["id"] == 0
        self.send({"method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()

    def request(self, identity: int, method: str, params: dict[str, Any]) -> None:
        self.send({"id": identity, "method": method, "params": params})

    def begin(self, identity: int, tool: str, **arguments: Any) -> None:
        """The server is at this call when it returns."""
        self.request(identity, "tools/call", {"name": tool, "arguments": arguments})
        self.request(-1, "ping", {})
        assert self.await_line()["id"] == -1

    def send(self, message: dict[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def write(self, line: bytes) -> None:
        self.stdin.write(line)
        self.stdin.flush()

    def await_line(self) -> Any:
        return json.loads(self.stdout.readline())

    def end(self, *, by: int | None = None) -> tuple[int, dict[int, Any], str]:
        """Exit code, answers by id, and what was said on stderr; after the end of input, or a signal."""
        if by is not None:
            self.process.send_signal(by)
            self.process.wait(30)  # although its input goes on
        answers, errors = self.process.communicate(timeout=30)
        lines = map(json.loads, answers.splitlines())
        return self.process.returncode, {line["id"]: line for line in lines}, errors.decode()


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[RawServer]:
    script = tmp_path / "sample_server.py"
    script.write_text(SAMPLE)
    with RawServer(script) as server:
        yield server


@pytest.mark.parametrize("by", [None, signal.SIGTERM])
def test_at_its_end_what_it_does_is_finished_and_nothing_is_waited_for(
    raw: RawServer, by: signal.Signals | None, tmp_path: Path
) -> None:
    raw.begin(1, "wait")
    raw.begin(2, "work", file=str(tmp_path / "done"))
    code, answers, told = raw.end(by=by)
    assert (code, answers[2]["result"]["structuredContent"], told) == (0, {}, "")
    assert (tmp_path / "done").read_text() == "done"


def test_sigint_ends_at_once_and_quietly(raw: RawServer) -> None:
    raw.begin(1, "wait")
    assert raw.end(by=signal.SIGINT) == (130, {}, "")


def test_a_call_that_the_client_cancels_is_finished_all_the_same(raw: RawServer, tmp_path: Path) -> None:
    raw.begin(1, "work", file=str(tmp_path / "done"))
    raw.send({"method": "notifications/cancelled", "params": {"requestId": 1}})
    assert raw.end() == (0, {}, "")
    assert (tmp_path / "done").read_text() == "done"


def test_only_the_protocol_is_on_stdin_and_stdout(raw: RawServer) -> None:
    raw.write(b"\nrubbish\n")
    raw.request(1, "tools/call", {"name": "limits"})
    assert raw.await_line()["result"]["structuredContent"] == {"core": 0, "stdin": ""}
    assert raw.end() == (0, {}, "a stray print\n")


def test_a_client_that_is_gone_ends_the_server_once_its_calls_are_finished(raw: RawServer, tmp_path: Path) -> None:
    raw.begin(1, "work", file=str(tmp_path / "done"))
    raw.stdout.close()
    raw.request(2, "ping", {})
    raw.stdin.close()
    assert raw.process.wait(30) == 0
    assert raw.stderr.read() == b""
    assert (tmp_path / "done").read_text() == "done"


FROM = "--from support@example.com"
IMAP = f"--imap-host imap.example.com {FROM}"


@pytest.mark.parametrize(
    ("server", "arguments", "message"),
    [
        ("mail", f"{IMAP} --maildir x", "name either --maildir or --imap-host; see --help\n"),
        ("mail", f"{IMAP} --mark-parent 'a*'", "--mark-parent must be a name without * and %, and without white"),
        (
            "mail",
            "--from 'S <s@example.com>' --maildir x",
            "--from must be a bare address such as support@example.com, not",
        ),
        ("mail", f"{IMAP} --imap-port 0", "--imap-port must be at least 1 and at most 65535, not 0\n"),
        ("mail", IMAP, "IMAP_PASSWORD is not set. Put the password of the IMAP user into the environment\n"),
        ("mail", f"{IMAP} --imap-security none", "--imap-security would send its password unencrypted"),
        ("mail", f"{IMAP} --ca-file {{folder}}/none", "--ca-file {folder}/none: No such file or directory\n"),
        ("mail", f"--maildir {{folder}}/none {FROM}", "the Maildir {folder}/none does not exist. Make it, with dir"),
        ("ticketing", "--database {folder}/none/t.db", "{folder}/none/t.db: the folder {folder}/none does not exist."),
        ("warranty", "--file x.csv --today soon", "argument --today: 'soon' is no date; write it as 2027-03-31; see "),
        ("table", "--file x.csv --key ' '", "--key is blank. Name the column with the number\n"),
        ("table", "--file {folder}/bad.csv --key id", "{folder}/bad.csv:1: has no column id. Begin the file with"),
    ],
)
def test_what_is_wrong_with_it_or_what_it_names_is_one_line_and_exit_code_2(
    server: str,
    arguments: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "bad.csv").write_text("serial_number,expiration_date\nSN-100,31.01.2030\n")
    if "is not set" not in message:
        monkeypatch.setenv("IMAP_PASSWORD", "secret")
    with pytest.raises(SystemExit) as stop:
        import_module(f"guarantee_email_agent.mcp_servers.{server}").main(
            shlex.split(arguments.format(folder=tmp_path))
        )
    told = capsys.readouterr()
    assert (stop.value.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert told.err.startswith(message.format(folder=tmp_path))


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("mail", "IMAP_PASSWORD"),
        ("ticketing", "SQLite"),
        ("warranty", "serial_number,expiration_date"),
        ("table", "column with the number"),
    ],
)
def test_help_documents_it(server: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp-server", server, "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert message in told
    assert "Exit code 2" in told
