"""Subjects and texts that only machines write: autoresponders, bounces, and ticket systems that set no header.

A person must never be taken for a machine, since nobody would read that mail; a machine that passes for a person gets
an answer or two until the limits on replies stop it. So

- a subject counts in its whole form: "Ticket #5 received", or "Ticket received: Re: your question" with the subject
  that the machine answers, but neither "Re: Ticket #5 received" nor "Ticket received, and nobody called";
- a text counts where it begins like a machine's, after a greeting; says in a sentence of its own that nobody wrote it,
  or acknowledges and promises an answer; and holds no word that only people write ("I", "mein", "but");
- a vacation text, which does say "I", counts where every sentence of it is about the absence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from guarantee_email_agent.email.automatic_phrases import ALL_PHRASES, ENGLISH, Phrases
from guarantee_email_agent.email.parsing.email import REPLY_OR_FORWARD_PREFIXES


def _by_word(words: Callable[[Phrases], str]) -> dict[str, tuple[Phrases, ...]]:
    found: dict[str, tuple[Phrases, ...]] = {}
    for phrases in ALL_PHRASES:
        for word in words(phrases).split():
            found[word] = (*found.get(word, ()), phrases)
    return found


_BY_SUBJECT_WORD = _by_word(lambda phrases: phrases.subject_words)
_BY_SENTENCE_WORD = _by_word(lambda phrases: f"{phrases.subject_words} {phrases.sentence_words}")

_OPENING = ("[", "(", "【", "<", "*")
_TAG = r"[\[(【<*]{1,3} ?([^\])】>*]{1,80})[\])】>*]{1,3}\s*"
_BOUNCES = frozenset({"failure notice", "undelivered mail returned to sender", "mail delivery failure"}) | {
    "returned mail: see transcript for details",
    "mail delivery failed: returning message to sender",
}
_NEEDS_COLON = r"un(?:deliver|zustell)\w+|delivery failure|mail delivery \w+|non remis|onbestelbaar|niedostarczalne"
# A person's words, as they stand in no template: "I", "my", "but", and the machine as something to speak about.
_PERSON = (
    r"\b(?:i|i'm|i've|i'd|i'll|me|mine|my(?! (?:account|ticket|request|case|portal|profile|support|area))|but|still|"
    r"nobody|why|again|your (?:auto\w+|robot|bot|machine)|(?:not|n't) help\w*|no help|useless|ich|mir|mich|"
    r"mein(?:e[mnrs]?)?(?! (?:konto|anfragen|bereich|tickets))|aber|immer noch|niemand|warum|hilft|nutzlos|j'\w+|moi|"
    r"mais|toujours|pourquoi|n'aide|inutile|pero|todavía|nadie|no (?:ayuda|sirve)|inútil|ninguém|não ajuda|nessuno|"
    r"perché|non (?:aiuta|serve)|niemand|waarom|helpt niet|jag|jeg|inte hjälp\w*|hjälper inte|hjelper ikke|"
    r"hjælper ikke|minun|mutta|mój|moja|moją|mojej|moje(?! konto| zgłoszenia)|mnie|nadal|nikt|dlaczego|nie pomaga|"
    r"můj|moji|mně|nikdo|nepomáhá|nepomáha|я|мой|моя|мою|мне|меня|но|никто|почему|не помог\w+|мій|мене|але|benim)\b|"
    r"我(?![们們])|私|僕|저는|제가|没有?用|没有帮助|役に立"
)
# What a customer writes about, and no machine but in somebody's words.
_CUSTOMER = (
    r"serial|seriennummer|numer(?:u)? seryjn|numéro de série|número de s[ée]rie|matricola|serienummer|sarjanumero|"
    r"sériové|серийн|серійн|序列号|シリアル|"
    r"please (?:advise|respond|re-?open|help|confirm|close|repair|fix|replace|send|call me)|by mistake|"
    r"bitte (?:melden sie|prüfen|helfen|reparieren|bestätigen|öffnen)|leak|broken|defective|not work|stopped|kaputt|"
    r"defekt|undicht|funktioniert nicht|cassé|défectueu|en panne|fuit|no funciona|averiad|estropead|non funziona|"
    r"rott[ao]|perde acqua|não funciona|avariad|kapot|lekt|trasig|läcker|lekker|ødelagt|rikki|vuotaa|cieknie|zepsut|"
    r"nie działa|nefunguj|teče|не работает|сломал|протекает|не працює|漏水|坏|壞|故障|壊れ|水漏れ|고장"
)
# A machine's words with a person's among them: "and nobody reads this mailbox".
_UNREAD = (
    r"(?:[,;]?\s+(?:and|und|et|y|i|e|en)\s+)?\b(?:(?:nobody|no[ -]one) (?:reads|monitors|checks|answers) (?:this|the)|"
    r"niemand (?:liest|überwacht|prüft|leest|bekijkt) (?:diese[ns]?|dieses|dit|deze)|personne ne (?:lit|consulte|"
    r"surveille) cet(?:te)?|nadie (?:lee|revisa|atiende) est[ea]|ninguém lê est[ea]|nessuno legge quest[ao]|nikt nie "
    r"(?:czyta|sprawdza|odczytuje) (?:tej|tego)) (?:mailbox|inbox|e-?mail address|address|account|(?:e-?mail-?)?"
    r"(?:postfach|adresse)|boîte(?: mail| aux lettres)?|buz[óo]n|correo|dirección|caixa(?: de correio)?|casella|"
    r"skrzynki|adresu|postbus)\b"
)
# In front of what a text says first.
_GREETING = (
    r"(?:(?:hello|hi|hey|dear|good (?:day|morning|afternoon|evening)|hallo|guten \w+|sehr geehrte\w*|liebe[rs]?|"
    r"bonjour|bonsoir|cher|chère|ch[eè]res?|madame|monsieur|hola|estimad\w+|buen[oa]s? \w+|buongiorno|gentile|salve|"
    r"spettabile|ciao|olá|prezad\w+|car[oa]|beste|geachte|goedendag|hej|hei|dzień dobry|szanown\w+|witaj\w*|"
    r"dobrý den|dobrý deň|vážen\w+|здравствуйте|уважаем\w+|добрый \w+|шановн\w+|вітаємо|kedves|tisztelt|bună ziua|"
    r"stimat\w+|merhaba|sayın|γεια σας|αγαπητ\w+)\b[^,.!:;\n?]{0,60}(?:[,.!:;]+|$)|[^\s,]{1,20} ?(?:様|さま)|"
    r"(?:mevrouw|meneer|您好|你好|尊敬的[^,:!]{0,20}|こんにちは|안녕하세요|고객님)[^,.!:\n]{0,10}[,.!:。]*)\s*"
)
_THANKS = (
    r"(?:many thanks|thank(?:s| you)|(?:vielen |herzlichen |besten )?dank|danke|merci|(?:muchas )?gracias|grazie|"
    r"(?:muito )?obrigad[oa]|agradecemos|(?:hartelijk )?(?:be)?dankt?|dank u|tack|takk?|tusind tak|tusen takk|kiitos|"
    r"dziękujemy|děkujeme|ďakujeme|спасибо|благодарим|дякуємо|köszönjük|mulțumim|teşekkür|ευχαριστούμε|感谢|感謝|谢谢|謝謝|"
    r"ありがとう|この度は|감사)"
)
# A vacation text goes on about these, and about nothing that is broken.
_ABSENCE_WORDS = (
    r"e-?mail|mail|messag|nachricht|reply|respon|answer|return|back|access|urgent|contact|colleague|office|leave|"
    r"until|from \d|thank|regards|antwort|dringend|wende|kolleg|rückkehr|zurück|erreich|weitergeleitet|vertret|grüße|"
    r"bis |ab dem|réponse|répond|urgence|retour|contact|cordial|respuesta|urgen|regres|vuelta|correo|saludos|"
    r"risposta|rispond|rientr|urgenz|saluti|respost|retorn|urgênc|atenciosamente|bericht|terug|dringende|groet|svar|"
    r"återkom|tilbake|tilbage|brådska|haster|hälsning|hilsen|vastaa|palaan|kiire|terveisin|odpow|odpis|powr|wróc|"
    r"pilny|kontakt|pozdrow|odpov|vrát|naléhav|pozdrav|ответ|вернусь|срочн|уважением|відпов|联系|回复|返信|戻"
)
_FAULTS = (
    r"\b(?:my|mein\w*|mon|ma|mes|mis?|mi[oa]|meu|minha|mijn|min|mitt|mina|moj\w*|mój|můj|мо[йяюе]) (?!e-?mail|mail|"
    r"inbox|mailbox|return|absen|collea|kolleg|team|office|leave|holiday|vacation|behalf|manager|deputy|assistant|"
    r"mobile|phone|desk|message|rückkehr|vertret|abwesen|urlaub|büro|postfach|nachricht|retour|coll[eè]g|congé|"
    r"courriel|bureau|regreso|ausen|ausên|compañer|correo|vuelta|rientro|assenza|posta|colega|retorno|afwezig|terugk|"
    r"vakantie|frånvaro|semester|fravær|ferie|nieobecn|powr|urlop|współprac|nepřítomn|návrat|dovolen|отсутств|"
    r"возвращ|отпуск|коллег|\d)|\b(?:but|because|aber|weil|mais|pero|ma però|mas|maar|men|ale|но)\b|"
    r"\b(?:sn|s/n)\W*\d{4,}|techni[ck]|\btermin\b|appointment|\bvisit|rendez-vous|\bcita\b|appuntamento|afspraak|"
    r"wizyt|termín|\d[\w-]{4,}[a-z]|[a-z]{1,4}-?\d{4,}|warrant|guarant|garant|gwaranc|zárul|záruk|гарант|保修|保証|"
    r"serial|seriennummer|leak|broken|defe[ck]t|kaputt|repar|repair|fault|doesn't work|not work|won't|washer|washing|"
    r"drill|fridge|dryer|gerät|appareil|aparat"
)
_HOW_LONG = (
    r"\s*(?:$|[,.:;!-]|\d|(?:until|till|from|to|through|with|without|today|this|next|on|and (?:will|have|back|return|"
    r"return)|bis|vom|ab|und ab|seit|heute|mit|jusqu|du \d|à partir|avec|et je|hasta|desde|del?l? \d|con|y (?:no|"
    r"vol)|fino|dal|e (?:rientr|non|torn)|até|de \d|com|tot|van|vanaf|t/m|en (?:ben|terug|weer)|från|och|fra|til|og|"
    r"med|asti|saakka|do|od|i (?:wr|nie)|a (?:vrát|od)|до|с|з|и)\b)"
)
_ORNAMENTS = "*_=#-~|<> "
_GREETING_CHARS = 160
_READ_CHARS = 6_000  # of a text; what a machine says of itself stands in its first or last lines
_MAX_SENTENCES = 40
_MAX_SENTENCE_CHARS = 300
_MIN_WRAPPED_CHARS = 40  # a line that long goes on in the next, unless a sentence ends with it
_MAX_ABSENCE_SENTENCES = 15
_MAX_NAME_CHARS = 40


def is_automatic_subject(subject: str, text: str = "") -> bool:
    """Whether the whole subject is one of a machine's, and the text does not speak as a customer all the same.

    subject: one line, as `Email.subject`. text: what was newly written below it.
    """
    line = subject.lower()
    if line in _BOUNCES:
        return True
    if line.startswith(REPLY_OR_FORWARD_PREFIXES):
        return False
    forms = [line]
    if line[:1] in _OPENING and (tag := re.match(_TAG, line)):
        name, rest = tag[1].strip(), line[tag.end() :]
        # "[Ticket 5] received", "[Request received] your subject", "[Acme] Request received"
        forms += [f"{name} {rest}".rstrip(), f"{name}: {rest}", rest]
    return any(_is_automatic_form(form, text) for form in forms)


def _is_automatic_form(form: str, text: str) -> bool:
    languages = _languages_of(form, _BY_SUBJECT_WORD)
    if not languages:  # almost every mail
        return form.endswith(("is out of the office", "is out of office")) and not _asks(text)
    if re.search(_PERSON, form.partition(":")[0].partition(" - ")[0]):
        return any(_is_away(phrases, form) and not _speaks(form.partition(" ")[2]) for phrases in languages)
    for phrases in languages:
        if match := phrases.automatic_subject.match(form):
            rest = form[match.end() :].strip()
            if rest.startswith(":"):
                return True
            if not re.match(_NEEDS_COLON, form) and _is_echo(rest):
                return not _asks(text)
        if (match := phrases.acknowledgement.match(form)) and _is_echo(form[match.end() :].strip()):
            return not _asks(text) and not re.search(_PERSON, text[:_READ_CHARS].lower())
        if _is_away(phrases, form):
            return not _asks(text)
    return False


def _asks(text: str) -> bool:
    return re.search(_CUSTOMER, text[:_READ_CHARS].lower()) is not None


def _is_echo(rest: str) -> bool:
    """Whether nothing follows a machine's phrase, or only the subject that it answers."""
    if not rest.strip(".! "):
        return True
    subject = rest.lstrip(":-|[( ")
    if subject.startswith(REPLY_OR_FORWARD_PREFIXES):
        return True
    return subject != rest and not _speaks(subject)


def _speaks(text: str) -> bool:
    return "?" in text or re.search(_PERSON, text) is not None


def is_automatic_text(text: str) -> bool:
    """Whether a machine wrote the text, which is the new one of a mail, without quotations. Linear in its length."""
    beginning = _strip_greetings(" ".join(text[:_GREETING_CHARS].lower().split()))
    languages = _languages_of(beginning) or ((ENGLISH,) if "out of " in beginning else ())
    if not languages:  # almost every mail
        return False
    head = re.sub(_UNREAD, "", text[:_READ_CHARS].lower())
    if not any(stem in head for phrases in languages for stem in phrases.all_stems):
        return False
    sentences = list(islice(_sentences(head), _MAX_SENTENCES))
    # What thanks for a message, as both do, says nothing yet.
    start = next((number for number, sentence in enumerate(sentences[:3]) if not re.match(_THANKS, sentence)), 0)
    return _is_absence(sentences, start) or _is_acknowledgement(sentences, start, head)


def _is_acknowledgement(sentences: list[str], start: int, head: str) -> bool:
    if re.search(_PERSON, head) or re.search(_CUSTOMER, head):  # before the patterns of a language are compiled
        return False
    for sentence in sentences[: start + 1]:
        for phrases in _languages_of(sentence):
            if (phrases.acknowledgement.match(sentence) or _declares(phrases, sentence)) and (
                _points(phrases, sentences) >= 2 and not phrases.person_word.search(head)
            ):
                return True
    return False


def _languages_of(sentence: str, by_word: Mapping[str, tuple[Phrases, ...]] = _BY_SENTENCE_WORD) -> tuple[Phrases, ...]:
    word = sentence.partition(" ")[0].strip(":[]()#.,!*-")
    return by_word.get(word) or by_word.get(word[:2], ())


def _strip_greetings(line: str) -> str:
    rest = line.strip(_ORNAMENTS)
    while rest and (greeting := re.match(_GREETING, rest)) and greeting.end():
        rest = rest[greeting.end() :]
    return rest


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a text without greetings. Lines of one sentence, as programs wrap them, are put together."""
    for line in _unwrapped_lines(text):
        rest = _strip_greetings(" ".join(line.split()))
        for sentence in re.split(r"(?<=[.!?。!?])\s+|(?<=[。])", rest):
            if stripped := sentence.strip("*_=#-~|()[], "):
                yield stripped[:_MAX_SENTENCE_CHARS]


def _unwrapped_lines(text: str) -> Iterator[str]:
    pending = ""
    for line in text.split("\n"):
        goes_on = len(line) >= _MIN_WRAPPED_CHARS and not line.rstrip().endswith((".", "!", "?", ":"))
        pending = f"{pending} {line}" if pending else line
        if not goes_on or len(pending) > _MAX_SENTENCE_CHARS:
            yield pending
            pending = ""
    yield pending


def _declares(phrases: Phrases, sentence: str) -> bool:
    return not sentence.endswith("?") and phrases.declaration.fullmatch(sentence.rstrip(".!。 ")) is not None


def _points(phrases: Phrases, sentences: list[str]) -> int:
    """Two for "this is an automated message"; one for an acknowledgement, one for promises and ticket numbers."""
    if any(_declares(phrases, sentence) for sentence in sentences):
        return 2
    acknowledgements = sum(phrases.acknowledgement.match(sentence) is not None for sentence in sentences)
    return acknowledgements + any(phrases.promise.search(sentence) for sentence in sentences)


def _is_absence(sentences: list[str], start: int) -> bool:
    """Whether somebody says that they are away, and nothing else: no question, no device, nothing that is theirs."""
    if not 0 < len(sentences) <= _MAX_ABSENCE_SENTENCES:
        return False
    languages = _languages_of(sentences[start]) or (ENGLISH,)  # "Jane Doe is out of the office"
    if not any(_is_away(phrases, sentences[start]) for phrases in languages):
        return False
    return all(
        "?" not in sentence
        and not re.search(_FAULTS, sentence)
        and not re.search(_CUSTOMER, sentence)
        # A short one may be a name or a phone number.
        and (number == start or len(sentence) <= _MAX_NAME_CHARS or re.search(_ABSENCE_WORDS, sentence) is not None)
        for number, sentence in enumerate(sentences)
    )


def _is_away(phrases: Phrases, sentence: str) -> bool:
    match = phrases.absence.match(sentence)
    return match is not None and re.match(_HOW_LONG, sentence[match.end() :]) is not None
