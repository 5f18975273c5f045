"""What a judge may be and return, in a fork of the server and in an interpreter of its own: the same for both."""

from __future__ import annotations

import importlib.util
import py_compile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.tasks.judge import JudgePool, Verdict

WAYS: dict[str, dict[str, bool]] = {"forked": {}, "fresh": {"fresh": True}}
OK = 'return {"passed": True, "feedback": "fine"}'

Ask = Callable[..., Verdict]


@pytest.fixture(scope="module", params=WAYS)
def pool(request: pytest.FixtureRequest) -> Iterator[JudgePool]:
    with JudgePool(**WAYS[request.param]) as pool:
        yield pool


@pytest.fixture
def ask(pool: JudgePool, tmp_path: Path) -> Iterator[Ask]:
    """Judge with the body of a `test(result)`; whatever it did, the next judge must find everything as it was."""
    file = tmp_path / "test.py"

    def ask(*body: str, head: str = "", record: Any = None, timeout_s: float = 20, **how: Any) -> Verdict:
        lines = "".join(f"    {line}\n" for part in body for line in part.splitlines())
        source = f"{head}\ndef test(result):\n{lines}" if body else head
        file.write_text(source, encoding="utf-8")
        verdict = pool.judge(file, record or {}, timeout_s, **how)
        assert file.read_text(encoding="utf-8") == source
        return verdict

    yield ask
    assert ask(OK).verdict == "passed"


class TestRecordAndOutput:
    def test_the_record_arrives(self, ask: Ask) -> None:
        record = {"task_result": "ä\ud800\n", "conversation": [{"n": 1}], "big": "x" * 3_000_000}
        verdict = ask(
            'size = len(result.pop("big"))',
            'return {"passed": size == 3_000_000, "feedback": repr(result)}',
            record=record,
        )
        del record["big"]
        assert (verdict.verdict, verdict.feedback) == ("passed", repr(record))

    def test_a_record_that_is_no_json(self, ask: Ask) -> None:
        circle: dict[str, Any] = {}
        circle["self"] = circle
        assert "no JSON" in str(ask(OK, record=circle).error)

    def test_prints_are_kept_in_order(self, ask: Ask) -> None:
        verdict = ask(
            'print("one"); print("two", file=sys.stderr)',
            'subprocess.run(["echo", "three"], check=True); print("vier\\udc80 …")',
            OK,
            head="import subprocess, sys",
        )
        assert verdict.output == "one\ntwo\nthree\nvier\\udc80 …\n"

    def test_prints_without_a_line_end(self, ask: Ask) -> None:
        assert ask('print("no end", end="")', OK).output == "no end"


WRONG_SHAPES = {
    "return True": "returned True (bool), not a dict",
    "pass": "returned None, not a dict",
    "return [1]": "returned [1] (list), not a dict",
    "return {}": "returned a dict without 'passed'",
    "return {'passed': True}": "returned a dict without 'feedback'",
    "return {'passed': 1, 'feedback': ''}": "returned a 'passed' that is 1 (int), not a bool",
    "return {'passed': 'yes', 'feedback': ''}": "returned a 'passed' that is 'yes' (str), not a bool",
    "return {'passed': True, 'feedback': None}": "returned a 'feedback' that is None, not a str",
    "return {'passed': True, 'feedback': '', 'details': [1]}": "returned 'details' that are [1] (list), not a dict",
    "yield 1": "returned <generator object test",
    "raise ValueError('bad')": "raised ValueError: bad (line 3 of test.py)",
    "assert 1 > 2": "raised AssertionError (line 3 of test.py)",
    "import json; json.loads('{')": "(line 3 of test.py)",
    "raise KeyboardInterrupt": "raised KeyboardInterrupt (line 3 of test.py)",
    "raise SystemExit('over')": "called sys.exit('over') instead of returning",
    "import sys; sys.exit(0)": "called sys.exit(0) instead of returning (line 3 of test.py)",
    "import os; os._exit(0)": "ended its process with exit code 0 and without a verdict",
    "import os; os.kill(os.getpid(), 15)": "was ended by SIGTERM and gave no verdict",
    "import os; os.abort()": "was ended by SIGABRT and gave no verdict",
    "input()": "raised EOFError",
    "return test(result)": "raised RecursionError: maximum recursion depth exceeded",
}


@pytest.mark.parametrize("body", WRONG_SHAPES)
def test_no_verdict_is_an_error_that_says_what_came(ask: Ask, body: str) -> None:
    verdict = ask(body)
    assert verdict.verdict == "error"
    assert WRONG_SHAPES[body] in str(verdict.error)


WRONG_FILES = {
    "def test(:\n    pass\n": "does not parse: SyntaxError: invalid syntax (line 1 of test.py)",
    "\n\nx = '\n": "(line 3 of test.py)",
    "\0": "does not parse",
    "x = " + "(" * 500 + ")" * 500: "does not parse",
    "": "has no function test(result)",
    "def Test(result): pass": "has no function test(result)",
    "test = 3": "has a 'test' that is 3 (int), not a function",
    "async def test(result): return {}": "has an async test(result). Write it as a plain function",
    "def test(): return {}": "raised TypeError: test() takes 0 positional arguments but 1 was given",
    "import nothing_like_it": "raised ModuleNotFoundError: No module named 'nothing_like_it' (line 1 of test.py)",
    "1 / 0": "raised ZeroDivisionError: division by zero (line 1 of test.py)",
    "import sys\nsys.exit(0)": "called sys.exit(0) instead of returning (line 2 of test.py)",
}


@pytest.mark.parametrize("source", WRONG_FILES)
def test_a_file_that_is_no_judge(ask: Ask, source: str) -> None:
    verdict = ask(head=source)
    assert verdict.verdict == "error"
    assert WRONG_FILES[source] in str(verdict.error)


def test_the_traceback_stands_in_the_output(ask: Ask) -> None:
    output = ask("return helper()", head="def helper():\n    return 1 / 0").output
    assert output.startswith("Traceback (most recent call last):")
    assert "in helper" in output
    assert "judge_process" not in output


class TestValuesThatJsonLacks:
    def test_in_the_verdict_itself_they_are_an_error(self, ask: Ask) -> None:
        # numpy's own bool is no bool; a class of that name stands in for the package.
        head = "class bool_:\n    def __repr__(self): return 'True'\nbool_.__module__ = 'numpy'"
        error = ask('return {"passed": bool_(), "feedback": ""}', head=head).error
        assert error == "returned a 'passed' that is True (numpy.bool_), not a bool"

    def test_in_the_details_they_are_named(self, ask: Ask) -> None:
        details = ask(
            "return {'passed': True, 'feedback': '', 'details': {",
            "'set': {1}, 'nan': math.nan, 'inf': -math.inf, 'decimal': Decimal('1.5'), 'bytes': b'x', 1: 2, (3,): 4,",
            "'tuple': (1, None), 'own': Own(), 'digits': 10 ** 5000}}",
            head="import math\nfrom decimal import Decimal\nclass Own:\n    def __repr__(self): raise ValueError",
        ).details
        assert {key: details[key].split()[-1] for key in ("own", "digits")} == {
            "own": "(judge_under_test.Own)",
            "digits": "(int)",
        }
        assert {key: value for key, value in details.items() if key not in ("own", "digits")} == {
            "set": "{1} (set)",
            "nan": "NaN",
            "inf": "-Infinity",
            "decimal": "Decimal('1.5') (decimal.Decimal)",
            "bytes": "b'x' (bytes)",
            "1": 2,
            "(3,) (tuple)": 4,
            "tuple": [1, None],
        }

    def test_half_a_character_becomes_a_question_mark(self, ask: Ask) -> None:
        assert ask('return {"passed": True, "feedback": "\\ud800!"}').feedback == "?!"

    @pytest.mark.parametrize(
        "details",
        ["{str(n): n for n in range(10 ** 6)}", "{'text': 'x' * 10 ** 7}", "{'loop': loop}"],
        ids=["many", "long", "endless"],
    )
    def test_too_much_of_them(self, ask: Ask, details: str) -> None:
        verdict = ask(
            f'return {{"passed": True, "feedback": "", "details": {details}}}', head="loop = []\nloop += [loop]"
        )
        assert verdict.verdict == "error"
        assert "returned details" in str(verdict.error)

    def test_a_long_feedback(self, ask: Ask) -> None:
        assert "1,000,000 are the most" in str(ask('return {"passed": True, "feedback": "x" * 10 ** 7}').error)


class TestImports:
    def test_a_module_named_test_is_not_the_judge_itself(self, ask: Ask) -> None:
        verdict = ask("import test", 'return {"passed": True, "feedback": test.__name__ + test.__file__}')
        assert verdict.verdict == "passed"
        assert Path(verdict.feedback).parts[-2:] == ("test", "__init__.py")

    def test_a_package_named_test_beside_it(self, ask: Ask, tmp_path: Path) -> None:
        (tmp_path / "test").mkdir()
        (tmp_path / "test" / "__init__.py").write_text("WORD = 'package'\n", encoding="utf-8")
        assert ask("import test", 'return {"passed": True, "feedback": test.WORD}').feedback == "package"

    def test_its_own_name_is_no_name_of_ours(self, ask: Ask) -> None:
        assert ask('return {"passed": True, "feedback": __name__}').feedback == "judge_under_test"

    def test_a_compiled_file_beside_it_is_not_believed(self, ask: Ask, tmp_path: Path) -> None:
        other = tmp_path / "other.py"
        other.write_text("def test(result): return {'passed': True, 'feedback': 'compiled'}\n", encoding="utf-8")
        target = importlib.util.cache_from_source(str(tmp_path / "test.py"))
        py_compile.compile(str(other), target, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        assert ask(OK).feedback == "fine"
