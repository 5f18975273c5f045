"""The replies of a scenario in its languages: which file holds which, and what is wrong with them.

A file `valid-warranty.de.md` beside `valid-warranty.md` holds the scenario's replies in German and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.instructions.file_checks import language_problems
from guarantee_email_agent.instructions.instruction import ScenarioInstruction
from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.instructions.markup import MarkupError, parse_elements
from guarantee_email_agent.instructions.reply_checks import reply_problems
from guarantee_email_agent.instructions.reply_markup import (
    LANGUAGE_CODE,
    UNTRANSLATED,
    parse_templates,
)
from guarantee_email_agent.instructions.template import ReplyTemplate
from guarantee_email_agent.utils.errors import InstructionError


class Replies(NamedTuple):
    """The `<reply>` elements of one file; line numbers of a template count from `first_line`."""

    path: str
    first_line: int
    templates: tuple[ReplyTemplate, ...]

    def place(self, line: int) -> str:
        """Where a line of the text stands."""
        return f"{self.path}:{self.first_line + line - 1}"


def _split_name(path: str) -> tuple[str, str | None]:
    """The scenario that a file belongs to, and the language that its name gives."""
    stem = os.path.basename(path).removesuffix(".md")
    scenario, dot, language = stem.partition(".")
    return scenario, language if dot else None


def split_paths(paths: Sequence[str]) -> tuple[list[str], dict[str, tuple[str, str]]]:
    """The scenarios' own files, and for each translation of one the scenario's path and the language."""
    own = {scenario: path for path in paths for scenario, language in [_split_name(path)] if language is None}
    translated = {}
    for path in paths:
        scenario, language = _split_name(path)
        if language is not None and LANGUAGE_CODE.fullmatch(language) and scenario in own:
            translated[path] = (own[scenario], language)
    return list(own.values()), translated


def untranslatable(path: str, own_paths: Sequence[str]) -> str:
    """Why a file with a dot in its name is no translation of any of the scenarios."""
    scenario, language = _split_name(path)
    if not LANGUAGE_CODE.fullmatch(language or ""):
        problem = f"'{language}' in the file's name is no code of a language"
        if language and LANGUAGE_CODE.fullmatch(small := language.lower()):
            return f"{problem}. Write it in lower case: {scenario}.{small}.md"
        return f"{problem}. Call replies in German {scenario}.de.md, in French {scenario}.fr.md"
    near = suggestion(scenario, sorted(_split_name(each)[0] for each in own_paths))
    return f"there is no {scenario}.md that it could translate{near or '.'} Rename it, or add the scenario"


def untranslated(
    scenarios: Iterable[tuple[str, bytes]], lexicon: Iterable[tuple[str, str]]
) -> dict[str, dict[str, int]]:
    """By language the files of it that hold texts to be translated, each by its path with their count.

    scenarios: path and content of each file. lexicon: path and text of each.
    """
    found: dict[str, dict[str, int]] = {}
    for path, content in (*scenarios, *((path, text.encode()) for path, text in lexicon)):
        scenario, language = _split_name(path)
        if count := content.count(UNTRANSLATED.encode()):
            found.setdefault(language or scenario, {})[path] = count
    return found


def incomplete_languages(scenarios: Sequence[ScenarioInstruction], default_language: str) -> Iterator[str]:
    """A sentence for each language that only some of the scenarios with replies have."""
    replying = [scenario for scenario in scenarios if scenario.languages]
    for language in sorted(frozenset().union(*(scenario.languages for scenario in replying)) - {default_language}):
        lacking = [scenario.name for scenario in replying if language not in scenario.languages]
        if lacking:
            verb = "answers" if len(lacking) == 1 else "answer"
            yield f"no '{language}' in {', '.join(lacking)}, which {verb} such a mail in '{default_language}'"


def with_language(templates: Sequence[ReplyTemplate], language: str) -> tuple[ReplyTemplate, ...]:
    return tuple(replace(each, language=language) for each in templates)


def parse_translation(scenario_path: str, path: str, text: str, language: str) -> Replies:
    """A file of `<reply>` elements and nothing else."""
    if text.startswith("---"):
        problem = f"has a frontmatter, which counts only in {os.path.basename(scenario_path)}. Remove it"
        raise InstructionError(f"{path}:1: {problem}", "instruction_translation_invalid")
    try:
        templates = parse_templates(text)
        elements = parse_elements(text)
    except MarkupError as error:
        raise InstructionError(f"{path}:{error.line}: {error.message}", error.code) from None
    problems = [
        f"{path}:{element.line}: <{element.name}> counts only in {os.path.basename(scenario_path)}. Move it there"
        for element in elements
        if element.name != "reply"
    ]
    if not templates:
        problems.append(f"{path}:1: holds no <reply>. Write the replies in '{language}' into it, or remove the file")
    if problems:
        raise InstructionError("\n".join(problems), "instruction_translation_invalid")
    return Replies(path, 1, with_language(templates, language))


def problems_by_language(
    scenario: ScenarioInstruction,
    topics: Collection[str],
    look_ups: Sequence[LookUp],
    replies: Sequence[Replies],
    default_language: str,
) -> Iterator[str]:
    """What is wrong with the replies in the default language, and if nothing is, with those in the others."""
    originals = scenario.templates_in(default_language)
    others = sorted(scenario.languages - {default_language})
    if others and not originals:
        problem = f"has no <reply> in the default language '{default_language}', but some in '{others[0]}'. Add one"
        yield f"{replies[0].path}:1: {problem}"
        return
    for language in (default_language, *others):
        sources = [each for each in replies if each.templates and each.templates[0].language == language]
        if len(sources) > 1:
            places = " and ".join(os.path.basename(each.path) for each in sources)
            yield f"{sources[1].path}:1: the replies in '{language}' stand in {places}. Leave them in one file"
            return
        source = sources[0] if sources else replies[0]
        templates = scenario.templates_in(language)
        found: list[tuple[int | None, str]] = []
        if language != default_language:
            found += language_problems(originals, templates)
        if not found:
            found += reply_problems(
                scenario.trigger, templates, topics, look_ups, has_ticket=scenario.ticket is not None
            )
        yield from (f"{source.place(line) if line else f'{source.path}:1'}: {problem}" for line, problem in found)
        if found and language == default_language:
            return
