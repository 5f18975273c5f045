"""Read and check the instruction files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from guarantee_email_agent.files.problems import Problem, dotted_path, locate_problems, suggestion
from guarantee_email_agent.files.text_file import FileCache, InputFileError, decode_text, read_bytes
from guarantee_email_agent.files.validation import build
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.instructions.file_checks import (
    check_required_rules,
    fact_problems,
    routing_problems,
    ticket_problems,
    trigger_problems,
)
from guarantee_email_agent.instructions.hand_over_lexicon import EXCEPTION_ELEMENT, REASON_ELEMENT, parse_hand_over
from guarantee_email_agent.instructions.instruction import Instructions, MainHeader, ScenarioHeader, ScenarioInstruction
from guarantee_email_agent.instructions.lexicon import (
    LEXICON_ELEMENTS,
    MAX_BYTES,
    Lexicon,
    lexicon_folder,
    lexicon_topics,
    parse_lexicon,
    read_lexicon,
    without_untranslated,
)
from guarantee_email_agent.instructions.look_up import WARRANTY, LookUp
from guarantee_email_agent.instructions.markup import MarkupError, parse_elements
from guarantee_email_agent.instructions.reply_checks import phishing_problems
from guarantee_email_agent.instructions.reply_markup import LANGUAGE_CODE, UNTRANSLATED, parse_templates
from guarantee_email_agent.instructions.router import OTHER_TOPIC, TOPIC_ELEMENT, UNCLEAR, Topic, parse_topics
from guarantee_email_agent.instructions.template import Placeholder, ReplyTemplate
from guarantee_email_agent.instructions.translations import (
    Replies,
    parse_translation,
    problems_by_language,
    split_paths,
    untranslatable,
    untranslated,
    with_language,
)
from guarantee_email_agent.utils.errors import InstructionError

TICKET_FIELDS_OF_CODE = (WARRANTY.number, WARRANTY.status, "customer_email", "idempotency_key")
"""Fields that follow from the mail and the warranty system; no instruction may set them, nor a look-up's number."""

_Header = TypeVar("_Header", MainHeader, ScenarioHeader)
_Body = TypeVar("_Body")
_RENAMED_KEYS = {"intent": "topic"}
_TOPICS = re.compile(rf"<{TOPIC_ELEMENT}\s.*?</{TOPIC_ELEMENT}\s*>", re.DOTALL)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")


_Texts = tuple[tuple[str, str], ...]
_FileContents = tuple[tuple[tuple[str, bytes], ...], _Texts]


@dataclass(frozen=True, slots=True)
class _ParsedFile(Generic[_Header, _Body]):
    """One file by itself. body: what was made of its `text`. first_line: of the text, from 1."""

    path: str
    header_text: str
    header: _Header
    text: str
    body: _Body
    first_line: int

    def place(self, line: int) -> str:
        """Where a line of the text stands."""
        return f"{self.path}:{self.first_line + line - 1}"


class _ScenarioBody(NamedTuple):
    topics: tuple[Topic, ...]
    templates: tuple[ReplyTemplate, ...]


_MainFile = _ParsedFile[MainHeader, tuple[Topic, ...]]
_ScenarioFile = _ParsedFile[ScenarioHeader, _ScenarioBody]


@dataclass(slots=True)
class InstructionFiles:
    """Reads the files where one may have changed since, and parses them where one has.

    main: the main file, with the lexicon's folder beside it. scenarios_dir: the folder whose `*.md` files are the
    scenarios. look_ups: those that there are; all but the built-in one have to serve declared topics.
    """

    main: Path
    scenarios_dir: Path
    look_ups: tuple[LookUp, ...] = (WARRANTY,)
    _cache: FileCache[Instructions] = field(default_factory=FileCache, repr=False)
    _loaded: tuple[_FileContents, Instructions] | None = field(default=None, repr=False)

    def lexicon(self) -> Lexicon:
        """That of the set as it was loaded last, so that a mail is read by one and the same. A LexiconSource."""
        return (self._loaded[1] if self._loaded else self.load()).lexicon

    def load(self) -> Instructions:
        """The set as it stands on disk now.

        Raises InstructionError, whose message has one line for every problem: file, line, remedy.
        """
        if (unchanged := self._cache.begin()) is not None:
            return unchanged
        paths = [str(self.main), *self._scenario_paths()]
        lexicon = lexicon_folder(self.main)
        contents = tuple([(path, _read(path)) for path in paths]), read_lexicon(lexicon)
        if self._loaded is None or self._loaded[0] != contents:
            self._loaded = (contents, _parse_files(self.main, self.scenarios_dir, self.look_ups, contents))
        places = (
            *paths,
            str(self.main.parent),
            str(self.scenarios_dir),
            str(lexicon),
            *(path for path, _ in contents[1]),
        )
        return self._cache.keep(self._loaded[1], places)

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


@lru_cache(maxsize=1)
def _parse_files(
    main_path: Path, scenarios_dir: Path, known_look_ups: tuple[LookUp, ...], contents: _FileContents
) -> Instructions:
    """One set for the whole process: it takes as long as thirty scenarios, and each chunk of an `eval --jobs` asks."""
    files, lexicon_files = contents
    problems: dict[str, list[str]] = {path: [] for path, _ in files}
    main: _MainFile | None = None
    scenario_files: list[_ScenarioFile] = []
    own_paths, translated = split_paths([path for path, _ in files[1:]])
    waiting = untranslated(files[1:], lexicon_files)
    translations: dict[str, list[Replies]] = {path: [] for path in own_paths}
    for index, (path, content) in enumerate(files):
        try:
            text = _decode(path, content)
            if index == 0:
                main = _parse(path, text, MainHeader, _parse_main_body)
            elif path in translated:
                scenario_path, language = translated[path]
                if language in waiting:  # with its other files: half a language would answer the rest in another one
                    continue
                translations[scenario_path].append(parse_translation(scenario_path, path, text, language))
            elif path in translations:
                scenario_files.append(_parse(path, text, ScenarioHeader, _parse_scenario_body))
                if UNTRANSLATED in text:
                    problem = f"{UNTRANSLATED} stands before what nobody has translated. Do it, and remove the sign"
                    problems[path].append(f"{path}:{text[: text.index(UNTRANSLATED)].count(chr(10)) + 1}: {problem}")
            else:
                problems[path].append(f"{path}:1: {untranslatable(path, own_paths)}")
        except InstructionError as error:
            problems[path].append(error.message)
    topics, places = _collect_topics(main, scenario_files, problems)
    names = dict.fromkeys(places)
    if len(scenario_files) < len(own_paths) or main is None:
        # A file that cannot be read may declare what the triggers of the others name.
        named = (each.topic for file in scenario_files for each in file.header.trigger)
        names |= dict.fromkeys(topic for topic in named if topic is not None and topic != UNCLEAR)
    look_ups = tuple(each for each in known_look_ups if not names.keys().isdisjoint(each.topics))
    default_language = main.header.default_language if main else "en"
    if not LANGUAGE_CODE.fullmatch(default_language):
        problem = f"default_language '{default_language}' is no code of a language. Write one such as en"
        problems[str(main_path)].append(f"{main_path}:1: {problem}")
    scenarios = []
    for file in scenario_files:
        own = with_language(file.body.templates, default_language)
        replies = (Replies(file.path, file.first_line, own), *translations[file.path])
        scenarios.append(scenario := _scenario(file, replies))
        found = _located(file.path, file.header_text, trigger_problems(file.header.trigger, names, look_ups))
        of_scenario = _scenario_problems(file, scenario, names, look_ups, replies, default_language)
        problems[file.path] += dict.fromkeys((*found, *of_scenario))
        for source in replies:
            risks = phishing_problems(source.templates, main.header.link_hosts) if main is not None else ()
            problems[file.path] += [f"{source.place(line)}: {problem}" for line, problem in risks]
    lines = [line for of_file in problems.values() for line in of_file]
    lexicon: Lexicon | None = None
    spoken_for: dict[str, str] = {}
    try:
        other_labels = tuple(label for look_up in known_look_ups for label in look_up.format.labels)
        lexicon = parse_lexicon(without_untranslated(lexicon_files), other_labels)
        spoken_for = {topic: place for place, topic in lexicon_topics(lexicon_files)}
        lines += _misspelt_topics(spoken_for, names)
    except InstructionError as error:
        lines.append(error.message)
    if len(scenario_files) == len(own_paths) and main is not None:
        # Without its look-up every trigger on a topic is wrong, too.
        lines = list(_look_up_problems(known_look_ups, topics)) or lines
    if not lines and lexicon is not None:
        routing = routing_problems(scenarios, places, look_ups)
        lines += [f"{place or scenarios_dir}: {what}" for place, what in routing]
        lines += (f"{scenarios_dir}: {what}" for what in _unknown_languages(default_language, scenarios))
    if lines or main is None or lexicon is None:
        raise InstructionError("\n".join(lines), "instruction_invalid", {"problems": len(lines)})
    main_body = _BLANK_LINES.sub("\n\n", _TOPICS.sub("", main.text)).strip()
    # A number that is looked up speaks for its topic, too.
    looked_up = {topic for look_up in (WARRANTY, *look_ups) for topic in look_up.topics}
    unphrased = tuple(topic for topic in places if topic not in (*spoken_for, *looked_up, OTHER_TOPIC))
    return Instructions(main_body, topics, lexicon, tuple(scenarios), look_ups, default_language, unphrased, waiting)


@lru_cache(maxsize=8)
def _sorted_paths(folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for name in sorted(names) if name.endswith(".md") and name[0] not in "._")


def _unknown_languages(default_language: str, scenarios: Sequence[ScenarioInstruction]) -> Iterator[str]:
    """Languages of replies in which no mail can be known to be."""
    languages = {default_language}.union(*(scenario.languages for scenario in scenarios))
    if len(languages) == 1:
        return
    for language in sorted(languages):
        if problem := unknown_language(language):
            names = ", ".join(scenario.name for scenario in scenarios if language in scenario.languages) or "main"
            yield f"there are replies in '{language}' ({names}), but it {problem}"


def unknown_language(language: str) -> str | None:
    """Why no mail can be known to be in a language."""
    from pycld2 import LANGUAGES  # start-up: 4 ms, which `reading.language` takes for the first mail else

    if any(language == code for _, code in LANGUAGES):
        return None
    return "is no language that a mail can be known to be in. Write pt for pt-br, no for Norwegian, iw for Hebrew"


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


def _parse_main_body(body: str) -> tuple[Topic, ...]:
    lists = [element for element in parse_elements(body) if element.name in LEXICON_ELEMENTS]
    if lists:
        raise MarkupError(
            f"<{lists[0].name}> is a word list. Those stand in files of their own now, one a language: move what you "
            "changed in them into the lexicon folder beside this file, and remove them all here",
            "instruction_rule_invalid",
            {"line": lists[0].line},
        )
    check_required_rules(body)
    return parse_topics(body)


def _parse_scenario_body(body: str) -> _ScenarioBody:
    parse_hand_over(body)  # for its errors
    return _ScenarioBody(parse_topics(body), parse_templates(body))


def _misspelt_topics(places: Mapping[str, str], topics: Collection[str]) -> Iterator[str]:
    """Phrases for a topic that is nearly a declared one. Those for any other wait for their topic to be declared.

    places: of the phrases, by their topic.
    """
    for topic, place in places.items():
        if topic not in topics and (meant := suggestion(topic, topics)):
            yield f"{place}: no instruction file declares the topic '{topic}'{meant}"


def _scenario(file: _ScenarioFile, replies: Sequence[Replies]) -> ScenarioInstruction:
    """replies: of the scenario's own file and of its translations."""
    header = file.header
    templates = tuple(template for each in replies for template in each.templates)
    return ScenarioInstruction(header.name, header.trigger, header.ticket, file.text, templates, header.asks_for)


def _collect_topics(
    main: _MainFile | None, scenarios: Sequence[_ScenarioFile], problems: Mapping[str, list[str]]
) -> tuple[tuple[Topic, ...], dict[str, str]]:
    """The topics of all files, and the place of each; a second declaration is added to the problems of its file."""
    declared = [(main.path, main.place(topic.line), topic) for topic in main.body] if main else []
    declared += [(file.path, file.place(topic.line), topic) for file in scenarios for topic in file.body.topics]
    places: dict[str, str] = {}
    topics = []
    for path, place, topic in declared:
        if topic.name in places:
            problem = f"the topic '{topic.name}' is declared in {places[topic.name]} already. Remove one of them"
            problems[path].append(f"{place}: {problem}")
        else:
            places[topic.name] = place
            topics.append(topic)
    return tuple(topics), places


def _parse(
    path: str, text: str, header_type: type[_Header], parse_body: Callable[[str], _Body]
) -> _ParsedFile[_Header, _Body]:
    lines = text.split("\n")
    closing = next((index for index in range(1, len(lines)) if lines[index].rstrip() == "---"), None)
    if lines[0].rstrip() != "---" or closing is None:
        remedy = "Begin the file with '---', the header's lines, and another '---'"
        if lines[0].startswith("<reply"):
            remedy = "If it holds a scenario's replies in another language, call it SCENARIO.LANGUAGE.md"
        raise InstructionError(f"{path}:1: has no frontmatter. {remedy}", "instruction_frontmatter_missing")
    # A leading empty line keeps line numbers those of the file.
    header_text = "\n" + "\n".join(lines[1:closing]) + "\n"
    try:
        documents = load_documents(header_text)
    except InputFileError as error:
        message = f"{path}:{error.line or 1}: {error.message}"
        raise InstructionError(message, "instruction_frontmatter_invalid") from None
    header = build(header_type, documents[0] if documents else None)
    if isinstance(header, list):
        raise InstructionError("\n".join(_located(path, header_text, header)), "instruction_frontmatter_invalid")
    body, first_line = "\n".join(lines[closing + 1 :]), closing + 2
    try:
        return _ParsedFile(path, header_text, header, body, parse_body(body), first_line)
    except MarkupError as error:
        raise InstructionError(f"{path}:{first_line + error.line - 1}: {error.message}", error.code) from None


def _located(path: str, header_text: str, problems: list[Problem]) -> Iterable[str]:
    """Problems of a frontmatter with their lines."""
    located = locate_problems(problems, header_text) if problems else ()
    return [f"{path}:{problem.line or 1}: {_format_problem(problem)}" for problem in located]


def _format_problem(problem: Problem) -> str:
    key = dotted_path(problem.path)
    if problem.kind == "missing":
        return f"{key} is missing. Add it to the frontmatter"
    if problem.kind == "unknown" and (name := _RENAMED_KEYS.get(str(problem.path[-1]))):
        return f"{key} is called '{name}' now. Rename it"
    if problem.path[:1] == ("trigger",) and problem.message.startswith(("must be a list", "must be a mapping")):
        return f"{key}: {problem.message.partition(';')[0]}. Write a line '- {{topic: NAME}}' below 'trigger:'"
    return f"{key}: {problem.message}" if key else problem.message


def _look_up_problems(look_ups: Sequence[LookUp], topics: Sequence[Topic]) -> Iterator[str]:
    """Topics of configured look-ups that nobody declares."""
    names = [topic.name for topic in topics]
    for look_up in look_ups:
        for topic in look_up.topics:
            if not look_up.is_of_warranties and topic not in names:
                remedy = suggestion(topic, names) or ". Declare it, or remove it there"
                yield f"look_ups.{look_up.name}.topics: no instruction file declares the topic '{topic}'{remedy}"


def _scenario_problems(
    file: _ScenarioFile,
    scenario: ScenarioInstruction,
    topics: Collection[str],
    look_ups: Sequence[LookUp],
    replies: Sequence[Replies],
    default_language: str,
) -> Iterator[str]:
    """The problems of one scenario and its translations, each with its place. look_ups: of the declared topics."""
    named = [condition.topic for condition in scenario.trigger]
    own = look_ups if None in named else [each for each in look_ups if not set(named).isdisjoint(each.topics)]
    top = f"{file.path}:1"
    file_name = os.path.splitext(os.path.basename(file.path))[0]
    if scenario.name != file_name:
        yield f"{top}: name is '{scenario.name}' but the file is called {file_name}.md. Make them the same"
    of_code = {*TICKET_FIELDS_OF_CODE, *(name for each in own for name in (each.number, each.status))}
    for name in scenario.ticket or ():
        if name in of_code:
            yield f"{top}: ticket.{name} is decided by the agent from the mail and the look-up. Remove it"
    for problem in ticket_problems(scenario.ticket or {}, own):
        yield f"{top}: {problem}"
    numbers = [each.number for each in look_ups]
    if scenario.asks_for is not None and scenario.asks_for not in numbers:
        known = ", ".join(numbers) or "none, since no declared topic has a look-up"
        near = suggestion(scenario.asks_for, numbers) or "."
        yield f"{top}: asks_for: '{scenario.asks_for}' is the number of no look-up{near} Known are: {known}"
    misplaced = [
        source.place(part.line)
        for source in (replies if scenario.ticket is None else ())
        for template in source.templates
        for part in template.all_parts()
        if isinstance(part, Placeholder) and part.name == "ticket_number"
    ]
    for place in misplaced:
        problem = "{ticket_number} stands in a reply without a ticket. Add 'ticket:' to the frontmatter, or"
        yield f"{place}: {problem} remove it"
    unanswered = next((each for each in scenario.trigger if each.automatic or each.hand_over), None)
    if unanswered is None:
        unknown = [
            f"{source.place(line)}: {problem}"
            for source in replies
            for line, problem in fact_problems(source.templates, own)
        ]
        yield from unknown
        if not misplaced and not unknown:
            yield from problems_by_language(scenario, topics, look_ups, replies, default_language)
    elif scenario.templates:
        why = (
            "machines sent, which must never be answered (RFC 3834)" if unanswered.automatic else "is left for a person"
        )
        source = next(each for each in replies if each.templates)
        yield f"{source.place(source.templates[0].line)}: answers mail that {why}. Remove the <reply>"
    if not any(each.hand_over for each in scenario.trigger):
        for element in parse_elements(scenario.body):
            if element.name in (REASON_ELEMENT, EXCEPTION_ELEMENT):
                problem = f"<{element.name}> counts only in the file with the trigger 'hand_over: true'. Move it there"
                yield f"{file.place(element.line)}: {problem}"
