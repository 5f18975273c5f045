"""Firm phrases of our own replies, softened."""

from __future__ import annotations

import re
from collections.abc import Iterator

from guarantee_email_agent.eval.mutation.instruction_faults import REPLY, Fault, fault_in

_SOFTER = (
    (r"\bis valid\b", "should be valid"),
    (r"\bis not\b", "may not be"),
    (r"\bcannot\b", "can hardly"),
    (r"\bneed just one thing\b", "would like something"),
    (r"\bserial number\b", "number"),
    (r"\bfully covered\b", "covered"),
    (r"\bhas expired\b", "may have expired"),
    (r"\bconfirms neither\b", "may not confirm"),
    (r"\bgeneral support\b", "support"),
    (r"\bclarify\b", "repeat"),
    (r"\bist gültig\b", "sollte gültig sein"),
    (r"\bvollständig abgedeckt\b", "abgedeckt"),
    (r"\babgelaufen ist\b", "abgelaufen sein dürfte"),
    (r"\bsteht nicht in\b", "fehlt wohl in"),
    (r"\bSeriennummer\b", "Nummer"),
    (r"\bes\s+válida\b", "debería ser válida"),
    (r"\btotalmente cubierto\b", "cubierto"),
    (r"\bha vencido\b", "puede haber vencido"),
    (r"\bno figura\b", "quizá no figure"),
    (r"\bnúmero de\s+serie\b", "número"),
    (r"\best valable\b", "devrait être valable"),
    (r"\bentièrement couvert\b", "couvert"),
    (r"\ba\s+expiré\b", "a peut-être expiré"),
    (r"\bne figure pas\b", "ne figure peut-être pas"),
    (r"\bnuméro de\s+série\b", "numéro"),
    (r"\bjest\s+ważna\b", "powinna być ważna"),
    (r"\bw pełni objęte\b", "objęte"),
    (r"\bwygasła\b", "mogła wygasnąć"),
    (r"\bnie figuruje\b", "może nie figurować"),
    (r"\b([Nn])umer(u?) seryjn(y|ego)\b", r"\1umer\2"),
)


def softened_phrases(name: str, text: str) -> Iterator[Fault]:
    for reply in REPLY.finditer(text):
        for firm, soft in _SOFTER:
            found = re.compile(firm).search(text, *reply.span())
            if found and text.rfind("<", 0, found.start()) <= text.rfind(">", 0, found.start()):  # in no tag
                yield fault_in(name, text, "soften a phrase", found.start(), found.end(), found.expand(soft))
