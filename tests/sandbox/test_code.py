"""Running programs, through the client that judges use."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from agent_sandbox.core.api_error import ApiError


def test_python_runs(box: Any) -> None:
    result = box.real.code.execute_code(
        language="python", code="import sys\nprint(6 * 7)\nprint('no', file=sys.stderr)"
    ).data
    assert (result.status, result.stdout, result.stderr, result.exit_code) == ("ok", "42", "no", 0)
    assert result.outputs[0] == {"output_type": "stream", "name": "stdout", "text": "42"}


def test_an_error_comes_with_its_trace(box: Any) -> None:
    result = box.real.code.execute_code(language="python", code="print('before')\n1 / 0").data
    assert (result.status, result.stdout, result.exit_code) == ("error", "before", 1)
    assert result.traceback[-1] == "ZeroDivisionError: division by zero"


@pytest.mark.skipif(shutil.which("node") is None, reason="this machine has no Node.js")
def test_javascript_runs(box: Any) -> None:
    assert (
        box.real.code.execute_code(language="javascript", code="console.log([1, 2].map(n => n * 2))").data.stdout
        == "[ 2, 4 ]"
    )


def test_a_program_that_never_ends_is_ended(box: Any) -> None:
    result = box.real.code.execute_code(
        language="python", code="print('on', flush=True)\nwhile True: pass", timeout=1
    ).data
    assert (result.status, result.stdout) == ("timeout", "on")


def test_it_runs_where_it_is_told_and_leaves_nothing(box: Any) -> None:
    code = "import os; print(os.getcwd())"
    assert box.real.code.execute_code(language="python", code=code, cwd="/usr").data.stdout == "/usr"
    assert box.output("ls -A /tmp | grep code") == ""


def test_what_is_not_offered_is_said(box: Any) -> None:
    for options in ({"language": "cobol"}, {"language": "python", "stateful": True}):
        with pytest.raises(ApiError) as refused:
            box.real.code.execute_code(code="1", **options)
        assert refused.value.status_code in (422, 501)
    assert box.real.code.get_info().data.languages[0].language == "python"
