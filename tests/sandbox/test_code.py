"""Running programs, through the client that judges use."""

from __future__ import annotations

import os
import shutil

import pytest
from running_sandbox import Box, refused

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="this machine has no Node.js")


def test_python_runs(box: Box) -> None:
    result = box.python("import sys\nprint(6 * 7)\nprint('no', file=sys.stderr)")
    assert (result.status, result.stdout, result.stderr, result.exit_code) == ("ok", "42", "no", 0)
    assert result.outputs[0] == {"output_type": "stream", "name": "stdout", "text": "42"}


def test_an_error_comes_with_its_trace(box: Box) -> None:
    result = box.python("print('before')\n1 / 0")
    assert (result.status, result.stdout, result.exit_code) == ("error", "before", 1)
    assert result.traceback[-1] == "ZeroDivisionError: division by zero"


@needs_node
def test_javascript_runs(box: Box) -> None:
    result = box.real.code.execute_code(language="javascript", code="console.log([1, 2].map(n => n * 2))").data
    assert result.stdout == "[ 2, 4 ]"


def test_a_program_that_never_ends_is_ended(box: Box) -> None:
    result = box.python("print('on', flush=True)\nwhile True: pass", timeout=1)
    assert (result.status, result.stdout) == ("timeout", "on")


def test_it_runs_where_it_is_told_and_leaves_nothing(box: Box) -> None:
    assert box.python("import os; print(os.getcwd())", cwd="/usr").stdout == "/usr"
    assert box.output("ls -A /tmp | grep code") == ""


def test_a_language_that_is_not_offered_is_said(box: Box) -> None:
    with refused(422):
        box.real.code.execute_code(language="cobol", code="1")


def test_nothing_is_kept_from_one_program_to_the_next(box: Box) -> None:
    with refused(501):
        box.real.code.execute_code(language="python", code="number = 41", stateful=True)


def test_what_a_program_leaves_beside_itself_is_removed(box: Box) -> None:
    left = "import os; os.makedirs(os.path.dirname(__file__) + '/deep/deeper'); print(__file__)"
    program = box.python(left).stdout
    command = f"for i in $(seq 200); do [ -e {os.path.dirname(program)} ] || break; sleep 0.05; done; ls {program} 2>&1"
    assert "No such file" in box.output(command)
