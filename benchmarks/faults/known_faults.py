"""Faults that are known by name: each has to be noticed, by the suite or by the tests that its entry names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from guarantee_email_agent.eval.mutation.instruction_faults import Fault, fault_in
from guarantee_email_agent.files.yaml import load_documents

KNOWN = Path(__file__).parents[1] / "known_faults.yaml"


@dataclass(frozen=True, slots=True)
class KnownFault:
    name: str
    fault: Fault
    tests: tuple[str, ...]


def known_faults(root: Path) -> list[KnownFault]:
    """Raises ValueError for an entry whose `before` does not stand in its file exactly once."""
    entries = load_documents(KNOWN.read_text(encoding="utf-8"))[0]
    assert isinstance(entries, list)
    return [_known_fault(entry, root) for entry in entries]


def _known_fault(entry: dict[str, str], root: Path) -> KnownFault:
    file, before = entry["file"], entry["before"]
    text = (root / file).read_text(encoding="utf-8")
    if text.count(before) != 1:
        raise ValueError(f"{KNOWN.name}: '{entry['name']}': {file} has {text.count(before)} places like its 'before'")
    start = text.index(before)
    fault = fault_in(file, text, "known", start, start + len(before), entry["after"])
    return KnownFault(entry["name"], fault, tuple(entry.get("tests", ())))
