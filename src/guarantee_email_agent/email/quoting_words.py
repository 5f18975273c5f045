"""The words by which mail programs, in the languages of their users, mark an earlier mail or their own signature.

Compared with text that `characters` cleaned, so with plain apostrophes, hyphens and spaces, and without regard to case.
"""

from __future__ import annotations

import re

# How an attribution starts: "On Mon, 5 Jan 2026 at 10:00, …"; Gmail starts the Slavic ones with the weekday.
ATTRIBUTION_OPENING = re.compile(
    r"(?:on|am|le|el|il(?: giorno)?|in data|op|em|den|dne|dnia|w dniu|på|in a message dated|"
    r"(?:mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so|pon|wt|śr|czw|pt|sob|niedz|út|st|čt|pá|ne)"
    r"[a-zäöüśćńóý]{0,9}\.?,) ",
    re.IGNORECASE,
)
# How it ends: "… Jane wrote:".
ATTRIBUTION_VERB = re.compile(
    r"(?<!\w)(?:wrote|writes|schrieb|schreef|écrit|escribió|scritto|escreveu|skrev|kirjoitti|írta|yazdı|"
    r"napsal(?:\(a\)|a)?|napisa[łl](?:\(-?a\)|a)?|pisze|pisa[łl](?:\(a\)|a)?|написал(?:\(а\)|а)?|пишет|写道|寫道) ?:",
    re.IGNORECASE,
)
# Or, in some languages: "… schrieb Jane <jane@example.com>:".
VERB_BEFORE_NAME = re.compile(r"(?<!\w)(?:schrieb|schreef|skrev|napisa[łl](?:\(a\)|a)?|wrote)(?!\w)", re.IGNORECASE)

# Between dashes: "-----Original Message-----".
DIVIDER = re.compile(
    r"[-_*]{2,} ?(?:original message|original appointment|forwarded message|forwarded mail|"
    r"ursprüngliche nachricht|originalnachricht|original-nachricht|weitergeleitete nachricht|weitergeleitete mail|"
    r"wiadomość oryginalna|oryginalna wiadomość|treść oryginalnej wiadomości|"
    r"wiadomość przekazana|przekazana wiadomość|treść przekazanej wiadomości|"
    r"message d'origine|message original|message transféré|mensaje original|mensaje reenviado|"
    r"messaggio originale|messaggio inoltrato|oorspronkelijk bericht|origineel bericht|doorgestuurd bericht|"
    r"mensagem original|mensagem encaminhada|ursprungligt meddelande|originalmeddelande|vidarebefordrat meddelande|"
    r"oprindelig meddelelse|opprinnelig melding|původní zpráva|přeposlaná zpráva|исходное сообщение) ?[-_*]{2,}$",
    re.IGNORECASE,
)
# Apple Mail, on a line of its own.
FORWARD_LINE = re.compile(
    r"(?:begin forwarded message|anfang der weitergeleiteten (?:nachricht|e-mail)|"
    r"début du message (?:réexpédié|transféré)|"
    r"inicio del mensaje reenviado|inizio messaggio inoltrato|begin doorgestuurd bericht|"
    r"początek przekazywanej wiadomości|início da mensagem encaminhada) ?:$",
    re.IGNORECASE,
)

# The header lines that Outlook, Apple Mail and others repeat above an earlier mail: label → what it stands for.
HEADER_LABELS: dict[str, str] = {
    label: meaning
    for meaning, labels in {
        "from": "from|von|od|de|van|da|från|fra|expéditeur|remitente|absender|nadawca|mittente|afzender",
        "date": "date|sent|datum|gesendet|data|wysłano|envoyé|envoyé le|fecha|enviado|enviado el|inviato|verzonden|"
        "skickat|sendt|enviada em|enviada",
        "to": "to|an|do|à|para|a|aan|till|til|pour|cc|kopie|dw|copie|reply-to|antwort an",
        "subject": "subject|betreff|temat|objet|asunto|oggetto|onderwerp|ämne|emne|assunto|předmět",
    }.items()
    for label in labels.split("|")
}

# A line that a phone or program adds by itself.
PROGRAM_SIGNATURE = re.compile(
    r"sent (?:from|via|with|using) (?:my |(?:an? |the )?(?:mobile|smartphone|phone|tablet|iphone|ipad|android|samsung|"
    r"galaxy|huawei|xiaomi|blackberry|windows|mail for|outlook|yahoo|all-new aol|aol|proton|tuta|gmail|gmx|fastmail|"
    r"icloud|thunderbird|spark|airmail|bluemail|aqua mail|mailbird|superhuman))|"
    r"get outlook for |von meinem .{1,60} gesendet|diese nachricht wurde von meinem .{1,60} gesendet|"
    r"gesendet (?:von|mit|aus) (?:meine|mail|outlook|yahoo|gmx|web\.de|proton|samsung|der |dem )|"
    r"holen sie sich outlook für |outlook für (?:android|ios) |laden sie outlook für |"
    r"wysłan[eoay] (?:z|ze|przy użyciu|za pomocą) |pobierz (?:aplikację )?outlook |"
    r"envoyé (?:de|depuis|à partir de|avec) (?:mon|ma|l'|la |outlook|yahoo|proton|mail)|"
    r"télécharger outlook |obtenez outlook |"
    r"enviado (?:desde|do|de|con) (?:mi|meu|el|outlook|yahoo|proton|mail)|obtener outlook |obter o outlook |"
    r"inviato (?:da|dal|con) |ottieni outlook |verzonden (?:vanaf|met|via) |verstuurd vanaf |outlook voor |"
    r"skickat från |sendt fra |odesláno z ",
    re.IGNORECASE,
)
# Their first letters, so that one look tells most lines apart.
PROGRAM_SIGNATURE_STARTS = frozenset("sgvdholwpetiSGVDHOLWPETI")
