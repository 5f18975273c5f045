"""Where faults are planted, and which of them are tried: always the same."""

from __future__ import annotations

from pathlib import Path

from faults.code_faults import python_faults
from faults.softened_phrases import softened_phrases
from guarantee_email_agent.eval.mutation.instruction_faults import (
    PHRASE,
    REWORDING,
    Fault,
    distinct,
    instruction_faults,
)

PACKAGE = Path("src/guarantee_email_agent")

PIPELINE = (
    "email/*.py",
    "email/parsing/*.py",
    "instructions/*.py",
    "interpreter/*.py",
    "reading/*.py",
    "services/ports.py",
    "services/look_up_answer.py",
)
NOT_ON_THE_WAY = {
    "instructions/reply_checks.py": "refuses bad instruction files; the suite's are good",
    "instructions/file_checks.py": "the same",
    "instructions/instruction_files.py": "the same",
    "email/people_answers.py": "compares what people sent, once a mail has ended",
}


def all_faults(root: Path) -> list[Fault]:
    """Every fault that can be planted, in the order of files and places."""
    faults: list[Fault] = []
    for pattern in PIPELINE:
        for path in sorted((root / PACKAGE).glob(pattern)):
            if path.relative_to(root / PACKAGE).as_posix() not in NOT_ON_THE_WAY:
                name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
                faults += python_faults(name, text)
    for path in sorted((root / "instructions").rglob("*.md")):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        planted = (*instruction_faults(name, text), *softened_phrases(name, text))
        # Of the phrases there are thousands, and other words for the same are no fault.
        faults += (fault for fault in planted if fault.operator not in (PHRASE, REWORDING))
    return distinct(faults)


def sample(faults: list[Fault], count: int) -> list[Fault]:
    """All faults of instruction files, and `count` of the code, those whose hash is smallest: always the same."""
    edited = [fault for fault in faults if fault.file.endswith(".md")]
    code = sorted((fault for fault in faults if fault.file.endswith(".py")), key=lambda fault: fault.key)
    chosen = [*edited, *code[:count]]
    return sorted(chosen, key=lambda fault: (fault.file, fault.start, fault.key))
