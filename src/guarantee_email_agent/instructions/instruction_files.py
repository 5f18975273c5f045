"""Read and check the instruction files."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from guarantee_email_agent.files.text_file import InputFileError
from guarantee_email_agent.files.validation import Problem, build
from guarantee_email_agent.files.yaml import load_documents, locate
from guarantee_email_agent.instructions.instruction import (
    Instructions,
    MainHeader,
    MainInstruction,
    ScenarioHeader,
    ScenarioInstruction,
)
from guarantee_email_agent.instructions.markup import MarkupError
from guarantee_email_agent.instructions.reading_rules import rules_in
from guarantee_email_agent.instructions.router import Situation, every_situation, matching
from guarantee_email_agent.instructions.template import MissingFactError, select_template, templates_in
from guarantee_email_agent.utils.errors import InstructionError

MAX_BYTES = 256 * 1024
TICKET_FIELDS_OF_CODE = ("serial_number", "warranty_status", "customer_email", "idempotency_key")
"""Fields that follow from the mail and the warranty system; no instruction may set them."""

_Header = TypeVar("_Header", MainHeader, ScenarioHeader)


@dataclass(slots=True)
class InstructionFiles:
    """Reads the files anew on every call; what follows from unchanged bytes is kept.

    main: the main file. scenarios_dir: the folder whose `*.md` files are the scenarios.
    """

    main: Path
    scenarios_dir: Path
    _seen: tuple[list[bytes], Instructions] | None = field(default=None, repr=False)

    def load(self) -> Instructions:
        """The set as it stands on disk now.

        Raises InstructionError, whose message has one line for every problem: file, line, remedy.
        """
        paths = [str(self.main), *self._scenario_paths()]
        contents = [_read(path) for path in paths]
        if self._seen is not None and self._seen[0] == contents:
            return self._seen[1]
        instructions = parse_instructions(list(zip(paths, contents, strict=True)))
        self._seen = (contents, instructions)
        return instructions

    def _scenario_paths(self) -> list[str]:
        folder = str(self.scenarios_dir)
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(".md") and name[0] not in "._")
        except OSError as error:
            raise InstructionError(
                f"{folder}: cannot read the folder of scenario instructions ({error.strerror}). "
                "Set instructions.scenarios_dir in the configuration",
                "instruction_folder_unreadable",
            ) from None
        return [f"{folder}/{name}" for name in names]


def parse_instructions(files: Sequence[tuple[str, bytes]]) -> Instructions:
    """The set in `files`: (path for messages, content), the main file first.

    Raises InstructionError, whose message has one line for every problem.
    """
    problems: list[str] = []
    main: MainInstruction | None = None
    scenarios: list[ScenarioInstruction] = []
    for index, (path, content) in enumerate(files):
        try:
            if index == 0:
                main = _main(path, content)
            else:
                scenarios.append(_scenario(path, content))
        except InstructionError as error:
            problems.append(error.message)
    if not problems:
        folder = os.path.dirname(files[1][0]) if len(files) > 1 else "the scenarios folder"
        problems.extend(f"{folder}: {problem}" for problem in _routing_problems(scenarios))
    if problems or main is None:
        raise InstructionError("\n".join(problems), "instruction_invalid", {"problems": len(problems)})
    return Instructions(main, tuple(scenarios))


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            content = os.read(descriptor, MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise InstructionError(
            f"{path}: cannot read the instruction file ({error.strerror}). Restore it, or correct the configuration",
            "instruction_file_unreadable",
        ) from None
    if len(content) > MAX_BYTES:
        raise InstructionError(
            f"{path}: larger than {MAX_BYTES // 1024} KiB. Shorten it: a model reads all of it with every mail",
            "instruction_file_too_large",
        )
    return content


def _main(path: str, content: bytes) -> MainInstruction:
    header, body, first_line = _split(path, content, MainHeader)
    try:
        rules_in(body)
    except MarkupError as error:
        raise _located(path, first_line, error) from None
    return MainInstruction(header, body)


def _scenario(path: str, content: bytes) -> ScenarioInstruction:
    header, body, first_line = _split(path, content, ScenarioHeader)
    try:
        templates = templates_in(body)
    except MarkupError as error:
        raise _located(path, first_line, error) from None
    scenario = ScenarioInstruction(header, body, templates)
    problems = [f"{path}:{line}: {problem}" for line, problem in _scenario_problems(path, scenario, first_line)]
    if problems:
        raise InstructionError("\n".join(problems), "instruction_scenario_invalid")
    return scenario


def _split(path: str, content: bytes, header_type: type[_Header]) -> tuple[_Header, str, int]:
    """Header, body, and the 1-based line on which the body starts."""
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InstructionError(
            f"{path}: is not UTF-8 ({error.reason}). Save it as UTF-8", "instruction_encoding"
        ) from None
    lines = text.split("\n")
    closing = next((index for index in range(1, len(lines)) if lines[index].rstrip() == "---"), None)
    if lines[0].rstrip() != "---" or closing is None:
        raise InstructionError(
            f"{path}:1: has no frontmatter. Begin the file with '---', the header's lines, and another '---'",
            "instruction_frontmatter_missing",
        )
    # A leading empty line keeps line numbers those of the file.
    header_text = "\n" + "\n".join(lines[1:closing]) + "\n"
    try:
        documents = load_documents(header_text)
    except InputFileError as error:
        line = error.details.get("line", 1)
        raise InstructionError(f"{path}:{line}: {error.message}", "instruction_frontmatter_invalid") from None
    built = build(header_type, documents[0] if documents else None)
    if isinstance(built, list):
        raise InstructionError(
            "\n".join(f"{path}:{_line(header_text, problem)}: {_said(problem)}" for problem in built),
            "instruction_frontmatter_invalid",
        )
    return built, "\n".join(lines[closing + 1 :]), closing + 2


def _line(header_text: str, problem: Problem) -> int:
    for length in range(len(problem.path), 0, -1):
        if (line := locate(header_text, problem.path[:length])) is not None:
            return line
    return 1


def _said(problem: Problem) -> str:
    where = ".".join(str(part) for part in problem.path)
    if problem.kind == "missing":
        return f"{where} is missing. Add it to the frontmatter"
    return f"{where}: {problem.message}" if where else problem.message


def _located(path: str, first_line: int, error: MarkupError) -> InstructionError:
    return InstructionError(f"{path}:{first_line + error.line - 1}: {error.message}", error.code)


def _scenario_problems(path: str, scenario: ScenarioInstruction, first_line: int) -> Iterator[tuple[int, str]]:
    """(line, problem) pairs of one scenario file."""
    file_name = os.path.splitext(os.path.basename(path))[0]
    if scenario.name != file_name:
        yield 1, f"name is '{scenario.name}' but the file is called {file_name}.md. Make them the same"
    for name in scenario.ticket or ():
        if name in TICKET_FIELDS_OF_CODE:
            yield 1, f"ticket.{name} is decided by the agent from the mail and the warranty system. Remove it"
    for template in scenario.templates:
        if "ticket_number" in template.placeholders() and scenario.ticket is None:
            yield (
                first_line + template.line - 1,
                "{ticket_number} stands in a reply without a ticket. Add 'ticket:' to the frontmatter, or remove it",
            )
    if not any(condition.automatic for condition in scenario.trigger):
        yield from _template_problems(scenario, first_line)
    elif scenario.templates:
        yield (
            first_line + scenario.templates[0].line - 1,
            "answers mail that machines sent, which must never be answered (RFC 3834). Remove the <reply>",
        )


def _template_problems(scenario: ScenarioInstruction, first_line: int) -> Iterator[tuple[int, str]]:
    """Every situation that triggers the scenario, with every mix of known and unknown facts, must give a reply."""
    reported: set[tuple[int, str]] = set()
    for situation in every_situation():
        if not any(condition.holds(situation) for condition in scenario.trigger):
            continue
        for facts in _possible_facts(situation):
            template = select_template(scenario.templates, facts)
            if template is None:
                status = facts["warranty_status"]
                found = (1, "has no <reply>" + (f" for warranty_status {status}. Add one" if status else ". Add one"))
            else:
                try:
                    template.render(facts)
                    continue
                except MissingFactError as error:
                    name = str(error).partition("}")[0].lstrip("{")
                    found = (
                        first_line + template.line - 1,
                        f"{error} where '{situation}'. Put it inside <if {name}=\"known\">…</if>",
                    )
            if found not in reported:
                reported.add(found)
                yield found


def _possible_facts(situation: Situation) -> Iterator[dict[str, str | None]]:
    if situation.warranty_status is None:
        # Without exactly one serial number and an answer from the warranty system nothing is known.
        yield {"serial_number": None, "warranty_status": None, "expiration_date": None, "coverage": None}
        return
    for date, coverage in itertools.product((None, "2030-01-01"), (None, "full")):
        yield {
            "serial_number": "SN12345",
            "warranty_status": situation.warranty_status,
            "expiration_date": date,
            "coverage": coverage,
        }


def _routing_problems(scenarios: Sequence[ScenarioInstruction]) -> Iterator[str]:
    names = [scenario.name for scenario in scenarios]
    for situation in every_situation():
        found = matching(scenarios, situation)
        if not found:
            yield f"no scenario is triggered by '{situation}'. Add it to the trigger of the scenario that should answer"
        elif len(found) > 1:
            claimed = " and ".join(names[index] for index in found)
            yield f"'{situation}' triggers {claimed}. Leave it to one of them"
