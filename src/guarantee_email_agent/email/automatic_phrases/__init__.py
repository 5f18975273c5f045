"""What autoresponders, ticket systems and notification services write, by language.

The wording is that of such systems' usual templates and of vacation texts; `automatic_mail` says how much of it makes a
mail automatic. A pattern is compiled at the first mail that could match it, since most mails never come near one.
"""

from guarantee_email_agent.email.automatic_phrases.germanic import DUTCH, ENGLISH, GERMAN, NORDIC
from guarantee_email_agent.email.automatic_phrases.other_languages import EAST_ASIAN, FINNISH, OTHER_LATIN
from guarantee_email_agent.email.automatic_phrases.phrases import Phrases
from guarantee_email_agent.email.automatic_phrases.romance import FRENCH, ITALIAN, PORTUGUESE, SPANISH
from guarantee_email_agent.email.automatic_phrases.slavic import CYRILLIC, CZECH_SLOVAK, POLISH

ALL_PHRASES = (
    *(ENGLISH, GERMAN, DUTCH, NORDIC, FRENCH, SPANISH, ITALIAN, PORTUGUESE, POLISH, CZECH_SLOVAK, CYRILLIC, FINNISH),
    *(OTHER_LATIN, EAST_ASIAN),
)

__all__ = ["ALL_PHRASES", "ENGLISH", "Phrases"]
