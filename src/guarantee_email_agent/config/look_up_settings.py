"""Further look-ups as the configuration has them: which server and tool, which number, and which facts come back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from guarantee_email_agent.config.mcp_server import (
    LOOK_UP_TOOL,
    AnswerForm,
    McpServer,
    OwnTool,
    check_mappings,
    look_up_tool,
)
from guarantee_email_agent.files.problems import ProblemsError, suggestion
from guarantee_email_agent.files.validation import all_matching, not_blank, setting

MAX_FACTS: Final = 8

BUILT_IN_NAMES: Final = (
    "serial_number", "warranty_status", "expiration_date", "coverage", "ticket_number", "customer_email",
    "idempotency_key", "status", "scenario",
)  # fmt: skip
"""Names that conditions, placeholders and fields of tickets have for something else; no number or fact may take one."""

BUILT_IN_SERVICES: Final = ("gmail", "mail", "warranty", "warranty_api", "ticketing", "ticketing_system")
BUILT_IN_STATUSES: Final = ("not_found", "other", "withheld")
BUILT_IN_TOPIC: Final = "warranty"
_ATTRIBUTES: Final = ("id", "use", "hints", "lang")
_PATTERN_DOC: Final = "Regular expression that the whole number fits, in any case; as in the lexicon, bounded."
_NAME: Final = r"[a-z][a-z0-9_]{0,39}"
_ASKED: Final = ("known", "unknown")
_NUMBER: Final = r"(?=.*[0-9])[A-Za-z0-9]+(?:[-/._][A-Za-z0-9]+)*"
_WORD: Final = r"[^\W_][\w -]{0,39}"

FactSetting = Literal["date", "amount", "name"] | tuple[str, ...]


def _name(value: str) -> str | None:
    if not re.fullmatch(_NAME, value):
        return f"must be lower-case letters, digits and underscores, such as order_number, not {value!r}"
    if value in BUILT_IN_NAMES or value in _ATTRIBUTES:
        return f"{value!r} is the name of something built in; take another, such as order_{value}"
    return None


def pattern_problem(value: str) -> str | None:
    from guarantee_email_agent.utils.safe_regex import UnsafeRegexError, compile_safe_regex  # start-up: few have one

    try:
        compile_safe_regex(value)
    except UnsafeRegexError as error:
        return str(error)
    return None


def _topics(values: tuple[str, ...]) -> str | None:
    if not values:
        return "names no topic; name those that an instruction file declares"
    if BUILT_IN_TOPIC in values:
        return f"names {BUILT_IN_TOPIC!r}, which the built-in look-up of warranties serves; name another topic"
    return None


_words: Final = all_matching(_WORD, "short plain words, such as shipped")


def _statuses(values: tuple[str, ...]) -> str | None:
    if built_in := next((value for value in values if value in BUILT_IN_STATUSES), None):
        return f"need not list {built_in!r}, which every look-up has; remove it"
    return _words(values)


def _labels(value: Any) -> str | None:
    phrases = all_labels(value)
    if not phrases:
        return "names no phrase; name those that stand before the number, such as order number"
    if any(not any(map(str.isalnum, phrase)) for phrase in phrases):
        return "holds a phrase without a word; write one, such as order number"
    return None


def all_labels(value: Sequence[str] | Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The phrases of all languages."""
    lists = value.values() if isinstance(value, Mapping) else (value,)
    return tuple(dict.fromkeys(phrase for phrases in lists for phrase in phrases))


def _facts(values: Mapping[str, FactSetting]) -> str | None:
    if len(values) > MAX_FACTS:
        return f"holds {len(values)} facts; keep the {MAX_FACTS} that replies need"
    for name, form in values.items():
        if wrong := _name(name):
            return wrong
        if isinstance(form, tuple) and not form:
            return f"{name} lists no word; list those that the service may give, or write date, amount or name"
        if isinstance(form, tuple) and (wrong := _words(form)):
            return f"{name} {wrong}"
        if isinstance(form, tuple) and (asked := next((word for word in form if word.lower() in _ASKED), None)):
            return f"{name} lists {asked!r}, by which a condition asks whether there is a fact; leave it out"
    return None


@dataclass(frozen=True, slots=True)
class NumberFormatSettings:
    """A format of numbers, with a number that has it."""

    pattern: str = field(metadata={"doc": _PATTERN_DOC, "check": pattern_problem})
    example: str = field(metadata={"doc": "A number that fits."})

    def __post_init__(self) -> None:
        if not re.fullmatch(self.pattern, self.example, re.IGNORECASE):
            raise ValueError(f"has the example {self.example!r}, which does not fit its pattern; correct one of them")
        read = self.example.replace(" ", "")
        if not re.fullmatch(_NUMBER, read) or not re.fullmatch(self.pattern, read, re.IGNORECASE):
            problem = "which no mail can give: numbers are read without blanks, of A to Z, digits and single - / . _"
            raise ValueError(f"has the example {self.example!r}, {problem}; correct both")


@dataclass(frozen=True, slots=True)
class SerialNumberSettings:
    """How the company's serial numbers look."""

    formats: tuple[NumberFormatSettings, ...] = setting(
        (), "The company's formats. Where any is given, no other number is looked up; one with a letter needs no label."
    )


@dataclass(frozen=True, slots=True)
class WarrantySettings:
    """What is known of serial numbers and of warranties."""

    serial_number: SerialNumberSettings = setting(SerialNumberSettings(), "How a serial number is known.")


@dataclass(frozen=True, slots=True)
class LookUpSettings:
    """One look-up: for mails on its topics that give one number, a tool is asked for it."""

    topics: tuple[str, ...] = field(metadata={"doc": "Topics whose mails it serves.", "check": _topics})
    number: str = field(metadata={"doc": "What files call the number, such as `order_number`.", "check": _name})
    labels: tuple[str, ...] | Mapping[str, tuple[str, ...]] = field(
        metadata={"doc": "Phrases that stand before the number; a list, or one for each language.", "check": _labels}
    )
    pattern: str | None = setting(None, _PATTERN_DOC, pattern_problem)
    formats: tuple[NumberFormatSettings, ...] = setting((), "The same with an example each, in place of `pattern`.")
    description: str | None = setting(None, "What the number is, for a language model.", not_blank)
    table: Path | None = setting(
        None, "CSV file or SQLite database that the built-in server looks into; in place of `server`."
    )
    key: str | None = setting(None, "The table's column with the number; by default `number`.", not_blank)
    server: McpServer = setting(McpServer(), "The MCP server, with the keys of `mcp.warranty_api`.")
    tool: str | None = setting(None, "Its tool.", not_blank)
    argument: str | None = setting(None, "The tool's argument that takes the number; by default `number`.", not_blank)
    statuses: tuple[str, ...] = setting(
        (),
        "Words that the answer's status may be, besides `not_found`; any other counts as `other`. Without any, a "
        "number is `found` or `not_found`.",
        _statuses,
    )
    facts: Mapping[str, FactSetting] = setting(
        {}, "What the answer may tell: `date`, `amount`, `name`, or a list of words, by its key.", _facts
    )
    required: tuple[str, ...] = setting((), "Facts that a reply has to hold where they are known.")
    status_key: str = setting("status", "What the answer calls its status.", not_blank)
    owner_key: str = setting("owner_email", "What it calls the only address that may be told.", not_blank)

    def __post_init__(self) -> None:
        if (self.pattern is None) == (not self.formats):
            raise ValueError("needs either pattern or formats; write the one that you use")
        if self.number in self.facts:
            raise ValueError(f"has a fact called {self.number}, like its number; give one another name")
        for name in self.required:
            if name not in self.facts:
                raise ValueError(f"requires {name!r}, which is none of its facts{suggestion(name, tuple(self.facts))}")
        if self.table is not None:
            if not self.server.built_in:
                raise ValueError("has both table and server; keep the one that you use")
            if self.tool is not None or self.argument is not None:
                raise ValueError("has a table, whose tool is known; remove tool and argument")
            if (keys := f"{self.status_key} {self.owner_key}") != keys.casefold():
                raise ValueError("has a table, whose columns are read in lower case; write its keys so")
        elif self.server.built_in:
            raise ValueError("has neither a table nor a server with a command or a url; add one")
        elif self.server.tools:
            if (self.tool, self.argument, self.status_key, self.owner_key) != (None, None, "status", "owner_email"):
                raise ValueError(
                    "has server.tools, which say what the server calls all; remove tool, argument, status_key and "
                    "owner_key"
                )
            self._check_mapping()
        elif self.tool is None:
            raise ValueError("has a server but no tool; name the tool that takes the number")
        elif self.key is not None:
            raise ValueError("has a key, which is a table's; remove it")

    @property
    def patterns(self) -> tuple[str, ...]:
        """Those of all formats."""
        return (self.pattern,) if self.pattern is not None else tuple(each.pattern for each in self.formats)

    def own_tool(self) -> OwnTool:
        """What `server.tools` maps."""
        forms: dict[str, AnswerForm] = {
            name: "text_or_number" if form == "amount" else "text" for name, form in self.facts.items()
        }
        return look_up_tool(self.number, forms, self.statuses)

    def _check_mapping(self) -> None:
        try:
            check_mappings(self.server.tools, {LOOK_UP_TOOL: self.own_tool()}, LOOK_UP_TOOL)
        except ProblemsError as error:
            raise ProblemsError(
                replace(problem, path=("server", *problem.path)) for problem in error.problems
            ) from None


def look_ups_problem(look_ups: Mapping[str, LookUpSettings]) -> str | None:
    """A check: names that can be used, and one look-up for a topic."""
    served: dict[str, str] = {}
    numbers: dict[str, str] = {}
    for name, settings in look_ups.items():
        if not re.fullmatch(_NAME, name) or name in BUILT_IN_SERVICES:
            return (
                f"{name!r} cannot be the name of a look-up; take lower-case letters, digits and underscores, such as "
                "orders, and no name of a built-in service"
            )
        for topic in settings.topics:
            if other := served.get(topic):
                return f"both {other} and {name} serve the topic {topic!r}; leave it to one of them"
            served[topic] = name
        if other := numbers.get(settings.number):
            return f"both {other} and {name} call their number {settings.number!r}; give one another name"
        numbers[settings.number] = name
    return None
