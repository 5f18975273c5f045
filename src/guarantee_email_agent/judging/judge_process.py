"""What runs inside a judge's own process: import the judge, call it, send back what it returned.

Also a program of its own that imports nothing of ours, for an interpreter that has only what the judge asks for:

    python -I judge_process.py TASK_FD ANSWER_FD

TASK_FD holds a line of JSON (`judge`, `nonce`, `most_bytes`, `withheld_port`) and then the record. An answer is the
nonce, its length in bytes as 16 hexadecimal digits, and JSON: `{"returned": …}` or `{"error": …}`. The nonce is what
printing cannot guess.
"""

from __future__ import annotations

import errno
import importlib.machinery
import json
import math
import os
import reprlib
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import CodeType, CoroutineType, ModuleType, TracebackType
from typing import Any, BinaryIO, NoReturn

MODULE_NAME = "judge_under_test"
CHANNEL_CLOSED, IN_THE_WAY = 71, 72
LENGTH_DIGITS = 16
DEEPEST = 100
LONGEST_MESSAGE = 2000
LONGEST_INT = 1 << 1024
_WITHHELD = (
    "tried to look into the sandbox at port {port} that the record names, and was kept from it, so that its 'failed' "
    "says nothing of the agent ({feedback}). Add judge_network: true to task.yaml"
)
_STARTS = ("subprocess.Popen", "os.system", "os.posix_spawn", "os.exec")

# As they are before a judge can replace them.
_exit, _write, _fstat, _own_pid = os._exit, os.write, os.fstat, os.getpid
_as_json, _recursion_limit = json.JSONEncoder(ensure_ascii=False).encode, sys.getrecursionlimit()
_all_signals = signal.valid_signals()


class JudgeError(Exception):
    """What is wrong with a judge, to follow the name of its file."""


def answer(task: int, channel: int) -> NoReturn:
    """Do the task that the descriptor `task` holds, write the answer to `channel`, and end this process."""
    try:
        with open(task, "rb") as source:
            _answer(json.loads(source.readline()), source, channel)
    except BaseException:  # noqa: BLE001 - the judge has broken what this module uses
        with suppress(BaseException):
            traceback.print_exc()
    _exit(IN_THE_WAY)


def _answer(task: dict[str, Any], source: BinaryIO, channel: int) -> None:
    path, most_bytes = task["judge"], task["most_bytes"]
    own_pid = _own_pid()
    channel_is = _fstat(channel).st_ino
    # Line-buffered: what a judge printed is kept even where it ends abruptly.
    sys.stdout = sys.__stdout__ = open(1, "w", 1, "utf-8", "backslashreplace", closefd=False)  # type: ignore[misc] # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, "utf-8", "backslashreplace", closefd=False)  # type: ignore[misc] # noqa: SIM115
    try:
        record = source.read()
        source.close()
        attempts = _watch_for(task["withheld_port"])
        returned = _load_test(path)(json.loads(record))
        _reset_interpreter()
        verdict = _checked_verdict(returned, most_bytes)
        if attempts and not verdict["passed"]:
            raise JudgeError(_WITHHELD.format(port=task["withheld_port"], feedback=_SHORT.repr(verdict["feedback"])))
        outcome: dict[str, object] = {"returned": verdict}
    except BaseException as error:  # noqa: BLE001 - sys.exit and Ctrl-C inside a judge are outcomes too
        _reset_interpreter()
        outcome = {"error": _describe_error(error, path)}
    if _own_pid() != own_pid:
        _exit(1)  # a process that the judge forked gives no verdict
    payload = _as_json(outcome).encode("utf-8", "replace")
    if len(payload) > most_bytes:
        payload = _as_json({"error": f"returned {len(payload):,} bytes; {most_bytes:,} are the most"}).encode()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # closed, or replaced by the judge
            stream.flush()
    try:
        if _fstat(channel).st_ino != channel_is:
            _exit(CHANNEL_CLOSED)
        data = f"{task['nonce']}{len(payload):0{LENGTH_DIGITS}x}".encode() + payload
        while data:
            data = data[_write(channel, data) :]
    except OSError:
        _exit(CHANNEL_CLOSED)
    _exit(0)  # threads and exit handlers of the judge have had their time


def _watch_for(port: int | None) -> list[object]:
    """Of a sandbox that this process cannot reach: filled where the judge uses the network all the same."""
    attempts: list[object] = []
    if port is None:
        return attempts
    try:
        with socket.socket() as probe:
            is_withheld = probe.connect_ex(("127.0.0.1", port)) == errno.ENETUNREACH
    except OSError:
        is_withheld = True

    def note(event: str, arguments: tuple[object, ...]) -> None:
        asks = event == "socket.__new__" and arguments[1] in (socket.AF_INET, socket.AF_INET6)
        if asks or (event in _STARTS and str(port) in str(arguments[:2])):  # what it starts is not seen itself
            attempts.append(event)

    if is_withheld:
        sys.addaudithook(note)
    return attempts


def _reset_interpreter() -> None:
    """From here on nothing that the judge set up comes between: no limit, no timer, no trace function of its own."""
    sys.setrecursionlimit(_recursion_limit)
    signal.pthread_sigmask(signal.SIG_BLOCK, _all_signals)
    sys.settrace(None)
    sys.setprofile(None)


def _load_test(path: str) -> Callable[[object], object]:
    """The judge's `test`, from its source: a cached .pyc beside it proves nothing."""
    module = ModuleType(MODULE_NAME)
    module.__file__ = path
    sys.modules[MODULE_NAME] = module
    sys.argv = [path]
    sys.path.insert(0, os.path.dirname(path))
    sys.meta_path.insert(0, _OwnNameFinder(path))
    exec(_compile(path), module.__dict__)  # noqa: S102 - to run it is what we are here for
    if "test" not in vars(module):
        raise JudgeError("has no function test(result)")
    test = vars(module)["test"]
    if not callable(test):
        raise JudgeError(f"has a 'test' that is {_describe_value(test)}, not a function test(result)")
    return test  # type: ignore[no-any-return]


def _compile(path: str) -> CodeType:
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        raise JudgeError(f"cannot be read: {error.strerror}") from None
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        location = f" (line {error.lineno} of {os.path.basename(path)})" if error.lineno else ""
        raise JudgeError(f"does not parse: {type(error).__name__}: {error.msg}{location}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise JudgeError(f"does not parse: {type(error).__name__}: {error}") from None


class _OwnNameFinder:
    """`import test` in a judge called test.py means a package beside it or the standard library's, not itself."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._name = os.path.splitext(os.path.basename(path))[0]

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._name or path is not None:
            return None
        finder = importlib.machinery.PathFinder
        spec = finder.find_spec(name)
        if spec is None or spec.origin != self._path:
            return spec
        folder = os.path.dirname(self._path)
        return finder.find_spec(name, [entry for entry in sys.path if entry != folder])


def _checked_verdict(returned: object, most_bytes: int) -> dict[str, object]:
    """The parts of a verdict as plain JSON. Raises JudgeError for any other value."""
    if isinstance(returned, CoroutineType):
        returned.close()  # it will never be awaited
        raise JudgeError("has an async test(result). Write it as a plain function")
    if not isinstance(returned, dict):
        raise JudgeError(f"returned {_describe_value(returned)}, not a dict with 'passed' and 'feedback'")
    plain: dict[str, object] = {}
    for key, expected in (("passed", bool), ("feedback", str)):
        if key not in returned:
            raise JudgeError(f"returned a dict without '{key}'")
        if not isinstance(returned[key], expected):
            raise JudgeError(f"returned a '{key}' that is {_describe_value(returned[key])}, not a {expected.__name__}")
        plain[key] = returned[key]
    details = returned.get("details")
    if details is None:
        details = {}
    if not isinstance(details, dict):
        raise JudgeError(f"returned 'details' that are {_describe_value(details)}, not a dict")
    plain["details"] = _JsonConverter(most_bytes).value(details, 0)
    score = returned.get("score")
    if score is not None:
        if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
            raise JudgeError(f"returned a 'score' that is {_describe_value(score)}, not a number from 0 to 1")
        plain["score"] = float(score)
    return plain


class _JsonConverter:
    """Makes any value plain JSON; a type that JSON lacks becomes text with the value and its type."""

    def __init__(self, most_bytes: int) -> None:
        self._most = self._left = most_bytes

    def value(self, value: object, depth: int) -> object:
        self._left -= len(value) if isinstance(value, str) else 1
        if self._left < 0:
            raise JudgeError(f"returned details of more than {self._most:,} bytes")
        if depth > DEEPEST:
            raise JudgeError(f"returned details that are nested more than {DEEPEST} deep")
        if isinstance(value, dict):
            return {self._key(key): self.value(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item, depth + 1) for item in value]
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int) and -LONGEST_INT < value < LONGEST_INT:
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else "NaN" if value != value else f"{'-' * (value < 0)}Infinity"
        return _describe_value(value)

    def _key(self, key: object) -> str:
        text = key if isinstance(key, str) else str(key) if isinstance(key, int | float) else _describe_value(key)
        self._left -= len(text)
        return text


def _describe_value(value: object) -> str:
    """A value and its type, such as `True (numpy.bool_)`."""
    if value is None:
        return "None"
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    try:
        text = repr(value) if isinstance(value, bool | float) else _SHORT.repr(value)
    except Exception:  # noqa: BLE001 - the judge's own __repr__
        text = "a value without a repr"
    return f"{text} ({name})"


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxset = _SHORT.maxfrozenset = 20


def _describe_error(error: BaseException, path: str) -> str:
    """One line for the verdict; the traceback, from the judge's first line on, goes to what it printed."""
    if isinstance(error, JudgeError):
        return str(error)
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    with suppress(Exception):
        traceback.print_exception(type(error), error, frames)
    location = _error_location(frames, os.path.dirname(path))
    if isinstance(error, SystemExit):
        code = "" if error.code is None else _SHORT.repr(error.code)
        return f"called sys.exit({code}) instead of returning{location}"
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the judge's own __str__
        text = "an error without words"
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"raised {message[:LONGEST_MESSAGE]}{location}"


def _error_location(frames: TracebackType | None, folder: str) -> str:
    """The last line of the judge's own files that an error came through."""
    location = ""
    while frames is not None:
        file = frames.tb_frame.f_code.co_filename
        if os.path.dirname(file) == folder:
            location = f" (line {frames.tb_lineno} of {os.path.basename(file)})"
        frames = frames.tb_next
    return location


if __name__ == "__main__":
    os.set_inheritable(int(sys.argv[2]), False)
    answer(int(sys.argv[1]), int(sys.argv[2]))
