"""Calls a Python function with the task that comes on stdin, and prints what it returns.

`python_function MODULE FUNCTION FOLDER [--check]`, run by its path in the interpreter that runs us. A process of its
own for each scenario, so that nothing that one leaves in a module reaches the next. FOLDER: where the module may stand.
--check: only finds the function.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any


def find_function(module: str, function: str) -> Any:
    """Exits with one line on stderr where there is none."""
    try:
        found = importlib.import_module(module)
        for name in function.split("."):
            found = getattr(found, name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the module does
        sys.exit(f"{type(error).__name__}: {error}")
    if not callable(found):
        sys.exit(f"{function} is no function")
    return found


def main(module: str, function: str, folder: str, *options: str) -> None:
    sys.path[0] = folder  # in place of this file's own
    found = find_function(module, function)
    if options:
        return
    answer = found(json.loads(sys.stdin.readline()))
    if hasattr(answer, "__await__"):
        import asyncio  # longer to load than all else here

        answer = asyncio.run(answer)
    if isinstance(answer, dict):
        sys.stdout.write(f"\n{json.dumps(answer, default=str)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
