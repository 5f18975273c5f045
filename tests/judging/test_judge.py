from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.judging.judge import judge
from guarantee_email_agent.judging.verdict import Verdict


def judge_source(folder: Path, source: str) -> Verdict:
    """The verdict of a judge with this source."""
    file = folder / "test.py"
    file.write_text(source, encoding="utf-8")
    return judge(file, {}, 20)


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


def test_helpers_of_one_judge_are_not_those_of_another(tmp_path: Path) -> None:
    source = "import helper\ndef test(result): return {'passed': True, 'feedback': helper.WORD}\n"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper.py").write_text(f"WORD = {name!r}\n", encoding="utf-8")
    assert [judge_source(tmp_path / name, source).feedback for name in ("one", "two", "one")] == ["one", "two", "one"]


def test_a_judge_does_not_see_our_modules(tmp_path: Path) -> None:
    source = (
        "import sys\n"
        "def test(result):\n"
        "    seen = [name for name in sys.modules if name.partition('.')[0] in ('pytest', 'guarantee_email_agent')]\n"
        "    return {'passed': not seen, 'feedback': str(seen)}\n"
    )
    verdict = judge_source(tmp_path, source)
    assert (verdict.verdict, verdict.feedback) == ("passed", "[]")
