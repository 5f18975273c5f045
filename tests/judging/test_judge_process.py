"""What a judge may be and return."""

import importlib.util
import json
import py_compile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.files.report_files import as_json
from guarantee_email_agent.judging.verdict import Verdict

forked = pytest.mark.parametrize("pool", ["forked"], indirect=True, scope="module")
in_both_ways = pytest.mark.parametrize("pool", ["forked", "fresh"], indirect=True, scope="module")
OK = 'return {"passed": True, "feedback": "fine"}'

Ask = Callable[..., Verdict]


@in_both_ways
class TestRecordAndOutput:
    def test_the_record_arrives(self, ask: Ask) -> None:
        odd = {"task_result": "ä\ud800\0\u2028\n", "": 1.5, "n": 10**30, "nothing": None}
        record = {**odd, "sandbox": {"a": {"b": [[], {}]}}, "big": "x" * 3_000_000}
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
            'print("two", file=sys.stderr)',
            'subprocess.run(["echo", "three"], check=True); print("vier\\udc80 …")',
            OK,
            head="import subprocess, sys\nprint('one')",
        )
        assert verdict.output == "one\ntwo\nthree\nvier\\udc80 …\n"


WRONG_SHAPES = {
    "return True": "returned True (bool), not a dict",
    "pass": "returned None, not a dict",
    "return [1]": "returned [1] (list), not a dict",
    "return {'feedback': ''}": "returned a dict without 'passed'",
    "return {'passed': True, 'feedback': ['fine']}": "returned a 'feedback' that is ['fine'] (list), not a str",
    "return {'passed': True}": "returned a dict without 'feedback'",
    "return {'passed': 1, 'feedback': ''}": "returned a 'passed' that is 1 (int), not a bool",
    "return {'passed': True, 'feedback': '', 'details': [1]}": "returned 'details' that are [1] (list), not a dict",
    "return {'passed': True, 'feedback': '', 'score': 80}": "returned a 'score' that is 80 (int), not a number",
    "return {'passed': True, 'feedback': '', 'score': True}": "returned a 'score' that is True (bool), not a number",
    "return {'passed': True, 'feedback': '', 'score': float('nan')}": "returned a 'score' that is nan (float), not a",
    "return {'passed': True, 'feedback': '', 'score': '0.8'}": "returned a 'score' that is '0.8' (str), not a number",
    "yield 1": "returned <generator object test",
    "raise ValueError('bad')": "raised ValueError: bad (line 3 of test.py)",
    "assert False, 'the file is empty'": "raised AssertionError: the file is empty (line 3 of test.py)",
    "import json; json.loads('{')": "(line 3 of test.py)",
    "raise KeyboardInterrupt": "raised KeyboardInterrupt (line 3 of test.py)",
    "import sys; sys.exit(0)": "called sys.exit(0) instead of returning (line 3 of test.py)",
    "import os; os._exit(0)": "ended its process with exit code 0 and without a verdict",
    "import os; os.kill(os.getpid(), 15)": "was ended by SIGTERM and gave no verdict",
    "import os; os.kill(os.getpid(), 9)": "was ended by SIGKILL and gave no verdict",
    "input()": "raised EOFError",
    "return test(result)": "raised RecursionError: maximum recursion depth exceeded",
}


@forked
@pytest.mark.parametrize("body", WRONG_SHAPES)
def test_no_verdict_is_an_error_that_says_what_came(ask: Ask, body: str) -> None:
    verdict = ask(body)
    assert verdict.verdict == "error"
    assert WRONG_SHAPES[body] in str(verdict.error)


WRONG_FILES = {
    "def test(:\n    pass\n": "does not parse: SyntaxError: invalid syntax (line 1 of test.py)",
    "\0": "does not parse",
    "x = " + "(" * 500 + ")" * 500: "does not parse",
    "": "has no function test(result)",
    "test = 3": "has a 'test' that is 3 (int), not a function",
    "async def test(result): return {}": "has an async test(result). Write it as a plain function",
    "def test(): return {}": "raised TypeError: test() takes 0 positional arguments but 1 was given",
    "import nothing_like_it": "raised ModuleNotFoundError: No module named 'nothing_like_it' (line 1 of test.py). "
    'Name its package in test.py, in a block as PEP 723 has it: "# /// script", "# dependencies = [\\"package\\"]", ',
    "1 / 0": "raised ZeroDivisionError: division by zero (line 1 of test.py)",
}


@forked
@pytest.mark.parametrize("source", WRONG_FILES)
def test_a_file_that_is_no_judge(ask: Ask, source: str) -> None:
    verdict = ask(head=source)
    assert verdict.verdict == "error"
    assert WRONG_FILES[source] in str(verdict.error)


@in_both_ways
def test_the_traceback_stands_in_the_output(ask: Ask) -> None:
    output = ask("return helper()", head="def helper():\n    return 1 / 0").output
    assert output.startswith("Traceback (most recent call last):")
    assert "in helper" in output
    assert "judge_process" not in output


@forked
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


@in_both_ways
class TestImports:
    def test_a_module_named_test_is_not_the_judge_itself(self, ask: Ask) -> None:
        verdict = ask("import test", 'return {"passed": True, "feedback": test.__name__ + test.__file__}')
        assert verdict.verdict == "passed"
        assert Path(verdict.feedback).parts[-2:] == ("test", "__init__.py")

    def test_a_package_named_test_beside_it(self, ask: Ask, folder: Path) -> None:
        (folder / "test").mkdir()
        (folder / "test" / "__init__.py").write_text("WORD = 'package'\n", encoding="utf-8")
        assert ask("import test", 'return {"passed": True, "feedback": test.WORD}').feedback == "package"

    def test_a_compiled_file_beside_it_is_not_believed(self, ask: Ask, folder: Path) -> None:
        other = folder / "other.py"
        other.write_text("def test(result): return {'passed': True, 'feedback': 'compiled'}\n", encoding="utf-8")
        target = importlib.util.cache_from_source(str(folder / "test.py"))
        py_compile.compile(str(other), target, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
        assert ask(OK).feedback == "fine"


# How a judge finds what only this side of the channel should know: it is in the same process, after all.
CHANNEL = """\
import os, sys
frame = sys._getframe()
while "channel" not in frame.f_locals: frame = frame.f_back
nonce, channel = frame.f_locals["task"]["nonce"], frame.f_locals["channel"]
def say(payload, length=None):
    os.write(channel, f"{nonce}{length or format(len(payload), '016x')}".encode() + payload)
"""


@forked
class TestForgery:
    """A judge that writes its verdict itself has written no more than its own, and that has the shape of one."""

    @pytest.mark.parametrize(
        "payload",
        [
            "b''",
            "b'not json'",
            "b'[' * 200_000",
            """b'{"error": 5}'""",
            """b'{"returned": null}'""",
            """b'{"returned": {"passed": true}}'""",
            """b'{"returned": {"passed": 1, "feedback": "", "details": {}}}'""",
            """b'{"returned": {"passed": true, "feedback": null, "details": {}}}'""",
            """b'{"returned": {"passed": true, "feedback": "", "details": []}}'""",
            """b'{"returned": {"passed": true, "feedback": "", "details": {"n": NaN}}}'""",
            """b'{"returned": {"passed": true, "feedback": "", "details": {"n": 1e999}}}'""",
            """b'{"returned": {"passed": true, "feedback": "", "details": {"n": ' + b'[' * 500 + b']' * 500 + b'}}}'""",
        ],
    )
    def test_of_what_is_no_verdict(self, ask: Ask, payload: str) -> None:
        verdict = ask(CHANNEL, f"say({payload})", "os._exit(0)")
        assert verdict.verdict == "error"
        assert verdict.error in (
            "wrote to the channel of its verdict what is no verdict",
            "ended its process with exit code 0 and without a verdict",
        )

    @pytest.mark.parametrize("length", ["z" * 16, "-000000000000001", "f" * 16])
    def test_of_a_length(self, ask: Ask, length: str) -> None:
        verdict = ask(CHANNEL, f"say(b'{{}}', {length!r})", "os._exit(0)")
        assert verdict.error == "ended its process with exit code 0 and without a verdict"

    def test_the_report_can_still_be_written(self, ask: Ask) -> None:
        verdict = ask(CHANNEL, """say(b'{"error": "\\\\ud800"}')""", "os._exit(0)")
        assert json.loads(as_json(verdict.as_dict()))["error"] == "\ud800"


@forked
class TestWhatAJudgeLeavesBehindInItsOwnProcess:
    @pytest.mark.parametrize(
        "body",
        [
            "sys.settrace(lambda *_: None); sys.setprofile(lambda *_: None)",
            "sys.modules.clear()",
            "sys.setrecursionlimit(30)",
            "signal.signal(signal.SIGALRM, signal.SIG_DFL); signal.setitimer(signal.ITIMER_REAL, 5)",
            "gc.disable(); sys.setswitchinterval(1)",
            "json.dumps = json.loads = os.write = os.fstat = os._exit = os.getpid = None",
            "sys.stdout = sys.stderr = io.StringIO()",
            "sys.stdout = sys.stderr = type('Broken', (), {'flush': lambda self: 1 / 0})()",
            "sys.excepthook = sys.unraisablehook = lambda *_: os._exit(1)",
            "atexit.register(os._exit, 1)",
            "threading.Thread(target=time.sleep, args=(600,)).start()",
            "os.chdir('/'); os.umask(0o777); os.environ.clear()",
            "locale.setlocale(locale.LC_ALL, 'C')",
        ],
    )
    def test_does_not_cost_it_its_verdict(self, ask: Ask, body: str) -> None:
        head = "import atexit, gc, io, json, locale, os, signal, sys, threading, time"
        assert ask(body, OK, head=head).feedback == "fine"

    def test_its_timers_do_not_interrupt_the_reading_of_its_verdict(self, ask: Ask) -> None:
        head = (
            "import os, signal\n"
            "def late(*_): raise RuntimeError('late')\n"
            "class Alarming:\n"
            "    def __repr__(self): os.kill(os.getpid(), signal.SIGALRM); return 'alarming'\n"
        )
        verdict = ask(
            "signal.signal(signal.SIGALRM, late)",
            "return {'passed': True, 'feedback': 'fine', 'details': {'n': Alarming()}}",
            head=head,
        )
        assert verdict.details == {"n": "alarming (judge_under_test.Alarming)"}

    @pytest.mark.parametrize("body", ["builtins.isinstance = lambda *_: True; return 1", "builtins.len = None"])
    def test_where_it_does_the_error_says_so(self, ask: Ask, body: str) -> None:
        error = ask(body, OK, head="import builtins").error
        assert error == "got in the way of what reads its verdict, as by a timer or a changed built-in function"

    def test_a_thread_that_ends_everything(self, ask: Ask) -> None:
        verdict = ask(
            "threading.Thread(target=os._exit, args=(0,)).start(); time.sleep(600)", head="import os, threading, time"
        )
        assert verdict.error == "ended its process with exit code 0 and without a verdict"
