from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.judging.judge import judge
from guarantee_email_agent.judging.verdict import Verdict

FINE = "{'passed': True, 'feedback': 'fine'}"


def said(folder: Path, source: str, record: dict[str, Any] | None = None, timeout_s: float = 20) -> Verdict:
    """The verdict of a judge with this source."""
    file = folder / "test.py"
    file.write_text(source, encoding="utf-8")
    return judge(file, {} if record is None else record, timeout_s)


def test_a_judge_may_pass_a_record(tmp_path: Path) -> None:
    verdict = said(
        tmp_path, "def test(result): return {'passed': True, 'feedback': 'yes', 'details': {'score': 0.5}}\n"
    )
    assert (verdict.verdict, verdict.feedback, verdict.details) == ("passed", "yes", {"score": 0.5})
    assert verdict.error is None
    assert verdict.duration_ms > 0


def test_a_judge_may_fail_a_record(tmp_path: Path) -> None:
    verdict = said(tmp_path, "def test(result): return {'passed': False, 'feedback': 'no'}\n")
    assert (verdict.verdict, verdict.feedback, verdict.details, verdict.error) == ("failed", "no", {}, None)


def test_a_judge_sees_the_record(tmp_path: Path) -> None:
    source = "def test(result): return {'passed': result['task_result'] == '42', 'feedback': result['task_result']}\n"
    assert said(tmp_path, source, {"task_result": "42"}).verdict == "passed"
    assert said(tmp_path, source, {"task_result": "41"}).feedback == "41"


@pytest.mark.parametrize(
    "record",
    [
        pytest.param({}, id="empty"),
        pytest.param({"task_result": None}, id="none"),
        pytest.param({"task_result": "ä\ud800\0\u2028\n", "": 1.5, "n": 10**30}, id="odd"),
        pytest.param({"conversation": [{"content": [{"text": "x"}]}], "sandbox": {"a": {"b": [[], {}]}}}, id="nested"),
        pytest.param({"task_result": "x" * 5_000_000}, id="large"),
    ],
)
def test_any_record_reaches_the_judge(tmp_path: Path, record: dict[str, Any]) -> None:
    import hashlib

    seen = said(
        tmp_path,
        "import hashlib\n"
        "def test(result):\n"
        "    return {'passed': True, 'feedback': hashlib.sha256(ascii(result).encode()).hexdigest()}\n",
        record,
    )
    assert seen.feedback == hashlib.sha256(ascii(record).encode()).hexdigest()


@pytest.mark.parametrize(
    "returned",
    [
        "None",
        "True",
        "'passed'",
        "[]",
        "{}",
        "{'passed': True}",
        "{'feedback': 'fine'}",
        "{'passed': 1, 'feedback': 'fine'}",
        "{'passed': None, 'feedback': 'fine'}",
        "{'passed': 'yes', 'feedback': 'fine'}",
        "{'passed': True, 'feedback': None}",
        "{'passed': True, 'feedback': ['fine']}",
        "{'passed': True, 'feedback': 'fine', 'details': []}",
        "{'passed': True, 'feedback': 'fine', 'details': 'many'}",
    ],
)
def test_another_shape_is_an_error_that_says_what_came_back(tmp_path: Path, returned: str) -> None:
    verdict = said(tmp_path, f"def test(result): return {returned}\n")
    assert verdict.verdict == "error"
    assert str(verdict.error).startswith("returned ")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "test"),
        ("test = 3\n", "test"),
        ("def check(result):\n    return {'passed': True, 'feedback': ''}\n", "test"),
        ("def test():\n    return {'passed': True, 'feedback': ''}\n", "TypeError"),
        ("def test(result:\n", "SyntaxError"),
        ("import no_such_module\n", "no_such_module"),
        ("raise ValueError('early')\n", "ValueError"),
        ("import sys; sys.exit(0)\n", "exit"),
        ("def test(result):\n    return 1 / 0\n", "ZeroDivisionError"),
        ("def test(result):\n    raise KeyError('score')\n", "KeyError"),
        ("def test(result):\n    raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("def test(result):\n    return test(result)\n", "RecursionError"),
        ("def test(result):\n    import sys; sys.exit(0)\n", "exit"),
        ("def test(result):\n    import os; os._exit(0)\n", "without a verdict"),
        ("def test(result):\n    import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n", "SIGKILL"),
    ],
)
def test_a_judge_that_gives_no_verdict_is_an_error_with_its_reason(tmp_path: Path, source: str, reason: str) -> None:
    verdict = said(tmp_path, source)
    assert verdict.verdict == "error"
    assert reason in str(verdict.error)


def test_a_crash_names_the_line_of_the_judge(tmp_path: Path) -> None:
    error = said(tmp_path, "import json\n\ndef test(result):\n    return json.loads('{')\n").error
    assert str(error).endswith("(line 4 of test.py)")


def test_a_judge_may_raise_an_assertion_to_say_what_is_wrong(tmp_path: Path) -> None:
    verdict = said(tmp_path, "def test(result):\n    assert False, 'the file is empty'\n")
    assert (verdict.verdict, verdict.error) == ("error", "raised AssertionError: the file is empty (line 2 of test.py)")


def test_a_judge_that_is_missing_is_an_error(tmp_path: Path) -> None:
    verdict = judge(tmp_path / "test.py", {})
    assert (verdict.verdict, verdict.error) == ("error", "does not exist. Write it, with a function test(result)")


def test_a_judge_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    assert said(tmp_path, f"\ufeffdef test(result): return {FINE}\n").verdict == "passed"


@pytest.mark.parametrize(
    "source",
    [
        "while True: pass\n",
        "import time\ntime.sleep(600)\n",
        "import time\ndef test(result):\n    time.sleep(600)\n",
    ],
)
def test_a_judge_that_hangs_is_stopped(tmp_path: Path, source: str) -> None:
    verdict = said(tmp_path, source, timeout_s=0.4)
    assert (verdict.verdict, verdict.error) == ("error", "gave no verdict within 0.4 s")


def test_after_a_judge_that_hung_the_next_one_is_heard(tmp_path: Path) -> None:
    assert said(tmp_path, "while True: pass\n", timeout_s=0.4).verdict == "error"
    assert said(tmp_path, f"def test(result): return {FINE}\n").verdict == "passed"


def test_what_a_judge_started_ends_with_it(tmp_path: Path, is_running: Callable[[str], bool]) -> None:
    token = f"98765.{uuid.uuid4().int % 10**9}"
    source = f"import subprocess, time\nsubprocess.Popen(['sleep', '{token}'])\ntime.sleep(600)\n"
    assert said(tmp_path, source, timeout_s=0.6).verdict == "error"
    assert not is_running(token)


def test_what_a_judge_leaves_running_does_not_hold_up_its_verdict(
    tmp_path: Path, is_running: Callable[[str], bool]
) -> None:
    token = f"98765.{uuid.uuid4().int % 10**9}"
    source = (
        "import subprocess\n"
        f"def test(result):\n    subprocess.Popen(['sleep', '{token}'], start_new_session=True)\n    return {FINE}\n"
    )
    assert said(tmp_path, source).verdict == "passed"
    assert not is_running(token)


def test_prints_are_captured(tmp_path: Path) -> None:
    source = (
        f"import sys\nprint('at import')\ndef test(result):\n    print('in test', file=sys.stderr)\n    return {FINE}\n"
    )
    assert said(tmp_path, source).output == "at import\nin test\n"


def test_a_print_cannot_pass_for_a_verdict(tmp_path: Path) -> None:
    source = (
        "import json\n"
        "def test(result):\n"
        f"    print(json.dumps({{'returned': {FINE}}}))\n"
        "    return {'passed': False, 'feedback': 'no'}\n"
    )
    assert said(tmp_path, source).verdict == "failed"


def test_endless_prints_are_cut(tmp_path: Path) -> None:
    verdict = said(tmp_path, f"def test(result):\n    print('x' * 10**7)\n    return {FINE}\n")
    assert verdict.verdict == "passed"
    assert verdict.output == "x" * 20_000 + "\n[… and 9,980,001 bytes more, which were dropped]"


def test_a_verdict_with_odd_text_comes_through(tmp_path: Path) -> None:
    verdict = said(tmp_path, "def test(result): return {'passed': True, 'feedback': 'ä\\0\\u2028\\U0001f389\\n\"'}\n")
    assert verdict.feedback == 'ä\0\u2028\U0001f389\n"'


def test_stdin_is_empty(tmp_path: Path) -> None:
    verdict = said(tmp_path, "import sys\ndef test(result): return {'passed': True, 'feedback': sys.stdin.read()}\n")
    assert (verdict.verdict, verdict.feedback) == ("passed", "")


def test_secrets_are_not_in_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "open-sesame")
    verdict = said(tmp_path, "import os\ndef test(result): return {'passed': True, 'feedback': str(os.environ)}\n")
    assert verdict.verdict == "passed"
    assert "sesame" not in verdict.feedback


def test_a_helper_beside_the_judge_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("WORD = 'from beside'\n", encoding="utf-8")
    source = "import helper\ndef test(result): return {'passed': True, 'feedback': helper.WORD}\n"
    assert said(tmp_path, source).feedback == "from beside"


def test_helpers_of_one_judge_are_not_those_of_another(tmp_path: Path) -> None:
    source = "import helper\ndef test(result): return {'passed': True, 'feedback': helper.WORD}\n"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper.py").write_text(f"WORD = {name!r}\n", encoding="utf-8")
    assert [said(tmp_path / name, source).feedback for name in ("one", "two", "one")] == ["one", "two", "one"]


def test_nothing_stays_from_one_call_to_the_next(tmp_path: Path) -> None:
    source = (
        "import builtins, json, os, sys\n"
        "def test(result):\n"
        "    found = hasattr(builtins, 'left') or hasattr(json, 'left') or 'LEFT' in os.environ or 'left' in sys.path\n"
        "    builtins.left = json.left = os.environ['LEFT'] = 'here'\n"
        "    sys.path.append('left')\n"
        "    return {'passed': not found, 'feedback': ''}\n"
    )
    assert [said(tmp_path, source).verdict for _ in range(3)] == ["passed"] * 3


def test_what_a_judge_changes_is_thrown_away(tmp_path: Path) -> None:
    record = {"task_result": "42", "conversation": [1, 2]}
    source = f"def test(result):\n    result['conversation'].clear()\n    result['eval'] = 1\n    return {FINE}\n"
    assert said(tmp_path, source, record).verdict == "passed"
    assert record == {"task_result": "42", "conversation": [1, 2]}


def test_a_judge_does_not_see_our_modules(tmp_path: Path) -> None:
    source = (
        "import sys\n"
        "def test(result):\n"
        "    seen = [name for name in sys.modules if name.partition('.')[0] in ('pytest', 'guarantee_email_agent')]\n"
        "    return {'passed': not seen, 'feedback': str(seen)}\n"
    )
    verdict = said(tmp_path, source)
    assert (verdict.verdict, verdict.feedback) == ("passed", "[]")


def test_our_own_modules_and_folder_stay_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("", encoding="utf-8")
    before = (os.getcwd(), list(sys.path), sys.modules.get("helper"), sys.modules.get("test"))
    assert said(tmp_path, f"import helper\ndef test(result): return {FINE}\n").verdict == "passed"
    assert (os.getcwd(), list(sys.path), sys.modules.get("helper"), sys.modules.get("test")) == before


def test_a_judge_leaves_no_compiled_files(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("", encoding="utf-8")
    assert said(tmp_path, f"import helper\ndef test(result): return {FINE}\n").verdict == "passed"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["helper.py", "test.py"]
