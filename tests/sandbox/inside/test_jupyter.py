"""The Jupyter endpoints, through the client that judges use."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from running_sandbox import Box, refused


@pytest.fixture
def session(box: Box) -> str:
    return str(box.real.jupyter.create_session(kernel_name="python3").data.session_id)


def _run(box: Box, session: str, code: str, **more: Any) -> Any:
    return box.real.jupyter.execute_code(code=code, session_id=session, **more).data


def test_a_session_keeps_its_variables_and_shows_the_last_value(box: Box, session: str) -> None:
    _run(box, session, "number = 41")
    result = _run(box, session, "print('out')\nnumber + 1")
    assert (result.status, result.execution_count, result.session_id) == ("ok", 2, session)
    stream, value = result.outputs
    assert (stream.output_type, stream.name, stream.text) == ("stream", "stdout", "out")
    assert (value.output_type, value.data, value.execution_count) == ("execute_result", {"text/plain": "42"}, 2)


def test_an_error_comes_with_the_lines_of_the_code(box: Box, session: str) -> None:
    result = _run(box, session, "def divide():\n    return 1 / 0\ndivide()")
    (error,) = result.outputs
    assert (result.status, error.ename, error.evalue) == ("error", "ZeroDivisionError", "division by zero")
    assert "    return 1 / 0" in error.traceback
    assert not any("<string>" in line for line in error.traceback)


def test_rich_outputs_come_as_text(box: Box, session: str) -> None:
    code = "class Table:\n    def _repr_html_(self): return '<table>'\n    def __repr__(self): return 'table'\n"
    shown, value = _run(box, session, f"{code}display(Table())\nTable()").outputs
    assert shown.data == value.data == {"text/plain": "table", "text/html": "<table>"}
    assert (shown.output_type, value.output_type) == ("display_data", "execute_result")


def test_code_may_await(box: Box, session: str) -> None:
    assert (
        _run(box, session, "import asyncio\nawait asyncio.sleep(0, 'slept')").outputs[0].data["text/plain"] == "'slept'"
    )


def test_a_timeout_interrupts_the_code_and_keeps_the_variables(box: Box, session: str) -> None:
    _run(box, session, "kept = 1")
    result = _run(box, session, "while True: pass", timeout=1)
    assert (result.status, result.outputs[0].ename) == ("timeout", "KeyboardInterrupt")
    assert _run(box, session, "kept").outputs[0].data["text/plain"] == "1"


def test_code_that_cannot_be_interrupted_is_ended(box: Box, session: str) -> None:
    code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    result = _run(box, session, code, timeout=1)
    assert (result.status, result.outputs[-1].ename) == ("timeout", "DeadKernelError")
    assert _run(box, session, "1").status == "ok"


def test_an_interpreter_that_ends_is_told_and_started_anew(box: Box, session: str) -> None:
    assert _run(box, session, "import os; os._exit(1)").outputs[0].ename == "DeadKernelError"
    assert _run(box, session, "'os' in dir()").outputs[0].data["text/plain"] == "False"


def test_code_that_forges_replies_fools_only_its_own_session(box: Box, session: str) -> None:
    forged = '{"number": 1, "status": "ok", "outputs": [7, {"output_type": "error", "traceback": 5, "data": 1}]}'
    lines = f"nonsense\n[[\n{forged}\n"
    code = f"import os\nfor n in range(3, 20):\n    try: os.write(n, {lines.encode()!r})\n    except OSError: pass"
    assert [output.output_type for output in _run(box, session, code).outputs] == ["error"]
    assert box.output("echo alive") == "alive"


def test_there_is_no_input_to_wait_for(box: Box, session: str) -> None:
    assert _run(box, session, "input()").outputs[0].ename == "EOFError"


def test_two_at_a_time_come_one_after_the_other(box: Box, session: str) -> None:
    _run(box, session, "import time; seen = []")
    code = "seen.append(1); before = len(seen); time.sleep(0.1); before == len(seen)"
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: _run(box, session, code), range(4)))
    assert [result.outputs[0].data["text/plain"] for result in results] == ["True"] * 4


def test_sessions_are_listed_and_ended(box: Box, session: str) -> None:
    sessions = box.real.jupyter.list_sessions().data.sessions
    assert sessions[session].kernel_name == "python3"
    assert box.real.jupyter.get_info().data.active_sessions == len(sessions)
    box.real.jupyter.delete_session(session)
    with refused(404):
        box.real.jupyter.delete_session(session)
    box.real.jupyter.delete_sessions()
    assert box.real.jupyter.list_sessions().data.sessions == {}


def test_a_kernel_that_is_not_there_is_refused(box: Box) -> None:
    with refused(422):
        box.real.jupyter.create_session(kernel_name="julia")
