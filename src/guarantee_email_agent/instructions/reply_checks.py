"""What the replies of an instruction file would say in each situation that leads to it, checked before any mail is.

The words that may be false, and those that phishing uses, stand in `reply_words.yaml`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, cast

from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.instructions.look_up import NOT_FOUND, WARRANTY, WITHHELD_STATUS, Fact, LookUp, look_up_of
from guarantee_email_agent.instructions.phrases import fold
from guarantee_email_agent.instructions.router import OTHER_TOPIC, Condition, Situation, all_situations, is_triggered
from guarantee_email_agent.instructions.template import (
    ANY_VALUE,
    Choice,
    ChoosableSentence,
    Conditional,
    MissingFactError,
    Part,
    Piece,
    Placeholder,
    ReplyTemplate,
    Text,
    select_template,
)

Facts = Mapping[str, str | None]
AskedFor = Mapping[str, set[str]]
"""The facts that replies hold, or that their conditions are on, with the values that these name."""

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
    can be filled in, whose required sentences carry the facts, and of whose sentences none is false; and each is said.
    """
    found: dict[tuple[int | None, str], str] = {}
    asked_for = dict[str, set[str]]()
    for part in itertools.chain(templates, *(template.all_parts() for template in templates)):
        if isinstance(part, Conditional):
            for name, values in part.conditions.items():
                asked_for.setdefault(name, set()).update(values)
        elif isinstance(part, Placeholder):
            asked_for.setdefault(part.name, set())
    said = list[ReplyTemplate]()
    for situation in all_situations(topics, look_ups):
        if is_triggered(trigger, situation):
            problems = _problems_in(situation, templates, look_ups, asked_for, said, has_ticket=has_ticket)
            for line, problem, remedy in problems:
                # Once is enough: a sentence is mostly wrong in many situations at once.
                found.setdefault((line, problem), f"{problem} where '{situation}'. {remedy}")
    for template in templates if said and not found else ():
        if not any(template is each for each in said):
            never = "this <reply> is never sent: one above is, wherever it could be, or its conditions never hold"
            found[template.line, never] = f"{never}. Correct the conditions, or remove it"
    return [(line, message) for (line, _), message in found.items()]


def _problems_in(
    situation: Situation,
    templates: Sequence[ReplyTemplate],
    look_ups: Sequence[LookUp],
    asked_for: AskedFor,
    said: list[ReplyTemplate],
    *,
    has_ticket: bool,
) -> Iterator[tuple[int | None, str, str]]:
    """(line, problem, remedy). said: gets the replies that are sent in the situation."""
    look_up = look_up_of(situation.topic, look_ups)
    for facts in _possible_facts(situation, look_up, asked_for):
        template = select_template(templates, facts)
        if template is None:
            status = f" for {look_up.status} {situation.status}" if look_up and situation.status else ""
            yield None, f"has no <reply>{status}", "Add one"
            continue
        said.append(template)
        yield from _gaps(template, facts, look_up, has_ticket=has_ticket)
        for chosen in _selections(template, facts):
            pieces = template.pieces(facts, chosen)
            try:
                texts = [piece.text if isinstance(piece, Text) else piece.value(facts) for piece in pieces]
            except MissingFactError as error:
                yield error.line, str(error), f'Put it inside <if {error.name}="known">…</if>'
                continue
            if not "".join(texts).strip():
                yield template.line, "the reply is empty", "Write into it what is always said"
            if claim := find_false_claim(fold("".join(texts)), situation, facts.get("coverage"), look_ups):
                words = " ".join(claim[0].split())
                line = _line_at(claim.start(), list(map(fold, texts)), pieces, template)
                yield line, f"the reply says '{words}', which is not so", "Change it, or add a condition"


def _possible_facts(situation: Situation, look_up: LookUp | None, asked_for: AskedFor) -> Iterator[Facts]:
    """As `EmailProcessor` would give them; without an answer of the service nothing is known."""
    if look_up is None:
        yield {}
        return
    known = {**dict.fromkeys(look_up.fact_names), look_up.status: situation.status}
    possible: dict[str, Sequence[str | None]] = {}
    # A fact that no reply asks for changes none of them.
    if situation.status is None:
        names = (look_up.unreadable, look_up.unconfirmed)
        possible = {name: (None, *_values(name, "number", asked_for)) for name in names if name in asked_for}
    elif situation.status != WITHHELD_STATUS:
        possible[look_up.number] = _values(look_up.number, "number", asked_for)
        for fact in look_up.facts_with(situation.status):
            if fact.required or fact.name in asked_for:
                possible[fact.name] = (None, *_possible_values(fact, asked_for))
    for values in itertools.product(*possible.values()):
        yield known | dict(zip(possible, values, strict=True))


def _possible_values(fact: Fact, asked_for: AskedFor) -> Sequence[str]:
    """One of each kind that makes a difference."""
    if fact.form != "word":
        return _values(fact.name, fact.form, asked_for)
    named = asked_for.get(fact.name, set()).difference(ANY_VALUE)
    if not fact.words:
        return sorted({"full", *named})
    unnamed = [word for word in fact.words if word.casefold() not in named]
    return *(word for word in fact.words if word.casefold() in named), *unnamed[:1]


def _values(name: str, form: str, asked_for: AskedFor) -> tuple[str, ...]:
    """What conditions ask for by name, and something else."""
    named, other = asked_for.get(name, set()).difference(ANY_VALUE), EXAMPLES[form]
    return other + "0" * (other.casefold() in named), *sorted(named)


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
        elif isinstance(part, Conditional) and not isinstance(part, ChoosableSentence) and part.holds(facts):
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


def _line_at(position: int, texts: Sequence[str], pieces: Sequence[Piece], template: ReplyTemplate) -> int:
    """The line of a position in the joined texts of the pieces."""
    for text, piece in zip(texts, pieces, strict=True):
        if position < len(text):
            return piece.line + text.count("\n", 0, position)
        position -= len(text)
    return template.line


_UNKNOWN: Final = ("is_valid", "not_valid", "expired", "valid", "covered", "not_known")
_FALSE: Final[Mapping[str | None, Sequence[str]]] = {
    "valid": ("not_valid", "expired", "not_known"),
    "expired": ("valid_letters", "valid", "covered", "not_known"),
    "not_found": ("valid_letters", "not_valid", "valid", "covered", "expired"),
}
"""The kinds of `reply_words.yaml` that are false with a status of a warranty; with any other, those of `_UNKNOWN`."""
_OPEN_SENTENCE: Final = re.compile(
    r"\b(?:as soon as|once|when|whenever|until|unless|before|after|if|whether|that|which|who|no|not|never|cannot)\b"
)
_SENTENCE_END: Final = re.compile(r"[.!?;:]\s|\n\s*\n")


@cache
def _words_of(*kinds: str) -> tuple[str, ...]:
    """What `reply_words.yaml` holds of some kinds, in all languages."""
    (languages,) = load_documents(Path(__file__).with_name("reply_words.yaml").read_text(encoding="utf-8"))
    by_language = cast("Mapping[str, Mapping[str, list[str]]]", languages).values()
    return tuple(word for kind in kinds for words in by_language for word in words.get(kind, ()))


# It is no protection against text that a model or a customer wrote.
def find_false_claim(
    text: str, situation: Situation, coverage: str | None, look_ups: Sequence[LookUp] = (WARRANTY,)
) -> re.Match[str] | None:
    """The first of the words that are false in this situation, where a reply holds any.

    text: folded (`phrases.fold`). coverage: as in the facts. look_ups: of the declared topics; without the warranty's,
    a reply on any topic may speak of warranties. Of another look-up it knows the words of its statuses, in English.
    """
    look_up = look_up_of(situation.topic, look_ups)
    if look_up is not None and (own_status := _find_own_status(text, look_up, situation.status)):
        return own_status
    # Nearly no reply holds any, and a pattern takes longer to compile than to ask for all of them.
    sentences = " ".join(text.split()).split(". ")
    possible = [claim for sentence in sentences for claim in _possible_claims(sentence)]
    false = _false_claims(situation, coverage, look_ups) if possible else ()
    found = [claim for claim in possible if claim in false]
    return re.search("|".join(map(_pattern, found)), text) if found else None


@lru_cache(maxsize=1024)  # replies share most of their sentences
def _possible_claims(text: str) -> tuple[str, ...]:
    """Those of which all letters stand in a text."""
    claims = _all_claims()
    possible = [claim for first in filter(text.__contains__, claims) for claim in claims[first]]
    return tuple([claim for _, claim, letters in sorted(possible) if all(map(text.__contains__, letters))])


@cache
def _all_claims() -> Mapping[str, Sequence[tuple[int, str, list[str]]]]:
    """By the letters before their first star, each with its place and the letters between all stars."""
    claims: dict[str, list[tuple[int, str, list[str]]]] = {}
    for place, claim in enumerate(dict.fromkeys(_words_of(*_UNKNOWN, "fully_covered", "valid_letters", "warranty"))):
        first, *others = claim.split("*")
        claims.setdefault(first, []).append((place, claim, others))
    return claims


def _false_claims(situation: Situation, coverage: str | None, look_ups: Sequence[LookUp]) -> Sequence[str]:
    if situation.topic == OTHER_TOPIC and any(each.is_of_warranties for each in look_ups):
        return _words_of("warranty", *_UNKNOWN)
    look_up = look_up_of(situation.topic, look_ups)
    if look_up is not None and not look_up.is_of_warranties:
        # Its own words are another matter than what nobody may be told of a warranty.
        own = [fold(each).replace("_", " ") for each in look_up.statuses]
        own += _words_of("not_known") if situation.status == NOT_FOUND else ()
        return [word for word in _words_of(*_UNKNOWN, "fully_covered") if not any(each in word for each in own)]
    words = _words_of(*_FALSE.get(situation.warranty_status, _UNKNOWN))
    return words if coverage == "full" else (*_words_of("fully_covered"), *words)


def _pattern(word: str) -> str:
    pattern = word.replace("*", r"\w*").replace(" ", r"\s+")
    return rf"\b{pattern}\b"


def _find_own_status(text: str, look_up: LookUp, status: str | None) -> re.Match[str] | None:
    """A status that was reached, as in "was cancelled", where the look-up gave none.

    Of a known one the reply may tell what came before it, such as that a delivered order was shipped.
    """
    if look_up.is_of_warranties or status in look_up.statuses:
        return None
    names = "|".join(re.escape(fold(each)).replace("_", r"\s+").replace(r"\ ", r"\s+") for each in look_up.statuses)
    for match in re.finditer(rf"\b(?:was|were|(?:has|have)(?:\s+already)?(?:\s+been)?)\s+(?:{names})\b", text):
        start = max((end.end() for end in _SENTENCE_END.finditer(text, 0, match.start())), default=0)
        if not _OPEN_SENTENCE.search(text, start, match.start()):
            return match
    return None


_END_OF_REQUEST: Final = r"[.!?](?=\s|$)|\n\s*\n"
_TOP_LEVEL: Final = (
    "com|org|net|io|info|biz|eu|de|at|ch|pl|fr|es|it|nl|be|uk|us|ru|cn|co|me|app|dev|shop|online|site|xyz|top|example"
)
_HOST: Final = (
    r"(?:[a-z][a-z0-9+.-]{1,20}://|www\.|@)(?P<address>[^\s/?#:<>()\"',;]+)"
    rf"|(?<![\w.@-])(?P<bare>(?:[\w-]+\.)+(?:{_TOP_LEVEL}))(?![\w-])"
)


def phishing_problems(templates: Iterable[ReplyTemplate], link_hosts: Collection[str]) -> Iterator[tuple[int, str]]:
    """What makes an approved reply look like phishing: it asks for a secret, or leads somewhere that nobody listed.

    An approved sentence leaves unattended, so a slip in one, or a line that somebody smuggled into the files, reaches
    every customer. This knows the usual words in the languages of the built-in files, and no paraphrase.
    Gives (line, problem) pairs; lines count from the start of the body.
    link_hosts: hosts that replies may name in links and mail addresses, with those below them.
    """
    for template in templates:
        for part in template.all_parts():
            if isinstance(part, Text):
                # Without its accents one host is another.
                folded, text = fold(part.text), part.text.lower()
                for position, problem in (*_secrets_asked_for(folded), *_foreign_hosts(text, link_hosts)):
                    yield part.line + text.count("\n", 0, position), problem


@cache
def _any_of(kind: str) -> str:
    return rf"\b(?:{'|'.join(_words_of(kind))})\b"


def _secrets_asked_for(text: str) -> Iterator[tuple[int, str]]:
    for found in re.finditer(_any_of("secrets"), text.replace("\n", " ")):
        ends = [end.end() for end in re.finditer(_END_OF_REQUEST, text[: found.start()])]
        following = re.search(_END_OF_REQUEST, text[found.end() :])
        sentence = text[ends[-1] if ends else 0 : found.end() + (following.start() if following else len(text))]
        if not re.search(_any_of("never"), sentence):
            problem = f"the reply speaks of '{found[0]}', as phishing does"
            yield found.start(), f"{problem}. Remove it; only 'we never ask for …' may stand"


def _foreign_hosts(text: str, link_hosts: Collection[str]) -> Iterator[tuple[int, str]]:
    behind_dots = text.split(".")[1:]
    if "@" not in text and "://" not in text and not any(rest and not rest[0].isspace() for rest in behind_dots):
        return  # the pattern takes ten times as long
    allowed = [host.lower() for host in link_hosts]
    for found in re.finditer(_HOST, text):
        host = (found["address"] or found["bare"]).rpartition("@")[2].rstrip(".")
        if not any(host == each or host.endswith(f".{each}") for each in allowed):
            problem = f"the reply leads to '{host}', which is no host of yours"
            remedy = "Remove it, or add the host to link_hosts in the frontmatter of the main file"
            yield found.start(), f"{problem}. {remedy}"
