"""What the replies of an instruction file would say in each situation that leads to it, checked before any mail is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from guarantee_email_agent.instructions.claims import find_false_claim
from guarantee_email_agent.instructions.phrases import fold
from guarantee_email_agent.instructions.router import Condition, Situation, all_situations, is_triggered
from guarantee_email_agent.instructions.template import (
    FACTS,
    Choice,
    Conditional,
    MissingFactError,
    Part,
    Placeholder,
    ReplyTemplate,
    Sentence,
    select_template,
)

Facts = Mapping[str, str | None]


def reply_problems(
    trigger: Sequence[Condition], templates: Sequence[ReplyTemplate], topics: Collection[str], *, has_ticket: bool
) -> list[tuple[int | None, str]]:
    """(line, problem) pairs; lines count from the start of the body, None is for a reply that is not there.

    topics: the declared ones.

    In every situation that triggers the file, with every mix of known and unknown facts, there has to be a reply that
    can be filled in, whose required sentences carry the facts, and of whose sentences none is false.
    """
    found: dict[tuple[int | None, str], str] = {}
    for situation in all_situations(topics):
        if is_triggered(trigger, situation):
            for line, problem, remedy in _problems_in(situation, templates, has_ticket=has_ticket):
                # Once is enough: a sentence is mostly wrong in many situations at once.
                found.setdefault((line, problem), f"{problem} where '{situation}'. {remedy}")
    return [(line, message) for (line, _), message in found.items()]


def _problems_in(
    situation: Situation, templates: Sequence[ReplyTemplate], *, has_ticket: bool
) -> Iterator[tuple[int | None, str, str]]:
    """(line, problem, remedy)"""
    coverages = {"full"}.union(*(template.coverage_words() for template in templates))
    for facts in _possible_facts(situation, sorted(coverages)):
        template = select_template(templates, facts)
        if template is None:
            status = f" for warranty_status {situation.warranty_status}" if situation.warranty_status else ""
            yield None, f"has no <reply>{status}", "Add one"
            continue
        yield from _gaps(template, facts, has_ticket=has_ticket)
        for chosen in _selections(template, facts):
            try:
                text, line_at = _folded_text(template, facts, chosen)
            except MissingFactError as error:
                yield error.line, str(error), f'Put it inside <if {error.name}="known">…</if>'
                continue
            if claim := find_false_claim(text, situation, facts["coverage"]):
                words = " ".join(claim[0].split())
                problem = f"the reply says '{words}', which is not so"
                yield line_at(claim.start()), problem, "Change it, or add a condition"


def _possible_facts(situation: Situation, coverages: Sequence[str]) -> Iterator[Facts]:
    """As `EmailProcessor` would give them; without an answer of the warranty system nothing is known."""
    status = situation.warranty_status
    if status is None:
        yield dict.fromkeys(FACTS)
        return
    if status == "withheld":
        yield {**dict.fromkeys(FACTS), "warranty_status": status}
        return
    dates = (None, "2030-01-01") if status in ("valid", "expired") else (None,)
    for date, coverage in itertools.product(dates, (None, *coverages) if status == "valid" else (None,)):
        yield dict(zip(FACTS, ("SN12345", status, date, coverage), strict=True))


def _gaps(template: ReplyTemplate, facts: Facts, *, has_ticket: bool) -> Iterator[tuple[int, str, str]]:
    """Facts that the reply may leave out, and choices without a sentence."""
    needed = ["ticket_number"] if has_ticket else []
    if facts["warranty_status"] in ("valid", "expired", "not_found"):
        needed.extend(name for name in ("serial_number", "expiration_date") if facts[name])
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
    yield optional
    for each in offered:
        if each.group is not None:
            yield optional | {each.sentence.id}


def _folded_text(template: ReplyTemplate, facts: Facts, chosen: frozenset[str]) -> tuple[str, Callable[[int], int]]:
    """The reply without case and accents, and what gives the line of a position in it."""
    pieces = [(fold(piece.value(facts)), piece.line) for piece in template.pieces(facts, chosen)]

    def line_at(position: int) -> int:
        for text, line in pieces:
            if position < len(text):
                return line + text.count("\n", 0, position)
            position -= len(text)
        return template.line

    return "".join(text for text, _ in pieces), line_at
