"""Names of people in a mail, by the places where people write them; no list of names, and no guess at running text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

from guarantee_email_agent.email.parsing.email import Email

_WORD: Final = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
_NAME: Final = r"(?-i:[A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĘĚĞĽŁŃŇŐŘŚŞŠŤŮŰŹŻŽ])[\w'’-]{0,30}"
_FULL_NAME: Final = rf"{_NAME}\.?(?:[ \t]+{_NAME}\.?){{0,3}}"

_BEFORE_ADDRESS: Final = re.compile(
    rf"[\"']?({_NAME}(?:,?[ \t]+{_NAME}\.?){{0,3}})[\"']?[ \t]*[<(\[][^<>()\[\]\s]{{1,64}}@"
)
_TITLE: Final = re.compile(
    r"(?i:\b(?:mrs?|ms|miss|dr|prof|herrn?|hrn?|frau|fr(?=\.)|familie|fam|pan|pani|pana|panu|panem|panią|państwo|monsieur|madame|"
    r"mme|mlle|m(?=\.)|señora?|sra?|srta|signora?|sig(?:\.?(?:ra|na))?|dott(?:\.?ssa)?|mevrouw|meneer|mevr|dhr))"
    r"\b\.?(?:[ \t]+(?i:dr|prof|med|dipl|ing|rer|nat|phil|jur|mgr|inż)\b\.?){0,4}"
    rf"[ \t]+({_FULL_NAME})"
)
_INTRODUCTION: Final = re.compile(
    r"(?i:\b(?:my name is|my name's|i am|i'm|this is|mein name ist|ich hei(?:ß|ss)e|ich bin|nazywam się|mam na imię|"
    r"je m['’]appelle|mon nom est|je soussignée?|me llamo|mi nombre es|soy|mi chiamo|mijn naam is|ik ben|is called|"
    r"hei(?:ß|ss)t|nazywa się|s['’]appelle|se llama|si chiama|z\.[ ]?hd\.|c/o|attn\.?:?|on behalf of|"
    r"in the name of|im namen von|na nazwisko|w imieniu|au nom de|a nombre de))[ \t]+"
    rf"({_FULL_NAME})"
)
_SALUTATION: Final = re.compile(
    r"(?im)^[ \t>]*(?:hi|hello|hey|dear|good (?:morning|afternoon|evening)|hallo|liebe[rs]?|moin|guten (?:tag|morgen)|"
    r"cześć|drog[ia]|witaj|dzień dobry|bonjour|cher|chère|hola|buen[oa]s (?:días|tardes|noches)|estimad[oa]|ciao|"
    r"buongiorno|gentile|beste)"
    rf"[ \t]*,?[ \t]+({_FULL_NAME})[ \t]*[,!.:]?[ \t]*$"
)
_RELATION: Final = re.compile(
    r"(?i:\b(?:wife|husband|son|daughter|mother|father|mum|dad|brother|sister|aunt|uncle|partner|neighbou?r|colleague|friend|"
    r"landlord|landlady|tenant|holder|ehemann|mann|ehefrau|sohn|tochter|mutter|vater|bruder|schwester|tante|onkel|"
    r"(?:nachbar|kolleg|freund|mieter|vermieter|mandant|inhaber|kontoinhaber)(?:in|e|en)?|żon[aąęy]|mąż|męża|syn|"
    r"córk[aąęi]|brat|siostra|sąsiad(?:ka)?|właściciel(?:ka)?|femme|épouse|mari|fils|fille|voisine?|frère|sœur|"
    r"titulaire|mujer|esposa|marido|esposo|hij[oa]|herman[oa]|vecin[oa]|titular|moglie|marito|figli[oa]|fratello|"
    rf"sorella|vrouw|zoon|dochter))\b[ \t]*,?[ \t]+({_FULL_NAME})"
)
_SIGNED_FOR: Final = re.compile(
    r"(?im)^[ \t>]*(?:i\.[ ]?[av]\.|ppa\.?|p\.[ ]?p\.|gez\.|gezeichnet|fdo\.?|firmado(?: por)?|signed(?: by)?|"
    rf"podpisano|signé)[ \t]*:?[ \t]*({_FULL_NAME})"
)
_QUOTED_AUTHOR: Final = re.compile(
    rf"({_FULL_NAME})[ \t]*(?:<[^<>\n]{{0,100}}>)?\s{{0,3}}"
    r"(?:wrote|napisał(?:a|\(a\))?|a écrit|escribió|ha scritto|schreef)[ \t]*:|"
    rf"\b(?:schrieb|schreef)[ \t]+({_FULL_NAME})"
)
_ADDRESSEES: Final = re.compile(
    r"(?im)^[ \t>*]*(?:from|to|cc|von|an|kopie|od|do|dw|de|à|para|cco?|da|a|van|aan)\*?[ \t]?:\*?[ \t]*(\S.{0,300})$"
)
_OTHER_HEADER: Final = re.compile(
    r"(?i)[ \t>*]*(?:sent|date|subject|gesendet|datum|betreff|wysłano|data|temat|envoyé|objet|enviado|fecha|asunto|"
    r"inviato|oggetto|verzonden|onderwerp)\*?[ \t]?:"
)
_HEADER_LINES: Final = 4
_FORM_FIELD: Final = re.compile(
    r"(?im)^[ \t>*-]*(?:(?:first|last|full|family|your|customer|contact)?[ -]?(?:name|surname)|"
    r"(?:vor|nach|familien)?name|kunde|ansprechpartner(?:in)?|imię(?: i nazwisko)?|nazwisko|nom(?: de famille)?|prénom|"
    r"nombre|apellidos?|nome|cognome|naam|voornaam|achternaam)[ \t]*[:=][ \t]*"
    rf"(\S[^\n]{{0,60}}$|{_FULL_NAME})"
)
_CLOSING: Final = re.compile(
    r"(?i)^[ \t>]*(?:(?:(?:with |kind |best |warm |many )*(?:regards|wishes|thanks|thank you|cheers|sincerely|"
    r"greetings)|yours(?: \w+)?|(?:all the )?best(?=[,.! \t]*$)|take care|warmly|rgds|br\b|"
    r"(?:mit )?(?:(?:freundliche|beste|viele|schöne|liebe|herzliche)[mnr]?[ ]?){0,2}"
    r"(?:grüße[n]?|grüsse[n]?|gruß|gruss|danke?)|mfg|lg|vg|hochachtungsvoll|herzlichst|(?:ihr|dein)e?(?=[ \t]*$)|"
    r"z (?:poważaniem|pozdrowieniami|wyrazami szacunku)|(?:serdecznie |łączę )?(?:pozdrawiam|pozdrowienia)|dziękuję|"
    r"(?:bien |très )?cordialement|merci|bien à vous|.{0,80}\bsalutations(?: distinguées)?|"
    r"saludos|.{0,20}\bun (?:cordial )?saludo|atentamente|(?:muchas )?gracias|(?:cordiali|distinti) saluti|"
    r"saluti|grazie|(?:met )?(?:vriendelijke )?groet(?:en|jes)?|bedankt)"
    r"(?: in advance| im voraus| z góry| d['’]avance| de antemano)?)"
    r"[ \t]*[,.!–-]*[ \t]*(.{0,60})$"
)
_WORDS_BESIDE_NAMES: Final = """
support team service customer customers kunde kunden kundenservice info sent from my your our the a an and und i et y of
for gmbh ag ltd inc llc mail email office iphone ipad android outlook hello hi dear thanks thank you regards kind best
sir madam damen herren all everyone together zusammen warranty warranties garantie serial number there mr mrs ms dr herr
herrn frau pan pani państwo szanowni monsieur madame messieurs señores im in is it not no yes only just so happy sorry
sure writing glad unhappy having looking trying afraid mit freundlichen grüßen von gesendet meinem envoyé mon enviado
desde équipe equipo on monday tuesday wednesday thursday friday saturday sunday am montag dienstag mittwoch donnerstag
freitag samstag sonntag january february march april june july august september october november december le el il op
sr sra srta señor señora sig signor signora mme mlle prof pana panu panem panią familie fam dhr mevr
ja nein oui non tak nie sí
"""
_NO_NAMES: Final = frozenset(_WORDS_BESIDE_NAMES.split())


def find_names(email: Email, headers: Iterable[str]) -> list[str]:
    """The words that are names, in order, each once, as they are written. headers: decoded From, To, Cc, Reply-To."""
    body = "".join(span.text for span in email.spans)
    headers = list(headers)
    text = "\n".join((*headers, email.subject, body))
    found: dict[str, None] = {}
    for name in (*_names(text, email), *map(_displayed, headers)):
        for word in re.findall(_WORD, name):
            if len(word) > 1 and word.casefold() not in _NO_NAMES:
                found.setdefault(word)
    return list(found)


def spellings(word: str) -> Iterator[str]:
    """A name as it may stand in an address or a file name, too: `Müller`, `Mueller`, `Muller`."""
    yield word
    written_out = word
    for letter, letters in (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss"), ("ł", "l"), ("ø", "o"), ("Ł", "L")):
        written_out = written_out.replace(letter, letters)
    yield written_out
    yield "".join(
        sign
        for sign in unicodedata.normalize("NFKD", word.replace("ł", "l").replace("Ł", "L"))
        if not unicodedata.combining(sign)
    )


def _names(text: str, email: Email) -> Iterator[str]:
    for pattern in (_BEFORE_ADDRESS, _TITLE, _INTRODUCTION, _SALUTATION, _FORM_FIELD, _RELATION, _SIGNED_FOR):
        yield from (match[1] for match in pattern.finditer(text))
    yield from (match[1] or match[2] for match in _QUOTED_AUTHOR.finditer(text))
    yield from _addressees(text.splitlines())
    for span in email.spans:
        yield from _signed(span.text.splitlines())
    yield from _of_local_parts(text)


def _displayed(header: str) -> str:
    """Words with a capital beside the addresses of a header; all of a name in small letters."""
    shown = re.sub(r"<[^<>]*>|\S+@\S+", " ", header)
    return shown if shown.islower() and len(shown.split()) == 2 else " ".join(re.findall(_FULL_NAME, shown))


def _addressees(lines: list[str]) -> Iterator[str]:
    """Names in the header of a mail that stands in the text: `From: Priya Raman` with `Sent:` or `Subject:` near it."""
    headers = [number for number, line in enumerate(lines) if _OTHER_HEADER.match(line)]
    near = {number + step for number in headers for step in range(-_HEADER_LINES, _HEADER_LINES + 1)}
    for number, line in enumerate(lines):
        if number in near and (match := _ADDRESSEES.match(line)) is not None:
            yield _displayed(match[1])


def _signed(lines: list[str]) -> Iterator[str]:
    """Who signed: behind a closing, on the line below it, or alone on the last line."""
    filled = [line.strip(" \t>") for line in lines if line.strip(" \t>")]
    for number, line in enumerate(filled):
        if (closing := _CLOSING.match(line)) is not None:
            below = [each for each in filled[number + 1 : number + 3] if not _CLOSING.match(each)]
            yield from filter(_looks_like_name, (closing[1], *below))
        elif line == "--" and number + 1 < len(filled) and _looks_like_name(filled[number + 1]):
            yield filled[number + 1]
    last = filled[-1] if len(filled) > 1 else ""
    if _looks_like_name(last) and last[-1].isalpha() and not _CLOSING.match(last):
        yield last


def _looks_like_name(line: str) -> bool:
    """One to four words without digits and signs, with capitals, or one word alone."""
    words = line.strip(" ,.!-–").split()
    if not 1 <= len(words) <= 4 or not all(re.fullmatch(rf"{_WORD}\.?", word) for word in words):
        return False
    return all(word[0].isupper() for word in words) or len(words) == 1


def _of_local_parts(text: str) -> Iterator[str]:
    """Words of an address that stand in the mail with a capital, too."""
    for local in re.findall(r"([\w.+-]{1,64})@[\w-]", text):
        for word in re.split(r"[._+\d-]+", local):
            if len(word) > 2 and (match := re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)):
                capitalized = re.search(rf"\b{re.escape(word.capitalize())}\b", text)
                if capitalized is not None:
                    yield capitalized[0]
                elif match[0].isupper():
                    yield match[0]
