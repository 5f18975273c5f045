"""What would make an approved reply look like phishing: it asks for a secret, or leads somewhere that nobody listed.

An approved sentence leaves unattended, so a slip in one, or a line that somebody smuggled into the files, reaches every
customer. This knows the usual words in the languages of the shipped files, and no paraphrase.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from guarantee_email_agent.instructions.phrases import fold
from guarantee_email_agent.instructions.template import ReplyTemplate, Text

# As the text is folded: lower case, without accents. A warranty card is no payment card.
_SECRETS: Final = (
    r"(?:credit|debit|bank|payment) ?cards?",
    r"(?<!warranty )(?<!guarantee )card numbers?",
    r"cvv2?|cvc2?|security codes?",
    r"pass(?:word|code|phrase)s?|pin(?: code| number)?|tan(?: code| number)?|one[- ]time codes?",
    r"(?:kredit|bank|ec-)karten?\w*|kartennummer\w*|prufziffer\w*|geheimzahl\w*|pass-?wort\w*|kennwort\w*",
    r"numer\w* karty(?! gwar)|kart\w* (?:kredytow|platnicz|debetow)\w*|hasl[aoeu]|haslem",
    r"carte (?:bancaire|bleue|de credit)|numero de (?:la |votre )?carte(?! de garantie)|mots? de passe",
    r"tarjetas? de (?:credito|debito)|numero de (?:la |su )?tarjeta(?! de garantia)|contrasenas?",
    r"carta di credito|numero della carta(?! di garanzia)|credit ?cardnummer|creditcard\w*|kaartnummer|wachtwoord\w*",
)
_SECRET: Final = rf"\b(?:{'|'.join(_SECRETS)})\b"
_NEVER: Final = r"\b(?:never|nie|niemals|nigdy|jamais|nunca|mai|nooit)\b"
_SENTENCE_END: Final = r"[.!?](?=\s|$)|\n\s*\n"
_TOP_LEVEL: Final = (
    "com|org|net|io|info|biz|eu|de|at|ch|pl|fr|es|it|nl|be|uk|us|ru|cn|co|me|app|dev|shop|online|site|xyz|top|example"
)
_HOST: Final = (
    r"(?:[a-z][a-z0-9+.-]{1,20}://|www\.|@)(?P<address>[^\s/?#:<>()\"',;]+)"
    rf"|(?<![\w.@-])(?P<bare>(?:[a-z0-9-]+\.)+(?:{_TOP_LEVEL}))(?![\w-])"
)


def phishing_problems(templates: Iterable[ReplyTemplate], link_hosts: Collection[str]) -> Iterator[tuple[int, str]]:
    """(line, problem) pairs; lines count from the start of the body.

    link_hosts: hosts that replies may name in links and mail addresses, with those below them.
    """
    for template in templates:
        for part in template.all_parts():
            if isinstance(part, Text):
                text = fold(part.text)
                for position, problem in (*_secrets_asked_for(text), *_foreign_hosts(text, link_hosts)):
                    yield part.line + text.count("\n", 0, position), problem


def _secrets_asked_for(text: str) -> Iterator[tuple[int, str]]:
    for found in re.finditer(_SECRET, text.replace("\n", " ")):
        ends = [end.end() for end in re.finditer(_SENTENCE_END, text[: found.start()])]
        following = re.search(_SENTENCE_END, text[found.end() :])
        sentence = text[ends[-1] if ends else 0 : found.end() + (following.start() if following else len(text))]
        if not re.search(_NEVER, sentence):
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
