"""Numbers that say by themselves what they are: phone numbers, cards, accounts, articles, papers, parcels, standards.

A validator is loaded when a number has the form that it judges: most mails need none, and all of them take 0.2 s.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import Final

PHONE_REGIONS: Final = ("GB", "US", "DE", "AT", "CH", "FR", "BE", "ES", "MX", "PL", "IT", "NL", "IE", "AU", "IN", "ZA")
"""Where a number that is written without its country is tried."""

_STANDARDS: Final = (
    ("a bank account (IBAN)", r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", "stdnum.iban"),
    ("a card", r"[3-6][0-9]{12,18}", "stdnum.luhn"),
    ("a phone (IMEI)", r"[0-9]{15}", "stdnum.imei"),
    ("an article (EAN, ISBN)", r"[0-9]{13}", "stdnum.ean"),
    ("a VAT number", r"[A-Z]{2}[0-9A-Z]{8,12}", "stdnum.eu.vat"),
    ("a personal number", r"[0-9]{11}", "stdnum.pl.pesel"),
    ("a tax number", r"[1-9][0-9]{10}", "stdnum.de.idnr"),
    ("a social security number", r"[12][0-9]{14}", "stdnum.fr.nir"),
    ("an identity card", r"[0-9]{8}[A-Z]", "stdnum.es.dni"),
    ("an identity card", r"[XYZ][0-9]{7}[A-Z]", "stdnum.es.nie"),
)
"""What it is, its form without blanks and hyphens, and the module of `python-stdnum` that knows its check digits."""

_FORMS: Final = re.compile(
    r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"  # a date without separators
    r"|(?:0[1-9]|[12][0-9]|3[01])(?:0[1-9]|1[0-2])(?:19|20)[0-9]{2}"
    r"|1Z[0-9A-Z]{16}|[A-Z]{2}[0-9]{9}[A-Z]{2}"  # parcels: UPS; UPU S10
    r"|[A-Z]{1,2}[0-9][A-Z0-9]?[0-9][A-Z]{2}|[0-9]{4}[A-Z]{2}|[A-Z][0-9][A-Z][0-9][A-Z][0-9]"  # postcodes: GB, NL, CA
    r"|(?:[ABDEFHILNPS]|AT|BE|CH|CZ|DE|DK|ES|FI|FIN|FR|HU|IT|NL|PL|PT|RO|SE|SK)-[0-9]{2,3}-?[0-9]{2,3}"
    r"|(?:EN|ISO|IEC|DIN|VDE|BS|UL|ANSI|IEEE|RFC|CE|IP)[-/ ]?[0-9][-A-Z0-9/.:]*"  # standards
    r"|[-A-Z0-9._/]{1,60}[.][A-Z]{2,6}"  # a file or a domain
)
_WRITTEN_AS_PHONE: Final = re.compile(r"[+(0][0-9 ()/.-]{5,20}|[0-9]{2,4}(?:[ /.-][0-9]{2,4}){2,4}")
_NOT_ALPHANUMERIC: Final = re.compile(r"[^A-Z0-9]+")


@lru_cache(maxsize=256)
def find_standard(written: str) -> str | None:
    """What a number is, in words; None where it is none of those known. written: as it stands in the mail."""
    text = _NOT_ALPHANUMERIC.sub("", written.upper())
    if _WRITTEN_AS_PHONE.fullmatch(written) and _is_phone_number(written):
        return "a phone number"
    if _FORMS.fullmatch("".join(written.upper().split())):
        return "a date, a parcel, a post code, a standard or the like"
    for name, form, module in _STANDARDS:
        if re.fullmatch(form, text) and import_module(module).is_valid(text):
            return name
    return None


def _is_phone_number(written: str) -> bool:
    """Whether a number that is written as phone numbers are is one somewhere."""
    import phonenumbers  # start-up: 0.1 s

    for region in (None,) if written.startswith("+") else PHONE_REGIONS:
        try:
            if phonenumbers.is_valid_number(phonenumbers.parse(written, region)):
                return True
        except phonenumbers.NumberParseException:
            continue
    return False
