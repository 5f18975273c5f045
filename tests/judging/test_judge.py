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


def judge_source(folder: Path, source: str, record: dict[str, Any] | None = None, timeout_s: float = 20) -> Verdict:
    """The verdict of a judge with this source."""
    file = folder / "test.py"
    file.write_text(source, encoding="utf-8")
    return judge(file, {} if record is None else record, timeout_s)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ({"passed": True, "feedback": "yes", "details": {"score": 0.5}}, ("passed", "yes", {"score": 0.5})),
        ({"passed": False, "feedback": "no"}, ("failed", "no", {})),
        ({"passed": True, "feedback": "yes", "details": None}, ("passed", "yes", {})),
        ({"passed": True, "feedback": 'ä\0\u2028\U0001f389\n"'}, ("passed", 'ä\0\u2028\U0001f389\n"', {})),
    ],
    ids=["passed", "failed", "no-details", "odd-text"],
)
def test_what_a_judge_returns_is_its_verdict(tmp_path: Path, returned: dict[str, Any], expected: object) -> None:
    verdict = judge_source(tmp_path, f"def test(result): return {returned!r}\n")
    assert (verdict.verdict, verdict.feedback, verdict.details) == expected
    assert verdict.error is None
    assert verdict.duration_ms > 0


def test_a_judge_sees_the_record(tmp_path: Path) -> None:
    source = "def test(result): return {'passed': result['task_result'] == '42', 'feedback': result['task_result']}\n"
    assert judge_source(tmp_path, source, {"task_result": "42"}).verdict == "passed"
    assert judge_source(tmp_path, source, {"task_result": "41"}).feedback == "41"


def test_a_judge_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    assert judge_source(tmp_path, f"\ufeffdef test(result): return {FINE}\n").verdict == "passed"


@pytest.mark.parametrize(
    "source",
    ["while True: pass\n", "import time\ntime.sleep(600)\n", "import time\ndef test(result):\n    time.sleep(600)\n"],
)
def test_a_judge_that_hangs_is_stopped(tmp_path: Path, source: str) -> None:
    verdict = judge_source(tmp_path, source, timeout_s=0.4)
    assert (verdict.verdict, verdict.error) == ("error", "gave no verdict within 0.4 s")


def test_what_a_judge_started_ends_with_it(tmp_path: Path, is_running: Callable[[str], bool]) -> None:
    token = f"98765.{uuid.uuid4().int % 10**9}"
    source = f"import subprocess, time\nsubprocess.Popen(['sleep', '{token}'])\ntime.sleep(600)\n"
    assert judge_source(tmp_path, source, timeout_s=0.6).verdict == "error"
    assert not is_running(token)


def test_secrets_are_not_in_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "open-sesame")
    verdict = judge_source(
        tmp_path, "import os\ndef test(result): return {'passed': True, 'feedback': str(os.environ)}\n"
    )
    assert verdict.verdict == "passed"
    assert "sesame" not in verdict.feedback


def test_helpers_of_one_judge_are_not_those_of_another(tmp_path: Path) -> None:
    source = "import helper\ndef test(result): return {'passed': True, 'feedback': helper.WORD}\n"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper.py").write_text(f"WORD = {name!r}\n", encoding="utf-8")
    assert [judge_source(tmp_path / name, source).feedback for name in ("one", "two", "one")] == ["one", "two", "one"]


def test_nothing_stays_from_one_call_to_the_next(tmp_path: Path) -> None:
    source = (
        "import builtins, json, os, sys\n"
        "def test(result):\n"
        "    found = hasattr(builtins, 'left') or hasattr(json, 'left') or 'LEFT' in os.environ or 'left' in sys.path\n"
        "    builtins.left = json.left = os.environ['LEFT'] = 'here'\n"
        "    sys.path.append('left')\n"
        "    return {'passed': not found, 'feedback': ''}\n"
    )
    assert [judge_source(tmp_path, source).verdict for _ in range(3)] == ["passed"] * 3


def test_what_a_judge_changes_is_thrown_away(tmp_path: Path) -> None:
    record = {"task_result": "42", "conversation": [1, 2]}
    source = f"def test(result):\n    result['conversation'].clear()\n    result['eval'] = 1\n    return {FINE}\n"
    assert judge_source(tmp_path, source, record).verdict == "passed"
    assert record == {"task_result": "42", "conversation": [1, 2]}


def test_a_judge_does_not_see_our_modules(tmp_path: Path) -> None:
    source = (
        "import sys\n"
        "def test(result):\n"
        "    seen = [name for name in sys.modules if name.partition('.')[0] in ('pytest', 'guarantee_email_agent')]\n"
        "    return {'passed': not seen, 'feedback': str(seen)}\n"
    )
    verdict = judge_source(tmp_path, source)
    assert (verdict.verdict, verdict.feedback) == ("passed", "[]")


def test_our_own_modules_and_folder_stay_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("", encoding="utf-8")
    before = (os.getcwd(), list(sys.path), sys.modules.get("helper"), sys.modules.get("test"))
    assert judge_source(tmp_path, f"import helper\ndef test(result): return {FINE}\n").verdict == "passed"
    assert (os.getcwd(), list(sys.path), sys.modules.get("helper"), sys.modules.get("test")) == before


def test_a_judge_leaves_no_compiled_files(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("", encoding="utf-8")
    assert judge_source(tmp_path, f"import helper\ndef test(result): return {FINE}\n").verdict == "passed"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["helper.py", "test.py"]
