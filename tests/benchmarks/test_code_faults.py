"""Faults of code: each kind, in code that stays code, and none in what is written for people."""

from __future__ import annotations

import ast

from faults.code_faults import python_faults

CODE = """
def route(count: int, known: bool) -> str:
    if count < 2 and known:
        return name(count, "one")
    logger.info("several %s", count)
    mark(count)
    return "several"
"""


def test_code_gets_each_kind_of_fault_and_stays_code() -> None:
    faults = list(python_faults("route.py", CODE))
    changed = {(fault.operator, fault.after) for fault in faults}
    assert {
        ("negate a condition", "if (not (count < 2 and known)):"),
        ("move a boundary", "if (count) <= (2) and known:"),
        ("and for or", "if ((count < 2) or (known)):"),
        ("change a constant", "if count < 3 and known:"),
        ("return early", "return None"),
        ("swap arguments", 'return name("one", count)'),
        ("drop a call", "pass"),
    } <= changed
    for fault in faults:
        ast.parse(fault.planted_in(CODE))


def test_what_is_written_for_people_is_left_alone() -> None:
    assert not [fault for fault in python_faults("route.py", CODE) if "logger" in fault.before]
