"""Whether the replies of a scenario hold the same facts, conditions and sentences to choose in every language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from guarantee_email_agent.instructions.template import Choice, Conditional, Part, Placeholder, ReplyTemplate, Sentence

Conditions = Mapping[str, tuple[str, ...]]


def language_problems(
    default: Sequence[ReplyTemplate], translated: Sequence[ReplyTemplate]
) -> Iterator[tuple[int, str]]:
    """(line in the translation, problem) pairs: what one of the two languages holds and the other does not.

    default: the replies in the default language. translated: those in another one, at least one.
    """
    language, default_language = translated[0].language, default[0].language
    originals = {_key(template.conditions): template for template in default}
    copies = {_key(template.conditions): template for template in translated}
    for key, original in originals.items():
        if key not in copies:
            element = _element("reply", original.conditions)
            yield (
                translated[0].line,
                f"has no {element} in '{language}', which there is in '{default_language}'. Add it",
            )
    for key, copy in copies.items():
        if key not in originals:
            element = _element("reply", copy.conditions)
            yield (
                copy.line,
                f"has {element} in '{language}' but not in '{default_language}'. Add it there, or remove it here",
            )
            continue
        held, wanted = dict(_contents(copy.parts, "")), dict(_contents(originals[key].parts, ""))
        for content in wanted:
            if content not in held:
                yield copy.line, f"the reply in '{language}' lacks {content}, which '{default_language}' has. Add it"
        for content, line in held.items():
            if content not in wanted:
                remedy = "Add it there, or remove it here"
                yield line, f"the reply in '{language}' has {content}, which '{default_language}' lacks. {remedy}"


def _contents(parts: Sequence[Part], inside: str) -> Iterator[tuple[str, int]]:
    """(what has to stand in every language, its line) pairs. inside: the elements around it."""
    for part in parts:
        if isinstance(part, Placeholder):
            yield f"{{{part.name}}}{inside}", part.line
        elif isinstance(part, Choice):
            first = part.sentences[0].id
            for sentence in part.sentences:
                beside = "" if sentence.id == first else f" beside '{first}'"
                yield from _sentence_contents(sentence, "<sentence>", f"{beside}{inside}")
        elif isinstance(part, Sentence):
            yield from _sentence_contents(part, "<optional>", inside)
        elif isinstance(part, Conditional):
            element = _element("if", part.conditions)
            line = next((each.line for each in part.parts if not isinstance(each, Conditional)), 1)
            yield f"{element}{inside}", line
            yield from _contents(part.parts, f" in {element}{inside}")


def _sentence_contents(sentence: Sentence, element: str, inside: str) -> Iterator[tuple[str, int]]:
    conditions = f" where {_attributes(sentence.conditions)}" if sentence.conditions else ""
    yield f"the {element} '{sentence.id}'{conditions}{inside}", sentence.line
    yield from _contents(sentence.parts, f" in '{sentence.id}'{inside}")


def _key(conditions: Conditions) -> frozenset[tuple[str, frozenset[str]]]:
    return frozenset((name, frozenset(values)) for name, values in conditions.items())


def _element(name: str, conditions: Conditions) -> str:
    return f"<{name} {attributes}>" if (attributes := _attributes(conditions)) else f"<{name}>"


def _attributes(conditions: Conditions) -> str:
    return " ".join(f'{name}="{", ".join(sorted(values))}"' for name, values in sorted(conditions.items()))
