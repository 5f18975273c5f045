"""What the replies of an instruction file would say in each situation that leads to it, checked before any mail is."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product

from guarantee_email_agent.instructions.look_up import NOT_FOUND, WARRANTY, WITHHELD_STATUS, Fact, LookUp, look_up_of
from guarantee_email_agent.instructions.phrases import fold
from guarantee_email_agent.instructions.router import OTHER_TOPIC, Condition, Situation, all_situations, is_triggered
from guarantee_email_agent.instructions.template import (
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


# As the text is folded: lower case, without accents. A `*` stands for any letters. Replies in every language
# are checked for the words of all, since a sentence may have been left untranslated.
_NOT_VALID = (
    *("invalid", "no longer valid", "not valid"),
    *("ungultig*", "nicht gultig", "nicht mehr gultig", "gilt nicht"),
    *("niewazn*", "nie jest wazna", "nie jest juz wazna", "utracila waznosc", "stracila waznosc"),
    *("pas valable", "plus valable", "pas valide", "plus valide", "pas en cours"),
    *("no es valid*", "no esta vigente", "ya no es valida"),
    *("non e valida", "non e piu valida", "niet geldig", "ongeldig*"),
)
_ENDED = tuple(map(" ".join, product(("has", "have"), ("ended", "lapsed", "run out"))))
_EXPIRED = (
    *("expired", *_ENDED, "ran out", "is over"),
    *("abgelaufen*", "ausgelaufen*", "erloschen*", "garantie endete", "lief ab", "ist vorbei"),
    *("wygasl*", "uplynal", "uplynela", "skonczyl* sie", "dobiegl* konca", "po gwarancji"),
    *("expiree*", "expire", "est echue", "est arrivee a echeance", "est terminee", "a pris fin", "hors garantie"),
    *("caducad*", "caduco", "vencid*", "vencio", "ha expirado", "expirada", "ha terminado", "fuera de garantia"),
    *("scadut*", "verlopen", "afgelopen"),
)
_NOT_KNOWN = (
    *("not in our records", "not in our system", "not in our database", "not found"),
    *("nicht in unser*", "nicht verzeichnet", "nicht gefunden", "nicht bekannt"),
    *("nie ma w nasz*", "nie figuruje", "nie znalezlismy", "nie znaleziono", "nie widnieje"),
    *("ne figure pas", "n'avons pas trouve", "est introuvable", "est inconnu*"),
    *("no figura", "no consta", "no hemos encontrado", "no aparece"),
    *("non risulta", "niet in onze"),
)
_COVERED = (
    *("is covered", "are covered", "still covered", "fully covered"),
    *("abgedeckt*", "gedeckt", "vollen garantieschutz", "garantieschutz besteht"),
    *("objet* gwarancj*", "objet* jest", "objet* ochron*", "w pelni objet*", "pelna ochrona"),
    *("est couvert*", "entierement couvert*", "couvert* par", "pris en charge"),
    *("esta cubiert*", "totalmente cubiert*", "cubiert* por"),
    *("e coperto", "e coperta", "gedekt"),
)
_IN_FORCE = (
    *map(
        " ".join,
        product(
            ("is", "are", "still"),
            ("active", "in force", "under warranty", "under guarantee", "in warranty", "in guarantee"),
        ),
    ),
    *("noch garantie", "garantie lauft", "garantie gilt", "garantie besteht", "besteht garantie", "in der garantie"),
    *("na gwarancji", "gwarancja trwa", "gwarancja obowiazuje", "gwarancja jest aktywna"),
    *("sous garantie", "garantie est en cours", "garantie court", "encore garanti"),
    *("en garantia", "bajo garantia", "garantia esta activa", "garantia sigue"),
    *("in garanzia", "onder garantie", "binnen de garantie"),
)
_VALID = (
    *_IN_FORCE,
    *("gultig*", "jest wazna", "jest nadal wazna", "jest wciaz wazna", "vigente*", "vigor", "geldig*"),
    *("valable*", "valida", "valido", "valide", "valides", "validite", "validez"),
)
_UNKNOWN = ("is valid", "is still valid", *_NOT_VALID, *_EXPIRED, *_VALID, *_COVERED, *_NOT_KNOWN)
_FALSE_WORDS: Mapping[str | None, Sequence[str]] = {
    "valid": (*_NOT_VALID, *_EXPIRED, *_NOT_KNOWN),
    # The letters "valid" may not stand there in any word: who reads in a hurry reads no "in" before it.
    "expired": ("*valid*", *_VALID, *_COVERED, *_NOT_KNOWN),
    "not_found": ("*valid*", *_NOT_VALID, *_VALID, *_COVERED, *_EXPIRED),
}
_FULLY_COVERED = (
    *(
        "fully covered",
        "vollstandig abgedeckt",
        "voll abgedeckt",
        "in vollem umfang",
        "w pelni objet*",
        "w pelnym zakresie",
    ),
    *("entierement couvert*", "integralement couvert*", "totalmente cubiert*", "cobertura completa", "cobertura total"),
)
_ABOUT_WARRANTY = ("*warrant*", "*guarantee*", "*garanti*", "*gwaranc*", "*gewahrleist*", "*rekojmi*")
_OPEN_SENTENCE = re.compile(
    r"\b(?:as soon as|once|when|whenever|until|unless|before|after|if|whether|that|which|who|no|not|never|cannot)\b"
)
_SENTENCE_END = re.compile(r"[.!?;:]\s|\n\s*\n")

_ABOUT_OTHER = (*_ABOUT_WARRANTY, *_UNKNOWN)
_ALL_WORDS = tuple(dict.fromkeys((*_ABOUT_OTHER, *_FULLY_COVERED, "*valid*")))
_WORD = re.compile(r"\w+")
_NEEDED = [
    (
        claim,
        frozenset(_WORD.findall(re.sub(r"\S*\*\S*", "", claim))),
        [part.strip("*") for part in claim.split() if "*" in part],
    )
    for claim in _ALL_WORDS
]
"""Each claim with its whole words, and the beginnings or letters of its other ones."""


def claim_words_in(text: str) -> frozenset[str]:
    """The claims of which every word stands somewhere in a folded text; no part of it can hold another claim."""
    words = frozenset(_WORD.findall(text))
    return frozenset(
        [claim for claim, whole, parts in _NEEDED if whole <= words and all(map(text.__contains__, parts))]
    )


def false_claims_in(
    text: str, situation: Situation, coverage: str | None, look_ups: Sequence[LookUp] = (WARRANTY,)
) -> Sequence[str]:
    """Those of `claim_words_in` that are false in this situation; arguments as for `find_false_claim`."""
    possible = claim_words_in(text)
    return [claim for claim in _false_claims(situation, coverage, look_ups) if claim in possible] if possible else ()


# A check for the author of a reply, who means well: of a warranty it knows the usual words in English, German, Polish,
# French and Spanish, a few in Italian and Dutch, and no paraphrase; of another look-up the words of its own statuses,
# in English. It is no protection against text that a model or a customer wrote.
def find_false_claim(
    text: str,
    situation: Situation,
    coverage: str | None,
    suspects: Sequence[str] | None = None,
    look_ups: Sequence[LookUp] = (WARRANTY,),
) -> re.Match[str] | None:
    """The first of the words that are false in this situation, where a reply holds any.

    text: folded (`phrases.fold`). coverage: as in the facts. suspects: `false_claims_in` a text that holds all of it.
    look_ups: of the declared topics; without the warranty's, a reply on any topic may speak of warranties.
    """
    look_up = look_up_of(situation.topic, look_ups)
    own_status = _find_own_status(text, look_up, situation.status) if look_up is not None else None
    if own_status:
        return own_status
    if suspects is None:
        suspects = false_claims_in(text, situation, coverage, look_ups)
    # Nearly no reply holds one of them even inside a word, and a pattern takes longer to compile than all of this.
    on_one_line = " ".join(text.split())
    found = [claim for claim in suspects if claim.strip("*") in on_one_line]
    return re.search("|".join(map(_pattern, found)), text) if found else None


def _false_claims(situation: Situation, coverage: str | None, look_ups: Sequence[LookUp]) -> Sequence[str]:
    if situation.topic == OTHER_TOPIC and any(each.is_of_warranties for each in look_ups):
        return _ABOUT_OTHER
    look_up = look_up_of(situation.topic, look_ups)
    if look_up is not None and not look_up.is_of_warranties:
        return _false_words_beside(look_up, situation.status)
    words = _FALSE_WORDS.get(situation.warranty_status, _UNKNOWN)
    return words if coverage == "full" else (*_FULLY_COVERED, *words)


def _pattern(word: str) -> str:
    pattern = word.replace("*", r"\w*").replace(" ", r"\s+")
    return rf"\b{pattern}\b"


def _false_words_beside(look_up: LookUp, status: str | None) -> list[str]:
    """What nobody may be told of a warranty, who is told of something else: its own words are another matter."""
    own = [fold(each).replace("_", " ") for each in look_up.statuses]
    words = [word for word in (*_UNKNOWN, *_FULLY_COVERED) if status != NOT_FOUND or word not in _NOT_KNOWN]
    return [word for word in words if not any(each in word for each in own)]


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
