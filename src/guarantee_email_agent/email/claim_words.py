"""The words by which a sentence of a free draft is checked, in nine languages.

They are English, German, Polish, French, Spanish, Italian, Dutch, Portuguese and Czech. All words are folded
(`phrases.fold`): lower case without accents. Each entry is a regular expression that begins where a word does;
`pattern` compiles those of one kind into one.
"""

from __future__ import annotations

import re
from functools import cache

NUMBER, DATE, TICKET = "factnumber", "factdate", "factticket"
"""What stands in a folded sentence for a fact that code filled in."""

STATUS_WORDS = frozenset(
    """
    warranty guarantee under valid covered coverage fully expired ended garantie gultig abgelaufen gwarancja gwarancje
    gwarancji wazna wygasla valable expire garantia valida caducado garanzia scaduta geldig verlopen expirou zaruka
    zaruku platna vyprsela
    """.split()  # noqa: SIM905
)
"""Words of a status, which may stand wherever their sentence agrees with the facts."""

_WORDS = {
    # What a sentence about the warranty speaks of.
    "warranty": (
        r"warrant|guarant|garant|gewahrleistung|gwaranc|rekojmi|zaruk|zaruc|garanzi|cover(?:s|ed|age)?\b"
        r"|protect|abgesichert|gedeckt|schutz\b|ochron|objet[aeiy]|couvert|cubiert|cobert|copert|gedekt"
        r"|dekking|kryt[iyao]|warran|entitled|valid|gultig|wazn[ay]\b|valable|vigente|en vigueur|in vigore"
        r"|em vigor|geldig|platn[aey]\b"
    ),
    # Parts of names and places, which say nothing about any warranty.
    "name": (
        r"warranty (?:service )?(?:team|card|department)|warranty service$|garantiekarte|garantieschein"
        r"|kart\w+ gwarancyjn\w+|carte de garantie|tarjeta de garantia|certificato di garanzia|garantiebewijs"
        r"|cartao de garantia|zarucni\w* list\w*|serial no\b"
    ),
    # The warranty holds: these words alone say so.
    "holds": (
        r"valid|cover(?:s|ed|age)?\b|entitled|active|in force|in effect|in place"
        r"|under (?:\w+ )?(?:warranty|guarantee)|within (?:\w+ )?(?:warranty|guarantee)|gultig|abgesichert"
        r"|gedeckt|aktiv|garantiefall|wazn[ay]\b|aktywn|objet[aeiy]|na gwarancji|valable|en vigueur"
        r"|sous garantie|couvert|vigente|en garantia|cubiert|in vigore|in garanzia|copert|attiv[ao]\b|geldig"
        r"|gedekt|actief|em vigor|na garantia|cobert|ativa\b|platn[aey]\b|v zaruce|kryt[iyao]|aktivni"
    ),
    # It has ended: these words alone say so.
    "ended": (
        r"expir|laps|abgelaufen|erlosch|wygas|echu|perime|caduc|vencid|scadut|decadut|verlopen|vervallen"
        r"|venceu|vyprse|propadl"
        r"|used up|nothing is left|hors (?:de )?garantie"
        r"|fuori garanzia|fuera de garantia|fora da garantia|buiten de garantie"
        r"|ausserhalb|po gwarancji|po zaruce"
    ),
    # It has ended: so these words say in a sentence about the warranty.
    "over": (
        r"end(?:s|ed|ing)?\b|is over|r[au]n(?:s|ning)? out|terminat|void|stop|gone|came to|vorbei|beendet"
        r"|endet|ausgelaufen|skoncz|minel|minal|uplyn|termine|finaliz|termino|afgelopen|terminou|skonci"
    ),
    # In a sentence about the warranty: it holds, will hold, or holds for something else as well.
    "goes_on": (
        r"still|continu|run(?:s|ning)?\b|lasts?\b(?! day)|hold|appl(?:y|ies)|extend|renew|prolong|honou?r"
        r"|good\b|fine|left\b|again|remain|be?steht|lauft|gilt|greift|verlanger|weiter|noch\b|trwa|obowiazuj"
        r"|przedluz|nadal|jeszcze|court|dure|encore|toujours|dura\b|sigue|ampli|vale|ancora|prorog|loopt|duurt"
        r"|geldt|nog\b|verleng|valt|trva|plati|stale|jeste|prodlouz"
    ),
    # In a sentence about the warranty: more than the one device, or more than the facts say.
    "scope": (
        r"other\b(?! words)|another|all\b|every|both|also (?:cover|protect|valid|appl|hold|extend|includ)|too\b|as well"
        r"|life|forever|accident|theft|extend|renew|prolong|further notice|battery|shipping|anyone|alle\b"
        r"|alles|auch|beide|leben|unfall|verlanger|wszystk|rowniez|takze|przedluz|tous|toute|aussi|todos|todas"
        r"|tambien|ampli|tutt[aei]|anche|prorog|ook\b|verleng|tambem|vsech|take\b|prodlouz"
    ),
    "not": (
        r"not\b|no\b|never|cannot|\w+n['’]t\b|without|neither|nor\b|hardly|kein|nicht|nie\b|niemals|ohne|brak"
        r"|bez\b|pas\b|ne\b|n['’]|jamais|sans|aucun|sin\b|nunca|non\b|senza|niet\b|geen|nooit|nao\b|sem\b|neni"
        r"|nema|nepla|netrva|neskonc|nevyprs|nepropadl|ya no|ja nao"
    ),
    "if": (
        r"if\b|unless|only|provided|would|could|may\b|might|should|when\b|once\b|as long|subject to|except"
        r"|had (?:it|expired|run)|by mistake|wenn|falls|nur\b|sofern|solange|wurde|konnte|jesli|jezeli|tylko|warunk"
        r"|gdyby|o ile"
        r"|si\b|seulement|sauf|uniquement|pourrait|serait|solo|siempre que|salvo|podria|soltanto|purche"
        r"|potrebbe|sarebbe|se (?:regist|ha)|als\b|alleen|indien|mits|zou\b|so vale|apenas|somente|caso\b"
        r"|desde que|se estiver|se for|jen\b|pokud|pouze|jestli"
    ),
    # It no longer holds: an honest negation where it has ended.
    "no_longer": (
        r"no longer|not \w+ any ?more|nicht mehr|kein\w* \w+ mehr|juz nie|n['’]est plus|ya no|non \w+ piu"
        r"|niet meer|geen \w+ meer|ja nao|uz ne\w*"
    ),
    # A sentence about the warranty that only speaks of looking it up.
    "looks_up": (
        r"check|look|verif|need|question|request|inquir|enquir|ask|about|regarding|pruf|brauch|frage|anfrage"
        r"|sprawdz|potrzeb|pytan|besoin|comprob|necesit|pregunta|controll|serve\b|domanda|controler|nodig"
        r"|vraag|precis|zkontrol|overi|potreb|dotaz|thank"
    ),
    # Until when: only a date from the facts may follow.
    "until": r"until|till|bis\b|do\b|jusqu|hasta|fino|tot\b|ate\b|through\b",
    "unknown": (
        r"unknown to|not in our|no record|we (?:could|can|did)(?: ?not|n['’]t) find|not (?:be )?found"
        r"|unbekannt|nicht gefunden|nicht in unser|nie znal|nie figur|nie ma w nasz|inconnu|ne figure"
        r"|introuvable|desconocid|no figura|no consta|sconosciut|non risulta|onbekend|niet gevonden|staat niet"
        r"|desconhecid|nao consta|nao encontr|neznam|neznat|nenasl|neni v nasi"
    ),
    "known": (
        r"in our (?:records|system|database)|registered|found\b|known to|is correct|gefunden|registriert"
        r"|znalezli|zarejestrow|trouve\b|enregistr|encontrado|encontram|registrad|trovato|registrat|gevonden"
        r"|geregistreerd|registad|nasli|registrov"
    ),
    # At the customer's own cost: an honest word about money.
    "own_cost": (
        r"(?:at )?your (?:own )?(?:cost|expense)|auf (?:ihre|eigene) kosten|na (?:panstwa|wlasny) koszt|a vos frais"
        r"|a su cargo|a sue spese|op (?:uw|eigen) kosten|por sua conta|na vase naklady"
    ),
    "repair": (
        r"repairs?\b|reparatur\b|napraw[aeyi]\b|reparation\b|reparacion\b|riparazione\b|reparatie\b|reparacao\b"
        r"|oprav[aueyi]\b"
    ),
}


def _compose() -> None:
    holding = f"{_WORDS['holds']}|{_WORDS['goes_on']}|{_WORDS['warranty']}"
    # "no longer under warranty" says that it has ended.
    _WORDS["holds_no_longer"] = rf"(?:{_WORDS['no_longer']})(?: \w+){{0,2}}? (?:{holding})\w*"
    _WORDS["until_date"] = rf"(?:{_WORDS['until']})\S*(?: \w+){{0,3}}? {DATE}"
    # "It ends on 2031-02-03" is no more than the date.
    _WORDS["ends_on_date"] = rf"(?:{_WORDS['over']}|expires|lauft \w+ ab|{_WORDS['ended']})\w*(?: \w+){{0,2}}? {DATE}"


_compose()


@cache
def pattern(kind: str) -> re.Pattern[str]:
    """The words of one kind. Compiled when it is needed: most runs check no free draft."""
    return re.compile(rf"\b(?:{_WORDS[kind]})")
