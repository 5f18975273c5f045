"""What runs inside a judge's own process: import the judge, call it, send back what it returned.

Started as a script with a clean interpreter, so it imports nothing of ours. The record comes in and the verdict goes
out through file descriptors of their own, so nothing that a judge prints can pass for a verdict.

    python judge_process.py JUDGE RECORD_FD VERDICT_FD
"""

import json
import os
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import cast

MODULE_NAME = "judge_under_test"


def main(path: str, record_fd: int, verdict_fd: int) -> None:
    with os.fdopen(record_fd, encoding="utf-8") as source:
        record = json.load(source)
    try:
        answer: dict[str, object] = {"returned": _checked(_judge(path)(record))}
    except BaseException as error:  # noqa: BLE001 - sys.exit and Ctrl-C inside a judge are outcomes too
        last = traceback.extract_tb(error.__traceback__)[-1:]
        place = f" (line {last[0].lineno} of {os.path.basename(last[0].filename)})" if last else ""
        answer = {"error": f"{type(error).__name__}: {error}{place}"}
    with os.fdopen(verdict_fd, "w", encoding="utf-8") as sink:
        json.dump(answer, sink)


def _judge(path: str) -> Callable[[object], object]:
    sys.path.insert(0, os.path.dirname(path))
    loader = SourceFileLoader(MODULE_NAME, path)
    module = ModuleType(MODULE_NAME)
    module.__file__ = path
    sys.modules[MODULE_NAME] = module
    loader.exec_module(module)
    test = getattr(module, "test", None)
    if not callable(test):
        raise TypeError("the file has no function 'test(result)'")
    return cast("Callable[[object], object]", test)


def _checked(returned: object) -> object:
    """What a judge may return; TypeError says what came instead."""
    if not isinstance(returned, dict):
        raise TypeError(f"test() returned {type(returned).__name__} instead of a dict")
    for key, wanted in (("passed", bool), ("feedback", str)):
        if not isinstance(returned.get(key), wanted):
            raise TypeError(f"'{key}' is {returned.get(key)!r}, not a {wanted.__name__}")
    if not isinstance(returned.get("details", {}), dict):
        raise TypeError(f"'details' is a {type(returned['details']).__name__}, not a dict")
    json.dumps(returned)
    return returned


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
