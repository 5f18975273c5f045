"""Whether replies and tickets ask only for facts that the look-ups of their file's topics give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from guarantee_email_agent.files.problems import suggestion
from guarantee_email_agent.instructions.look_up import TICKET_NUMBER, LookUp
from guarantee_email_agent.instructions.template import Conditional, Placeholder, ReplyTemplate

PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_ANY_VALUE: Final = ("known", "unknown")


def fact_problems(templates: Sequence[ReplyTemplate], look_ups: Sequence[LookUp]) -> Iterator[tuple[int, str]]:
    """(line, problem) pairs. look_ups: those of the topics that the file's trigger names."""
    for template in templates:
        yield from _condition_problems(template, look_ups)
        for part in template.all_parts():
            if isinstance(part, Conditional):
                yield from _condition_problems(part, look_ups)
            elif isinstance(part, Placeholder) and (problem := _placeholder_problem(part.name, look_ups)):
                yield part.line, problem


def ticket_problems(fields: Mapping[str, str], look_ups: Sequence[LookUp]) -> Iterator[str]:
    """What is wrong with a ticket's values, which may hold placeholders of facts."""
    known = _placeholders(look_ups)
    for name, value in fields.items():
        for placeholder in PLACEHOLDER.findall(value):
            if placeholder not in known:
                yield f"ticket.{name}: {_unknown_placeholder(placeholder, known)}"
        if re.search(r"[{}]", PLACEHOLDER.sub("", value)):
            yield f"ticket.{name}: a single '{{' or '}}' stands in it. Write a placeholder as {{name}}, or remove it"


def _condition_problems(part: Conditional, look_ups: Sequence[LookUp]) -> Iterator[tuple[int, str]]:
    known = tuple(dict.fromkeys(name for look_up in look_ups for name in look_up.fact_names))
    for name, values in part.conditions.items():
        if name not in known:
            yield part.line, f"unknown fact '{name}'{_nearest(name, known, known)}"
        elif (words := _words(name, look_ups)) and (wrong := set(values).difference(map(str.casefold, words))):
            what = "status" if any(name == look_up.status for look_up in look_ups) else f"word of {name}"
            word = min(wrong)
            yield part.line, f"unknown {what} '{word}'{_nearest(word, words, words)}"


def _words(name: str, look_ups: Sequence[LookUp]) -> tuple[str, ...]:
    """The values that a condition on a fact may name; none where it may name any."""
    words: list[str] = []
    for look_up in look_ups:
        if name == look_up.status:
            words += look_up.situations
        words += next((fact.words for fact in look_up.facts if fact.name == name), ())
    return (*dict.fromkeys(words), *_ANY_VALUE) if words else ()


def _placeholder_problem(name: str, look_ups: Sequence[LookUp]) -> str | None:
    known = _placeholders(look_ups)
    return None if name in (*known, TICKET_NUMBER) else _unknown_placeholder(name, (*known, TICKET_NUMBER))


def _placeholders(look_ups: Sequence[LookUp]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for look_up in look_ups for name in look_up.placeholders))


def _unknown_placeholder(name: str, known: Sequence[str]) -> str:
    return f"unknown placeholder {{{name}}}{_nearest(name, known, [f'{{{each}}}' for each in known])}"


def _nearest(word: str, known: Sequence[str], shown: Sequence[str]) -> str:
    listed = ", ".join(shown) or "none, since its topics look nothing up"
    return f"{suggestion(word, known) or '.'} Known are: {listed}"
