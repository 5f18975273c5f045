"""The words by which mail programs, in the languages of their users, mark an earlier mail or their own signature.

Lower case, as `characters` cleans text: plain apostrophes, hyphens and spaces. Sets and prefixes and no patterns,
since looking up costs less than a microsecond a line and nothing at start-up.
"""

from __future__ import annotations


def _phrases(text: str) -> tuple[str, ...]:
    return tuple([phrase.strip() for phrase in text.split("|")])


# How an attribution starts: "On Mon, 5 Jan 2026 at 10:00, …".
ATTRIBUTION_OPENINGS = tuple(
    [f"{opening} " for opening in _phrases("on|am|le|el|il|in data|op|em|den|dne|dnia|w dniu|på|in a message dated")]
)
# Gmail starts the Slavic ones with the weekday: "pon., 5 sty 2026 o 10:00 …". First letters are enough.
WEEKDAYS = _phrases("mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so|pon|wt|śr|czw|pt|sob|niedz|po|út|st|čt|pá|ne")
# How it ends: "… Jane wrote:".
ATTRIBUTION_VERBS = _phrases(
    "wrote|writes|schrieb|schreef|écrit|escribió|scritto|escreveu|skrev|kirjoitti|írta|yazdı|napsal|napsala|napsal(a)|"
    "napisał|napisała|napisał(a)|napisał(-a)|napisal|napisala|napisal(a)|pisze|pisał|pisała|pisał(a)|"
    "написал|написала|написал(а)|пишет|写道|寫道"
)
# Or, in some languages: "… schrieb Jane <jane@example.com>:".
VERBS_BEFORE_NAME = tuple([f" {verb} " for verb in _phrases("schrieb|schreef|skrev|napisał|napisał(a)|wrote")])

# Between dashes: "-----Original Message-----".
DIVIDERS = frozenset(
    _phrases(
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
FORWARD_LINES = frozenset(
    _phrases(
        "begin forwarded message|anfang der weitergeleiteten nachricht|anfang der weitergeleiteten e-mail|"
        "début du message réexpédié|début du message transféré|inicio del mensaje reenviado|"
        "inizio messaggio inoltrato|begin doorgestuurd bericht|początek przekazywanej wiadomości|"
        "początek przekazanej wiadomości|início da mensagem encaminhada"
    )
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
    for label in _phrases(labels)
}

# How a line starts that a phone or program adds by itself.
PROGRAM_SIGNATURES = _phrases(
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
# Their first words, so that one look tells most lines apart.
PROGRAM_SIGNATURE_WORDS = frozenset([signature.partition(" ")[0] for signature in PROGRAM_SIGNATURES])
