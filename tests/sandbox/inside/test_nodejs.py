"""The Node.js endpoints, through the client that judges use."""

from __future__ import annotations

import shutil
import time

import pytest
from running_sandbox import Box, refused
from waiting import PATIENCE_S

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="this machine has no Node.js")


@pytest.fixture
def session(box: Box) -> str:
    return str(box.real.nodejs.create_session(cwd="/tmp").data.session_id)


def test_a_program_has_files_and_input(box: Box) -> None:
    code = "console.log(require('./seven.js') + require('fs').readFileSync(0, 'utf8'))"
    result = box.real.nodejs.execute_code(code=code, files={"seven.js": "module.exports = 'seven '"}, stdin="in").data
    assert (result.status, result.stdout, result.exit_code) == ("ok", "seven in", 0)


def test_a_session_keeps_its_variables_and_shows_the_last_value(box: Box, session: str) -> None:
    execute = box.real.nodejs.execute_code
    execute(code="const one = 1; let two = 2; function three() { return 3 }", session_id=session)
    result = execute(code="console.log('out'); one + two + three()", session_id=session).data
    assert (result.status, result.stdout, result.outputs[1].data) == ("ok", "out", {"text/plain": "6"})


def test_code_may_await(box: Box, session: str) -> None:
    execute = box.real.nodejs.execute_code
    assert execute(code="await Promise.resolve(4)", session_id=session).data.outputs[0].data == {"text/plain": "4"}
    execute(code="const later = await Promise.resolve(5);\nawait later", session_id=session)
    assert execute(code="later", session_id=session).data.outputs[0].data == {"text/plain": "5"}


def test_an_error_comes_with_its_trace(box: Box, session: str) -> None:
    result = box.real.nodejs.execute_code(
        code="function f() { throw new TypeError('bad') }\nf()", session_id=session
    ).data
    (error,) = result.outputs
    assert (result.status, result.exit_code, error.ename, error.evalue) == ("error", 1, "TypeError", "bad")
    assert any("cell 1:2" in line for line in error.traceback)


@pytest.mark.parametrize("code", ["while (true);", "await new Promise(() => {})"])
def test_a_timeout_interrupts_the_code_and_keeps_the_variables(box: Box, session: str, code: str) -> None:
    execute = box.real.nodejs.execute_code
    execute(code="kept = 1", session_id=session)
    assert execute(code=code, session_id=session, timeout=1).data.status == "timeout"
    assert execute(code="kept", session_id=session).data.outputs[0].data == {"text/plain": "1"}


def test_an_error_after_the_end_does_not_end_the_session(box: Box, session: str) -> None:
    late = "setTimeout(() => { throw new Error('late') }, 1)"
    code = f"kept = 2; {late}; await new Promise(done => setTimeout(done, 50)); kept"
    result = box.real.nodejs.execute_code(code=code, session_id=session).data
    assert (result.status, "late" in result.stderr) == ("ok", True)
    assert box.real.nodejs.execute_code(code="kept", session_id=session).data.outputs[0].data == {"text/plain": "2"}


def test_sessions_are_shown_changed_and_ended(box: Box, session: str) -> None:
    nodejs = box.real.nodejs
    shown = nodejs.get_session(session).data.session
    assert (shown.cwd, shown.state) == ("/tmp", "IDLE")
    assert session in nodejs.list_sessions().data.sessions
    assert nodejs.update_session(session, max_idle_time=7).data.session.max_idle_time == 7_000
    assert nodejs.create_session(session_id=session).data.created is False
    assert nodejs.delete_session(session).data.deleted
    with refused(404):
        nodejs.get_session(session)


def test_a_session_that_nobody_uses_ends(box: Box) -> None:
    session = box.real.nodejs.create_session(max_idle_time=1).data.session_id
    deadline = time.monotonic() + PATIENCE_S
    while session in box.real.nodejs.list_sessions().data.sessions:
        assert time.monotonic() < deadline


def test_the_runtime_is_told(box: Box) -> None:
    assert box.real.nodejs.get_info().data.node_version.startswith("v")
    with refused(501):
        box.real.nodejs.execute_code(code="1", version="node99")
