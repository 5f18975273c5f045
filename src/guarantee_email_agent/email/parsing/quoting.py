"""Label each line of a body: freshly written, quoted from an earlier mail, or signature. Nothing is ever deleted.

Line by line, in linear time: what spans lines reaches at most eight ahead or three back.

- Lines that start with ">" are quoted (RFC 3676 §4.5); what follows them is new again, for replies in between.
- An attribution ("On …, Jane wrote:", on up to four lines) is quoted. Where ">" lines follow, they end the quotation;
  where none do, the program marks nothing and everything to the end is quoted.
- After a divider ("-----Original Message-----", "Begin forwarded message:") or a block of header lines (From, Sent, To,
  Subject, as Outlook writes them) everything to the end is quoted.
- A signature starts at "-- " (RFC 3676 §4.3), also without the space, or at a program's own line ("Sent from my
  iPhone"), and ends at the next quotation. It needs something new above it: people also write below their phone's line.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter

from guarantee_email_agent.email.parsing.email import Span, SpanKind

# How mail programs mark an earlier mail or their own signature, in the languages of their users: lower case, as
# `normalize_text` leaves it. Sets and prefixes and no patterns, since a look-up costs less than a microsecond a line
# and nothing at start-up.


def _split_phrases(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


# How an attribution starts: "On Mon, 5 Jan 2026 at 10:00, …".
_ATTRIBUTION_OPENINGS = _split_phrases(
    "on |am |le |el |il |in data |op |em |den |dne |dnia |w dniu |på |in a message dated "
)
# Gmail starts the Slavic ones with the weekday: "pon., 5 sty 2026 o 10:00 …". First letters are enough.
_WEEKDAYS = _split_phrases(
    "mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so|pon|wt|śr|czw|pt|sob|niedz|po|út|st|čt|pá|ne"
)
# How it ends: "… Jane wrote:".
_ATTRIBUTION_VERBS = _split_phrases(
    "wrote|writes|schrieb|schreef|écrit|escribió|scritto|escreveu|skrev|kirjoitti|írta|yazdı|napsal|napsala|napsal(a)|"
    "napisał|napisała|napisał(a)|napisał(-a)|napisal|napisala|napisal(a)|pisze|pisał|pisała|pisał(a)|"
    "написал|написала|написал(а)|пишет|写道|寫道"
)
# Or, in some languages: "… schrieb Jane <jane@example.com>:".
_VERBS_BEFORE_NAME = _split_phrases(" schrieb | schreef | skrev | napisał | napisał(a) | wrote ")

# Between dashes: "-----Original Message-----".
_DIVIDERS = frozenset(
    _split_phrases(
        "original message|original appointment|forwarded message|forwarded mail|ursprüngliche nachricht|"
        "originalnachricht|original-nachricht|weitergeleitete nachricht|weitergeleitete mail|wiadomość oryginalna|"
        "oryginalna wiadomość|treść oryginalnej wiadomości|wiadomość przekazana|przekazana wiadomość|"
        "treść przekazanej wiadomości|message d'origine|message original|message transféré|mensaje original|"
        "mensaje reenviado|messaggio originale|messaggio inoltrato|oorspronkelijk bericht|origineel bericht|"
        "doorgestuurd bericht|mensagem original|mensagem encaminhada|ursprungligt meddelande|originalmeddelande|"
        "vidarebefordrat meddelande|oprindelig meddelelse|opprinnelig melding|původní zpráva|přeposlaná zpráva|"
        "исходное сообщение"
    )
)
# Apple Mail's, on a line of their own that ends in a colon.
_FORWARD_LINES = frozenset(
    _split_phrases(
        "begin forwarded message|anfang der weitergeleiteten nachricht|anfang der weitergeleiteten e-mail|"
        "début du message réexpédié|début du message transféré|inicio del mensaje reenviado|"
        "inizio messaggio inoltrato|begin doorgestuurd bericht|początek przekazywanej wiadomości|"
        "początek przekazanej wiadomości|início da mensagem encaminhada"
    )
)

# The header lines that Outlook, Apple Mail and others repeat above an earlier mail: label → what it stands for.
_HEADER_LABELS: dict[str, str] = {
    label: meaning
    for meaning, labels in {
        "from": "from|von|od|de|van|da|från|fra|expéditeur|remitente|absender|nadawca|mittente|afzender",
        "date": "date|sent|datum|gesendet|data|wysłano|envoyé|envoyé le|fecha|enviado|enviado el|inviato|verzonden|"
        "skickat|sendt|enviada em|enviada",
        "to": "to|an|do|à|para|a|aan|till|til|pour|cc|kopie|dw|copie|reply-to|antwort an",
        "subject": "subject|betreff|temat|objet|asunto|oggetto|onderwerp|ämne|emne|assunto|předmět",
    }.items()
    for label in _split_phrases(labels)
}

# How a line starts that a phone or program adds by itself.
_PROGRAM_SIGNATURES = _split_phrases(
    "sent from my|sent from a mobile|sent from mobile|sent from an android|sent from an iphone|sent from iphone|"
    "sent from ipad|sent from mail for|sent from outlook|sent from yahoo|sent from aol|sent from the all-new aol|"
    "sent from proton|sent from samsung|sent from gmail|sent from windows|sent from bluemail|sent from spark|"
    "sent via the samsung|sent via blackberry|sent with proton|sent with airmail|sent with spark|sent using outlook|"
    "get outlook for|von meinem|von meiner|diese nachricht wurde von meinem|gesendet von mei|gesendet von mail|"
    "gesendet von outlook|gesendet von yahoo|gesendet von gmx|gesendet mit der|gesendet mit proton|gesendet aus der|"
    "gesendet von der|holen sie sich outlook|outlook für android|outlook für ios|laden sie outlook|"
    "wysłane z|wysłano z|wysłane ze|wysłana z|wysłane przy użyciu|wysłane za pomocą|pobierz outlook|"
    "pobierz aplikację outlook|envoyé de mon|envoyé depuis mon|envoyé depuis ma|envoyé à partir de|envoyé depuis l'|"
    "envoyé avec proton|envoyé depuis outlook|envoyé depuis yahoo|télécharger outlook|obtenez outlook|"
    "enviado desde mi|enviado desde el|enviado desde outlook|enviado desde yahoo|enviado do meu|enviado do yahoo|"
    "obtener outlook|obter o outlook|inviato da|inviato dal mio|inviato con|ottieni outlook|verzonden vanaf|"
    "verzonden met|verzonden via|verstuurd vanaf|outlook voor|skickat från|sendt fra|odesláno z"
)
# Their first words, so that one look-up decides most lines.
_PROGRAM_SIGNATURE_WORDS = frozenset([signature.partition(" ")[0] for signature in _PROGRAM_SIGNATURES])

# As text and not compiled, here and below: few mails need them, and `re` keeps what it compiled.
_ADDRESS = r"[^\s@<>]@[^\s@<>]"
_ENDS_IN_ADDRESS = r"@[^\s@<>]+[>)\]]{1,3} ?:$"
_YEAR = r"(?<!\d)(?:19|20)\d\d"
_TIME = r"(?<!\d)\d{1,2} ?[:.h] ?\d\d(?!\d)"
_NUMBER = r"\d{4}"
_MAX_ATTRIBUTION_CHARS = 600
_ATTRIBUTION_LINES = 4
_HEADER_BLOCK_LINES = 8
_MAX_PROGRAM_SIGNATURE_CHARS = 100
_MAX_SIGNATURE_LINES = 12  # below a "--" without its space, which people also draw as a rule


def label_spans(text: str) -> tuple[Span, ...]:
    """The body as labelled spans of whole lines, in order; their texts joined are the body. Empty for an empty body."""
    if not text:
        return ()
    lines = text.split("\n")
    kinds = _label_lines(lines)
    if kinds.count("new") == len(kinds):  # almost every first mail
        return (Span("new", text),)
    ended = [*[f"{line}\n" for line in lines[:-1]], lines[-1]]
    runs = groupby(zip(kinds, ended, strict=True), key=itemgetter(0))
    spans = [Span(kind, "".join([line for _, line in run])) for kind, run in runs]
    # A last line that is empty is only the end of the line before it.
    return tuple([span for span in spans if span.text])


def _label_lines(lines: list[str]) -> list[SpanKind]:
    kinds: list[SpanKind] = []
    current: SpanKind = "new"
    first_new: int | None = None
    for number, line in enumerate(lines):
        if stripped := line.strip():
            if quotation := _find_quotation(lines, number, stripped):
                first, to_the_end = quotation
                current = "quoted"
                kinds[first:] = [current] * (number - first)
                if to_the_end:
                    return kinds + [current] * (len(lines) - number)
                if first_new is not None and first_new >= first:
                    first_new = None
            elif first_new is not None and _starts_signature(lines, number, stripped):
                current = "signature"
            elif current == "quoted":
                current = "new"
            if first_new is None and current == "new":
                first_new = number
        kinds.append(current)
    return kinds


def _find_quotation(lines: list[str], number: int, stripped: str) -> tuple[int, bool] | None:
    """The first line (up to three back) of a quotation that this line marks, and whether it goes to the end."""
    first, last = stripped[0], stripped[-1]
    if first == ">":
        return number, False
    if first in "-_*" and last in "-_*":
        if _is_divider(stripped):
            return number, True
        if first == "_" and not stripped.strip("_"):
            following = _next_nonempty_line(lines, number + 1)
            return (number, True) if following is not None and _is_header_block(lines, following) else None
    if last == ":":
        if stripped.rstrip(" :").lower() in _FORWARD_LINES:
            return number, True
        return _find_attribution(lines, number, stripped)
    is_start = ":" in stripped and (_is_header_block(lines, number) or _is_attribution_with_text(stripped))
    return (number, True) if is_start else None


def _is_divider(stripped: str) -> bool:
    words = stripped.strip("-_* ")
    return len(words) < 50 and words.lower() in _DIVIDERS and stripped[1] in "-_*" and stripped[-2] in "-_*"


def _find_attribution(lines: list[str], number: int, stripped: str) -> tuple[int, bool] | None:
    """An attribution that ends in this line: from which line, and whether nothing marks the quotation after it."""
    following = _next_nonempty_line(lines, number + 1)
    is_marked = following is not None and lines[following].lstrip().startswith(">")
    joined, fallback = stripped.lower(), None
    for first in range(number, max(number - _ATTRIBUTION_LINES, -1), -1):
        if first < number:
            previous = lines[first].strip()
            if not previous or previous[0] == ">" or previous[-1] == ":":
                break
            joined = f"{previous.lower()} {joined}"
        if len(joined) > _MAX_ATTRIBUTION_CHARS:
            break
        has_address = "@" in joined and re.search(_ADDRESS, joined) is not None
        if joined.rstrip(" :").endswith(_ATTRIBUTION_VERBS):
            is_sure = has_address or is_marked or bool(re.search(_YEAR, joined) and re.search(_TIME, joined))
        elif any(verb in joined for verb in _VERBS_BEFORE_NAME):
            is_sure = has_address or is_marked
        else:  # a language we do not know: date, name, <address>:
            is_sure = has_address and bool(re.search(_ENDS_IN_ADDRESS, joined) and re.search(_YEAR, joined))
        if not is_sure:
            continue
        if _opens_attribution(joined):
            return first, not is_marked
        if fallback is None and (has_address or (is_marked and re.search(_TIME, joined))):
            fallback = first
    return None if fallback is None else (fallback, not is_marked)


def _opens_attribution(folded: str) -> bool:
    word = folded.partition(" ")[0]
    is_weekday = word.endswith(",") and len(word) <= 14 and word.startswith(_WEEKDAYS)
    return is_weekday or folded.startswith(_ATTRIBUTION_OPENINGS)


def _is_attribution_with_text(stripped: str) -> bool:
    """Yahoo puts the earlier mail's text on the attribution's own line."""
    if "@" not in stripped or not _opens_attribution(start := stripped[:_MAX_ATTRIBUTION_CHARS].lower()):
        return False
    ends = [end for verb in _ATTRIBUTION_VERBS if (end := start.find(f" {verb}:")) > 0]
    return bool(ends) and re.search(_ADDRESS, start[: min(ends)]) is not None


def _is_header_block(lines: list[str], number: int) -> bool:
    """Whether header lines start here: who it is from, then the date and at least one of recipient and subject."""
    if _header_kind(lines[number]) != "from":
        return False
    kinds = {_header_kind(line) for line in lines[number + 1 : number + _HEADER_BLOCK_LINES]}
    return "date" in kinds and ("to" in kinds or "subject" in kinds)


def _header_kind(line: str) -> str | None:
    label, colon, _ = line[:40].partition(":")
    return _HEADER_LABELS.get(label.strip(" \t*").lower()) if colon else None


def _starts_signature(lines: list[str], number: int, stripped: str) -> bool:
    if stripped in ("--", "\u2014"):
        return lines[number] == "-- " or _is_short_to_the_end(lines, number + 1)
    if len(stripped) > _MAX_PROGRAM_SIGNATURE_CHARS:
        return False
    folded = stripped.lower()
    if folded.partition(" ")[0] not in _PROGRAM_SIGNATURE_WORDS or not folded.startswith(_PROGRAM_SIGNATURES):
        return False
    if folded.startswith("von mein"):
        return folded.rstrip(".").endswith("gesendet")
    return re.search(_NUMBER, folded) is None  # what could hold a serial number is no boilerplate


def _is_short_to_the_end(lines: list[str], number: int) -> bool:
    """Whether at most a signature's worth of lines follows, up to the end or to quoted lines."""
    count = 0
    for line in lines[number : number + 4 * _MAX_SIGNATURE_LINES]:
        stripped = line.strip()
        if stripped.startswith(">"):
            return True
        count += bool(stripped)
        if count > _MAX_SIGNATURE_LINES:
            return False
    return True


def _next_nonempty_line(lines: list[str], number: int) -> int | None:
    """The next line that is not empty, at most two empty ones further."""
    return next((index for index in range(number, min(number + 3, len(lines))) if lines[index].strip()), None)
