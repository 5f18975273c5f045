"""What the replies of an instruction file would say in each situation that leads to it, checked before any mail is."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from guarantee_email_agent.instructions.claims import false_claims_in, find_false_claim
from guarantee_email_agent.instructions.look_up import WARRANTY, WITHHELD_STATUS, Fact, LookUp, look_up_of
from guarantee_email_agent.instructions.phrases import fold
from guarantee_email_agent.instructions.router import Condition, Situation, all_situations, is_triggered
from guarantee_email_agent.instructions.template import (
    Choice,
    Conditional,
    MissingFactError,
    Part,
    Piece,
    Placeholder,
    ReplyTemplate,
    Sentence,
    Text,
    select_template,
)

Facts = Mapping[str, str | None]

EXAMPLES: Mapping[str, str] = {"number": "SN12345", "date": "2030-01-01", "amount": "12.50", "name": "Parcel Post"}
"""What stands for a fact of each form."""


def reply_problems(
    trigger: Sequence[Condition],
    templates: Sequence[ReplyTemplate],
    topics: Collection[str],
    look_ups: Sequence[LookUp] = (WARRANTY,),
    *,
    has_ticket: bool,
) -> list[tuple[int | None, str]]:
    """(line, problem) pairs; lines count from the start of the body, None is for a reply that is not there.

    topics: the declared ones.

    In every situation that triggers the file, with every mix of known and unknown facts, there has to be a reply that
    can be filled in, whose required sentences carry the facts, and of whose sentences none is false.
    """
    found: dict[tuple[int | None, str], str] = {}
    asked_for = _names_asked_for(templates)
    for situation in all_situations(topics, look_ups):
        if is_triggered(trigger, situation):
            for line, problem, remedy in _problems_in(situation, templates, look_ups, asked_for, has_ticket=has_ticket):
                # Once is enough: a sentence is mostly wrong in many situations at once.
                found.setdefault((line, problem), f"{problem} where '{situation}'. {remedy}")
    return [(line, message) for (line, _), message in found.items()]


def _problems_in(
    situation: Situation,
    templates: Sequence[ReplyTemplate],
    look_ups: Sequence[LookUp],
    asked_for: Collection[str],
    *,
    has_ticket: bool,
) -> Iterator[tuple[int | None, str, str]]:
    """(line, problem, remedy)"""
    look_up = look_up_of(situation.topic, look_ups)
    for facts in _possible_facts(situation, look_up, templates, asked_for):
        template = select_template(templates, facts)
        if template is None:
            status = f" for {look_up.status} {situation.status}" if look_up and situation.status else ""
            yield None, f"has no <reply>{status}", "Add one"
            continue
        yield from _gaps(template, facts, look_up, has_ticket=has_ticket)
        suspects = _suspect_claims(template, facts, situation, look_ups)
        has_own_statuses = look_up is not None and not look_up.is_of_warranties
        for chosen in _selections(template, facts):
            pieces = template.pieces(facts, chosen)
            try:
                texts = [piece.value(facts) for piece in pieces]
            except MissingFactError as error:
                yield error.line, str(error), f'Put it inside <if {error.name}="known">…</if>'
                continue
            is_joined = _share_a_word(texts)
            if not suspects and not is_joined and not has_own_statuses:
                continue
            texts = [fold(text) for text in texts]
            coverage = facts.get("coverage")
            known = None if is_joined else suspects
            if claim := find_false_claim("".join(texts), situation, coverage, known, look_ups):
                words = " ".join(claim[0].split())
                line = _line_at(claim.start(), texts, pieces, template)
                yield line, f"the reply says '{words}', which is not so", "Change it, or add a condition"


def _suspect_claims(
    template: ReplyTemplate, facts: Facts, situation: Situation, look_ups: Sequence[LookUp]
) -> Sequence[str]:
    """What the words of all its sentences together could claim and is false; few replies are looked at closer."""
    parts = list(template.all_parts())
    names = dict.fromkeys(part.name for part in parts if isinstance(part, Placeholder))
    words = [part.text for part in parts if isinstance(part, Text)]
    text = fold(" ".join((*words, *(value for name in names if (value := facts.get(name))))))
    return false_claims_in(text, situation, facts.get("coverage"), look_ups)


def _possible_facts(
    situation: Situation, look_up: LookUp | None, templates: Sequence[ReplyTemplate], asked_for: Collection[str]
) -> Iterator[Facts]:
    """As `EmailProcessor` would give them; without an answer of the service nothing is known."""
    if look_up is None:
        yield {}
        return
    nothing: Facts = dict.fromkeys(look_up.fact_names)
    status = situation.status
    if status is None:
        yield nothing
        if situation.numbers == "none":
            yield from ({**nothing, name: EXAMPLES["number"]} for name in (look_up.unreadable, look_up.unconfirmed))
    elif status == WITHHELD_STATUS:
        yield {**nothing, look_up.status: status}
    else:
        known = {**nothing, look_up.number: EXAMPLES["number"], look_up.status: status}
        # A fact that no reply asks for changes none of them.
        facts = [fact for fact in look_up.facts_with(status) if fact.required or fact.name in asked_for]
        for values in itertools.product(*(_possible_values(fact, templates) for fact in facts)):
            yield known | dict(zip((fact.name for fact in facts), values, strict=True))


def _names_asked_for(templates: Sequence[ReplyTemplate]) -> frozenset[str]:
    """The facts that replies hold, or that their conditions are on."""
    names: set[str] = set()
    for template in templates:
        for part in (template, *template.all_parts()):
            if isinstance(part, Conditional):
                names |= part.conditions.keys()
            elif isinstance(part, Placeholder):
                names.add(part.name)
    return frozenset(names)


def _possible_values(fact: Fact, templates: Sequence[ReplyTemplate]) -> tuple[str | None, ...]:
    """Unknown, and one of each kind that makes a difference."""
    if fact.form != "word":
        return None, EXAMPLES[fact.form]
    named = frozenset[str]().union(*(template.words_asked_for(fact.name) for template in templates))
    if not fact.words:
        return None, *sorted({"full", *named})
    unnamed = [word for word in fact.words if word.casefold() not in named]
    return None, *(word for word in fact.words if word.casefold() in named), *unnamed[:1]


def _gaps(
    template: ReplyTemplate, facts: Facts, look_up: LookUp | None, *, has_ticket: bool
) -> Iterator[tuple[int, str, str]]:
    """Facts that the reply may leave out, and choices without a sentence."""
    needed = ["ticket_number"] if has_ticket else []
    if look_up is not None and facts[look_up.status] in look_up.told_statuses:
        required = (fact.name for fact in look_up.facts if fact.required)
        needed.extend(name for name in (look_up.number, *required) if facts[name])
    carried = _carried(template.parts, facts)
    for name in needed:
        if name not in carried:
            remedy = "Write it into the reply, outside of <optional>"
            yield template.line, f"the reply does not always hold {{{name}}}", remedy
    for part in template.open_parts(facts):
        if isinstance(part, Choice) and not part.allowed(facts):
            yield part.line, "no <sentence> of the <choose> fits", "Add one, or put <if …> around the <choose>"


def _carried(parts: Sequence[Part], facts: Facts) -> set[str]:
    """The placeholders that stand in the reply whatever is chosen."""
    names: set[str] = set()
    for part in parts:
        if isinstance(part, Placeholder):
            names.add(part.name)
        elif isinstance(part, Choice):
            if allowed := part.allowed(facts):
                names |= set.intersection(*(_carried(sentence.parts, facts) for sentence in allowed))
        elif isinstance(part, Conditional) and not isinstance(part, Sentence) and part.holds(facts):
            names |= _carried(part.parts, facts)
    return names


def _selections(template: ReplyTemplate, facts: Facts) -> Iterator[frozenset[str]]:
    """Choices among which each sentence is once; without the optional ones, too."""
    offered = template.offered(facts)
    optional = frozenset(each.sentence.id for each in offered if each.group is None)
    yield frozenset()
    if optional:
        yield optional
    for each in offered:
        if each.group is not None:
            yield optional | {each.sentence.id}


def _share_a_word(texts: Sequence[str]) -> bool:
    """Whether a part ends within a word that the next one goes on with."""
    return any(before[-1:].isalnum() and after[:1].isalnum() for before, after in itertools.pairwise(texts))


def _line_at(position: int, texts: Sequence[str], pieces: Sequence[Piece], template: ReplyTemplate) -> int:
    """The line of a position in the joined texts of the pieces."""
    for text, piece in zip(texts, pieces, strict=True):
        if position < len(text):
            return piece.line + text.count("\n", 0, position)
        position -= len(text)
    return template.line
