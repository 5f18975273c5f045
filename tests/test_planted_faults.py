"""That `benchmarks/planted_faults.py` plants what it says. Running the suite on each fault takes it minutes."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CODE = """
def route(count: int, known: bool) -> str:
    if count < 2 and known:
        return name(count, "one")
    logger.info("several %s", count)
    mark(count)
    return "several"
"""
INSTRUCTION = """---
name: valid-warranty
trigger:
  - {intent: warranty, serial_numbers: one, warranty_status: [valid]}
ticket:
  priority: normal
---
<situation>A sentence for the model.</situation>
<reply>
Your warranty is valid.
<if expiration_date="known">Until: {expiration_date}</if>
Ticket: {ticket_number}
</reply>
"""


@pytest.fixture(scope="module")
def planted() -> Iterator[ModuleType]:
    file = ROOT / "benchmarks" / "planted_faults.py"
    spec = importlib.util.spec_from_file_location("planted_faults", file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["planted_faults"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["planted_faults"]


def apply(text: str, fault: Any) -> str:
    return text[: fault.start] + str(fault.replacement) + text[fault.end :]


def test_code_gets_each_kind_of_fault_and_stays_code(planted: ModuleType) -> None:
    faults = list(planted.python_faults("route.py", CODE))
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
        ast.parse(apply(CODE, fault))


def test_what_is_written_for_people_is_left_alone(planted: ModuleType) -> None:
    assert not [fault for fault in planted.python_faults("route.py", CODE) if "logger" in fault.before]


def test_an_instruction_file_gets_each_kind_of_fault_outside_of_the_prose(planted: ModuleType) -> None:
    faults = list(planted.instruction_faults("valid-warranty.md", INSTRUCTION))
    assert {fault.operator for fault in faults} == {
        "drop a trigger",
        "change a trigger",
        "change a ticket field",
        "drop a ticket field",
        "drop a sentence",
        "remove a condition",
        "swap placeholders",
        "soften a phrase",
    }
    assert all("for the model" in apply(INSTRUCTION, fault) for fault in faults)


def test_the_sample_is_the_same_every_time_and_no_fault_is_in_it_twice(planted: ModuleType) -> None:
    first, second = (planted.sample(planted.all_faults(ROOT), 212) for _ in range(2))
    assert first == second
    assert len({fault.key for fault in first}) == len(first)
    assert sum(fault.file.endswith(".py") for fault in first) == 212


def test_a_fault_that_nothing_can_show_has_a_reason(planted: ModuleType) -> None:
    assert all(reason.strip() for reason in planted.equivalent_faults().values())
