"""`view` as its users start and end it."""

import http.client
import signal
import socket
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from command_line import Run
from running_view import running_view
from stored_runs import StoredRuns, result

pytestmark = pytest.mark.slow

WITHOUT_UVICORN = (
    "import sys; sys.modules['uvicorn'] = None; from guarantee_email_agent.cli import run; sys.exit(run(sys.argv[1:]))"
)


@pytest.fixture
def runs(tmp_path: Path) -> StoredRuns:
    """In the store of a folder with a configuration."""
    (tmp_path / "config.yaml").write_text("{}\n")
    runs = StoredRuns(tmp_path / "runs.db")
    runs.write(1, [result(1)])
    return runs


def get(address: str, path: str = "/", host: str = "") -> tuple[int, bytes, str | None]:
    """Status, content, and what program says that it answers."""
    place = urlsplit(address).netloc
    with closing(http.client.HTTPConnection(place, timeout=60)) as connection:
        connection.request("GET", path, headers={"Host": host or place})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.getheader("server")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_serves_and_ends_in_0(runs: StoredRuns, tmp_path: Path, number: int) -> None:
    with running_view(tmp_path) as view:
        assert view.announced == f"{view.address} shows the runs of {runs.file}. Ctrl-C ends it\n"
        status, content, program = get(view.address)
        assert (status, b"1 of 1" in content, program) == (200, True, None)
        assert get(view.address, host="evil.example")[0] == 421
        assert view.end(number) == 0
        assert view.process.stderr.read() == ""


def test_it_can_be_ended_as_soon_as_it_has_said_where_it_is(runs: StoredRuns, tmp_path: Path) -> None:
    with running_view(tmp_path) as view:
        assert view.end() == 0


def test_it_listens_on_loopback_alone(runs: StoredRuns, tmp_path: Path) -> None:
    with running_view(tmp_path) as view:
        assert view.address.startswith("http://127.0.0.1:")
        listening = Path(f"/proc/{view.process.pid}/net/tcp").read_text() if sys.platform == "linux" else ""
        port = f"{urlsplit(view.address).port:04X}"
        places = [line.split()[1] for line in listening.splitlines()[1:] if line.split()[1].endswith(f":{port}")]
        assert {place.partition(":")[0] for place in places} <= {"0100007F"}


def test_a_store_may_be_named(runs: StoredRuns, tmp_path: Path) -> None:
    other = StoredRuns(tmp_path / "other.db")
    other.write(1, [result(1), result(2)])
    with running_view(tmp_path, "--store", "other.db") as view:
        assert b"2 of 2" in get(view.address)[1]


def test_a_port_that_another_program_has_is_one_line(run: Run, runs: StoredRuns) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = run("view", "--port", str(port))
    problem = f"guarantee-email-agent: view: port {port} cannot be used: another program has it. Name another one"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(problem)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("port", ["-1", "65536", "http", ""])
def test_what_is_no_port_is_one_line(run: Run, runs: StoredRuns, port: str) -> None:
    done = run("view", f"--port={port}")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "is not a port from 0 to 65535" in done.stderr


def test_without_the_extra_it_says_what_to_install(run: Run, runs: StoredRuns) -> None:
    done = run("view", program=[sys.executable, "-c", WITHOUT_UVICORN])
    assert (done.returncode, done.stderr) == (
        2,
        "guarantee-email-agent: view needs the package uvicorn. Run: uv sync --inexact --extra view (in the clone)\n",
    )
