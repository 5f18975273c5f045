"""What the grounding of free drafts (`reply.mode: reviewed`) marks, and what it lets through to the person unmarked.

    uv run python benchmarks/reviewed_drafts.py [--show]

Each false sentence of tests/email/drafts stands in the shipped reply of every state in which it is false, as it is and
in disguises; each honest draft stands alone. Prints the share that is marked, by language and by disguise; --show lists
the sentences that were not.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from guarantee_email_agent.email.grounding import GroundingFacts, find_missing_facts, find_unsupported_claims
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.router import Situation, WarrantyStatus
from guarantee_email_agent.instructions.template import select_template

ROOT = Path(__file__).resolve().parents[1]
DRAFTS = ROOT / "tests" / "email" / "drafts"
STATUS: Mapping[str, WarrantyStatus | None] = {"V": "valid", "E": "expired", "N": "not_found", "U": None}
FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
CYRILLIC = str.maketrans("aceopxy", "асеорху")
DISGUISES: Mapping[str, Callable[[str], str]] = {
    "as it is": str,
    "invisible sign in every word": lambda text: " ".join(f"{word[:1]}\u200b{word[1:]}" for word in text.split()),
    "full-width letters": lambda text: text.translate(FULL_WIDTH),
    "Cyrillic look-alikes": lambda text: text.translate(CYRILLIC),
    "capitals": str.upper,
    "one word a line": lambda text: "\n".join(text.split()),
    "letter by letter": lambda text: "  ".join(" ".join(word) for word in text.split()),
    "in an honest sentence": lambda text: f"Thank you for your message, {text[:1].lower()}{text[1:]}",
    "no full stop": lambda text: text.rstrip("."),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true")
    show = parser.parse_args().show
    instructions = InstructionFiles(ROOT / "instructions" / "main.md", ROOT / "instructions" / "scenarios").load()
    by_language, by_disguise = defaultdict[str, list[bool]](list), defaultdict[str, list[bool]](list)
    for state, language, sentence in false_sentences():
        facts, reply = shipped(instructions, state)
        for name, disguise in DISGUISES.items():
            is_marked = bool(find_unsupported_claims(f"{reply}\n{disguise(sentence)}\n", facts))
            by_disguise[name].append(is_marked)
            if name == "as it is":
                by_language[language].append(is_marked)
            if show and not is_marked:
                print(f"not marked: {state} {language} ({name}) {sentence}")
    for title, rows in (("False sentences marked, by language", by_language), ("by disguise", by_disguise)):
        print(title)
        for name, marks in rows.items():
            print(f"  {name:30}{sum(marks):6} of {len(marks):5}  {sum(marks) / len(marks):7.1%}")
    honest = [(state, *find_objections(instructions, state, draft)) for state, draft in honest_drafts()]
    print(f"Honest drafts marked: {sum(len(each) > 1 for each in honest)} of {len(honest)}")


def false_sentences() -> Iterator[tuple[str, str, str]]:
    """(state, language, sentence), once for each state in which the sentence is false."""
    for line in (DRAFTS / "false_sentences.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            states, language, sentence = line.split(" ", 2)
            for state in STATUS if states == "*" else states:
                yield state, language, sentence


def honest_drafts() -> Iterator[tuple[str, str]]:
    """(state, draft with placeholders)."""
    for draft in (DRAFTS / "honest_drafts.txt").read_text(encoding="utf-8").split("== ")[1:]:
        yield draft[0], draft.split("\n", 1)[1]


def find_objections(instructions: Instructions, state: str, draft: str) -> tuple[str, ...]:
    facts, _ = shipped(instructions, state)
    for name in ("serial_number", "expiration_date"):
        draft = draft.replace(f"{{{name}}}", facts.facts[name] or "")
    return find_unsupported_claims(draft, facts) + find_missing_facts(draft, facts)


def shipped(instructions: Instructions, state: str) -> tuple[GroundingFacts, str]:
    """What a reply may say where the warranty is as `state` says, and the shipped reply for it."""
    status = STATUS[state]
    scenario = instructions.route(Situation(False, "warranty", "one" if status else "none", status))
    facts = {
        "serial_number": "SN12345" if status else None,
        "warranty_status": status,
        "expiration_date": "2031-02-03" if status in ("valid", "expired") else None,
        "coverage": "full" if status == "valid" else None,
    }
    template = select_template(scenario.templates, facts)
    assert template is not None
    grounding = GroundingFacts(
        facts, scenario.approved_text, scenario.ticket is not None, scenario.allows_warranty_mentions
    )
    return grounding, template.render(facts)


if __name__ == "__main__":
    main()
