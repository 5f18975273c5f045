"""Read and check the instruction files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from guarantee_email_agent.files.problems import Problem, dotted_path, locate_problems
from guarantee_email_agent.files.text_file import InputFileError, decode_text, read_bytes
from guarantee_email_agent.files.validation import build
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.instructions.hand_over import EXCEPTION_ELEMENT, REASON_ELEMENT, parse_hand_over
from guarantee_email_agent.instructions.instruction import Instructions, MainHeader, ScenarioHeader, ScenarioInstruction
from guarantee_email_agent.instructions.lexicon import parse_lexicon
from guarantee_email_agent.instructions.markup import MarkupError, parse_elements
from guarantee_email_agent.instructions.reply_checks import reply_problems
from guarantee_email_agent.instructions.reply_markup import parse_templates
from guarantee_email_agent.instructions.router import all_situations, is_triggered
from guarantee_email_agent.instructions.template import Placeholder, ReplyTemplate
from guarantee_email_agent.utils.errors import InstructionError

MAX_BYTES = 256 * 1024
TICKET_FIELDS_OF_CODE = ("serial_number", "warranty_status", "customer_email", "idempotency_key")
"""Fields that follow from the mail and the warranty system; no instruction may set them."""

_Header = TypeVar("_Header", MainHeader, ScenarioHeader)
_Body = TypeVar("_Body")


@dataclass(slots=True)
class InstructionFiles:
    """Reads the files anew on every call, and parses them where one has changed.

    main: the main file. scenarios_dir: the folder whose `*.md` files are the scenarios.
    """

    main: Path
    scenarios_dir: Path
    _cached: tuple[list[tuple[str, bytes]], Instructions] | None = field(default=None, repr=False)

    def load(self) -> Instructions:
        """The set as it stands on disk now.

        Raises InstructionError, whose message has one line for every problem: file, line, remedy.
        """
        files = [(path, _read(path)) for path in (str(self.main), *self._scenario_paths())]
        if self._cached is None or self._cached[0] != files:
            self._cached = (files, self._parse_files(files))
        return self._cached[1]

    def _scenario_paths(self) -> tuple[str, ...]:
        folder = str(self.scenarios_dir)
        try:
            return _sorted_paths(folder, tuple(os.listdir(folder)))
        except OSError as error:
            raise InstructionError(
                f"{folder}: cannot read the folder of scenario instructions ({error.strerror}). "
                "Set instructions.scenarios_dir in the configuration",
                "instruction_folder_unreadable",
            ) from None

    def _parse_files(self, files: Sequence[tuple[str, bytes]]) -> Instructions:
        problems: list[str] = []
        main_body = ""
        scenarios: list[ScenarioInstruction] = []
        for index, (path, content) in enumerate(files):
            try:
                text = _decode(path, content)
                if index == 0:
                    main_body = _parse(path, text, MainHeader, parse_lexicon)[1]
                else:
                    scenarios.append(_parse_scenario(path, text))
            except InstructionError as error:
                problems.append(error.message)
        if not problems:
            problems.extend(f"{self.scenarios_dir}: {problem}" for problem in _routing_problems(scenarios))
        if problems:
            raise InstructionError("\n".join(problems), "instruction_invalid", {"problems": len(problems)})
        return Instructions(main_body, tuple(scenarios))


@lru_cache(maxsize=8)
def _sorted_paths(folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in sorted(names) if name.endswith(".md") and name[0] not in "._")


def _read(path: str) -> bytes:
    try:
        return read_bytes(path, MAX_BYTES)
    except InputFileError as error:
        if error.code == "document_too_large":
            code = "instruction_file_too_large"
            message = f"larger than {MAX_BYTES // 1024} KiB. Shorten it: it is read anew for every mail"
        else:
            code = "instruction_file_unreadable"
            message = f"cannot read the instruction file ({error.message}). Restore it, or correct the configuration"
        raise InstructionError(f"{path}: {message}", code) from None


def _decode(path: str, content: bytes) -> str:
    try:
        return decode_text(content)
    except InputFileError as error:
        raise InstructionError(f"{path}: {error.message}", "instruction_encoding") from None


def _parse_scenario(path: str, text: str) -> ScenarioInstruction:
    header, body, templates, first_line = _parse(path, text, ScenarioHeader, _parse_scenario_body)
    scenario = ScenarioInstruction(header.name, header.trigger, header.ticket, body, templates, header.asks_for)
    problems = [f"{path}:{line}: {problem}" for line, problem in _scenario_problems(path, scenario, first_line)]
    if problems:
        raise InstructionError("\n".join(dict.fromkeys(problems)), "instruction_scenario_invalid")
    return scenario


def _parse_scenario_body(body: str) -> tuple[ReplyTemplate, ...]:
    parse_hand_over(body)  # for its errors
    return parse_templates(body)


def _parse(
    path: str, text: str, header_type: type[_Header], parse_body: Callable[[str], _Body]
) -> tuple[_Header, str, _Body, int]:
    """Header, text of the body, what `parse_body` makes of it, and the line on which it starts (from 1)."""
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
        message = f"{path}:{error.line or 1}: {error.message}"
        raise InstructionError(message, "instruction_frontmatter_invalid") from None
    header = build(header_type, documents[0] if documents else None)
    if isinstance(header, list):
        located = locate_problems(header, header_text)
        messages = [f"{path}:{problem.line or 1}: {_format_problem(problem)}" for problem in located]
        raise InstructionError("\n".join(messages), "instruction_frontmatter_invalid")
    body, first_line = "\n".join(lines[closing + 1 :]), closing + 2
    try:
        return header, body, parse_body(body), first_line
    except MarkupError as error:
        raise InstructionError(f"{path}:{first_line + error.line - 1}: {error.message}", error.code) from None


def _format_problem(problem: Problem) -> str:
    key = dotted_path(problem.path)
    if problem.kind == "missing":
        return f"{key} is missing. Add it to the frontmatter"
    return f"{key}: {problem.message}" if key else problem.message


def _scenario_problems(path: str, scenario: ScenarioInstruction, first_line: int) -> Iterator[tuple[int, str]]:
    """(line, problem) pairs of one scenario file."""
    file_name = os.path.splitext(os.path.basename(path))[0]
    if scenario.name != file_name:
        yield 1, f"name is '{scenario.name}' but the file is called {file_name}.md. Make them the same"
    for name in scenario.ticket or ():
        if name in TICKET_FIELDS_OF_CODE:
            yield 1, f"ticket.{name} is decided by the agent from the mail and the warranty system. Remove it"
    for template in scenario.templates:
        for part in template.all_parts() if scenario.ticket is None else ():
            if isinstance(part, Placeholder) and part.name == "ticket_number":
                problem = "{ticket_number} stands in a reply without a ticket. Add 'ticket:' to the frontmatter, or"
                yield first_line + part.line - 1, f"{problem} remove it"
    unanswered = next((each for each in scenario.trigger if each.automatic or each.hand_over), None)
    if unanswered is None:
        problems = reply_problems(scenario.trigger, scenario.templates, has_ticket=scenario.ticket is not None)
        for line, problem in problems:
            yield first_line + line - 1 if line else 1, problem
    elif scenario.templates:
        why = (
            "machines sent, which must never be answered (RFC 3834)" if unanswered.automatic else "is left for a person"
        )
        yield first_line + scenario.templates[0].line - 1, f"answers mail that {why}. Remove the <reply>"
    if not any(each.hand_over for each in scenario.trigger):
        for element in parse_elements(scenario.body):
            if element.name in (REASON_ELEMENT, EXCEPTION_ELEMENT):
                problem = f"<{element.name}> counts only in the file with the trigger 'hand_over: true'. Move it there"
                yield first_line + element.line - 1, problem


def _routing_problems(scenarios: Sequence[ScenarioInstruction]) -> Iterator[str]:
    for situation in all_situations():
        names = [scenario.name for scenario in scenarios if is_triggered(scenario.trigger, situation)]
        if not names:
            yield f"no scenario is triggered by '{situation}'. Add it to the trigger of the scenario that should answer"
        elif len(names) > 1:
            yield f"'{situation}' triggers {' and '.join(names)}. Leave it to one of them"
