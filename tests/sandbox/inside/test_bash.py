"""The bash endpoints, through the client that judges use."""

from __future__ import annotations

import pytest
from running_sandbox import Box, refused


@pytest.fixture
def session(box: Box) -> str:
    return str(box.real.bash.create_session(exec_dir="/tmp").data.session_id)


def test_output_and_errors_come_apart(box: Box) -> None:
    result = box.real.bash.exec(command="echo out; echo error >&2; exit 3").data
    assert (result.status, result.stdout, result.stderr, result.exit_code) == ("completed", "out", "error", 3)
    assert (result.offset, result.stderr_offset) == (4, 6)


def test_a_session_keeps_folder_and_variables(box: Box, session: str) -> None:
    box.real.bash.exec(command="kept=1; cd /usr", session_id=session)
    assert box.real.bash.exec(command="pwd; echo $kept", session_id=session).data.stdout == "/usr\n1"
    assert box.real.bash.exec(command="pwd", session_id=session, exec_dir="/var").data.stdout == "/var"


def test_variables_of_one_command_are_forgotten(box: Box, session: str) -> None:
    first = box.real.bash.exec(command="env | grep GIVEN", session_id=session, env={"GIVEN": "it's $HOME"}).data
    assert first.stdout == "GIVEN=it's $HOME"
    assert box.real.bash.exec(command="echo [$GIVEN]", session_id=session).data.stdout == "[]"
    for name in ("two words", "a=b", "", "zero\0"):
        with refused(422):
            box.real.bash.exec(command="true", session_id=session, env={name: "x"})


def test_output_is_read_on_from_where_it_was(box: Box, session: str) -> None:
    box.real.bash.exec(command="echo one; read line; echo got $line", session_id=session, async_mode=True)
    begun = box.real.bash.output(session_id=session, wait=True).data
    assert (begun.stdout, begun.offset, begun.command.status) == ("one\n", 4, "running")
    box.real.bash.write(session_id=session, input="a line\n")
    more = box.real.bash.output(session_id=session, wait=True, offset=begun.offset).data
    assert more.stdout == "got a line\n"


@pytest.mark.parametrize(("limit", "status"), [({"timeout": 0.2}, "running"), ({"hard_timeout": 0.2}, "timed_out")])
def test_only_a_hard_timeout_ends_the_command(box: Box, session: str, limit: dict[str, float], status: str) -> None:
    result = box.real.bash.exec(command="echo so far; sleep 100", session_id=session, **limit).data
    assert (result.status, result.stdout) == (status, "so far")


def test_a_signal_ends_a_command(box: Box, session: str) -> None:
    box.real.bash.exec(command="sleep 100", session_id=session, async_mode=True)
    with refused(409):
        box.real.bash.exec(command="echo too early", session_id=session)
    box.real.bash.kill(session_id=session, signal="SIGKILL")
    while box.real.bash.output(session_id=session, wait=True, wait_timeout=1).data.command.status == "running":
        pass
    assert box.real.bash.output(session_id=session).data.command.status == "killed"


def test_sessions_are_listed_and_closed(box: Box, session: str) -> None:
    assert session in {listed.session_id for listed in box.real.bash.sessions().data}
    box.real.bash.close_session(session)
    with refused(404):
        box.real.bash.output(session_id=session)
